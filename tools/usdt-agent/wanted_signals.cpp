// SPDX-License-Identifier: BSD-2-Clause
#include "wanted_signals.hpp"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

namespace usdt_agent {

WantedSignals::WantedSignals() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&wanted, number);
  ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  for (const int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_IGN);
  fd_ = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

WantedSignals::~WantedSignals() {
  if (fd_ >= 0) ::close(fd_);
}

bool WantedSignals::end_is_asked_for() {
  read();
  return end_;
}

bool WantedSignals::take_reload() {
  read();
  return std::exchange(reload_, false);
}

void WantedSignals::read() {
  signalfd_siginfo came{};
  while (::read(fd_, &came, sizeof came) == static_cast<ssize_t>(sizeof came))
    (came.ssi_signo == SIGHUP ? reload_ : end_) = true;
}

}  // namespace usdt_agent
