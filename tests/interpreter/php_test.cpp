// SPDX-License-Identifier: BSD-2-Clause
// Names of functions of PHP, from functions that a test makes up as versions of PHP lay them out. (That they do lay
// them out so, tests/live/stack/php_stack_test.py shows.)
#include "interpreter/php.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "interpreter/code_words.hpp"
#include "tests/interpreter/fake_memory.hpp"

namespace usdt::interpreter {
namespace {

constexpr std::uint64_t function = 0x1000, name = 0x2000, file = 0x3000, of_class = 0x4000, class_name = 0x5000,
                        instructions = 0x6000;

class PhpFunction : public testing::TestWithParam<std::uint16_t> {
 protected:
  PhpFunction() : layout(*php_layout(GetParam())) {
    memory.add(function, 256);
    memory.put(function, std::uint8_t{2});  // ZEND_USER_FUNCTION
    put_text(name, "total");
    put_text(file, "/srv/cart.php");
    put_text(class_name, "Cart");
    memory.add(of_class, 64);
    memory.put(of_class + 8, class_name);
    memory.put(function + 8, name);
    memory.put(function + 16, of_class);
    memory.put(function + layout.function_count, std::uint32_t{3});  // three instructions
    memory.put(function + layout.function_instructions, instructions);
    memory.put(function + layout.function_file, file);
    memory.add(instructions, 3 * 32);
    for (std::uint32_t i = 0; i < 3; ++i) memory.put(instructions + 32 * i + 24, 40 + i);
  }
  void put_text(std::uint64_t at, std::string_view text) {
    memory.add(at, 24 + text.size() + 1);
    memory.put(at + 8, std::uint64_t{0x9999});
    memory.put(at + 16, std::uint64_t{text.size()});
    memory.put_text(at + 24, text);
  }
  [[nodiscard]] std::uint64_t cookie(std::uint64_t hash = 0x9999) const {
    const auto words = *read_code_words(memory, layout.walk.code, function);
    return usdt_code_cookie(words.data(), layout.walk.code.mask, hash);
  }

  FakeMemory memory;
  const PhpLayout& layout;
  PhpNames names;
};

TEST_P(PhpFunction, has_its_class_its_file_and_lines) {
  ASSERT_EQ(read_function(memory, layout, function, cookie(), names), CodeState::read);
  EXPECT_EQ(names.function, "Cart::total");
  EXPECT_EQ(names.file, "/srv/cart.php");
  EXPECT_EQ(line_of(memory, layout, names, instructions), 40U);
  EXPECT_EQ(line_of(memory, layout, names, instructions + 64), 42U);
  EXPECT_EQ(line_of(memory, layout, names, instructions + 96), 0U) << "behind the last one";
  EXPECT_EQ(line_of(memory, layout, names, instructions - 32), 0U) << "before the first one";
}

TEST_P(PhpFunction, without_a_class_or_a_name) {
  memory.put(function + 16, std::uint64_t{0});
  ASSERT_EQ(read_function(memory, layout, function, cookie(), names), CodeState::read);
  EXPECT_EQ(names.function, "total");
  memory.put(function + 8, std::uint64_t{0});
  ASSERT_EQ(read_function(memory, layout, function, cookie(0), names), CodeState::read);
  EXPECT_EQ(names.function, "{main}");
}

TEST_P(PhpFunction, of_its_own_has_no_file) {
  memory.put(function, std::uint8_t{1});  // ZEND_INTERNAL_FUNCTION
  ASSERT_EQ(read_function(memory, layout, function, cookie(), names), CodeState::read);
  EXPECT_EQ(names.file, "");
  EXPECT_EQ(line_of(memory, layout, names, instructions), 0U);
}

TEST_P(PhpFunction, that_another_one_has_replaced_is_not_shown) {
  const std::uint64_t before = cookie();
  memory.put(function + layout.function_instructions, instructions + 8);
  EXPECT_EQ(read_function(memory, layout, function, before, names), CodeState::changed);
}

TEST_P(PhpFunction, whose_caches_changed_is_the_same) {
  const std::uint64_t before = cookie();
  memory.put(function + 64, std::uint64_t{0x1234});  // run_time_cache, or the like
  EXPECT_EQ(read_function(memory, layout, function, before, names), CodeState::read);
}

TEST_P(PhpFunction, that_was_freed_is_not_shown) {
  memory.put(function, std::uint64_t{0x7f12'3456'7890});  // the next free place
  EXPECT_EQ(read_function(memory, layout, function, cookie(), names), CodeState::changed);
}

INSTANTIATE_TEST_SUITE_P(of_versions, PhpFunction, testing::Values(0x0802, 0x0804));

TEST(PhpLayout, of_other_versions_is_not_known) {
  EXPECT_EQ(php_layout(0x0801), nullptr);
  EXPECT_EQ(php_layout(0x0803), nullptr);
}

TEST(PhpMemory, takes_bounded_room_whatever_it_has) {
  std::mt19937_64 random(13);
  for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
    const PhpLayout& layout = *php_layout(seed % 2 == 0 ? 0x0802 : 0x0804);
    const AnyMemory memory(seed);
    const std::uint64_t address = random() >> random() % 64;
    const auto words = read_code_words(memory, layout.walk.code, address);
    const auto hash = words ? memory.value<std::uint64_t>((*words)[0] + 8) : std::nullopt;
    PhpNames names;
    const std::uint64_t cookie = hash ? usdt_code_cookie(words->data(), layout.walk.code.mask, *hash) : 0;
    if (read_function(memory, layout, address, cookie, names) == CodeState::read)
      static_cast<void>(line_of(memory, layout, names, names.instructions + 32 * (random() % 8)));
    ASSERT_LE(memory.largest, 4096U);
  }
}

}  // namespace
}  // namespace usdt::interpreter
