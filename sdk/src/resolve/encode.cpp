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
    spec_.size = is_value_size(arg_.type.size) ? static_cast<std::uint8_t>(arg_.type.size) : std::uint8_t{0};
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
    if (arg_.type.is_float()) {
      add(USDT_ARG_FLOAT);
    } else if (arg_.type.is_signed) {
      add(USDT_ARG_SIGNED);
    }
    if (arg_.result && options_.result_comes_later) add(USDT_ARG_RESULT);
  }
  void add(unsigned flags) { spec_.flags = static_cast<std::uint8_t>(spec_.flags | flags); }

  const Arg& arg_;
  const arch::Arch& arch_;
  const EncodeOptions& options_;
  usdt_arg_spec spec_{};
};

}  // namespace

usdt_arg_spec encode(const Arg& arg, const arch::Arch& arch, const EncodeOptions& options) noexcept {
  return Encoder(arg, arch, options).run();
}

bool depends_on_breakpoint(const usdt_arg_spec& spec) noexcept {
  const bool address = spec.kind == USDT_ARG_MEM || spec.kind == USDT_ARG_ADDR;
  return address && (spec.flags & USDT_ARG_IP) != 0;
}

}  // namespace usdt::resolve
