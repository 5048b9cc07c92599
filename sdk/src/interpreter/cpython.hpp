// SPDX-License-Identifier: BSD-2-Clause
// What CPython keeps of the code that it runs: where, by version, and names and lines read from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interpreter/code_state.hpp"
#include "interpreter/memory.hpp"
#include "usdt/bpf/interpreter.h"
#include "usdt/result.hpp"

namespace usdt::interpreter {

/// Where one minor version of CPython keeps things, in bytes: data, a file for each version (cpython_3_11.hpp).
struct CPythonLayout {
  /// The upper half of PY_VERSION_HEX.
  std::uint16_t version;
  // In _PyRuntime:
  std::uint16_t interpreters;
  std::uint16_t holder;  ///< the thread that has the lock
  // From there to the functions that run: what BPF programs need. Its addresses are set for a process.
  usdt_interpreter walk;
  std::uint16_t thread_interpreter;  ///< the interpreter of a thread
  // In every object:
  std::uint16_t object_type;
  // In code objects:
  std::uint16_t code_first_line;
  std::uint16_t code_file;
  std::uint16_t code_name;  ///< the qualified name
  std::uint16_t code_lines;
  std::uint16_t code_begins;  ///< the number of the instruction from which on the function counts as begun
  std::uint16_t code_start;   ///< of the instructions
  // In texts (PyASCIIObject, PyCompactUnicodeObject): the state has the bytes of a character in three bits from
  // `text_kind` on, then whether the characters follow the object, and whether they are ASCII.
  std::uint16_t text_length;
  std::uint16_t text_state;
  std::uint16_t text_kind;
  std::uint16_t text_ascii;  ///< where ASCII characters begin
  std::uint16_t text_other;  ///< where others begin
  // In byte strings:
  std::uint16_t bytes_size;
  std::uint16_t bytes_data;
};

/// Which words of its own table of offsets (_Py_DebugOffsets) one minor version, since 3.13, has what in, and what it
/// does not say there: data, a file for each version (cpython_3_13.hpp).
struct CPythonTable {
  std::uint16_t version;
  std::uint16_t words;  ///< of the table
  std::uint16_t free_threaded;
  std::uint16_t interpreters;
  std::uint16_t interpreter_next, interpreter_threads;
  std::uint16_t thread_next, thread_interpreter, thread_frame, thread_id;
  std::uint16_t frame_previous, frame_code, frame_instruction, frame_owner;
  std::uint16_t code_file, code_name, code_qualified_name, code_lines, code_first_line, code_start;
  std::uint16_t object_type;
  std::uint16_t bytes_size, bytes_data;
  std::uint16_t text_state, text_length, text_size;
  std::uint16_t entry_owner, code_tag, text_kind, name_hash;
};

/// Returns the layout of a version, as CPythonLayout::version has it; `runtime`: the address of _PyRuntime in the
/// process, where later versions say it themselves. Errors: not_supported, with the reason.
[[nodiscard]] Result<CPythonLayout> cpython_layout(std::uint16_t version, const Memory& memory, std::uint64_t runtime);

/// The names of a function, as its code object has them.
struct CodeNames {
  std::string function;  ///< the qualified name: "Cart.total", "<module>"; any bytes
  std::string file;      ///< any bytes
  std::uint32_t first_line = 0;
  std::vector<std::byte> lines = {};  ///< the line table

  std::uint32_t begins = 0;  ///< bytes from the first instruction to the one from which on the function runs

  /// Returns the line of an instruction, by its distance from the first one in bytes, which is negative before the
  /// function has begun; 0: not known.
  [[nodiscard]] std::uint32_t line_at(std::int64_t distance) const;
  /// Whether the function has begun, as tracebacks count it: generators have from the start, and `owner`, of the frame,
  /// tells which are such.
  [[nodiscard]] bool has_begun(std::int64_t distance, unsigned owner) const noexcept;
};

/// Reads the code object at `code`, which had `cookie` (usdt_code_cookie()) at the hit. `type`: the address of
/// PyCode_Type; 0: not known. What is given is that of one object, which was there before and after.
[[nodiscard]] CodeState read_code(const Memory& memory, const CPythonLayout& layout, std::uint64_t type,
                                  std::uint64_t code, std::uint64_t cookie, CodeNames& names);

/// Reads a text of Python as UTF-8, and what is no character as its bytes; longer ones than nobody reads are cut.
/// Nothing: it cannot be read, or is none.
[[nodiscard]] std::optional<std::string> read_text(const Memory& memory, const CPythonLayout& layout,
                                                   std::uint64_t address);

}  // namespace usdt::interpreter
