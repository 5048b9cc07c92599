// SPDX-License-Identifier: BSD-2-Clause
// Types of expressions over the arguments of one site.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "expr/enumerators.hpp"
#include "expr/glob.hpp"
#include "expr/near_names.hpp"
#include "expr/numbers.hpp"
#include "expr/row.hpp"
#include "expr/site_words.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

constexpr std::size_t kLongestLiteral = 255;

bool is_integer(Type type) { return type == Type::signed_integer || type == Type::unsigned_integer; }
bool is_real(Type type) { return type == Type::real32 || type == Type::real64; }
bool is_only_a_key(HitField field) { return field == HitField::ustack || field == HitField::kstack; }
bool is_literal(const Node& node) { return node.op == Op::integer || node.op == Op::real; }

tl::unexpected<Error> wrong(const ExpressionNode& at, std::string reason) {
  return fail(Error{ErrorKind::invalid_argument, std::move(reason), 0, at.column});
}

Node truth(bool value) { return {.op = Op::integer, .bits = value ? 1U : 0U}; }

class Checker {
 public:
  Checker(const Expression& expression, const std::vector<Arg>& args, const std::vector<std::size_t>& places)
      : expression_(expression), args_(args), places_(places) {}

  /// Positions of what was read, each once.
  std::vector<std::uint8_t> used;
  std::vector<TypedExpression::OfList> of_lists;

  Result<Node> check(const ExpressionNode& node) {
    switch (node.op) {
      case Op::integer:
        return Node{.op = Op::integer,
                    .type = node.is_unsigned ? Type::unsigned_integer : Type::signed_integer,
                    .bits = node.bits};
      case Op::real:
        return Node{.op = Op::real, .type = Type::real64, .bits = node.bits};
      case Op::text:
        return text_literal(node);
      case Op::value:
        return value(node);
      case Op::text_of:
        return text_of(node);
      case Op::field:
        return field(node);
      case Op::logical_and:
      case Op::logical_or:
        return both(node);
      case Op::logical_not:
      case Op::negate:
      case Op::complement:
        return unary(node);
      case Op::conditional:
        return conditional(node);
      case Op::in:
        return in(node);
      case Op::less:
      case Op::less_equal:
      case Op::greater:
      case Op::greater_equal:
      case Op::equal:
      case Op::not_equal:
      case Op::matches:
        return comparison(node);
      case Op::multiply:
      case Op::divide:
      case Op::remainder:
      case Op::add:
      case Op::subtract:
      case Op::shift_left:
      case Op::shift_right:
      case Op::bit_and:
      case Op::bit_xor:
      case Op::bit_or:
        return arithmetic(node);
      case Op::log2_bucket:
        return bucket(node);
      case Op::linear_bucket:
        return linear_bucket(node);
      case Op::hex:
      case Op::ntop:
        return wrong(node, "hex() and ntop() say how a key of a table is shown, a whole one");
      case Op::part:
        return wrong(node, "a part is of a row");
      case Op::row:
        return row(node);
    }
    return wrong(node, "no expression");
  }

  /// `node` where a truth value is wanted: any integer.
  Result<Node> condition(const ExpressionNode& node) {
    auto checked = check(node);
    if (checked && !is_integer(checked->type)) return wrong(node, "a text or a real is neither true nor false");
    return checked;
  }

 private:
  [[nodiscard]] std::string name_of(const ExpressionNode& node) const {
    return node.op == Op::value ? expression_.values[node.bits].text : "it";
  }

  Result<Node> text_literal(const ExpressionNode& node) {
    if (node.text.size() > kLongestLiteral)
      return wrong(node, fmt::format("a text of more than {} bytes", kLongestLiteral));
    return Node{.op = Op::text, .type = Type::text, .text = node.text};
  }

  [[nodiscard]] bool is_argument(const ExpressionNode& node) const {
    return node.op == Op::value && places_[node.bits] != TypedExpression::kNoArgument;
  }

  // --- values of enums ---
  /// An argument that has an enum's type, of which `node` is or makes a combination of bits; null: it is none.
  [[nodiscard]] const Arg* enum_in(const ExpressionNode& node) const {
    if (is_argument(node)) {
      const Arg& arg = args_[places_[node.bits]];
      const bool known = arg.declaration && !arg.declaration->enumerators.empty();
      return known && arg.type.size >= 1 && arg.type.size <= 8 ? &arg : nullptr;
    }
    if (node.op != Op::bit_and && node.op != Op::bit_or && node.op != Op::bit_xor && node.op != Op::complement)
      return nullptr;
    for (const ExpressionNode& each : node.of)
      if (const Arg* found = enum_in(each)) return found;
    return nullptr;
  }

