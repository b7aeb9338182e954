// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/tree.hpp"

#include <charconv>
#include <filesystem>

#include "sys/files.hpp"

namespace strait::soft::uverbs {

namespace {

// A PCI domain that no machine has, so that nothing of the real tree is hidden.
constexpr unsigned kPciDomain = 0x5354;

std::string slot(unsigned device) {
  return fmt::format("{:04x}:{:02x}:00.0", kPciDomain, device + 1);
}
std::string bus() {
  return fmt::format("/sys/devices/pci{:04x}:00", kPciDomain);
}

// Files and links until the first that fails.
class Writer {
 public:
  explicit Writer(host::Root& root) : root_(root) {}
  void claim(const std::string& path) { keep(status_ ? root_.claim(path) : Status()); }
  void file(const std::string& path, std::string_view text) { keep(status_ ? root_.file(path, text) : Status()); }
  // `to`: absolute; written as sysfs has it, seen from the folder that holds the link.
  void link(const std::string& path, const std::string& to) {
    const auto target = std::filesystem::path(to).lexically_relative(std::filesystem::path(path).parent_path());
    keep(status_ ? root_.link(path, target.string()) : Status());
  }
  void node(const std::string& path, std::uint64_t number) { keep(status_ ? root_.node(path, number) : Status()); }
  [[nodiscard]] Status finish() { return std::move(status_); }

 private:
  void keep(Status status) {
    if (!status) status_ = std::move(status);
  }
  host::Root& root_;
  Status status_;
};

// pcilib ends programs that list PCI devices when one has none of these.
std::string no_resources() {
  std::string out;
  for (int i = 0; i < 13; ++i) out += "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
  return out;
}
std::string configuration() {
  std::string out(256, '\0');
  out.replace(0, 4, "\xb3\x15\x19\x10", 4);       // vendor, device
  out.replace(8, 4, std::string("\0\0\0\2", 4));  // revision, class: Ethernet
  out.replace(44, 4, "\xb3\x15\x08\0", 4);        // the subsystem's
  return out;
}

void write_port(Writer& out, const std::string& port, const TreeSettings& settings) {
  out.file(port + "/state", "4: ACTIVE");
  out.file(port + "/phys_state", "5: LinkUp");
  out.file(port + "/link_layer", "Ethernet");
  out.file(port + "/rate", "100 Gb/sec (4X EDR)");
  out.file(port + "/lid", "0x0");
  out.file(port + "/lid_mask_count", "0");
  out.file(port + "/sm_lid", "0x0");
  out.file(port + "/sm_sl", "0");
  out.file(port + "/cap_mask", "0x04010000");
  out.file(port + "/pkeys/0", "0xffff");
  for (std::size_t i = 0; i < settings.gids.size(); ++i) {
    const GidEntry& entry = settings.gids[i];
    out.file(fmt::format("{}/gids/{}", port, i), gid_text(entry.address));
    out.file(fmt::format("{}/gid_attrs/types/{}", port, i), "RoCE v2");
    out.file(fmt::format("{}/gid_attrs/ndevs/{}", port, i), entry.interface);
    // Not in the real sysfs: what the device itself wants to know again.
    out.file(fmt::format("{}/gid_attrs/strait/{}", port, i),
             fmt::format("{} {}", entry.interface_index, entry.mtu_bytes));
  }
}

void write_device(Writer& out, unsigned device, const TreeSettings& settings) {
  const std::string pci = bus() + "/" + slot(device);
  out.file(pci + "/vendor", "0x15b3");
  out.file(pci + "/device", "0x1019");
  out.file(pci + "/subsystem_vendor", "0x15b3");
  out.file(pci + "/subsystem_device", "0x0008");
  out.file(pci + "/class", "0x020000");
  out.file(pci + "/revision", "0x00");
  out.file(pci + "/modalias", "pci:v000015B3d00001019sv000015B3sd00000008bc02sc00i00");
  out.file(pci + "/irq", "0");
  out.file(pci + "/resource", no_resources());
  out.file(pci + "/config", configuration());
  out.file(pci + "/numa_node", "-1");
  out.file(pci + "/current_link_speed", "16.0 GT/s PCIe");
  out.file(pci + "/max_link_speed", "16.0 GT/s PCIe");
  out.file(pci + "/current_link_width", "16");
  out.file(pci + "/max_link_width", "16");
  out.file(pci + "/uevent",
           fmt::format("DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_ID=15B3:1019\nPCI_SUBSYS_ID=15B3:0008\nPCI_SLOT_NAME={}",
                       slot(device)));
  // The network interface of a RoCE device. Programs take the device's IP address from there.
  const GidEntry& first = settings.gids.front();
  out.file(fmt::format("{}/net/{}/ifindex", pci, first.interface), fmt::format("{}", first.interface_index));
  out.file(fmt::format("{}/net/{}/dev_port", pci, first.interface), "0");
  out.file(fmt::format("{}/net/{}/mtu", pci, first.interface), fmt::format("{}", first.mtu_bytes));
  out.link("/sys/bus/pci/devices/" + slot(device), pci);
  out.claim("/sys/bus/pci/devices/" + slot(device));  // last: a claim makes a folder where there is nothing

  const std::string name = fmt::format("strait{}", device);
  const std::string ib = pci + "/infiniband/" + name;
  const std::uint64_t guid = node_guid(device);
  const std::string guid_text =
      fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xffff, guid >> 16 & 0xffff, guid & 0xffff);
  out.file(ib + "/node_type", "1: CA");
  out.file(ib + "/node_guid", guid_text);
  out.file(ib + "/sys_image_guid", guid_text);
  out.file(ib + "/node_desc", name);
  out.file(ib + "/fw_ver", kFirmware);
  out.file(ib + "/board_id", "STRAIT0000000001");
  out.file(ib + "/hca_type", "MT4121");
  out.file(ib + "/hw_rev", "0");
  out.link(ib + "/device", pci);
  write_port(out, ib + "/ports/1", settings);
  out.link("/sys/class/infiniband/" + name, ib);

