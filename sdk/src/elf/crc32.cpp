// SPDX-License-Identifier: BSD-2-Clause
#include "elf/crc32.hpp"

#include <array>

#include "elf/image.hpp"

namespace usdt::elf {
namespace {

/// Bit 31 is the coefficient of x^0.
constexpr std::uint32_t kPolynomial = 0xedb88320;
constexpr std::uint32_t kOne = 0x80000000;

constexpr std::uint32_t times_x(std::uint32_t a) noexcept { return a >> 1 ^ ((a & 1) != 0 ? kPolynomial : 0); }

/// Entry [k][b]: what the byte b leaves behind after k more bytes, so that eight bytes are taken at once.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() noexcept {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = times_x(rest);
    tables[0][byte] = rest;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

/// The product of two polynomials modulo the CRC's.
constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t sum = 0;
  for (; a != 0; a <<= 1, b = times_x(b)) {
    if ((a & kOne) != 0) sum ^= b;
  }
  return sum;
}

}  // namespace

void Crc32::add(ByteView bytes) noexcept {
  std::uint32_t rest = register_;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const std::uint32_t low = rest ^ little(load<std::uint32_t>(bytes, 0));
    const std::uint32_t high = little(load<std::uint32_t>(bytes, 4));
    rest = 0;
    for (unsigned i = 0; i < 4; ++i) {
      rest ^= kTables[7 - i][low >> 8 * i & 0xff] ^ kTables[3 - i][high >> 8 * i & 0xff];
    }
  }
  for (const std::uint8_t byte : bytes) rest = rest >> 8 ^ kTables[0][(rest ^ byte) & 0xff];
  register_ = rest;
}

/// A zero byte multiplies the register by x^8.
void Crc32::add_zeros(std::uint64_t count) noexcept {
  std::uint32_t power = kOne >> 8;
  for (; count != 0; count >>= 1, power = product(power, power)) {
    if ((count & 1) != 0) register_ = product(power, register_);
  }
}

}  // namespace usdt::elf
