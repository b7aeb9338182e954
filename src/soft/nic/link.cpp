// SPDX-License-Identifier: Apache-2.0
#include "soft/nic/link.hpp"

#include <cstring>

#include "sys/files.hpp"
#include "sys/host.hpp"
#include "sys/private_file.hpp"
#include "sys/process.hpp"

namespace strait::soft::nic {
namespace {

constexpr std::uint32_t kLinkVersion = 4;
constexpr std::size_t kMostGids = 8;  // in a greeting; who has more is found by asking

// Both directions of the handshake. The probe is a random word: who can read it at that address really sees our memory.
struct Hello {
  std::uint32_t magic;
  std::uint32_t version;
  EngineId engine;
  std::uint64_t probe_address;
  std::uint64_t probe_value;
  std::uint64_t lossy;  // this side loses messages on purpose
  std::uint32_t range;  // of its queue pairs, on these addresses; 0: it has none
  std::uint32_t gid_count;
  std::array<std::array<std::uint8_t, 16>, kMostGids> gids;
};
constexpr std::uint32_t kHelloMagic = 0x4f4c4548;  // "HELO"

// Read by the other process only, never by us: lives as long as the library.
std::uint64_t& probe_word() {
  static std::uint64_t word = [] {
    auto value = static_cast<std::uint64_t>(sys::now_ns());  // enough to tell processes apart if there is no better
    (void)sys::fill_random(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }();
  return word;
}

Hello make_hello(const EngineId& self, const LinkPolicy& policy) {
  Hello hello{kHelloMagic,
              kLinkVersion,
              self,
              reinterpret_cast<std::uint64_t>(&probe_word()),
              probe_word(),
              policy.lossy ? 1u : 0u,
              policy.range,
              0,
              {}};
  for (const auto& gid : policy.gids) {
    if (hello.gid_count < kMostGids) hello.gids[hello.gid_count++] = gid;
  }
  return hello;
}

Result<Hello> read_hello(const sys::Packet& packet, std::size_t fds) {
  Hello hello{};
  if (packet.bytes.size() != sizeof hello || packet.fds.size() != fds) {
    return fail(Code::invalid, "a process sent {} bytes and {} descriptors that are not the greeting of a NIC engine",
                packet.bytes.size(), packet.fds.size());
  }
  std::memcpy(&hello, packet.bytes.data(), sizeof hello);
  if (hello.magic != kHelloMagic)
    return fail(Code::invalid, "a process sent a packet that is not the greeting of a NIC engine");
  if (hello.version != kLinkVersion) {
    return fail(Code::unsupported, "the other engine speaks version {} of the ring grant, this one {}", hello.version,
                kLinkVersion);
  }
  return hello;
}

Result<pid_t> same_user(int socket) {
  STRAIT_TRY(const sys::PeerCredentials who, sys::peer_credentials(socket));
  if (who.uid != sys::user_id()) {
    return fail(Code::denied, "{} belongs to user {}: the ring grant is for processes of the same user",
                process_text(who.pid), who.uid);
  }
  return who.pid;
}

Status send_hello(int socket, const EngineId& self, const LinkPolicy& policy, std::span<const int> fds) {
  const Hello hello = make_hello(self, policy);
  return sys::send_packet(socket, std::as_bytes(std::span(&hello, 1)), fds);
}

// Where the engine that greets is found by others.
std::vector<std::string> doors_of(const Hello& hello) {
  std::vector<std::string> doors;
  if (hello.range == 0 || hello.range > 255) return doors;
  for (std::size_t i = 0; i < hello.gid_count && i < kMostGids; ++i)
    doors.push_back(door_name(hello.gids[i], static_cast<std::uint8_t>(hello.range)));
  return doors;
}

// What both sides agree on. Tries what large copies will do, on one word, and remembers the reason if the system says
// no.
void agree(Link& link, const Hello& hello, const LinkPolicy& policy) {
  link.lossy = policy.lossy || hello.lossy != 0;
  for (std::string& door : doors_of(hello)) link.doors.push_back(std::move(door));
  if (!policy.cross_copies) {
    link.cross_reason = "switched off by option cross_memory";
    return;
  }
  if (link.peer_pid == 0) {
    link.cross_reason = "it is in another PID namespace, out of reach of process_vm_readv";
    return;
  }
  std::uint64_t seen = 0;
  const iovec near{&seen, sizeof seen};
  const iovec far{reinterpret_cast<void*>(hello.probe_address), sizeof seen};
  const Status read = sys::read_process(link.peer_pid, std::span(&near, 1), std::span(&far, 1), *policy.calls);
  if (!read) {
    link.cross_reason = read.error().text;
  } else if (seen != hello.probe_value) {
    link.cross_reason = fmt::format("process {} is not the process that greeted", link.peer_pid);
  } else {
    link.own().reaches_peer.store(1, std::memory_order_release);
  }
}

Result<std::unique_ptr<Link>> make_link(sys::Mapping mapping, unsigned side) {
  auto* memory = reinterpret_cast<ChannelMemory*>(mapping.data());
  auto link = std::make_unique<Link>(memory, side);
  link->mapping = std::move(mapping);
  return link;
}

}  // namespace

std::string process_text(pid_t process) {
  return process == 0 ? "a process of another PID namespace" : fmt::format("process {}", process);
}

std::string socket_name(const EngineId& engine) {
  std::string name = "strait-nic-";
  for (const std::uint8_t byte : engine) name += fmt::format("{:02x}", byte);
  return name;
}

std::string door_name(const std::array<std::uint8_t, 16>& gid, std::uint8_t range) {
  std::string name = fmt::format("strait-door-{}-{}-", kLinkVersion, range);
  for (const std::uint8_t byte : gid) name += fmt::format("{:02x}", byte);
  return name;
}

std::uint64_t this_host() {
  // The boot id: machines cloned from one image share a machine id, running kernels do not share this. And the network
  // namespace: engines find each other by abstract sockets, so a container with a network of its own is another host.
  const std::string text =
      sys::read_small_file("/proc/sys/kernel/random/boot_id") + std::to_string(sys::network_namespace());
  std::uint64_t hash = 1469598103934665603ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

Result<std::unique_ptr<Link>> open_link(const EngineId& self, const std::string& name, const EngineId* expected,
                                        int own_event_fd, const LinkPolicy& policy, sys::Deadline deadline,
                                        const std::function<void()>& progress, std::optional<pid_t>* silent) {
  STRAIT_TRY(sys::Fd memory_fd, sys::make_sealed_memfd("strait-channel", sizeof(ChannelMemory), *policy.calls));
  STRAIT_TRY(sys::Mapping mapping,
             sys::map_file(memory_fd.get(), 0, sizeof(ChannelMemory), sys::Protect::read_write, *policy.calls));
  auto* memory = reinterpret_cast<ChannelMemory*>(mapping.data());
  memory->magic = kChannelMagic;
  memory->slots = kSlots;
  memory->slot_bytes = kSlotBytes;
  STRAIT_TRY(sys::Fd socket, sys::unix_connect(name, deadline, *policy.calls));
  STRAIT_TRY(const pid_t pid, same_user(socket.get()));
  if (policy.shunned != nullptr && policy.shunned->contains(pid, {name}))
    return fail(Code::denied, "{} did not answer before", process_text(pid));
  const int fds[] = {memory_fd.get(), own_event_fd};
  STRAIT_CHECK(send_hello(socket.get(), self, policy, fds));

  while (true) {
    auto packet = sys::receive_packet(socket.get(), sizeof(Hello));
    if (packet) {
      STRAIT_TRY(const Hello hello, read_hello(*packet, 1));
      if (expected != nullptr && hello.engine != *expected)
        return fail(Code::denied, "another engine answered at the peer's address");
      STRAIT_TRY(auto link, make_link(std::move(mapping), 0));
      link->peer = hello.engine;
      link->peer_pid = pid;
      STRAIT_TRY(link->wake_peer, sys::Event::take_over(std::move(packet->fds[0])));
      link->socket = sys::ProcessFd(std::move(socket));
      agree(*link, hello, policy);
      return link;
    }
    if (packet.error().code != Code::again) return std::move(packet).error();
    if (deadline.passed()) {
      if (silent != nullptr) *silent = pid;
      return with_remedy(
          fail(Code::timeout, "the NIC engine of {} did not answer before the deadline", process_text(pid)),
          "A peer with progress=caller must call poll() for its engine to run.");
    }
    progress();
    (void)sys::wait_ready(socket.get(), false, sys::Deadline::after_ns(1'000'000));
  }
}

Result<std::unique_ptr<Link>> accept_link(const EngineId& self, sys::Fd& socket, int own_event_fd,
                                          const LinkPolicy& policy) {
  STRAIT_TRY(sys::Packet packet, sys::receive_packet(socket.get(), sizeof(Hello)));
  STRAIT_TRY(const Hello hello, read_hello(packet, 2));
  STRAIT_TRY(const pid_t pid, same_user(socket.get()));
  if (policy.shunned != nullptr && policy.shunned->contains(pid, doors_of(hello)))
    return fail(Code::denied, "packets were agreed on with {}", process_text(pid));
  STRAIT_CHECK(sys::check_sealed(packet.fds[0].get(), sizeof(ChannelMemory)));
  STRAIT_TRY(sys::Mapping mapping,
             sys::map_file(packet.fds[0].get(), 0, sizeof(ChannelMemory), sys::Protect::read_write, *policy.calls));
  const auto* memory = reinterpret_cast<const ChannelMemory*>(mapping.data());
  if (memory->magic != kChannelMagic || memory->slots != kSlots || memory->slot_bytes != kSlotBytes) {
    return fail(Code::invalid, "{} sent a channel of another layout", process_text(pid));
  }
  STRAIT_TRY(auto link, make_link(std::move(mapping), 1));
  link->peer = hello.engine;
  link->peer_pid = pid;
  STRAIT_TRY(link->wake_peer, sys::Event::take_over(std::move(packet.fds[1])));
  agree(*link, hello, policy);
  const int fds[] = {own_event_fd};
  STRAIT_CHECK(send_hello(socket.get(), self, policy, fds));
  link->socket = sys::ProcessFd(std::move(socket));
  return link;
}

Result<LinkPair> open_loopback(const EngineId& self, const LinkPolicy& policy) {
  STRAIT_TRY(sys::Fd memory_fd, sys::make_sealed_memfd("strait-loopback", sizeof(ChannelMemory), *policy.calls));
  LinkPair pair;
  for (unsigned side = 0; side < 2; ++side) {
    STRAIT_TRY(sys::Mapping mapping,
               sys::map_file(memory_fd.get(), 0, sizeof(ChannelMemory), sys::Protect::read_write, *policy.calls));
    STRAIT_TRY(auto link, make_link(std::move(mapping), side));
    link->peer = self;
    link->peer_pid = sys::process_id();
    link->loopback = true;
    agree(*link, make_hello(self, policy), policy);
    (side == 0 ? pair.first : pair.second) = std::move(link);
  }
  return pair;
}

}  // namespace strait::soft::nic
