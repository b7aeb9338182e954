// SPDX-License-Identifier: Apache-2.0
// The handle of a CXI device, and the pages of it that were mapped by hand.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "rail/cxi/device.hpp"
#include "strait/c.h"

struct strait_cxi_device {
  std::unique_ptr<strait::rail::cxi::Device> device;
  std::mutex mutex;
  std::map<void*, strait::rail::cxi::Pages> pages;
};
