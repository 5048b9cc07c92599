// SPDX-License-Identifier: BSD-2-Clause
// A recording is a head and blocks, each of which can be checked and unpacked without the others. Private to record/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "record/limits.hpp"
#include "usdt/result.hpp"

namespace usdt::record {

inline constexpr std::string_view kFileMagic = "usdtrec\n";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kFileHead = 16;   ///< bytes
inline constexpr std::size_t kBlockHead = 40;  ///< bytes

enum class BlockKind : std::uint8_t {
  definitions = 1,  ///< what events refer to, notices, ledgers
  events = 2,
  end = 3,  ///< empty: the recording was finished
};
enum class Packing : std::uint8_t { none = 0, zstd = 1 };

struct BlockHead {
  BlockKind kind = BlockKind::end;
  Packing packing = Packing::none;
  std::uint32_t stored = 0;    ///< bytes that follow
  std::uint32_t unpacked = 0;  ///< bytes they become
  std::uint64_t first = 0;     ///< of events: the time of the first one, and
  std::uint64_t last = 0;      ///< of the last one
  std::uint32_t check = 0;     ///< CRC-32 of the bytes that follow
};

[[nodiscard]] std::array<std::uint8_t, kFileHead> file_head();
/// Errors: malformed (no recording), not_supported (of another version).
[[nodiscard]] Result<void> check_file_head(ByteSpan head);

[[nodiscard]] std::array<std::uint8_t, kBlockHead> block_head(const BlockHead& head);
/// Nothing: it is no head of a block, or none that is to be believed.
[[nodiscard]] std::optional<BlockHead> parse_block_head(std::span<const std::uint8_t, kBlockHead> head);

/// Makes blocks.
class Packer {
 public:
  Packer();
  Packer(Packer&&) noexcept;
  Packer& operator=(Packer&&) noexcept;
  ~Packer();
  /// A whole block with its head. `content` is at most kMostUnpacked long.
  [[nodiscard]] std::vector<std::uint8_t> pack(BlockKind kind, ByteSpan content, std::uint64_t first = 0,
                                               std::uint64_t last = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Takes them apart.
class Unpacker {
 public:
  Unpacker();
  Unpacker(Unpacker&&) noexcept;
  Unpacker& operator=(Unpacker&&) noexcept;
  ~Unpacker();
  /// The content of the block, valid until the next call. Errors: malformed, the stored bytes are not what was written.
  [[nodiscard]] Result<ByteSpan> unpack(const BlockHead& head, ByteSpan stored);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace usdt::record
