// SPDX-License-Identifier: Apache-2.0
// Service: rdma_cm of one process, behind librdmacm's write protocol (rdma/rdma_user_cm.h, ABI 4).
//
// A Channel is one open of /dev/infiniband/rdma_cm. An Ident is what a program calls an rdma_cm_id; it belongs to a
// channel, and what happens to it waits in that channel's queue until the program asks with GET_EVENT. One lock guards
// all; a thread hands messages from the NIC to the Machine and watches its timers.
//
//   service.cpp   life, thread, events       commands.cpp  the write protocol     bind.cpp      addresses, listening
//   connect.cpp   connections                answers.cpp   QUERY and INIT_QP_ATTR
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include <rdma/rdma_user_cm.h>

#include "soft/cm/device.hpp"
#include "soft/cm/machine.hpp"
#include "soft/cm/neighbours.hpp"
#include "soft/cm/socket_address.hpp"
#include "sys/event.hpp"
#include "sys/poll_flag.hpp"

namespace strait::soft::cm {

// Kernel numbers of rdma_cm events, RDMA_CM_EVENT_*.
enum class UserEvent : std::uint32_t {
  addr_resolved = 0,
  addr_error = 1,
  route_resolved = 2,
  route_error = 3,
  connect_request = 4,
  connect_response = 5,
  connect_error = 6,
  unreachable = 7,
  rejected = 8,
  established = 9,
  disconnected = 10,
  timewait_exit = 15,
};

// IB_QPT_*
inline constexpr std::uint8_t kQpRc = 2, kQpUc = 3, kQpUd = 4, kQpXrcSend = 9, kQpXrcRecv = 10;
inline constexpr std::uint32_t kUdpQkey = 0x01234567;  // of datagrams by rdma_cm

class Channel;

enum class Phase : std::uint8_t { idle, bound, addr_resolved, route_resolved, connecting, listening };

struct Ident {
  std::uint32_t id = 0;
  std::uint64_t uid = 0;
  Channel* channel = nullptr;
  std::uint16_t space = 0;  // wire::mad::PortSpace
  std::uint8_t qp_type = kQpRc;
  Phase phase = Phase::idle;
  SocketAddress source;
  SocketAddress destination;
  bool has_device = false;
  std::uint8_t sgid_index = 0;
  bool claimed = false;  // its service, from other processes
  bool reuse_address = false;
  bool one_family = false;
  std::uint8_t traffic_class = 0;
  std::uint8_t ack_timeout = 18;
  Id cm = 0;  // connection or listener
  std::uint32_t events_reported = 0;
  // Kept for INIT_QP_ATTR when the machine has forgotten the connection's queue pair.
  bool passive = false;
};

struct Waiting {
  std::uint32_t ident = 0;  // whose event it is; of a request: the listener
  Id request = 0;           // a connection that has no Ident yet
  SocketAddress source, destination;
  rdma_ucm_event_resp response{};
};

class Channel {
 public:
  explicit Channel(sys::PollFlag flag) : flag_(std::move(flag)) {}
  [[nodiscard]] const sys::PollFlag& flag() const { return flag_; }

 private:
  friend class Service;
  sys::PollFlag flag_;
  std::deque<Waiting> queue_;
};

struct ServiceSettings {
  std::shared_ptr<Device> device;
  std::shared_ptr<Memory> memory;
  std::string scope = "strait-cm";  // see Neighbours
  std::uint32_t seed = 0;           // 0: by chance
  MachineConfig machine;            // times; the rest is filled in
};

class Service final : MadPort, Sink {
 public:
  explicit Service(ServiceSettings settings) : settings_(std::move(settings)) {}
  ~Service() override;  // tells peers of connections that are open
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] Result<std::shared_ptr<Channel>> open(bool nonblocking);
  void close(Channel& channel);
  // One command. The number of bytes, all of them, or -errno.
  [[nodiscard]] long write(Channel& channel, const void* bytes, std::size_t length);

  // The process ends: peers of open connections are told, if that can be done at once.
  void farewell();

  // For tests: what is left behind.
  [[nodiscard]] std::size_t idents();
  [[nodiscard]] std::size_t connections();

