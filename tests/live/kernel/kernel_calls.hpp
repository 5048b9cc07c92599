// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace usdt::truth {

/// A kernel function that a call reaches, and what of it is known from outside.
struct Reached {
  std::string name;
  bool positional = false;  ///< its first arguments are `Call::args`, else they are found by name in `Call::names`
  bool returns = false;     ///< it returns what the system call does
};

/// A system call whose arguments the test chose.
struct Call {
  std::string name;
  std::vector<std::uint64_t> args;
  std::map<std::string, std::uint64_t> names;
  std::vector<Reached> functions;
  std::function<long()> run;  ///< the result, errors as -errno
};

/// Descriptors and memory that the calls use.
class Stage {
 public:
  Stage();
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  [[nodiscard]] const std::vector<Call>& calls() const { return calls_; }

 private:
  /// `functions`: names with spaces between them, '@' behind a positional one, '!' behind one that returns the result.
  void add(const char* name, const char* functions, std::map<std::string, std::uint64_t> names,
           std::function<long()> run, std::vector<std::uint64_t> args = {});
  template <class... T>
  void sys(const char* functions, std::map<std::string, std::uint64_t> names, long number, T... args);
  template <class... T>
  void key(const char* functions, T... args);

  void files();
  void offsets_in_files(char* buffer, const iovec* vector);
  void names_of_files();
  void sockets();
  void memory();
  void waiting();
  void processes();
  void ipc();
  void keys();
  void test_functions();

  std::vector<Call> calls_;
  std::string directory_;
  std::string path_;
  int file_ = -1;
  int other_ = -1;
  int pair_[2] = {-1, -1};
  int epoll_ = -1;
  int timer_ = -1;
  char* page_ = nullptr;
  int test_program_ = -1;
};

}  // namespace usdt::truth
