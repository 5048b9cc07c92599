// SPDX-License-Identifier: BSD-2-Clause
// The first bytes of instructions, at many places of one image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "elf/image.hpp"

namespace usdt::elf {

/// The bytes at an address of an image's code, and the class of site they make.
struct Code {
  std::optional<FileOffset> offset;  ///< none: no executable segment has bytes there
  SiteBytes bytes;
  SiteClass site_class = SiteClass::unknown;
};

/// Reads at ascending addresses from one block, so that neighbours share a system call.
class CodeReader {
 public:
  CodeReader(const File& file, const Image& image) : file_(file), image_(image) {}
  [[nodiscard]] Code at(VirtAddr address);

 private:
  static constexpr std::size_t kBlock = 4096;
  /// Copies up to out.size() bytes, at most as many as SiteBytes has, from `offset`; returns how many there are.
  std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out);

  const File& file_;
  const Image& image_;
  std::array<std::uint8_t, kBlock + sizeof(SiteBytes::data)> block_{};
  std::uint64_t start_ = 0;
  std::size_t filled_ = 0;
};

}  // namespace usdt::elf
