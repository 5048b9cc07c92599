// SPDX-License-Identifier: BSD-2-Clause
// Where versions of CPython keep what they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "interpreter/cpython.hpp"
#include "tests/interpreter/fake_memory.hpp"

namespace usdt::interpreter {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t runtime = 0x10000;

/// The table of CPython 3.13.0, as far as it is read, x86-64.
void make_table_of_3_13(FakeMemory& memory) {
  memory.add(runtime, 73 * sizeof(std::uint64_t));
  memory.put_text(runtime, "xdebugpy");
  const auto set = [&](unsigned word, std::uint64_t value) { memory.put(runtime + 8 * word, value); };
  set(1, 0x030d00f0);
  constexpr std::pair<unsigned, std::uint64_t> words[] = {
      {5, 632},  {8, 7264}, {9, 7344}, {21, 8},   {22, 16},  {23, 72},  {24, 152}, {29, 8},
      {30, 0},   {31, 56},  {33, 70},  {35, 112}, {36, 120}, {37, 128}, {38, 136}, {39, 68},
      {43, 200}, {45, 8},   {65, 16},  {66, 32},  {68, 32},  {69, 16},  {70, 40}};
  for (const auto& [word, value] : words) set(word, value);
}

TEST(Layout, of_a_version_without_a_table_is_known_by_its_number) {
  const FakeMemory memory;
  const auto layout = cpython_layout(0x030b, memory, 0);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->version, 0x030b);
  EXPECT_EQ(layout->walk.version, 0x030b);
  EXPECT_EQ(layout->walk.entry_value, 1) << "is_entry is a truth value";
  EXPECT_TRUE(cpython_layout(0x030c, memory, 0));
}

TEST(Layout, of_an_unknown_version_is_refused) {
  for (const std::uint16_t version : std::initializer_list<std::uint16_t>{0x030a, 0x030f, 0x0400, 0}) {
    const auto layout = cpython_layout(version, FakeMemory(), 0);
    ASSERT_FALSE(layout) << version;
    EXPECT_EQ(layout.error().kind, ErrorKind::not_supported);
    EXPECT_THAT(layout.error().message, HasSubstr("not known here"));
  }
}

TEST(Layout, of_a_version_with_a_table_is_what_that_says) {
  FakeMemory memory;
  make_table_of_3_13(memory);
  const auto layout = cpython_layout(0x030d, memory, runtime);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->interpreters, 632);
  EXPECT_EQ(layout->walk.thread_leads, 72);
  EXPECT_EQ(layout->walk.frame_owner, 70);
  EXPECT_EQ(layout->walk.entry_value, 3) << "FRAME_OWNED_BY_CSTACK";
  EXPECT_EQ(layout->code_start, 200);
  EXPECT_EQ(layout->code_begins, 184) << "offsetof(PyCodeObject, _co_firsttraceable)";
  EXPECT_EQ(layout->text_other, 56) << "sizeof(PyCompactUnicodeObject)";
  EXPECT_EQ(layout->walk.code.name_word, 8);
}

TEST(Layout, of_another_version_or_of_no_table_is_refused) {
  FakeMemory memory;
  make_table_of_3_13(memory);
  memory.put(runtime + 8, std::uint64_t{0x030e00f0});
  EXPECT_THAT(cpython_layout(0x030d, memory, runtime).error().message, HasSubstr("not that of this version"));
  make_table_of_3_13(memory);
  memory.put_text(runtime, "xdebugpx");
  EXPECT_THAT(cpython_layout(0x030d, memory, runtime).error().message, HasSubstr("not that of this version"));
  EXPECT_THAT(cpython_layout(0x030d, FakeMemory(), runtime).error().message, HasSubstr("cannot be read"));
}

TEST(Layout, of_a_free_threaded_build_is_refused) {
  FakeMemory memory;
  make_table_of_3_13(memory);
  memory.put(runtime + 16, std::uint64_t{1});
  EXPECT_THAT(cpython_layout(0x030d, memory, runtime).error().message, HasSubstr("free-threaded"));
}

TEST(Layout, that_cannot_be_is_refused) {
  for (const unsigned word : {5U, 23U, 31U, 35U, 37U, 39U, 66U, 70U}) {
    FakeMemory memory;
    make_table_of_3_13(memory);
    memory.put(runtime + 8 * word, std::uint64_t{1} << 40);
    EXPECT_FALSE(cpython_layout(0x030d, memory, runtime)) << "word " << word;
  }
  FakeMemory memory;
  make_table_of_3_13(memory);
  memory.put(runtime + 8 * 35, std::uint64_t{200});
  EXPECT_FALSE(cpython_layout(0x030d, memory, runtime)) << "a member of code objects behind those that are compared";
}

}  // namespace
}  // namespace usdt::interpreter
