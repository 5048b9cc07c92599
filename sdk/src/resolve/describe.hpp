// SPDX-License-Identifier: BSD-2-Clause
// Texts with lengths, by the description of a site. Private to the SDK.
#pragma once

#include <cstdint>
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

}  // namespace usdt::resolve
