// SPDX-License-Identifier: BSD-2-Clause
#include "session/recorded_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/try.hpp"

namespace usdt::session {
namespace {

bool is_read_by_length(const PrintItem& item) { return item.form == PrintItem::Form::text && item.length; }

/// The item of a list that reads this text by a length; null: none does.
const PrintItem* find_read(const PrintList& list, const ArgName& text) {
  const auto found = std::ranges::find_if(
      list, [&](const PrintItem& each) { return is_read_by_length(each) && arg_name_of(each.value) == text; });
  return found == list.end() ? nullptr : &*found;
}

Result<void> refuse(std::string_view asked, const PrintItem& read) {
  return fail(ErrorKind::invalid_argument, fmt::format("{}: it was recorded as {}", asked, read.label));
}

Result<void> check_node(const Printed& recorded, const Expression& asked, const ExpressionNode& node) {
  for (const ExpressionNode& each : node.of) TRY(check_node(recorded, asked, each));
  const bool compares = node.op == Operator::equal || node.op == Operator::not_equal || node.op == Operator::matches;
  const bool with_text = compares && std::ranges::find(node.of, Operator::text, &ExpressionNode::op) != node.of.end();
  if (!with_text && !(node.op == Operator::text_of && node.of.size() == 1)) return {};
  for (const ExpressionNode& each : node.of) {
    if (each.op != Operator::value) continue;
    const ValuePath& path = asked.values[each.bits];
    for (const PrintList& list : recorded.lists)
      if (const PrintItem* read = find_read(list, arg_name_of(path))) return refuse(path.text, *read);
  }
  return {};
}

}  // namespace

Result<void> check_recorded_texts(const Printed& recorded, const Printed& asked) {
  for (std::size_t probe = 0; probe < std::min(asked.of_probe.size(), recorded.of_probe.size()); ++probe) {
    const PrintList& list = recorded.lists[recorded.of_probe[probe]];
    for (const PrintItem& item : asked.lists[asked.of_probe[probe]]) {
      if (item.form != PrintItem::Form::text) continue;
      const PrintItem* read = find_read(list, arg_name_of(item.value));
      if (read != nullptr && read->length != item.length) return refuse(item.label, *read);
    }
  }
  return {};
}

Result<void> check_recorded_texts(const Printed& recorded, const Expression& asked) {
  return check_node(recorded, asked, asked.root);
}

}  // namespace usdt::session
