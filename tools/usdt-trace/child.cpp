// SPDX-License-Identifier: BSD-2-Clause
#include "child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "descendants.hpp"
#include "signals.hpp"

namespace usdt_trace {
namespace {

/// In the child: wait for the word, then become the command. Only async-signal-safe calls.
[[noreturn]] void run_command(int go, int failure, const char* program, char* const* argv) {
  char word = 0;
  ssize_t n = 0;
  do n = ::read(go, &word, 1);
  while (n < 0 && errno == EINTR);
  if (n != 1) ::_exit(127);  // the tracer gave up
  restore_signals();
  ::execvp(program, argv);  // a path: to search $PATH here is hits of traced functions that are not the command's
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(failure, &error, sizeof(error));
  ::_exit(127);
}

}  // namespace

usdt::Result<Child> Child::fork(const std::filesystem::path& program, const std::vector<std::string>& command) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int go[2], failure[2];
  if (::pipe2(go, O_CLOEXEC) != 0) return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "pipe", errno));
  if (::pipe2(failure, O_CLOEXEC) != 0) {
    const int error = errno;
    ::close(go[0]);
    ::close(go[1]);
    return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "pipe", error));
  }
  Child child;
  child.pid_ = ::fork();
  if (child.pid_ == 0) {
    ::close(go[1]);
    run_command(go[0], failure[1], program.c_str(), argv.data());
  }
  const int error = errno;
  ::close(go[0]);
  ::close(failure[1]);
  child.go_ = go[1];
  child.failure_ = failure[0];
  if (child.pid_ < 0) return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "fork", error));
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      go_(std::exchange(other.go_, -1)),
      failure_(std::exchange(other.failure_, -1)),
      code_(other.code_) {}

Child::~Child() {
  stop(std::chrono::seconds(2));
  if (go_ >= 0) ::close(go_);
  if (failure_ >= 0) ::close(failure_);
}

usdt::Result<void> Child::release() {
  const char word = 1;
  if (::write(go_, &word, 1) != 1) return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "start the command", errno));
  ::close(std::exchange(go_, -1));
  int error = 0;
  ssize_t n = 0;
  do n = ::read(failure_, &error, sizeof(error));
  while (n < 0 && errno == EINTR);
  ::close(std::exchange(failure_, -1));
  if (n == sizeof(error)) return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "start the command", error));
  return {};
}

std::optional<int> Child::ended() {
  if (code_ || pid_ < 0) return code_;
  int status = 0;
  // Adopted orphans are reaped here too, and forgotten.
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == pid_) code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  constexpr int not_known = 1;  // it has gone, and nobody told us how
  if (pid < 0 && errno == ECHILD && !code_) code_ = not_known;
  return code_;
}

void Child::stop(std::chrono::milliseconds grace) {
  if (pid_ <= 0 || ended()) return;
  if (go_ >= 0) return stop_before_it_runs();
  for (const HeldProcess& process : hold_descendants()) process.signal(SIGTERM);
  if (wait_for_all(grace)) return;
  // Processes that were started meanwhile were not seen: looks again, as long as there are any.
  constexpr std::chrono::seconds longest{2};
  const auto deadline = std::chrono::steady_clock::now() + longest;
  do {
    for (const HeldProcess& process : hold_descendants()) process.signal(SIGKILL);
  } while (!wait_for_all(std::chrono::milliseconds(20)) && std::chrono::steady_clock::now() < deadline);
}

// Kills what is still a copy of the tracer: no list of the command's processes has it, and it takes no other signal.
void Child::stop_before_it_runs() {
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  code_ = 128 + SIGKILL;
}

bool Child::wait_for_all(std::chrono::milliseconds longest) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (!ended() || !hold_descendants().empty()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace usdt_trace
