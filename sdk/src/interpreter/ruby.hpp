// SPDX-License-Identifier: BSD-2-Clause
// What Ruby keeps of the functions that it runs: where, by version, and names and lines read from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interpreter/code_state.hpp"
#include "interpreter/memory.hpp"
#include "usdt/bpf/interpreter.h"

namespace usdt::interpreter {

/// The thread-local variable that leads to what a thread runs.
inline constexpr const char* kRubyVariable = "ruby_current_ec";
/// A symbol that programs and libraries with Ruby in them export.
inline constexpr const char* kRubyMark = "ruby_version";

/// Where one minor version of Ruby keeps things, in bytes: data, a file for each (ruby_3_1.hpp, ruby_3_3.hpp).
struct RubyLayout {
  /// The major version in the upper byte, the minor one in the lower.
  std::uint16_t version;
  /// What BPF programs need. Its addresses and the variable are set for a process.
  usdt_interpreter walk;
  /// Registers, as DWARF numbers them, in which the interpreter's loop keeps the frame that it runs, and the next
  /// instruction, while it calls others.
  std::uint8_t loop_frame;
  std::uint8_t loop_instruction;
  // In code, an instruction or operand of which has a word:
  std::uint16_t code_count;  ///< how many there are
  std::uint16_t code_instructions;
  std::uint16_t code_file;  ///< a text, or a list that begins with it
  std::uint16_t code_name;
  std::uint16_t code_lines;       ///< entries that begin with a line,
  std::uint16_t code_line_count;  ///< their number,
  std::uint16_t code_ranks;       ///< and which of them an instruction has
  std::uint16_t line_size;
  // In methods and their definitions:
  std::uint16_t method_definition;
  std::uint16_t definition_name;  ///< a number
  std::uint16_t method_type;      ///< of objects of Ruby's own: a method
  // In texts and lists: the data is elsewhere, or within, so that the length is in these bits of the object's flags (0:
  // it is where that of others is).
  std::uint16_t text_length, text_data, text_within, text_shift, text_bits;
  std::uint16_t list_length, list_data, list_within, list_shift, list_bits;
  // In the table of names, which is a list of lists:
  std::uint16_t names_last;  ///< the largest number
  std::uint16_t names_list;
  std::uint16_t names_unit;     ///< names in a list
  std::uint16_t name_size;      ///< entries of a name, of which the first one is its text
  std::uint16_t last_operator;  ///< the largest number that has no bits for its kind,
  std::uint16_t name_shift;     ///< which are so many
};

/// Returns the layout of a version, as RubyLayout::version has it; null: it is not known.
[[nodiscard]] const RubyLayout* ruby_layout(std::uint16_t version);

/// The names of a function of Ruby.
struct RubyNames {
  std::string function;  ///< "total", "block in total", "<main>"; any bytes
  std::string file;      ///< any bytes; empty: it is written in C
  std::uint64_t instructions = 0;
  std::vector<std::uint32_t> lines = {};
  std::vector<std::uint64_t> ranks = {};

  /// Returns the line of the instruction before `next`, as backtraces have it; 0: not known.
  [[nodiscard]] std::uint32_t line_before(std::uint64_t next) const;
};

/// Reads the code at `code`, which had `cookie` (usdt_code_cookie()) at the hit.
[[nodiscard]] CodeState read_ruby_code(const Memory& memory, const RubyLayout& layout, std::uint64_t code,
                                       std::uint64_t cookie, RubyNames& names);

/// Ruby's table of names of methods, by their numbers, in the memory of one process.
class RubyNameTable {
 public:
  /// `data`: where the interpreter has its variables, in `size` bytes.
  RubyNameTable(const RubyLayout& layout, std::uint64_t data, std::uint64_t size)
      : layout_(layout), data_(data), size_(size) {}

  /// Returns the name with a number. Nothing: there is none, or it cannot be read, or the table is not found.
  [[nodiscard]] std::optional<std::string> find(const Memory& memory, std::uint64_t number);

 private:
  [[nodiscard]] std::optional<std::string> name_in(const Memory& memory, std::uint64_t table,
                                                   std::uint64_t number) const;
  void look_for_table(const Memory& memory);

  const RubyLayout& layout_;
  std::uint64_t data_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;  ///< 0: not known
  unsigned tries_ = 16;   ///< of looking for it: it is not there before Ruby has begun
};

/// Reads the method at `method`, a function written in C, which had `cookie` at the hit.
[[nodiscard]] CodeState read_ruby_method(const Memory& memory, const RubyLayout& layout, RubyNameTable& table,
                                         std::uint64_t method, std::uint64_t cookie, RubyNames& names);

}  // namespace usdt::interpreter
