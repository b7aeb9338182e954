// SPDX-License-Identifier: Apache-2.0
#include "grant/door.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "sys/host.hpp"
#include "sys/private_file.hpp"
#include "sys/process.hpp"
#include "sys/socket.hpp"

namespace strait::grant {
namespace {

constexpr std::int64_t kLookNs = 1'000'000;  // at marks and the clock; who lets go says so

}  // namespace

struct Door::Guest {
  sys::ProcessFd socket;
  std::int32_t pid = 0;
  sys::Mapping marks;  // valid once it has said hello
  std::vector<std::uint64_t> stamps;

  [[nodiscard]] const std::atomic<std::uint64_t>& mark(std::uint32_t i) const {
    return reinterpret_cast<const Mark*>(marks.data())[i].word;
  }
};

Door::Door(Clerk& clerk, DoorLimits limits, WhoIs who_is) : clerk_(clerk), limits_(limits), who_is_(who_is) {}

Result<std::unique_ptr<Door>> Door::open(const NodeId& node, Clerk& clerk, DoorLimits limits, WhoIs who_is) {
  std::unique_ptr<Door> door(new Door(clerk, limits, who_is));
  STRAIT_TRY(door->ledger_, sys::make_published_file("strait ledger", kLedgerBytes));
  STRAIT_TRY(door->wake_, sys::Event::make());
  STRAIT_CHECK(sys::fill_random(std::as_writable_bytes(std::span(&door->probe_, 1))));
  STRAIT_TRY(sys::Fd listener, sys::unix_listen(door_name(node)));
  door->listener_ = sys::ProcessFd(std::move(listener));
  door->barriers_ = sys::register_for_barriers() && sys::barrier_everywhere();
  Door* const self = door.get();
  STRAIT_CHECK(door->thread_.start([self] {
    self->serve_all();
    return std::int64_t{-1};
  }));
  STRAIT_CHECK(door->thread_.add(door->listener_.get()));
  return door;
}

Door::~Door() = default;

void Door::serve_all() {
  accept_all();
  // Only this thread takes guests away, so the pointers stay good without the lock.
  std::vector<Guest*> guests;
  {
    const Locked lock(mutex_);
    for (const auto& guest : guests_) guests.push_back(guest.get());
  }
  for (Guest* const guest : guests) {
    if (serve(*guest)) continue;
    const Locked lock(mutex_);
    forget_locked(*guest);
  }
}

void Door::accept_all() {
  for (;;) {
    auto socket = sys::accept_one(listener_.get());
    if (!socket) return;
    const auto who = who_is_(socket->get());
    const Locked lock(mutex_);
    // Who may not read this user's files may not map this user's memory.
    if (!who || who->uid != sys::user_id() || guests_.size() >= limits_.guests || !thread_.add(socket->get())) {
      ++counts_.refused;
      continue;
    }
    auto guest = std::make_unique<Guest>();
    guest->socket = sys::ProcessFd(std::move(*socket));
    guest->pid = who->pid;
    guests_.push_back(std::move(guest));
    ++counts_.guests;
  }
}

bool Door::serve(Guest& guest) {
  for (;;) {
    auto packet = sys::receive_packet(guest.socket.get(), sizeof(Note));
    if (!packet) return packet.error().code == Code::again;
    auto note = read_note(packet->bytes);
    const bool greeted = guest.marks.valid();
    if (note && note->what == What::hello && !greeted) {
      if (on_hello(guest, *note, std::move(packet->fds))) continue;
    } else if (note && note->what == What::ask && greeted && packet->fds.empty()) {
      on_ask(guest, *note);
      continue;
    } else if (note && note->what == What::let_go && greeted && packet->fds.empty()) {
      on_let_go(guest, note->stamp);
      continue;
    }
    const Locked lock(mutex_);
    ++counts_.garbage;
    return false;
  }
}

Status Door::on_hello(Guest& guest, const Note& note, std::vector<sys::Fd> fds) {
  if (fds.size() != 1) return fail(Code::invalid, "a greeting brings one descriptor, this one {}", fds.size());
  // A file that could be cut short would raise SIGBUS here.
  STRAIT_CHECK(sys::check_sealed(fds[0].get(), kMarksBytes));
  STRAIT_TRY(sys::Mapping marks, sys::map_file(fds[0].get(), 0, kMarksBytes, sys::Protect::read));
  Note welcome;
  welcome.what = What::welcome;
  welcome.number = note.number;
  welcome.probe_address = reinterpret_cast<std::uint64_t>(&probe_);
  welcome.probe_value = probe_;
  // Without barriers on both sides every lane pays for its own.
  const bool barriers = barriers_ && note.barriers != 0;
  welcome.barriers = barriers ? 1 : 0;
  say(welcome, clerk_.why_no_copies());
  const std::array<int, 2> with = {ledger_.fd.get(), wake_.fd()};
  STRAIT_CHECK(send_note(guest.socket.get(), welcome, with));
  const Locked lock(mutex_);
  guest.marks = std::move(marks);
  return {};
}

void Door::on_ask(Guest& guest, const Note& note) {
  auto offer = clerk_.on_ask(note.subject, note.proof, note.way);
  Status done = offer ? grant(guest, note, std::move(*offer)) : Status(offer.error());
  if (done) return;
  Note answer;
  answer.what = What::refused;
  answer.number = note.number;
  answer.code = done.error().code;
  say(answer, done.error().text);
  {
    const Locked lock(mutex_);
    ++counts_.refused;  // before it is told: who has the answer finds it counted
  }
  (void)send_note(guest.socket.get(), answer);  // a guest that does not read is dropped by its own silence
}

Status Door::grant(Guest& guest, const Note& note, Offer offer) {
  Note answer;
  answer.what = What::granted;
  answer.number = note.number;
  answer.subject = note.subject;
  answer.way = offer.way;
  {
    const Locked lock(mutex_);
    Granted* const granted = granted_locked(note.subject.region_id);
    if (granted == nullptr)
      return fail(Code::limit, "the owner's ledger is full: {} regions have grants", limits_.entries - 1);
    answer.stamp = granted->stamp;
    answer.entry = granted->entry;
    if (std::find(granted->holders.begin(), granted->holders.end(), &guest) == granted->holders.end()) {
      granted->holders.push_back(&guest);
      guest.stamps.push_back(granted->stamp);
    }
  }
  // Revoked between the Clerk's answer and the entry in the ledger: nobody else would end it.
  if (!clerk_.still_shared(note.subject)) {
    (void)revoke(note.subject.region_id, sys::Deadline::after_ns(0));
    return fail(Code::gone, "the region was revoked");
  }
  std::array<int, 2> with{};
  std::size_t n = 0;
  if (offer.memory.valid()) with[n++] = offer.memory.get();
  if (offer.signals.valid()) with[n++] = offer.signals.get();
  {
    const Locked lock(mutex_);
    ++(offer.way == Way::map ? counts_.maps : counts_.copies);  // before it is told, as above
  }
  return send_note(guest.socket.get(), answer, std::span(with.data(), n));
}

Door::Granted* Door::granted_locked(std::uint64_t region_id) {
  if (const auto found = granted_.find(region_id); found != granted_.end()) return &found->second;
  Granted made;
  if (!free_entries_.empty()) {
    made.entry = free_entries_.back();
    free_entries_.pop_back();
  } else if (next_entry_ < limits_.entries) {
    made.entry = next_entry_++;
  } else {
    return nullptr;
  }
  made.stamp = next_stamp_++;
  entry(made.entry).store(made.stamp, std::memory_order_release);
  regions_[made.stamp] = region_id;
  return &granted_.emplace(region_id, std::move(made)).first->second;
}

// Numbers of grants are never used twice: the entry may be somebody else's at once.
void Door::end_locked(std::uint64_t region_id, Granted& granted) {
  entry(granted.entry).store(0, std::memory_order_seq_cst);
  free_entries_.push_back(granted.entry);
  auto& leaving = leaving_[region_id];
  leaving.insert(leaving.end(), granted.holders.begin(), granted.holders.end());
}

void Door::on_let_go(Guest& guest, std::uint64_t stamp) {
  {
    const Locked lock(mutex_);
    const auto region = regions_.find(stamp);
    if (region == regions_.end()) return;
    // Of a grant that is still good it means nothing: the peer may ask again at any time.
    const auto leaving = leaving_.find(region->second);
    if (leaving == leaving_.end() || std::erase(leaving->second, &guest) == 0) return;
    std::erase(guest.stamps, stamp);
    if (leaving->second.empty()) {
      leaving_.erase(leaving);
      regions_.erase(region);
    }
  }
  let_go_.notify_all();
}

void Door::forget_locked(Guest& guest) {
  for (const std::uint64_t stamp : guest.stamps) {
    const auto region = regions_.find(stamp);
    if (region == regions_.end()) continue;
    const auto granted = granted_.find(region->second);
    if (granted != granted_.end() && granted->second.stamp == stamp) {
      std::erase(granted->second.holders, &guest);
      continue;
    }
    const auto leaving = leaving_.find(region->second);
    if (leaving != leaving_.end()) std::erase(leaving->second, &guest);
    if (leaving != leaving_.end() && !leaving->second.empty()) continue;
    if (leaving != leaving_.end()) leaving_.erase(leaving);
    regions_.erase(region);
  }
  std::erase_if(guests_, [&](const auto& one) { return one.get() == &guest; });
  let_go_.notify_all();
}

bool Door::is_held(std::uint64_t region_id) {
  const Locked lock(mutex_);
  return granted_.contains(region_id) || leaving_.contains(region_id);
}

DoorCounts Door::counts() {
  const Locked lock(mutex_);
  return counts_;
}

std::vector<Holdout> Door::revoke(std::uint64_t region_id, sys::Deadline deadline) {
  struct Seen {
    const Guest* guest;
    std::uint32_t mark;
    std::uint64_t value;
  };
  std::vector<Seen> inside;
  Locked lock(mutex_);
  if (const auto found = granted_.find(region_id); found != granted_.end()) {
    Granted granted = std::move(found->second);
    granted_.erase(found);
    end_locked(region_id, granted);
    ++counts_.revoked;
    // On systems without the barrier every lane pays for one between its mark and its look at the ledger.
    if (barriers_) (void)sys::barrier_everywhere();
    Note note;
    note.what = What::revoked;
    note.stamp = granted.stamp;
    note.entry = granted.entry;
    for (const Guest* const guest : granted.holders) {
      for (std::uint32_t i = 0; i < kMarks; ++i) {
        const std::uint64_t value = guest->mark(i).load(std::memory_order_seq_cst);
        if (value % 2 != 0) inside.push_back({guest, i, value});
      }
      (void)send_note(guest->socket.get(), note);
    }
    if (granted.holders.empty()) {
      leaving_.erase(region_id);
      regions_.erase(granted.stamp);
    }
  }
  for (;;) {
    const auto leaving = leaving_.find(region_id);
    if (leaving == leaving_.end()) return {};
    // Who left has forgotten its marks; a mark that moved belongs to an operation that found the grant ended.
    std::erase_if(inside, [&](const Seen& seen) {
      const bool here = std::find(leaving->second.begin(), leaving->second.end(), seen.guest) != leaving->second.end();
      return !here || seen.guest->mark(seen.mark).load(std::memory_order_acquire) != seen.value;
    });
    if (deadline.passed()) {
      std::vector<Holdout> out;
      for (const Guest* const guest : leaving->second) {
        const bool in =
            std::any_of(inside.begin(), inside.end(), [&](const Seen& seen) { return seen.guest == guest; });
        out.push_back({guest->pid, in});
      }
      counts_.holdouts += out.size();
      return out;
    }
    lock.wait(let_go_, std::min(deadline.left_ns(), kLookNs));
  }
}

}  // namespace strait::grant
