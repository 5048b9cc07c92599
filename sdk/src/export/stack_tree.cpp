// SPDX-License-Identifier: BSD-2-Clause
#include "export/stack_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "usdt/utf8.hpp"

namespace usdt::exports {

using io::json_key;
using io::json_text;

void StackTree::add(std::string_view stack, std::string number) {
  std::uint32_t node = 0;
  while (!stack.empty()) {
    const std::size_t end = std::min(stack.find(';'), stack.size());
    node = child_of(node, stack.substr(0, end));
    stack.remove_prefix(std::min(end + 1, stack.size()));
  }
  nodes_[node].number = std::move(number);
}

std::uint32_t StackTree::child_of(std::uint32_t parent, std::string_view name) {
  const auto [number, is_new_name] = numbers_.try_emplace(std::string(name), names_.size());
  if (is_new_name) names_.push_back(number->first);
  const auto name_number = static_cast<std::uint32_t>(number->second);
  const auto [child, is_new] = children_.try_emplace({parent, name_number}, nodes_.size());
  if (is_new) nodes_.push_back({name_number, parent});
  return static_cast<std::uint32_t>(child->second);
}

std::vector<double> StackTree::totals() const {
  std::vector<double> totals;
  for (const Node& node : nodes_) totals.push_back(std::strtod(node.number.c_str(), nullptr));
  for (std::size_t n = nodes_.size() - 1; n > 0; --n) totals[nodes_[n].parent] += totals[n];
  return totals;
}

std::size_t StackTree::fold(std::size_t most) {
  if (nodes_.size() <= most) return 0;
  const std::vector<double> total = totals();
  std::vector<double> order = total;
  std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(most), std::greater<>());
  const double least = order[most];
  StackTree left;
  std::vector<std::uint32_t> place(nodes_.size());
  std::vector<bool> is_folded(nodes_.size());
  std::map<std::uint32_t, double> folded;  // by node that is left
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    is_folded[n] = n > 0 && (is_folded[node.parent] || total[n] <= least);
    if (n > 0) place[n] = place[node.parent];
    if (n > 0 && !is_folded[node.parent])
      place[n] = left.child_of(place[n], is_folded[n] ? std::string_view("[folded]") : names_[node.name]);
    if (is_folded[n])
      folded[place[n]] += std::strtod(node.number.c_str(), nullptr);
    else
      left.nodes_[place[n]].number = node.number;
  }
  for (const auto& [node, number] : folded) left.nodes_[node].number = fmt::format("{:.0f}", number);
  *this = std::move(left);
  return static_cast<std::size_t>(std::ranges::count(is_folded, true));
}

void StackTree::write(io::JsonWriter& json, std::size_t most_bytes) const {
  json_key(json, "names"), json.StartArray();
  for (const std::string_view name : names_) {
    if (name.size() <= most_bytes)
      json_text(json, name);
    else
      json_text(json, std::string(without_partial_utf8(name.substr(0, most_bytes))) + "...");
  }
  json.EndArray();
  json_key(json, "names_of"), json.StartArray();
  for (const Node& node : nodes_) json.Uint(node.name);
  json.EndArray();
  json_key(json, "parents"), json.StartArray();
  for (const Node& node : nodes_) json.Uint(node.parent);
  json.EndArray();
  json_key(json, "counts"), json.StartArray();
  for (const Node& node : nodes_) json.RawValue(node.number.data(), node.number.size(), rapidjson::kNumberType);
  json.EndArray();
}

}  // namespace usdt::exports
