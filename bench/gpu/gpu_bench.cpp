// SPDX-License-Identifier: Apache-2.0
// The GPU benchmark: what a kernel pays to post, beside the same stores without bookkeeping and beside RDMaxcel, and
// what becomes of it at the other end. A table on the terminal, everything in a JSON file. bench/gpu/run starts it.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>

#include "across.hpp"
#include "cxi.hpp"
#include "launch.hpp"
#include "peer.hpp"
#include "post.hpp"
#include "resources.hpp"
#include "rows.hpp"

namespace bench::gpu {
namespace {

struct Asked {
  unsigned launches = 21;
  std::string only;  // row ids begin with it
  std::string json_file;
  std::string predictions_file;
  std::string ptxas_file;
  std::string near = "gpu";  // host: no GPU is needed, and only rows between two processes run, for the test's sake
  bool strict = false;
};

// What was seen before this benchmark existed; printed, and marked, where the peer is not built.
constexpr double kPeerPostNs = 9700;
constexpr double kPeerLaunchNs = 21600;
constexpr const char* kNotOfThisRun =
    "the figure of RDMaxcel is one noted earlier, not of this run: its sources were not given";

std::vector<double> scaled(std::vector<double> values, double by) {
  for (double& v : values) v *= by;
  return values;
}
std::vector<double> rates(std::vector<double> ns_each) {
  for (double& v : ns_each) v = 1000 / v;
  return ns_each;
}

Json time_row(const Row& row, const Launches& l, const Goal* goal) {
  Json out = compared(row, "bare", figure(scaled(l.bare, 1e-3), "us"), figure(scaled(l.ours, 1e-3), "us"),
                      ratios(l.ours, l.bare), goal);
  out["ours_cycles"] = spread(l.ours_cycles);
  return out;
}
// Entries per second, so more is better.
Json rate_row(const Row& row, const Launches& l, const Goal* goal) {
  Json out =
      compared(row, "bare", figure(rates(l.bare), "M/s"), figure(rates(l.ours), "M/s"), ratios(l.bare, l.ours), goal);
  out["ours_cycles"] = spread(l.ours_cycles);
  if (!l.one_release.empty()) {
    out["one_release"] = figure(rates(l.one_release), "M/s");
    out["note"] = fmt::format("bare with a release before the record only: {:.1f} M/s", median(rates(l.one_release)));
  }
  return out;
}
Json shared_row(const Row& row, const Launches& l) {
  Json out = rate_row(row, l, nullptr);
  out["note"] =
      "bare is no queue: all ring for themselves, in any order. Ours: places are taken at one word of the L2, and one "
      "poster at a time shows the NIC what all have finished";
  return out;
}
Json peer_row(const Row& row, const Launches& l, const std::vector<double>& peer, const Goal* goal) {
  if (!peer.empty())
    return compared(row, "RDMaxcel", figure(scaled(peer, 1e-3), "us"), figure(scaled(l.ours, 1e-3), "us"),
                    ratios(peer, l.ours), goal);
  const std::vector<double> seen(l.ours.size(), kPeerPostNs);
  Json out = compared(row, "RDMaxcel", figure(scaled(seen, 1e-3), "us"), figure(scaled(l.ours, 1e-3), "us"),
                      ratios(seen, l.ours), nullptr);
  out["note"] = kNotOfThisRun;
  return out;
}
#if defined(STRAIT_BENCH_LAUNCH)
Json launch_row(const Row& row, Launches l, const Goal* goal) {
  const bool measured = !l.peer.empty();
  if (!measured) l.peer.assign(l.ours.size(), kPeerLaunchNs);
  Json out = compared(row, "RDMaxcel", figure(scaled(l.peer, 1e-3), "us"), figure(scaled(l.ours, 1e-3), "us"),
                      ratios(l.ours, l.peer), measured ? goal : nullptr);
  if (!measured) out["note"] = kNotOfThisRun;
  return out;
}
#endif

class Program {
 public:
  explicit Program(Asked asked) : asked_(std::move(asked)) {}

  int run() {
    const bool gpu = asked_.near == "gpu";
    if (gpu) warm_up();
    results_ = {{"gpu", gpu ? describe_gpu() : "no GPU: CPU threads play it"}, {"rows", Json::array()}};
    if (gpu) {
      posting();
      slingshot();
      launching();
    }
    across();
    resources();
    const Json predictions = read_predictions();
    results_["predictions"] = predictions;
    std::cout << table_text(results_, predictions);
    if (!asked_.json_file.empty()) {
      std::ofstream out(asked_.json_file);
      out << results_.dump(1) << "\n";
      out.flush();
      if (!out) throw std::runtime_error(asked_.json_file + " cannot be written");
    }
    if (failed_) return 1;
    return asked_.strict && !all_reached(results_) ? 1 : 0;
  }

