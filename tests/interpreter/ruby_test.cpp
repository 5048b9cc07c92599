// SPDX-License-Identifier: BSD-2-Clause
// Names of functions of Ruby, from objects that a test makes up as versions of Ruby lay them out. (That they do lay
// them out so, tests/live/stack/ruby_stack_test.py shows.)
#include "interpreter/ruby.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

#include "interpreter/code_words.hpp"
#include "tests/interpreter/fake_memory.hpp"

namespace usdt::interpreter {
namespace {

constexpr std::uint64_t code = 0x1000, label = 0x2000, path = 0x3000, instructions = 0x4000, lines = 0x5000,
                        ranks = 0x6000, method = 0x7000, definition = 0x8000, data = 0x9000, names = 0xa000,
                        some_names = 0xb000, texts = 0x20000;
constexpr std::uint64_t text_type = 0x05, list_type = 0x07, method_flags = 0x601a, elsewhere = 1 << 13;

using NameWords = std::array<__u64, USDT_NAME_WORDS>;

class RubyMemory : public testing::TestWithParam<std::uint16_t> {
 protected:
  RubyMemory() : layout(*ruby_layout(GetParam())) {
    make_code();
    make_method();
  }

  void put_short_text(std::uint64_t at, std::string_view text) {
    memory.add(at, 40);
    const bool has_length_in_flags = GetParam() == 0x0301;
    memory.put(at, text_type | (has_length_in_flags ? std::uint64_t{text.size()} << 14 : 0));
    if (!has_length_in_flags) memory.put(at + 16, std::uint64_t{text.size()});
    memory.put_text(at + layout.text_within, text);
  }
  void put_long_text(std::uint64_t at, std::string_view text) {
    memory.add(at, 40);
    memory.put(at, text_type | elsewhere);
    memory.put(at + 16, std::uint64_t{text.size()});
    memory.put(at + 24, at + 0x100);
    memory.add(at + 0x100, text.size());
    memory.put_text(at + 0x100, text);
  }
  void put_list(std::uint64_t at, std::uint64_t count) {
    memory.add(at, 40);
    memory.put(at, list_type);
    memory.put(at + 16, count);
    memory.put(at + 32, at + 0x100);
    memory.add(at + 0x100, count * 8);
  }

  /// Three lines, which begin at the instructions 0, 2 and 5 of 8.
  void make_code() {
    memory.add(code, 312);
    memory.put(code + 4, std::uint32_t{8});
    memory.put(code + 8, instructions);
    memory.put(code + 64, path);
    memory.put(code + 80, label);
    memory.put(code + 88, std::uint64_t{2 * 30 + 1});
    memory.put(code + layout.code_lines, lines);
    memory.put(code + layout.code_line_count, std::uint32_t{3});
    memory.put(code + layout.code_ranks, ranks);
    put_short_text(label, "block in total");
    put_long_text(path, "/srv/shop/lib/models/cart.rb");
    memory.add(lines, 36);
    for (std::uint32_t i = 0; i < 3; ++i) memory.put(lines + 12 * i, 31 + i);
    memory.add(ranks, 48);
    std::uint64_t word = 0;
    for (unsigned p = 0; p < 9; ++p) word |= std::uint64_t{p < 2 ? 1U : p < 5 ? 2U : 3U} << 7 * p;
    memory.put(ranks, word);
  }
  /// The name 700 is "sort_by"; those of operators are there, too.
  void make_method() {
    memory.add(method, 40);
    memory.put(method, method_flags);
    memory.put(method + 16, definition);
    memory.add(definition, 48);
    memory.put(definition + 32, std::uint64_t{700} << 4 | 1);
    memory.add(data, 256);
    memory.put(data + 64, std::uint32_t{1000});
    memory.put(data + 80, names);
    put_list(names, 2);
    for (std::uint64_t i = 0; i < 2; ++i) {
      memory.put(names + 0x100 + 8 * i, some_names + i * 0x4000);
      put_list(some_names + i * 0x4000, 1024);
    }
    for (const char each : {'+', '-', '<'}) put_name(static_cast<std::uint64_t>(each), std::string(1, each));
    put_name(700, "sort_by");
  }
  void put_name(std::uint64_t number, std::string_view text) {
    memory.put(some_names + number / 512 * 0x4000 + 0x100 + number % 512 * 16, texts + 64 * number);
    put_short_text(texts + 64 * number, text);
  }

  [[nodiscard]] std::uint64_t code_cookie() const {
    const auto words = *read_code_words(memory, layout.walk.code, code);
    const auto name = *memory.value<NameWords>(label + 16);
    return usdt_code_cookie(words.data(), layout.walk.code.mask, usdt_name_hash(name.data(), sizeof(name)));
  }
  [[nodiscard]] std::uint64_t method_cookie() const {
    const auto words = *read_code_words(memory, layout.walk.stacked.method, method);
    return usdt_code_cookie(words.data(), layout.walk.stacked.method.mask,
                            *memory.value<std::uint64_t>(definition + 32));
  }
  [[nodiscard]] CodeState read_code() { return read_ruby_code(memory, layout, code, code_cookie(), read); }
  [[nodiscard]] CodeState read_method() {
    RubyNameTable table(layout, data, 256);
    return read_ruby_method(memory, layout, table, method, method_cookie(), read);
  }

