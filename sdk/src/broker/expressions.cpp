// SPDX-License-Identifier: BSD-2-Clause
#include "broker/expressions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "broker/limits.hpp"
#include "expr/glob.hpp"
#include "expr/numbers.hpp"
#include "expr/row.hpp"
#include "expr/site_words.hpp"
#include "usdt/bpf/filter.h"
#include "usdt/bpf/spec.h"
#include "usdt/table.hpp"

namespace usdt::broker {
namespace {

using Node = TypedExpression::Node;
using Op = Operator;
using Type = ExpressionType;
using expr::is_integer;

// parse_expression() takes 1,024 operands and operators. Typing makes several of some: "x in {1, 2, ...}" becomes a
// chain of comparisons, one within the other.
constexpr std::size_t kMostNodes = 8192;
constexpr unsigned kDeepest = 1152;
constexpr std::size_t kMostOperands = 32;
constexpr std::size_t kMostRelations = std::size_t{2} * USDT_FILTER_VALUES;  ///< TypedExpression::of_lists()
constexpr std::size_t kMostRanges = 64;                                      ///< of AlternativeValues
constexpr std::uint64_t kMostSubBits = 4;                                    ///< as log2_buckets() has them

/// Goes through a tree as the compiler does.
class Checker {
 public:
  explicit Checker(const TypedExpression& expression) : expression_(expression), values_(expression.args().size()) {}

  /// Whether values are related to others as HitReader::leaf() follows it.
  [[nodiscard]] bool are_values() const {
    const auto is_one = [&](const TypedExpression::KeptText& text) {
      const auto of_value = [&](const auto& each) { return each.value == text.value; };
      return text.value < values_ && text.slot < USDT_KEPT_TEXT &&
             std::ranges::count_if(expression_.kept_texts(), of_value) == 1;
    };
    const auto is_related = [&](const TypedExpression::OfList& each) {
      return is_relation(each) && ends_somewhere(each.value, values_);
    };
    return values_ <= USDT_FILTER_VALUES && std::ranges::all_of(expression_.kept_texts(), is_one) &&
           std::ranges::all_of(expression_.of_lists(), is_related);
  }

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

  /// A row of a table: which hits count, the keys, and the value, if there is one.
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
    if (node.type == Type::stack)
      return node.op == Op::field && node.of.empty() && node.bits == static_cast<std::uint64_t>(HitField::ustack);
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

  /// A value that may be computed with: a kept text is the address of a map's entry.
  [[nodiscard]] bool is_number_of(std::uint64_t value) const { return value < values_ && !is_kept(value); }
  [[nodiscard]] bool is_kept(std::uint64_t value) const {
    const auto& kept = expression_.kept_texts();
    return std::ranges::find(kept, value, &TypedExpression::KeptText::value) != kept.end();
  }
  [[nodiscard]] bool is_value(const Node& node) const { return node.of.empty() && is_number_of(node.bits); }

  [[nodiscard]] bool is_relation(const TypedExpression::OfList& each) const {
    if (each.value >= values_ || (is_kept(each.value) && (each.counts || each.half))) return false;
    if (each.counts && (each.counts->size == 0 || each.counts->size > INT32_MAX)) return false;
    if (each.counts && each.counts->first && !is_number_of(*each.counts->first)) return false;
    if (each.element && !is_number_of(each.element->length)) return false;
    return !each.alternative || is_number_of(each.alternative->discriminant);
  }

  /// Whether what decides if a value is there ends after so many steps from one to the next.
  [[nodiscard]] bool ends_somewhere(std::uint64_t value, std::size_t steps) const {
    const auto& lists = expression_.of_lists();
    const auto list = std::ranges::find(lists, value, &TypedExpression::OfList::value);
    if (list == lists.end()) return true;
    if (steps == 0) return false;
    return (!list->element || ends_somewhere(list->element->length, steps - 1)) &&
           (!list->alternative || ends_somewhere(list->alternative->discriminant, steps - 1));
  }

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

