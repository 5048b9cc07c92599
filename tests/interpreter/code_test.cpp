// SPDX-License-Identifier: BSD-2-Clause
// Names of functions, from code objects that a test makes up as CPython 3.11 lays them out. (That it does lay them out
// so, tests/live/stack/python_stack_test.py shows.)
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

#include "interpreter/code_words.hpp"
#include "interpreter/cpython.hpp"
#include "tests/interpreter/fake_memory.hpp"

namespace usdt::interpreter {
namespace {

constexpr std::uint64_t code = 0x1000, name = 0x2000, qualified = 0x3000, file = 0x4000, lines = 0x5000, type = 0x600;
constexpr std::uint64_t hash = 0x1234;

/// State of a text: bytes of a character, after the object, ASCII.
constexpr std::uint32_t state_of(std::uint32_t size, bool ascii) { return size << 2 | 1 << 5 | (ascii ? 1 << 6 : 0); }

class Code : public testing::Test {
 protected:
  Code() : layout(*cpython_layout(0x030b, memory, 0)) {
    memory.add(code, 400);
    memory.put(code, std::uint64_t{2});  // ob_refcnt
    memory.put(code + 8, type);
    memory.put(code + 72, std::uint32_t{40});  // co_firstlineno
    memory.put(code + 168, std::uint32_t{1});  // _co_firsttraceable
    put_text(name, "total");
    put_text(qualified, "Cart.total");
    put_text(file, "/srv/cart.py");
    memory.put(code + 112, file);
    memory.put(code + 120, name);
    memory.put(code + 128, qualified);
    memory.put(code + 136, lines);
    memory.add(lines, 64);
    memory.put(lines + 16, std::uint64_t{4});
    memory.put(lines + 32, std::array<std::uint8_t, 4>{0xd8, 0, 0xd9, 0});  // a line further: one unit, then two
  }
  void put_text(std::uint64_t at, std::string_view text) {
    memory.add(at, 48 + text.size() + 1);
    memory.put(at + 16, std::uint64_t{text.size()});
    memory.put(at + 24, hash);
    memory.put(at + 32, state_of(1, true));
    memory.put_text(at + 48, text);
  }
  [[nodiscard]] std::uint64_t cookie(std::uint64_t of_name = hash) const {
    const auto words = *read_code_words(memory, layout.walk.code, code);
    return usdt_code_cookie(words.data(), layout.walk.code.mask, of_name);
  }
  CodeState read(std::uint64_t with) { return read_code(memory, layout, type, code, with, names); }

