// SPDX-License-Identifier: BSD-2-Clause
#include "broker/expressions.hpp"

#include <algorithm>
#include <utility>

#include "broker/limits.hpp"
#include "expr/glob.hpp"
#include "expr/numbers.hpp"
#include "expr/row.hpp"
#include "expr/site_words.hpp"
#include "usdt/bpf/spec.h"
#include "usdt/table.hpp"

namespace usdt::broker {
namespace {

using Node = TypedExpression::Node;
using Op = Operator;
using Type = ExpressionType;
using expr::is_integer;

// parse_expression() takes 1,024 operands and operators, 64 within each other; typing adds some.
constexpr std::size_t kMostNodes = 2048;
constexpr unsigned kDeepest = 96;
constexpr std::size_t kMostOperands = 32;
constexpr std::uint64_t kMostSubBits = 4;  ///< as log2_buckets() has them

/// Goes through a tree as the compiler does.
class Checker {
 public:
  explicit Checker(std::size_t values) : values_(values) {}

  /// Something that is computed as an integer, the truth of a condition included.
  [[nodiscard]] bool is_number(const Node& node) const {
    if (!is_integer(node.type)) return false;
    switch (node.op) {
      case Op::integer:
        return node.of.empty();
      case Op::value:
        return is_value(node);
      case Op::field:
        return node.of.empty() && node.bits < kHitFields.size() && is_integer(kHitFields[node.bits].type);
      case Op::negate:
      case Op::complement:
      case Op::logical_not:
        return are_numbers(node, 1);
      case Op::conditional:
        return are_numbers(node, 3);
      case Op::logical_and:
      case Op::logical_or:
      case Op::bit_and:
      case Op::bit_xor:
      case Op::bit_or:
      case Op::multiply:
      case Op::divide:
      case Op::remainder:
      case Op::add:
      case Op::subtract:
      case Op::shift_left:
      case Op::shift_right:
        return are_numbers(node, 2);
      case Op::matches:
        return is_match(node);
      default:
        return expr::is_comparison(node.op) && is_comparison(node);
    }
  }

  /// A row of a table: which hits count, the keys, and the value, if there is one. Stacks are not among the keys.
  [[nodiscard]] bool is_row(const Node& node) const {
    if (node.op != Op::row || node.bits > USDT_ROW_WORDS || node.of.empty()) return false;
    const std::size_t keys = node.bits;
    if (node.of.size() != keys + 1 && node.of.size() != keys + 2) return false;
    const auto is_part = [](const Node& part) { return part.op == Op::part && part.of.size() == 1; };
    if (!std::ranges::all_of(node.of, is_part) || !is_number(node.of[0].of[0])) return false;
    for (std::size_t n = 1; n <= keys; ++n)
      if (!is_key(node.of[n].of[0])) return false;
    const Node& last = node.of.back().of[0];
    if (node.of.size() == keys + 2 && !is_number(last) && !is_real_value(last)) return false;
    return expr::row_layout(node).bytes <= TableQuestion::kMostKeyBytes;
  }

 private:
  [[nodiscard]] bool is_real_value(const Node& node) const {
    return expr::is_real(node.type) && node.op == Op::value && is_value(node);
  }

  [[nodiscard]] bool is_key(const Node& node) const {
    if (node.op == Op::field && node.of.empty() && node.bits < kHitFields.size() && expr::is_site_word(node))
      return true;
    if (node.op == Op::hex || node.op == Op::ntop) return is_integer(node.type) && are_numbers(node, 1);
    if (node.op == Op::fingerprint) return node.type == Type::text && node.of.size() == 1 && is_text(node.of[0]);
    if (node.op == Op::log2_bucket) return is_integer(node.type) && is_log2_bucket(node);
    if (node.op == Op::linear_bucket) return is_integer(node.type) && is_linear_bucket(node);
    return is_number(node) || is_real_value(node) || is_text(node);
  }

  [[nodiscard]] bool is_log2_bucket(const Node& node) const {
    if (node.of.size() != 2 || node.of[1].op != Op::integer || node.of[1].bits > kMostSubBits) return false;
    return is_number(node.of[0]) || is_real_value(node.of[0]);
  }

