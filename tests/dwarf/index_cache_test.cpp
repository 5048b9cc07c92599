// SPDX-License-Identifier: BSD-2-Clause
// Indexes that are kept between runs: of the very file they are of, and from nobody else.
#include "dwarf/index_cache.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "dwarf/dwarf_file.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

namespace fs = std::filesystem;
using dwarf::FunctionIndex;
using dwarf::IndexCache;

constexpr std::string_view kIndexed = R"(
namespace a { struct Box { int get(int x) { return x + 1; } }; }
namespace { int hidden(int x) { return x * 3; } }
static inline __attribute__((always_inline)) int small(int x) { asm volatile("" : "+r"(x)); return x * 5; }
int main(int argc, char**) { return a::Box().get(argc) + hidden(argc) + small(argc); }
)";

class Index : public testing::Test {
 protected:
  void SetUp() override {
    dir_.write("prog.cpp", kIndexed);
    const auto built = run_in(dir_, "g++ -g prog.cpp -o prog");
    ASSERT_EQ(built.status, 0) << built.output;
    open();
    ASSERT_TRUE(fs::create_directory(dir_ / "cache"));
    ::setenv("XDG_CACHE_HOME", (dir_ / "cache").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  void open() {
    auto file = elf::File::open(dir_ / "prog");
    ASSERT_TRUE(file);
    file_ = std::make_unique<elf::File>(std::move(*file));
  }

  [[nodiscard]] FunctionIndex made(std::size_t threads = 1) const {
    const auto image = elf::read_image(*file_, 0, file_->size(), "prog");
    const auto opened = dwarf::open_dwarf(*file_, *image, dir_ / "prog");
    return {opened->sections(), [](VirtAddr) { return true; }, StopToken(), [] {}, threads};
  }
  [[nodiscard]] IndexCache cache() const { return {*file_, *file_, "abcd"}; }
  /// Those of the cache.
  [[nodiscard]] std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    std::error_code none;
    for (const auto& each : fs::directory_iterator(dir_ / "cache" / "usdt", none)) all.push_back(each.path());
    return all;
  }
  /// A file with an index in it that is loaded.
  [[nodiscard]] fs::path kept() const {
    cache().save(made());
    EXPECT_EQ(files().size(), 1U);
    EXPECT_TRUE(cache().load());
    return files().at(0);
  }

  TempDir dir_;
  std::unique_ptr<elf::File> file_;
};

TEST_F(Index, is_the_same_when_it_is_loaded) {
  const FunctionIndex index = made();
  EXPECT_FALSE(cache().load());
  cache().save(index);
  const auto loaded = cache().load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->words(0), index.words(0));
  EXPECT_GT(index.words(0).size(), 20U);
}

/// A program of `units` files that share a header, whose functions link-time optimisation inlines into each other.
void build_many_units(const TempDir& dir, int units) {
  dir.write(
      "shared.hpp",
      "namespace shared { struct Box { int twice(int x) { asm volatile(\"\" : \"+r\"(x)); return 2 * x; } }; }\n");
  std::string calls;
  std::string sum = "argc";
  std::string files;
  for (int i = 0; i < units; ++i) {
    dir.write(fmt::format("unit{}.cpp", i),
              fmt::format("#include \"shared.hpp\"\n"
                          "namespace {{ int hidden(int x) {{ return shared::Box().twice(x) + {0}; }} }}\n"
                          "namespace unit{0} {{ __attribute__((noinline)) int run(int x) {{ return hidden(x); }} }}\n",
                          i));
    calls += fmt::format("namespace unit{} {{ int run(int); }}\n", i);
    sum += fmt::format(" + unit{}::run(argc)", i);
    files += fmt::format(" unit{}.cpp", i);
  }
  dir.write("main.cpp", calls + "int main(int argc, char**) { return " + sum + "; }\n");
  const auto built = run_in(dir, "g++ -g -O2 -flto -flto-partition=1to1 main.cpp" + files + " -o prog");
  ASSERT_EQ(built.status, 0) << built.output;
}

