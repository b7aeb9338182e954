// SPDX-License-Identifier: Apache-2.0
// The rows of two processes on one host, by grant: memory that both map, one copy by system call, the ring.
#include <algorithm>
#include <memory>

#include "rows.hpp"

namespace bench {
namespace {

std::vector<std::string> by_grant(const char* grant, std::vector<std::string> options = {}) {
  options.push_back(std::string("grant=") + grant);
  return options;
}

const std::vector<std::string> kSameBytes = {"--one-place", "1"};

// For ucx_perftest, which always moves the same bytes.
std::vector<std::string> perftest(const char* tls, const char* test, const char* window = nullptr) {
  std::vector<std::string> words = {std::string("tls=") + tls, "-t", test};
  if (window != nullptr) words.insert(words.end(), {"-O", window});
  return words;
}

struct What {
  const char* id;
  const char* title;
  const char* unit;
  double goal;
  double noted;
  const char* prediction;
  bool extra = false;
};

// Our program beside UCX: its library with the same loops and places, or ucx_perftest where both move the same bytes.
PairRow beside_ucx(const What& what, const char* own, const char* peer_title, std::vector<std::string> workload,
                   std::vector<std::string> strait_options, std::vector<std::string> peer_options) {
  const bool by_perftest = std::ranges::find(peer_options, "-t") != peer_options.end();
  return {what.id,
          what.title,
          what.unit,
          std::string(what.unit) == "us",
          what.goal,
          by_perftest ? PeerKind::ucx_perftest : PeerKind::ucx,
          peer_title,
          what.noted,
          what.prediction,
          std::move(workload),
          std::move(strait_options),
          std::move(peer_options),
          what.extra,
          {},
          own};
}

// Our program measures what it is held against, too.
PairRow beside_limit(const What& what, const char* own, const char* limit, std::vector<std::string> workload,
                     std::vector<std::string> strait_options) {
  return {what.id,
          what.title,
          what.unit,
          true,
          what.goal,
          PeerKind::beside,
          limit,
          what.noted,
          what.prediction,
          std::move(workload),
          std::move(strait_options),
          {},
          what.extra,
          {},
          own};
}

// ---- 8 bytes -------------------------------------------------------------------------------------------------------

void add_small(std::vector<PairRow>& rows) {
  const std::vector<std::string> posix = {"tls=posix,self"};
  const auto put_latency = [](const What& what, const char* peer, std::vector<std::string> options,
                              std::vector<std::string> peer_options) {
    return beside_ucx(what, "strait_transfer", peer, {"latency"}, by_grant("map", std::move(options)),
                      std::move(peer_options));
  };
  rows.push_back(put_latency({"map_put8_latency", "map: 8 B put, one way", "us", 0.8, 0.185, "0.13 us, 0.7 x"},
                             "UCX posix", {}, posix));
  rows.push_back(
      put_latency({"map_put8_latency_cma", "map: 8 B put, UCX may use cma", "us", 0.8, 0.167, "0.13 us, 0.8 x"},
                  "UCX posix,cma", {}, {"tls=posix,cma,self"}));
  rows.push_back(put_latency({"map_put8_latency_place", "map: 8 B put, same bytes", "us", 0, 0.185, "0.6 x", true},
                             "ucx_perftest, posix", kSameBytes, perftest("posix,self", "ucp_put_lat")));

  const auto rate = [](const What& what, const char* peer, std::vector<std::string> options,
                       std::vector<std::string> peer_options) {
    return beside_ucx(what, "strait_transfer", peer, {"rate", "--window", "128"}, by_grant("map", std::move(options)),
                      std::move(peer_options));
  };
  rows.push_back(rate({"map_put8_rate", "map: 8 B puts, completed", "M/s", 1.2, 46, "40 M/s, 0.9 x: missed"},
                      "UCX posix, window 128", {}, posix));
  rows.push_back(rate({"map_put8_rate_place", "map: 8 B puts, same bytes", "M/s", 0, 46, "1.0 x", true},
                      "ucx_perftest, posix", kSameBytes, perftest("posix,self", "ucp_put_bw", "128")));

  const auto operation = [](const What& what, const char* test, const char* peer, std::vector<std::string> options,
                            std::vector<std::string> peer_options) {
    return beside_ucx(what, "strait_operations", peer, {test}, by_grant("map", std::move(options)),
                      std::move(peer_options));
  };
  rows.push_back(operation({"map_get8", "map: 8 B get", "us", 1.0, 0.046, "0.05 us, 1.1 x: missed"}, "get", "UCX posix",
                           {}, posix));
  rows.push_back(operation({"map_get8_place", "map: 8 B get, same bytes", "us", 0, 0.046, "1.0 x", true}, "get",
                           "ucx_perftest, posix", kSameBytes, perftest("posix,self", "ucp_get")));
  rows.push_back(beside_ucx({"ring_get8", "ring: 8 B get", "us", 0.6, 0.577, "0.35 us, 0.6 x"}, "strait_operations",
                            "UCX 1.23 posix", {"get"}, by_grant("ring", {"lane=peer"}),
                            {"later=1", "tls=posix,self", "-t", "ucp_get"}));
  rows.push_back(
      operation({"map_fadd8", "map: 8 B fetch-add", "us", 1.0, 0, "1.0 x"}, "fetch_add", "UCX posix", {}, posix));
  rows.push_back(operation({"map_fadd8_place", "map: 8 B fetch-add, same bytes", "us", 0, 0, "1.0 x", true},
                           "fetch_add", "ucx_perftest, posix", kSameBytes, perftest("posix,self", "ucp_fadd")));
}

// ---- larger ones ---------------------------------------------------------------------------------------------------

struct Amount {
  const char* id;
  const char* text;
  const char* bytes;
  const char* window;
  const char* regions;
  double noted_map;  // UCX posix
  double noted_memcpy;
  double noted_copy;  // UCX cma; 0: no row
  const char* predicted_map;
  const char* predicted_copy;
};

constexpr Amount kAmounts[] = {
    {"4k", "4 KiB", "4096", "32", "4", 31, 0, 0, "1.0 x, 0.9 x memcpy", ""},
    {"64k", "64 KiB", "65536", "8", "4", 35, 39, 16.8, "1.0 x, 1.0 x memcpy", "1.0 x"},
    {"1m", "1 MiB", "1048576", "4", "4", 25, 26, 14.6, "1.0 x, 1.0 x memcpy", "1.0 x"},
    {"16m", "16 MiB", "16777216", "2", "4", 13.6, 13.9, 8.1, "1.2 x, 1.2 x memcpy by streaming stores", "1.1 x"},
    {"256m", "256 MiB", "268435456", "2", "2", 0, 7, 0, "1.3 x, 1.4 x memcpy by streaming stores", ""},
};

// Texts that rows point at must outlive them.
const char* kept(std::string text) {
  static std::vector<std::unique_ptr<std::string>> all;
  all.push_back(std::make_unique<std::string>(std::move(text)));
  return all.back()->c_str();
}

void add_large(std::vector<PairRow>& rows, const Amount& amount) {
  const std::vector<std::string> workload = {"bandwidth",   "--size",    amount.bytes,  "--window",
                                             amount.window, "--regions", amount.regions};
  const std::string id = amount.id;
  const std::string text = amount.text;
  const auto map = [&](const What& what, const char* peer, std::vector<std::string> options,
                       std::vector<std::string> peer_options) {
    rows.push_back(beside_ucx(what, "strait_transfer", peer, workload, by_grant("map", std::move(options)),
                              std::move(peer_options)));
  };
  map({kept("map_put_" + id), kept("map: put " + text), "GB/s", 1.0, amount.noted_map, amount.predicted_map},
      "UCX posix", {}, {"tls=posix,self"});
  map({kept("map_put_" + id + "_place"), kept("map: put " + text + ", same bytes"), "GB/s", 0, amount.noted_map,
       amount.predicted_map, true},
      "ucx_perftest, posix", kSameBytes, perftest("posix,self", "ucp_put_bw", amount.window));
  rows.push_back({kept("map_put_" + id + "_memcpy"),
                  kept("map: put " + text + ", beside memcpy"),
                  "GB/s",
                  false,
                  0.95,
                  PeerKind::memcpy,
                  "memcpy",
                  amount.noted_memcpy,
                  amount.predicted_map,
                  workload,
                  by_grant("map"),
                  {},
                  false});
  if (amount.noted_copy == 0) return;
  rows.push_back({kept("copy_put_" + id),
                  kept("copy: put " + text + ", malloc'ed"),
                  "GB/s",
                  false,
                  1.0,
                  PeerKind::uct,
                  "UCX cma",
                  amount.noted_copy,
                  amount.predicted_copy,
                  workload,
                  by_grant("copy", {"memory=malloc"}),
                  {},
                  false});
  rows.push_back(beside_ucx(
      {kept("copy_put_" + id + "_place"), kept("copy: put " + text + ", same bytes"), "GB/s", 0, amount.noted_copy,
       amount.predicted_copy, true},
      "strait_transfer", "ucx_perftest, cma", workload, by_grant("copy", {"memory=malloc", "--one-place", "1"}),
      {"alloc=heap", "-t", "put_bw", "-d", "memory", "-x", "cma", "-D", "zcopy", "-O", amount.window}));
  rows.push_back({kept("copy_put_" + id + "_limit"),
                  kept("copy: put " + text + ", bare call"),
                  "GB/s",
                  false,
                  0,
                  PeerKind::vm_copy,
                  "process_vm_readv",
                  0,
                  "0.95 x",
                  workload,
                  by_grant("copy", {"memory=malloc", "--one-place", "1"}),
                  {},
                  true});
}

// ---- messages, waking, registering, many ---------------------------------------------------------------------------

void add_messages(std::vector<PairRow>& rows) {
  const auto send = [&](const What& what, const char* peer, std::vector<std::string> workload,
                        std::vector<std::string> options, std::vector<std::string> peer_options) {
    rows.push_back(beside_ucx(what, "strait_operations", peer, std::move(workload),
                              by_grant("auto", std::move(options)), std::move(peer_options)));
  };
  const std::vector<std::string> large = {"send_bandwidth", "--size", "65536", "--window", "32",
                                          "--region-bytes", "1048576"};
  send({"send8", "send and receive 8 B, one way", "us", 1.0, 0.198, "0.25 us, 1.2 x: missed"}, "UCX posix, tag",
       {"send_latency"}, {}, {"tls=posix,self"});
  send({"send8_place", "send and receive 8 B, same bytes", "us", 0, 0.198, "1.2 x", true}, "ucx_perftest tag_lat",
       {"send_latency"}, kSameBytes, perftest("posix,self", "tag_lat"));
  send({"send_64k", "send and receive 64 KiB", "GB/s", 1.0, 14.2, "1.2 x"}, "UCX posix, tag", large, {},
       {"tls=posix,self"});
  send({"send_64k_place", "send 64 KiB, same bytes", "GB/s", 0, 14.2, "2 x", true}, "ucx_perftest tag_bw", large,
       kSameBytes, perftest("posix,self", "tag_bw", "32"));
}

void add_others(std::vector<PairRow>& rows) {
  rows.push_back(beside_limit({"signal_wake", "put with signal, peer asleep", "us", 1.3, 0, "2 x: missed"},
                              "signal_wake", "futex", {"wake"}, by_grant("auto", {"limit=futex"})));
  rows.push_back(beside_limit({"signal_wake_eventfd", "put with signal, beside eventfd", "us", 1.3, 0, "1.8 x: missed"},
                              "signal_wake", "eventfd", {"wake"}, by_grant("auto", {"limit=eventfd"})));
  const std::vector<std::string> gigabyte = {"--size", "1073741824"};
  const auto share = [&](const What& what, const char* test, const char* limit, std::vector<std::string> options) {
    std::vector<std::string> workload = {test};
    workload.insert(workload.end(), gigabyte.begin(), gigabyte.end());
    rows.push_back(
        beside_limit(what, "register_memory", limit, std::move(workload), by_grant("auto", std::move(options))));
  };
  share({"register_1g", "share 1 GiB of malloc, first time", "us", 1.1, 0, "under 0.1 x: nothing is pinned"}, "share",
        "mlock of the same", {});
  share({"register_1g_fresh", "share 1 GiB, never written to", "us", 0, 0, "under 0.01 x", true}, "share",
        "mlock of the same", {"touched=0"});
  share({"register_1g_again", "share 1 GiB of malloc, again", "ns", 1.0, 0, "1000 ns, 10 x: missed"}, "share_again",
        "asked for", {});
  share({"register_1g_again_monitor", "share 1 GiB again, userfaultfd", "ns", 0, 0, "600 ns, 6 x", true}, "share_again",
        "asked for", {"monitor=userfaultfd"});

  const auto many = [&](const What& what, const char* test, std::vector<std::string> options, const char* limit) {
    rows.push_back(
        beside_limit(what, "many_targets", limit, {test, "--window", "32"}, by_grant("auto", std::move(options))));
  };
  const char* one_and_misses = "one, and bare misses";
  many({"regions_1", "8 B puts to 1 region", "ns", 0, 0, "1.0 x", true}, "regions", {"count=1", "apart=1"},
       one_and_misses);
  many({"regions_1k", "8 B puts to 1000 regions", "ns", 1.2, 0, "1.0 x"}, "regions", {"count=1000", "apart=1"},
       one_and_misses);
  many({"regions_1k_pages", "8 B puts, 1000 of one allocation", "ns", 0, 0, "1.0 x", true}, "regions", {"count=1000"},
       one_and_misses);
  many({"regions_100k", "8 B puts to 100 000 regions, by the NIC", "ns", 1.2, 0, "1.1 x"}, "regions", {"count=100000"},
       one_and_misses);
  many({"peers_1000_put", "8 B puts, to 1000 Nodes", "ns", 1.2, 0, "1.5 x: missed"}, "peers", {"count=1000"},
       one_and_misses);
  many({"peers_1000", "per peer, of 1000 Nodes", "KiB", 1.0, 0, "400 KiB, 6 x: missed"}, "peers_memory", {"count=1000"},
       "asked for");
  many({"peers_1000_connect", "connect, to 1000 Nodes", "ms", 0, 0, "3 ms, 1.2 x"}, "peers_connect", {"count=1000"},
       "the first ten");
}

}  // namespace

std::vector<PairRow> grant_rows() {
  std::vector<PairRow> rows;
  add_small(rows);
  for (const Amount& amount : kAmounts) add_large(rows, amount);
  add_messages(rows);
  add_others(rows);
  return rows;
}

}  // namespace bench
