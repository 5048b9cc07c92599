// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <pthread.h>

#include <csignal>

namespace usdt::sys {

/// Blocks every signal of the calling thread while it lives, and so of threads that it starts meanwhile: the
/// application's handlers run in threads of the application's own.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace usdt::sys