 private:
  // A row that cannot be measured is a row of the table that says so, and the program's end says so too.
  void add(const Row& row, const std::function<Json(const Row&)>& measure) {
    if (!asked_.only.empty() && row.id.rfind(asked_.only, 0) != 0) return;
    std::cerr << row.what << " ...\n";
    try {
      results_["rows"].push_back(measure(row));
    } catch (const std::exception& e) {
      results_["rows"].push_back(failed(row, e.what()));
      failed_ = true;
    }
  }

  void posting() {
    const unsigned n = asked_.launches;
    const Goal each{1.15, Better::less}, every8{1.2, Better::less}, every64{1.5, Better::less}, rate{0.8, Better::more},
        peer{6.5, Better::more};
    Launches by_thread;
    add({"thread_each", "one thread, 8 B write + doorbell each"}, [&](const Row& row) {
      by_thread = post_by_thread(1, n);
      return time_row(row, by_thread, &each);
    });
    if (!by_thread.ours.empty()) {
      add({"thread_each_rdmaxcel", "  beside its device functions"},
          [&](const Row& row) { return peer_row(row, by_thread, by_thread.peer, &peer); });
      if (!by_thread.peer_fenced.empty())
        add({"thread_each_rdmaxcel_fenced", "  the same with the fence it lacks"},
            [&](const Row& row) { return peer_row(row, by_thread, by_thread.peer_fenced, nullptr); });
    }
    add({"thread_8", "one thread, a doorbell every 8"},
        [&](const Row& row) { return time_row(row, post_by_thread(8, n), &every8); });
    add({"thread_64", "one thread, a doorbell every 64"},
        [&](const Row& row) { return time_row(row, post_by_thread(64, n), &every64); });
    add({"warp_8", "one warp, one queue, 8 entries + doorbell"},
        [&](const Row& row) { return rate_row(row, post_by_warp(8, n), &rate); });
    add({"warp_32", "one warp, one queue, 32 entries + doorbell"},
        [&](const Row& row) { return rate_row(row, post_by_warp(32, n), &rate); });
    add({"warps_132", "132 warps, own queues, one ring fill each"},
        [&](const Row& row) { return rate_row(row, post_by_warps(132, n), &rate); });
    add({"shared_warps", "132 warps on one queue"},
        [&](const Row& row) { return shared_row(row, share_by_warps(132, n)); });
    add({"shared_threads", "256 threads on one queue, each for itself"},
        [&](const Row& row) { return shared_row(row, share_by_threads(8, 32, n)); });
  }

  void slingshot() {
    const unsigned n = asked_.launches;
    const Goal each{1.3, Better::less}, rate{0.8, Better::more}, trip{1.5, Better::less};
    add({"cxi_thread", "CXI: one thread, 64 B put + ring each"},
        [&](const Row& row) { return time_row(row, cxi_by_thread(n), &each); });
    add({"cxi_warps_132", "CXI: 132 warps, own queues, one ring fill"},
        [&](const Row& row) { return rate_row(row, cxi_by_warps(132, n), &rate); });
    add({"cxi_shared_warps", "CXI: 132 warps on one queue"},
        [&](const Row& row) { return shared_row(row, cxi_shared_warps(132, n)); });
    const auto flagged = [](const Row& row, const Launches& l, const Goal* goal) {
      return compared(row, "flag", figure(scaled(l.bare, 1e-3), "us"), figure(scaled(l.ours, 1e-3), "us"),
                      ratios(l.ours, l.bare), goal);
    };
    add({"cxi_wait", "CXI: armed event to write-back, host memory"},
        [&](const Row& row) { return flagged(row, cxi_wait(false, n), &trip); });
    add({"cxi_wait_gpu", "CXI: the same, written back to GPU memory"},
        [&](const Row& row) { return flagged(row, cxi_wait(true, n), nullptr); });
#if defined(STRAIT_BENCH_ACROSS)
    add({"cxi_cassini", "CXI: 8 B put until counted, software Cassini"},
        [&](const Row& row) { return flagged(row, cxi_on_cassini(n), nullptr); });
#endif
  }

  void launching() {
#if defined(STRAIT_BENCH_LAUNCH)
    const unsigned n = asked_.launches;
    const Goal half{0.5, Better::less};
    add({"launch", "launch_send_wqe + launch_db_ring"},
        [&](const Row& row) { return launch_row(row, launch_pairs(false, n), &half); });
    add({"launch_waited", "  the same, each pair waited for"}, [&](const Row& row) {
      Json out = launch_row(row, launch_pairs(true, n), nullptr);
      out["note"] = fmt::format(
          "ours is waited for after every pair. RDMaxcel's is not: it is the loop of the row above, in which "
          "launch_send_wqe itself waits for the device, between the two kernels of a pair{}",
          out.contains("note") ? "; " + out["note"].get<std::string>() : "");
      return out;
    });
#else
    left_out("launch_* helpers: this tree has no strait/rdmaxcel.h");
#endif
  }
  void left_out(const char* what) {
    if (asked_.only.empty()) results_["left_out"].push_back(what);
  }

#if defined(STRAIT_BENCH_ACROSS)
  Json beside_row(const Row& row, const Beside& b, const std::string& unit, const Goal* goal) {
    Json out = compared(row, b.other_name, b.other.empty() ? Json() : figure(b.other, unit), figure(b.ours, unit),
                        ratios(b.ours, b.other), goal);
    out["note"] = b.note;
    return out;
  }

