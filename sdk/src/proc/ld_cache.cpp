// SPDX-License-Identifier: BSD-2-Clause
#include "proc/ld_cache.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <climits>
#include <cstring>
#include <optional>
#include <string_view>

#include "arch/arch.hpp"

namespace usdt::proc {
namespace {

constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";

// struct cache_file: 11 bytes of magic, padded to 12, a count; 12-byte entries follow.
constexpr std::size_t kOldHeader = 16;
constexpr std::size_t kOldEntry = 12;

// struct cache_file_new and its file_entry_new; string offsets count from the start of this header.
struct NewHeader {
  char magic[20];
  std::uint32_t count;
  std::uint32_t strings_size;
  std::uint8_t flags;  // low two bits: 0 not said, 2 little-endian, 3 big-endian
  std::uint8_t padding[3];
  std::uint32_t extension_offset;
  std::uint32_t unused[3];
};
static_assert(sizeof(NewHeader) == 48);
struct NewEntry {
  std::uint32_t flags;
  std::uint32_t key;
  std::uint32_t value;
  std::uint32_t os_version;
  std::uint64_t hwcap;
};
static_assert(sizeof(NewEntry) == 24);

constexpr std::uint8_t kEndianMask = 3;
constexpr std::uint8_t kBigEndian = 3;

// sysdeps/generic/ldconfig.h: the low byte is the library type (libc6 is 3), the next the ABI.
constexpr std::uint32_t kTypeMask = 0x00ff;
constexpr std::uint32_t kTypeLibc6 = 0x0003;
constexpr std::uint32_t kAbiMask = 0xff00;

/// Returns where the new table starts, or nothing.
std::optional<std::size_t> find_new_table(std::string_view all) {
  if (all.starts_with(kNewMagic)) return 0;
  if (!all.starts_with(kOldMagic) || all.size() < kOldHeader) return std::nullopt;
  std::uint32_t count = 0;
  std::memcpy(&count, all.data() + 12, sizeof(count));
  const std::uint64_t end = kOldHeader + std::uint64_t{count} * kOldEntry;
  // It is aligned as its uint64_t members are: 8 bytes, on i386 4.
  for (const std::uint64_t alignment : {8U, 4U}) {
    const std::uint64_t at = (end + alignment - 1) / alignment * alignment;
    if (at < all.size() && all.substr(at).starts_with(kNewMagic)) return at;
  }
  return std::nullopt;
}

/// The NUL-terminated string at `at`, if it is no longer than a path can be: entries that name one string of megabytes
/// would each have it.
std::optional<std::string> string_at(std::string_view table, std::size_t at) {
  if (at >= table.size()) return std::nullopt;
  const std::string_view rest = table.substr(at, PATH_MAX);
  const auto end = rest.find('\0');
  if (end == rest.npos) return std::nullopt;
  return std::string(rest.substr(0, end));
}

}  // namespace

bool cache_flags_fit(std::uint32_t flags, const ElfIdent& ident) noexcept {
  if ((flags & kTypeMask) != kTypeLibc6) return false;
  const std::uint32_t abi = flags & kAbiMask;
  const arch::Arch* arch = arch::for_elf_machine(ident.machine);
  if (arch == nullptr) return false;
  const bool is_whole = (ident.elf_class == ELFCLASS64) == (arch->word_size == 8);
  return abi == (is_whole ? arch->loader.cache_abi : arch->loader.narrow_cache_abi);
}

Result<std::vector<CacheEntry>> parse_ld_cache(std::span<const char> bytes) {
  const std::string_view all(bytes.data(), bytes.size());
  const auto start = find_new_table(all);
  if (!start) return fail(ErrorKind::malformed, fmt::format("no \"{}\" table", kNewMagic));
  const std::string_view table = all.substr(*start);
  NewHeader header;
  if (table.size() < sizeof(header)) {
    return fail(ErrorKind::malformed, fmt::format("table at offset {:#x} is cut off in its header", *start));
  }
  std::memcpy(&header, table.data(), sizeof(header));
  if ((header.flags & kEndianMask) == kBigEndian) return fail(ErrorKind::not_supported, "big-endian table");
  if (std::uint64_t{header.count} * sizeof(NewEntry) > table.size() - sizeof(header)) {
    return fail(ErrorKind::malformed,
                fmt::format("table at offset {:#x} says {} entries, more than the file holds", *start, header.count));
  }
  std::vector<CacheEntry> entries;
  entries.reserve(header.count);
  for (std::size_t i = 0; i < header.count; ++i) {
    NewEntry raw;
    std::memcpy(&raw, table.data() + sizeof(header) + i * sizeof(raw), sizeof(raw));
    auto soname = string_at(table, raw.key);
    auto path = string_at(table, raw.value);
    // One bad entry hides none of the others.
    if (soname && path) entries.push_back({std::move(*soname), std::move(*path), raw.flags, raw.hwcap});
  }
  return entries;
}

}  // namespace usdt::proc
