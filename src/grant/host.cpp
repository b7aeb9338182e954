// SPDX-License-Identifier: Apache-2.0
#include "grant/host.hpp"

#include <algorithm>
#include <span>

#include "sys/aligned.hpp"
#include "sys/private_file.hpp"
#include "sys/process.hpp"
#include "sys/socket.hpp"

namespace strait::grant {
namespace {

constexpr std::size_t kFirstSlots = 64;

}  // namespace

Result<std::shared_ptr<Host>> Host::visit(const NodeId& node, sys::Deadline deadline, const sys::Calls& calls,
                                          std::string no_copies, WhoIs who_is) {
  std::shared_ptr<Host> host(new Host());
  host->no_copies_because_ = std::move(no_copies);
  STRAIT_TRY(sys::Fd socket, sys::unix_connect(door_name(node), deadline, calls));
  host->socket_ = sys::ProcessFd(std::move(socket));
  STRAIT_CHECK(host->greet(deadline, calls, who_is));
  const Locked lock(host->mutex_);
  host->own_table_ = std::make_unique<WindowTable>(kFirstSlots);
  host->table_.store(host->own_table_.get());
  return host;
}

Host::~Host() {
  if (!fork_mark_.in_child()) return;
  marks_.release();
  ledger_.release();
}

Status Host::greet(sys::Deadline deadline, const sys::Calls& calls, WhoIs who_is) {
  // The door's name is no secret: whoever was first to take it listens there. Another user is told nothing.
  STRAIT_TRY(const sys::PeerCredentials who, who_is(socket_.get()));
  if (who.uid != sys::user_id())
    return fail(Code::denied, "the owner's process {} belongs to user {}: grants are for processes of the same user",
                who.pid, who.uid);
  pid_ = who.pid;
  // The owner only reads the marks: sealed like everything that crosses, and written through this mapping.
  STRAIT_TRY(sys::PublishedFile marks, sys::make_published_file("strait marks", kMarksBytes, calls));
  Note hello;
  hello.what = What::hello;
  hello.barriers = sys::register_for_barriers() ? 1 : 0;
  const int with = marks.fd.get();
  STRAIT_CHECK(send_note(socket_.get(), hello, std::span(&with, 1)));
  if (!sys::wait_ready(socket_.get(), false, deadline))
    return fail(Code::timeout, "the owner's Node did not answer in time");
  STRAIT_TRY(sys::Packet packet, sys::receive_packet(socket_.get(), sizeof(Note)));
  STRAIT_TRY(const Note note, read_note(packet.bytes));
  if (note.what != What::welcome || packet.fds.size() != 2)
    return fail(Code::invalid, "the owner's Node answered a greeting with something else");
  STRAIT_CHECK(sys::check_sealed(packet.fds[0].get(), kLedgerBytes));
  STRAIT_TRY(ledger_, sys::map_file(packet.fds[0].get(), 0, kLedgerBytes, sys::Protect::read, calls));
  STRAIT_TRY(wake_, sys::Event::take_over(std::move(packet.fds[1])));
  marks_ = std::move(marks.memory);
  needs_fence_ = note.barriers == 0;
  if (no_copies_because_.empty() && note.text[0] != '\0') no_copies_because_ = note.text.data();  // the owner's reason
  if (!no_copies_because_.empty()) return {};
  if (pid_ == 0) {
    no_copies_because_ = "it is in another PID namespace, out of reach of process_vm_readv";
    return {};
  }
  // What copies will do, on one word.
  std::uint64_t seen = 0;
  const iovec near{&seen, sizeof seen};
  const iovec far{reinterpret_cast<void*>(note.probe_address), sizeof seen};
  if (const Status read = sys::read_process(pid_, std::span(&near, 1), std::span(&far, 1), calls); !read) {
    no_copies_because_ = read.error().text;
  } else if (seen != note.probe_value) {
    no_copies_because_ = fmt::format("process {} is not the one that answered", pid_);
  }
  return {};
}

Mark* Host::take_mark() {
  const Locked lock(mutex_);
  for (std::uint32_t i = 0; i < kMarks; ++i) {
    if ((taken_marks_ >> i & 1) != 0) continue;
    taken_marks_ |= std::uint64_t{1} << i;
    return &mark(i);
  }
  return nullptr;
}

void Host::give_back(Mark* taken) {
  const Locked lock(mutex_);
  taken_marks_ &= ~(std::uint64_t{1} << (taken - &mark(0)));
}

bool Host::is_there() const {
  return !sys::peer_closed(socket_.get());
}

Result<Way> Host::ask(const Subject& subject, const Proof& proof, sys::Deadline deadline, Way only) {
  Note note;
  note.what = What::ask;
  note.way = only;
  note.subject = subject;
  note.proof = proof;
  Locked lock(mutex_);
  note.number = next_question_++;
  if (gone_.load()) return fail(Code::gone, "process {} is gone", pid_);
  STRAIT_CHECK(send_note(socket_.get(), note));
  questions_[note.number];
  while (!questions_[note.number] && !gone_.load() && !deadline.passed()) lock.wait(answered_, deadline.left_ns());
  std::optional<Answer> answer = std::move(questions_[note.number]);
  questions_.erase(note.number);
  if (!answer) {
    if (gone_.load()) return fail(Code::gone, "process {} is gone", pid_);
    return fail(Code::timeout, "process {} did not answer in time", pid_);
  }
  if (answer->note.what == What::refused) return Error{answer->note.code, 0, 0, answer->note.text.data(), {}};
  return open_locked(subject, std::move(*answer));
}

Result<Way> Host::open_locked(const Subject& subject, Answer answer) {
  const Note& note = answer.note;
  if (note.entry >= kLedgerEntries || note.entry == kSleepersEntry || note.stamp == 0)
    return fail(Code::invalid, "process {} granted entry {} of {}", pid_, note.entry, kLedgerEntries);
  auto window = std::make_unique<Window>();
  window->subject = subject;
  window->way = note.way;
  window->stamp = note.stamp;
  window->entry = reinterpret_cast<const LedgerEntry*>(ledger_.data()) + note.entry;
  const Way way = note.way;
  if (way == Way::map) {
    const std::size_t page = sys::page_bytes();
    if (answer.fds.empty() || answer.fds.size() > 2)
      return fail(Code::invalid, "process {} sent {} descriptors with a map grant", pid_, answer.fds.size());
    STRAIT_CHECK(sys::check_sealed(answer.fds[0].get(), sys::round_up(subject.length_bytes, page)));
    const bool writes = answer.fds.size() == 2 || sys::is_writable_for_peers(answer.fds[0].get());
    STRAIT_TRY(window->memory_mapping,
               sys::map_file_aligned(answer.fds[0].get(), sys::round_up(subject.length_bytes, page),
                                     writes ? sys::Protect::read_write : sys::Protect::read));
    sys::keep_from_children(window->memory_mapping);
    window->memory = window->memory_mapping.data();
    if (answer.fds.size() == 2) {
      STRAIT_CHECK(sys::check_sealed(answer.fds[1].get(), sizeof(SignalPage)));
      STRAIT_TRY(window->signals_mapping, sys::map_file(answer.fds[1].get(), 0, sys::round_up(sizeof(SignalPage), page),
                                                        sys::Protect::read_write));
      sys::keep_from_children(window->signals_mapping);
      window->signals = reinterpret_cast<SignalPage*>(window->signals_mapping.data());
    }
  } else if (way == Way::copy) {
    if (!no_copies_because_.empty()) return fail(Code::unsupported, "{}", no_copies_because_);
  } else {
    return fail(Code::invalid, "process {} granted nothing", pid_);
  }
  add_locked(std::move(window));
  return way;
}

void Host::add_locked(std::unique_ptr<Window> window) {
  const Subject& subject = window->subject;
  // Asked for twice: the first stays as good as the second.
  if (Window* const before = own_table_->find(subject.region_id, subject.address, subject.rkey);
      before != nullptr && !before->dead)
    return;
  if ((own_table_->used() + 1) * 2 > own_table_->slots()) {
    std::size_t live = 1;
    for (const auto& [stamp, windows] : windows_) live += windows.size();
    std::size_t slots = kFirstSlots;
    while (slots < live * 4) slots *= 2;
    auto larger = std::make_unique<WindowTable>(slots);
    for (const auto& [stamp, windows] : windows_) {
      for (const auto& one : windows) larger->put(one.get());
    }
    table_.store(larger.get(), std::memory_order_seq_cst);
    // After it: who reads the new number finds nothing in the old table. Before the marks: who read the old number is
    // waited for.
    next_generation_locked();
    std::swap(own_table_, larger);
    if (!needs_fence_) (void)sys::barrier_everywhere();
    retired_.push_back({nullptr, std::move(larger), marks_now(), 0});
  }
  own_table_->put(window.get());
  if (window->way == Way::map) has_maps_.store(true, std::memory_order_relaxed);
  windows_[window->stamp].push_back(std::move(window));
}

void Host::next_generation_locked() {
  ++generation_;
  for (std::uint32_t i = 0; i < kMarks; ++i) mark(i).generation.store(generation_, std::memory_order_seq_cst);
}

std::vector<std::uint64_t> Host::marks_now() const {
  std::vector<std::uint64_t> out(kMarks);
  for (std::uint32_t i = 0; i < kMarks; ++i) out[i] = mark(i).word.load(std::memory_order_seq_cst);
  return out;
}

// The owner has ended the grant, made its barrier, and then told us: who is not inside now finds it ended. The window
// itself may still be met in the table, by its number in the ledger never as good.
void Host::on_revoked_locked(std::uint64_t stamp) {
  const auto found = windows_.find(stamp);
  if (found == windows_.end()) {
    retired_.push_back({nullptr, nullptr, marks_now(), stamp});  // refused meanwhile, or never opened
    return;
  }
  for (std::unique_ptr<Window>& window : found->second) {
    window->dead = true;
    retired_.push_back({std::move(window), nullptr, marks_now(), 0});
  }
  retired_.push_back({nullptr, nullptr, marks_now(), stamp});
  windows_.erase(found);
}

bool Host::let_go_locked() {
  bool all = true;
  for (Retired& one : retired_) {
    bool seen = true;
    for (std::uint32_t i = 0; i < kMarks; ++i) {
      if (one.marks.empty() || one.marks[i] % 2 == 0) continue;
      seen = seen && mark(i).word.load(std::memory_order_acquire) != one.marks[i];
    }
    if (!seen) {
      all = false;
      continue;
    }
    one.marks.clear();
    if (one.window) {
      one.window->memory_mapping.reset();
      one.window->signals_mapping.reset();
    }
    if (one.stamp != 0) {
      Note note;
      note.what = What::let_go;
      note.stamp = std::exchange(one.stamp, 0);
      (void)send_note(socket_.get(), note);
    }
  }
  // A dead window stays while a table names it that a lane may be looking into: the one in use, or one before it.
  std::erase_if(retired_, [](const Retired& one) { return one.marks.empty() && !one.window; });
  const bool old_table = std::any_of(retired_.begin(), retired_.end(), [](const Retired& one) { return !!one.table; });
  std::erase_if(retired_, [&](const Retired& one) STRAIT_REQUIRES(mutex_) {
    if (!one.marks.empty() || old_table) return false;
    const Subject& subject = one.window->subject;
    return own_table_->find(subject.region_id, subject.address, subject.rkey) != one.window.get();
  });
  return all;
}

bool Host::listen(bool& again) {
  const Locked lock(mutex_);
  for (;;) {
    auto packet = sys::receive_packet(socket_.get(), sizeof(Note));
    if (!packet) {
      if (packet.error().code == Code::again) break;
      gone_.store(true);
      next_generation_locked();  // nothing that was found before is to be used
      answered_.notify_all();
      return false;
    }
    const auto note = read_note(packet->bytes);
    if (!note) continue;
    if (note->what == What::revoked) {
      on_revoked_locked(note->stamp);
    } else if (note->what == What::granted || note->what == What::refused) {
      const auto question = questions_.find(note->number);
      if (question == questions_.end()) continue;  // nobody waits for it any more: it stays unopened
      question->second = Answer{*note, std::move(packet->fds)};
      answered_.notify_all();
    }
  }
  again = !let_go_locked();
  return true;
}

std::size_t Host::window_count() {
  const Locked lock(mutex_);
  std::size_t n = 0;
  for (const auto& [stamp, windows] : windows_) n += windows.size();
  return n;
}

}  // namespace strait::grant
