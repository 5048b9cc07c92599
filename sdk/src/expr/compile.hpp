// SPDX-License-Identifier: BSD-2-Clause
// Compiles a typed expression to instructions of BPF. Private to the library.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <span>
#include <vector>

#include "usdt/expression.hpp"
#include "usdt/result.hpp"

namespace usdt::expr {

/// Tells where in task_struct the kernel has a process's parent, in bytes.
struct ParentOffsets {
  std::uint32_t parent = 0;  ///< its pointer to the parent's task; 0: it is not known where
  std::uint32_t group = 0;   ///< the number of a task's process
};

/// Says what the instructions depend on beside the expression.
struct Surroundings {
  /// The address at which the kernel's half of the address space begins; 0: texts are the process's.
  std::uint64_t kernel_half = 0;
  /// The tracer's pid namespace; 0: the initial one.
  std::uint64_t pidns_dev = 0;
  std::uint64_t pidns_ino = 0;
  ParentOffsets parents = {};  ///< for HitField::ppid
  bool may_wait = false;       ///< the program is sleepable: for pages of texts it waits
  bool of_span = false;  ///< it is asked where a span ends: what is known of the hit is that of the span's beginning
};

/// The distance from the question at which the instructions have the row (usdt_row) that comes with their answer, of
/// tables. in_frame() puts the row's own place there.
constexpr std::int16_t kRow = 0x1000;

/// Holds what an expression becomes.
struct Code {
  std::vector<bpf_insn> instructions = {};
  /// The words that they read of a map, an array with these as its only element; empty: they read none.
  std::vector<std::uint64_t> table = {};
};

/// Instructions in place of `call FILTER` (bpf/spec.h) about a usdt_question that begins where the frame pointer, r10,
/// points to (see in_frame()). r0 becomes a usdt_answer; r6 to r9 stay as they are. For verifiers from Linux 5.10 on.
/// Errors: limit (nested too deep for the room on the stack, or too long).
[[nodiscard]] Result<Code> compile(const TypedExpression& expression, const Surroundings& surroundings);
/// Puts in the descriptor of the map that has Code::table. It must be open whenever the instructions are loaded.
void set_table(std::span<bpf_insn> instructions, int map) noexcept;

/// Whether instructions have keys for a row.
[[nodiscard]] bool needs_row(std::span<const bpf_insn> code) noexcept;
/// Returns `code` for a question, and a row, that are so many bytes from where the frame pointer points to.
[[nodiscard]] std::vector<bpf_insn> in_frame(std::span<const bpf_insn> code, std::int16_t question, std::int16_t row);

}  // namespace usdt::expr
