// SPDX-License-Identifier: Apache-2.0
// C ABI: nodes.
#include <cstdlib>
#include <cstring>

#include "node/answer.hpp"
#include "node/bury.hpp"
#include "node/core.hpp"
#include "node/text.hpp"

using namespace strait;
using namespace strait::node;

namespace {

Level level_of(const std::string& name) {
  return name == "error" ? Level::error : name == "info" ? Level::info : name == "debug" ? Level::debug : Level::warn;
}

Status open_node(const strait_node_options* given, strait_node** out) {
  std::vector<Options::Pair> pairs;
  Log log;
  strait_log_fn sink = nullptr;
  void* context = nullptr;
  if (given != nullptr) {
    if (given->struct_size < sizeof(strait_node_options)) {
      return fail(Code::invalid, "strait_node_options.struct_size is {}, not {}", given->struct_size,
                  sizeof(strait_node_options));
    }
    if (given->n_settings != 0 && given->settings == nullptr)
      return fail(Code::invalid, "strait_node_options.settings is null");
    for (std::uint32_t i = 0; i < given->n_settings; ++i) {
      const strait_setting& setting = given->settings[i];
      if (setting.name == nullptr || setting.value == nullptr)
        return fail(Code::invalid, "setting {} has a null name or value", i);
      pairs.emplace_back(setting.name, setting.value);
    }
    sink = given->log;
    context = given->log_context;
  }
  STRAIT_TRY(Options options, Options::read(pairs));
  if (sink != nullptr) {
    log = Log(level_of(options.text("log")), [sink, context](Level level, std::string_view text) {
      sink(context, static_cast<int>(level), std::string(text).c_str());
    });
  }
  auto handle = std::make_unique<strait_node>();
  STRAIT_TRY(handle->core, Core::open(std::move(options), std::move(log)));
  *out = handle.release();
  return {};
}

}  // namespace

namespace strait::node {

Status hand_out(const std::string& text, char** out) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  *out = copy;
  return {};
}

}  // namespace strait::node

extern "C" {

const char* strait_version(void) {
  return STRAIT_VERSION_TEXT;
}

void strait_text_free(char* text) {
  std::free(text);
}

std::int32_t strait_node_open(const strait_node_options* options, strait_node** out, strait_error* error) {
  if (out == nullptr) return answer_null(error, "out");
  return guarded(error, [&] { return open_node(options, out); });
}

void strait_node_close(strait_node* node) {
  if (node == nullptr) return;
  if (node->core->in_child()) return bury(node);
  (void)guarded(nullptr, [&]() -> Status {
    node->core->close();
    return {};
  });
  delete node;
}

const char* strait_node_address(const strait_node* node) {
  return node == nullptr ? "" : node->core->address().c_str();
}

std::int32_t strait_node_info(strait_node* node, char** json, strait_error* error) {
  if (node == nullptr || json == nullptr) return answer_null(error, "node or json");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    return hand_out(node->core->info_json(), json);
  });
}

std::int32_t strait_counters_of(strait_node* node, const char* address, std::int64_t timeout_ns, char** json,
                                strait_error* error) {
  if (node == nullptr || address == nullptr || json == nullptr) return answer_null(error, "node, address or json");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    STRAIT_TRY(const std::string told, node->core->counters_of(address, node->core->connect_deadline(timeout_ns)));
    return hand_out(told, json);
  });
}

std::int32_t strait_node_reach(strait_node* node, std::uint32_t flags, char** json, strait_error* error) {
  if (node == nullptr || json == nullptr) return answer_null(error, "node or json");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    if ((flags & ~std::uint32_t{STRAIT_REACH_EVERY_DEVICE}) != 0)
      return fail(Code::invalid, "flags {:#x} have bits strait does not know", flags);
    return hand_out(node->core->reach_json((flags & STRAIT_REACH_EVERY_DEVICE) != 0), json);
  });
}

std::int32_t strait_explain(strait_node* node, const char* from, const char* to, std::uint32_t flags,
                            std::int64_t timeout_ns, char** text, strait_error* error) {
  if (node == nullptr || from == nullptr || to == nullptr || text == nullptr)
    return answer_null(error, "node, from, to or text");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    STRAIT_TRY(std::string explained, node->core->explain(from, to, flags, node->core->connect_deadline(timeout_ns)));
    return hand_out(explained, text);
  });
}

std::int32_t strait_node_poll(strait_node* node) {
  if (node == nullptr || node->core->in_child() || node->core->closed()) return 0;
  Core& core = *node->core;
  // Not an atomic addition: all that matters is that the number changes while somebody polls.
  core.poll_count.store(core.poll_count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (core.settings().progress != ProgressMode::thread) core.sleeper().get_up();  // the caller is the sleeper
  if (core.settings().progress == ProgressMode::eventfd && core.door() != nullptr) core.door()->wake().clear();
  const std::int32_t did = core.drive_all();
  if (core.draining() != 0) core.sweep();
  return did;
}

std::int32_t strait_node_event_fd(strait_node* node, std::int32_t* fd, strait_error* error) {
  if (node == nullptr || fd == nullptr) return answer_null(error, "node or fd");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    if (node->core->settings().progress != ProgressMode::eventfd) {
      return with_remedy(fail(Code::invalid, "this Node's progress is not eventfd"),
                         "open it with the option progress=eventfd");
    }
    *fd = node->core->progress()->event_fd();
    return {};
  });
}

std::int32_t strait_node_arm(strait_node* node) {
  if (node == nullptr || !node->core->usable("node")) return 0;
  return node->core->progress()->arm() ? 1 : 0;
}

}  // extern "C"