  // The other process is started with the first of these rows and serves them all.
  void across() {
    const unsigned n = std::min(asked_.launches, 11u);
    const Goal trip{2, Better::less}, leg{0.8, Better::more};
    std::unique_ptr<Across> both;
    const auto with = [&]() -> Across& {
      if (!both) both = std::make_unique<Across>(asked_.near);
      return *both;
    };
    // After a failure the two may be out of step: the next row begins anew.
    const auto guarded = [&](auto&& measure) {
      try {
        return measure(with());
      } catch (...) {
        both.reset();
        throw;
      }
    };
    add({"sustained_132", "132 warps, own queues, the NIC executing"}, [&](const Row& row) {
      return guarded([&](Across& a) { return beside_row(row, a.sustained(132, n), "M/s", nullptr); });
    });
    add({"round_trip_host", "8 B put + signal, round trip, host memory"}, [&](const Row& row) {
      return guarded([&](Across& a) { return beside_row(row, a.round_trip(false, n), "us", &trip); });
    });
    add({"round_trip_gpu", "8 B put + signal, round trip, payload in GPU memory"}, [&](const Row& row) {
      Json out = guarded([&](Across& a) { return beside_row(row, a.round_trip(true, n), "us", nullptr); });
      out["note"] =
          "the payload is copied by the vendor's calls at either end; the signal is a word of host memory, as every "
          "signal of a device queue: there the NIC raises it by one instruction";
      return out;
    });
    add({"put_1MiB", "1 MiB puts, GPU to GPU, 16 in flight"},
        [&](const Row& row) { return guarded([&](Across& a) { return beside_row(row, a.stream(n), "GB/s", &leg); }); });
  }
#else
  void across() { left_out("rows between two processes: this tree has no strait/device_queue.hpp"); }
#endif

  void resources() {
    if (asked_.ptxas_file.empty()) return;
    add({"resources", "registers, stack, spills"}, [&](const Row& row) {
      std::ifstream in(asked_.ptxas_file);
      std::stringstream text;
      text << in.rdbuf();
      Json out = {{"id", row.id}, {"what", row.what}, {"kernels", Json::array()}, {"reached", true}};
      std::string note;
      for (const Resources& r : read_ptxas(text.str())) {
        out["kernels"].push_back({{"kernel", r.kernel},
                                  {"registers", r.registers},
                                  {"stack_bytes", r.stack_bytes},
                                  {"spill_store_bytes", r.spill_store_bytes},
                                  {"spill_load_bytes", r.spill_load_bytes}});
        if (r.stack_bytes + r.spill_store_bytes + r.spill_load_bytes != 0) out["reached"] = false;
        note += fmt::format("{}{} {} registers, {} B stack, {} B spilled", note.empty() ? "" : "; ", r.kernel,
                            r.registers, r.stack_bytes, r.spill_store_bytes + r.spill_load_bytes);
      }
      out["note"] = note;
      if (!out["reached"].get<bool>()) failed_ = true;
      return out;
    });
  }

  Json read_predictions() const {
    if (asked_.predictions_file.empty()) return Json::object();
    std::ifstream in(asked_.predictions_file);
    if (!in) throw std::runtime_error(asked_.predictions_file + " cannot be read");
    return Json::parse(in);
  }

  Asked asked_;
  Json results_;
  bool failed_ = false;
};

Asked parse(int argc, char** argv) {
  Asked asked;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--strict") {
      asked.strict = true;
      continue;
    }
    if (i + 1 == argc) throw std::invalid_argument(word + " needs a value, or is not known");
    const std::string value = argv[++i];
    if (word == "--launches")
      asked.launches = static_cast<unsigned>(std::stoul(value));
    else if (word == "--only")
      asked.only = value;
    else if (word == "--json")
      asked.json_file = value;
    else if (word == "--predictions")
      asked.predictions_file = value;
    else if (word == "--ptxas")
      asked.ptxas_file = value;
    else if (word == "--near")
      asked.near = value;
    else
      throw std::invalid_argument(word + " is not known");
  }
  return asked;
}

}  // namespace
}  // namespace bench::gpu

int main(int argc, char** argv) try {
  // The other process of rows between two: started by this program itself.
#if defined(STRAIT_BENCH_ACROSS)
  if (argc == 5 && std::string(argv[1]) == "--far")
    return bench::gpu::run_far_side(std::stoi(argv[2]), std::stoi(argv[3]), argv[4]);
#endif
  return bench::gpu::Program(bench::gpu::parse(argc, argv)).run();
} catch (const std::exception& e) {
  std::cerr << "gpu_bench: " << e.what() << "\n";
  return 1;
}
