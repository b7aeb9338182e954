// SPDX-License-Identifier: Apache-2.0
// strait in C++: values and owners, inline over the C ABI in c.h.
//
//   auto node   = strait::Node::open().value();
//   auto mem    = node.allocate(64 << 20, {.near = "soft:0"}).value();
//   auto region = node.share(mem, strait::access::remote_write).value();
//   auto peer   = node.connect("127.0.0.1:7471").value();
//   auto target = peer.lookup("kv/0").value();
//   auto done   = peer.put(region.all(), target.at(0), {.signal = 0}).wait(2s);
//
// Owners (Node, Memory, Region, Published, Peer, Lane) move and do not copy; a Node must outlive what came from it.
// Target and Ticket are values. Posting calls return an Operation, which carries the error if posting failed, so that
// one check at wait() is enough. Threads: see c.h.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strait/c.h"
#include "strait/result.hpp"

namespace strait {

using Duration = std::chrono::nanoseconds;
inline constexpr Duration kDefaultDeadline{-1};  // the Node's option `deadline`

namespace access {
enum Access : std::uint32_t {
  local = 0,
  remote_read = STRAIT_REMOTE_READ,
  remote_write = STRAIT_REMOTE_WRITE,
  remote_atomic = STRAIT_REMOTE_ATOMIC,
};
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(std::uint32_t{a} | std::uint32_t{b});
}
inline constexpr Access all = remote_read | remote_write | remote_atomic;
}  // namespace access

enum Require : std::uint32_t { any_path = 0, zero_copy = STRAIT_REQUIRE_ZERO_COPY };

namespace detail {

inline Error to_error(const strait_error& raw) {
  return Error{static_cast<Code>(raw.code), raw.sys_errno, raw.syndrome, raw.text, raw.remedy};
}

// strait_error is large and only written on failure: keep it out of the way of the fast path.
class Catch {
 public:
  Catch() {
    raw_.struct_size = sizeof raw_;
    raw_.code = 0;
    raw_.text[0] = raw_.remedy[0] = '\0';
  }
  strait_error* out() { return &raw_; }
  [[nodiscard]] Error error() const { return to_error(raw_); }

 private:
  strait_error raw_;
};

template <class Handle, void (*Release)(Handle*)>
struct Releaser {
  void operator()(Handle* handle) const { Release(handle); }
};

template <class Handle, void (*Release)(Handle*)>
using Owner = std::unique_ptr<Handle, Releaser<Handle, Release>>;

inline std::string take_text(char* text) {
  std::string copy(text);
  strait_text_free(text);
  return copy;
}

}  // namespace detail

// Memory allocated through the Node. Freed when it goes out of scope, or as soon after that as no operation uses it;
// share() it to let a NIC reach it.
class Memory {
 public:
  explicit Memory(strait_memory* raw) : raw_(raw) {}
  [[nodiscard]] void* data() const { return strait_memory_address(raw_.get()); }
  [[nodiscard]] std::uint64_t size() const { return strait_memory_length(raw_.get()); }
  // Fails while a region still shares it; then the memory stays.
  Status free() {
    detail::Catch caught;
    if (strait_memory_free(raw_.get(), caught.out()) != STRAIT_OK) return caught.error();
    (void)raw_.release();
    return {};
  }

 private:
  detail::Owner<strait_memory, strait_memory_drop> raw_;
};

// One word that peers raise and this process waits for.
class Signal {
 public:
  Signal(strait_region* region, std::uint32_t index) : region_(region), index_(index) {}
  [[nodiscard]] Result<std::uint64_t> read() const {
    detail::Catch caught;
    std::uint64_t value = 0;
    if (strait_signal_read(region_, index_, &value, caught.out()) != STRAIT_OK) return caught.error();
    return value;
  }
  Status write(std::uint64_t value) {
    detail::Catch caught;
    if (strait_signal_write(region_, index_, value, caught.out()) != STRAIT_OK) return caught.error();
    return {};
  }
  // What was put before the signal was raised can be read when this returns a value.
  Result<std::uint64_t> wait_until_at_least(std::uint64_t at_least, Duration timeout = kDefaultDeadline) {
    detail::Catch caught;
    std::uint64_t value = 0;
    if (strait_signal_wait(region_, index_, at_least, timeout.count(), &value, caught.out()) != STRAIT_OK)
      return caught.error();
    return value;
  }