  FakeMemory memory;
  CPythonLayout layout;
  CodeNames names;
};

TEST_F(Code, has_names_and_lines) {
  ASSERT_EQ(read(cookie()), CodeState::read);
  EXPECT_EQ(names.function, "Cart.total");
  EXPECT_EQ(names.file, "/srv/cart.py");
  EXPECT_EQ(names.line_at(-2), 40U) << "before the first instruction";
  EXPECT_EQ(names.line_at(0), 41U);
  EXPECT_EQ(names.line_at(2), 42U);
  EXPECT_EQ(names.line_at(4), 42U);
  EXPECT_EQ(names.line_at(6), 0U) << "behind the last one";
}

TEST_F(Code, has_begun_from_its_first_traceable_instruction_on) {
  ASSERT_EQ(read(cookie()), CodeState::read);
  constexpr unsigned thread = 0, generator = 1;
  EXPECT_FALSE(names.has_begun(-2, thread));
  EXPECT_FALSE(names.has_begun(0, thread));
  EXPECT_TRUE(names.has_begun(2, thread));
  EXPECT_TRUE(names.has_begun(0, generator));
}

TEST_F(Code, of_another_object_at_its_address_is_not_taken_for_it) {
  const std::uint64_t before = cookie();
  memory.put(code + 72, std::uint32_t{41});
  EXPECT_EQ(read(before), CodeState::changed);
}

TEST_F(Code, of_a_function_with_another_name_at_the_same_addresses_is_not_taken_for_it) {
  const std::uint64_t before = cookie();
  memory.put(name + 24, hash + 1);
  EXPECT_EQ(read(before), CodeState::changed);
}

TEST_F(Code, whose_name_got_its_hash_since_is_the_same) { EXPECT_EQ(read(cookie(~0ULL)), CodeState::read); }

TEST_F(Code, of_another_type_is_none) {
  memory.put(code + 8, type + 8);
  EXPECT_EQ(read(cookie()), CodeState::changed);
}

TEST_F(Code, that_was_freed_and_is_still_there_is_not_shown) {
  // Behind the pointer that the allocator of CPython keeps in free memory nothing has changed yet.
  for (const std::uint64_t next : {std::uint64_t{0}, std::uint64_t{0x7f12'3456'7890}}) {
    memory.put(code, next);
    EXPECT_EQ(read(cookie()), CodeState::changed) << next;
  }
  for (const std::uint64_t references : {0x1ULL, 0x3b9a'c9ffULL, 0xffff'ffffULL, 0x0004'0000'c000'0000ULL}) {
    memory.put(code, references);
    EXPECT_EQ(read(cookie()), CodeState::read) << references << ": of one that lives for ever, perhaps";
  }
}

TEST_F(Code, that_is_freed_while_it_is_read_is_not_shown) {
  for (int at = 1; at < 12; ++at) {
    int reads = 0;
    const std::uint64_t before = cookie();
    memory.before_read = [&] {
      if (++reads == at) memory.put(code, std::uint64_t{0});
    };
    const CodeState state = read(before);
    memory.before_read = nullptr;
    EXPECT_TRUE(state == CodeState::changed || (reads <= at && state == CodeState::read)) << "at read " << at;
    memory.put(code, std::uint64_t{2});
  }
}

TEST_F(Code, that_is_replaced_while_it_is_read_is_not_shown) {
  for (int at = 1; at < 12; ++at) {
    const std::uint64_t before = cookie();
    int reads = 0;
    memory.before_read = [&] {
      if (++reads == at) memory.put(code + 72, std::uint32_t{99});
    };
    const CodeState state = read(before);
    memory.before_read = nullptr;
    EXPECT_TRUE(state == CodeState::changed || (reads <= at && state == CodeState::read)) << "at read " << at;
    memory.put(code + 72, std::uint32_t{40});
  }
}

TEST_F(Code, without_memory_is_unreadable) {
  const std::uint64_t before = cookie();
  memory.pieces().erase(code);
  EXPECT_EQ(read(before), CodeState::unreadable);
}

TEST_F(Code, whose_line_table_cannot_be_read_has_names_and_no_lines) {
  memory.put(lines + 16, std::uint64_t{1} << 40);
  ASSERT_EQ(read(cookie()), CodeState::read);
  EXPECT_EQ(names.function, "Cart.total");
  EXPECT_EQ(names.line_at(0), 0U);
}

TEST_F(Code, texts_of_other_characters_are_utf8) {
  memory.add(qualified, 72 + 16);
  const auto set = [&](std::uint64_t length, std::uint32_t size) {
    memory.put(qualified + 16, length);
    memory.put(qualified + 32, state_of(size, false));
  };
  set(2, 1);
  memory.put(qualified + 72, std::array<std::uint8_t, 2>{0x61, 0xe9});
  EXPECT_EQ(read_text(memory, layout, qualified), "a\xc3\xa9");
  set(3, 2);
  memory.put(qualified + 72, std::array<std::uint16_t, 3>{0x4e2d, 0xdcff, 0x41});
  EXPECT_EQ(read_text(memory, layout, qualified),
            "\xe4\xb8\xad\xff"
            "A")
      << "a byte that was no character is that byte";
  set(1, 4);
  memory.put(qualified + 72, std::uint32_t{0x1f40d});
  EXPECT_EQ(read_text(memory, layout, qualified), "\xf0\x9f\x90\x8d");
  set(1, 3);
  EXPECT_EQ(read_text(memory, layout, qualified), std::nullopt) << "no such characters";
}

TEST_F(Code, a_text_longer_than_a_path_can_be_is_cut) {
  memory.add(qualified, 48 + 10'000);
  memory.put(qualified + 16, std::uint64_t{10'000});
  memory.put(qualified + 32, state_of(1, true));
  EXPECT_EQ(read_text(memory, layout, qualified)->size(), 4096U + 3);
  memory.put(qualified + 16, ~std::uint64_t{0});
  EXPECT_EQ(read_text(memory, layout, qualified)->size(), 4096U + 3);
}

TEST_F(Code, of_which_any_byte_is_another_one_is_read_or_refused) {
  std::mt19937_64 random(7);
  const auto whole = memory.pieces();
  for (int round = 0; round < 100'000; ++round) {
    memory.pieces() = whole;
    for (auto change = random() % 4; change <= 3; ++change) {
      auto& bytes = std::next(memory.pieces().begin(), static_cast<long>(random() % memory.pieces().size()))->second;
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    const std::uint64_t at_the_hit = random() % 2 == 0 ? cookie() : random();
    if (read(at_the_hit) != CodeState::read) continue;
    for (const std::int64_t distance : {-2L, 0L, 4L, 1L << 33}) static_cast<void>(names.line_at(distance));
  }
}

TEST(HostileMemory, takes_bounded_room_whatever_it_has) {
  std::mt19937_64 random(11);
  const CPythonLayout layout = *cpython_layout(0x030b, FakeMemory(), 0);
  for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
    const AnyMemory memory(seed);
    const std::uint64_t address = random() >> random() % 64;
    CodeNames names;
    const auto words = read_code_words(memory, layout.walk.code, address);
    const auto of_name = words ? memory.value<std::uint64_t>((*words)[8] + 24) : std::nullopt;
    const std::uint64_t cookie = of_name ? usdt_code_cookie(words->data(), layout.walk.code.mask, *of_name) : 0;
    static_cast<void>(read_code(memory, layout, 0, address, cookie, names));
    static_cast<void>(read_text(memory, layout, address));
    static_cast<void>(cpython_layout(0x030d, memory, address));
    ASSERT_LE(memory.largest, 1U << 20);
  }
}

}  // namespace
}  // namespace usdt::interpreter
