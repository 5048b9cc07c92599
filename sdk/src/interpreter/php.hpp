// SPDX-License-Identifier: BSD-2-Clause
// What PHP keeps of the functions that it runs: where, by version, and names and lines read from there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "interpreter/code_state.hpp"
#include "interpreter/memory.hpp"
#include "usdt/bpf/interpreter.h"
#include "usdt/result.hpp"

namespace usdt::interpreter {

/// Where one minor version of PHP without thread safety keeps things, in bytes: data, a file for each (php_8_2.hpp).
struct PhpLayout {
  /// The major version in the upper byte, the minor one in the lower.
  std::uint16_t version;
  std::uint16_t innermost;  ///< in executor_globals: the frame that runs (current_execute_data)
  /// From there to the functions that run: what BPF programs need. Its addresses are set for a process.
  usdt_interpreter walk;
  // In functions:
  std::uint16_t function_type;  ///< a byte
  std::uint16_t function_name;
  std::uint16_t function_class;
  std::uint16_t function_count;  ///< how many instructions it has
  std::uint16_t function_instructions;
  std::uint16_t function_file;
  std::uint16_t class_name;
  std::uint16_t text_length;
  std::uint16_t text_data;
  std::uint16_t instruction_size;
  std::uint16_t instruction_line;
};

/// Returns the layout of a version, as PhpLayout::version has it; null: it is not known.
[[nodiscard]] const PhpLayout* php_layout(std::uint16_t version);

/// The names of a function of PHP.
struct PhpNames {
  std::string function;            ///< "Cart::total", "{closure}", "{main}" outside of functions; any bytes
  std::string file;                ///< any bytes; empty: it is PHP's own
  std::uint64_t instructions = 0;  ///< the address of the first one,
  std::uint64_t count = 0;         ///< and how many there are
};

/// Reads the function at `function`, which had `cookie` (usdt_code_cookie()) at the hit.
[[nodiscard]] CodeState read_function(const Memory& memory, const PhpLayout& layout, std::uint64_t function,
                                      std::uint64_t cookie, PhpNames& names);

/// Returns the line of an instruction of that function; 0: it has none, or cannot be read.
[[nodiscard]] std::uint32_t line_of(const Memory& memory, const PhpLayout& layout, const PhpNames& names,
                                    std::uint64_t instruction);

}  // namespace usdt::interpreter