  const TypedExpression& expression_;
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

void write_optional(ByteWriter& out, const std::optional<std::uint8_t>& value) { out.varint(value ? *value + 1U : 0); }

std::optional<std::uint8_t> read_optional(ByteReader& in) {
  const std::uint64_t value = in.up_to(UINT8_MAX + 1U);
  return value == 0 ? std::nullopt : std::optional(static_cast<std::uint8_t>(value - 1));
}

void write_relation(ByteWriter& out, const TypedExpression::OfList& each) {
  out.u8(each.value);
  out.u8(static_cast<std::uint8_t>((each.counts ? 1 : 0) | (each.element ? 2 : 0) | (each.alternative ? 4 : 0) |
                                   (each.half ? 8 : 0)));
  if (each.counts) {
    out.varint(each.counts->most);
    out.varint(each.counts->size);
    write_optional(out, each.counts->first);
  }
  if (each.element) {
    out.u8(each.element->length);
    out.varint(each.element->index);
  }
  if (!each.alternative) return;
  out.u8(each.alternative->discriminant);
  out.u8(each.alternative->values.others ? 1 : 0);
  out.varint(each.alternative->values.ranges.size());
  for (const auto& [first, last] : each.alternative->values.ranges) {
    out.varint(first);
    out.varint(last);
  }
}

TypedExpression::OfList read_relation(ByteReader& in) {
  TypedExpression::OfList each;
  each.value = in.u8();
  const auto has = static_cast<unsigned>(in.up_to(15));
  each.half = (has & 8) != 0;
  if ((has & 1) != 0) {
    ElementCount& counts = each.counts.emplace();
    counts.most = in.varint();
    counts.size = in.u32();
    counts.first = read_optional(in);
  }
  if ((has & 2) != 0) {
    ElementOf& element = each.element.emplace();
    element.length = in.u8();
    element.index = in.varint();
  }
  if ((has & 4) == 0) return each;
  AlternativeOf& alternative = each.alternative.emplace();
  alternative.discriminant = in.u8();
  alternative.values.others = in.up_to(1) == 1;
  alternative.values.ranges.resize(in.up_to(kMostRanges));
  for (auto& [first, last] : alternative.values.ranges) {
    first = in.varint();
    last = in.varint();
  }
  return each;
}

/// What of a tree is counted.
struct TreeSize {
  std::size_t nodes = 0;
  unsigned depth = 0;
  std::size_t operands = 0, text = 0;  ///< of any node
};

void measure(const Node& node, unsigned depth, TreeSize& size) {
  ++size.nodes;
  size.depth = std::max(size.depth, depth + 1);
  size.operands = std::max(size.operands, node.of.size());
  size.text = std::max(size.text, node.text.size());
  for (const Node& each : node.of) measure(each, depth + 1, size);
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

bool is_sound(const TypedExpression& filter) {
  const Checker checker(filter);
  return checker.are_values() &&
         (filter.root().op == Op::row ? checker.is_row(filter.root()) : checker.is_number(filter.root()));
}

std::string why_too_large(const TypedExpression& filter) {
  TreeSize size;
  measure(filter.root(), 0, size);
  if (size.nodes > kMostNodes)
    return fmt::format("a question of {} operands and operators, as it is asked: at most {}", size.nodes, kMostNodes);
  if (size.depth > kDeepest)
    return fmt::format("a question of {} operators within each other, as it is asked: at most {}", size.depth,
                       kDeepest);
  if (size.operands > kMostOperands)
    return fmt::format("a row of {} keys, or buckets of {} bounds: at most {}", size.operands, size.operands,
                       kMostOperands);
  if (size.text > kMostName) return fmt::format("a text of {} bytes in a question: at most {}", size.text, kMostName);
  for (const TypedExpression::OfList& each : filter.of_lists())
    if (each.alternative && each.alternative->values.ranges.size() > kMostRanges)
      return fmt::format("a value that is there for {} ranges of another one: at most {}",
                         each.alternative->values.ranges.size(), kMostRanges);
  return {};
}

void write(ByteWriter& out, const TypedExpression& filter) {
  out.varint(filter.args().size());
  for (const std::uint8_t arg : filter.args()) out.u8(arg);
  out.varint(filter.of_lists().size());
  for (const TypedExpression::OfList& each : filter.of_lists()) write_relation(out, each);
  out.varint(filter.kept_texts().size());
  for (const TypedExpression::KeptText& text : filter.kept_texts()) {
    out.u8(text.value);
    out.u8(text.slot);
    out.u8(text.whole ? 1 : 0);
  }
  write_node(out, filter.root());
}

bool read(ByteReader& in, TypedExpression& filter, std::uint32_t arguments) {
  std::vector<std::uint8_t> args(in.up_to(USDT_FILTER_VALUES));
  for (std::uint8_t& arg : args) {
    arg = in.u8();
    if (arg >= arguments) return false;
  }
  std::vector<TypedExpression::OfList> relations(in.up_to(kMostRelations));
  for (TypedExpression::OfList& each : relations) each = read_relation(in);
  std::vector<TypedExpression::KeptText> texts(in.up_to(USDT_FILTER_VALUES));
  for (TypedExpression::KeptText& text : texts) {
    text.value = in.u8();
    text.slot = in.u8();
    text.whole = in.up_to(1) == 1;
  }
  Node root;
  std::size_t left = kMostNodes;
  if (in.failed() || !read_node(in, root, left, 0)) return false;
  filter = ExpressionMaker::make(std::move(root), std::move(args), std::move(relations), std::move(texts));
  return is_sound(filter);
}

}  // namespace usdt::broker
