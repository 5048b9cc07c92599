// SPDX-License-Identifier: BSD-2-Clause
// Numbers of things that are kept elsewhere, found by what the things hash to.
#pragma once

#include <sys/auxv.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace usdt {

/// Slots of eight bytes in a row, so that an index of 100,000 things stays in a processor's cache and no thing is
/// looked at but one that is, with few exceptions, the one wanted. A map with a node for each thing misses the cache
/// several times a lookup, which was most of the time that planning took.
class HashIndex {
 public:
  /// The number of the thing with `hash` for which `same(number)` is true, and false; where there is none, `next`,
  /// which is its number from now on, and true.
  template <class Same>
  std::pair<std::uint32_t, bool> try_add(std::size_t hash, std::uint32_t next, const Same& same) {
    reserve(size_ + 1);
    const std::uint32_t tag = tag_of(hash);
    std::size_t at = slot_of(tag, same);
    if (slots_[at].number != kFree) return {slots_[at].number, false};
    slots_[at] = {tag, next};
    ++size_;
    return {next, true};
  }
  /// Whether there is such a thing.
  template <class Same>
  [[nodiscard]] bool contains(std::size_t hash, const Same& same) const {
    return size_ > 0 && slots_[slot_of(tag_of(hash), same)].number != kFree;
  }
  /// Another number in each process, for hashes to begin with: whoever wrote the things does not know it, and cannot
  /// make many of them hash alike, which would have each be compared with all others.
  [[nodiscard]] static std::uint64_t seed() noexcept {
    static const std::uint64_t random = [] {
      std::uint64_t bytes = 0;  // getauxval(3): 16 random bytes
      if (const auto* at = reinterpret_cast<const void*>(::getauxval(AT_RANDOM)))
        std::memcpy(&bytes, at, sizeof(bytes));
      return bytes;
    }();
    return random;
  }
  /// Makes room for so many things in all.
  void reserve(std::size_t count) {
    // At most half of the slots are taken, so that a search ends soon.
    if (2 * count > slots_.size()) resize(std::bit_ceil(2 * count));
  }

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t number = kFree;
  };

  /// The part of a hash that is kept: all its bits have a say in each bit.
  [[nodiscard]] static std::uint32_t tag_of(std::size_t hash) noexcept {
    constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;  // 2^64 divided by it
    std::uint64_t mixed = (hash ^ seed()) * kGoldenRatio;
    mixed = (mixed ^ mixed >> 32) * kGoldenRatio;
    return static_cast<std::uint32_t>(mixed >> 32);
  }
  [[nodiscard]] std::size_t behind(std::size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }
  /// Returns the slot of the thing, or the slot it would take.
  template <class Same>
  [[nodiscard]] std::size_t slot_of(std::uint32_t tag, const Same& same) const {
    std::size_t at = tag & (slots_.size() - 1);
    while (slots_[at].number != kFree && (slots_[at].tag != tag || !same(slots_[at].number))) at = behind(at);
    return at;
  }
  void resize(std::size_t count) {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(count));
    for (const Slot& slot : old) {
      if (slot.number != kFree) slots_[slot_of(slot.tag, [](std::uint32_t) { return false; })] = slot;
    }
  }

  std::vector<Slot> slots_;  ///< as many as a power of two
  std::size_t size_ = 0;
};

}  // namespace usdt