  const std::string node = fmt::format("uverbs{}", device);
  const std::string verbs = pci + "/infiniband_verbs/" + node;
  out.file(verbs + "/ibdev", name);
  out.file(verbs + "/dev", fmt::format("{}:{}", kMajor, kFirstMinor + device));
  out.file(verbs + "/abi_version", "1");
  out.file(verbs + "/uevent",
           fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=infiniband/{}", kMajor, kFirstMinor + device, node));
  out.link(verbs + "/device", pci);
  out.link("/sys/class/infiniband_verbs/" + node, verbs);
  out.node("/dev/infiniband/" + node, device_number(device));
}

// "12 1500"
bool parse_pair(std::string_view text, unsigned& first, std::uint32_t& second) {
  const char* const end = text.data() + text.size();
  const auto a = std::from_chars(text.data(), end, first);
  if (a.ec != std::errc() || a.ptr == end || *a.ptr != ' ') return false;
  return std::from_chars(a.ptr + 1, end, second).ec == std::errc();
}

}  // namespace

std::uint64_t device_number(unsigned device) {
  return std::uint64_t{kMajor} << 8 | (kFirstMinor + device);
}

std::uint64_t node_guid(unsigned device) {
  return 0x525400fffe123400ull + device;
}

Status write_tree(host::Root& root, const TreeSettings& settings) {
  if (settings.devices == 0 || settings.devices > kMostDevices)
    return fail(Code::invalid, "{} devices were asked for: 1 to {} are possible", settings.devices, kMostDevices);
  if (settings.gids.empty()) return fail(Code::invalid, "a device without a GID reaches nobody");
  Writer out(root);
  for (const std::string& path : {std::string("/sys/class/infiniband"), std::string("/sys/class/infiniband_verbs"),
                                  std::string("/dev/infiniband"), bus()})
    out.claim(path);
  out.file("/sys/class/infiniband_verbs/abi_version", "6");
  for (unsigned device = 0; device < settings.devices; ++device) write_device(out, device, settings);
  return out.finish();
}

Result<std::vector<GidEntry>> read_gids(const std::string& root, unsigned device) {
  const std::string port = fmt::format("{}/sys/class/infiniband/strait{}/ports/1", root, device);
  std::vector<GidEntry> out;
  for (unsigned i = 0; i < 256; ++i) {
    const std::string text = sys::read_small_file(fmt::format("{}/gids/{}", port, i).c_str());
    if (text.empty()) break;
    GidEntry entry;
    STRAIT_TRY(entry.address, parse_gid(text));
    entry.interface = sys::read_small_file(fmt::format("{}/gid_attrs/ndevs/{}", port, i).c_str());
    while (!entry.interface.empty() && entry.interface.back() == '\n') entry.interface.pop_back();
    const std::string numbers = sys::read_small_file(fmt::format("{}/gid_attrs/strait/{}", port, i).c_str());
    if (!parse_pair(numbers, entry.interface_index, entry.mtu_bytes))
      return fail(Code::invalid, "{}/gid_attrs/strait/{} says \"{}\": two numbers are expected", port, i, numbers);
    out.push_back(std::move(entry));
  }
  if (out.empty()) {
    return with_remedy(fail(Code::invalid, "{} has no GIDs", port),
                       "start the program with `strait run`, which writes them");
  }
  return out;
}

}  // namespace strait::soft::uverbs
