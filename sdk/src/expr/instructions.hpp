// SPDX-License-Identifier: BSD-2-Clause
// Instructions of BPF, put together from first to last. Private to expr/.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace usdt::expr {

/// The frame pointer. Of the other registers r0 has the value computed last, and r1 to r5 are free.
constexpr std::uint8_t kFrame = 10;

// Opcodes (Documentation/bpf/standardization/instruction-set.rst), of 64 bits.
constexpr std::uint8_t kMove = 0xb0;
constexpr std::uint8_t kArithmeticShift = 0xc0;
constexpr std::uint8_t kJumpNotEqual = 0x50;
constexpr std::uint8_t kJumpSignedGreater = 0x60;
constexpr std::uint8_t kJumpSignedGreaterEqual = 0x70;
constexpr std::uint8_t kJumpLess = 0xa0;
constexpr std::uint8_t kJumpLessEqual = 0xb0;
constexpr std::uint8_t kJumpSignedLess = 0xc0;
constexpr std::uint8_t kJumpSignedLessEqual = 0xd0;
constexpr std::uint8_t kDouble = 0x18;
constexpr std::uint8_t kLoadImmediate = BPF_LD | BPF_IMM | kDouble;
constexpr std::uint8_t kAddConstant = BPF_ALU64;  // with BPF_ADD and BPF_K, which are both 0

/// A place in the code that jumps go to.
struct Label {
  std::size_t number = 0;
};

/// Whether an instruction has room for a number, which is extended by its sign.
[[nodiscard]] bool fits_immediate(std::uint64_t bits) noexcept;

/// Code with places that jumps go to.
class Assembler {
 protected:
  // --- instructions ---
  void emit(std::uint8_t code, std::uint8_t to, std::uint8_t from, int offset, std::int32_t immediate);
  void move(std::uint8_t to, std::uint8_t from) { emit(BPF_ALU64 | kMove | BPF_X, to, from, 0, 0); }
  void alu(std::uint8_t op, std::uint8_t to, std::uint8_t from) { emit(BPF_ALU64 | op | BPF_X, to, from, 0, 0); }
  void alu_by(std::uint8_t op, std::uint8_t to, std::int32_t by) { emit(BPF_ALU64 | op | BPF_K, to, 0, 0, by); }
  void load(int code, std::uint8_t to, std::uint8_t base, int offset);
  void store(std::uint8_t base, int offset, std::uint8_t from);
  void store_byte(std::uint8_t base, int offset, std::uint8_t from);
  void call(std::int32_t helper) { emit(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
  void set(std::uint8_t to, std::uint64_t bits);
  /// The address of what begins at word `word` of the table.
  void set_table_address(std::uint8_t to, std::size_t word);

  // --- jumps ---
  Label label();
  void place(Label label) { labels_[label.number] = code_.size(); }
  void jump(Label to) { jump_if(BPF_JA, 0, 0, to); }
  void jump_if(std::uint8_t op, std::uint8_t left, std::uint8_t right, Label to);
  void jump_if_is(std::uint8_t op, std::uint8_t left, std::int32_t right, Label to);

  /// How many instructions there are.
  [[nodiscard]] std::size_t size() const noexcept { return code_.size(); }
  /// The whole, without what nothing gets to: verifiers refuse such code, an answer that is never given.
  [[nodiscard]] std::vector<bpf_insn> finished() const;

 private:
  [[nodiscard]] std::vector<bool> find_reached(const std::vector<std::size_t>& target) const;

  std::vector<bpf_insn> code_;
  std::vector<std::size_t> labels_;
  std::vector<std::pair<std::size_t, Label>> jumps_;
};

}  // namespace usdt::expr
