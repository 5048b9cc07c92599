// SPDX-License-Identifier: BSD-2-Clause
// Texts with lengths, by the description of a site. Private to the SDK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "usdt/decode.hpp"

namespace usdt::resolve {

/// A text argument and the argument that is its length in bytes.
struct TextAndLength {
  std::uint8_t text;
  std::uint8_t length;
};

/// Texts whose length is the argument behind them, of the `count` arguments that `description` describes.
[[nodiscard]] std::vector<TextAndLength> described_lengths(const SiteDescription& description, std::size_t count);

/// How many arguments a text declares (SiteDescription::declared).
[[nodiscard]] std::size_t declared_count(std::string_view declared);

}  // namespace usdt::resolve
