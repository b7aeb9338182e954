// SPDX-License-Identifier: Apache-2.0
#include "node/placement.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "sys/mapping.hpp"

namespace strait::node {

Placement::Placement(Placement&& other) noexcept {
  *this = std::move(other);
}

Placement& Placement::operator=(Placement&& other) noexcept {
  calls_ = other.calls_;
  nodes_ = std::move(other.nodes_);
  cpus_ = std::move(other.cpus_);
  node_ = other.node_;
  near_ = std::move(other.near_);
  off_because_ = std::move(other.off_because_);
  return *this;
}

Result<Placement> Placement::make(const std::string& option, const std::string& sysfs, const std::string& nic,
                                  int nic_node, const sys::NumaCalls& calls) {
  Placement made;
  made.calls_ = &calls;
  made.nodes_ = sys::numa_nodes(sysfs);
  made.off_because_.clear();
  const auto there = [&](int node) { return std::ranges::find(made.nodes_, node) != made.nodes_.end(); };
  if (option == "off") {
    made.off_because_ = "option numa=off";
  } else if (option != "auto") {
    const char* const end = option.data() + option.size();
    const auto [stop, wrong] = std::from_chars(option.data(), end, made.node_);
    if (wrong != std::errc() || stop != end || made.node_ < 0)
      return fail(Code::invalid, "option numa: \"{}\" is neither auto, off nor the number of a node", option);
    if (!there(made.node_))
      return fail(Code::invalid, "option numa: this machine has no node {} with memory: it has {}", made.node_,
                  made.nodes_.empty() ? "none that it shows" : fmt::format("{}", fmt::join(made.nodes_, ", ")));
  } else if (there(nic_node)) {
    made.node_ = nic_node;
    made.near_ = nic;
  }
  if (made.off_because_.empty() && made.nodes_.size() < 2) {
    made.off_because_ = made.nodes_.empty() ? "the machine shows no NUMA nodes" : "the machine has one NUMA node";
  }
  if (made.node_ >= 0) made.cpus_ = sys::numa_cpus(sysfs, made.node_);
  return made;
}

void Placement::note(const Status& status) {
  if (status) {
    placed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const Locked lock(mutex_);
  if (refused_.empty()) refused_ = status.error().text;
}

void Placement::place_memory(void* address, std::size_t length_bytes) {
  if (!off_because_.empty()) return;
  const int node = node_ >= 0 ? node_ : calls_->current_node();
  if (node < 0) return note(fail(Code::unsupported, "the kernel does not say on which node this CPU is"));
  note(sys::prefer_node(address, sys::round_up(length_bytes, sys::page_bytes()), node, *calls_));
}

void Placement::place_thread() {
  if (!off_because_.empty() || node_ < 0) return;
  note(sys::run_on_cpus(cpus_, *calls_));
}

std::string Placement::text() const {
  if (!off_because_.empty()) return "nothing is placed: " + off_because_;
  if (node_ < 0) return "memory near the CPU that asks for it; the NIC does not say where it is";
  return fmt::format("memory, rings and thread on NUMA node {}{}", node_,
                     near_.empty() ? std::string(", by option numa") : ", near " + near_);
}

std::string Placement::refused() const {
  const Locked lock(mutex_);
  return refused_;
}

}  // namespace strait::node