  /// While it lives, names in two operands may be values of the enum that one of them is of; in combinations of bits
  /// also of the one that the whole is compared with.
  class NamesOfEnum {
   public:
    NamesOfEnum(Checker& checker, const ExpressionNode& a, const ExpressionNode& b, bool compared)
        : checker_(checker), before_(checker.enum_) {
      const Arg* found = checker.enum_in(a);
      if (found == nullptr) found = checker.enum_in(b);
      if (found != nullptr || compared) checker.enum_ = found;
    }
    NamesOfEnum(const NamesOfEnum&) = delete;
    NamesOfEnum& operator=(const NamesOfEnum&) = delete;
    ~NamesOfEnum() { checker_.enum_ = before_; }

   private:
    Checker& checker_;
    const Arg* before_;
  };

  static std::string_view name_of(const Arg& arg) { return arg.result && arg.name().empty() ? "retval" : arg.name(); }

  Result<Node> enumerator(const std::string& name, const ExpressionNode& node) {
    if (enum_ == nullptr)
      return wrong(node, fmt::format("{}: there is no such argument{}", name, expr::near_names(name, args_)));
    const std::vector<Enumerator>& all = enum_->declaration->enumerators;
    const auto found = std::ranges::find_if(
        all, [&](const Enumerator& each) { return expr::names_enumerator(name, enum_->declaration->type, each.name); });
    if (found == all.end())
      return wrong(node, fmt::format("{} is {}, which has no value '{}'{}", name_of(*enum_), enum_->declaration->type,
                                     name, expr::near_enumerators(name, all)));
    const unsigned spare = 64 - 8 * enum_->type.size;
    const std::uint64_t bits = found->bits << spare;
    Node made{.op = Op::integer};
    if (enum_->type.is_signed) {
      made.bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> spare);
    } else {
      made.bits = bits >> spare;
      if (enum_->type.size == 8) made.type = Type::unsigned_integer;
    }
    return made;
  }

  /// A name that no argument has: a value of an enum, where one is meant, or a word.
  Result<Node> unbound(const ExpressionNode& node) {
    const ValuePath& path = expression_.values[node.bits];
    return enum_ == nullptr && TypedExpression::is_word(path) ? word(path.text, node) : enumerator(path.text, node);
  }

  Result<Node> value(const ExpressionNode& node) {
    if (!is_argument(node)) return unbound(node);
    return argument(places_[node.bits], expression_.values[node.bits].text, node);
  }

  Result<Node> argument(std::size_t position, const std::string& name, const ExpressionNode& node) {
    const Arg& arg = args_[position];
    Node made{.op = Op::value};
    if (arg.is_list()) return wrong(node, fmt::format("{} is no number: ask for {}[0], or {}.size", name, name, name));
    if (arg.type.kind == TypeKind::structure || arg.type.kind == TypeKind::array)
      return wrong(node, fmt::format("{} is no number: name a member of it", name));
    if (arg.type.is_float()) {
      made.type = arg.type.size == 4 ? Type::real32 : Type::real64;
    } else if (arg.type.size == 8 && !arg.type.is_signed) {
      made.type = Type::unsigned_integer;
    }
    auto number = use(position, name, node);
    if (!number) return fail(number.error());
    made.bits = *number;
    return made;
  }

  /// The number of argument `position` among the values that are read, with what it takes to know an element of a list.
  Result<std::uint8_t> use(std::size_t position, const std::string& name, const ExpressionNode& node) {
    if (const auto known = std::ranges::find(used, position); known != used.end())
      return static_cast<std::uint8_t>(known - used.begin());
    const Arg& arg = args_[position];
    if (!arg.readable()) return wrong(node, fmt::format("{}: {}", name, arg.why_unreadable()));
    if (used.size() == TypedExpression::kMostValues)
      return wrong(node, fmt::format("more than {} different values{}", TypedExpression::kMostValues,
                                     of_lists.empty() ? "" : ", of which a list takes some for its length"));
    const auto number = static_cast<std::uint8_t>(used.size());
    used.push_back(static_cast<std::uint8_t>(position));
    if (!arg.counts && !arg.element) return number;
    TypedExpression::OfList of_list{.value = number, .counts = arg.counts, .element = arg.element};
    if (arg.element) {
      auto length = use(arg.element->length, fmt::format("the length of the list of {}", name), node);
      if (!length) return length;
      of_list.element->length = *length;
    }
    if (arg.counts && arg.counts->first) {
      auto first = use(*arg.counts->first, name, node);
      if (!first) return first;
      of_list.counts->first = *first;
    }
    of_lists.push_back(of_list);
    return number;
  }

  /// What a word stands for.
  [[nodiscard]] Result<Node> word(std::string_view name, const ExpressionNode& node) const {
    for (const HitField field : {HitField::provider, HitField::name, HitField::ip}) {
      if (name != to_string(field)) continue;
      const Type type = field == HitField::ip ? Type::unsigned_integer : Type::text;
      return Node{.op = Op::field, .type = type, .bits = static_cast<std::uint64_t>(field)};
    }
    if (expression_.began == 0) return wrong(node, "elapsed: it is not said since when (Expression::began)");
    Node nsecs{.op = Op::field, .type = Type::unsigned_integer, .bits = static_cast<std::uint64_t>(HitField::nsecs)};
    return pair(Op::subtract, std::move(nsecs),
                Node{.op = Op::integer, .type = Type::unsigned_integer, .bits = expression_.began},
                Type::unsigned_integer);
  }

  /// Whether argument `node` may be a pointer to a text.
  [[nodiscard]] bool points(const ExpressionNode& node) const {
    if (!is_argument(node)) return false;
    const usdt::Type& type = args_[places_[node.bits]].type;
    const bool unsigned_word = type.kind == TypeKind::integer && !type.is_signed && type.size >= 4;
    return type.kind == TypeKind::pointer || type.kind == TypeKind::text || unsigned_word;
  }

  /// Whether argument `node` is a pointer to characters by its type.
  [[nodiscard]] bool is_declared_text(const ExpressionNode& node) const {
    return is_argument(node) && args_[places_[node.bits]].type.kind == TypeKind::text;
  }

  /// How many characters an array of them has room for.
  static std::optional<std::uint64_t> room_of(const Arg& length) {
    const auto* constant = std::get_if<Constant>(&length.location);
    return length.hidden && constant != nullptr ? std::optional(constant->bits) : std::nullopt;
  }

  Result<Node> text_of(const ExpressionNode& node) {
    const ExpressionNode& pointer = node.of[0];
    auto checked = check(pointer);
    if (!checked) return checked;
    if (!points(pointer)) return wrong(pointer, fmt::format("{} is no pointer to a text", name_of(pointer)));
    if (node.of.size() > 1) {
      if (auto known = check_length(pointer, node.of[1]); !known) return fail(known.error());
    }
    return text_at(pointer, checked->bits);
  }

  /// "str(p, n)": the text has that length for its own, by who put the list of arguments together.
  [[nodiscard]] Result<void> check_length(const ExpressionNode& pointer, const ExpressionNode& length) const {
    if (!is_argument(length))
      return wrong(length, "the length of a text is an argument, or what one leads to: str(arg1, arg2)");
    const auto known = args_[places_[pointer.bits]].length;
    if (known && *known == places_[length.bits]) return {};
    return wrong(length, known ? fmt::format("{} has another length", name_of(pointer))
                               : fmt::format("{} was not read with that length", name_of(pointer)));
  }

  /// The text that a pointer, value `bits`, points to; below it its length, where that is known: a value, or of an
  /// array of characters a literal, how many there is room for before a NUL.
  Result<Node> text_at(const ExpressionNode& pointer, std::uint64_t bits) {
    Node made{.op = Op::text_of, .type = Type::text, .bits = bits};
    const auto length = args_[places_[pointer.bits]].length;
    if (!length) return made;
    if (const auto room = room_of(args_[*length])) {
      made.of.push_back(Node{.op = Op::integer, .bits = *room});
      return made;
    }
    auto of = argument(*length, fmt::format("the length of {}", name_of(pointer)), pointer);
    if (!of) return of;
    made.of.push_back(std::move(*of));
    return made;
  }

  /// A signed number, whatever it is a bucket of.
  Result<Node> bucket(const ExpressionNode& node) {
    auto of = number_or_real(node.of[0]);
    if (!of) return of;
    Node made{.op = Op::log2_bucket};
    made.of = {std::move(*of), Node{.op = Op::integer, .bits = node.of[1].bits}};
    return is_real(made.of[0].type) ? made : folded(node, std::move(made));
  }

  Result<Node> linear_bucket(const ExpressionNode& node) {
    auto of = number_or_real(node.of[0]);
    if (!of) return of;
    if (is_real(of->type)) return linear_bucket_of_real(node, std::move(*of));
    if (node.of[4].bits != 0)
      return wrong(node.of[0], fmt::format("{} is no real: its ranges are of whole numbers", name_of(node.of[0])));
    return check(expr::linear_bucket_of_integer(node));
  }

  /// With its bounds, of its own type.
  static Result<Node> linear_bucket_of_real(const ExpressionNode& node, Node of) {
    const auto number = [&](std::size_t n) { return static_cast<Int128>(static_cast<std::int64_t>(node.of[n].bits)); };
    const Int128 min = number(1), max = number(2), step = number(3);
    const auto digits = static_cast<unsigned>(node.of[4].bits);
    if ((max - min + step - 1) / step > static_cast<Int128>(kMostRealBuckets))
      return wrong(node.of[0], fmt::format("more than {} ranges of a real", kMostRealBuckets));
    const Type type = of.type;
    Node made{.op = Op::linear_bucket};
    made.of.push_back(std::move(of));
    const auto add = [&](const Int128& bound) {
      const double real = expr::decimal(static_cast<std::int64_t>(bound), digits);
      made.of.push_back({.op = Op::real, .type = type, .bits = bits_not_below(type, real)});
    };
    for (Int128 bound = min; bound < max; bound += step) add(bound);
    add(max);
    return made;
  }

  /// What no real of the type is between that and `real`.
  static std::uint64_t bits_not_below(Type type, double real) {
    if (type == Type::real64) return std::bit_cast<std::uint64_t>(real);
    auto narrow = static_cast<float>(real);
    if (static_cast<double>(narrow) < real) narrow = std::nextafterf(narrow, std::numeric_limits<float>::infinity());
    return std::bit_cast<std::uint32_t>(narrow);
  }

  /// Errors name the part, since their columns are those of its text.
  Result<Node> row(const ExpressionNode& node) {
    Node made{.op = Op::row, .bits = node.bits};
    for (std::size_t i = 0; i < node.of.size(); ++i) {
      const ExpressionNode& inner = node.of[i].of[0];
      auto checked = i == 0 ? condition(inner) : i <= node.bits ? key(inner) : number_or_real(inner);
      if (!checked) return fail(checked.error().within(node.of[i].text));
      Node part{.op = Op::part, .type = checked->type, .text = node.of[i].text};
      part.of = {std::move(*checked)};
      made.of.push_back(std::move(part));
    }
    return made;
  }

  /// A number, or a real of the hit.
  Result<Node> number_or_real(const ExpressionNode& node) {
    if (!is_argument(node)) return number(node);
    auto checked = check(node);
    return checked && is_real(checked->type) ? checked : number(node);
  }

  /// A pointer to characters is the text.
  Result<Node> key(const ExpressionNode& node) {
    if (node.op == Op::field && static_cast<HitField>(node.bits) == HitField::probe)
      return Node{.op = Op::field, .type = Type::signed_integer, .bits = node.bits};
    if (node.op == Op::field && is_only_a_key(static_cast<HitField>(node.bits)))
      return Node{.op = Op::field, .type = Type::stack, .bits = node.bits};
    if (node.op == Op::hex || node.op == Op::ntop) return shown(node);
    if (is_declared_text(node) && args_[places_[node.bits]].readable())
      return text_of({.op = Op::text_of, .of = {node}, .column = node.column});
    auto checked = check(node);
    if (checked && (checked->op == Op::text || checked->op == Op::real))
      return wrong(node, "a literal is the same for every hit");
    return checked;
  }

  /// A number that is shown in its own way.
  Result<Node> shown(const ExpressionNode& node) {
    auto of = number(node.of[0]);
    if (!of) return of;
    Node made{.op = node.op, .type = Type::unsigned_integer};
    made.of = {std::move(*of)};
    return made;
  }

  static Result<Node> field(const ExpressionNode& node) {
    const auto field = static_cast<HitField>(node.bits);
    if (is_only_a_key(field))
      return wrong(node, fmt::format("'{}' can be a key of a table, and nothing else", to_string(field)));
    Node made{.op = Op::field, .bits = static_cast<std::uint64_t>(field)};
    if (field == HitField::comm || field == HitField::probe) made.type = Type::text;
    if (field == HitField::cgroup || field == HitField::nsecs || field == HitField::duration)
      made.type = Type::unsigned_integer;
    return made;
  }

  Result<Node> both(const ExpressionNode& node) {
    auto left = condition(node.of[0]);
    if (!left) return left;
    auto right = condition(node.of[1]);
    if (!right) return right;
    const bool decides = node.op == Op::logical_or;
    if (left->op == Op::integer && (left->bits != 0) == decides) return truth(decides);
    if (left->op == Op::integer && right->op == Op::integer) return truth(right->bits != 0);
    Node made{.op = node.op};
    made.of = {std::move(*left), std::move(*right)};
    return made;
  }

  Result<Node> unary(const ExpressionNode& node) {
    auto operand = node.op == Op::logical_not ? condition(node.of[0]) : number(node.of[0]);
    if (!operand) {
      if (node.op != Op::negate || node.of[0].op != Op::real) return operand;
      return Node{.op = Op::real, .type = Type::real64, .bits = node.of[0].bits ^ 1ULL << 63};
    }
    Node made{.op = node.op};
    if (node.op != Op::logical_not) made.type = operand->type;
    made.of = {std::move(*operand)};
    return folded(node, std::move(made));
  }

  Result<Node> number(const ExpressionNode& node) {
    auto checked = check(node);
    if (!checked) return checked;
    if (is_real(checked->type))
      return wrong(node, fmt::format("{} is a real, which can only be compared", name_of(node)));
    if (checked->type == Type::text) return wrong(node, "a text can only be compared");
    return checked;
  }

  Result<Node> arithmetic(const ExpressionNode& node) {
    const bool bits = node.op == Op::bit_and || node.op == Op::bit_or || node.op == Op::bit_xor;
    if (!bits) return computed(node);
    const NamesOfEnum names(*this, node.of[0], node.of[1], false);
    return computed(node);
  }

  Result<Node> computed(const ExpressionNode& node) {
    auto left = number(node.of[0]);
    if (!left) return left;
    auto right = number(node.of[1]);
    if (!right) return right;
    const bool shifts = node.op == Op::shift_left || node.op == Op::shift_right;
    const bool is_signed = left->type == Type::signed_integer && (shifts || right->type == Type::signed_integer);
    Node made{.op = node.op, .type = is_signed ? Type::signed_integer : Type::unsigned_integer};
    made.of = {std::move(*left), std::move(*right)};
    return folded(node, std::move(made));
  }

  /// Replaces an operation on constants by its value.
  static Result<Node> folded(const ExpressionNode& node, Node made) {
    if (!std::ranges::all_of(made.of, [](const Node& each) { return each.op == Op::integer; })) return made;
    const auto number_of = [](const Node& each) { return expr::Number{each.bits, each.type == Type::signed_integer}; };
    const auto result = expr::apply(made.op, number_of(made.of[0]), number_of(made.of.back()));
    if (!result) return wrong(node, "a division by 0");
    return Node{.op = Op::integer,
                .type = result->is_signed ? Type::signed_integer : Type::unsigned_integer,
                .bits = result->bits};
  }

  Result<Node> conditional(const ExpressionNode& node) {
    auto asked = condition(node.of[0]);
    if (!asked) return asked;
    auto yes = number(node.of[1]);
    if (!yes) return yes;
    auto no = number(node.of[2]);
    if (!no) return no;
    const bool is_signed = yes->type == Type::signed_integer && no->type == Type::signed_integer;
    const Type type = is_signed ? Type::signed_integer : Type::unsigned_integer;
    if (asked->op == Op::integer) return with_type(type, std::move(asked->bits != 0 ? *yes : *no));
    Node made{.op = Op::conditional, .type = type};
    made.of = {std::move(*asked), std::move(*yes), std::move(*no)};
    return made;
  }

  /// The same bits.
  static Node with_type(Type type, Node node) {
    if (node.op == Op::integer) node.type = type;
    if (node.type == type) return node;
    return pair(Op::bit_or, std::move(node), Node{.op = Op::integer, .type = type}, type);
  }

  /// Makes of "x in {a, b}" the chain "x == a || x == b".
  Result<Node> in(const ExpressionNode& node) {
    Result<Node> chain = truth(false);
    for (std::size_t i = 1; i < node.of.size(); ++i) {
      auto equal = compared(Op::equal, node.of[0], node.of[i], node);
      if (!equal) return equal;
      if (i == 1) {
        chain = std::move(equal);
        continue;
      }
      Node made{.op = Op::logical_or};
      made.of = {std::move(*chain), std::move(*equal)};
      chain = std::move(made);
    }
    return chain;
  }

  Result<Node> comparison(const ExpressionNode& node) { return compared(node.op, node.of[0], node.of[1], node); }

  Result<Node> compared(Op op, const ExpressionNode& a, const ExpressionNode& b, const ExpressionNode& at) {
    const NamesOfEnum names(*this, a, b, true);
    auto left = check(a);
    if (!left) return left;
    auto right = check(b);
    if (!right) return right;
    if (left->op == Op::text && right->op != Op::text) {
      if (op != Op::equal && op != Op::not_equal) return wrong(a, "the literal comes second");
      return text_and_literal(op, b, std::move(*right), a, *left);
    }
    if (right->op == Op::text || op == Op::matches) return text_and_literal(op, a, std::move(*left), b, *right);
    const bool texts = (op == Op::equal || op == Op::not_equal) && is_declared_text(a) && is_declared_text(b);
    if (right->type == Type::text || left->type == Type::text || texts)
      return two_texts(op, a, std::move(*left), b, std::move(*right));
    if (is_real(left->type) || is_real(right->type)) return reals(op, std::move(*left), std::move(*right), at);
    Node made{.op = op};
    made.of = {std::move(*left), std::move(*right)};
    return folded(at, std::move(made));
  }

  /// A pointer is taken for the text it points to where it is compared with one.
  Result<Node> text_compared(const ExpressionNode& at, Node subject) {
    if (subject.op == Op::value && points(at)) return text_at(at, subject.bits);
    if (subject.op == Op::value) return wrong(at, fmt::format("{} is no text", name_of(at)));
    if (subject.type != Type::text) return wrong(at, "a text is compared with a number");
    return subject;
  }

  static Result<void> check_order(Op op, const ExpressionNode& at) {
    if (op == Op::equal || op == Op::not_equal || op == Op::matches) return {};
    return wrong(at, "texts are equal or not: they have no order here");
  }

  static Node unless(Op op, Node made) {
    if (op != Op::not_equal) return made;
    Node negated{.op = Op::logical_not};
    negated.of = {std::move(made)};
    return negated;
  }

  Result<Node> text_and_literal(Op op, const ExpressionNode& at, Node left, const ExpressionNode& with,
                                const Node& literal) {
    if (literal.op != Op::text)
      return wrong(with, literal.type == Type::text ? "a text matches a literal, \"in quotes\""
                                                    : "a text is compared with a number");
    auto subject = text_compared(at, std::move(left));
    if (!subject) return subject;
    if (expr::ends_at_nul(*subject) && literal.text.find('\0') != literal.text.npos)
      return wrong(with, "a text with a NUL, which ends every text whose length is not known");
    if (auto ordered = check_order(op, at); !ordered) return fail(ordered.error());
    Node made{.op = Op::matches, .text = literal.text};
    if (op == Op::matches) {
      if (auto matched = set_match(made, with); !matched) return fail(matched.error());
    }
    made.of = {std::move(*subject)};
    return unless(op, std::move(made));
  }

  /// What a literal of "=~" stands for.
  static Result<void> set_match(Node& made, const ExpressionNode& with) {
    expr::Glob::Beginning begins = expr::Glob::beginning(made.text);
    made.bits = static_cast<std::uint64_t>(begins.match);
    if (begins.match != TextMatch::glob)
      made.text = std::move(begins.text);
    else if (!expr::Glob::parse(made.text))
      return wrong(with, fmt::format("a pattern of more than {} characters", expr::Glob::kMost));
    return {};
  }

  Result<Node> two_texts(Op op, const ExpressionNode& a, Node left, const ExpressionNode& b, Node right) {
    auto first = text_compared(a, std::move(left));
    if (!first) return first;
    auto second = text_compared(b, std::move(right));
    if (!second) return second;
    if (auto ordered = check_order(op, a); !ordered) return fail(ordered.error());
    return unless(op, pair(Op::equal, std::move(*first), std::move(*second)));
  }

  Result<Node> reals(Op op, Node left, Node right, const ExpressionNode& at) {
    if (is_literal(left) && is_literal(right)) {
      to_real64(left);
      to_real64(right);
      const double a = std::bit_cast<double>(left.bits);
      const double b = std::bit_cast<double>(right.bits);
      return truth(expr::holds(op, a < b ? -1 : a > b ? 1 : 0));
    }
    const Type wanted = is_literal(left) ? right.type : left.type;
    Node& literal = is_literal(left) ? left : right;
    if (!is_real(wanted) || (!is_literal(literal) && literal.type != wanted))
      return wrong(at, "reals are compared with literals, and with reals of their own size");
    if (is_literal(literal)) {
      to_real64(literal);
      if (wanted == Type::real32) return real32(op, std::move(left), std::move(right));
    }
    return pair(op, std::move(left), std::move(right));
  }

  static Node pair(Op op, Node left, Node right, Type type = Type::signed_integer) {
    Node made{.op = op, .type = type};
    made.of = {std::move(left), std::move(right)};
    return made;
  }

  /// (An integer above 2^53 becomes the nearest double.)
  static void to_real64(Node& literal) {
    if (literal.op == Op::real) return;
    const double real = literal.type == Type::signed_integer
                            ? static_cast<double>(static_cast<std::int64_t>(literal.bits))
                            : static_cast<double>(literal.bits);
    literal = {.op = Op::real, .type = Type::real64, .bits = std::bit_cast<std::uint64_t>(real)};
  }

  /// A float and a literal that need not be one: floats next to it take its place.
  static Result<Node> real32(Op op, Node left, Node right) {
    const bool literal_left = is_literal(left);
    if (literal_left) {
      std::swap(left, right);
      op = mirrored(op);
    }
    const double wanted = std::bit_cast<double>(right.bits);
    const auto nearest = static_cast<float>(wanted);
    const auto with = [&](Op how, float bound) {
      Node literal{.op = Op::real, .type = Type::real32, .bits = std::bit_cast<std::uint32_t>(bound)};
      return pair(how, left, std::move(literal));
    };
    if (static_cast<double>(nearest) == wanted) return with(op, nearest);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float below = static_cast<double>(nearest) < wanted ? nearest : std::nextafterf(nearest, -kInfinity);
    const float above = std::nextafterf(below, kInfinity);
    if (op == Op::less || op == Op::less_equal) return with(Op::less_equal, below);
    if (op == Op::greater || op == Op::greater_equal) return with(Op::greater_equal, above);
    // No float equals it; what cannot be read still leaves the question without an answer.
    Node never{.op = Op::logical_and};
    never.of = {with(Op::less_equal, below), with(Op::greater_equal, above)};
    if (op == Op::equal) return never;
    Node always{.op = Op::logical_not};
    always.of = {std::move(never)};
    return always;
  }

  static Op mirrored(Op op) {
    if (op == Op::less) return Op::greater;
    if (op == Op::greater) return Op::less;
    if (op == Op::less_equal) return Op::greater_equal;
    if (op == Op::greater_equal) return Op::less_equal;
    return op;
  }

  const Arg* enum_ = nullptr;  ///< whose values names may mean
  const Expression& expression_;
  const std::vector<Arg>& args_;
  const std::vector<std::size_t>& places_;
};

bool asks_for(const Node& node, HitField field) {
  if (node.op == Op::field && node.bits == static_cast<std::uint64_t>(field)) return true;
  return std::ranges::any_of(node.of, [field](const Node& each) { return asks_for(each, field); });
}

}  // namespace

bool TypedExpression::asks(HitField field) const { return asks_for(root_, field); }

TypedExpression TypedExpression::at_site(const SiteWords& site) const {
  TypedExpression made = *this;
  expr::SiteFolder(site).fold(made.root_);
  return made;
}

bool TypedExpression::depends_on_site() const {
  TypedExpression other = *this;
  return expr::SiteFolder({}).fold(other.root_);
}

Result<TypedExpression> TypedExpression::check(const Expression& expression, const std::vector<Arg>& args,
                                               const std::vector<std::size_t>& places) {
  Checker checker(expression, args, places);
  auto root = expression.root.op == Op::row ? checker.check(expression.root) : checker.condition(expression.root);
  if (!root) return fail(root.error());
  TypedExpression made;
  made.root_ = std::move(*root);
  made.args_ = std::move(checker.used);
  made.of_lists_ = std::move(checker.of_lists);
  return made;
}

}  // namespace v1
}  // namespace usdt
