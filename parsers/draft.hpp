// SPDX-License-Identifier: BSD-2-Clause
// Private to parsers/: how semantic actions reach what their grammar is making. It knows no Spirit type: these are
// templates that only the grammars' own .cpp files instantiate with X3.
#pragma once

#include <cstddef>
#include <string_view>

namespace usdt::parsers {

/// Names the grammar's working state, its draft, in an X3 context.
struct DraftTag {};

/// The draft of a grammar that gives it to its context as a std::reference_wrapper.
template <class Context>
auto& draft_of(Context& ctx) {
  return get<DraftTag>(ctx).get();
}

/// In a semantic action, what a raw[] parser has found.
template <class Context>
std::string_view matched(const Context& ctx) {
  const auto& range = _attr(ctx);
  return {range.begin(), static_cast<std::size_t>(range.end() - range.begin())};
}

}  // namespace usdt::parsers
