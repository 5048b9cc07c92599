// SPDX-License-Identifier: BSD-2-Clause
// Texts that a record keeps from where a span or call began to where it ends, and is asked about there.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "usdt/bpf/filter.h"
#include "usdt/expression.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Node = TypedExpression::Node;
using Op = Operator;

/// What is at least kept of a text that is longer (find_kept_text() of bpf/trace/texts.h).
constexpr std::size_t kLeastKept = USDT_ROW_WORDS * sizeof(std::uint64_t);

/// How the nodes of a question use one of its values.
struct Uses {
  bool number = false;
  bool text = false;    ///< as a text of which all counts
  bool begins = false;  ///< as one of which the beginning is all that matters
};

/// Whether no more than the beginning of its operands is looked at: of a key, and beside a short literal.
bool looks_at_beginning(const Node& node) {
  if (node.op == Op::part) return true;
  return node.op == Op::matches && static_cast<TextMatch>(node.bits) != TextMatch::glob &&
         node.text.size() + 2 <= kLeastKept;
}

void find_uses(const Node& node, std::uint64_t value, bool begins, Uses& uses) {
  if (node.op == Op::value && node.bits == value) uses.number = true;
  if (node.op == Op::text_of && node.bits == value) (begins ? uses.begins : uses.text) = true;
  for (const Node& each : node.of) find_uses(each, value, looks_at_beginning(node), uses);
}

/// Gives the texts of one value another number.
void renumber_texts(Node& node, std::uint64_t value, std::uint64_t number) {
  if (node.op == Op::text_of && node.bits == value) node.bits = number;
  for (Node& each : node.of) renumber_texts(each, value, number);
}

/// Whether what is known of lists needs the value as a number.
bool is_length(const std::vector<TypedExpression::OfList>& lists, std::uint8_t value) {
  return std::ranges::any_of(lists, [&](const TypedExpression::OfList& each) {
    return (each.element && each.element->length == value) ||
           (each.alternative && each.alternative->discriminant == value) ||
           (each.counts && each.counts->first == value);
  });
}

}  // namespace

Result<TypedExpression> TypedExpression::with_kept_texts(const std::vector<std::optional<std::uint8_t>>& slots) const {
  TypedExpression made = *this;
  for (std::size_t n = 0; n < args_.size(); ++n) {
    if (args_[n] >= slots.size() || !slots[args_[n]].has_value()) continue;
    const std::uint8_t slot = *slots[args_[n]];
    Uses uses;
    find_uses(root_, n, false, uses);
    if (!uses.text && !uses.begins) continue;
    auto value = static_cast<std::uint8_t>(n);
    if (uses.number || is_length(of_lists_, value)) {
      if (made.args_.size() == kMostValues)
        return fail(ErrorKind::limit,
                    fmt::format("more than {} different values, of which a pointer and its text are two", kMostValues));
      value = static_cast<std::uint8_t>(made.args_.size());
      made.args_.push_back(args_[n]);
      renumber_texts(made.root_, n, value);
      const auto of_list = std::ranges::find(of_lists_, n, &OfList::value);
      if (of_list != of_lists_.end()) made.of_lists_.emplace_back(*of_list).value = value;
    }
    made.kept_texts_.push_back({.value = value, .slot = slot, .whole = uses.text});
  }
  return made;
}

}  // namespace v1
}  // namespace usdt
