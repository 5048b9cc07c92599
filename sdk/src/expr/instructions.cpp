// SPDX-License-Identifier: BSD-2-Clause
#include "expr/instructions.hpp"

#include <algorithm>
#include <cstdint>

#include "expr/compile.hpp"

namespace usdt::expr {

bool fits_immediate(std::uint64_t bits) noexcept {
  return static_cast<std::int64_t>(bits) == static_cast<std::int32_t>(bits);
}

void Assembler::emit(std::uint8_t code, std::uint8_t to, std::uint8_t from, int offset, std::int32_t immediate) {
  bpf_insn insn{};
  insn.code = code;
  insn.dst_reg = to & 15;
  insn.src_reg = from & 15;
  insn.off = static_cast<std::int16_t>(offset);
  insn.imm = immediate;
  code_.push_back(insn);
}

void Assembler::load(int code, std::uint8_t to, std::uint8_t base, int offset) {
  emit(static_cast<std::uint8_t>(code), to, base, offset, 0);
}

void Assembler::store(std::uint8_t base, int offset, std::uint8_t from) {
  emit(BPF_STX | BPF_MEM | kDouble, base, from, offset, 0);
}

void Assembler::store_byte(std::uint8_t base, int offset, std::uint8_t from) {
  emit(BPF_STX | BPF_MEM | BPF_B, base, from, offset, 0);
}

void Assembler::set(std::uint8_t to, std::uint64_t bits) {
  if (fits_immediate(bits)) return alu_by(kMove, to, static_cast<std::int32_t>(bits));
  emit(kLoadImmediate, to, 0, 0, static_cast<std::int32_t>(bits));
  emit(0, 0, 0, 0, static_cast<std::int32_t>(bits >> 32));
}

void Assembler::set_table_address(std::uint8_t to, std::size_t word) {
  emit(kLoadImmediate, to, BPF_PSEUDO_MAP_VALUE, 0, 0);
  emit(0, 0, 0, 0, static_cast<std::int32_t>(word * sizeof(std::uint64_t)));
}

Label Assembler::label() {
  labels_.push_back(SIZE_MAX);
  return {labels_.size() - 1};
}

void Assembler::jump_if(std::uint8_t op, std::uint8_t left, std::uint8_t right, Label to) {
  jumps_.push_back({code_.size(), to});
  emit(BPF_JMP | op | BPF_X, left, right, 0, 0);
  if (op == BPF_JA) code_.back().code = BPF_JMP | BPF_JA;
}

void Assembler::jump_if_is(std::uint8_t op, std::uint8_t left, std::int32_t right, Label to) {
  jumps_.push_back({code_.size(), to});
  emit(BPF_JMP | op | BPF_K, left, 0, 0, right);
}

std::vector<bpf_insn> Assembler::finished() const {
  std::vector<std::size_t> target(code_.size(), SIZE_MAX);
  for (const auto& [at, to] : jumps_) target[at] = labels_[to.number];
  const std::vector<bool> reached = find_reached(target);
  std::vector<std::size_t> moved_to(code_.size() + 1);
  for (std::size_t i = 0; i < code_.size(); ++i) moved_to[i + 1] = moved_to[i] + (reached[i] ? 1 : 0);
  std::vector<bpf_insn> kept;
  for (std::size_t i = 0; i < code_.size(); ++i) {
    if (!reached[i]) continue;
    kept.push_back(code_[i]);
    if (target[i] != SIZE_MAX)
      kept.back().off = static_cast<std::int16_t>(static_cast<std::int64_t>(moved_to[target[i]]) -
                                                  static_cast<std::int64_t>(moved_to[i]) - 1);
  }
  return kept;
}

std::vector<bool> Assembler::find_reached(const std::vector<std::size_t>& target) const {
  std::vector<bool> reached(code_.size());
  std::vector<std::size_t> todo{0};
  while (!todo.empty()) {
    std::size_t at = todo.back();
    todo.pop_back();
    while (at < code_.size() && !reached[at]) {
      reached[at] = true;
      if (target[at] != SIZE_MAX) todo.push_back(target[at]);
      if (code_[at].code == (BPF_JMP | BPF_JA)) break;
      ++at;
    }
  }
  return reached;
}

// --- finished instructions ---

void set_table(std::span<bpf_insn> instructions, int map) noexcept {
  for (bpf_insn& insn : instructions)
    if (insn.code == kLoadImmediate && insn.src_reg == BPF_PSEUDO_MAP_VALUE) insn.imm = map;
}

bool needs_row(std::span<const bpf_insn> code) noexcept {
  return std::ranges::any_of(code, [](const bpf_insn& insn) {
    const bool stores = BPF_CLASS(insn.code) == BPF_STX && insn.dst_reg == kFrame && insn.off >= kRow;
    return stores || (insn.code == kAddConstant && insn.imm >= kRow);
  });
}

std::vector<bpf_insn> in_frame(std::span<const bpf_insn> code, std::int16_t question, std::int16_t row) {
  const auto moved = [&](int offset) { return offset < kRow ? offset + question : offset - kRow + row; };
  std::vector<bpf_insn> placed(code.begin(), code.end());
  for (std::size_t i = 0; i < placed.size(); ++i) {
    bpf_insn& insn = placed[i];
    const unsigned kind = BPF_CLASS(insn.code);
    if ((kind == BPF_LDX && insn.src_reg == kFrame) || (kind == BPF_STX && insn.dst_reg == kFrame))
      insn.off = static_cast<std::int16_t>(moved(insn.off));
    // An address: r = r10; r += imm
    const bool copies = insn.code == (BPF_ALU64 | kMove | BPF_X) && insn.src_reg == kFrame;
    if (copies && i + 1 < placed.size()) {
      bpf_insn& add = placed[++i];
      add.imm = moved(add.imm);
    }
  }
  return placed;
}

}  // namespace usdt::expr
