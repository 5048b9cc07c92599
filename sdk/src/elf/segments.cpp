// SPDX-License-Identifier: BSD-2-Clause
// Virtual address -> file offset: uprobes and their reference counters are registered by file offset.
#include <algorithm>

#include "elf/image.hpp"

namespace usdt::elf {
namespace {

// Smallest page of the four machines. A larger page (arm64: 16, 64 KiB) maps more of .bss from the file, never less.
constexpr std::uint64_t kPage = 4096;

/// File offset of `distance` bytes into `segment`, when `size` bytes from there are in the file.
std::optional<FileOffset> offset_in(const Image& image, const Segment& segment, std::uint64_t distance,
                                    std::uint64_t size) noexcept {
  if (!within(segment.offset, distance, image.size) || !within(segment.offset + distance, size, image.size)) {
    return std::nullopt;
  }
  return FileOffset(image.start + segment.offset + distance);
}

const Segment* code_segment(const Image& image, VirtAddr address) noexcept {
  const auto found = std::ranges::find_if(image.segments, [&](const Segment& s) {
    return s.type == PT_LOAD && (s.flags & PF_X) != 0 && address.value >= s.vaddr && address.value - s.vaddr < s.filesz;
  });
  return found == image.segments.end() ? nullptr : &*found;
}

/// Bytes of `segment` that the loader maps from the file: p_filesz rounded up to the page's end, not beyond p_memsz.
std::uint64_t mapped_size(const Segment& segment) noexcept {
  const std::uint64_t tail = (kPage - (segment.vaddr + segment.filesz) % kPage) % kPage;
  if (segment.filesz == 0 || segment.memsz <= segment.filesz) return segment.filesz;
  return segment.filesz + std::min(tail, segment.memsz - segment.filesz);
}

}  // namespace

std::optional<FileOffset> code_offset(const Image& image, VirtAddr address) noexcept {
  const Segment* segment = code_segment(image, address);
  if (segment == nullptr) return std::nullopt;
  return offset_in(image, *segment, address.value - segment->vaddr, 1);
}

std::uint64_t code_bytes_from(const Image& image, VirtAddr address) noexcept {
  const Segment* segment = code_segment(image, address);
  return segment == nullptr ? 0 : segment->filesz - (address.value - segment->vaddr);
}

bool code_is_writable(const Image& image, VirtAddr address) noexcept {
  const Segment* segment = code_segment(image, address);
  return segment != nullptr && (segment->flags & PF_W) != 0;
}

std::optional<FileOffset> data_offset(const Image& image, VirtAddr address, std::uint64_t size) noexcept {
  for (const Segment& s : image.segments) {
    if (s.type != PT_LOAD || (s.flags & PF_W) == 0 || address.value < s.vaddr) continue;
    const std::uint64_t distance = address.value - s.vaddr;
    if (!within(distance, size, mapped_size(s))) continue;
    // Past p_filesz the bytes are the process's own zeroes; the file need not reach that far.
    const std::uint64_t in_file = distance < s.filesz ? std::min(size, s.filesz - distance) : 0;
    const std::uint64_t checked = std::min(distance, s.filesz);
    if (offset_in(image, s, checked, in_file)) return FileOffset(image.start + s.offset + distance);
  }
  return std::nullopt;
}

}  // namespace usdt::elf
