// SPDX-License-Identifier: BSD-2-Clause
#include "common/arg_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "usdt/bits.hpp"
#include "usdt/decode.hpp"

namespace usdt::tools {
namespace {

using io::json_key;
using io::json_text;
using io::json_text_or_null;
using io::JsonWriter;

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

void integer(JsonWriter& json, std::uint64_t bits, bool is_signed) {
  is_signed ? json.Int64(static_cast<std::int64_t>(bits)) : json.Uint64(bits);
}

void symbol_keys(JsonWriter& json, const std::optional<SymbolRef>& symbol) {
  json_key(json, "symbol");
  json_text_or_null(json, symbol ? symbol->name : std::string_view());
  json_key(json, "reloc");
  json_text_or_null(json, symbol ? symbol->reloc : std::string_view());
}

void kind_key(JsonWriter& json, std::string_view kind) {
  json_key(json, "kind");
  json_text_or_null(json, kind);
}

/// `name` as it is written, where the machine has no such register.
void register_keys(JsonWriter& json, const RegisterInfo& reg, std::string_view name, bool is_pair) {
  kind_key(json, "reg");
  json_key(json, "reg");
  json_text(json, name);
  json_key(json, "canon");
  json_text_or_null(json, reg.canon.empty() ? name : reg.canon);
  json_key(json, "bits");
  json.Uint(reg.bits);
  json_key(json, "shift");
  json.Uint(reg.shift);
  json_key(json, "class");
  json_text(json, reg.floating ? "fp" : "gpr");
  if (!is_pair) return;
  json_key(json, "pair_high");
  json_text(json, reg.pair_high);
}

/// A register that the machine does not have.
RegisterInfo written(std::string_view name) {
  RegisterInfo info;
  info.name = info.canon = name;
  return info;
}

void memory_keys(JsonWriter& json, const MemOperand& mem, Machine machine) {
  const RegisterInfo base = find_register(machine, mem.base).value_or(written(mem.base));
  const RegisterInfo index = find_register(machine, mem.index).value_or(written(mem.index));
  kind_key(json, "mem");
  json_key(json, "base");
  json_text_or_null(json, base.canon);
  json_key(json, "base_text");
  json_text_or_null(json, base.name);
  json_key(json, "index");
  json_text_or_null(json, index.canon);
  json_key(json, "index_text");
  json_text_or_null(json, index.name);
  json_key(json, "scale");
  json.Uint(mem.scale);
  json_key(json, "disp");
  json.Int64(mem.disp);
  symbol_keys(json, mem.symbol);
  json_key(json, "segment");
  json_text_or_null(json, mem.segment);
  json_key(json, "pcrel");
  json.Bool(base.instruction_pointer);
  json_key(json, "extend");
  json_text_or_null(json, name_of(mem.extend));
  json_key(json, "amount");
  json.Uint(mem.amount);
  json_key(json, "writeback");
  json_text_or_null(json, name_of(mem.writeback));
}

/// The keys of an operand as its note writes it.
struct OperandKeys {
  JsonWriter& json;
  const Arg& arg;
  Machine machine;

  void operator()(std::monostate) const { kind_key(json, {}); }
  void operator()(const ConstOperand& constant) const {
    kind_key(json, "const");
    // A magnitude above 2^63 has no negative JSON integer of 64 bits; the grammar's range keeps it out.
    json_key(json, "value");
    integer(json, constant.bits(), constant.negative);
    json_key(json, "typed");
    if (constant.symbol) {
      json.Null();
      symbol_keys(json, constant.symbol);
    } else {
      const std::size_t bytes = std::clamp<std::size_t>(arg.type.size, 1, 8);
      integer(json, cut(constant.bits(), bytes, arg.type.is_signed), arg.type.is_signed);
    }
  }
  void operator()(const RegOperand& operand) const {
    const auto reg = find_register(machine, operand.name);
    register_keys(json, reg.value_or(RegisterInfo{}), reg ? reg->name : operand.name, arg.needs.has(Need::reg_pair));
  }
  void operator()(const MemOperand& memory) const { memory_keys(json, memory, machine); }
};

/// The same of a location that no note wrote: where the calling convention of the kernel puts a value.
struct LocationKeys {
  JsonWriter& json;
  Machine machine;

