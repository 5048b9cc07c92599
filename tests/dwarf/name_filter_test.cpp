// SPDX-License-Identifier: BSD-2-Clause
// Which units may have a name: all that do, and few others. The index of all units says what is right.
#include "dwarf/name_filter.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dwarf/dwarf_file.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using dwarf::FunctionIndex;
using dwarf::FunctionNames;
using dwarf::NameFilter;
using dwarf::NameHint;
using dwarf::UnitHead;
using testing::ElementsAre;

void keep() {}

NameHint exactly(const std::string& name) {
  return {.words = {name}, .may_be = [name](std::string_view each) { return each == name; }};
}

/// A compiler with flags, and how many units it takes for the one that has a name: link-time optimisation has names in
/// other units than code.
using Compiler = std::pair<std::string, std::size_t>;

class ProgramWithNames : public testing::TestWithParam<Compiler> {
 protected:
  static constexpr int units = 12;
  void SetUp() override {
    std::string sum = "argc";
    // So many strings that where they are is seldom a number of something else.
    std::string declared = "struct Long {\n";
    for (int i = 0; i < 300; ++i) declared += fmt::format("  int member{}{};\n", std::string(1000, 'm'), i);
    declared += "};\nLong all;\n";
    for (int i = 0; i < units; ++i) {
      dir_.write(fmt::format("unit{}.cpp", i), fmt::format(R"(
static inline __attribute__((always_inline)) int copied{0}(int x) {{ asm volatile("" : "+r"(x)); return x * {0}; }}
namespace {{ __attribute__((noinline)) int hidden{0}(int x) {{ asm volatile("" : "+r"(x)); return x + {0}; }} }}
static __attribute__((noinline)) int mi{1}(int x) {{ asm volatile("" : "+r"(x)); return x - {0}; }}
extern "C" int first{0}(int x) {{ return copied{0}(x) + hidden{0}(x) + mi{1}(x); }}
)",
                                                           i + 3, static_cast<char>('a' + i)));
      sum += fmt::format(" + first{}(argc)", i + 3);
      declared += fmt::format("extern \"C\" int first{}(int);\n", i + 3);
    }
    dir_.write("main.cpp", declared + "int main(int argc, char**) { return " + sum + "; }\n");
    const auto built = run_in(dir_, GetParam().first + " *.cpp -o prog");
    ASSERT_EQ(built.status, 0) << built.output;
    const auto file = elf::File::open(dir_ / "prog");
    ASSERT_TRUE(file);
    const auto image = elf::read_image(*file, 0, file->size(), "prog");
    auto opened = dwarf::open_dwarf(*file, *image, dir_ / "prog");
    ASSERT_TRUE(opened);
    opened_ = *std::move(opened);
  }

  [[nodiscard]] std::set<std::uint64_t> units_of(const std::string& name, const NameFilter* filter) const {
    const auto sections = opened_.sections();
    const FunctionIndex index(
        sections, [](VirtAddr) { return true; }, StopToken(), keep, 3, filter);
    const auto is_named = [&](const FunctionNames& each) { return each.name == name || each.linkage_name == name; };
    const auto found = index.units(sections, is_named, StopToken(), keep);
    return {found.offsets.begin(), found.offsets.end()};
  }
  [[nodiscard]] std::size_t units_taken(const NameFilter& filter) const {
    const auto sections = opened_.sections();
    const FunctionIndex index(
        sections, [](VirtAddr) { return true; }, StopToken(), keep, 1, &filter);
    return index
        .units(
            sections, [](const FunctionNames&) { return true; }, StopToken(), keep)
        .offsets.size();
  }

  TempDir dir_;
  dwarf::DwarfFile opened_;
};

TEST_P(ProgramWithNames, has_each_where_the_index_of_all_units_has_it) {
  const auto sections = opened_.sections();
  std::size_t taken = 0;
  std::size_t names = 0;
  for (int i = 0; i < units; ++i) {
    const std::string number = std::to_string(i + 3);
    for (const std::string& name :
         {"copied" + number, "hidden" + number, "first" + number, std::string("mi") + static_cast<char>('a' + i)}) {
      const auto filter = NameFilter::make(sections, exactly(name), StopToken(), keep);
      ASSERT_TRUE(filter) << name;
      const auto right = units_of(name, nullptr);
      EXPECT_EQ(right.size(), 1U) << name;
      EXPECT_EQ(units_of(name, &*filter), right) << name;
      taken += units_taken(*filter);
      ++names;
    }
  }
  EXPECT_LE(taken, names * GetParam().second + names / 2);
}

