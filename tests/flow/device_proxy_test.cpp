// SPDX-License-Identifier: Apache-2.0
// The proxy ring on a verbs device in software: run under `strait run`.
#include "device_proxy.hpp"

namespace strait::flow {
namespace {

TEST(DeviceProxy, AGridPostsToAVerbsDevice) {
  posts_through_the_proxy(settings({{"nics", "verbs:strait0"}}), "strait0");
}

}  // namespace
}  // namespace strait::flow
