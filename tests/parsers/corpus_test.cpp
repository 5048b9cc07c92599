// SPDX-License-Identifier: BSD-2-Clause
// The decode reference of the shared corpus (its README.md names the keys), field by field. The corpus is a folder
// beside the source tree, or $USDT_CORPUS; any decode-*.jsonl in it is read.
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "parsers/args.hpp"
#include "tests/places.hpp"

namespace usdt::parsers {
namespace {

namespace fs = std::filesystem;
using rapidjson::Value;

constexpr std::array kExtends = {"", "lsl", "uxtw", "sxtw", "uxtx", "sxtx"};
constexpr std::array kWritebacks = {"", "pre", "post"};

std::vector<fs::path> decode_files() {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(test::corpus_dir(), error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("decode-") && name.ends_with(".jsonl")) files.push_back(entry.path());
  }
  return files;
}

/// The member as text, "" where it is null or absent.
std::string text_of(const Value& arg, const char* key) {
  const auto member = arg.FindMember(key);
  return member == arg.MemberEnd() || member->value.IsNull() ? "" : member->value.GetString();
}

void expect_operand(const ConstOperand& constant, const Value& arg) {
  EXPECT_STREQ(arg["kind"].GetString(), "const");
  const Value& value = arg["value"];
  EXPECT_EQ(constant.negative, value.IsInt64() && value.GetInt64() < 0);
  EXPECT_EQ(constant.bits(), value.IsUint64() ? value.GetUint64() : static_cast<std::uint64_t>(value.GetInt64()));
  EXPECT_EQ(constant.symbol.value_or(SymbolRef{}).name, text_of(arg, "symbol"));
}

void expect_operand(const RegOperand& reg, const Value& arg) {
  EXPECT_STREQ(arg["kind"].GetString(), "reg");
  EXPECT_EQ(reg.name, text_of(arg, "reg"));
}

void expect_operand(const MemOperand& mem, const Value& arg) {
  EXPECT_STREQ(arg["kind"].GetString(), "mem");
  EXPECT_EQ(mem.base, text_of(arg, "base_text"));
  EXPECT_EQ(mem.index, text_of(arg, "index_text"));
  EXPECT_EQ(mem.scale, arg["scale"].GetUint());
  EXPECT_EQ(mem.disp, arg["disp"].GetInt64());
  EXPECT_EQ(mem.symbol.value_or(SymbolRef{}).name, text_of(arg, "symbol"));
  EXPECT_EQ(mem.symbol.value_or(SymbolRef{}).reloc, text_of(arg, "reloc"));
  EXPECT_EQ(mem.segment, text_of(arg, "segment"));
  EXPECT_EQ(kExtends.at(static_cast<std::size_t>(mem.extend)), text_of(arg, "extend"));
  EXPECT_EQ(mem.amount, arg["amount"].GetUint());
  EXPECT_EQ(kWritebacks.at(static_cast<std::size_t>(mem.writeback)), text_of(arg, "writeback"));
}

void expect_operand(std::monostate, const Value& arg) { ADD_FAILURE() << "not decoded: " << arg["text"].GetString(); }

void expect_arg(const ParsedArg& spec, const Value& arg) {
  EXPECT_EQ(spec.text, arg["text"].GetString());
  EXPECT_EQ(spec.size, arg["size"].IsNull() ? std::nullopt : std::optional(arg["size"].GetUint()));
  EXPECT_EQ(spec.is_signed, arg["signed"].GetBool());
  EXPECT_EQ(spec.is_float, arg["float"].GetBool());
  EXPECT_FALSE(spec.unreadable);
  std::visit([&](const auto& operand) { expect_operand(operand, arg); }, spec.operand);
}

void expect_row(const std::string& line) {
  rapidjson::Document row;
  ASSERT_FALSE(row.Parse(line.c_str()).HasParseError());
  const std::string_view arch = row["arch"].GetString();
  const Machine machine = arch == "arm64" ? Machine::aarch64 : arch == "i386" ? Machine::i386 : Machine::x86_64;
  const std::vector<ParsedArg> args = parse_args(row["args"].GetString(), machine);
  const auto& decoded = row["decoded"].GetArray();
  ASSERT_EQ(args.size(), decoded.Size());
  for (rapidjson::SizeType i = 0; i < decoded.Size(); ++i) expect_arg(args[i], decoded[i]);
}

TEST(SharedCorpus, decodes_as_its_reference_says) {
  const std::vector<fs::path> files = decode_files();
  if (files.empty()) GTEST_SKIP() << "no decode-*.jsonl beside the source tree or in $USDT_CORPUS";
  for (const fs::path& path : files) {
    std::ifstream file(path);
    std::string line;
    int rows = 0;
    for (; std::getline(file, line); ++rows) {
      SCOPED_TRACE(line.substr(0, 200));
      expect_row(line);
    }
    EXPECT_GT(rows, 0) << path;
  }
}

}  // namespace
}  // namespace usdt::parsers
