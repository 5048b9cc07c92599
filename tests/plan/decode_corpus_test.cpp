// SPDX-License-Identifier: BSD-2-Clause
// Every distinct argument string of the development corpus, against its reference decode (corpus/README.md).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

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

json text_or_null(const std::string& text) { return text.empty() ? json() : json(text); }

json number(bool is_signed, std::uint64_t bits) {
  return is_signed ? json(static_cast<std::int64_t>(bits)) : json(bits);
}

void describe(const ConstOperand& operand, const Arg& arg, json& out) {
  out["kind"] = "const";
  out["value"] = number(operand.negative, operand.bits());
  out["typed"] = number(arg.spec.is_signed, arg.const_bits);
}

void describe(const RegOperand& operand, const Arg& arg, json& out) {
  out["kind"] = "reg";
  out["reg"] = operand.name;
  out["canon"] = arg.reg.canon;
  out["bits"] = arg.reg.bits;
  out["shift"] = arg.reg.shift;
  out["class"] = arg.reg.floating ? "fp" : "gpr";
  if (!arg.pair_high.empty()) out["pair_high"] = arg.pair_high;
}

void describe(const MemOperand& operand, const Arg& arg, json& out) {
  out["kind"] = "mem";
  out["base"] = text_or_null(arg.base);
  out["base_text"] = text_or_null(operand.base);
  out["index"] = text_or_null(arg.index);
  out["index_text"] = text_or_null(operand.index);
  out["scale"] = operand.scale;
  out["disp"] = operand.disp;
  out["symbol"] = operand.symbol ? json(operand.symbol->name) : json();
  out["reloc"] = operand.symbol ? text_or_null(operand.symbol->reloc) : json();
  out["segment"] = text_or_null(operand.segment);
  out["pcrel"] = arg.pc_relative;
  out["amount"] = operand.amount;
  // The development set has none; the names here are never equal to a reference that had one.
  out["extend"] = operand.extend == Extend::none ? json() : json("unexpected");
  out["writeback"] = operand.writeback == Writeback::none ? json() : json("unexpected");
}

void describe(std::monostate, const Arg&, json& out) { out["kind"] = nullptr; }

json describe(const Arg& arg) {
  json out = {{"text", arg.spec.text},
              {"size", arg.size},
              {"signed", arg.spec.is_signed},
              {"float", arg.spec.is_float},
              {"needs", arg.needs}};
  std::visit([&](const auto& operand) { describe(operand, arg, out); }, arg.spec.operand);
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
    for (const Arg& arg : decoder.decode(row.at("args").get<std::string>())) decoded.push_back(describe(arg));
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
      EXPECT_EQ(arg.readable, arg.needs.empty()) << arg.spec.text << ": " << arg.reason;
      EXPECT_EQ(arg.reason.empty(), arg.readable) << arg.spec.text;
    }
  }
}

}  // namespace
}  // namespace usdt
