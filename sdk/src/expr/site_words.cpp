// SPDX-License-Identifier: BSD-2-Clause
#include "expr/site_words.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "expr/glob.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Op = Operator;

bool is_text(const Node& node) { return is_site_word(node) && static_cast<HitField>(node.bits) != HitField::ip; }

Node truth(bool value) { return {.op = Op::integer, .bits = value ? 1U : 0U}; }

bool matches(const Node& node, std::string_view text) {
  switch (static_cast<TextMatch>(node.bits)) {
    case TextMatch::whole:
      return text == node.text;
    case TextMatch::prefix:
      return text.starts_with(node.text);
    case TextMatch::glob:
      break;
  }
  return Glob::parse(node.text)->matches(text, false).value_or(false);
}

/// Replaces an operator that its first side decides alone.
void simplify(Node& node) {
  if (node.op != Op::logical_and && node.op != Op::logical_or) return;
  const bool decides = node.op == Op::logical_or;
  if (node.of[0].op == Op::integer && (node.of[0].bits != 0) == decides) node = truth(decides);
}

}  // namespace

bool is_site_word(const Node& node) noexcept {
  return node.op == Op::field && is_site_word(static_cast<HitField>(node.bits));
}

bool is_site_word(HitField field) noexcept { return info_of(field).source == HitFieldSource::site; }

std::string site_text(HitField field, const SiteWords& site) {
  if (field == HitField::provider) return std::string(site.provider);
  if (field == HitField::name) return std::string(site.name);
  return fmt::format("{}:{}", site.provider, site.name);
}

bool SiteFolder::fold(Node& node) const {
  if (fold_word(node)) return true;
  bool any = false;
  for (std::size_t i = 0; i < node.of.size(); ++i) {
    // A key that is nothing else is the site's number.
    const bool key = node.op == Op::row && i > 0 && i <= node.bits;
    if (!key || !is_site_word(node.of[i].of[0])) any |= fold(node.of[i]);
  }
  if (any) simplify(node);
  return any;
}

bool SiteFolder::fold_word(Node& node) const {
  const auto text_of = [&](const Node& word) { return site_text(static_cast<HitField>(word.bits), site_); };
  if (is_site_word(node) && !is_text(node)) {
    node = {.op = Op::integer, .type = ExpressionType::unsigned_integer, .bits = site_.ip};
    return true;
  }
  if (node.op == Op::matches && is_text(node.of[0])) {
    node = truth(matches(node, text_of(node.of[0])));
    return true;
  }
  if (node.op != Op::equal || (!is_text(node.of[0]) && !is_text(node.of[1]))) return false;
  if (is_text(node.of[0])) std::swap(node.of[0], node.of[1]);
  if (is_text(node.of[0])) {
    node = truth(text_of(node.of[0]) == text_of(node.of[1]));
    return true;
  }
  Node literal{.op = Op::matches, .bits = static_cast<std::uint64_t>(TextMatch::whole), .text = text_of(node.of[1])};
  literal.of.push_back(std::move(node.of[0]));
  node = std::move(literal);
  return true;
}

}  // namespace usdt::expr
