// SPDX-License-Identifier: BSD-2-Clause
// locations FILE [PREFIX]: what dwarf/ knows of the functions of FILE whose names begin with PREFIX, as JSON for
// truth_test.py: an object of functions by name, each a list of instances.
#include <fmt/format.h>

#include <cstdio>

#include "arch/arch.hpp"
#include "dwarf/debug_info.hpp"
#include "dwarf/functions.hpp"
#include "locate/signature.hpp"

namespace {

using namespace usdt;

std::string json_text(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    all += c;
  }
  return all + '"';
}

class Json {
 public:
  explicit Json(Machine machine) : arch_(arch::for_machine(machine)) {}

  std::string operator()(const Unreadable& location) const {
    return fmt::format(R"({{"kind":"unreadable","reason":{}}})", json_text(location.reason));
  }
  std::string operator()(const Constant& location) const {
    return fmt::format(R"({{"kind":"constant","value":{}}})", location.bits);
  }
  std::string operator()(const Slot&) const { return R"({"kind":"slot"})"; }
  std::string operator()(const Register& location) const {
    return fmt::format(R"({{"kind":"register","low":{},"high":{}}})", name(location.id), name(location.high));
  }
  std::string operator()(const Memory& location) const {
    return fmt::format(
        R"({{"kind":"memory","base":{},"index":{},"shift":{},"displacement":{},"file":{},"wraps":{},"is_value":{}}})",
        name(location.base), name(location.index), location.shift, location.displacement,
        location.origin == Origin::file, location.wraps_at_32_bits, location.is_value);
  }

  [[nodiscard]] std::string arg(const Arg& arg, const std::vector<Piece>* pieces) const {
    std::string parts;
    for (std::size_t i = 0; pieces != nullptr && i < pieces->size(); ++i) {
      const Piece& each = (*pieces)[i];
      parts += fmt::format(R"({}{{"offset":{},"size":{},"location":{}}})", i == 0 ? "" : ",", each.offset, each.size,
                           std::visit(*this, each.location));
    }
    return fmt::format(R"({{"name":{},"type":{},"size":{},"signed":{},"kind":{},"location":{},"pieces":[{}]}})",
                       json_text(arg.name()), json_text(arg.c_type()), arg.type.size, arg.type.is_signed,
                       static_cast<int>(arg.type.kind), std::visit(*this, arg.location), parts);
  }

 private:
  [[nodiscard]] std::string name(RegisterId id) const {
    return id == RegisterId::none ? "null" : json_text(arch_.reg(id).name);
  }
  const arch::Arch& arch_;
};

std::string instance_json(const Json& json, const dwarf::Instance& instance, const locate::Signature& signature) {
  std::string args;
  for (std::size_t i = 0; i < signature.args.size(); ++i)
    args += (i == 0 ? "" : ",") + json.arg(signature.args[i], &signature.pieces[i]);
  return fmt::format(R"({{"pc":{},"inlined":{},"caller":{},"line":{},"varargs":{},"args":[{}],"result":{}}})",
                     instance.pc.value, instance.inlined, json_text(instance.caller), instance.where_called.line,
                     signature.varargs, args, signature.result ? json.arg(*signature.result, nullptr) : "null");
}

int fail_with(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string_view prefix = argc > 2 ? argv[2] : "";
  const auto file = ElfFile::open(argv[1]);
  if (!file) return fail_with(file.error());
  const auto info = dwarf::DebugInfo::open(*file);
  if (!info) return fail_with(info.error());
  const auto functions =
      dwarf::find_functions(*info, [prefix](const dwarf::FunctionInfo& each) { return each.name.starts_with(prefix); });
  if (!functions) return fail_with(functions.error());
  const locate::Signatures signatures(*info);
  const Json json(file->machine());
  std::string_view comma = "{";
  for (const dwarf::FunctionInfo& function : *functions) {
    std::string instances;
    for (const dwarf::Instance& instance : function.instances) {
      const auto signature = signatures.of(function, instance);
      if (!signature) return fail_with(signature.error());
      instances += (instances.empty() ? "" : ",\n  ") + instance_json(json, instance, *signature);
    }
    const std::string& key = function.linkage_name.empty() ? function.qualified : function.linkage_name;
    fmt::print("{}\n{}: [{}]", comma, json_text(key), instances);
    comma = ",";
  }
  fmt::print("{}}}\n", comma == "{" ? "{" : "\n");
  return 0;
}
