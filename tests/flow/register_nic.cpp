// SPDX-License-Identifier: Apache-2.0
// A NIC whose doorbells are registers, as hardware has them, made of the software one: what is posted is unknown to it
// until its own thread finds a store in the queue pair's register. Everything else it passes on.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "strait/plugin.h"

namespace {

constexpr std::size_t kRegisters = 256;   // 16 bytes apart on one page
constexpr std::int32_t kUnsupported = 2;  // STRAIT_UNSUPPORTED of strait/c.h

const strait_nic_ops& soft() {
  static const strait_nic_ops* const ops = [] {
    void* const library = ::dlopen(STRAIT_SOFT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const auto entry =
        library == nullptr ? nullptr : reinterpret_cast<strait_nic_entry>(::dlsym(library, STRAIT_NIC_ENTRY));
    return entry == nullptr ? nullptr : entry();
  }();
  if (ops == nullptr) __builtin_trap();
  return *ops;
}

// What the poster writes, and what the software NIC is shown of it.
struct Queue {
  std::size_t place = 0;
  const std::uint32_t* record = nullptr;
  std::unique_ptr<std::array<std::uint32_t, 2>> shown;
  std::uint64_t rung = 0;
};

class RegisterNic {
 public:
  explicit RegisterNic(strait_nic* soft_nic) : inner(soft_nic), thread_([this] { run(); }) {}
  ~RegisterNic() {
    stop_ = true;
    thread_.join();
    soft().close(inner);
    ::munmap(page_, 4096);
  }
  RegisterNic(const RegisterNic&) = delete;
  RegisterNic& operator=(const RegisterNic&) = delete;

  std::int32_t create_qp(const strait_nic_qp_request& request, strait_nic_qp* out, strait_plugin_error* error) {
    Queue queue;
    queue.record = static_cast<const std::uint32_t*>(request.record);
    queue.shown = std::make_unique<std::array<std::uint32_t, 2>>();
    std::memcpy(queue.shown->data(), queue.record, sizeof *queue.shown);
    strait_nic_qp_request changed = request;
    changed.record = queue.shown->data();
    const std::lock_guard lock(mutex_);
    while (taken_[queue.place]) queue.place = (queue.place + 1) % kRegisters;
    if (const std::int32_t status = soft().create_qp(inner, &changed, out, error)) return status;
    taken_[queue.place] = true;
    *at(queue.place) = 0;
    out->doorbell = at(queue.place);
    queues_[out->qpn] = std::move(queue);
    return 0;
  }
  std::int32_t destroy_qp(std::uint32_t qpn, strait_plugin_error* error) {
    const std::int32_t status = soft().destroy_qp(inner, qpn, error);
    const std::lock_guard lock(mutex_);
    const auto found = queues_.find(qpn);
    if (status != 0 || found == queues_.end()) return status;
    taken_[found->second.place] = false;
    queues_.erase(found);
    return 0;
  }

  strait_nic* const inner;

 private:
  std::uint64_t* at(std::size_t place) const { return page_ + 2 * place; }
  void run() {
    while (!stop_) {
      bool busy = false;
      {
        const std::lock_guard lock(mutex_);
        for (auto& [qpn, queue] : queues_) busy = look(queue) || busy;
      }
      busy = soft().drive(inner, 0) > 0 || busy;
      if (!busy) ::usleep(20);
    }
  }
  // Receives have no doorbell: their record is read when a message comes.
  bool look(Queue& queue) const {
    auto& shown = *queue.shown;
    __atomic_store_n(shown.data(), __atomic_load_n(queue.record, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
    const std::uint64_t bell = __atomic_load_n(at(queue.place), __ATOMIC_ACQUIRE);
    if (bell == queue.rung) return false;
    queue.rung = bell;
    __atomic_store_n(shown.data() + 1, __atomic_load_n(queue.record + 1, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
    return true;
  }

  std::uint64_t* const page_ =
      static_cast<std::uint64_t*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::mutex mutex_;
  std::map<std::uint32_t, Queue> queues_;
  std::array<bool, kRegisters> taken_{};
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: it uses the rest
};

RegisterNic& self(strait_nic* nic) {
  return *reinterpret_cast<RegisterNic*>(nic);
}

template <auto Call>
struct Passed;
template <class Answer, class... Parameters, Answer (*strait_nic_ops::*Call)(strait_nic*, Parameters...)>
struct Passed<Call> {
  static Answer on(strait_nic* nic, Parameters... parameters) { return (soft().*Call)(self(nic).inner, parameters...); }
};

std::int32_t nic_open(const char*, strait_nic** out, strait_plugin_error* error) {
  strait_nic* inner = nullptr;
  if (const std::int32_t status = soft().open("name=register0", &inner, error)) return status;
  *out = reinterpret_cast<strait_nic*>(new RegisterNic(inner));
  return 0;
}
void nic_close(strait_nic* nic) {
  delete &self(nic);
}
std::int32_t nic_info(strait_nic* nic, strait_nic_info* out) {
  const std::int32_t status = soft().info(self(nic).inner, out);
  out->software = 0;
  out->doorbell_register = 1;
  return status;
}
// As a kernel whose exporter finds no path to this NIC.
std::int32_t nic_register_memory(strait_nic* nic, const strait_nic_mr_request* request, strait_nic_mr* out,
                                 strait_plugin_error* error) {
  if (request->fd < 0 || ::getenv("STRAIT_TEST_NO_PATH") == nullptr)
    return soft().register_memory(self(nic).inner, request, out, error);
  if (error == nullptr) return kUnsupported;
  error->code = kUnsupported;
  error->sys_errno = 524;
  std::snprintf(error->text, sizeof error->text,
                "register0 did not register the dma-buf: refused (errno 524)\n  Use another NIC.");
  return kUnsupported;
}
std::int32_t nic_create_qp(strait_nic* nic, const strait_nic_qp_request* request, strait_nic_qp* out,
                           strait_plugin_error* error) {
  return self(nic).create_qp(*request, out, error);
}
std::int32_t nic_destroy_qp(strait_nic* nic, std::uint32_t qpn, strait_plugin_error* error) {
  return self(nic).destroy_qp(qpn, error);
}

constexpr strait_nic_ops made() {
  using Ops = strait_nic_ops;
  Ops ops{};
  ops.abi_version = STRAIT_PLUGIN_ABI;
  ops.struct_size = sizeof ops;
  ops.kind = "register";
  ops.open = nic_open;
  ops.close = nic_close;
  ops.info = nic_info;
  ops.address = Passed<&Ops::address>::on;
  ops.alloc_pd = Passed<&Ops::alloc_pd>::on;
  ops.free_pd = Passed<&Ops::free_pd>::on;
  ops.register_memory = nic_register_memory;
  ops.deregister_memory = Passed<&Ops::deregister_memory>::on;
  ops.create_cq = Passed<&Ops::create_cq>::on;
  ops.destroy_cq = Passed<&Ops::destroy_cq>::on;
  ops.create_qp = nic_create_qp;
  ops.connect_qp = Passed<&Ops::connect_qp>::on;
  ops.fail_qp = Passed<&Ops::fail_qp>::on;
  ops.destroy_qp = nic_destroy_qp;
  ops.describe_qp = Passed<&Ops::describe_qp>::on;
  ops.drive = Passed<&Ops::drive>::on;
  ops.arm = Passed<&Ops::arm>::on;
  ops.event_fd = Passed<&Ops::event_fd>::on;
  ops.counters = Passed<&Ops::counters>::on;
  ops.describe_mr = Passed<&Ops::describe_mr>::on;
  return ops;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const strait_nic_ops* strait_nic_plugin(void);
extern "C" const strait_nic_ops* strait_nic_plugin(void) {
  static constexpr strait_nic_ops kOps = made();
  return &kOps;
}
