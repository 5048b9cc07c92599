// SPDX-License-Identifier: BSD-2-Clause
// Answers over what was recorded of a hit.
#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <string_view>

#include "expr/context_words.hpp"
#include "expr/glob.hpp"
#include "expr/numbers.hpp"
#include "expr/row.hpp"
#include "expr/site_words.hpp"
#include "usdt/bits.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Node = TypedExpression::Node;
using Op = Operator;

class Evaluator {
 public:
  Evaluator(const TypedExpression& expression, const HitFacts& facts) : expression_(expression), facts_(facts) {}

  [[nodiscard]] std::optional<std::uint64_t> value(const Node& node) const {
    switch (node.op) {
      case Op::integer:
      case Op::real:
        return node.bits;
      case Op::value:
        return argument(node.bits);
      case Op::field:
        return facts_.field(static_cast<HitField>(node.bits));
      case Op::logical_and:
      case Op::logical_or:
        return either(node);
      case Op::conditional: {
        const auto condition = value(node.of[0]);
        return condition ? value(node.of[*condition != 0 ? 1 : 2]) : std::nullopt;
      }
      case Op::matches:
        return text_matches(node);
      case Op::log2_bucket:
        return expr::is_real(node.of[0].type) ? log2_bucket_of_real(node) : computed(node);
      case Op::linear_bucket:
        return linear_bucket(node);
      case Op::part:
      case Op::fingerprint:
      case Op::hex:
      case Op::ntop:
        return value(node.of[0]);
      case Op::text:
      case Op::text_of:
      case Op::attribute:
      case Op::in:
      case Op::row:
        return std::nullopt;  // of their own they are no number: check() makes comparisons of texts
      case Op::negate:
      case Op::complement:
      case Op::logical_not:
      case Op::multiply:
      case Op::divide:
      case Op::remainder:
      case Op::add:
      case Op::subtract:
      case Op::shift_left:
      case Op::shift_right:
      case Op::less:
      case Op::less_equal:
      case Op::greater:
      case Op::greater_equal:
      case Op::equal:
      case Op::not_equal:
      case Op::bit_and:
      case Op::bit_xor:
      case Op::bit_or:
        return computed(node);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<std::uint64_t> argument(std::uint64_t number) const {
    const auto bits = facts_.value(expression_.args()[number]);
    const auto& lists = expression_.of_lists();
    const auto found = std::ranges::find(lists, number, &TypedExpression::OfList::value);
    if (!bits || found == lists.end() || !found->half) return bits;
    return std::bit_cast<std::uint32_t>(half_from_bits(static_cast<std::uint16_t>(*bits)));
  }

  [[nodiscard]] std::optional<std::uint64_t> either(const Node& node) const {
    const bool decides = node.op == Op::logical_or;
    const auto left = value(node.of[0]);
    if (!left) return std::nullopt;
    if ((*left != 0) == decides) return decides ? 1 : 0;
    const auto right = value(node.of[1]);
    if (!right) return std::nullopt;
    return *right != 0 ? 1 : 0;
  }

  [[nodiscard]] std::optional<std::uint64_t> computed(const Node& node) const {
    if (node.of[0].type == ExpressionType::text) return texts_equal(node);
    const auto left = value(node.of[0]);
    if (!left) return std::nullopt;
    const expr::Number a{*left, node.of[0].type == ExpressionType::signed_integer};
    expr::Number b;
    if (node.of.size() > 1) {
      const auto right = value(node.of[1]);
      if (!right) return std::nullopt;
      b = {*right, node.of[1].type == ExpressionType::signed_integer};
    }
    const ExpressionType type = node.of[0].type;
    if (type == ExpressionType::real32 || type == ExpressionType::real64)
      return of_reals(node.op, expr::real_of(type, a.bits), expr::real_of(type, b.bits)) ? 1 : 0;
    const auto result = expr::apply(node.op, a, b);
    return result ? std::optional(result->bits) : std::nullopt;
  }

  [[nodiscard]] std::optional<std::uint64_t> log2_bucket_of_real(const Node& node) const {
    const auto bits = value(node.of[0]);
    if (!bits) return std::nullopt;
    const auto sub_bits = static_cast<unsigned>(node.of[1].bits);
    const auto bucket = expr::log2_bucket_of_real(node.of[0].type, *bits, sub_bits);
    return bucket ? std::optional(static_cast<std::uint64_t>(*bucket)) : std::nullopt;
  }

  /// Finds the bucket of a real; check() has put those of integers into other operators.
  [[nodiscard]] std::optional<std::uint64_t> linear_bucket(const Node& node) const {
    const ExpressionType type = node.of[0].type;
    const auto bits = value(node.of[0]);
    if (!bits) return std::nullopt;
    const double real = expr::real_of(type, *bits);
    if (real != real) return std::nullopt;
    const auto passed = std::ranges::count_if(
        node.of.begin() + 1, node.of.end(), [&](const Node& bound) { return real >= expr::real_of(type, bound.bits); });
    return static_cast<std::uint64_t>(expr::linear_bucket_number(static_cast<std::size_t>(passed), node.of.size() - 1));
  }

  static bool of_reals(Op op, double a, double b) {
    if (a != a || b != b) return op == Op::not_equal;
    return expr::holds(op, a < b ? -1 : a > b ? 1 : 0);
  }

  struct Text {
    std::string bytes;
    bool cut = false;  ///< it goes on
  };
  [[nodiscard]] std::optional<Text> text_of(const Node& subject) const {
    if (subject.op == Op::attribute) return whole(facts_.trace_attribute(subject.text));
    if (subject.op == Op::field) {
      if (expr::is_site_word(subject)) return whole(facts_.site_text(static_cast<HitField>(subject.bits)));
      if (expr::is_context_word(static_cast<HitField>(subject.bits)))
        return whole(facts_.context_bytes(static_cast<HitField>(subject.bits)));
      return whole(facts_.comm());
    }
    const std::size_t position = expression_.args()[subject.bits];
    const auto bytes = facts_.text(position);
    if (!bytes) return std::nullopt;
    const std::size_t nul = expr::ends_at_nul(subject) ? bytes->find('\0') : bytes->npos;
    return Text{std::string(bytes->substr(0, nul)), nul == bytes->npos && facts_.is_cut(position)};
  }

  template <class Bytes>
  static std::optional<Text> whole(const std::optional<Bytes>& bytes) {
    return bytes ? std::optional(Text{std::string(*bytes)}) : std::nullopt;
  }

  /// As the kernel compares them.
  [[nodiscard]] std::optional<std::uint64_t> text_matches(const Node& node) const {
    const auto text = text_of(node.of[0]);
    if (!text) return std::nullopt;
    const auto how = static_cast<TextMatch>(node.bits);
    const auto answer = how == TextMatch::glob ? expr::Glob::parse(node.text)->matches(text->bytes, text->cut)
                                               : begins_with(*text, node.text, how == TextMatch::whole);
    return answer ? std::optional<std::uint64_t>(*answer ? 1 : 0) : std::nullopt;
  }

  static std::optional<bool> begins_with(const Text& text, std::string_view literal, bool whole) {
    if (!text.bytes.starts_with(literal)) {
      if (text.cut && literal.starts_with(text.bytes)) return std::nullopt;
      return false;
    }
    return !whole || (text.bytes.size() == literal.size() && !text.cut);
  }

  /// The same of two texts, which are looked at as far as a program looks.
  [[nodiscard]] std::optional<std::uint64_t> texts_equal(const Node& node) const {
    auto a = text_of(node.of[0]);
    if (!a) return std::nullopt;
    auto b = text_of(node.of[1]);
    if (!b) return std::nullopt;
    for (Text* text : {&*a, &*b}) {
      text->cut |= text->bytes.size() >= expr::kLongestLook;
      text->bytes.resize(std::min(text->bytes.size(), expr::kLongestLook));
    }
    const std::size_t both = std::min(a->bytes.size(), b->bytes.size());
    if (!std::equal(a->bytes.begin(), a->bytes.begin() + static_cast<std::ptrdiff_t>(both), b->bytes.begin())) return 0;
    const auto ends = [&](const Text& text) { return text.bytes.size() == both && !text.cut; };
    if (ends(*a) != ends(*b)) return 0;
    return ends(*a) ? std::optional<std::uint64_t>(1) : std::nullopt;
  }

  const TypedExpression& expression_;
  const HitFacts& facts_;
};

}  // namespace

std::optional<std::uint64_t> evaluate(const TypedExpression& expression, const HitFacts& facts) {
  return evaluate(expression, expression.root(), facts);
}

std::optional<std::uint64_t> evaluate(const TypedExpression& expression, const TypedExpression::Node& node,
                                      const HitFacts& facts) {
  return Evaluator(expression, facts).value(node);
}

}  // namespace v1
}  // namespace usdt
