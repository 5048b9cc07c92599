// SPDX-License-Identifier: BSD-2-Clause
// The machines' tables and what their rows are written with. Private to arch/.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "arch/arch.hpp"

namespace usdt::arch {

extern const Arch kX86_64;
extern const Arch kI386;
extern const Arch kAarch64;
extern const Arch kRiscv64;

/// Arch::uprobe_refusal() of arm64.
[[nodiscard]] std::string_view aarch64_uprobe_refusal(std::span<const std::uint8_t> bytes) noexcept;

/// One row of a site table. Without `mask` all bytes count.
constexpr SitePattern pattern(SiteClass site_class, std::initializer_list<std::uint8_t> bytes,
                              std::initializer_list<std::uint8_t> mask = {}) {
  SitePattern row{{}, {}, static_cast<std::uint8_t>(bytes.size()), site_class};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    row.bytes[i] = bytes.begin()[i];
    row.mask[i] = mask.size() != 0 ? mask.begin()[i] : 0xff;
  }
  return row;
}

constexpr std::uint8_t byte_of(std::uint32_t word, int i) { return static_cast<std::uint8_t>(word >> (8 * i)); }

/// A row about one instruction of 4 bytes, whose lowest is the first.
constexpr SitePattern instruction(SiteClass site_class, std::uint32_t code, std::uint32_t mask) {
  return pattern(site_class, {byte_of(code, 0), byte_of(code, 1), byte_of(code, 2), byte_of(code, 3)},
                 {byte_of(mask, 0), byte_of(mask, 1), byte_of(mask, 2), byte_of(mask, 3)});
}
/// A row about one instruction of 2 bytes.
constexpr SitePattern short_instruction(SiteClass site_class, std::uint32_t code, std::uint32_t mask) {
  return pattern(site_class, {byte_of(code, 0), byte_of(code, 1)}, {byte_of(mask, 0), byte_of(mask, 1)});
}

}  // namespace usdt::arch
