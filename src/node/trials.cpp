// SPDX-License-Identifier: Apache-2.0
#include "node/trials.hpp"

#include <string_view>
#include <utility>

#include "export/staging.hpp"
#include "sys/clock.hpp"

namespace strait::node {
namespace {

using exports::Way;

constexpr std::int64_t kCopyNs = 5'000'000'000;
constexpr Way kWays[] = {Way::host_pages, Way::dmabuf, Way::peer_memory, Way::p2p_pages, Way::staged};

rail::MemoryRequest request_for(const exports::Exported& exported) {
  rail::MemoryRequest request;
  request.address = exported.range.address;
  request.length_bytes = exported.range.length_bytes;
  request.access = STRAIT_NIC_LOCAL_WRITE;
  if (exported.fd.valid()) {
    request.fd = exported.fd.fd();
    request.fd_offset = exported.fd.offset();
    request.port = exported.port;
  }
  if (exported.pages.valid()) {
    request.pages_fd = exported.pages.fd();
    request.pages_offset = exported.pages.offset();
  }
  if (exported.way == Way::peer_memory || exported.way == Way::p2p_pages) request.access |= STRAIT_NIC_DEVICE_ADDRESS;
  return request;
}

// What the memory's own side must be able to do.
std::uint32_t capability_for(Way way) {
  switch (way) {
    case Way::dmabuf: return STRAIT_CAN_EXPORT_DMABUF;
    case Way::peer_memory:
    case Way::p2p_pages: return STRAIT_CAN_PEER_MEMORY;
    case Way::staged: return STRAIT_CAN_COPY;
    case Way::host_pages: break;
  }
  return 0;
}

std::uint32_t nic_service_for(Way way) {
  switch (way) {
    case Way::dmabuf: return STRAIT_NIC_SERVES_DMABUF;
    case Way::peer_memory: return STRAIT_NIC_SERVES_PEER_MEMORY;
    case Way::p2p_pages: return STRAIT_NIC_SERVES_P2P_PAGES;
    case Way::host_pages:
    case Way::staged: break;
  }
  return 0;
}

std::string need(std::string_view what, std::string_view text) {
  return fmt::format("; it needs {}: {}", what, text);
}

}  // namespace

const char* trial_state_name(TrialState state) {
  switch (state) {
    case TrialState::proved: return "proved";
    case TrialState::missing: return "missing";
    case TrialState::unneeded: return "unneeded";
    case TrialState::unknown: return "unknown";
  }
  return "unknown";
}

Trials::Trials(buffer::Providers& providers, const rail::Nic& nic, exports::NicAbilities abilities)
    : providers_(providers), nic_(nic), abilities_(std::move(abilities)) {}

// The requirements that are not met, of the side that says no: the memory's if it cannot, else the NIC's.
std::string Trials::needs(const buffer::Claim& claim, Way way, bool of_both) const {
  std::string out;
  const std::uint32_t wanted = capability_for(way);
  // Pages of nvidia_p2p are NVIDIA's alone, whatever the NIC could do with them.
  const bool foreign = way == Way::p2p_pages && !exports::has_p2p_pages(*claim.device);
  const bool able = (claim.capabilities & wanted) == wanted && !foreign;
  if (!able || of_both) {
    for (const buffer::Requirement& each : claim.provider->requirements()) {
      const bool concerns = each.serves == 0 || (each.serves & wanted) != 0;
      if (concerns && each.state == STRAIT_REQUIREMENT_MISSING) out += need(each.what, each.text);
    }
  }
  if (!able) return out;
  const std::uint32_t service = nic_service_for(way);
  for (const strait_requirement& each : nic_.requirements()) {
    const bool concerns = each.serves == 0 || (each.serves & service) != 0;
    if (concerns && each.state == STRAIT_REQUIREMENT_MISSING) out += need(each.what, each.text);
  }
  return out;
}

// Without what every such error begins with: an address that is different every time.
std::string Trials::refusal(const Error& error, const rail::MemoryRequest& request) const {
  const std::string doing = nic_.registering(request) + ": ";
  return error.text.starts_with(doing) ? error.text.substr(doing.size()) : error.text;
}

Trial Trials::host_pages(const buffer::Claim& claim) const {
  const std::int64_t before_ns = sys::now_ns();
  auto reached = exports::reach_by(claim, claim.asked, abilities_, Way::host_pages);
  if (!claim.cpu_accessible()) return {Way::host_pages, TrialState::missing, "it is not host memory", 0};
  if (!reached) return {Way::host_pages, TrialState::missing, reached.error().text, 0};
  const rail::MemoryRequest request = request_for(*reached);
  auto key = nic_.register_memory(request);
  if (!key) return {Way::host_pages, TrialState::missing, refusal(key.error(), request), 0};
  key->reset();
  return {Way::host_pages, TrialState::proved, "registered by its address", sys::now_ns() - before_ns};
}

// `mapped` is the answer for host pages: a NIC that takes no dma-buf maps the file behind one instead.
Trial Trials::by(const buffer::Claim& claim, Way way, Trial& mapped) const {
  const std::int64_t before_ns = sys::now_ns();
  auto reached = exports::reach_by(claim, claim.asked, abilities_, way);
  if (!reached) {
    const bool refused = reached.error().code == Code::unsupported;
    return {way, TrialState::missing, reached.error().text + (refused ? needs(claim, way) : std::string()), 0};
  }
  const rail::MemoryRequest request = request_for(*reached);
  auto key = nic_.register_memory(request);
  if (!key) return {way, TrialState::missing, refusal(key.error(), request), 0};
  const std::uint32_t made_by = nic_.registered_by(key->lkey());
  std::string how = nic_.describe_memory(key->lkey());
  key->reset();
  const std::int64_t ns = sys::now_ns() - before_ns;
  if (made_by == STRAIT_NIC_BY_MAPPING) {
    mapped = {Way::host_pages, TrialState::proved, how, ns};
    return {way, TrialState::missing, how + needs(claim, way, true), 0};
  }
  if (way == Way::peer_memory && made_by == STRAIT_NIC_BY_P2P_PAGES)
    return {way, TrialState::missing, "nvidia_p2p pages answered for the address, and no peer-memory client", 0};
  if (way == Way::p2p_pages && made_by == STRAIT_NIC_BY_PEER_MEMORY)
    return {way, TrialState::missing, fmt::format("{} answers for the address before they are asked", how), 0};
  if (made_by == STRAIT_NIC_BY_DEVICE_ADDRESS) {
    how = "the kernel answered for the address, by a peer-memory client or p2p pages: it does not say which";
    if (way == Way::p2p_pages) return {way, TrialState::unknown, how, ns};
  }
  if (how.empty()) how = "registered by its descriptor";
  return {way, TrialState::proved, how, ns};
}

Trial Trials::staged(const buffer::Claim& claim) const {
  const auto missing = [](std::string why) { return Trial{Way::staged, TrialState::missing, std::move(why), 0}; };
  const std::int64_t before_ns = sys::now_ns();
  if (auto allowed = exports::reach_by(claim, claim.asked, abilities_, Way::staged); !allowed)
    return missing(allowed.error().text + needs(claim, Way::staged));
  auto bounce = exports::Staging::make(providers_, claim, claim.asked);
  if (!bounce) return missing(bounce.error().text);
  rail::MemoryRequest request;
  request.address = reinterpret_cast<std::uint64_t>(bounce->data());
  request.length_bytes = bounce->size();
  request.access = STRAIT_NIC_LOCAL_WRITE;
  auto key = nic_.register_memory(request);
  if (!key) return missing(refusal(key.error(), request));
  const sys::Deadline deadline = sys::Deadline::after_ns(kCopyNs);
  if (const Status in = bounce->fill(0, bounce->size(), deadline); !in) return missing(in.error().text);
  if (const Status out = bounce->drain(0, bounce->size(), deadline); !out) return missing(out.error().text);
  key->reset();
  return {Way::staged, TrialState::proved, "copied out and in, its host buffer registered; only with allow_staging=1",
          sys::now_ns() - before_ns};
}

std::vector<Trial> Trials::of(const buffer::Claim& claim) const {
  Trial mapped = host_pages(claim);
  std::vector<Trial> all;
  if (claim.cpu_accessible()) {
    for (const Way way : kWays) all.push_back({way, TrialState::unneeded, "host memory needs no other way", 0});
    all.front() = std::move(mapped);
    return all;
  }
  all.emplace_back();
  for (const Way way : {Way::dmabuf, Way::peer_memory, Way::p2p_pages}) all.push_back(by(claim, way, mapped));
  all.push_back(staged(claim));
  all.front() = std::move(mapped);
  return all;
}

std::vector<Trial> Trials::none(const std::string& because) {
  std::vector<Trial> all;
  for (const Way way : kWays) all.push_back({way, TrialState::missing, because, 0});
  return all;
}

}  // namespace strait::node
