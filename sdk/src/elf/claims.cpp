// SPDX-License-Identifier: BSD-2-Clause
#include "elf/claims.hpp"

#include <algorithm>
#include <iterator>

namespace usdt::elf {

Claims::Claims(const File& file, const Image& image) noexcept
    : file_(file), image_(image), left_(std::min(image.size, file.stored())) {}

std::uint64_t Claims::take(std::uint64_t offset, std::uint64_t size) {
  if (offset >= image_.size) return 0;
  const std::uint64_t wanted = std::min({size, image_.size - offset, left_});
  if (wanted == 0) return 0;
  const auto next = taken_.upper_bound(offset);
  const bool inside = next != taken_.begin() && std::prev(next)->second > offset;
  const std::uint64_t room = inside ? 0 : next == taken_.end() ? wanted : std::min(wanted, next->first - offset);
  overlapped_ |= room < wanted;
  if (room == 0) return 0;
  taken_.emplace(offset, offset + room);
  left_ -= room;
  return room;
}

Bytes Claims::read(const Section& section) {
  if (section.type == SHT_NOBITS) return {};
  return file_.bytes(image_.start + section.offset, take(section.offset, section.size));
}

}  // namespace usdt::elf
