// SPDX-License-Identifier: BSD-2-Clause
// Code that no symbol names, by what unwinders are told of it.
#pragma once

#include <cstdint>
#include <optional>

#include "elf/function_pieces.hpp"
#include "elf/image.hpp"

namespace usdt::elf {

/// The table of frames of a file, .eh_frame_hdr (LSB 5.0, 10.6): each function has an entry, and so has each piece of
/// one that is elsewhere.
class FramePieces {
 public:
  FramePieces(const File& file, const Image& image);

  /// The piece of some function that has `address`, whose beginning nobody calls: `address` is not where it begins, or
  /// at its beginning the caller is not where it is at that of a function. Nothing: it is where a function begins, or
  /// that is not known.
  [[nodiscard]] std::optional<CodePart> piece_at(VirtAddr address) const;
  /// Whether the frame that has `address` names a table of handlers (LSB 5.0, 10.6.1: the 'L' of a CIE's augmentation);
  /// true where there are frames and no table of them that could tell. Code without a frame has none.
  [[nodiscard]] bool may_land_in(VirtAddr address) const;

 private:
  struct Frame {
    std::uint64_t start;
    std::uint64_t description;  ///< address of its FDE
  };
  /// The one that has `address`.
  [[nodiscard]] std::optional<Frame> frame_at(VirtAddr address) const;
  [[nodiscard]] bool begins_within(std::uint64_t instructions, std::uint64_t end) const;
  [[nodiscard]] std::uint8_t byte_at(std::uint64_t address) const noexcept;
  [[nodiscard]] std::uint32_t word_at(std::uint64_t address) const noexcept;

  Machine machine_;
  std::vector<Frame> frames_;  ///< by start
  std::uint64_t base_ = 0;     ///< the address of .eh_frame
  Bytes bytes_;                ///< of it
  bool known_ = false;         ///< there are no other frames than frames_
};

}  // namespace usdt::elf
