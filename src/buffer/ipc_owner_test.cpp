// SPDX-License-Identifier: Apache-2.0
// Both ends of the line between a test and the process that owns memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>

#include "buffer/built_in.hpp"
#include "buffer/cuda/driver.hpp"
#include "buffer/ipc_testing.hpp"
#include "sys/library.hpp"
#include "sys/socket.hpp"

namespace strait::buffer {
namespace {

struct VmmProp {  // CUmemAllocationProp
  int type = 1;   // pinned
  int handle_types = 0;
  cuda::Location location{1, 0};
  void* unused = nullptr;
  unsigned char flags[8] = {};
};
struct PoolProps {  // CUmemPoolProps
  int type = 1;     // pinned
  int handle_types = 1;
  cuda::Location location{1, 0};
  void* unused = nullptr;
  std::size_t most_bytes = 0;
  unsigned char reserved[56] = {};
};

struct Owned {
  Provider* provider = nullptr;
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  std::function<bool()> free;
};

class Server {
 public:
  [[nodiscard]] Result<Owned> make(const std::string& kind, std::uint64_t length_bytes) {
    if (kind == "vmm") return make_vmm(length_bytes);
    if (kind == "pool") return make_pool(length_bytes);
    STRAIT_TRY(Provider* const provider, provider_of(kind));
    STRAIT_TRY(const std::uint64_t address, provider->allocate(0, length_bytes));
    return Owned{provider, address, length_bytes, [=] { return provider->free(address).has_value(); }};
  }
  // What the driver answers to an allocation that is to have a fabric handle.
  [[nodiscard]] Result<int> make_fabric() {
    STRAIT_CHECK(use_cuda());
    VmmProp prop;
    prop.handle_types = 8;
    cuda::Handle handle = 0;
    STRAIT_TRY(const auto create, cuda_.symbol<Create>("cuMemCreate"));
    return create(&handle, 2 << 20, &prop, 0);
  }

 private:
  using Create = cuda::CuResult (*)(cuda::Handle*, std::size_t, const VmmProp*, unsigned long long);

  [[nodiscard]] Result<Provider*> provider_of(const std::string& kind) {
    if (!providers_.contains(kind)) {
      STRAIT_TRY(providers_[kind], Provider::open(plugin_of(kind, "")));
    }
    return providers_[kind].get();
  }
  // As a program uses the device: its primary context, current on this thread.
  [[nodiscard]] Status use_cuda() {
    if (driver_ != nullptr) return {};
    STRAIT_TRY(cuda_, sys::Library::open("libcuda.so.1"));
    STRAIT_TRY(driver_, cuda::Driver::get());
    cuda::Context context = nullptr;
    if (driver_->primary_retain(&context, 0) != cuda::kOk || driver_->push(context) != cuda::kOk)
      return fail(Code::device, "no context");
    return {};
  }
  static Status good(cuda::CuResult result, const char* what) {
    if (result == cuda::kOk) return {};
    return fail(Code::device, "{}: {}", what, result);
  }
  [[nodiscard]] Result<Owned> make_vmm(std::uint64_t length_bytes) {
    STRAIT_TRY(Provider* const provider, provider_of("cuda"));
    STRAIT_CHECK(use_cuda());
    constexpr std::uint64_t kUnit = 2 << 20;
    VmmProp prop;
    prop.handle_types = 1;
    cuda::Handle handle = 0;
    cuda::Pointer base = 0;
    STRAIT_TRY(const auto create, cuda_.symbol<Create>("cuMemCreate"));
    STRAIT_CHECK(good(create(&handle, kUnit, &prop, 0), "cuMemCreate"));
    STRAIT_CHECK(good(driver_->reserve(&base, kUnit, 0, 0, 0), "reserve"));
    STRAIT_CHECK(good(driver_->map(base, kUnit, 0, handle, 0), "map"));
    const cuda::AccessDesc access{{cuda::kLocationDevice, 0}, cuda::kAccessReadWrite};
    STRAIT_CHECK(good(driver_->set_access(base, kUnit, &access, 1), "access"));
    STRAIT_CHECK(good(driver_->release_handle(handle), "release"));
    return Owned{provider, base + 4097, length_bytes, [this, base] {
                   return driver_->unmap(base, kUnit) == cuda::kOk && driver_->unreserve(base, kUnit) == cuda::kOk;
                 }};
  }
  [[nodiscard]] Result<Owned> make_pool(std::uint64_t length_bytes) {
    using Make = cuda::CuResult (*)(cuda::Pool*, const PoolProps*);
    using Allocate = cuda::CuResult (*)(cuda::Pointer*, std::size_t, cuda::Pool, cuda::Stream);
    using Free = cuda::CuResult (*)(cuda::Pointer, cuda::Stream);
    STRAIT_TRY(Provider* const provider, provider_of("cuda"));
    STRAIT_CHECK(use_cuda());
    if (pool_ == nullptr) {
      const PoolProps props;
      STRAIT_TRY(const auto make_it, cuda_.symbol<Make>("cuMemPoolCreate"));
      STRAIT_CHECK(good(make_it(&pool_, &props), "cuMemPoolCreate"));
    }
    STRAIT_TRY(const auto allocate, cuda_.symbol<Allocate>("cuMemAllocFromPoolAsync"));
    STRAIT_TRY(const auto free, cuda_.symbol<Free>("cuMemFreeAsync"));
    cuda::Pointer base = 0;
    STRAIT_CHECK(good(allocate(&base, length_bytes, pool_, nullptr), "cuMemAllocFromPoolAsync"));
    STRAIT_CHECK(good(driver_->stream_wait(nullptr), "cuStreamSynchronize"));
    return Owned{provider, base, length_bytes, [this, base, free] {
                   return free(base, nullptr) == cuda::kOk && driver_->stream_wait(nullptr) == cuda::kOk;
                 }};
  }