  void operator()(const Unreadable&) const { kind_key(json, {}); }
  void operator()(const Constant& constant) const {
    kind_key(json, "const");
    json_key(json, "value");
    json.Uint64(constant.bits);
  }
  void operator()(const Register& location) const {
    const RegisterInfo reg = register_info(machine, location.id);
    register_keys(json, reg, reg.name, location.high != RegisterId::none);
  }
  void operator()(const Slot& slot) const {
    const std::string name = fmt::format("slot{}", slot.number);
    RegisterInfo info = written(name);
    info.bits = 64;
    register_keys(json, info, name, false);
  }
  void operator()(const Memory& memory) const {
    MemOperand operand;
    operand.base = register_info(machine, memory.base).name;
    operand.index = register_info(machine, memory.index).name;
    operand.scale = 1U << memory.shift;
    operand.disp = static_cast<std::int64_t>(memory.displacement);
    memory_keys(json, operand, machine);
  }
};

void needs_keys(JsonWriter& json, Needs needs) {
  static constexpr std::pair<Need, std::string_view> kNames[] = {
      {Need::symbol, "symbol"}, {Need::got, "got"}, {Need::segment_base, "segment-base"}, {Need::reg_pair, "reg-pair"}};
  json_key(json, "needs");
  json.StartArray();
  for (const auto& [need, name] : kNames) {
    if (needs.has(need)) json_text(json, name);
  }
  json.EndArray();
}

void write(JsonWriter& json, const Arg& arg, const ParsedArg* parsed, Machine machine, std::string_view shown) {
  json.StartObject();
  if (!arg.name().empty()) {
    json_key(json, "name");
    json_text(json, arg.name());
  }
  if (!arg.c_type().empty()) {
    json_key(json, "type");
    json_text(json, arg.c_type());
  }
  if (arg.declaration && !arg.declaration->meaning.empty()) {
    json_key(json, "meaning");
    json_text(json, arg.declaration->meaning);
  }
  if (arg.declaration && !arg.declaration->unit.empty()) {
    json_key(json, "unit");
    json_text(json, arg.declaration->unit);
  }
  if (parsed && arg.declaration && !arg.declaration->enumerators.empty())
    write_enumerators(json, arg.declaration->enumerators);
  json_key(json, "text");
  json_text(json, parsed ? std::string(parsed->text) : location_text(arg.location, machine));
  json_key(json, "size");
  parsed && !parsed->size ? json.Null() : json.Uint(arg.type.size);
  json_key(json, "signed");
  json.Bool(arg.type.is_signed);
  json_key(json, "float");
  json.Bool(arg.type.is_float());
  if (parsed) {
    std::visit(OperandKeys{json, arg, machine}, parsed->operand);
  } else {
    std::visit(LocationKeys{json, machine}, arg.location);
  }
  needs_keys(json, arg.needs);
  json_key(json, "readable");
  json.Bool(arg.readable());
  if (!arg.readable()) {
    json_key(json, "reason");
    json_text(json, arg.why_unreadable());
  }
  if (!shown.empty()) {
    json_key(json, "shown");
    json_text(json, shown);
  }
  json.EndObject();
}

}  // namespace

void write_enumerators(JsonWriter& json, const std::vector<Enumerator>& all) {
  json_key(json, "enumerators");
  json.StartArray();
  for (const Enumerator& each : all) {
    json.StartObject();
    json_key(json, "name");
    json_text(json, each.name);
    json_key(json, "value");
    json.Int64(static_cast<std::int64_t>(each.bits));
    json.EndObject();
  }
  json.EndArray();
}

void write_arg(JsonWriter& json, const Arg& arg, const ParsedArg& parsed, Machine machine) {
  write(json, arg, &parsed, machine, {});
}
void write_arg(JsonWriter& json, const Arg& arg, Machine machine, std::string_view shown) {
  write(json, arg, nullptr, machine, shown);
}

}  // namespace usdt::tools
