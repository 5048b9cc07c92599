// SPDX-License-Identifier: BSD-2-Clause
// Bytes of a note section or segment -> notes -> stapsdt records. Every length in it is somebody's claim.
//
// A note (ELF gABI, "Note Section") is {namesz, descsz, type: u32}, the owner's name, the descriptor, each padded. A
// stapsdt note (sys/sdt.h, _SDT_ASM_BODY) has owner "stapsdt", type 3, and in its descriptor three address words (pc,
// base, semaphore) and three NUL-terminated strings (provider, name, arguments).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "elf/image.hpp"
#include "usdt/result.hpp"

namespace usdt::elf {

inline std::string_view as_text(ByteView bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Takes a NUL-terminated string off the front of `text`; nothing when there is no NUL.
inline std::optional<std::string_view> take_string(std::string_view& text) noexcept {
  const auto end = text.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const auto string = text.substr(0, end);
  text.remove_prefix(end + 1);
  return string;
}

/// One note of any owner; the views point into the bytes it was read from.
struct Note {
  std::uint64_t offset = 0;  ///< of its header, in those bytes
  std::uint32_t type = 0;
  std::string_view owner;  ///< namesz bytes, the final NUL included
  ByteView desc;
  std::uint64_t desc_offset = 0;
};

/// Walks the notes of `bytes` in order.
class NoteReader {
 public:
  /// `align`: what names and descriptors are padded to, 4 or 8.
  explicit NoteReader(ByteView bytes, std::uint64_t align = 4) noexcept : bytes_(bytes), align_(align) {}

  /// The next note; nothing at the end, or where a note claims more bytes than there are, see damage().
  [[nodiscard]] std::optional<Note> next() noexcept;

  /// Why the walk ended early, and where.
  struct Damage {
    std::uint64_t offset = 0;
    std::uint64_t claimed = 0;  ///< bytes the note would need
    std::uint64_t left = 0;     ///< bytes there are from `offset` on
  };
  [[nodiscard]] const std::optional<Damage>& damage() const noexcept { return damage_; }

 private:
  ByteView bytes_;
  std::uint64_t align_;
  std::uint64_t at_ = 0;
  std::optional<Damage> damage_;
};

inline constexpr std::string_view kStapsdtOwner{"stapsdt\0", 8};
inline constexpr std::uint32_t kStapsdtType = 3;

/// A stapsdt note's contents; the strings point into the note.
struct StapsdtRecord {
  std::uint64_t pc = 0;
  std::uint64_t base = 0;
  std::uint64_t semaphore = 0;
  std::string_view provider;
  std::string_view name;
  std::string_view args;
};

/// Decodes a note of owner "stapsdt". What it says of a malformed one is a phrase for a warning: "name is not
/// terminated".
[[nodiscard]] tl::expected<StapsdtRecord, const char*> parse_stapsdt(const Note& note, bool is64) noexcept;

}  // namespace usdt::elf
