// SPDX-License-Identifier: BSD-2-Clause
// Every distinct argument string of the development corpus, against its reference decode (corpus/README.md).
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/places.hpp"
#include "usdt/bits.hpp"
#include "usdt/decode.hpp"

namespace usdt {
namespace {

using rapidjson::Document;
using rapidjson::StringRef;
using rapidjson::Value;

std::filesystem::path reference_path() { return test::corpus_dir() / "decode-dev.jsonl"; }

Machine machine_named(const std::string& name) {
  if (name == "amd64") return Machine::x86_64;
  return name == "i386" ? Machine::i386 : Machine::aarch64;
}

/// A JSON object being put together.
struct Object {
  Document& owner;
  Value value = Value(rapidjson::kObjectType);

  void set(const char* key, Value&& member) {
    value.AddMember(StringRef(key), std::move(member), owner.GetAllocator());
  }
  void set(const char* key, std::string_view text) {
    set(key, Value(text.data(), static_cast<rapidjson::SizeType>(text.size()), owner.GetAllocator()));
  }
  void set_or_null(const char* key, std::string_view text) { text.empty() ? set(key, Value()) : set(key, text); }
};

Value number(bool is_signed, std::uint64_t bits) {
  return is_signed ? Value(static_cast<std::int64_t>(bits)) : Value(bits);
}

std::string text_of(const Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer writer(buffer);
  value.Accept(writer);
  return buffer.GetString();
}

/// What the reference says of an operand, from its text and from what it came to.
struct Description {
  const Arg& arg;
  Machine machine;
  Object& out;

  void operator()(std::monostate) const { out.set("kind", Value()); }

  void operator()(const ConstOperand& operand) const {
    out.set("kind", "const");
    out.set("value", number(operand.negative, operand.bits()));
    const auto* constant = std::get_if<Constant>(&arg.location);
    ASSERT_TRUE(constant || !arg.readable()) << arg.source;
    const std::size_t size = std::clamp<std::size_t>(arg.type.size, 1, 8);
    out.set("typed",
            number(arg.type.is_signed, constant ? constant->bits : cut(operand.bits(), size, arg.type.is_signed)));
  }

  void operator()(const RegOperand& operand) const {
    const auto reg = find_register(machine, operand.name);
    ASSERT_TRUE(reg) << arg.source;
    out.set("kind", "reg");
    out.set("reg", operand.name);
    out.set("canon", reg->canon);
    out.set("bits", Value(std::uint32_t{reg->bits}));
    out.set("shift", Value(std::uint32_t{reg->shift}));
    out.set("class", reg->floating ? "fp" : "gpr");
    if (arg.needs.has(Need::reg_pair)) out.set("pair_high", reg->pair_high);
    if (const auto* location = std::get_if<Register>(&arg.location)) {
      EXPECT_EQ(register_info(machine, location->id).name, operand.name);
    }
  }

  void operator()(const MemOperand& operand) const {
    const auto base = find_register(machine, operand.base);
    const auto index = find_register(machine, operand.index);
    out.set("kind", "mem");
    out.set_or_null("base", base ? base->canon : operand.base);
    out.set_or_null("base_text", operand.base);
    out.set_or_null("index", index ? index->canon : operand.index);
    out.set_or_null("index_text", operand.index);
    out.set("scale", Value(std::uint32_t{operand.scale}));
    out.set("disp", Value(operand.disp));
    out.set_or_null("symbol", operand.symbol ? std::string_view(operand.symbol->name) : std::string_view());
    out.set_or_null("reloc", operand.symbol ? operand.symbol->reloc : std::string_view());
    out.set_or_null("segment", operand.segment);
    out.set("pcrel", Value(base && base->instruction_pointer));
    out.set("amount", Value(std::uint32_t{operand.amount}));
    // The development set has none; the names here are never equal to a reference that had one.
    out.set_or_null("extend", operand.extend == Extend::none ? "" : "unexpected");
    out.set_or_null("writeback", operand.writeback == Writeback::none ? "" : "unexpected");
    const auto* memory = std::get_if<Memory>(&arg.location);
    if (memory && !operand.symbol) {
      EXPECT_EQ(register_info(machine, memory->base).name, operand.base);
      EXPECT_EQ(register_info(machine, memory->index).name, operand.index);
      EXPECT_EQ(memory->displacement, static_cast<std::uint64_t>(operand.disp));
    }
  }
};

Value names(Needs needs, Document& owner) {
  Value out(rapidjson::kArrayType);
  const auto add = [&](Need need, const char* name) {
    if (needs.has(need)) out.PushBack(StringRef(name), owner.GetAllocator());
  };
  add(Need::symbol, "symbol");
  add(Need::got, "got");
  add(Need::segment_base, "segment-base");
  add(Need::reg_pair, "reg-pair");
  return out;
}

Value describe(const Arg& arg, const ParsedArg& parsed, Machine machine, Document& owner) {
  Object out{owner};
  out.set("text", arg.source);
  out.set("size", Value(arg.type.size));
  out.set("signed", Value(arg.type.is_signed));
  out.set("float", Value(arg.type.is_float()));
  out.set("needs", names(arg.needs, owner));
  std::visit(Description{arg, machine, out}, parsed.operand);
  return std::move(out.value);
}

TEST(DecodeCorpus, equals_the_reference_in_every_key) {
  std::ifstream reference(reference_path());
  if (!reference) GTEST_SKIP() << "no corpus at " << reference_path() << " (set USDT_CORPUS)";
  int strings = 0;
  for (std::string line; std::getline(reference, line); ++strings) {
    Document row;
    row.Parse(line.c_str());
    const ArgDecoder decoder(machine_named(row["arch"].GetString()));
    Value& expected = row["decoded"];
    const std::string text = row["args"].GetString();
    SCOPED_TRACE(row["arch"].GetString() + (" " + text));
    const std::vector<ParsedArg> parsed = decoder.parse(text);
    const std::vector<Arg> args = decoder.decode(parsed);
    ASSERT_EQ(args.size(), expected.Size());
    for (rapidjson::SizeType i = 0; i < expected.Size(); ++i) {
      expected[i].RemoveMember("flags");
      const Value decoded = describe(args[i], parsed[i], decoder.machine(), row);
      EXPECT_TRUE(decoded == expected[i]) << text_of(decoded) << " instead of " << text_of(expected[i]);
    }
  }
  EXPECT_GT(strings, 1000);
}

TEST(DecodeCorpus, needs_no_file_for_what_has_no_needs) {
  std::ifstream reference(reference_path());
  if (!reference) GTEST_SKIP() << "no corpus at " << reference_path() << " (set USDT_CORPUS)";
  for (std::string line; std::getline(reference, line);) {
    Document row;
    row.Parse(line.c_str());
    const ArgDecoder decoder(machine_named(row["arch"].GetString()));
    for (const Arg& arg : decoder.decode(row["args"].GetString())) {
      EXPECT_EQ(arg.readable(), arg.needs.empty()) << arg.source << ": " << arg.why_unreadable();
    }
  }
}

}  // namespace
}  // namespace usdt
