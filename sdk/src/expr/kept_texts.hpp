// SPDX-License-Identifier: BSD-2-Clause
// Texts that a question about the end of a span or call reads as they were where it began. Private to expr/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "expr/glob.hpp"
#include "expr/question_frame.hpp"
#include "usdt/expression.hpp"
#include "usdt/result.hpp"

namespace usdt::expr {

/// A question looks no further into a text than so many bytes, unless it has a longer literal. It asks nobody where a
/// text ends that a record keeps, whose memory others may write to meanwhile.
inline constexpr std::size_t kFarthestLook = kLongestLook + 2 * kPiece;

/// Makes of the texts that `root` is about those which records keep in `slots` (TypedExpression::with_kept_texts()).
/// `args` and `of_lists` are its values, and take up another number for a value that is read as a number, too. Errors:
/// limit (more than TypedExpression::kMostValues).
[[nodiscard]] Result<std::vector<TypedExpression::KeptText>> keep_texts(
    TypedExpression::Node& root, std::vector<std::uint8_t>& args, std::vector<TypedExpression::OfList>& of_lists,
    const std::vector<std::optional<std::uint8_t>>& slots);

}  // namespace usdt::expr
