// SPDX-License-Identifier: Apache-2.0
// The devices that a run has: every family writes its part of the tree.
#include "soft/cassini_host/tree.hpp"
#include "tool/run.hpp"
#ifdef STRAIT_HAS_UVERBS
#include "soft/cm/family.hpp"
#include "soft/uverbs/tree.hpp"
#endif

namespace strait::tool {

Status make_devices(soft::host::Root& root, [[maybe_unused]] std::uint32_t nics, std::uint32_t cassinis) {
  for (const char* claim : {"/dev/infiniband", "/sys/class/infiniband", "/sys/class/infiniband_verbs"})
    STRAIT_CHECK(root.claim(claim));
#ifdef STRAIT_HAS_UVERBS
  if (nics != 0) {
    soft::uverbs::TreeSettings tree;
    tree.devices = nics;
    STRAIT_TRY(tree.gids, soft::uverbs::host_gids());
    STRAIT_CHECK(soft::uverbs::write_tree(root, tree));
    STRAIT_CHECK(soft::cm::write_tree(root));
  }
#endif
  if (cassinis != 0) STRAIT_CHECK(soft::cassini::write_tree(root, cassinis));
  return {};
}

}  // namespace strait::tool
