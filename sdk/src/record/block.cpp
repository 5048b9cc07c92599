// SPDX-License-Identifier: BSD-2-Clause
#include "record/block.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "elf/crc32.hpp"

namespace usdt::record {
namespace {

constexpr std::string_view kBlockMagic = "UBLK";
/// 1 packs hundreds of MB a second; higher levels gain a few percent on events (docs/recording.md).
constexpr int kLevel = 1;

// Offsets of the words of a block's head; all are little-endian.
constexpr std::size_t kKindAt = 4, kPackingAt = 5, kStoredAt = 8, kUnpackedAt = 12, kFirstAt = 16, kLastAt = 24,
                      kCheckAt = 32, kHeadCheckAt = 36;

template <class Word>
void put(std::uint8_t* at, Word value) {
  for (std::size_t n = 0; n < sizeof(Word); ++n) at[n] = static_cast<std::uint8_t>(std::uint64_t{value} >> 8 * n);
}

template <class Word>
Word get(const std::uint8_t* at) {
  std::uint64_t value = 0;
  for (std::size_t n = 0; n < sizeof(Word); ++n) value |= std::uint64_t{at[n]} << 8 * n;
  return static_cast<Word>(value);
}

std::uint32_t crc32(ByteSpan bytes) {
  elf::Crc32 crc;
  crc.add({bytes.data(), bytes.size()});
  return crc.value();
}

bool is_sound(const BlockHead& head) {
  if (head.unpacked > kMostUnpacked) return false;
  if (head.packing == Packing::none) return head.stored == head.unpacked;
  return head.packing == Packing::zstd && head.stored <= head.unpacked && head.unpacked <= head.stored * kMostRatio;
}

}  // namespace

std::array<std::uint8_t, kFileHead> file_head() {
  std::array<std::uint8_t, kFileHead> head{};
  std::memcpy(head.data(), kFileMagic.data(), kFileMagic.size());
  put(head.data() + kFileMagic.size(), kVersion);
  return head;
}

Result<void> check_file_head(ByteSpan head) {
  if (head.size() < kFileHead || std::memcmp(head.data(), kFileMagic.data(), kFileMagic.size()) != 0)
    return fail(ErrorKind::malformed, "no recording of events: it does not begin as one");
  const auto version = get<std::uint32_t>(head.data() + kFileMagic.size());
  if (version != kVersion)
    return fail(ErrorKind::not_supported,
                fmt::format("a recording of version {}; this program reads version {}", version, kVersion));
  return {};
}

std::array<std::uint8_t, kBlockHead> block_head(const BlockHead& head) {
  std::array<std::uint8_t, kBlockHead> bytes{};
  std::uint8_t* const at = bytes.data();
  std::memcpy(at, kBlockMagic.data(), kBlockMagic.size());
  at[kKindAt] = static_cast<std::uint8_t>(head.kind);
  at[kPackingAt] = static_cast<std::uint8_t>(head.packing);
  put(at + kStoredAt, head.stored);
  put(at + kUnpackedAt, head.unpacked);
  put(at + kFirstAt, head.first);
  put(at + kLastAt, head.last);
  put(at + kCheckAt, head.check);
  put(at + kHeadCheckAt, crc32({at, kHeadCheckAt}));
  return bytes;
}

std::optional<BlockHead> parse_block_head(std::span<const std::uint8_t, kBlockHead> bytes) {
  const std::uint8_t* at = bytes.data();
  if (std::memcmp(at, kBlockMagic.data(), kBlockMagic.size()) != 0) return std::nullopt;
  if (get<std::uint32_t>(at + kHeadCheckAt) != crc32({at, kHeadCheckAt})) return std::nullopt;
  BlockHead head;
  head.kind = static_cast<BlockKind>(at[kKindAt]);
  head.packing = static_cast<Packing>(at[kPackingAt]);
  head.stored = get<std::uint32_t>(at + kStoredAt);
  head.unpacked = get<std::uint32_t>(at + kUnpackedAt);
  head.first = get<std::uint64_t>(at + kFirstAt);
  head.last = get<std::uint64_t>(at + kLastAt);
  head.check = get<std::uint32_t>(at + kCheckAt);
  return is_sound(head) ? std::optional(head) : std::nullopt;
}

struct Packer::State {
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context{ZSTD_createCCtx(), &ZSTD_freeCCtx};
};

Packer::Packer() : state_(std::make_unique<State>()) {}
Packer::Packer(Packer&&) noexcept = default;
Packer& Packer::operator=(Packer&&) noexcept = default;
Packer::~Packer() = default;

std::vector<std::uint8_t> Packer::pack(BlockKind kind, ByteSpan content, std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint8_t> block(kBlockHead + std::max(ZSTD_compressBound(content.size()), content.size()));
  std::uint8_t* const stored = block.data() + kBlockHead;
  BlockHead head{.kind = kind, .unpacked = static_cast<std::uint32_t>(content.size()), .first = first, .last = last};
  const std::size_t packed = content.empty() || !state_->context
                                 ? content.size()
                                 : ZSTD_compressCCtx(state_->context.get(), stored, block.size() - kBlockHead,
                                                     content.data(), content.size(), kLevel);
  if (!ZSTD_isError(packed) && packed < content.size() && content.size() <= packed * kMostRatio) {
    head.packing = Packing::zstd;
    head.stored = static_cast<std::uint32_t>(packed);
  } else {
    head.stored = head.unpacked;
    if (!content.empty()) std::memcpy(stored, content.data(), content.size());
  }
  head.check = crc32({stored, head.stored});
  std::ranges::copy(block_head(head), block.begin());
  block.resize(kBlockHead + head.stored);
  return block;
}

struct Unpacker::State {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context{ZSTD_createDCtx(), &ZSTD_freeDCtx};
  std::vector<std::uint8_t> content;
};

Unpacker::Unpacker() : state_(std::make_unique<State>()) {}
Unpacker::Unpacker(Unpacker&&) noexcept = default;
Unpacker& Unpacker::operator=(Unpacker&&) noexcept = default;
Unpacker::~Unpacker() = default;

Result<ByteSpan> Unpacker::unpack(const BlockHead& head, ByteSpan stored) {
  if (stored.size() != head.stored || crc32(stored) != head.check)
    return fail(ErrorKind::malformed, "its bytes are not those that were written");
  if (head.packing == Packing::none) {
    state_->content.assign(stored.begin(), stored.end());
    return ByteSpan(state_->content);
  }
  state_->content.resize(head.unpacked);
  if (!state_->context) return fail(ErrorKind::limit, "no memory to unpack it");
  const std::size_t size = ZSTD_decompressDCtx(state_->context.get(), state_->content.data(), state_->content.size(),
                                               stored.data(), stored.size());
  if (ZSTD_isError(size) || size != head.unpacked) return fail(ErrorKind::malformed, "it does not unpack");
  return ByteSpan(state_->content);
}

}  // namespace usdt::record
