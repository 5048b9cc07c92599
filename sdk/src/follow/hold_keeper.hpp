// SPDX-License-Identifier: BSD-2-Clause
// Process that answers for one that holds programs and stands still. Private to follow/.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace usdt::follow {

/// A process of its own beside one that holds programs (ExecHold). A process that is stopped, by SIGSTOP or a debugger,
/// answers nothing; the kernel would hold every program of the machine until it goes on, the debugger's among them.
/// When there was no beat() for kPatienceMs, this one answers for it, and goes on answering until there is one. It ends
/// with the thread that started it, so that the descriptor it shares is closed with that process, however that ends. If
/// no process can be made, nobody answers.
class HoldKeeper {
 public:
  static constexpr int kPatienceMs = 1000;

  /// Starts it. The calling thread is the one that must live; `fanotify` is a group of permission events.
  explicit HoldKeeper(int fanotify);
  ~HoldKeeper();
  HoldKeeper(const HoldKeeper&) = delete;
  HoldKeeper& operator=(const HoldKeeper&) = delete;

  /// Says that its process answers: often within kPatienceMs.
  void beat() noexcept;
  /// Returns how many of the programs that came while its process stood still it has allowed to run.
  [[nodiscard]] std::uint64_t let_go() const noexcept;

 private:
  struct Shared;
  struct Task;
  Shared* shared_ = nullptr;  ///< memory of both processes; null: there is no second one
  void* stack_ = nullptr;
  pid_t pid_ = -1;
};

}  // namespace usdt::follow