TEST_F(Index, is_the_same_by_any_number_of_threads) {
  build_many_units(dir_, 12);
  open();
  const auto by_one = made(1).words(0);
  EXPECT_GT(by_one.size(), 100U);
  for (const std::size_t threads : {2, 3, 7, 12, 100}) EXPECT_EQ(made(threads).words(0), by_one) << threads;
}

TEST_F(Index, is_kept_for_its_owner_alone) {
  const fs::path file = kept();
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0600));
  EXPECT_EQ(fs::status(file.parent_path()).permissions(), fs::perms(0700));
}

TEST_F(Index, of_a_file_that_was_written_to_since_is_not_loaded) {
  static_cast<void>(kept());
  ASSERT_EQ(::chmod((dir_ / "prog").c_str(), 0700), 0);  // nothing but its ctime is another
  open();
  EXPECT_FALSE(cache().load());
}

TEST_F(Index, of_a_file_that_is_written_to_meanwhile_is_not_kept) {
  const FunctionIndex index = made();
  std::ofstream(dir_ / "prog", std::ios::app) << "more";
  cache().save(index);
  EXPECT_TRUE(files().empty());
}

TEST_F(Index, of_a_file_that_others_may_change_is_not_kept) {
  ASSERT_EQ(::chmod((dir_ / "prog").c_str(), 0777), 0);
  open();
  cache().save(made());
  EXPECT_TRUE(files().empty());
}

TEST_F(Index, that_others_may_have_written_is_not_loaded) {
  const fs::path file = kept();
  for (const fs::path& each : {file, file.parent_path(), dir_ / "cache"}) {
    const fs::perms before = fs::status(each).permissions();
    fs::permissions(each, fs::perms(0777));
    EXPECT_FALSE(cache().load()) << each;
    fs::permissions(each, before);
    EXPECT_TRUE(cache().load()) << each;
  }
  if (::geteuid() != 0) GTEST_SKIP() << "another user's files are root's to make";
  for (const fs::path& each : {file, file.parent_path(), dir_ / "cache"}) {
    ASSERT_EQ(::chown(each.c_str(), 65534, 65534), 0);
    EXPECT_FALSE(cache().load()) << each;
    ASSERT_EQ(::chown(each.c_str(), 0, 0), 0);
  }
}

TEST_F(Index, is_not_looked_for_behind_symbolic_links) {
  const fs::path file = kept();
  fs::rename(file, dir_ / "elsewhere");
  fs::create_symlink(dir_ / "elsewhere", file);
  EXPECT_FALSE(cache().load());
  cache().save(made());
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file)));
  EXPECT_TRUE(cache().load());
}

TEST_F(Index, that_is_damaged_is_not_loaded) {
  const fs::path file = kept();
  std::ifstream in(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  std::mt19937 chance(1);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = whole;
    damaged[chance() % damaged.size()] ^= static_cast<char>(1 + chance() % 255);
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_FALSE(cache().load());
  }
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, size);
    EXPECT_FALSE(cache().load());
  }
}

TEST_F(Index, of_words_that_lead_nowhere_is_none) {
  const auto image = elf::read_image(*file_, 0, file_->size(), "prog");
  const auto opened = dwarf::open_dwarf(*file_, *image, dir_ / "prog");
  const std::vector<std::uint64_t> words = made().words(0);
  std::mt19937_64 chance(1);
  unsigned read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::uint64_t> others = words;
    const std::uint64_t odd[] = {0, 1, ~0ULL, chance(), chance() % 64, 1ULL << 32, words.size()};
    others[chance() % others.size()] = odd[chance() % std::size(odd)];
    const auto index = FunctionIndex::from_words(others);
    if (!index) continue;
    ++read;
    static_cast<void>(index->units(
        opened->sections(), [](const auto&) { return true; }, StopToken(), [] {}));
  }
  EXPECT_GT(read, 100U);
}

TEST_F(Index, of_files_that_were_looked_at_long_ago_are_removed) {
  const fs::path first = kept();
  for (int i = 0; i < 40; ++i) {
    const fs::path old = first.parent_path() / (std::to_string(i) + ".functions");
    std::ofstream(old) << i;
    fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  cache().save(made());
  EXPECT_EQ(files().size(), 32U);
  EXPECT_TRUE(cache().load());
}

}  // namespace
}  // namespace usdt::test