 private:
  strait_region* region_;
  std::uint32_t index_;
};

// What a peer is given out of band. Redeem it with Peer::redeem.
struct Ticket {
  strait_ticket raw{};
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return raw.bytes; }
  static Result<Ticket> from(std::span<const std::uint8_t> bytes) {
    if (bytes.size() != STRAIT_TICKET_BYTES)
      return Error{Code::invalid, 0, 0, "a ticket has 128 bytes, not " + std::to_string(bytes.size()), {}};
    Ticket ticket;
    std::memcpy(ticket.raw.bytes, bytes.data(), bytes.size());
    return ticket;
  }
};

struct Slice {
  strait_slice raw{};
  [[nodiscard]] std::uint64_t size() const { return raw.length_bytes; }
};

// A registration. Dropping it revokes it and never frees the memory.
class Region {
 public:
  explicit Region(strait_region* raw) : raw_(raw) {}
  [[nodiscard]] void* data() const { return strait_region_address(raw_.get()); }
  [[nodiscard]] std::uint64_t size() const { return strait_region_length(raw_.get()); }
  [[nodiscard]] Slice all() const { return slice(0, size()); }
  [[nodiscard]] Slice slice(std::uint64_t offset, std::uint64_t length) const { return {{raw_.get(), offset, length}}; }
  [[nodiscard]] Signal signal(std::uint32_t index) const { return {raw_.get(), index}; }
  [[nodiscard]] std::string path() const {  // JSON: how it is reached, and why not otherwise
    char* json = nullptr;
    return strait_region_path(raw_.get(), &json, nullptr) == STRAIT_OK ? detail::take_text(json) : std::string();
  }
  Status revoke(Duration timeout = kDefaultDeadline) {
    detail::Catch caught;
    if (strait_region_revoke(raw_.get(), timeout.count(), caught.out()) != STRAIT_OK) return caught.error();
    return {};
  }
  Result<Ticket> ticket(access::Access rights, Duration lifetime = kDefaultDeadline, std::uint64_t offset = 0,
                        std::optional<std::uint64_t> length = std::nullopt) {
    detail::Catch caught;
    Ticket ticket;
    if (strait_ticket_make(raw_.get(), offset, length.value_or(size() - offset), rights, lifetime.count(), &ticket.raw,
                           caught.out()) != STRAIT_OK) {
      return caught.error();
    }
    return ticket;
  }
  [[nodiscard]] strait_region* raw() const { return raw_.get(); }

 private:
  detail::Owner<strait_region, strait_region_drop> raw_;
};

// A place in remote memory.
struct Place {
  strait_target target;
  std::uint64_t offset;
};

class Target {
 public:
  Target() = default;
  explicit Target(const strait_target& raw) : raw_(raw) {}
  [[nodiscard]] Place at(std::uint64_t offset) const { return {raw_, offset}; }
  [[nodiscard]] std::uint64_t size() const { return raw_.length_bytes; }
  [[nodiscard]] access::Access rights() const { return static_cast<access::Access>(raw_.access); }
  [[nodiscard]] std::uint64_t epoch() const { return raw_.epoch; }
  [[nodiscard]] const strait_target& raw() const { return raw_; }

 private:
  strait_target raw_{};
};

// Which way the bytes of an operation went. A text of its lane, found when it is asked for: only while the lane lives.
class PathText {
 public:
  PathText() = default;
  explicit PathText(const strait_op& op) : op_(op) {}
  [[nodiscard]] const char* c_str() const { return strait_op_path(&op_); }
  [[nodiscard]] std::string str() const { return c_str(); }
  [[nodiscard]] std::size_t find(std::string_view what) const { return std::string_view(c_str()).find(what); }
  template <class Stream>
  friend Stream& operator<<(Stream& stream, const PathText& path) {
    stream << path.c_str();
    return stream;
  }

