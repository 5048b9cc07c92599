// SPDX-License-Identifier: BSD-2-Clause
// Questions about hits, in the language of docs/expressions.md: parse_expression() reads one, PlanOptions::where and
// TableQuestion (plan.hpp, table.hpp) have the kernel answer it, EventFilter (event_filter.hpp) asks it of events.
//     auto question = usdt::parse_expression("arg1 > 4KiB && comm != \"cat\"");
//     usdt::PlanOptions options{.where = std::make_shared<const usdt::Expression>(*question)};
// TypedExpression and evaluate() are for hits in a form of your own: call TypedExpression::check() once for each
// site, then evaluate() for each hit.
// Threads: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/expression_type.hpp"
#include "usdt/hit_field.hpp"
#include "usdt/result.hpp"
#include "usdt/stack.hpp"
#include "usdt/value_path.hpp"

namespace usdt::broker {
struct ExpressionMaker;
}  // namespace usdt::broker

namespace usdt {
inline namespace v1 {

/// Tells what a node of an expression computes from its operands, the nodes in ExpressionNode::of.
enum class Operator : std::uint8_t {
  integer,        ///< the number `bits`; with `is_unsigned` it is above INT64_MAX
  real,           ///< the double whose bits are `bits`
  text,           ///< the text `text`
  value,          ///< the value at the path that is number `bits` of Expression::values
  text_of,        ///< "str(x)", "str(x, n)": the text that the first operand points to; with a second one, its bytes
  field,          ///< the HitField of number `bits`
  negate,         ///< "-"
  complement,     ///< "~"
  logical_not,    ///< "!"
  multiply,       ///< "*"
  divide,         ///< "/": rounds towards 0; a division by 0 has no answer
  remainder,      ///< "%": has the sign of the first operand; by 0 it has no answer
  add,            ///< "+"
  subtract,       ///< "-"
  shift_left,     ///< "<<"
  shift_right,    ///< ">>"
  less,           ///< "<"
  less_equal,     ///< "<="
  greater,        ///< ">"
  greater_equal,  ///< ">="
  equal,          ///< "=="
  not_equal,      ///< "!="
  matches,        ///< "=~": the second operand, a literal, matches the first by the rules of glob_match() (pattern.hpp)
  bit_and,        ///< "&"
  bit_xor,        ///< "^"
  bit_or,         ///< "|"
  in,             ///< "x in {1, 2}": the first operand equals one of the others
  logical_and,    ///< "&&"
  logical_or,     ///< "||"
  conditional,    ///< "?:"
  hex,            ///< "hex(x)": a key of a table that is shown in hexadecimal
  ntop,           ///< "ntop(x)": a key that is shown as an IPv4 address; its bytes are in the order of struct in_addr
  fingerprint,    ///< a key of a table that tells values apart and is not shown: of a text as far as 511 bytes, however
                  ///< long keys may be; any other value is its own
  log2_bucket,    ///< which of the log2_buckets() (table.hpp) the first operand is in; the second operand: `sub_bits`
  linear_bucket,  ///< which of the linear_buckets() the first operand is in; the others: min, max, step and digits. In
                  ///< a TypedExpression about a real the others are the bounds of the buckets
  part,           ///< its operand, which was written as `text`
  row,            ///< a row of a table. Operands, each a `part`: which hits count, then `bits` keys, then the value, if
                  ///< there is one
  attribute,      ///< "trace_attribute("KEY")": the attribute of the thread's context that the operand, a text, names;
                  ///< empty: it has none. In a TypedExpression `text` is the key. Events can be asked, and hits in the
                  ///< kernel cannot: programs there do not know what processes call their attributes
};

/// Describes one node of an expression's tree: an operator with its operands, or a leaf.
struct ExpressionNode {
  Operator op = Operator::integer;
  bool is_unsigned = false;
  std::uint64_t bits = 0;
  std::string text = {};
  std::vector<ExpressionNode> of = {};
  std::uint32_t column = 0;  ///< its offset in the text, in bytes from 0
};

/// Holds a question about one hit, as it was written: nothing is known yet of the sites that it will be asked at. A
/// plain value.
struct Expression {
  std::string text;
  ExpressionNode root;
  std::vector<ValuePath> values;  ///< the arguments and members that it reads, each path once
  std::uint64_t began = 0;        ///< the start of "elapsed", ns of CLOCK_MONOTONIC; 0: "elapsed" cannot be asked about
  /// What is behind "as" in a list: the name it has in answers, and what its number means. Null: it is called as it was
  /// written.
  std::shared_ptr<const Declaration> called = {};

  /// Returns the name that it has in answers.
  [[nodiscard]] const std::string& name() const noexcept { return called ? called->name : text; }
};

/// Parses an expression (docs/expressions.md has the language). It is made of
/// - arguments by number or by name, and paths to their members (value_path.hpp);
/// - the names of HitField. An argument called like one of them is written "args.pid"; but those that give way
///   (HitFieldInfo::gives_way: "elapsed", "name", "trace_id") mean the argument wherever the site has one;
/// - integers as C writes them, reals, 'c', "texts", durations, which stand for ns ("10ms"), and sizes, which stand for
///   bytes ("4KiB");
/// - the operators above with the precedence of C ("=~" and "in" have that of "=="), and parentheses.
/// Errors: syntax, with the column; limit (more than 1024 operands and operators, or nested more than 64 deep).
[[nodiscard]] Result<Expression> parse_expression(std::string_view text);

/// Parses expressions that are separated by commas, each as parse_expression() does. Behind one may be what it is
/// called, "arg0 & 0xff as command:{3=query, 22=prepare}" (docs/provider-note.md has the items). The column of an error
/// counts from the beginning of the whole text.
[[nodiscard]] Result<std::vector<Expression>> parse_expressions(std::string_view text);

struct PlannedTable;

/// Tells how "=~" compares a text with a literal.
enum class TextMatch : std::uint8_t {
  whole,   ///< the text is the literal: the literal has no wildcard
  prefix,  ///< the text begins with the literal: its only wildcard was a "*" at its end
  glob,    ///< glob_match() (pattern.hpp) decides
};

/// Holds the values that "provider", "name" and "ip" stand for at one site.
struct SiteWords {
  std::string_view provider = {};
  std::string_view name = {};
  std::uint64_t ip = 0;
};

/// Holds an expression for the arguments of one site: each value that it reads is known to exist, and its type is
/// known.
/// - Integers are computed in 64 bits, modulo 2^64; the result of a signed and an unsigned operand is unsigned.
/// - Comparisons of integers compare the numbers themselves, whatever the signs of their types.
/// - Reals and texts can only be compared.
/// - A shift by 64 or more gives 0; to the right, of a negative number, -1.
/// - A value that cannot be read at a hit leaves the question without an answer, unless "&&", "||" or "?:" does not
///   need the value.
class TypedExpression {
 public:
  /// The most different values of a site that an expression can read.
  static constexpr std::size_t kMostValues = 6;
  /// Says in `places` of check(): the site has no argument of this name, which may be that of an enum's value.
  static constexpr std::size_t kNoArgument = SIZE_MAX;

  /// Describes a node with the type of its result.
  struct Node {
    Operator op = Operator::integer;
    ExpressionType type = ExpressionType::signed_integer;
    std::uint64_t bits = 0;  ///< as in ExpressionNode; but `value`: its number in args(); `matches`: a TextMatch
    std::string text = {};
    std::vector<Node> of = {};
    friend bool operator==(const Node&, const Node&) = default;
  };

  /// Returns whether a path is a word that means an argument wherever the site has one of that name, and else a
  /// HitField: HitFieldInfo::gives_way.
  [[nodiscard]] static bool is_word(const ValuePath& path);

  /// Gives types to `expression` for a site whose values are `args`: its arguments, and behind them what the paths of
  /// the expression lead to. `places` has for each of Expression::values its position in `args`, or kNoArgument. A path
  /// without an argument is taken for a value of the enum that it is compared or combined with ("BUSY", "Color::red"),
  /// or else for a word (is_word()). Errors: invalid_argument with the column (a text in arithmetic; an argument that
  /// cannot be read, and why; no argument and no value of an enum has the name; more than kMostValues values).
  [[nodiscard]] static Result<TypedExpression> check(const Expression& expression, const std::vector<Arg>& args,
                                                     const std::vector<std::size_t>& places);

  /// Returns the expression with the words in it replaced by what they are at this site, at all of its hits. Keys of a
  /// row that are such words stay: in the kernel the number of the site stands for them.
  [[nodiscard]] TypedExpression at_site(const SiteWords& site) const;
  /// Returns whether at_site() would replace anything.
  [[nodiscard]] bool depends_on_site() const;

  /// Returns this expression of a row (table.hpp), made for a table whose rows other sites fill, too: integers get the
  /// signs that its columns have. A hit with a number that its column cannot hold, one of 2^63 or more among signed
  /// ones or a negative one among unsigned ones, leaves the question without an answer.
  [[nodiscard]] TypedExpression with_signs_of(const PlannedTable& table) const;

  /// Returns the root of the expression's tree; valid as long as this.
  [[nodiscard]] const Node& root() const noexcept { return root_; }
  /// Returns whether the answer depends on this field.
  [[nodiscard]] bool asks(HitField field) const;
  /// Returns the values that it reads, by their positions in the `args` of check(), each once; a value that is a kept
  /// text as well as a number, twice.
  [[nodiscard]] const std::vector<std::uint8_t>& args() const noexcept { return args_; }

  /// Says in which slot of a record a value is that is a kept text.
  struct KeptText {
    std::uint8_t value = 0;  ///< its number in args()
    std::uint8_t slot = 0;   ///< of the record's texts
    bool whole = true;       ///< its beginning alone is no answer
    friend bool operator==(const KeptText&, const KeptText&) = default;
  };
  /// Returns the question as it is asked where a span or call ends, about texts as they were where it began. `slots`
  /// has for each of the `args` of check() the slot in which a record keeps its text; nothing: it keeps none. Errors:
  /// limit (more than kMostValues values).
  [[nodiscard]] Result<TypedExpression> with_kept_texts(const std::vector<std::optional<std::uint8_t>>& slots) const;
  /// Returns the values that with_kept_texts() made kept texts of.
  [[nodiscard]] const std::vector<KeptText>& kept_texts() const noexcept { return kept_texts_; }

  /// Relates a value to a list (std::vector, a slice) or to alternatives, or says that it is a _Float16. Numbers of
  /// values are positions in args(), also those in `counts`, `element` and `alternative`.
  struct OfList {
    std::uint8_t value = 0;
    std::optional<ElementCount> counts = {};  ///< the value is the length of a list
    std::optional<ElementOf> element = {};    ///< the value is an element, and there only if the list is long enough
    std::optional<AlternativeOf> alternative = {};  ///< the value is there only while another one has certain values
    bool half = false;  ///< it is read as the bits of a _Float16, and counts as those of the float of its value
    friend bool operator==(const OfList&, const OfList&) = default;
  };
  /// Returns the values that have such a relation; values without one are left out.
  [[nodiscard]] const std::vector<OfList>& of_lists() const noexcept { return of_lists_; }
  friend bool operator==(const TypedExpression&, const TypedExpression&) = default;

 private:
  friend struct broker::ExpressionMaker;
  Node root_;
  std::vector<std::uint8_t> args_;
  std::vector<OfList> of_lists_;
  std::vector<KeptText> kept_texts_;
};

/// Answers what evaluate() asks of a hit. Derive from it for hits in a form of your own.
class HitFacts {
 public:
  virtual ~HitFacts() = default;
  /// Returns the value at `position` of the site's values (TypedExpression::args()): an integer, extended to 64 bits by
  /// its sign; the bits of a real; the length of a list, in elements. Nothing: it was not read, or it is an element
  /// behind the last one.
  [[nodiscard]] virtual std::optional<std::uint64_t> value(std::size_t position) const = 0;
  /// Returns the text that the value at `position` points to, valid as long as this. Nothing: it was not read.
  [[nodiscard]] virtual std::optional<std::string_view> text(std::size_t position) const = 0;
  /// Returns whether the text is longer than what text() gives of it.
  [[nodiscard]] virtual bool is_cut(std::size_t position) const {
    static_cast<void>(position);
    return false;
  }
  /// Returns a field that is a number. Nothing: it is not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> field(HitField field) const = 0;
  /// Returns HitField::comm, valid as long as this. Nothing: it is not known.
  [[nodiscard]] virtual std::optional<std::string_view> comm() const = 0;
  /// Returns HitField::trace_id or span_id as 16 bytes, with zeros behind; of no trace zeros. Nothing: it is not known.
  [[nodiscard]] virtual std::optional<std::string> context_bytes(HitField field) const {
    static_cast<void>(field);
    return std::nullopt;
  }
  /// Returns the attribute of the thread's context that is called `key`; empty: it has none. Nothing: it is not known.
  [[nodiscard]] virtual std::optional<std::string> trace_attribute(std::string_view key) const {
    static_cast<void>(key);
    return std::nullopt;
  }
  /// Returns HitField::provider, name or probe, as text. Nothing: it is not known.
  [[nodiscard]] virtual std::optional<std::string> site_text(HitField field) const {
    static_cast<void>(field);
    return std::nullopt;
  }
  /// Returns HitField::ustack or kstack, valid as long as this; an error says why there is none. Null: it is not known.
  [[nodiscard]] virtual const Result<Stack>* stack(HitField field) const {
    static_cast<void>(field);
    return nullptr;
  }
};

/// Answers an expression about a hit, exactly as the program in the kernel would: with an integer, where "false" is 0
/// and "true" is 1. Nothing: there is no answer, since a value that it needs was not read, or it divides by 0.
[[nodiscard]] std::optional<std::uint64_t> evaluate(const TypedExpression& expression, const HitFacts& facts);
/// Answers one node of the expression's tree, as evaluate() of the whole does its root.
[[nodiscard]] std::optional<std::uint64_t> evaluate(const TypedExpression& expression,
                                                    const TypedExpression::Node& node, const HitFacts& facts);

}  // namespace v1
}  // namespace usdt
