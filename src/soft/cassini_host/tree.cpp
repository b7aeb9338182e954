// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/tree.hpp"

#include <sys/sysmacros.h>

#include <filesystem>

#include "soft/cassini/services.hpp"
#include "soft/cassini_host/places.hpp"
#include "strait/wire/cxi.hpp"
#include "strait/wire/cxi_abi.hpp"

namespace strait::soft::cassini {
namespace {

namespace wire = strait::wire::cxi;

// A physical function has registers of this size or more.
constexpr std::uint64_t kResourceBytes = std::uint64_t{2} << 30;
constexpr const char* kDriver = "cxi_ss1";

// Files and links until the first that fails.
class TreeWriter {
 public:
  explicit TreeWriter(host::Root& root) : root_(root) {}
  void claim(const std::string& path) { keep(status_ ? root_.claim(path) : Status()); }
  void file(const std::string& path, std::string_view text) { keep(status_ ? root_.file(path, text) : Status()); }
  void number(const std::string& path, std::uint64_t value) { file(path, fmt::format("{}", value)); }
  void live(const std::string& path) { keep(status_ ? root_.live(path) : Status()); }
  void live_folder(const std::string& path) { keep(status_ ? root_.live_folder(path) : Status()); }
  void node(const std::string& path, std::uint64_t value) { keep(status_ ? root_.node(path, value) : Status()); }
  // As long as the registers, with nothing in it.
  void sparse(const std::string& path, std::uint64_t bytes) {
    file(path, "");
    std::error_code failed;
    if (status_) std::filesystem::resize_file(root_.path() + path, bytes, failed);
    if (failed) keep(fail_errno(failed.value(), fmt::format("making {} long", path)));
  }
  // `to`: absolute; written as sysfs has it, seen from the folder that holds the link. The last part is always the
  // target's name, also where the target is above the link: programs take the PCI address from there.
  void link(const std::string& path, const std::string& to) {
    const std::filesystem::path target(to);
    const auto folder = target.parent_path().lexically_relative(std::filesystem::path(path).parent_path());
    keep(status_ ? root_.link(path, (folder / target.filename()).lexically_normal().string()) : Status());
  }
  [[nodiscard]] Status finish() { return std::move(status_); }

