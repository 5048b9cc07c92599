// SPDX-License-Identifier: BSD-2-Clause
#include "signals.hpp"

#include <signal.h>

#include <array>
#include <atomic>

namespace usdt_trace {
namespace {

std::atomic<int> signals_seen{0};

void on_signal(int number) {
  if (signals_seen.fetch_add(1) == 0) return;
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void on_dump(int) {
  int none = 0;
  signals_seen.compare_exchange_strong(none, 1);
}

/// A signal that means something else to the tool than to the command it starts.
struct Changed {
  int number;
  void (*handler)(int);
  bool keep_ignored = false;  ///< ignored at the start stays so
  bool done = false;
  struct sigaction before = {};
};

// nohup(1) ignores SIGHUP so that its program survives the terminal. SIGINT is taken even where it was ignored: shells
// do that to every background job of a script, and `kill -INT` is how such a trace is told to end.
std::array<Changed, 6> all{{{SIGUSR1, on_dump},
                            {SIGINT, on_signal},
                            {SIGTERM, on_signal},
                            {SIGHUP, on_signal, true},
                            {SIGPIPE, SIG_IGN},
                            {SIGXFSZ, SIG_IGN}}};

void change(void (*handler)(int)) {
  for (Changed& each : all) {
    if (each.handler != handler || each.done) continue;
    ::sigaction(each.number, nullptr, &each.before);
    if (each.keep_ignored && each.before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = handler;
    each.done = ::sigaction(each.number, &action, nullptr) == 0;
  }
}

}  // namespace

void ignore_write_signals() { change(SIG_IGN); }

void catch_signals() { change(on_signal); }

void catch_dump_signal() { change(on_dump); }

bool end_asked_for() noexcept { return signals_seen.load() > 0; }

void restore_signals() noexcept {
  for (const Changed& each : all)
    if (each.done) ::sigaction(each.number, &each.before, nullptr);
}

}  // namespace usdt_trace
