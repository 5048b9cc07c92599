// SPDX-License-Identifier: BSD-2-Clause
#include "signals.hpp"

#include <signal.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace usdt_trace {
namespace {

using Nanoseconds = std::int64_t;

std::atomic<Nanoseconds> first_signal{0};  ///< when it came; 0: none did
std::atomic<usdt::Session*> session_to_end{nullptr};

Nanoseconds monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * Nanoseconds{1'000'000'000} + now.tv_nsec;
}

/// timeout(1) signals its command and then its process group, and the command with it; service managers send SIGHUP
/// behind SIGTERM. Nobody presses Ctrl-C twice so fast.
constexpr Nanoseconds kOneRequest = 100'000'000;

/// True: it is the first that asks, at `now`; else `first` is when that came.
bool ask_for_end(Nanoseconds now, Nanoseconds& first) {
  first = 0;
  const bool asks = first_signal.compare_exchange_strong(first, now);
  if (usdt::Session* session = session_to_end.load(); session != nullptr) session->request_stop();
  return asks;
}

void on_signal(int number) {
  const Nanoseconds now = monotonic_now();
  Nanoseconds first = 0;
  if (ask_for_end(now, first) || now - first < kOneRequest) return;
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void on_dump(int) {
  Nanoseconds first = 0;
  ask_for_end(monotonic_now(), first);
}

/// From when on a signal means something else to the tool than to the command it starts.
enum class From { started, written, attached, dumped, held };

struct Changed {
  int number;
  From from;
  void (*handler)(int);
  bool keep_ignored = false;  ///< ignored at the start stays so
  bool done = false;
  struct sigaction before = {};
};

// nohup(1) ignores SIGHUP so that its program survives the terminal. SIGINT is taken even where it was ignored: shells
// do that to every background job of a script, and `kill -INT` is the way to end such a trace. Ctrl-Z, or writing to a
// terminal from the background, would stop the only process that can release held programs, the user's next command
// among them.
std::array<Changed, 10> changed_signals{{{SIGCHLD, From::started, SIG_DFL},
                                         {SIGUSR1, From::dumped, on_dump},
                                         {SIGINT, From::attached, on_signal},
                                         {SIGTERM, From::attached, on_signal},
                                         {SIGHUP, From::attached, on_signal, true},
                                         {SIGPIPE, From::written, SIG_IGN},
                                         {SIGXFSZ, From::written, SIG_IGN},
                                         {SIGTSTP, From::held, SIG_IGN},
                                         {SIGTTIN, From::held, SIG_IGN},
                                         {SIGTTOU, From::held, SIG_IGN}}};

void change(From from) {
  for (Changed& each : changed_signals) {
    if (each.from != from || each.done) continue;
    ::sigaction(each.number, nullptr, &each.before);
    if (each.keep_ignored && each.before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = each.handler;
    each.done = ::sigaction(each.number, &action, nullptr) == 0;
  }
}

sigset_t inherited_mask;
bool mask_changed = false;

}  // namespace

void take_inherited_signals() {
  change(From::started);
  sigset_t ours;
  ::sigemptyset(&ours);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&ours, number);
  mask_changed = ::pthread_sigmask(SIG_UNBLOCK, &ours, &inherited_mask) == 0;
}

void ignore_write_signals() { change(From::written); }

void catch_signals() { change(From::attached); }

/// A signal may have come before.
EndsBySignal::EndsBySignal(usdt::Session& session) {
  session_to_end = &session;
  if (end_asked_for()) session.request_stop();
}

EndsBySignal::~EndsBySignal() { session_to_end = nullptr; }

void catch_dump_signal() {
  change(From::dumped);
  sigset_t dump;
  ::sigemptyset(&dump);
  ::sigaddset(&dump, SIGUSR1);
  ::pthread_sigmask(SIG_UNBLOCK, &dump, nullptr);
}

void ignore_stop_signals() { change(From::held); }

bool end_asked_for() noexcept { return first_signal.load() != 0; }

void restore_signals() noexcept {
  for (const Changed& each : changed_signals)
    if (each.done) ::sigaction(each.number, &each.before, nullptr);
  if (mask_changed) ::sigprocmask(SIG_SETMASK, &inherited_mask, nullptr);
}

}  // namespace usdt_trace
