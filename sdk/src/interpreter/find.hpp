// SPDX-License-Identifier: BSD-2-Clause
// Finds the interpreter that a process runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "interpreter/cpython.hpp"
#include "interpreter/memory.hpp"
#include "interpreter/php.hpp"
#include "interpreter/ruby.hpp"
#include "usdt/bpf/interpreter.h"

namespace usdt::interpreter {

/// The interpreter of a process.
struct Found {
  std::string name = {};     ///< "CPython 3.11", "PHP 8.2", "Ruby 3.1"; empty: it runs none
  std::string why_not = {};  ///< why its functions cannot be followed; empty: one of these says how
  std::optional<CPythonLayout> python = {};
  const PhpLayout* php = nullptr;
  const RubyLayout* ruby = nullptr;
  usdt_interpreter walk = {};   ///< with the addresses in this process, but without the place of a variable
  std::uint64_t code_type = 0;  ///< Python: address of PyCode_Type; 0: not known
  std::uint64_t data = 0;       ///< Ruby: where its variables are,
  std::uint64_t data_size = 0;  ///< in so many bytes

  /// Whether its functions can be followed.
  [[nodiscard]] bool is_known() const noexcept { return python || php != nullptr || ruby != nullptr; }
};

/// Looks at the files of the process that are called as programs and libraries of interpreters are, and asks what runs
/// for its version. `memory`: that of the process.
[[nodiscard]] Found find_interpreter(pid_t pid, const Memory& memory);

}  // namespace usdt::interpreter
