// SPDX-License-Identifier: BSD-2-Clause
// Every distinct argument string of the development corpus, against its reference decode (corpus/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "usdt/bits.hpp"
#include "usdt/decode.hpp"

namespace usdt {
namespace {

using nlohmann::json;

std::filesystem::path reference_path() {
  const char* given = std::getenv("USDT_CORPUS");
  const std::filesystem::path dir = given != nullptr ? given : USDT_SOURCE_DIR "/../shared/corpus";
  return dir / "decode-dev.jsonl";
}

Machine machine_named(const std::string& name) {
  if (name == "amd64") return Machine::x86_64;
  return name == "i386" ? Machine::i386 : Machine::aarch64;
}

json text_or_null(std::string_view text) { return text.empty() ? json() : json(text); }

json number(bool is_signed, std::uint64_t bits) {
  return is_signed ? json(static_cast<std::int64_t>(bits)) : json(bits);
}

/// What the reference says of an operand, from its text and from what it came to.
struct Description {
  const Arg& arg;
  Machine machine;
  json& out;

  void operator()(std::monostate) const { out["kind"] = nullptr; }

  void operator()(const ConstOperand& operand) const {
    out["kind"] = "const";
    out["value"] = number(operand.negative, operand.bits());
    const auto* constant = std::get_if<Constant>(&arg.location);
    ASSERT_TRUE(constant || !arg.readable()) << arg.source;
    const std::size_t size = std::clamp<std::size_t>(arg.type.size, 1, 8);
    out["typed"] =
        number(arg.type.is_signed, constant ? constant->bits : cut(operand.bits(), size, arg.type.is_signed));
  }

  void operator()(const RegOperand& operand) const {
    const auto reg = find_register(machine, operand.name);
    ASSERT_TRUE(reg) << arg.source;
    out["kind"] = "reg";
    out["reg"] = operand.name;
    out["canon"] = reg->canon;
    out["bits"] = reg->bits;
    out["shift"] = reg->shift;
    out["class"] = reg->floating ? "fp" : "gpr";
    if (arg.needs.has(Need::reg_pair)) out["pair_high"] = reg->pair_high;
    if (const auto* location = std::get_if<Register>(&arg.location)) {
      EXPECT_EQ(register_info(machine, location->id).name, operand.name);
    }
  }

  void operator()(const MemOperand& operand) const {
    const auto base = find_register(machine, operand.base);
    const auto index = find_register(machine, operand.index);
    out["kind"] = "mem";
    out["base"] = text_or_null(base ? base->canon : operand.base);
    out["base_text"] = text_or_null(operand.base);
    out["index"] = text_or_null(index ? index->canon : operand.index);
    out["index_text"] = text_or_null(operand.index);
    out["scale"] = operand.scale;
    out["disp"] = operand.disp;
    out["symbol"] = operand.symbol ? json(operand.symbol->name) : json();
    out["reloc"] = operand.symbol ? text_or_null(operand.symbol->reloc) : json();
    out["segment"] = text_or_null(operand.segment);
    out["pcrel"] = base && base->instruction_pointer;
    out["amount"] = operand.amount;
    // The development set has none; the names here are never equal to a reference that had one.
    out["extend"] = operand.extend == Extend::none ? json() : json("unexpected");
    out["writeback"] = operand.writeback == Writeback::none ? json() : json("unexpected");
    const auto* memory = std::get_if<Memory>(&arg.location);
    if (memory && !operand.symbol) {
      EXPECT_EQ(register_info(machine, memory->base).name, operand.base);
      EXPECT_EQ(register_info(machine, memory->index).name, operand.index);
      EXPECT_EQ(memory->displacement, static_cast<std::uint64_t>(operand.disp));
    }
  }
};

json names(Needs needs) {
  json out = json::array();
  if (needs.has(Need::symbol)) out.push_back("symbol");
  if (needs.has(Need::got)) out.push_back("got");
  if (needs.has(Need::segment_base)) out.push_back("segment-base");
  if (needs.has(Need::reg_pair)) out.push_back("reg-pair");
  return out;
}

json describe(const Arg& arg, const ParsedArg& parsed, Machine machine) {
  json out = {{"text", arg.source},
              {"size", arg.type.size},
              {"signed", arg.type.is_signed},
              {"float", arg.type.is_float()},
              {"needs", names(arg.needs)}};
  std::visit(Description{arg, machine, out}, parsed.operand);
  return out;
}

TEST(DecodeCorpus, EqualsTheReferenceInEveryKey) {
  std::ifstream reference(reference_path());
  if (!reference) GTEST_SKIP() << "no corpus at " << reference_path() << " (set USDT_CORPUS)";
  int strings = 0;
  for (std::string line; std::getline(reference, line); ++strings) {
    const json row = json::parse(line);
    const ArgDecoder decoder(machine_named(row.at("arch")));
    json expected = row.at("decoded");
    for (json& each : expected) each.erase("flags");
    json decoded = json::array();
    const auto text = row.at("args").get<std::string>();
    const std::vector<ParsedArg> parsed = decoder.parse(text);
    const std::vector<Arg> args = decoder.decode(parsed);
    for (std::size_t i = 0; i < args.size(); ++i) decoded.push_back(describe(args[i], parsed[i], decoder.machine()));
    EXPECT_EQ(decoded, expected) << row.at("arch") << " " << row.at("args");
  }
  EXPECT_GT(strings, 1000);
}

TEST(DecodeCorpus, NeedsNoFileForWhatHasNoNeeds) {
  std::ifstream reference(reference_path());
  if (!reference) GTEST_SKIP() << "no corpus at " << reference_path() << " (set USDT_CORPUS)";
  for (std::string line; std::getline(reference, line);) {
    const json row = json::parse(line);
    const ArgDecoder decoder(machine_named(row.at("arch")));
    for (const Arg& arg : decoder.decode(row.at("args").get<std::string>())) {
      EXPECT_EQ(arg.readable(), arg.needs.empty()) << arg.source << ": " << arg.why_unreadable();
    }
  }
}

}  // namespace
}  // namespace usdt
