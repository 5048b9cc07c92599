// SPDX-License-Identifier: BSD-2-Clause
#include "describe.hpp"

#include <fmt/format.h>

#include <array>

namespace usdt::parsers {
namespace {

constexpr std::array kExtends = {"", "lsl", "uxtw", "sxtw", "uxtx", "sxtx"};
constexpr std::array kWritebacks = {"", "pre", "post"};

std::string field(std::string_view key, std::string_view value) {
  return value.empty() ? "" : fmt::format(" {}={}", key, value);
}

std::string symbol_fields(const std::optional<SymbolRef>& symbol) {
  return symbol ? field("symbol", symbol->name) + field("reloc", symbol->reloc) : "";
}

std::string describe_operand(const ConstOperand& constant) {
  return fmt::format("const {}{}{}", constant.negative ? "-" : "", constant.magnitude, symbol_fields(constant.symbol));
}

std::string describe_operand(const RegOperand& reg) { return "reg " + reg.name; }

std::string describe_operand(const MemOperand& mem) {
  return "mem" + field("base", mem.base) + field("index", mem.index) +
         field("scale", mem.scale == 1 ? "" : fmt::to_string(mem.scale)) +
         field("disp", mem.disp == 0 ? "" : fmt::to_string(mem.disp)) + symbol_fields(mem.symbol) +
         field("segment", mem.segment) + field("extend", kExtends.at(static_cast<std::size_t>(mem.extend))) +
         field("amount", mem.amount == 0 ? "" : fmt::to_string(mem.amount)) +
         field("writeback", kWritebacks.at(static_cast<std::size_t>(mem.writeback)));
}

std::string describe_operand(std::monostate) { return "nothing"; }

bool only_space(std::string_view text) { return text.find_first_not_of(" \t\n\v\f\r") == std::string_view::npos; }

std::string broken_spec(const ArgSpec& spec) {
  const bool empty = std::holds_alternative<std::monostate>(spec.operand);
  if (spec.text.empty()) return "an argument without text";
  if (empty != spec.unreadable.has_value()) return "neither operand nor reason, or both: " + spec.text;
  if (!empty) return "";
  if (spec.unreadable->reason.empty()) return "no reason: " + spec.text;
  const std::uint32_t column = spec.unreadable->column;
  const bool inside = column >= spec.column && column <= spec.column + spec.text.size();
  return inside ? "" : "the reason points outside its argument: " + spec.text;
}

}  // namespace

std::string describe(const ArgSpec& spec) {
  const char* letter = spec.is_float ? "f" : spec.is_signed ? "s" : "u";
  const std::string head = fmt::format("{}{} ", letter, spec.size ? fmt::to_string(*spec.size) : "");
  if (spec.unreadable) return head + fmt::format("unreadable {}: {}", spec.unreadable->column, spec.unreadable->reason);
  return head + std::visit([](const auto& operand) { return describe_operand(operand); }, spec.operand);
}

std::string broken_invariant(std::string_view text, const std::vector<ArgSpec>& specs) {
  std::size_t at = 0;
  for (const ArgSpec& spec : specs) {
    if (spec.column < at || !only_space(text.substr(at, spec.column - at))) return "text is lost before " + spec.text;
    if (text.substr(spec.column, spec.text.size()) != spec.text) return "not the text as it stands: " + spec.text;
    if (std::string broken = broken_spec(spec); !broken.empty()) return broken;
    at = spec.column + spec.text.size();
  }
  const bool none = specs.empty() && (only_space(text) || text[text.find_first_not_of(" \t\n\v\f\r")] == ':');
  return none || only_space(text.substr(at)) ? "" : "text is lost at the end";
}

}  // namespace usdt::parsers