  /// Reals have their bounds as further operands. (Buckets of integers are a condition.)
  [[nodiscard]] bool is_linear_bucket(const Node& node) const {
    if (node.of.size() < 3 || !is_real_value(node.of[0])) return false;
    return std::all_of(node.of.begin() + 1, node.of.end(), [&](const Node& bound) {
      return bound.op == Op::real && bound.of.empty() && bound.type == node.of[0].type;
    });
  }

  [[nodiscard]] bool is_value(const Node& node) const { return node.of.empty() && node.bits < values_; }

  [[nodiscard]] bool are_numbers(const Node& node, std::size_t count) const {
    return node.of.size() == count && std::ranges::all_of(node.of, [&](const Node& each) { return is_number(each); });
  }

  [[nodiscard]] bool is_comparison(const Node& node) const {
    if (node.of.size() != 2) return false;
    const Node& left = node.of[0];
    const Node& right = node.of[1];
    if (left.type == Type::text) return node.op == Op::equal && is_text(left) && is_text(right);
    if (expr::is_real(left.type)) return left.type == right.type && is_real(left) && is_real(right);
    return is_number(left) && is_number(right);
  }

  [[nodiscard]] bool is_real(const Node& node) const {
    return node.op == Op::real ? node.of.empty() : node.op == Op::value && is_value(node);
  }

  /// A text of the process, as far as a NUL, an array's end or a length; or the name of its thread.
  [[nodiscard]] bool is_text(const Node& node) const {
    if (node.type != Type::text) return false;
    if (node.op == Op::field) return node.of.empty() && node.bits == static_cast<std::uint64_t>(HitField::comm);
    if (node.op != Op::text_of || node.bits >= values_ || node.of.size() > 1) return false;
    return node.of.empty() || (is_integer(node.of[0].type) &&
                               (node.of[0].op == Op::integer ? node.of[0].of.empty()
                                                             : node.of[0].op == Op::value && is_value(node.of[0])));
  }

  [[nodiscard]] bool is_match(const Node& node) const {
    if (node.of.size() != 1 || !is_text(node.of[0]) || node.bits > static_cast<std::uint64_t>(TextMatch::glob))
      return false;
    return static_cast<TextMatch>(node.bits) != TextMatch::glob || expr::Glob::parse(node.text).has_value();
  }

  std::size_t values_;
};

void write_node(ByteWriter& out, const Node& node) {
  out.u8(static_cast<std::uint8_t>(node.op));
  out.u8(static_cast<std::uint8_t>(node.type));
  out.varint(node.bits);
  out.text(node.text);
  out.varint(node.of.size());
  for (const Node& each : node.of) write_node(out, each);
}

/// `left`: how many nodes there may still be.
bool read_node(ByteReader& in, Node& node, std::size_t& left, unsigned depth) {
  if (left == 0 || depth == kDeepest) return false;
  --left;
  node.op = static_cast<Op>(in.below(static_cast<std::size_t>(Op::row) + 1));
  node.type = static_cast<Type>(in.below(static_cast<std::size_t>(Type::stack) + 1));
  node.bits = in.varint();
  const std::string_view text = in.text();
  if (text.size() > kMostName) return false;
  node.text = text;
  node.of.resize(in.up_to(kMostOperands));
  return !in.failed() && std::ranges::all_of(node.of, [&](Node& each) { return read_node(in, each, left, depth + 1); });
}

}  // namespace

bool is_plain(const TypedExpression& filter) {
  return filter.of_lists().empty() && filter.kept_texts().empty() && filter.args().size() <= USDT_FILTER_VALUES &&
         (filter.root().op == Op::row ? Checker(filter.args().size()).is_row(filter.root())
                                      : Checker(filter.args().size()).is_number(filter.root()));
}

void write(ByteWriter& out, const TypedExpression& filter) {
  out.varint(filter.args().size());
  for (const std::uint8_t arg : filter.args()) out.u8(arg);
  write_node(out, filter.root());
}

bool read(ByteReader& in, TypedExpression& filter, std::uint32_t arguments) {
  std::vector<std::uint8_t> args(in.up_to(USDT_FILTER_VALUES));
  for (std::uint8_t& arg : args) {
    arg = in.u8();
    if (arg >= arguments) return false;
  }
  Node root;
  std::size_t left = kMostNodes;
  if (!read_node(in, root, left, 0)) return false;
  filter = ExpressionMaker::make(std::move(root), std::move(args));
  return is_plain(filter);
}

}  // namespace usdt::broker
