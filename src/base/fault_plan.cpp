// SPDX-License-Identifier: Apache-2.0
#include "base/fault_plan.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/options.hpp"

namespace strait {
namespace {

constexpr std::uint64_t kMessage = 1, kReceive = 2, kWork = 3, kDamage = 4, kOvertake = 5;

// A good mixer of 64 bits; consecutive inputs give unrelated outputs.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

double fraction(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Error wrong(std::string_view part, std::string_view why) {
  return with_remedy(fail(Code::invalid, "\"{}\" is no fault: {}", part, why),
                     "write for example drop=2%,dup=1%,reorder=1%,delay=1%:500us,corrupt=0.1%,rnr=5%,error=1%:0x13,"
                     "down=1s..2s,stall=1s..2s,overrun=1000,gone=50,seed=7");
}

// "2%", "0.5%", "0.02"
Result<double> parse_rate(std::string_view part, std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return wrong(part, "a rate is a number or a percentage");
  if (percent) value /= 100;
  if (value < 0 || value > 1) return wrong(part, "a rate lies between 0 and 100 %");
  return value;
}

Result<std::uint64_t> parse_count(std::string_view part, std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (code != std::errc() || end != text.data() + text.size()) return wrong(part, "a whole number is missing");
  return value;
}

Result<std::int64_t> parse_time(std::string_view part, std::string_view text) {
  auto value = parse_duration_ns(text);
  if (!value || *value < 0) return wrong(part, "a time is a number with ns, us, ms or s");
  return *value;
}

Status parse_window(std::string_view part, std::string_view text, std::int64_t& from, std::int64_t& until) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return wrong(part, "a time span is FROM..UNTIL");
  STRAIT_TRY(from, parse_time(part, text.substr(0, dots)));
  STRAIT_TRY(until, parse_time(part, text.substr(dots + 2)));
  if (until <= from) return wrong(part, "the span ends before it begins");
  return {};
}

Status parse_part(std::string_view part, FaultPlan& plan) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) return wrong(part, "it has no value");
  const std::string_view name = part.substr(0, equals);
  std::string_view value = part.substr(equals + 1);
  std::string_view detail;
  if (name == "delay" || name == "error") {
    if (const std::size_t colon = value.find(':'); colon != std::string_view::npos) {
      detail = value.substr(colon + 1);
      value = value.substr(0, colon);
    }
  }
  double* const rate = name == "drop"      ? &plan.drop
                       : name == "dup"     ? &plan.duplicate
                       : name == "reorder" ? &plan.reorder
                       : name == "delay"   ? &plan.delay
                       : name == "corrupt" ? &plan.corrupt
                       : name == "rnr"     ? &plan.rnr
                       : name == "error"   ? &plan.error
                                           : nullptr;
  if (rate != nullptr) {
    STRAIT_TRY(*rate, parse_rate(part, value));
    if (detail.empty()) return {};
    if (name == "delay") {
      STRAIT_TRY(plan.delay_ns, parse_time(part, detail));
      return {};
    }
    STRAIT_TRY(const std::uint64_t syndrome, parse_count(part, detail));
    if (syndrome == 0 || syndrome > 0xff) return wrong(part, "a syndrome is a byte that is not 0");
    plan.error_syndrome = static_cast<std::uint8_t>(syndrome);
    return {};
  }
  if (name == "down") return parse_window(part, value, plan.down_from_ns, plan.down_until_ns);
  if (name == "stall") return parse_window(part, value, plan.stall_from_ns, plan.stall_until_ns);
  if (name == "seed") {
    STRAIT_TRY(plan.seed, parse_count(part, value));
    return {};
  }
  if (name == "overrun") {
    STRAIT_TRY(plan.overrun, parse_count(part, value));
    return {};
  }
  if (name == "gone") {
    STRAIT_TRY(plan.gone, parse_count(part, value));
    return {};
  }
  return wrong(part, "there is none of that name");
}

std::string percent(const char* name, double rate) {
  return rate == 0 ? std::string() : fmt::format("{}={:.6g}%,", name, rate * 100);
}

}  // namespace

const char* fault_name(Fault fault) {
  switch (fault) {
    case Fault::none: return "none";
    case Fault::drop: return "drop";
    case Fault::duplicate: return "dup";
    case Fault::reorder: return "reorder";
    case Fault::delay: return "delay";
    case Fault::corrupt: return "corrupt";
  }
  return "unknown";
}

Result<FaultPlan> FaultPlan::parse(std::string_view text) {
  FaultPlan plan;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma != 0) STRAIT_CHECK(parse_part(text.substr(0, comma), plan));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (plan.drop + plan.duplicate + plan.reorder + plan.delay + plan.corrupt > 1)
    return fail(Code::invalid, "the rates of drop, dup, reorder, delay and corrupt add up to more than 100 %");
  return plan;
}

std::string FaultPlan::text() const {
  std::string out = percent("drop", drop) + percent("dup", duplicate) + percent("reorder", reorder);
  if (delay != 0) out += fmt::format("delay={:.6g}%:{}ns,", delay * 100, delay_ns);
  out += percent("corrupt", corrupt) + percent("rnr", rnr);
  if (error != 0) out += fmt::format("error={:.6g}%:{:#x},", error * 100, error_syndrome);
  if (down_until_ns != 0) out += fmt::format("down={}ns..{}ns,", down_from_ns, down_until_ns);
  if (stall_until_ns != 0) out += fmt::format("stall={}ns..{}ns,", stall_from_ns, stall_until_ns);
  if (overrun != 0) out += fmt::format("overrun={},", overrun);
  if (gone != 0) out += fmt::format("gone={},", gone);
  return out + fmt::format("seed={}", seed);
}

std::uint64_t FaultPlan::dice(std::uint64_t flow, std::uint64_t n, std::uint64_t purpose) const {
  return mix(mix(mix(seed ^ purpose << 56) ^ flow) ^ n);
}

Fault FaultPlan::on_message(std::uint64_t flow, std::uint64_t n) const {
  double at = fraction(dice(flow, n, kMessage));
  if ((at -= drop) < 0) return Fault::drop;
  if ((at -= duplicate) < 0) return Fault::duplicate;
  if ((at -= reorder) < 0) return Fault::reorder;
  if ((at -= delay) < 0) return Fault::delay;
  if ((at -= corrupt) < 0) return Fault::corrupt;
  return Fault::none;
}

std::uint64_t FaultPlan::damaged_bit(std::uint64_t flow, std::uint64_t n, std::uint64_t bits) const {
  return dice(flow, n, kDamage) % bits;
}

std::uint64_t FaultPlan::overtaken_by(std::uint64_t flow, std::uint64_t n) const {
  return 1 + dice(flow, n, kOvertake) % 3;
}

bool FaultPlan::on_receive(std::uint64_t flow, std::uint64_t n) const {
  return rnr > 0 && fraction(dice(flow, n, kReceive)) < rnr;
}

bool FaultPlan::on_work(std::uint64_t flow, std::uint64_t n) const {
  return error > 0 && fraction(dice(flow, n, kWork)) < error;
}

}  // namespace strait
