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

std::string describe_operand(const RegOperand& reg) { return fmt::format("reg {}", reg.name); }

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

std::string broken_spec(const ParsedArg& arg) {
  const bool empty = std::holds_alternative<std::monostate>(arg.operand);
  if (arg.text.empty()) return "an argument without text";
  if (empty != arg.unreadable.has_value()) return "neither operand nor reason, or both: " + std::string(arg.text);
  if (!empty) return "";
  if (arg.unreadable->reason.empty()) return "no reason: " + std::string(arg.text);
  const std::uint32_t column = arg.unreadable->column;
  const bool inside = column >= arg.column && column <= arg.column + arg.text.size();
  return inside ? "" : "the reason points outside its argument: " + std::string(arg.text);
}

}  // namespace

std::string describe(const ParsedArg& arg) {
  const char* letter = arg.is_float ? "f" : arg.is_signed ? "s" : "u";
  const std::string head = fmt::format("{}{} ", letter, arg.size ? fmt::to_string(*arg.size) : "");
  if (arg.unreadable) return head + fmt::format("unreadable {}: {}", arg.unreadable->column, arg.unreadable->reason);
  return head + std::visit([](const auto& operand) { return describe_operand(operand); }, arg.operand);
}

std::string broken_invariant(std::string_view text, const std::vector<ParsedArg>& args) {
  std::size_t at = 0;
  for (const ParsedArg& arg : args) {
    if (arg.column < at || !only_space(text.substr(at, arg.column - at)))
      return "text is lost before " + std::string(arg.text);
    if (text.substr(arg.column, arg.text.size()) != arg.text)
      return "not the text as it stands: " + std::string(arg.text);
    if (std::string broken = broken_spec(arg); !broken.empty()) return broken;
    at = arg.column + arg.text.size();
  }
  const bool none = args.empty() && (only_space(text) || text[text.find_first_not_of(" \t\n\v\f\r")] == ':');
  return none || only_space(text.substr(at)) ? "" : "text is lost at the end";
}

}  // namespace usdt::parsers