 private:
  strait_op op_{};
};

struct Done {
  Done() = default;
  // Written out for nvcc, which does not make an aggregate from arguments in parentheses.
  Done(std::uint64_t bytes_moved, std::uint64_t old_value, std::optional<std::uint32_t> with_imm, PathText by)
      : bytes(bytes_moved), value(old_value), imm(with_imm), path(by) {}

  std::uint64_t bytes = 0;
  std::uint64_t value = 0;           // atomics: what was there before
  std::optional<std::uint32_t> imm;  // receive: the sender's immediate
  PathText path;                     // which way the bytes went
};

// An operation in flight. Dropping it detaches it; it never cancels.
class [[nodiscard]] Operation {
 public:
  explicit Operation(strait_op raw) : raw_(raw) {}
  explicit Operation(Error error) : error_(std::make_unique<Error>(std::move(error))) {}
  Operation(Operation&& other) noexcept : raw_(std::exchange(other.raw_, {})), error_(std::move(other.error_)) {}
  Operation& operator=(Operation&& other) noexcept {
    if (this != &other) {
      detach();
      raw_ = std::exchange(other.raw_, {});
      error_ = std::move(other.error_);
    }
    return *this;
  }
  ~Operation() { detach(); }

  // Timeout: the operation goes on, keeps its memory, and can be waited for again.
  Result<Done> wait(Duration timeout = kDefaultDeadline) {
    return finish(
        [&](strait_done* done, strait_error* error) { return strait_wait(&raw_, timeout.count(), done, error); });
  }
  // Code::again while it is in flight.
  Result<Done> test() {
    return finish([&](strait_done* done, strait_error* error) { return strait_test(&raw_, done, error); });
  }
  void detach() {
    if (raw_.lane != nullptr) strait_detach(&raw_);
    raw_ = {};
  }
  [[nodiscard]] bool posted() const { return error_ == nullptr; }

 private:
  template <class Ask>
  Result<Done> finish(Ask ask) {
    if (error_) return *error_;
    if (raw_.lane == nullptr)
      return Error{Code::invalid, 0, 0, "this operation was already waited for or detached", {}};
    const PathText path(raw_);
    if ((raw_.id & STRAIT_OP_COMPLETE) != 0) {
      const std::uint64_t bytes = raw_.id & STRAIT_OP_BYTES;
      raw_ = {};
      return Result<Done>(std::in_place, bytes, std::uint64_t{0}, std::nullopt, path);
    }
    strait_done raw{};
    raw.struct_size = sizeof raw;
    detail::Catch caught;
    if (ask(&raw, caught.out()) != STRAIT_OK) return caught.error();
    Done done{raw.bytes, raw.value, std::nullopt, path};
    if ((raw.flags & STRAIT_WITH_IMM) != 0) done.imm = raw.imm;
    return done;
  }
  strait_op raw_{};
  std::unique_ptr<Error> error_;
};

struct OpOptions {
  std::optional<std::uint32_t> signal{};  // put: raise this signal of the target region after the data
  std::uint64_t signal_add = 1;
  std::optional<std::uint32_t> imm{};
  Require require = any_path;
  bool fence = false;  // after earlier gets and atomics of this lane

  [[nodiscard]] strait_op_options raw() const {
    strait_op_options out{};
    out.struct_size = sizeof out;
    out.flags = std::uint32_t{require};
    if (fence) out.flags |= STRAIT_FENCE;
    if (imm) out.flags |= STRAIT_WITH_IMM;
    if (signal) out.flags |= STRAIT_WITH_SIGNAL;
    out.imm = imm.value_or(0);
    out.signal = signal.value_or(0);
    out.signal_add = signal_add;
    return out;
  }
};

struct Item {
  enum Kind : std::uint32_t { put = STRAIT_PUT, get = STRAIT_GET } kind;
  Slice local;
  Place remote;
};

