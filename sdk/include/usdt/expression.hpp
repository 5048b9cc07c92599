// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/result.hpp"
#include "usdt/stack.hpp"
#include "usdt/value_path.hpp"

namespace usdt {
inline namespace v1 {

/// What is known of every hit, beside its values.
enum class HitField : std::uint8_t {
  pid,       ///< as numbered in the tracer's pid namespace
  tid,       ///< likewise
  cpu,       ///< the processor
  uid,       ///< of the process, in the initial user namespace
  gid,       ///< likewise
  cgroup,    ///< its number in the unified hierarchy: the inode of its directory
  nsecs,     ///< CLOCK_MONOTONIC; of a call its end
  comm,      ///< the thread's name, a text of at most 15 bytes
  duration,  ///< of a call, ns
  elapsed,   ///< nsecs since Expression::began
  provider,  ///< of the probe; of functions and kernel points what stands before their names, "ucall" or "kfunc"
  name,      ///< of the probe
  ip,        ///< the address of the site in its file, as usdt-list -v has it, or of the function in the kernel
  probe,     ///< "PROVIDER:NAME"; as a key of a table (table.hpp) the probe itself
  ustack,    ///< the stack of the process: likewise
  kstack,    ///< the stack of the kernel, of hits there: likewise
};
/// "pid", "comm": as expressions write them.
[[nodiscard]] std::string_view to_string(HitField field) noexcept;

/// What a node of an expression does with those below it.
enum class Operator : std::uint8_t {
  integer,        ///< `bits`; `is_unsigned`: above INT64_MAX
  real,           ///< `bits`, of a double
  text,           ///< `text`
  value,          ///< number `bits` of Expression::values
  text_of,        ///< "str(x)", "str(x, n)": the text that the value below points to, of n bytes
  field,          ///< HitField number `bits`
  negate,         ///< "-"
  complement,     ///< "~"
  logical_not,    ///< "!"
  multiply,       ///< "*"
  divide,         ///< "/": towards 0; by 0 there is no answer
  remainder,      ///< "%": with the sign of what is divided
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
  matches,        ///< "=~": a text that a literal with the wildcards of glob_match() (pattern.hpp) matches
  bit_and,        ///< "&"
  bit_xor,        ///< "^"
  bit_or,         ///< "|"
  in,             ///< "x in {1, 2}": the first node equals one of the others
  logical_and,    ///< "&&"
  logical_or,     ///< "||"
  conditional,    ///< "?:"
  hex,            ///< "hex(x)": a key that is shown so
  ntop,           ///< "ntop(x)": a key that is shown as an address of IPv4, as struct in_addr has it
  log2_bucket,    ///< which of log2_buckets() the first is in; the second: sub-buckets, as a power of 2
  linear_bucket,  ///< which of linear_buckets() the first is in; the others: min, max, step and digits. Of a
                  ///< TypedExpression about a real: the bounds of its ranges
  part,           ///< what is below, of the source `text`
  row,            ///< parts: which hits count, `bits` keys, and maybe a value (row_of())
};

/// An operator with its operands, or a leaf.
struct ExpressionNode {
  Operator op = Operator::integer;
  bool is_unsigned = false;
  std::uint64_t bits = 0;
  std::string text = {};
  std::vector<ExpressionNode> of = {};
  std::uint32_t column = 0;  ///< zero-based, where it is in the text
};

/// A question about one hit, as it was written. A plain value.
struct Expression {
  std::string text;
  ExpressionNode root;
  std::vector<ValuePath> values;  ///< what it reads, each path once
  std::uint64_t began = 0;        ///< CLOCK_MONOTONIC, ns: what "elapsed" counts from; 0: it cannot be asked about
};

/// Arguments by number or name and paths to members (value_path.hpp), the names of HitField ("args.pid" is an argument
/// of such a name; "elapsed", "provider", "name" and "ip" are arguments wherever there is one), integers in C's
/// notations, reals, 'c', "texts", durations and sizes ("10ms", "4KiB" in ns and bytes), the operators above with C's
/// precedence ("=~" and "in" with those of equality), parentheses. Errors: syntax with the column; limit (more than 512
/// operators, nested more than 64 deep, more than kMost different values).
[[nodiscard]] Result<Expression> parse_expression(std::string_view text);

/// Expressions with commas between them, each as parse_expression(); the column of an error is that in the whole text.
[[nodiscard]] Result<std::vector<Expression>> parse_expressions(std::string_view text);

/// The type of what an expression computes.
enum class ExpressionType : std::uint8_t {
  signed_integer,    ///< 64 bits; also of every narrower integer, whose value it keeps
  unsigned_integer,  ///< 64 bits
  real32,            ///< float, by its bits
  real64,            ///< double, by its bits
  text,              ///< which can only be compared
  stack,             ///< which can only be a key
};

/// How a text is compared with a literal.
enum class TextMatch : std::uint8_t {
  whole,   ///< it is that
  prefix,  ///< it begins with that
  glob,    ///< glob_match() (pattern.hpp)
};

/// What the words for a place stand for at one site.
struct SiteWords {
  std::string_view provider = {};
  std::string_view name = {};
  std::uint64_t ip = 0;
};

/// An expression for the arguments of one site: what it reads is known to be there, and of which type. Integers are
/// computed in 64 bits, modulo 2^64; of a signed and an unsigned operand the result is unsigned. Comparisons, though,
/// are of the values themselves, whatever the signs. Reals and texts can only be compared. Shifts by 64
/// and more leave nothing, or the sign. An operand that cannot be read at a hit leaves the question without an answer,
/// unless && or || or ?: has no need of it.
class TypedExpression {
 public:
  /// At most so many different values of a site.
  static constexpr std::size_t kMostValues = 6;
  /// A place for a name that no argument has: it may be one of an enum's values.
  static constexpr std::size_t kNoArgument = SIZE_MAX;

  /// A node with the type of its result.
  struct Node {
    Operator op = Operator::integer;
    ExpressionType type = ExpressionType::signed_integer;
    std::uint64_t bits = 0;  ///< `value`: number in args(); `matches`: a TextMatch
    std::string text = {};
    std::vector<Node> of = {};
    friend bool operator==(const Node&, const Node&) = default;
  };

  /// Whether a path is one of the words that give way to arguments: "elapsed", "provider", "name", "ip".
  [[nodiscard]] static bool is_word(const ValuePath& path);

  /// `expression` over `args`, the arguments of a site with what its paths lead to: `places` has the position of each
  /// of Expression::values. What is kNoArgument is a value of the enum that it is compared or combined with: "BUSY",
  /// "Color::red", or else a word (is_word()). Errors: invalid_argument with the column (a text in arithmetic, an
  /// argument that cannot be read and why, no such argument or value of an enum).
  [[nodiscard]] static Result<TypedExpression> check(const Expression& expression, const std::vector<Arg>& args,
                                                     const std::vector<std::size_t>& places);

  /// The same with what is the same for all hits of a site in place of words; but for the keys of a row that are such
  /// words: these have the site's number in the kernel.
  [[nodiscard]] TypedExpression at_site(const SiteWords& site) const;
  /// Whether at_site() makes something else of it.
  [[nodiscard]] bool depends_on_site() const;

  /// Its tree.
  [[nodiscard]] const Node& root() const noexcept { return root_; }
  /// Whether the answer depends on it.
  [[nodiscard]] bool asks(HitField field) const;
  /// Positions of what it reads in the site's list of arguments.
  [[nodiscard]] const std::vector<std::uint8_t>& args() const noexcept { return args_; }

  /// What of a list a value is. Values are meant by their numbers in args(), where `length` and `first` are, too.
  struct OfList {
    std::uint8_t value = 0;
    std::optional<ElementCount> counts = {};  ///< it is a length
    std::optional<ElementOf> element = {};    ///< it is there while the list is long enough
    friend bool operator==(const OfList&, const OfList&) = default;
  };
  /// Of the values that are something of a list.
  [[nodiscard]] const std::vector<OfList>& of_lists() const noexcept { return of_lists_; }
  friend bool operator==(const TypedExpression&, const TypedExpression&) = default;

 private:
  Node root_;
  std::vector<std::uint8_t> args_;
  std::vector<OfList> of_lists_;
};

/// What an expression asks of a hit.
class HitFacts {
 public:
  virtual ~HitFacts() = default;
  /// Argument `position` of the site, extended to 64 bits by its sign; reals as their bits; the length of a list in
  /// elements. Nothing: not read, or an element behind the last.
  [[nodiscard]] virtual std::optional<std::uint64_t> value(std::size_t position) const = 0;
  /// The text it points to.
  [[nodiscard]] virtual std::optional<std::string_view> text(std::size_t position) const = 0;
  /// Whether the text goes on behind what text() has of it.
  [[nodiscard]] virtual bool is_cut(std::size_t position) const {
    static_cast<void>(position);
    return false;
  }
  /// What is known of the hit, but for comm.
  [[nodiscard]] virtual std::optional<std::uint64_t> field(HitField field) const = 0;
  /// The thread's name.
  [[nodiscard]] virtual std::optional<std::string_view> comm() const = 0;
  /// HitField::provider, name and probe, as texts.
  [[nodiscard]] virtual std::optional<std::string> site_text(HitField field) const {
    static_cast<void>(field);
    return std::nullopt;
  }
  /// HitField::ustack and kstack, or why there is none. Null: not known. Valid as long as this.
  [[nodiscard]] virtual const Result<Stack>* stack(HitField field) const {
    static_cast<void>(field);
    return nullptr;
  }
};

/// The answer, an integer, as programs in the kernel find it (truth values: 0 and 1). Nothing: it cannot be told, since
/// something it needs was not read, or is divided by 0.
[[nodiscard]] std::optional<std::uint64_t> evaluate(const TypedExpression& expression, const HitFacts& facts);
/// The same of one node of its tree.
[[nodiscard]] std::optional<std::uint64_t> evaluate(const TypedExpression& expression,
                                                    const TypedExpression::Node& node, const HitFacts& facts);

}  // namespace v1
}  // namespace usdt
