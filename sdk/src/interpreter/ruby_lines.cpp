// SPDX-License-Identifier: BSD-2-Clause
#include "interpreter/ruby_lines.hpp"

#include <bit>

namespace usdt::interpreter {
namespace {

// The first positions have their ranks as they are, of 7 bits, 9 in a word.
constexpr std::uint64_t kPlain = 54, kPlainInWord = 9, kPlainBits = 7;
constexpr std::uint64_t kPlainWords = kPlain / kPlainInWord;
// Others are in blocks: the rank before the block, which has 32 bits, that before each of its words but the first, of 9
// bits, and a bit for each position.
constexpr std::uint64_t kBlock = 512, kRankBits = 9, kBits = 64;
constexpr std::uint64_t kBlockWords = 2 + kBlock / kBits;

constexpr std::uint64_t mask(std::uint64_t bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

std::uint64_t words_of_ranks(std::uint64_t count) {
  const std::uint64_t in_blocks = count > kPlain ? count - kPlain : 0;
  return kPlainWords + (in_blocks + kBlock - 1) / kBlock * kBlockWords;
}

std::uint32_t rank_of(std::span<const std::uint64_t> ranks, std::uint64_t position) {
  if (position < kPlain) {
    const std::uint64_t word = position / kPlainInWord;
    if (word >= ranks.size()) return 0;
    return static_cast<std::uint32_t>(ranks[word] >> position % kPlainInWord * kPlainBits & mask(kPlainBits));
  }
  const std::uint64_t in_blocks = position - kPlain;
  const std::uint64_t first = kPlainWords + in_blocks / kBlock * kBlockWords;
  if (first + kBlockWords > ranks.size()) return 0;
  const std::span block = ranks.subspan(first, kBlockWords);
  const std::uint64_t word = in_blocks % kBlock / kBits, bit = in_blocks % kBits;
  const std::uint64_t before = word == 0 ? 0 : block[1] >> (word - 1) * kRankBits & mask(kRankBits);
  const auto within = static_cast<std::uint64_t>(std::popcount(block[2 + word] << (kBits - 1 - bit)));
  return static_cast<std::uint32_t>((block[0] & UINT32_MAX) + before + within);
}

}  // namespace usdt::interpreter