 private:
  void keep(Status status) {
    if (!status) status_ = std::move(status);
  }
  host::Root& root_;
  Status status_;
};

const char* version_text(wire::CassiniVersion version) {
  switch (version) {
    case wire::CassiniVersion::v1_0: return "1.0";
    case wire::CassiniVersion::v1_1: return "1.1";
    case wire::CassiniVersion::v2_0: return "2.0";
  }
  return "?";
}

// What DEV_INFO_GET answers, for who cannot ask.
void write_properties(TreeWriter& out, std::uint32_t card, const wire::DevInfo& info) {
  const std::string folder = pci_folder(card) + "/properties/";
  out.file(folder + "nid", fmt::format("{:#x}", info.nid));
  out.number(folder + "pid_bits", info.pid_bits);
  out.number(folder + "pid_count", info.pid_count);
  out.number(folder + "pid_granule", info.pid_granule);
  out.number(folder + "min_free_shift", info.min_free_shift);
  out.number(folder + "rdzv_get_idx", info.rdzv_get_idx);
  out.file(folder + "cassini_version", version_text(info.cassini_version));
  out.number(folder + "system_type_identifier", static_cast<std::uint32_t>(info.system_type_identifier));
  out.number(folder + "rev", info.device_rev);
  out.number(folder + "proto", info.device_proto);
  out.number(folder + "platform", static_cast<std::uint32_t>(info.device_platform));
  out.number(folder + "uc_nic", static_cast<std::uint32_t>(info.uc_nic));
  out.number(folder + "pct_eq", info.pct_eq);
  out.number(folder + "hpc_mtu", info.link_mtu);
  out.number(folder + "speed", info.link_speed);
  out.number(folder + "link", info.link_state);
  out.number(folder + "num_ptes", info.num_ptes);
  out.number(folder + "num_txqs", info.num_txqs);
  out.number(folder + "num_tgqs", info.num_tgqs);
  out.number(folder + "num_eqs", info.num_eqs);
  out.number(folder + "num_cts", info.num_cts);
  out.number(folder + "num_acs", info.num_acs);
  out.number(folder + "num_tles", info.num_tles);
  out.number(folder + "num_les", info.num_les);
  out.file(folder + "amo_remap_to_pcie_fadd", "-1");
  out.live(folder + "rgids_avail");
}

void write_interface(TreeWriter& out, std::uint32_t card) {
  const std::string name = interface_name(card);
  const std::string net = pci_folder(card) + "/net/" + name;
  out.file(net + "/operstate", "up");
  out.file(net + "/carrier", "1");
  out.file(net + "/speed", "200000");
  out.file(net + "/mtu", "9000");
  out.file(net + "/type", "1");
  out.number(net + "/ifindex", 1000 + card);
  // Administered locally, with the network id as its end: that is how a fabric hands addresses out.
  out.file(net + "/address", fmt::format("02:00:00:{:02x}:{:02x}:{:02x}", nid_of(card) >> 16 & 0xff,
                                         nid_of(card) >> 8 & 0xff, nid_of(card) & 0xff));
  out.file(net + "/addr_assign_type", "3");
  out.link(net + "/device", pci_folder(card));
  out.link("/sys/class/net/" + name, net);
  out.claim("/sys/class/net/" + name);
}

void write_card(TreeWriter& out, std::uint32_t card) {
  const std::string pci = pci_folder(card), name = fmt::format("cxi{}", card);
  const wire::DevInfo info = device_info({.index = card, .nid = nid_of(card)});
  out.file(pci + "/vendor", fmt::format("{:#06x}", info.vendor_id));
  out.file(pci + "/device", fmt::format("{:#06x}", info.device_id));
  out.file(pci + "/subsystem_vendor", "0x17db");
  out.file(pci + "/subsystem_device", "0x0000");
  out.file(pci + "/class", "0x020000");
  out.file(pci + "/revision", "0x01");
  out.file(pci + "/numa_node", "-1");
  out.file(pci + "/current_link_speed", "16.0 GT/s PCIe");
  out.file(pci + "/current_link_width", "16");
  out.file(pci + "/uevent",
           fmt::format("DRIVER={}\nPCI_CLASS=20000\nPCI_ID=17DB:0501\nPCI_SLOT_NAME={}", kDriver, pci_slot(card)));
  out.sparse(pci + "/resource0", kResourceBytes);
  out.file(pci + "/fru/description", info.fru_description);
  // What cxi_stat shows.
  out.file(pci + "/fru/part_number", "Not Available");
  out.file(pci + "/fru/serial_number", "Not Available");
  out.file(pci + "/uc/qspi_blob_version", "Not Available");
  out.file(pci + "/properties/current_esm_link_speed", "Disabled");
  out.file(pci + "/port/media", "electrical");
  out.file(pci + "/port/speed", "BS_200G");
  out.file(pci + "/port/link", "up");
  out.file(pci + "/port/link_layer_retry", "off");
  out.file(pci + "/port/loopback", "off");
  out.file(pci + "/port/pause", "none");
  out.link(pci + "/driver", fmt::format("{}/drivers/{}", pci_bus(), kDriver));
  out.link("/sys/bus/pci/devices/" + pci_slot(card), pci);
  out.claim("/sys/bus/pci/devices/" + pci_slot(card));  // last: a claim makes a folder where there is nothing
  write_properties(out, card, info);
  out.live_folder(pci + "/telemetry");
  write_interface(out, card);

  const std::string user = user_folder(card);
  out.file(user + "/dev", fmt::format("{}:{}", major(cxi_device_number(card)), minor(cxi_device_number(card))));
  out.file(user + "/uevent", fmt::format("MAJOR={}\nMINOR={}\nDEVNAME={}", major(cxi_device_number(card)),
                                         minor(cxi_device_number(card)), name));
  out.link(user + "/device", pci);
  out.link("/sys/class/cxi_user/" + name, user);
  const std::string core = fmt::format("{}/cxi/{}", pci, name);
  out.link(core + "/device", pci);
  out.link("/sys/class/cxi/" + name, core);
  out.node("/dev/" + name, cxi_device_number(card));
  out.claim("/dev/" + name);
}

}  // namespace

Status write_tree(host::Root& root, std::uint32_t cards) {
  if (cards == 0 || cards > kMostShown)
    return fail(Code::invalid, "{} Cassinis were asked for: 1 to {} are possible", cards, kMostShown);
  TreeWriter out(root);
  for (const std::string& path : {pci_bus(), std::string("/sys/class/cxi"), std::string("/sys/class/cxi_user"),
                                  fmt::format("/sys/module/{}", kDriver)})
    out.claim(path);
  out.file(fmt::format("{}/drivers/{}/uevent", pci_bus(), kDriver), "");
  out.file(fmt::format("/sys/module/{}/parameters/ac_size_dbl", kDriver), "5");
  for (std::uint32_t card = 0; card < cards; ++card) write_card(out, card);
  return out.finish();
}

}  // namespace strait::soft::cassini
