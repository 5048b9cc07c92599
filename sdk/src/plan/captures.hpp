// SPDX-License-Identifier: BSD-2-Clause
// Which arguments are also fetched as text, and how far. Private to plan/.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "usdt/plan.hpp"

namespace usdt::plan {

/// A text argument and the argument that is its length.
struct TextAndLength {
  std::uint8_t text;
  std::uint8_t length;
};

/// Texts of a probe that come with their length, where its provider's documentation says so.
[[nodiscard]] std::span<const TextAndLength> known_lengths(std::string_view provider, std::string_view name) noexcept;

/// What is wanted as text at the point that `name` names.
template <class Name>
[[nodiscard]] const TextOptions& text_options(const PlanOptions& options, const Name& name) {
  const TextOptions* own = options.texts_of ? options.texts_of(name()) : nullptr;
  return own ? *own : options.texts;
}

/// Marks what is `wanted` as text and can be a pointer (usdt_arg_spec::capture). Returns the number of texts.
std::uint32_t assign_captures(std::vector<usdt_arg_spec>& encoded, const std::vector<Arg>& args, unsigned pointer_size,
                              const TextOptions& wanted, std::span<const TextAndLength> known = {});

}  // namespace usdt::plan
