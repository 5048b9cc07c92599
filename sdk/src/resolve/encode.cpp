// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/encode.hpp"

#include "resolve/value_size.hpp"

namespace usdt::resolve {
namespace {

std::uint8_t word(const arch::Arch& arch, RegisterId id) {
  return id == RegisterId::none ? std::uint8_t{USDT_REG_NONE} : static_cast<std::uint8_t>(arch.reg(id).pt_regs_word);
}

class Encoder {
 public:
  Encoder(const Arg& arg, const arch::Arch& arch, const EncodeOptions& options)
      : arg_(arg), arch_(arch), options_(options) {}

  [[nodiscard]] usdt_arg_spec run() && {
    // Steps begin from a whole word, as it is.
    type_ = arg_.steps.empty() ? arg_.type : Type{.size = arch_.word_size};
    spec_.size = is_value_size(type_.size) ? static_cast<std::uint8_t>(type_.size) : std::uint8_t{0};
    spec_.reg = spec_.index = USDT_REG_NONE;
    std::visit([this](const auto& location) { put(location); }, arg_.location);
    return spec_;
  }

 private:
  void put(const Unreadable&) { spec_.kind = USDT_ARG_UNREADABLE; }

  void put(const Constant& constant) {
    start(USDT_ARG_CONST);
    spec_.value = constant.bits;
  }

  void put(const Register& reg) {
    start(USDT_ARG_REG);
    spec_.reg = word(arch_, reg.id);
    spec_.shift = arch_.reg(reg.id).shift;
    spec_.index = word(arch_, reg.high);
    if (reg.high != RegisterId::none) add(USDT_ARG_PAIR);
  }

  void put(const Slot& slot) {
    start(USDT_ARG_REG);
    spec_.reg = slot.number == USDT_SLOT_RESULT ? options_.result_slot : slot.number;
  }

  void put(const Memory& memory) {
    start(memory.is_value ? USDT_ARG_ADDR : USDT_ARG_MEM);
    spec_.value = memory.displacement;
    spec_.reg = word(arch_, memory.base);
    spec_.index = word(arch_, memory.index);
    spec_.shift = memory.shift;
    if (memory.wraps_at_32_bits) add(USDT_ARG_ADDR32);
    if (memory.index_width == IndexWidth::low32) add(USDT_ARG_INDEX_U32);
    if (memory.index_width == IndexWidth::low32_signed) add(USDT_ARG_INDEX_S32);
    switch (memory.origin) {
      case Origin::zero:
        break;
      case Origin::thread:
        add(USDT_ARG_THREAD);
        break;
      // The instruction pointer of the hit makes both good wherever the file is loaded.
      case Origin::site:
        spec_.value += options_.site.value;
        [[fallthrough]];
      case Origin::file:
        spec_.value -= options_.breakpoint.value;
        add(USDT_ARG_IP);
        break;
    }
  }

  void start(usdt_arg_kind kind) {
    spec_.kind = static_cast<std::uint8_t>(kind);
    // The bits of a float are not a number to extend by sign.
    if (type_.is_float()) {
      add(USDT_ARG_FLOAT);
    } else if (type_.is_signed) {
      add(USDT_ARG_SIGNED);
    }
    if (arg_.result && options_.result_comes_later) add(USDT_ARG_RESULT);
  }
  void add(unsigned flags) { spec_.flags = static_cast<std::uint8_t>(spec_.flags | flags); }

  const Arg& arg_;
  const arch::Arch& arch_;
  const EncodeOptions& options_;
  Type type_;
  usdt_arg_spec spec_{};
};

usdt_arg_spec encode(const Step& step, const Arg& arg, const arch::Arch& arch, std::size_t following) {
  unsigned flags = arch.wraps_at_32_bits ? USDT_ARG_ADDR32 : 0;
  // All steps but the last one read addresses.
  if (following == 0 && arg.type.is_signed && !arg.type.is_float()) flags |= USDT_ARG_SIGNED;
  usdt_arg_spec spec{};
  spec.value = step.displacement;
  spec.kind = USDT_ARG_STEP;
  spec.flags = static_cast<std::uint8_t>(flags);
  spec.size = step.size;
  spec.reg = static_cast<std::uint8_t>(following);
  spec.index = step.bits;
  spec.shift = step.shift;
  if (step.swapped != 0) spec.window = static_cast<std::uint8_t>(USDT_STEP_SWAPPED | step.swapped);
  return spec;
}

}  // namespace

usdt_arg_spec encode(const Arg& arg, const arch::Arch& arch, const EncodeOptions& options) noexcept {
  return Encoder(arg, arch, options).run();
}

bool encode_steps(const Arg& arg, const arch::Arch& arch, usdt_arg_spec& spec, std::vector<usdt_arg_spec>& steps) {
  constexpr std::size_t most_of_spec = 255;
  if (arg.steps.empty() || spec.kind == USDT_ARG_UNREADABLE) return true;
  if (arg.steps.size() > USDT_MAX_STEPS || steps.size() + arg.steps.size() > most_of_spec) {
    spec = {};
    return false;
  }
  spec.kind |= USDT_ARG_HAS_STEPS;
  spec.window = static_cast<std::uint8_t>(steps.size());
  for (std::size_t i = 0; i < arg.steps.size(); ++i)
    steps.push_back(encode(arg.steps[i], arg, arch, arg.steps.size() - 1 - i));
  return true;
}

bool depends_on_breakpoint(const usdt_arg_spec& spec) noexcept {
  const int kind = USDT_ARG_KIND(spec.kind);
  const bool address = kind == USDT_ARG_MEM || kind == USDT_ARG_ADDR;
  return address && (spec.flags & USDT_ARG_IP) != 0;
}

}  // namespace usdt::resolve
