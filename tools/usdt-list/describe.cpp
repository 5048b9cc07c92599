// SPDX-License-Identifier: BSD-2-Clause
#include "describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <variant>

namespace usdt_list {
namespace {

std::string describe(const usdt::Arg&, const std::monostate&) { return {}; }

std::string describe(const usdt::Arg& arg, const usdt::ConstOperand& constant) {
  if (constant.symbol) {
    const std::string more =
        constant.magnitude == 0 ? "" : fmt::format("{}{}", constant.negative ? '-' : '+', constant.magnitude);
    return fmt::format("address of {}{}", constant.symbol->name, more);
  }
  if (arg.spec.is_signed) return fmt::format("constant {}", static_cast<std::int64_t>(arg.const_bits));
  return fmt::format("constant {}", arg.const_bits);
}

std::string describe(const usdt::Arg& arg, const usdt::RegOperand& reg) {
  if (arg.reg.canon.empty()) return fmt::format("register {}", reg.name);
  if (!arg.pair_high.empty()) return fmt::format("registers {} and {} (upper half)", arg.reg.canon, arg.pair_high);
  if (arg.reg.shift != 0) {
    return fmt::format("register {}, bits {} to {}", arg.reg.canon, arg.reg.shift, arg.reg.shift + arg.reg.bits - 1);
  }
  const bool whole = reg.name == arg.reg.canon && 8 * arg.size >= arg.reg.bits;
  if (whole) return fmt::format("register {}", arg.reg.canon);
  return fmt::format("register {}, low {} bits", arg.reg.canon, std::min<std::uint32_t>(arg.reg.bits, 8 * arg.size));
}

std::string describe(const usdt::Arg& arg, const usdt::MemOperand& mem) {
  std::string at;
  const auto add = [&at](const std::string& term) { at += (at.empty() ? "" : "+") + term; };
  if (mem.symbol) add(mem.symbol->reloc.empty() ? mem.symbol->name : mem.symbol->name + "@" + mem.symbol->reloc);
  if (!arg.base.empty() && !(arg.pc_relative && mem.symbol)) add(arg.base);
  if (!arg.index.empty()) add(mem.scale == 1 ? arg.index : fmt::format("{}*{}", arg.index, mem.scale));
  if (at.empty()) {
    at = fmt::format("{:#x}", mem.disp);
  } else if (mem.disp != 0) {
    at += fmt::format("{:+}", mem.disp);
  }
  if (!mem.segment.empty()) at = fmt::format("{}:{}", mem.segment, at);
  return fmt::format("memory at {}{}", at, arg.pc_relative ? ", pc-relative" : "");
}

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
    default:
      return 8;
  }
}

}  // namespace

std::string describe_operand(const usdt::Arg& arg) {
  return std::visit([&](const auto& operand) { return describe(arg, operand); }, arg.spec.operand);
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