  sys::Library cuda_;
  const cuda::Driver* driver_ = nullptr;
  cuda::Pool pool_ = nullptr;
  std::map<std::string, std::unique_ptr<Provider>> providers_;
};

Status move_bytes(const Owned& owned, std::vector<unsigned char>& bytes, bool in) {
  const auto host = reinterpret_cast<std::uint64_t>(bytes.data());
  STRAIT_TRY(const std::uint64_t ticket,
             owned.provider->start_copy(in ? owned.address : host, in ? host : owned.address, bytes.size()));
  return owned.provider->wait_copy(ticket, ipc_soon());
}

Status lend(const Owned& owned, unsigned seed, int socket) {
  auto bytes = ipc_pattern(owned.length_bytes, seed);
  STRAIT_CHECK(move_bytes(owned, bytes, true));
  STRAIT_TRY(const strait_ipc_handle handle, owned.provider->ipc_export({owned.address, owned.length_bytes}));
  const std::span<const std::byte> whole(reinterpret_cast<const std::byte*>(&handle), sizeof handle);
  const Status sent =
      sys::send_packet(socket, whole, handle.fd >= 0 ? std::span(&handle.fd, 1) : std::span<const int>());
  if (handle.fd >= 0) owned.provider->close_fd(handle.fd);
  return sent;
}

}  // namespace

std::vector<unsigned char> ipc_pattern(std::size_t length_bytes, unsigned seed) {
  std::vector<unsigned char> bytes(length_bytes);
  for (std::size_t i = 0; i < length_bytes; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / 251 + seed * 29 + 1);
  return bytes;
}

Plugin plugin_of(const std::string& kind, const std::string& config) {
  return std::move(use_plugin(built_in_provider(kind), config).value());
}

int serve_owner() {
  sys::Lines lines(0, 1);
  const auto name = lines.read(ipc_soon());
  if (!name) return 1;
  const auto socket = sys::unix_connect(*name, ipc_soon());
  if (!socket) return 1;
  Server server;
  std::vector<Owned> all;
  const auto answer = [&](const std::string& line) -> Result<std::string> {
    std::istringstream words(line);
    std::string command, kind;
    std::size_t number = 0;
    unsigned seed = 0;
    words >> command;
    if (command == "fabric") {
      STRAIT_TRY(const int code, server.make_fabric());
      return std::to_string(code);
    }
    if (command == "make") {
      words >> kind >> number >> seed;
      STRAIT_TRY(Owned owned, server.make(kind, number));
      STRAIT_CHECK(lend(owned, seed, socket->get()));
      all.push_back(std::move(owned));
      return std::string("made");
    }
    words >> number >> seed;
    if (number >= all.size()) return fail(Code::invalid, "there is no memory {}", number);
    if (command == "free") return std::string(all[number].free() ? "freed" : "not freed");
    std::vector<unsigned char> bytes(all[number].length_bytes);
    STRAIT_CHECK(move_bytes(all[number], bytes, false));
    return std::string(bytes == ipc_pattern(bytes.size(), seed) ? "1" : "0");
  };
  while (const auto line = lines.read(sys::Deadline::after_ns(600'000'000'000))) {
    const auto said = answer(*line);
    if (!lines.write(said ? *said : said.error().explain())) return 1;
  }
  return 0;
}

Owner::Owner() {
  static std::atomic<int> count{0};
  const std::string name = fmt::format("strait-ipc-{}-{}", ::getpid(), count.fetch_add(1));
  const auto listener = sys::unix_listen(name);
  EXPECT_TRUE(listener) << listener.error().explain();
  auto child = sys::Child::start_self({"--owner"});
  EXPECT_TRUE(child) << child.error().explain();
  if (!listener || !child) return;
  child_ = std::make_unique<sys::Child>(std::move(*child));
  EXPECT_TRUE(child_->write(name));
  for (const sys::Deadline deadline = ipc_soon(); !socket_.valid() && !deadline.passed();) {
    auto accepted = sys::accept_one(listener->get());
    if (accepted) {
      socket_ = std::move(*accepted);
    } else {
      ::usleep(1000);
    }
  }
  EXPECT_TRUE(socket_.valid()) << "the owner did not come";
}

std::string Owner::ask(const std::string& line) {
  EXPECT_TRUE(child_->write(line));
  const auto said = child_->read(ipc_soon());
  return said ? *said : said.error().explain();
}

Lent Owner::make(const std::string& kind, std::uint64_t length_bytes, unsigned seed) {
  strait_ipc_handle handle{};
  EXPECT_EQ(ask(fmt::format("make {} {} {}", kind, length_bytes, seed)), "made");
  auto packet = sys::receive_packet(socket_.get(), sizeof handle);  // it was sent before the answer
  EXPECT_TRUE(packet) << packet.error().explain();
  if (!packet || packet->bytes.size() != sizeof handle) return Lent(handle);
  std::memcpy(&handle, packet->bytes.data(), sizeof handle);
  return Lent(handle, packet->fds.empty() ? sys::Fd() : std::move(packet->fds[0]));
}

}  // namespace strait::buffer