TEST_P(ProgramWithNames, has_no_other) {
  const auto filter = NameFilter::make(opened_.sections(), exactly("no_such_function"), StopToken(), keep);
  ASSERT_TRUE(filter);
  EXPECT_EQ(units_taken(*filter), GetParam().second == 1 ? 0U : GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(Compilers, ProgramWithNames,
                         testing::Values(Compiler("g++ -g -O2", 1), Compiler("g++ -g -O0 -gdwarf-4", 1),
                                         Compiler("g++ -g -O2 -gdwarf64", 1), Compiler("g++ -g -O2 -gz", 1),
                                         Compiler("g++ -g -O2 -fno-merge-debug-strings", 1),
                                         Compiler("g++ -g -O2 -flto -flto-partition=1to1", 13),
                                         Compiler("clang++ -g -O2", 1), Compiler("clang++ -g -O2 -gdwarf-4", 1),
                                         Compiler("clang++ -g -O2 -gdwarf64", 1),
                                         Compiler("clang++ -g -O2 -fuse-ld=lld -Wl,-O2", 1)));

/// Sections whose one unit has bytes of the test's choice behind its head.
struct Made {
  std::string str;
  std::string info;
  std::string abbrev;

  [[nodiscard]] dwarf::DebugSections sections() const {
    const auto bytes = [](const std::string& text) {
      return dwarf::SectionBytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    };
    dwarf::DebugSections all;
    all.str = bytes(str);
    all.info = bytes(info);
    all.abbrev = bytes(abbrev);
    return all;
  }
  [[nodiscard]] UnitHead unit() const {
    return {.end = info.size(), .version = 4, .address_size = 8, .offset_size = 4};
  }
  [[nodiscard]] bool may_have(const NameHint& hint, const dwarf::NameForms& forms = {}) const {
    const auto filter = NameFilter::make(sections(), hint, StopToken(), keep);
    return !filter || filter->may_be_in(sections(), unit(), forms, 0);
  }
};

std::string four_bytes(std::uint32_t offset) {
  std::string bytes;
  for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>(offset >> 8 * i & 0xff);
  return bytes;
}

TEST(NameFilters, see_an_offset_at_any_byte_of_a_unit) {
  Made made{.str = std::string(0x12345, 'x') + '\0' + "handle" + '\0', .info = {}, .abbrev = {}};
  for (const std::size_t size : {4U, 5U, 63U, 64U, 65U, 70U, 131U, 65536U + 70U}) {
    for (std::size_t at = 0; at + 4 <= size; at += size > 200 && at > 100 && at + 100 < (64U << 10) ? 97 : 1) {
      made.info.assign(size, '\x01');
      EXPECT_FALSE(made.may_have(exactly("handle"))) << size;
      made.info.replace(at, 4, four_bytes(0x12346));
      EXPECT_TRUE(made.may_have(exactly("handle"))) << size << ' ' << at;
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(NameFilters, know_that_a_string_may_be_the_end_of_another) {
  Made made{.str = std::string("\0an_old_handle\0", 15), .info = four_bytes(8), .abbrev = {}};
  EXPECT_TRUE(made.may_have(exactly("handle")));
  made.info = four_bytes(1);
  EXPECT_FALSE(made.may_have(exactly("handle")));
  EXPECT_TRUE(made.may_have(exactly("an_old_handle")));
}

TEST(NameFilters, look_for_names_in_place_where_a_unit_has_such) {
  const Made made{.str = {}, .info = "..handle..", .abbrev = {}};
  EXPECT_FALSE(made.may_have(exactly("handle")));
  EXPECT_TRUE(made.may_have(exactly("handle"), {.in_place = true}));
  EXPECT_FALSE(made.may_have(exactly("handles"), {.in_place = true}));
  EXPECT_TRUE(made.may_have(exactly("handles"), {.elsewhere = true}));
}

TEST(NameFilters, are_none_of_words_that_are_no_help) {
  const auto is_made = [](const Made& made, const NameHint& hint) {
    return NameFilter::make(made.sections(), hint, StopToken(), keep).has_value();
  };
  const Made made{.str = std::string("handle\0", 7), .info = {}, .abbrev = {}};
  EXPECT_TRUE(is_made(made, exactly("handle")));
  EXPECT_FALSE(is_made(made, exactly("at")));
  EXPECT_FALSE(is_made(made, {}));
  EXPECT_FALSE(is_made(made, {.words = {"handle", ""}, .may_be = [](std::string_view) { return true; }}));
  EXPECT_FALSE(is_made(
      made, {.words = std::vector<std::string>(100, "handle"), .may_be = [](std::string_view) { return false; }}));
  // Too many names that may be meant, and a text in which the word is at every byte.
  std::string many;
  for (int i = 0; i < 20; ++i) many += fmt::format("handle{}", i) + '\0';
  const NameHint any{.words = {"handle"}, .may_be = [](std::string_view) { return true; }};
  EXPECT_FALSE(is_made({.str = many, .info = {}, .abbrev = {}}, any));
  EXPECT_FALSE(is_made({.str = std::string(1U << 20, 'a'), .info = {}, .abbrev = {}}, exactly("aaa")));
  StopSource stop;
  stop.request_stop();
  EXPECT_FALSE(NameFilter::make(made.sections(), exactly("handle"), stop.get_token(), keep));
}

TEST(NameFilters, read_the_forms_of_functions_alone) {
  const auto forms_of = [](std::string_view abbreviations) {
    const Made made{.str = {}, .info = {}, .abbrev = std::string(abbreviations)};
    return name_forms(made.sections(), made.unit(), UINT64_MAX);
  };
  using namespace std::string_view_literals;
  EXPECT_FALSE(forms_of("\x01\x2e\x00\x03\x0e\x00\x00\x00"sv).elsewhere);  // subprogram, name, strp
  EXPECT_TRUE(forms_of("\x01\x2e\x00\x03\x08\x00\x00\x00"sv).in_place);    // string
  EXPECT_FALSE(forms_of("\x01\x34\x00\x03\x08\x00\x00\x00"sv).in_place);   // of a variable
  EXPECT_TRUE(forms_of("\x01\x2e\x00\x03\x25\x00\x00\x00"sv).indexed);     // strx1
  EXPECT_TRUE(forms_of("\x01\x1d\x00\x31\x10\x00\x00\x00"sv).elsewhere);   // inlined, abstract_origin, ref_addr
  EXPECT_FALSE(forms_of("\x01\x1d\x00\x31\x13\x00\x00\x00"sv).elsewhere);  // ref4
  EXPECT_TRUE(forms_of("\x01\x2e\x00\x03\x0e\x00\x00"sv).elsewhere);       // has no end
  EXPECT_TRUE(forms_of(""sv).elsewhere);
}

}  // namespace
}  // namespace usdt::test
