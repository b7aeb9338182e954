// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what a program writes to /dev/infiniband/rdma_cm. Every command is answered with all its bytes or an
// errno, memory outside of what the program has is not touched, and closing the channel leaves nothing behind.
//
// Input: commands, each a byte (number), a byte (bits 0-6: a quarter of the bytes that follow, bit 7: through the
// second channel), a byte (bits 0-1: where a pointer to memory for the answer is put: 0, 8, nowhere; bits 2-4: an id of
// 0 to 7 is put ...; bits 5-7: ... at 8 + 4 times this, 0 is nowhere), and the bytes.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "require.hpp"
#include "soft/cm/service.hpp"
#include "soft/cm/service_fakes.hpp"

namespace cm = strait::soft::cm;
using strait::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const cm::IpAddress here = cm::IpAddress::v4(127, 0, 0, 1);
  static std::byte answers[65536];
  cm::testing::Fabric fabric;
  const auto memory = std::make_shared<cm::testing::WalledMemory>();
  memory->allow(0, answers, sizeof answers);
  cm::ServiceSettings settings;
  settings.device = std::make_shared<cm::testing::FakeDevice>(fabric, std::vector<cm::GidInfo>{{here, 5}});
  settings.memory = memory;
  settings.scope = fmt::format("strait-cm-fuzz/{}", ::getpid());
  settings.seed = 1;
  cm::Service service(std::move(settings));
  const std::shared_ptr<cm::Channel> channels[] = {service.open(true).value(), service.open(true).value()};

  std::span<const std::uint8_t> rest(data, size);
  while (rest.size() >= 3) {
    const std::uint8_t number = rest[0], length = rest[1], places = rest[2];
    rest = rest.subspan(3);
    const std::size_t bytes = std::min<std::size_t>((length & 0x7f) * 4, rest.size());
    std::vector<std::byte> frame(sizeof(rdma_ucm_cmd_hdr) + bytes);
    const rdma_ucm_cmd_hdr header{number, static_cast<std::uint16_t>(bytes), 1024};
    std::memcpy(frame.data(), &header, sizeof header);
    if (bytes != 0) std::memcpy(frame.data() + sizeof header, rest.data(), bytes);
    rest = rest.subspan(bytes);
    const auto put = [&](std::size_t at, const auto& value) {
      if (at + sizeof value <= frame.size()) std::memcpy(frame.data() + at, &value, sizeof value);
    };
    const std::uint64_t where = reinterpret_cast<std::uintptr_t>(answers);
    if ((places & 3) < 2) put(sizeof header + 8u * (places & 3), where);
    const std::uint32_t id = places >> 2 & 7;
    if (places >> 5 != 0) put(sizeof header + 8 + 4u * (places >> 5), id);
    memory->allow(1, frame.data(), frame.size());
    const long result = service.write(*channels[length >> 7], frame.data(), frame.size());
    require(result == static_cast<long>(frame.size()) || (result < 0 && result > -200), "all of it, or an errno");
  }
  for (const auto& channel : channels) service.close(*channel);
  require(service.idents() == 0, "a closed channel leaves no id behind");
  return 0;
}
