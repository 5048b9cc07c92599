// SPDX-License-Identifier: BSD-2-Clause
// Names of the functions of scripts that a process runs, read from its memory while it lives. Private to stack/.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "interpreter/cpython.hpp"
#include "interpreter/find.hpp"
#include "interpreter/memory.hpp"
#include "usdt/bpf/event.h"
#include "usdt/stack.hpp"

namespace usdt::stack {

/// Two registers, by DWARF number.
using KeptRegisters = std::array<std::uint8_t, 2>;

/// The functions of one program in one process. What was read is remembered: an object that takes the place of another
/// one has another cookie.
class ScriptNames {
 public:
  /// 0: a process that is gone.
  explicit ScriptNames(pid_t pid);

  /// Returns the name, file and line of a function that was recorded, or why there is none; not its language. Nothing:
  /// it had not begun yet, and interpreters do not show it either.
  [[nodiscard]] std::optional<Frame> frame_of(const usdt_script_frame& recorded);
  /// The native function that is the interpreter's loop, where it leaves no mark on the native stack; else empty.
  [[nodiscard]] std::string_view loop() const noexcept { return found_.php != nullptr ? "execute_ex" : ""; }
  /// The registers in which the interpreter's loop has the frame that it runs and its next instruction, as DWARF
  /// numbers them, where it is known by them (Ruby).
  [[nodiscard]] std::optional<KeptRegisters> loop_registers() const noexcept;
  /// Whether the process runs an interpreter whose functions can be followed.
  [[nodiscard]] bool are_known() const noexcept { return found_.is_known(); }

 private:
  struct Known {
    std::uint64_t cookie = 0;
    interpreter::CodeState state = interpreter::CodeState::unreadable;
    interpreter::CodeNames names = {};
    interpreter::PhpNames php = {};
    interpreter::RubyNames ruby = {};
    std::unordered_map<std::uint64_t, std::uint32_t> lines = {};  ///< of PHP's instructions, by address

    /// Of its texts and tables of lines.
    [[nodiscard]] std::size_t bytes() const noexcept;
  };

  [[nodiscard]] Known& find(const usdt_script_frame& recorded);
  [[nodiscard]] interpreter::CodeState read(const usdt_script_frame& recorded, Known& names);
  /// Forgets everything where it has become too much.
  void make_room();
  [[nodiscard]] std::uint32_t line_of_php(Known& known, std::uint64_t instruction);

  interpreter::ProcessMemory memory_;
  interpreter::Found found_;
  std::optional<interpreter::RubyNameTable> ruby_names_;
  std::unordered_map<std::uint64_t, Known> known_;  ///< by address; PHP's by cookie
  std::size_t bytes_ = 0;                           ///< of what is known
};

}  // namespace usdt::stack
