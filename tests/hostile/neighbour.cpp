// SPDX-License-Identifier: Apache-2.0
// A verbs program, good or bad, at the command of a test. It knows nothing of strait but for what is documented.
//
// Lines in, lines out: "ready" first, then one line for every command, "ok ..." or "error SENTENCE". ID is a number
// that the test chooses for a queue pair; GID is 32 hexadecimal digits; the other numbers are decimal.
//
//   qp ID                              -> qpn= gid= rkey= va=
//   connect ID GID QPN TIMEOUT RETRIES
//   write|read|send ID BYTES VA RKEY SEED
//   receive ID BYTES
//   wait ID MILLISECONDS               -> status=N, -1: nothing came
//   holds ID BYTES SEED                -> yes=0|1         is that what the memory begins with?
//   strays                             -> strays=N        bytes next to all registered memory that were changed
//   flood ID BYTES VA RKEY             writes without end, in a thread, until one fails
//   grants SEED RANDOM|NUMBERED        and so on: see acts.hpp
//   queue ID SEED | ioctls SEED COUNT | cm SEED COUNT | close | rawclose
//   fork                               a child uses the parent's queue pairs and ends; -> status= of the child
//   forkstay                           a child that stays, with everything it inherited; -> pid=
//   cm_listen PORT | cm_connect PORT | cm_accept   by librdmacm, at 127.0.0.1
//   cm_event MILLISECONDS              -> event=NAME      CONNECT_REQUEST and so on; NONE: nothing came
//   cpu MILLISECONDS                   -> percent=        of a core, while it does nothing
//   quit
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>

#include "acts.hpp"
#include "meeting.hpp"
#include "queue.hpp"

