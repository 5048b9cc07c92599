// SPDX-License-Identifier: BSD-2-Clause
#include "locate/code_state.hpp"

#include <algorithm>

namespace usdt::locate {

std::optional<FramePlace> CodeState::place_of(const arch::Access& access) const {
  const auto& frame = registers_[access.base].frame;
  if (!frame || access.indexed) return std::nullopt;
  return FramePlace{frame->base, frame->offset + access.displacement};
}

void CodeState::step(const arch::Effects& effects, std::size_t stack_pointer) {
  const Registers before = registers_;
  forget(effects.changed);
  if (const auto& copy = effects.copies) {
    Register& to = registers_[copy->to];
    const Register& from = before[copy->from];
    if (from.held.into) to.held.into = *from.held.into + copy->displacement;
    to.held.word = from.held.word;
    if (from.frame) to.frame = FramePlace{from.frame->base, from.frame->offset + copy->displacement};
    to.set = true;
  }
  move_word(before, effects);
  auto& stack = registers_[stack_pointer].frame;
  if (stack || (effects.changed >> stack_pointer & 1U) == 0) return;
  if (effects.stack != 0 && before[stack_pointer].frame) {
    stack = before[stack_pointer].frame;
    stack->offset += effects.stack;
  } else {
    stack = FramePlace{++bases_, 0};
  }
}

void CodeState::move_word(const Registers& before, const arch::Effects& effects) {
  const auto& memory = effects.accesses[0];
  if (!memory || memory->indexed || (!effects.loads && !effects.stores)) return;
  const auto& frame = before[memory->base].frame;
  const FramePlace place{frame ? frame->base : 0, frame ? frame->offset + memory->displacement : 0};
  if (frame && effects.stores) kept_[place] = before[*effects.stores].held;
  if (!effects.loads) return;
  Register& to = registers_[*effects.loads];
  if (frame) {
    if (const auto kept = kept_.find(place); kept != kept_.end()) to.held = kept->second;
    to.set = true;
  }
  if (const auto& into = before[memory->base].held.into) {
    to.held.word = *into + memory->displacement;
    to.set = true;
  }
}

void CodeState::call(std::uint32_t keeps, std::size_t stack_pointer, bool keeps_stack_pointer) {
  const auto stack = registers_[stack_pointer].frame;
  forget(~keeps);
  registers_[stack_pointer].frame = keeps_stack_pointer ? stack : FramePlace{++bases_, 0};
}

void CodeState::join(const CodeState& other) {
  for (std::size_t i = 0; i < kMostRegisters; ++i) {
    Register& here = registers_[i];
    const Register& there = other.registers_[i];
    if (!here.held.is_something()) here.set = there.set;
    if (!here.held.into) here.held.into = there.held.into;
    if (!here.held.word) here.held.word = there.held.word;
    if (!here.frame) here.frame = there.frame;
  }
  kept_.insert(other.kept_.begin(), other.kept_.end());
  bases_ = std::max(bases_, other.bases_);
}

void CodeState::forget(std::uint32_t those) {
  for (std::size_t i = 0; i < kMostRegisters; ++i)
    if ((those >> i & 1U) != 0) registers_[i] = {};
}

}  // namespace usdt::locate
