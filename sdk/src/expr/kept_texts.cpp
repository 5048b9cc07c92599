// SPDX-License-Identifier: BSD-2-Clause
// Texts that a record keeps from where a span or call began to where it ends, and is asked about there.
#include "expr/kept_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "usdt/bpf/filter.h"
#include "usdt/expression.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Op = Operator;

/// Bytes that are kept of a longer text, at least (find_kept_text() of bpf/trace/texts.h).
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

Result<std::vector<TypedExpression::KeptText>> keep_texts(Node& root, std::vector<std::uint8_t>& args,
                                                          std::vector<TypedExpression::OfList>& of_lists,
                                                          const std::vector<std::optional<std::uint8_t>>& slots) {
  std::vector<TypedExpression::KeptText> kept;
  const std::size_t values = args.size();
  for (std::size_t n = 0; n < values; ++n) {
    if (args[n] >= slots.size() || !slots[args[n]].has_value()) continue;
    const std::uint8_t slot = *slots[args[n]];
    Uses uses;
    find_uses(root, n, false, uses);
    if (!uses.text && !uses.begins) continue;
    auto value = static_cast<std::uint8_t>(n);
    if (uses.number || is_length(of_lists, value)) {
      if (args.size() == TypedExpression::kMostValues)
        return fail(ErrorKind::limit,
                    fmt::format("more than {} different values, of which a pointer and its text are two",
                                TypedExpression::kMostValues));
      value = static_cast<std::uint8_t>(args.size());
      args.push_back(args[n]);
      renumber_texts(root, n, value);
      const auto of_list = std::ranges::find(of_lists, n, &TypedExpression::OfList::value);
      if (of_list != of_lists.end()) {
        TypedExpression::OfList copy = *of_list;
        copy.value = value;
        of_lists.push_back(std::move(copy));
      }
    }
    kept.push_back({.value = value, .slot = slot, .whole = uses.text});
  }
  return kept;
}

}  // namespace usdt::expr