namespace hostile {
namespace {

std::string gid_text(const ibv_gid& gid) {
  char text[33];
  for (int i = 0; i < 16; ++i) std::snprintf(text + 2 * i, 3, "%02x", gid.raw[i]);
  return text;
}

bool parse_gid(const std::string& text, ibv_gid& out) {
  if (text.size() != 32) return false;
  for (std::size_t i = 0; i < 16; ++i)
    out.raw[i] = static_cast<std::uint8_t>(std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
  return true;
}

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

class Neighbour {
 public:
  std::string begin() { return open_device(device_); }

  std::string answer(const std::string& line) {
    std::istringstream in(line);
    std::string command;
    in >> command;
    if (command == "qp") return make(in);
    if (command == "connect") return connect(in);
    if (command == "write") return post(in, IBV_WR_RDMA_WRITE);
    if (command == "read") return post(in, IBV_WR_RDMA_READ);
    if (command == "send") return post(in, IBV_WR_SEND);
    if (command == "receive") return said(find(in)->receive(number(in)));
    if (command == "wait") {
      Queue* const queue = find(in);
      return "ok status=" + std::to_string(queue->wait(static_cast<int>(number(in))));
    }
    if (command == "holds") {
      const Queue* const queue = find(in);
      const std::uint32_t bytes = number(in);
      return queue->holds(bytes, static_cast<std::uint8_t>(number(in))) ? "ok yes=1" : "ok yes=0";
    }
    if (command == "strays") {
      std::size_t count = 0;
      for (const auto& [id, queue] : queues_) count += queue.strays();
      return "ok strays=" + std::to_string(count);
    }
    if (command == "flood") return flood(in);
    if (command == "fork") return fork_user(in);
    if (command == "forkstay") return fork_idler();
    if (command == "cm_listen") return said(meeting_.listen(static_cast<int>(number(in))));
    if (command == "cm_connect") return said(meeting_.connect(static_cast<int>(number(in))));
    if (command == "cm_accept") return said(meeting_.accept());
    if (command == "cm_event") return "ok event=" + meeting_.event(static_cast<int>(number(in)));
    if (command == "cpu") {
      const double before = cpu_seconds();
      const std::uint32_t milliseconds = number(in);
      ::usleep(milliseconds * 1000);
      return "ok percent=" + std::to_string((cpu_seconds() - before) * 1e5 / milliseconds);
    }
    return misbehave(command, in);
  }

 private:
  static std::string said(const std::string& failure) { return failure.empty() ? "ok" : "error " + failure; }
  static std::uint32_t number(std::istringstream& in) {
    std::uint32_t value = 0;
    in >> value;
    return value;
  }
  Queue* find(std::istringstream& in) { return &queues_[static_cast<int>(number(in))]; }

  std::string make(std::istringstream& in) {
    Queue* const queue = find(in);
    if (const std::string failure = queue->make(device_); !failure.empty()) return "error " + failure;
    return "ok qpn=" + std::to_string(queue->qp()->qp_num) + " gid=" + gid_text(device_.gid) +
           " rkey=" + std::to_string(queue->mr()->rkey) +
           " va=" + std::to_string(reinterpret_cast<std::uintptr_t>(queue->memory()));
  }

  std::string connect(std::istringstream& in) {
    Queue* const queue = find(in);
    std::string text;
    in >> text;
    ibv_gid gid{};
    if (!parse_gid(text, gid)) return "error no GID";
    const std::uint32_t qpn = number(in);
    const std::uint32_t timeout = number(in);
    return said(queue->connect(gid, qpn, timeout, number(in)));
  }

  std::string post(std::istringstream& in, ibv_wr_opcode opcode) {
    Queue* const queue = find(in);
    const std::uint32_t bytes = number(in);
    std::uint64_t va = 0;
    in >> va;
    const std::uint32_t rkey = number(in);
    return said(queue->post(opcode, bytes, va, rkey, static_cast<std::uint8_t>(number(in))));
  }

  std::string flood(std::istringstream& in) {
    Queue* const queue = find(in);
    const std::uint32_t bytes = number(in);
    std::uint64_t va = 0;
    in >> va;
    const std::uint32_t rkey = number(in);
    std::atomic<int> written{0};
    std::thread([=, &written] {
      for (int i = 0; queue->post(IBV_WR_RDMA_WRITE, bytes, va, rkey, 9).empty() && queue->wait(60'000) == 0; ++i) {
        if (i == 3) written = 1;
      }
      for (;;) ::sleep(1000);
    }).detach();
    while (written == 0) ::usleep(1000);
    return "ok";
  }

  // What the child does is refused, or fails; it must not hang, and the parent must not notice.
  std::string fork_user(std::istringstream&) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (auto& [id, queue] : queues_) {
        (void)queue.post(IBV_WR_RDMA_WRITE, 64, 0, 0, 1);
        (void)queue.wait(20);
        (void)ibv_destroy_qp(queue.qp());
      }
      Device own;
      const bool opened = open_device(own).empty();
      std::exit(opened ? 0 : 7);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return "error no child";
    return "ok status=" + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }

  static std::string fork_idler() {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(0);
      ::close(1);
      ::close(2);
      for (;;) ::sleep(1000);
    }
    return child < 0 ? "error no child" : "ok pid=" + std::to_string(child);
  }

  std::string misbehave(const std::string& how, std::istringstream& in) {
    if (how == "grants") {
      Dice dice(number(in));
      std::string kind;
      in >> kind;
      return "ok rings=" + std::to_string(scribble_grants(dice, kind == "NUMBERED"));
    }
    if (how == "queue") {
      const Queue* const queue = find(in);
      Dice dice(number(in));
      return said(scribble_queue(*queue, dice));
    }
    if (how == "ioctls") {
      Dice dice(number(in));
      call_ioctls(device_, dice, static_cast<int>(number(in)));
      return "ok";
    }
    if (how == "cm") {
      Dice dice(number(in));
      return said(command_cm(dice, static_cast<int>(number(in))));
    }
    if (how == "close" || how == "rawclose") {
      close_everything(how == "rawclose");
      return "ok";
    }
    return "error there is no command " + how;
  }

  Device device_;
  std::map<int, Queue> queues_;
  Meeting meeting_;
};

}  // namespace
}  // namespace hostile

int main() {
  hostile::Neighbour neighbour;
  if (const std::string failure = neighbour.begin(); !failure.empty()) {
    std::cout << "error " << failure << std::endl;
    return 1;
  }
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "quit") return 0;
    std::cout << neighbour.answer(line) << std::endl;
  }
  return 3;
}