 private:
  struct Arrived {
    IpAddress from, to;
    Mad mad;
  };
  struct Call {  // a command's frame
    Channel& channel;
    std::span<const std::byte> in;
    std::uint16_t out_bytes;
  };

  // service.cpp
  [[nodiscard]] Status start();
  void run();
  void handle(const Arrived& arrived);
  void look_for_peers();
  [[nodiscard]] bool is_early(const IpAddress& from, const Message& message);
  void wake() const { wake_.raise(); }
  void send(const IpAddress& from, const IpAddress& to, const Mad& mad) override;
  void on_event(Event event) override;
  void on_request(const Event& event);
  void push(Channel& channel, Waiting waiting);
  void report(Ident& ident, UserEvent kind, int status = 0, const Event* event = nullptr);
  void fill(rdma_ucm_event_resp& out, const Ident& ident, const Event& event);
  void fill_ah(ib_uverbs_ah_attr& out, const Ident& ident, const Connection* c) const;
  [[nodiscard]] long find(const Channel& channel, std::uint32_t id, Ident*& out);
  [[nodiscard]] Ident& add_ident(Channel& channel);
  std::uint32_t remove_ident(std::uint32_t id);
  template <class Response>
  [[nodiscard]] long answer(std::uint64_t to, const Response& response, std::size_t bytes = sizeof(Response)) const {
    return settings_.memory->copy_out(to, &response, bytes) ? 0 : -EFAULT;
  }

  // commands.cpp
  [[nodiscard]] long dispatch(std::uint32_t command, const Call& call);
  [[nodiscard]] long create_id(const Call& call);
  [[nodiscard]] long destroy_id(const Call& call);
  [[nodiscard]] long set_option(const Call& call);
  [[nodiscard]] long set_path(Ident& ident, std::span<const std::byte> value);
  [[nodiscard]] long notify(const Call& call);
  [[nodiscard]] long join(const Call& call, bool ip_only);
  [[nodiscard]] long leave(const Call& call);
  [[nodiscard]] long migrate(const Call& call);
  [[nodiscard]] long get_event(Channel& channel, const Call& call);

  // bind.cpp
  [[nodiscard]] long bind(const Call& call, bool ip_only);
  [[nodiscard]] long bind_to(Ident& ident, SocketAddress address);
  [[nodiscard]] long claim_port(Ident& ident, SocketAddress& address);
  [[nodiscard]] long take_device(Ident& ident, const IpAddress& address);
  [[nodiscard]] long resolve_address(const Call& call, bool ip_only);
  [[nodiscard]] long resolve_to(Ident& ident, const SocketAddress& source, const SocketAddress& destination);
  [[nodiscard]] long resolve_route(const Call& call);
  [[nodiscard]] long listen(const Call& call);
  [[nodiscard]] std::uint64_t service_of(const Ident& ident, const SocketAddress& address) const;

  // connect.cpp
  [[nodiscard]] long connect(const Call& call);
  [[nodiscard]] long accept(const Call& call);
  [[nodiscard]] long reject(const Call& call);
  [[nodiscard]] long disconnect(const Call& call);

  // answers.cpp
  [[nodiscard]] long query_route(const Call& call);
  [[nodiscard]] long query(const Call& call);
  [[nodiscard]] long query_address(const Ident& ident, std::uint64_t to, std::size_t room, bool gids);
  [[nodiscard]] long query_path(const Ident& ident, std::uint64_t to, std::size_t room);
  [[nodiscard]] long init_qp_attr(const Call& call);

  ServiceSettings settings_;
  std::mutex mutex_;
  std::optional<Neighbours> neighbours_;
  std::unique_ptr<Machine> machine_;
  std::map<std::uint32_t, Ident> idents_;
  std::uint32_t next_ident_ = 0;
  std::unordered_map<Id, std::uint32_t> by_cm_;
  std::vector<Channel*> channels_;
  std::map<std::pair<IpAddress, std::uint64_t>, std::int64_t> unserved_;  // since when: requests that nobody serves

  sys::Event wake_;
  std::thread thread_;
  std::atomic<bool> ending_{false};
  std::mutex arrived_mutex_;  // taken under the NIC's lock: nothing else may be taken inside it
  std::vector<Arrived> arrived_;
};

}  // namespace strait::soft::cm
