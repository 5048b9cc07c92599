// SPDX-License-Identifier: BSD-2-Clause
#include "common/arg_json.hpp"

#include <string_view>
#include <type_traits>
#include <variant>

namespace usdt::tools {
namespace {

std::string_view name_of(Extend extend) {
  switch (extend) {
    case Extend::none:
      return {};
    case Extend::lsl:
      return "lsl";
    case Extend::uxtw:
      return "uxtw";
    case Extend::sxtw:
      return "sxtw";
    case Extend::uxtx:
      return "uxtx";
    case Extend::sxtx:
      return "sxtx";
  }
  return {};
}

std::string_view name_of(Writeback writeback) {
  switch (writeback) {
    case Writeback::none:
      return {};
    case Writeback::pre:
      return "pre";
    case Writeback::post:
      return "post";
  }
  return {};
}

std::string_view kind_of(const ArgSpec& spec) {
  static constexpr std::string_view kKinds[] = {"", "const", "reg", "mem"};
  return kKinds[spec.operand.index()];
}

void integer(JsonWriter& json, std::uint64_t bits, bool is_signed) {
  is_signed ? json.Int64(static_cast<std::int64_t>(bits)) : json.Uint64(bits);
}

void symbol_keys(JsonWriter& json, const std::optional<SymbolRef>& symbol) {
  json_key(json, "symbol");
  json_text_or_null(json, symbol ? symbol->name : std::string_view());
  json_key(json, "reloc");
  json_text_or_null(json, symbol ? symbol->reloc : std::string_view());
}

void write_operand(JsonWriter&, const Arg&, const std::monostate&) {}

void write_operand(JsonWriter& json, const Arg& arg, const ConstOperand& constant) {
  // A magnitude above 2^63 has no negative JSON integer of 64 bits; the grammar's range keeps it out.
  json_key(json, "value");
  integer(json, constant.bits(), constant.negative);
  json_key(json, "typed");
  if (constant.symbol) {
    json.Null();
    symbol_keys(json, constant.symbol);
  } else {
    integer(json, arg.const_bits, arg.spec.is_signed);
  }
}

void write_operand(JsonWriter& json, const Arg& arg, const RegOperand& reg) {
  json_key(json, "reg");
  json_text(json, reg.name);
  json_key(json, "canon");
  json_text_or_null(json, arg.reg.canon);
  json_key(json, "bits");
  json.Uint(arg.reg.bits);
  json_key(json, "shift");
  json.Uint(arg.reg.shift);
  json_key(json, "class");
  json_text(json, arg.reg.floating ? "fp" : "gpr");
  if (arg.pair_high.empty()) return;
  json_key(json, "pair_high");
  json_text(json, arg.pair_high);
}

void write_operand(JsonWriter& json, const Arg& arg, const MemOperand& mem) {
  json_key(json, "base");
  json_text_or_null(json, arg.base);
  json_key(json, "base_text");
  json_text_or_null(json, mem.base);
  json_key(json, "index");
  json_text_or_null(json, arg.index);
  json_key(json, "index_text");
  json_text_or_null(json, mem.index);
  json_key(json, "scale");
  json.Uint(mem.scale);
  json_key(json, "disp");
  json.Int64(mem.disp);
  symbol_keys(json, mem.symbol);
  json_key(json, "segment");
  json_text_or_null(json, mem.segment);
  json_key(json, "pcrel");
  json.Bool(arg.pc_relative);
  json_key(json, "extend");
  json_text_or_null(json, name_of(mem.extend));
  json_key(json, "amount");
  json.Uint(mem.amount);
  json_key(json, "writeback");
  json_text_or_null(json, name_of(mem.writeback));
}

}  // namespace

void write_arg(JsonWriter& json, const Arg& arg) {
  const ArgSpec& spec = arg.spec;
  json.StartObject();
  if (!arg.name.empty()) {
    json_key(json, "name");
    json_text(json, arg.name);
  }
  if (!arg.type.empty()) {
    json_key(json, "type");
    json_text(json, arg.type);
  }
  json_key(json, "text");
  json_text(json, spec.text);
  json_key(json, "size");
  spec.size ? json.Uint(*spec.size) : json.Null();
  json_key(json, "signed");
  json.Bool(spec.is_signed);
  json_key(json, "float");
  json.Bool(spec.is_float);
  json_key(json, "kind");
  json_text_or_null(json, kind_of(spec));
  std::visit([&](const auto& operand) { write_operand(json, arg, operand); }, spec.operand);
  json_key(json, "needs");
  json.StartArray();
  for (const std::string& need : arg.needs) json_text(json, need);
  json.EndArray();
  json_key(json, "readable");
  json.Bool(arg.readable);
  if (!arg.readable) {
    json_key(json, "reason");
    json_text(json, arg.reason);
  }
  json.EndObject();
}

}  // namespace usdt::tools