  FakeMemory memory;
  const RubyLayout& layout;
  RubyNames read;
};

TEST_P(RubyMemory, has_a_functions_label_its_path_and_lines) {
  ASSERT_EQ(read_code(), CodeState::read);
  EXPECT_EQ(read.function, "block in total");
  EXPECT_EQ(read.file, "/srv/shop/lib/models/cart.rb");
  EXPECT_EQ(read.line_before(instructions), 31U) << "it has not begun";
  EXPECT_EQ(read.line_before(instructions + 8 * 2), 31U) << "the next instruction is of the next line";
  EXPECT_EQ(read.line_before(instructions + 8 * 3), 32U);
  EXPECT_EQ(read.line_before(instructions + 8 * 8), 33U);
  EXPECT_EQ(read.line_before(instructions - 8), 0U) << "before the first one";
}

TEST_P(RubyMemory, has_one_line_for_all_instructions_without_a_set) {
  memory.put(code + layout.code_line_count, std::uint32_t{1});
  memory.put(code + layout.code_ranks, std::uint64_t{0});
  ASSERT_EQ(read_code(), CodeState::read);
  EXPECT_EQ(read.line_before(instructions + 8 * 7), 31U);
}

TEST_P(RubyMemory, has_the_path_as_it_was_written_before_the_real_one) {
  put_short_text(0x3800, "lib/cart.rb");
  memory.put(path, list_type | elsewhere | std::uint64_t{2} << 15);  // two entries within the list
  memory.put(path + 16, std::uint64_t{0x3800});
  ASSERT_EQ(read_code(), CodeState::read);
  EXPECT_EQ(read.file, "lib/cart.rb");
}

TEST_P(RubyMemory, of_another_function_in_the_same_place_is_not_shown) {
  const std::uint64_t before = code_cookie();
  memory.put(code + 88, std::uint64_t{2 * 40 + 1});  // it begins at another line
  EXPECT_EQ(read_ruby_code(memory, layout, code, before, read), CodeState::changed);
}

TEST_P(RubyMemory, of_another_name_in_the_same_place_is_not_shown) {
  const std::uint64_t before = code_cookie();
  put_short_text(label, "block in average");
  EXPECT_EQ(read_ruby_code(memory, layout, code, before, read), CodeState::changed);
}

TEST_P(RubyMemory, that_changes_while_it_is_read_is_not_shown) {
  const std::uint64_t before = code_cookie();
  unsigned reads = 0;
  memory.before_read = [&] {
    if (++reads == 6) memory.put(code + 8, instructions + 8);
  };
  EXPECT_EQ(read_ruby_code(memory, layout, code, before, read), CodeState::changed);
  EXPECT_GT(reads, 6U);
}

TEST_P(RubyMemory, has_names_of_methods_written_in_c) {
  ASSERT_EQ(read_method(), CodeState::read);
  EXPECT_EQ(read.function, "sort_by");
  EXPECT_EQ(read.file, "");
  EXPECT_EQ(read.line_before(0), 0U);
}

TEST_P(RubyMemory, has_operators_by_their_characters) {
  memory.put(definition + 32, std::uint64_t{'<'});
  ASSERT_EQ(read_method(), CodeState::read);
  EXPECT_EQ(read.function, "<");
}

TEST_P(RubyMemory, without_a_table_of_names_says_that_a_function_is_written_in_c) {
  put_short_text(texts + 64 * '+', "plus");  // a list that only looks like it
  ASSERT_EQ(read_method(), CodeState::read);
  EXPECT_EQ(read.function, "<C function>");
}

TEST_P(RubyMemory, of_an_object_that_is_no_method_is_not_shown) {
  const std::uint64_t before = method_cookie();
  memory.put(method, std::uint64_t{0x101a});  // imemo_cref
  RubyNameTable table(layout, data, 256);
  EXPECT_EQ(read_ruby_method(memory, layout, table, method, before, read), CodeState::changed);
}

INSTANTIATE_TEST_SUITE_P(of_versions, RubyMemory, testing::Values(0x0301, 0x0303));

TEST(RubyLayout, of_other_versions_is_not_known) {
  EXPECT_EQ(ruby_layout(0x0300), nullptr);
  EXPECT_EQ(ruby_layout(0x0302), nullptr);
}

TEST(RubyObjects, take_bounded_room_whatever_they_have) {
  std::mt19937_64 random(31);
  for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
    const RubyLayout& layout = *ruby_layout(seed % 2 == 0 ? 0x0301 : 0x0303);
    const AnyMemory memory(seed);
    const std::uint64_t address = random() >> random() % 64;
    const auto words = read_code_words(memory, layout.walk.code, address);
    const auto name =
        words ? memory.value<NameWords>((*words)[layout.walk.code.name_word] + layout.walk.code.name_at) : std::nullopt;
    RubyNames read;
    const std::uint64_t cookie =
        name ? usdt_code_cookie(words->data(), layout.walk.code.mask, usdt_name_hash(name->data(), sizeof(*name))) : 0;
    if (read_ruby_code(memory, layout, address, cookie, read) == CodeState::read)
      static_cast<void>(read.line_before(read.instructions + 8 * (random() % 4096)));
    RubyNameTable table(layout, address, random() >> random() % 64);
    if (seed % 1000 == 0) static_cast<void>(table.find(memory, random() >> random() % 64));
    ASSERT_LE(memory.largest, 1U << 20);
  }
}

}  // namespace
}  // namespace usdt::interpreter
