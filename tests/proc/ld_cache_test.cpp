// SPDX-License-Identifier: BSD-2-Clause
#include "proc/ld_cache.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace usdt::proc {
namespace {

constexpr std::uint32_t kX8664 = 0x0303;
constexpr std::uint32_t kI386 = 0x0003;

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// A table as ldconfig writes it: header, entries, strings.
std::string new_table(const std::vector<CacheEntry>& entries, std::uint8_t flags = 2) {
  std::string strings;
  std::string rows;
  const std::size_t first = 48 + 24 * entries.size();
  for (const CacheEntry& entry : entries) {
    put(rows, entry.flags);
    put(rows, static_cast<std::uint32_t>(first + strings.size()));
    strings += entry.soname + '\0';
    put(rows, static_cast<std::uint32_t>(first + strings.size()));
    strings += entry.path + '\0';
    put(rows, std::uint32_t{0});
    put(rows, entry.hwcap);
  }
  std::string out = "glibc-ld.so.cache1.1";
  put(out, static_cast<std::uint32_t>(entries.size()));
  put(out, static_cast<std::uint32_t>(strings.size()));
  put(out, flags);
  out.append(3 + 4 + 12, '\0');
  return out + rows + strings;
}

/// The table of glibc before 2.2, with as many entries as asked, all zero.
std::string old_table(std::uint32_t count) {
  std::string out("ld.so-1.7.0\0", 12);
  put(out, count);
  return out.append(12 * count, '\0');
}

const std::vector<CacheEntry> kTwo = {{"libpq.so.5", "/lib/libpq.so.5", kX8664, 0},
                                      {"libpq.so.5", "/lib32/libpq.so.5", kI386, 1ULL << 62}};

TEST(LdCache, entries_come_in_file_order_with_flags_and_hwcap) {
  const auto entries = parse_ld_cache(new_table(kTwo));
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(*entries, kTwo);
}

TEST(LdCache, the_new_table_is_found_behind_the_old_one_at_either_alignment) {
  for (const std::uint32_t count : {0U, 1U, 2U, 3U}) {
    for (const std::size_t alignment : {4U, 8U}) {
      std::string file = old_table(count);
      file.append((alignment - file.size() % alignment) % alignment, '\0');
      const auto entries = parse_ld_cache(file + new_table(kTwo));
      ASSERT_TRUE(entries) << count << " old entries, alignment " << alignment << ": " << entries.error().message;
      EXPECT_EQ(*entries, kTwo);
    }
  }
}

TEST(LdCache, every_truncation_is_an_error_or_fewer_entries) {
  const std::string whole = old_table(2) + new_table(kTwo);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto entries = parse_ld_cache(std::string(whole, 0, size));
    const std::size_t count = entries ? entries->size() : 0;
    EXPECT_LT(count, kTwo.size()) << "cut to " << size << " bytes";
  }
}

TEST(LdCache, string_offsets_beyond_the_file_lose_only_their_entry) {
  std::string file = new_table(kTwo);
  const std::uint32_t beyond = 0xfffffff0;
  std::memcpy(file.data() + 48 + 4, &beyond, sizeof(beyond));
  const auto entries = parse_ld_cache(file);
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ((*entries)[0], kTwo[1]);
}

TEST(LdCache, an_absurd_count_is_malformed) {
  std::string file = new_table(kTwo);
  const std::uint32_t count = 0xffffffff;
  std::memcpy(file.data() + 20, &count, sizeof(count));
  const auto entries = parse_ld_cache(file);
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().kind, ErrorKind::malformed);
  std::string old = old_table(2) + file;
  std::memcpy(old.data() + 12, &count, sizeof(count));
  EXPECT_FALSE(parse_ld_cache(old));
}

TEST(LdCache, a_big_endian_table_is_refused) {
  const auto entries = parse_ld_cache(new_table(kTwo, 3));
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().kind, ErrorKind::not_supported);
}

TEST(LdCache, flags_fit_their_own_abi_only) {
  const ElfIdent x86_64{ELFCLASS64, ELFDATA2LSB, EM_X86_64};
  const ElfIdent x32{ELFCLASS32, ELFDATA2LSB, EM_X86_64};
  const ElfIdent i386{ELFCLASS32, ELFDATA2LSB, EM_386};
  const ElfIdent arm64{ELFCLASS64, ELFDATA2LSB, EM_AARCH64};
  EXPECT_TRUE(cache_flags_fit(0x0303, x86_64));
  EXPECT_FALSE(cache_flags_fit(0x0803, x86_64));
  EXPECT_TRUE(cache_flags_fit(0x0803, x32));
  EXPECT_TRUE(cache_flags_fit(0x0003, i386));
  EXPECT_FALSE(cache_flags_fit(0x0303, i386));
  EXPECT_TRUE(cache_flags_fit(0x0a03, arm64));
  EXPECT_FALSE(cache_flags_fit(0x0301, x86_64)) << "a libc5-style library type";
}

}  // namespace
}  // namespace usdt::proc
