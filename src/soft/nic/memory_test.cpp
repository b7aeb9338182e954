// SPDX-License-Identifier: Apache-2.0
// How the engine reaches memory that comes with a descriptor, a port, or both.
#include "soft/nic/memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "sys/fd.hpp"

namespace strait::soft::nic {
namespace {

constexpr std::uint64_t kName = 0x7000'0000'0000;  // what requests call the first byte: nobody's address

// A device of one page behind a port, and a descriptor for it.
class PortAndFile : public testing::Test {
 protected:
  PortAndFile() {
    EXPECT_EQ(::ftruncate(file_.get(), 4096), 0);
    EXPECT_EQ(::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    port_.abi_version = STRAIT_PLUGIN_ABI;
    port_.struct_size = sizeof port_;
    port_.context = device_;
    port_.read = [](void* device, std::uint64_t address, void* into, std::uint64_t length_bytes) {
      std::memcpy(into, static_cast<char*>(device) + (address - kName), length_bytes);
      return 0;
    };
    port_.write = [](void* device, std::uint64_t address, const void* from, std::uint64_t length_bytes) {
      std::memcpy(static_cast<char*>(device) + (address - kName), from, length_bytes);
      return 0;
    };
  }
  strait_nic_mr_request request() {
    strait_nic_mr_request out{};
    out.struct_size = sizeof out;
    out.access = STRAIT_NIC_LOCAL_WRITE;
    out.fd = file_.get();
    out.address = kName;
    out.length_bytes = 4096;
    out.port = &port_;
    return out;
  }
  // From here on it can be mapped by nobody who wants to write: as a GPU's dma-buf can be mapped by nobody.
  void refuse_mappings() { ASSERT_EQ(::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0); }
  // How many descriptors of this process lead to the file.
  int open_descriptors() const {
    struct stat mine {};
    EXPECT_EQ(::fstat(file_.get(), &mine), 0);
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) {
      struct stat other {};
      if (::fstat(fd, &other) == 0 && other.st_dev == mine.st_dev && other.st_ino == mine.st_ino) ++count;
    }
    return count;
  }
  static void write(Registration* to, const char* text) {
    ASSERT_NE(to, nullptr);
    ASSERT_TRUE(write_bytes(*to, kName, reinterpret_cast<const std::byte*>(text), std::strlen(text)));
  }

  sys::Fd file_{::memfd_create("device", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  char device_[4096] = {};
  strait_memory_port port_{};
  MemoryTable table_;
};

TEST_F(PortAndFile, WhatCanBeMappedIsMapped) {
  const auto made = table_.add(request());
  ASSERT_TRUE(made) << made.error().explain();
  write(table_.find(made->lkey), "by the mapping");
  EXPECT_STREQ(device_, "");
  EXPECT_EQ(open_descriptors(), 1);
}

TEST_F(PortAndFile, WhatCannotIsReachedThroughThePortAndItsDescriptorKept) {
  refuse_mappings();
  const auto made = table_.add(request());
  ASSERT_TRUE(made) << made.error().explain();
  write(table_.find(made->lkey), "by the port");
  EXPECT_STREQ(device_, "by the port");
  EXPECT_EQ(open_descriptors(), 2) << "an open descriptor is what keeps a GPU's memory";
  ASSERT_TRUE(table_.remove(made->lkey));
  EXPECT_EQ(open_descriptors(), 1);
}

TEST_F(PortAndFile, WithNeitherItIsRefused) {
  refuse_mappings();
  strait_nic_mr_request without = request();
  without.port = nullptr;
  const auto made = table_.add(without);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::unsupported);
  EXPECT_EQ(made.error().sys_errno, EOPNOTSUPP) << made.error().explain();
  EXPECT_NE(made.error().text.find("lets no CPU map it (EPERM"), std::string::npos) << made.error().text;
  EXPECT_NE(made.error().remedy.find("share the memory by its pointer"), std::string::npos) << made.error().remedy;
  EXPECT_EQ(open_descriptors(), 1);
}

TEST_F(PortAndFile, APortAloneIsEnough) {
  strait_nic_mr_request alone = request();
  alone.fd = -1;
  const auto made = table_.add(alone);
  ASSERT_TRUE(made) << made.error().explain();
  write(table_.find(made->lkey), "alone");
  EXPECT_STREQ(device_, "alone");
}

TEST_F(PortAndFile, AFileThatIsTooShortIsNoMatterOfPorts) {
  strait_nic_mr_request longer = request();
  longer.length_bytes = 4097;
  EXPECT_EQ(table_.add(longer).error().code, Code::invalid);
}

}  // namespace
}  // namespace strait::soft::nic