// The calls that Lane and Peer share.
class Poster {
 public:
  Operation put(const Slice& from, const Place& to, const OpOptions& options = {}) {
    return post([&](const strait_op_options* o, strait_op* out,
                    strait_error* e) { return strait_put(lane_, &from.raw, &to.target, to.offset, o, out, e); },
                options);
  }
  Operation get(const Slice& into, const Place& from, const OpOptions& options = {}) {
    return post([&](const strait_op_options* o, strait_op* out,
                    strait_error* e) { return strait_get(lane_, &into.raw, &from.target, from.offset, o, out, e); },
                options);
  }
  Operation fetch_add(const Place& at, std::uint64_t add, const OpOptions& options = {}) {
    return post([&](const strait_op_options* o, strait_op* out,
                    strait_error* e) { return strait_fetch_add(lane_, &at.target, at.offset, add, o, out, e); },
                options);
  }
  Operation compare_swap(const Place& at, std::uint64_t expected, std::uint64_t desired,
                         const OpOptions& options = {}) {
    return post(
        [&](const strait_op_options* o, strait_op* out, strait_error* e) {
          return strait_compare_swap(lane_, &at.target, at.offset, expected, desired, o, out, e);
        },
        options);
  }
  Operation send(const Slice& from, const OpOptions& options = {}) {
    return post([&](const strait_op_options* o, strait_op* out,
                    strait_error* e) { return strait_send(lane_, &from.raw, o, out, e); },
                options);
  }
  Operation receive(const Slice& into) {
    return post([&](const strait_op_options*, strait_op* out,
                    strait_error* e) { return strait_receive(lane_, &into.raw, out, e); },
                {});
  }
  Operation receive_imm() {  // only the immediate of a put
    return post([&](const strait_op_options*, strait_op* out,
                    strait_error* e) { return strait_receive(lane_, nullptr, out, e); },
                {});
  }
  Operation batch(std::span<const Item> items, const OpOptions& options = {}) {
    std::array<strait_item, 16> few;  // most batches; an allocation costs as much as posting one, so it is made once
    static thread_local std::vector<strait_item> many;
    if (items.size() > few.size() && items.size() > many.size()) many.resize(items.size());
    strait_item* const raw = items.size() <= few.size() ? few.data() : many.data();
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      raw[i] = {item.kind, 0, item.local.raw, &item.remote.target, item.remote.offset};
    }
    return post(
        [&](const strait_op_options* o, strait_op* out, strait_error* e) {
          return strait_batch(lane_, raw, static_cast<std::uint32_t>(items.size()), o, out, e);
        },
        options);
  }
  Status flush(Duration timeout = kDefaultDeadline) {
    detail::Catch caught;
    if (strait_flush(lane_, timeout.count(), caught.out()) != STRAIT_OK) return caught.error();
    return {};
  }
  [[nodiscard]] std::string path() const { return strait_lane_path(lane_); }
  // Of puts and gets to this target: by a grant of its memory, or the lane's.
  [[nodiscard]] std::string path(const Target& target) const { return strait_target_path(lane_, &target.raw()); }

 protected:
  explicit Poster(strait_lane* lane) : lane_(lane) {}
  strait_lane* lane_;

 private:
  template <class Post>
  Operation post(Post call, const OpOptions& options) {
    const strait_op_options raw = options.raw();
    strait_op op{};
    detail::Catch caught;
    if (call(&raw, &op, caught.out()) != STRAIT_OK) return Operation(caught.error());
    return Operation(op);
  }
};

// A queue with one owner thread; takes no lock.
class Lane : public Poster {
 public:
  explicit Lane(strait_lane* raw) : Poster(raw), raw_(raw) {}
  [[nodiscard]] strait_lane* raw() const { return raw_.get(); }

 private:
  detail::Owner<strait_lane, strait_lane_close> raw_;
};

