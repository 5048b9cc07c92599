// SPDX-License-Identifier: BSD-2-Clause
// Memory that a test makes up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "interpreter/memory.hpp"

namespace usdt::interpreter {

/// Memory in pieces, each at its address.
class FakeMemory final : public Memory {
 public:
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> room) const override {
    if (before_read) before_read();
    const auto after = pieces_.upper_bound(address);
    if (after == pieces_.begin()) return false;
    const auto& [start, bytes] = *std::prev(after);
    if (address - start > bytes.size() || room.size() > bytes.size() - (address - start)) return false;
    std::ranges::copy(std::span(bytes).subspan(address - start, room.size()), room.begin());
    return true;
  }
  /// Makes `size` zeros.
  void add(std::uint64_t address, std::size_t size) { pieces_[address].assign(size, std::byte{0}); }
  template <class T>
  void put(std::uint64_t address, const T& value) {
    auto& [start, bytes] = *std::prev(pieces_.upper_bound(address));
    std::memcpy(bytes.data() + (address - start), &value, sizeof(value));
  }
  void put_text(std::uint64_t address, std::string_view text) {
    auto& [start, bytes] = *std::prev(pieces_.upper_bound(address));
    std::memcpy(bytes.data() + (address - start), text.data(), text.size());
  }
  [[nodiscard]] std::map<std::uint64_t, std::vector<std::byte>>& pieces() noexcept { return pieces_; }

  std::function<void()> before_read;  ///< whatever the process does meanwhile

 private:
  std::map<std::uint64_t, std::vector<std::byte>> pieces_;
};

/// Memory that has anything everywhere, and sometimes nothing.
class AnyMemory final : public Memory {
 public:
  explicit AnyMemory(std::uint64_t seed) : seed_(seed) {}
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> room) const override {
    largest = std::max(largest, room.size());
    if (mix(address >> 12) % 8 == 0) return false;
    for (std::size_t i = 0; i < room.size(); ++i)
      room[i] = static_cast<std::byte>(mix((address + i) >> 3) >> ((address + i) % 8 * 8));
    return true;
  }
  mutable std::size_t largest = 0;

 private:
  [[nodiscard]] std::uint64_t mix(std::uint64_t n) const noexcept {
    n = (n ^ seed_) * 0x9e3779b97f4a7c15U;
    n = (n ^ n >> 29) * 0xbf58476d1ce4e5b9U;
    // Small numbers and pointers near each other lead further than any 64 bits do.
    return (n >> 60) < 8 ? (n >> 32 & 0xff) : n ^ n >> 32;
  }
  std::uint64_t seed_;
};

}  // namespace usdt::interpreter
