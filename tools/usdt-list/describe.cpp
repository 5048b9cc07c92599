// SPDX-License-Identifier: BSD-2-Clause
#include "describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <variant>

namespace usdt_list {
namespace {

struct Description {
  const usdt::Arg& arg;
  usdt::Machine machine;

  std::string operator()(std::monostate) const { return {}; }

  std::string operator()(const usdt::ConstOperand& constant) const {
    if (constant.symbol) {
      const std::string more =
          constant.magnitude == 0 ? "" : fmt::format("{}{}", constant.negative ? '-' : '+', constant.magnitude);
      return fmt::format("address of {}{}", constant.symbol->name, more);
    }
    const auto bits = usdt::cut(constant.bits(), std::clamp<std::size_t>(arg.type.size, 1, 8), arg.type.is_signed);
    if (arg.type.is_signed) return fmt::format("constant {}", static_cast<std::int64_t>(bits));
    return fmt::format("constant {}", bits);
  }

  std::string operator()(const usdt::RegOperand& operand) const {
    const auto reg = usdt::find_register(machine, operand.name);
    if (!reg) return fmt::format("register {}", operand.name);
    if (arg.needs.has(usdt::Need::reg_pair))
      return fmt::format("registers {} and {} (upper half)", reg->canon, reg->pair_high);
    if (reg->shift != 0)
      return fmt::format("register {}, bits {} to {}", reg->canon, reg->shift, reg->shift + reg->bits - 1);
    const bool whole = reg->name == reg->canon && 8 * arg.type.size >= reg->bits;
    if (whole) return fmt::format("register {}", reg->canon);
    return fmt::format("register {}, low {} bits", reg->canon, std::min<std::uint32_t>(reg->bits, 8 * arg.type.size));
  }

  std::string operator()(const usdt::MemOperand& mem) const {
    const auto base = usdt::find_register(machine, mem.base);
    const auto index = usdt::find_register(machine, mem.index);
    const bool pc_relative = base && base->instruction_pointer;
    std::string at;
    const auto add = [&at](std::string_view term) { at += fmt::format("{}{}", at.empty() ? "" : "+", term); };
    if (mem.symbol)
      add(fmt::format("{}{}{}", mem.symbol->name, mem.symbol->reloc.empty() ? "" : "@", mem.symbol->reloc));
    if (base && !(pc_relative && mem.symbol)) add(base->canon);
    if (index) add(mem.scale == 1 ? std::string(index->canon) : fmt::format("{}*{}", index->canon, mem.scale));
    if (at.empty()) {
      at = fmt::format("{:#x}", mem.disp);
    } else if (mem.disp != 0) {
      at += fmt::format("{:+}", mem.disp);
    }
    if (!mem.segment.empty()) at = fmt::format("{}:{}", mem.segment, at);
    return fmt::format("memory at {}{}", at, pc_relative ? ", pc-relative" : "");
  }
};

/// How many bytes show the instruction, or the pair of nops, that the class is about.
std::size_t telling_bytes(const usdt::Site& site) {
  switch (site.site_class) {
    case usdt::SiteClass::nop:
      return site.bytes.data[0] == 0x90 ? 1 : 4;  // x86, arm64
    case usdt::SiteClass::nop_nop5:
      return 6;
    case usdt::SiteClass::nop_nop10:
      return 11;
    case usdt::SiteClass::nop5:
      return 5;
    case usdt::SiteClass::nop10:
      return 10;
    case usdt::SiteClass::unknown:
    case usdt::SiteClass::emulated:
    case usdt::SiteClass::single_step:
      break;
  }
  return 8;
}

}  // namespace

std::string describe_operand(const usdt::Arg& arg, const usdt::ParsedArg& parsed, usdt::Machine machine) {
  return std::visit(Description{arg, machine}, parsed.operand);
}

std::string describe_bytes(const usdt::Site& site) {
  const std::size_t count = std::min<std::size_t>(site.bytes.size, telling_bytes(site));
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    fmt::format_to(std::back_inserter(out), "{}{:02x}", i == 0 ? "" : " ", site.bytes.data[i]);
  }
  return out;
}

}  // namespace usdt_list
