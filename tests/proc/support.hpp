// SPDX-License-Identifier: BSD-2-Clause
// What the tests of this room share: a directory of their own, files with odd contents, processes to look at.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

namespace usdt::test {

/// A directory that goes away with the test.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "usdt-proc-XXXXXX").string();
    path_ = std::filesystem::canonical(::mkdtemp(name.data()));
  }
  ~TempDir() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::filesystem::path& name, std::string_view bytes) const {
    const auto path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::filesystem::path copy(const std::filesystem::path& from, const std::filesystem::path& name) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::filesystem::copy_file(from, path_ / name);
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// An environment variable for the length of a test.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) {
      had_ = true;
      old_ = old;
    }
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedEnv() { had_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  const char* name_;
  bool had_ = false;
  std::string old_;
};

/// A child that runs `body` (which execs a program that says "ready") and is killed at the end. `pid` is -1 if it ended
/// without a word.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    int pipe_fds[2];
    if (::pipe(pipe_fds) != 0) return;
    pid = ::fork();
    if (pid == 0) {
      ::dup2(pipe_fds[1], STDOUT_FILENO);
      ::close(pipe_fds[0]);
      ::close(pipe_fds[1]);
      body();
      ::_exit(127);
    }
    ::close(pipe_fds[1]);
    char byte = 0;
    const bool ready = ::read(pipe_fds[0], &byte, 1) == 1;
    ::close(pipe_fds[0]);
    if (!ready) end();
  }
  static Child running(const std::filesystem::path& program) {
    return Child([&] { ::execl(program.c_str(), program.c_str(), nullptr); });
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void end() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = -1;
  }

  pid_t pid = -1;
};

}  // namespace usdt::test