// A connected process. Its own put/get/... may be used from any thread.
class Peer : public Poster {
 public:
  explicit Peer(strait_peer* raw) : Poster(strait_peer_lane(raw)), raw_(raw) {}
  [[nodiscard]] std::string name() const { return strait_peer_name(raw_.get()); }
  Result<Target> lookup(const std::string& name, Duration timeout = kDefaultDeadline) {
    detail::Catch caught;
    strait_target target{};
    target.struct_size = sizeof target;
    if (strait_lookup(raw_.get(), name.c_str(), timeout.count(), &target, caught.out()) != STRAIT_OK)
      return caught.error();
    return Target(target);
  }
  Result<Target> redeem(const Ticket& ticket, Duration timeout = kDefaultDeadline) {
    detail::Catch caught;
    strait_target target{};
    target.struct_size = sizeof target;
    if (strait_redeem(raw_.get(), &ticket.raw, timeout.count(), &target, caught.out()) != STRAIT_OK)
      return caught.error();
    return Target(target);
  }
  // `depth`: operations in flight; 0 takes the Node's option. `signal_every`, `near`: see strait_lane_options.
  Result<Lane> lane(std::uint32_t depth = 0, Duration timeout = kDefaultDeadline, std::uint32_t signal_every = 1,
                    const std::string& near = {}) {
    detail::Catch caught;
    strait_lane_options options{sizeof options, depth, signal_every, near.empty() ? nullptr : near.c_str()};
    strait_lane* raw = nullptr;
    if (strait_lane_open(raw_.get(), &options, timeout.count(), &raw, caught.out()) != STRAIT_OK) return caught.error();
    return Lane(raw);
  }
  [[nodiscard]] strait_peer* raw() const { return raw_.get(); }

 private:
  detail::Owner<strait_peer, strait_peer_close> raw_;
};

class Published {
 public:
  explicit Published(strait_published* raw) : raw_(raw) {}

 private:
  detail::Owner<strait_published, strait_withdraw> raw_;
};

struct AllocateOptions {
  std::string near = "host";
  bool networked = false;  // export and register it now, not at the first share
};

struct ConnectOptions {
  Duration deadline = kDefaultDeadline;
};

struct ExplainOptions {
  bool json = false;       // every way with its parts, not a table for people
  bool zero_copy = false;  // as with require = zero_copy
  Duration deadline = kDefaultDeadline;
};

struct NodeOptions {
  std::vector<std::pair<std::string, std::string>> settings;  // rows of `strait info --options`
  strait_log_fn log = nullptr;
  void* log_context = nullptr;
};

class Node {
 public:
  explicit Node(strait_node* raw) : raw_(raw) {}
  static Result<Node> open(const NodeOptions& options = {}) {
    std::vector<strait_setting> settings;
    for (const auto& [name, value] : options.settings) settings.push_back({name.c_str(), value.c_str()});
    strait_node_options raw{};
    raw.struct_size = sizeof raw;
    raw.n_settings = static_cast<std::uint32_t>(settings.size());
    raw.settings = settings.data();
    raw.log = options.log;
    raw.log_context = options.log_context;
    detail::Catch caught;
    strait_node* node = nullptr;
    if (strait_node_open(&raw, &node, caught.out()) != STRAIT_OK) return caught.error();
    return Node(node);
  }

