// SPDX-License-Identifier: BSD-2-Clause
// Which bytes of an image its headers may still lay claim to. Tables of one kind do not overlap in a file that a linker
// made. In a hostile one, 65,000 section headers can name the same notes, and reading them would take the square of the
// file's size. So bytes are read once for each kind of table, which bounds all reading by the size of the file.
#pragma once

#include <cstdint>
#include <map>

#include "elf/image.hpp"

namespace usdt::elf {

class Claims {
 public:
  /// Keeps account of the tables of one kind in `image`, which is in `file`.
  Claims(const File& file, const Image& image) noexcept;

  /// How many of the `size` bytes at `offset` of the image may be read: fewer where the image ends, or where a part of
  /// them was given out before. Those that are given out now are taken.
  [[nodiscard]] std::uint64_t take(std::uint64_t offset, std::uint64_t size);
  /// The bytes of `section` that take() gives out.
  [[nodiscard]] Bytes read(const Section& section);
  /// True once bytes were asked for a second time, and refused.
  [[nodiscard]] bool overlapped() const noexcept { return overlapped_; }

 private:
  const File& file_;
  const Image& image_;
  std::uint64_t left_;
  std::map<std::uint64_t, std::uint64_t> taken_;  ///< start to end
  bool overlapped_ = false;
};

}  // namespace usdt::elf
