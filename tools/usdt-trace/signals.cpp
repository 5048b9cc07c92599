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

/// From when on a signal means something else to the tool than to the command it starts.
enum class From { written, attached, dumped, held };

struct Changed {
  int number;
  From from;
  void (*handler)(int);
  bool keep_ignored = false;  ///< ignored at the start stays so
  bool done = false;
  struct sigaction before = {};
};

// nohup(1) ignores SIGHUP so that its program survives the terminal. SIGINT is taken even where it was ignored: shells
// do that to every background job of a script, and `kill -INT` is how such a trace is told to end. Ctrl-Z, or writing
// to a terminal from the background, would stop who alone can let held programs go on, the user's next command among
// them.
std::array<Changed, 9> all{{{SIGUSR1, From::dumped, on_dump},
                            {SIGINT, From::attached, on_signal},
                            {SIGTERM, From::attached, on_signal},
                            {SIGHUP, From::attached, on_signal, true},
                            {SIGPIPE, From::written, SIG_IGN},
                            {SIGXFSZ, From::written, SIG_IGN},
                            {SIGTSTP, From::held, SIG_IGN},
                            {SIGTTIN, From::held, SIG_IGN},
                            {SIGTTOU, From::held, SIG_IGN}}};

void change(From from) {
  for (Changed& each : all) {
    if (each.from != from || each.done) continue;
    ::sigaction(each.number, nullptr, &each.before);
    if (each.keep_ignored && each.before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = each.handler;
    each.done = ::sigaction(each.number, &action, nullptr) == 0;
  }
}

}  // namespace

void ignore_write_signals() { change(From::written); }

void catch_signals() { change(From::attached); }

void catch_dump_signal() { change(From::dumped); }

void ignore_stop_signals() { change(From::held); }

bool end_asked_for() noexcept { return signals_seen.load() > 0; }

void restore_signals() noexcept {
  for (const Changed& each : all)
    if (each.done) ::sigaction(each.number, &each.before, nullptr);
}

}  // namespace usdt_trace