  [[nodiscard]] std::string address() const { return strait_node_address(raw_.get()); }
  Result<Memory> allocate(std::uint64_t length, const AllocateOptions& options = {}) {
    detail::Catch caught;
    strait_memory* memory = nullptr;
    const std::uint32_t flags = options.networked ? STRAIT_ALLOCATE_NETWORKED : 0;
    if (strait_allocate_with(raw_.get(), length, options.near.c_str(), flags, &memory, caught.out()) != STRAIT_OK)
      return caught.error();
    return Memory(memory);
  }
  // Host or accelerator memory: found out, never declared. The caller keeps ownership.
  Result<Region> share(void* address, std::uint64_t length, access::Access rights) {
    detail::Catch caught;
    strait_region* region = nullptr;
    if (strait_share(raw_.get(), address, length, rights, &region, caught.out()) != STRAIT_OK) return caught.error();
    return Region(region);
  }
  Result<Region> share(const Memory& memory, access::Access rights) {
    return share(memory.data(), memory.size(), rights);
  }
  // Memory behind a descriptor of the caller's: a dma-buf, or a sealed memfd. It is duplicated, never closed for you.
  Result<Region> share_dmabuf(int fd, std::uint64_t offset, std::uint64_t length, access::Access rights,
                              std::uint64_t address = 0) {
    detail::Catch caught;
    strait_region* region = nullptr;
    if (strait_share_dmabuf(raw_.get(), fd, offset, length, address, rights, &region, caught.out()) != STRAIT_OK)
      return caught.error();
    return Region(region);
  }
  Status copy(void* to, const void* from, std::uint64_t length, Duration timeout = kDefaultDeadline) {
    detail::Catch caught;
    if (strait_copy(raw_.get(), to, from, length, timeout.count(), caught.out()) != STRAIT_OK) return caught.error();
    return {};
  }
  Result<Published> publish(const std::string& name, const Region& region) {
    detail::Catch caught;
    strait_published* published = nullptr;
    if (strait_publish(raw_.get(), name.c_str(), region.raw(), &published, caught.out()) != STRAIT_OK)
      return caught.error();
    return Published(published);
  }
  Result<Peer> connect(const std::string& address, const ConnectOptions& options = {}) {
    detail::Catch caught;
    strait_peer* peer = nullptr;
    if (strait_connect(raw_.get(), address.c_str(), options.deadline.count(), &peer, caught.out()) != STRAIT_OK)
      return caught.error();
    return Peer(peer);
  }
  Result<Peer> accept(Duration timeout = kDefaultDeadline) {
    detail::Catch caught;
    strait_peer* peer = nullptr;
    if (strait_accept(raw_.get(), timeout.count(), &peer, caught.out()) != STRAIT_OK) return caught.error();
    return Peer(peer);
  }
  [[nodiscard]] Result<std::string> info() {
    detail::Catch caught;
    char* json = nullptr;
    if (strait_node_info(raw_.get(), &json, caught.out()) != STRAIT_OK) return caught.error();
    return detail::take_text(json);
  }
  // What a running Node counted, asked at its address; JSON. See strait_counters_of.
  [[nodiscard]] Result<std::string> counters_of(const std::string& address, Duration deadline = kDefaultDeadline) {
    detail::Catch caught;
    char* json = nullptr;
    if (strait_counters_of(raw_.get(), address.c_str(), deadline.count(), &json, caught.out()) != STRAIT_OK)
      return caught.error();
    return detail::take_text(json);
  }
  // By which ways each NIC reaches each kind of memory, every one tried now; JSON. See strait_node_reach.
  [[nodiscard]] Result<std::string> reach(bool every_device = false) {
    detail::Catch caught;
    char* json = nullptr;
    const std::uint32_t flags = every_device ? std::uint32_t{STRAIT_REACH_EVERY_DEVICE} : 0u;
    if (strait_node_reach(raw_.get(), flags, &json, caught.out()) != STRAIT_OK) return caught.error();
    return detail::take_text(json);
  }
  // Which way bytes would take, and why not another: explain("gaudi:0", "cuda:0@10.0.0.7:7471"). A table for people, or
  // JSON.
  [[nodiscard]] Result<std::string> explain(const std::string& from, const std::string& to,
                                            ExplainOptions options = {}) {
    detail::Catch caught;
    char* text = nullptr;
    const std::uint32_t flags = (options.json ? 0u : std::uint32_t{STRAIT_EXPLAIN_TEXT}) |
                                (options.zero_copy ? std::uint32_t{STRAIT_EXPLAIN_ZERO_COPY} : 0u);
    if (strait_explain(raw_.get(), from.c_str(), to.c_str(), flags, options.deadline.count(), &text, caught.out()) !=
        STRAIT_OK)
      return caught.error();
    return detail::take_text(text);
  }
  std::int32_t poll() { return strait_node_poll(raw_.get()); }
  [[nodiscard]] strait_node* raw() const { return raw_.get(); }

 private:
  detail::Owner<strait_node, strait_node_close> raw_;
};

}  // namespace strait
