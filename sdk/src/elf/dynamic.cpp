// SPDX-License-Identifier: BSD-2-Clause
#include "elf/dynamic.hpp"

#include <algorithm>
#include <optional>

#include "base/try.hpp"
#include "elf/file.hpp"
#include "elf/image.hpp"

namespace usdt::elf {
namespace {

// Both far above any real file: a hostile size costs no more than this.
constexpr std::uint64_t kMaxDynamicBytes = 1ULL << 20;
constexpr std::uint64_t kMaxPathBytes = 4096;

/// The string at `at` of the file, up to its NUL; empty where it has none within kMaxPathBytes.
std::string string_at(const File& file, std::uint64_t at, std::uint64_t limit) {
  const Bytes raw = file.bytes(at, std::min(limit, kMaxPathBytes));
  const auto end = std::find(raw.begin(), raw.end(), std::uint8_t{0});
  return end == raw.end() ? std::string() : std::string(raw.begin(), end);
}

const Segment* first_segment(const Image& image, std::uint32_t type) noexcept {
  const auto it = std::find_if(image.segments.begin(), image.segments.end(),
                               [&](const Segment& segment) { return segment.type == type; });
  return it == image.segments.end() ? nullptr : &*it;
}

/// The file offset of the byte at an address, and the number of bytes from there to the end of its segment.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

Extent extent_of(const Image& image, std::uint64_t address) noexcept {
  for (const Segment& segment : image.segments) {
    if (segment.type != PT_LOAD || address < segment.vaddr || address - segment.vaddr >= segment.filesz) continue;
    const std::uint64_t into = address - segment.vaddr;
    return {segment.offset + into, segment.filesz - into};
  }
  return {};
}

/// The entries of interest of one PT_DYNAMIC; strings are offsets into the table until it is known.
struct Entries {
  std::vector<std::uint64_t> needed;
  std::optional<std::uint64_t> rpath, runpath;
  std::uint64_t strtab = 0;
};

Entries read_entries(const File& file, const Image& image, const Segment& dynamic) {
  const Bytes raw = file.bytes(dynamic.offset, std::min(dynamic.filesz, kMaxDynamicBytes));
  const std::uint64_t word = image.is64 ? 8 : 4;
  Entries entries;
  for (std::uint64_t at = 0; within(at, 2 * word, raw.size()); at += 2 * word) {
    const std::uint64_t tag = load_word(raw, at, image.is64);
    const std::uint64_t value = load_word(raw, at + word, image.is64);
    if (tag == DT_NULL) break;
    if (tag == DT_NEEDED) entries.needed.push_back(value);
    if (tag == DT_RPATH) entries.rpath = value;
    if (tag == DT_RUNPATH) entries.runpath = value;
    if (tag == DT_STRTAB) entries.strtab = value;
  }
  return entries;
}

}  // namespace

Result<DynamicInfo> read_dynamic(const std::filesystem::path& path) {
  auto file = TRY(File::open(path));
  const auto image = TRY(read_image(file, 0, file.size(), path.string()));

  DynamicInfo info;
  info.machine = image.machine;
  info.is64 = image.is64;
  if (const Segment* interp = first_segment(image, PT_INTERP)) {
    info.interpreter = string_at(file, interp->offset, interp->filesz);
  }
  const Segment* dynamic = first_segment(image, PT_DYNAMIC);
  if (dynamic == nullptr) return info;

  const Entries entries = read_entries(file, image, *dynamic);
  const Extent strings = extent_of(image, entries.strtab);
  const auto text = [&](std::uint64_t at) {
    return at < strings.size ? string_at(file, strings.offset + at, strings.size - at) : std::string();
  };
  // Names that lie on top of each other could be longer in all than the file is.
  std::uint64_t left = std::min(strings.size, file.stored());
  for (const std::uint64_t at : entries.needed) {
    std::string name = text(at);
    if (name.size() > left) break;
    left -= name.size();
    if (!name.empty()) info.needed.push_back(std::move(name));
  }
  if (entries.rpath) info.rpath = text(*entries.rpath);
  if (entries.runpath) info.runpath = text(*entries.runpath);
  return info;
}

}  // namespace usdt::elf
