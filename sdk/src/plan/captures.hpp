// SPDX-License-Identifier: BSD-2-Clause
// Decides which arguments are also fetched as text, and how far. Private to plan/.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "expr/asked_texts.hpp"
#include "resolve/describe.hpp"
#include "usdt/plan.hpp"

namespace usdt::plan {

using resolve::TextAndLength;

/// Texts of a probe that come with their length, where its provider's documentation says so.
[[nodiscard]] std::span<const TextAndLength> known_lengths(std::string_view provider, std::string_view name) noexcept;

/// Returns the arguments that are wanted as text at the point that `name` names.
template <class Name>
[[nodiscard]] const TextOptions& text_options(const PlanOptions& options, const Name& name) {
  const TextOptions* own = options.texts_of ? options.texts_of(name()) : nullptr;
  return own ? *own : options.texts;
}

/// Returns the usdt_arg_spec::capture of argument `text`, whose length `length` is. USDT_CAPTURE_NONE: that one is the
/// number of other elements than the text's bytes, or too far from it for a spec.
[[nodiscard]] std::uint8_t capture_by(const std::vector<Arg>& args, std::size_t text, std::size_t length);

/// Which arguments of a site are wanted as texts.
struct Wanted {
  const TextOptions& texts;
  std::span<const TextAndLength> lengths = {};  ///< texts that come with their length
  bool described = false;                       ///< by its provider
  std::span<const expr::AskedText> asked = {};  ///< texts of calls that a question at their ends is about
};

/// Marks what is `wanted` as text and can be a pointer (usdt_arg_spec::capture), and at each argument the length it is
/// captured by. Returns the number of texts.
std::uint32_t assign_captures(std::vector<usdt_arg_spec>& encoded, std::vector<Arg>& args, unsigned pointer_size,
                              const Wanted& wanted);

}  // namespace usdt::plan
