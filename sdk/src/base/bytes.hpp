// SPDX-License-Identifier: BSD-2-Clause
// Numbers and texts as recordings (docs/recording.md) and the messages of usdt-broker have them: integers of 7 bits a
// byte, the lowest first; signed ones folded, so that small ones are short whatever their sign; texts behind their
// length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace usdt {

using ByteSpan = std::span<const std::uint8_t>;

/// Bytes that grow, written without a check for each.
class ByteWriter {
 public:
  void u8(std::uint8_t value) {
    make_room(1);
    bytes_[size_++] = value;
  }
  void varint(std::uint64_t value) {
    make_room(kLongestVarint);
    for (; value >= 0x80; value >>= 7) bytes_[size_++] = static_cast<std::uint8_t>(value | 0x80);
    bytes_[size_++] = static_cast<std::uint8_t>(value);
  }
  void zigzag(std::int64_t value) {
    varint(static_cast<std::uint64_t>(value) << 1 ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  void raw(const void* data, std::size_t size) {
    make_room(size);
    if (size > 0) std::memcpy(bytes_.data() + size_, data, size);
    size_ += size;
  }
  void text(std::string_view text) {
    varint(text.size());
    raw(text.data(), text.size());
  }

  [[nodiscard]] ByteSpan bytes() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] std::string_view view() const noexcept { return {reinterpret_cast<const char*>(bytes_.data()), size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  void clear() noexcept { size_ = 0; }

 private:
  static constexpr std::size_t kLongestVarint = 10;

  void make_room(std::size_t more) {
    if (bytes_.size() - size_ < more) bytes_.resize(std::max(2 * bytes_.size(), size_ + more + 64));
  }

  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
};

/// Reads what others wrote. After the first thing that cannot be, all is 0 and empty, and failed() says so.
class ByteReader {
 public:
  explicit ByteReader(ByteSpan bytes) noexcept : rest_(bytes) {}

  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }
  void fail() noexcept {
    failed_ = true;
    rest_ = {};
  }

  std::uint8_t u8() noexcept {
    if (rest_.empty()) {
      fail();
      return 0;
    }
    const std::uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = u8();
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return shift == 63 && byte > 1 ? overlong() : value;
    }
    return overlong();
  }
  std::int64_t zigzag() noexcept {
    const std::uint64_t folded = varint();
    return static_cast<std::int64_t>(folded >> 1 ^ (0 - (folded & 1)));
  }
  /// A number that is at most `most`.
  std::uint64_t up_to(std::uint64_t most) noexcept {
    const std::uint64_t value = varint();
    return value <= most ? value : overlong();
  }
  std::uint32_t u32() noexcept { return static_cast<std::uint32_t>(up_to(UINT32_MAX)); }
  /// An index below `end`.
  std::uint32_t below(std::size_t end) noexcept {
    const std::uint64_t value = varint();
    return static_cast<std::uint32_t>(value < end ? value : overlong());
  }
  ByteSpan raw(std::size_t size) noexcept {
    if (size > rest_.size()) {
      fail();
      return {};
    }
    const ByteSpan taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::string_view text() noexcept {
    const ByteSpan taken = raw(up_to(rest_.size()));
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  std::uint64_t overlong() noexcept {
    fail();
    return 0;
  }

  ByteSpan rest_;
  bool failed_ = false;
};

}  // namespace usdt
