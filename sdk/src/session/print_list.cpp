// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/print_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/try.hpp"
#include "expr/asked_fields.hpp"
#include "expr/attributes.hpp"
#include "parsers/declared.hpp"
#include "parsers/literal.hpp"
#include "parsers/print_items.hpp"
#include "session/option_names.hpp"
#include "session/without_blanks.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Form = PrintItem::Form;

/// "args.pid" is the argument of that name, as in questions.
bool take_argument(ValuePath& path) {
  const auto* name = std::get_if<std::string>(&path.root);
  if (name == nullptr || *name != "args" || path.steps.empty() || path.steps.front().kind != PathStep::Kind::member)
    return false;
  path.root = path.steps.front().name;
  path.steps.erase(path.steps.begin());
  path.text.erase(0, path.text.find('.') + 1);
  return true;
}

/// "16", "0x10"; nothing: it is no number.
std::optional<std::uint64_t> number_in(std::string_view digits) {
  const bool hexadecimal = digits.starts_with("0x");
  if (hexadecimal) digits.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, hexadecimal ? 16 : 10);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
}

/// Returns the name that bytes have in a site's list: bytes of a span's end begin with "end.", as all its values:
/// "end.buf(p, n)".
std::string name_of_bytes(std::string label) {
  constexpr std::string_view kEnd = "end.";
  const std::size_t first = label.find('(') + 1;
  if (label.compare(first, kEnd.size(), kEnd) != 0) return label;
  const std::size_t comma = label.rfind(", ");
  if (comma != label.npos && label.compare(comma + 2, kEnd.size(), kEnd) == 0) label.erase(comma + 2, kEnd.size());
  label.erase(first, kEnd.size());
  return std::string(kEnd) + label;
}

/// The name that a form has in lists; empty: it has none.
std::string_view name_of(Form form) {
  switch (form) {
    case Form::text:
      return "str";
    case Form::hex:
      return "hex";
    case Form::address:
      return "ntop";
    case Form::bytes:
      return "buf";
    case Form::value:
      break;
  }
  return {};
}

Form form_of(parsers::PrintForm form) {
  switch (form) {
    case parsers::PrintForm::text:
      return Form::text;
    case parsers::PrintForm::hex:
      return Form::hex;
    case parsers::PrintForm::address:
      return Form::address;
    case parsers::PrintForm::bytes:
      return Form::bytes;
    case parsers::PrintForm::value:
    case parsers::PrintForm::attribute:
      break;
  }
  return Form::value;
}

/// Whether anything is computed, and of something.
bool computes(const ExpressionNode& root) {
  const auto is_of_hits = [](const auto& self, const ExpressionNode& node) -> bool {
    return node.op == Operator::value || node.op == Operator::field || node.op == Operator::attribute ||
           std::ranges::any_of(node.of, [&](const ExpressionNode& each) { return self(self, each); });
  };
  return !root.of.empty() && root.op != Operator::text_of && is_of_hits(is_of_hits, root);
}

/// Makes one list of one text.
class PrintListParser {
 public:
  PrintListParser(std::string_view source, std::string_view prefix)
      : source_(source), option_(session::name_options("--print", prefix)) {}

  [[nodiscard]] Result<PrintList> parse() const {
    const auto items = parsers::split_print_list(source_);
    if (!items) return fail(expected(items.error()));
    PrintList list;
    for (const parsers::PrintItemText& each : *items) {
      auto made = TRY(item(each));
      if (!each.called.empty()) TRY(call(made, each.called));
      list.push_back(std::move(made));
    }
    return list;
  }

 private:
  [[nodiscard]] Error expected(std::size_t column) const {
    constexpr std::size_t most = 200;  // of a recording the list is whatever its maker wrote
    const std::string_view part = source_.substr(std::min(column, source_.size()));
    return {ErrorKind::syntax,
            fmt::format(
                "{}: expected argN, a name, retval, a member, str(...), hex(...), ntop(...) or buf(...) at column {} "
                "of '{}{}'; arguments count from arg0{}",
                option_, column + 1, source_.substr(0, most), source_.size() > most ? "..." : "",
                part.substr(0, part.find(',')).ends_with('-')
                    ? "; 'p->member' has to be in quotes, or the shell takes what is behind > for a file to write to"
                    : ""),
            0, static_cast<std::uint32_t>(column)};
  }

  /// Column of a part of the list, and of something within it.
  [[nodiscard]] std::size_t column_of(std::string_view part, std::uint32_t within) const {
    const std::size_t blanks = std::min(part.find_first_not_of(' '), part.size());
    return static_cast<std::size_t>(part.data() - source_.data()) + blanks + within;
  }

  [[nodiscard]] Result<ValuePath> path_in(std::string_view part) const {
    auto path = parse_value_path(part);
    if (!path) return fail(expected(column_of(part, path.error().column.value_or(0))));
    return path;
  }

  /// The word that an item is, in the forms that can show it.
  [[nodiscard]] Result<std::optional<HitField>> word_in(const PrintItem& shown, std::optional<HitField> word) const {
    if (!word || shown.form == Form::value || (shown.form == Form::hex && !is_text(*word))) return word;
    if (info_of(*word).gives_way) return std::nullopt;
    return fail(ErrorKind::invalid_argument,
                fmt::format("{0} {1}: {2} is what is known of every hit; an argument of that name is args.{2}", option_,
                            shown.label, to_string(*word)));
  }

  /// Adds what an item is called. Numbers of arguments have meanings.
  Result<void> call(PrintItem& out, std::string_view item) const {
    auto called = parsers::parse_called(item);
    if (!called) return fail(called.error().within(option_));
    if (parsers::has_meaning(**called) && (out.form != Form::value || out.is_of_hit()))
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{} {}: it can have a name, and no meaning, which is of numbers", option_, out.label));
    out.called = std::move(*called);
    return {};
  }

  /// An end is reckoned from the beginning of what it is the end of.
  [[nodiscard]] Result<void> check_distance(const ValuePath& length, const std::string& begin) const {
    if (length.steps.empty() || length.steps.back().kind != PathStep::Kind::distance) return {};
    if (length.steps.back().name == begin) return {};
    return fail(ErrorKind::invalid_argument,
                fmt::format("{0}: the end of what is at {1} is reckoned from where it begins: {2}{1}", option_, begin,
                            length.text.substr(0, length.steps.back().column + 2)));
  }

  /// Adds how many bytes there are: a number, or of bytes that are no address the value that says it.
  Result<void> add_size(PrintItem& out, std::string_view part) const {
    PathStep& last = out.value.steps.back();
    const auto number = number_in(session::without_blanks(part));
    const bool fits = number && (out.form == Form::bytes ? *number > 0 : *number == 4 || *number == 16);
    if (!fits && (number || out.form == Form::address))
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{}: {} at column {} of '{}'", option_,
                              out.form == Form::bytes ? "no bytes" : "an address has 4 or 16 bytes",
                              column_of(part, 0) + 1, source_));
    if (number) {
      last.kind = PathStep::Kind::bytes;
      last.index = *number;
      return {};
    }
    auto path = TRY(path_in(part));
    TRY(check_distance(path, out.value.text));
    last.name = path.text;
    out.size = std::move(path);
    return {};
  }

  /// Adds the length of a text: an argument, what one leads to, or the distance from the text to its end.
  Result<void> add_length(PrintItem& out, std::string_view part) const {
    auto path = TRY(path_in(part));
    TRY(check_distance(path, out.value.text));
    out.length = arg_name_of(path);
    if (!path.steps.empty()) out.size = std::move(path);
    return {};
  }

  /// "trace_attribute("http.route")"
  [[nodiscard]] Result<PrintItem> attribute(std::string_view quoted) const {
    auto key = parsers::text_of_literal(quoted.substr(1, quoted.size() - 2));
    if (!key) return fail(expected(column_of(quoted, 1 + key.error().column.value_or(0))));
    PrintItem out;
    out.label = fmt::format("trace_attribute({})", quoted);
    out.value.text = out.label;
    out.attribute = *std::move(key);
    return out;
  }

  /// "arg1 - arg0"
  [[nodiscard]] Result<PrintItem> computed(Expression expression, Form form) const {
    PrintItem out;
    out.form = form;
    out.label = form == Form::hex ? fmt::format("hex({})", expression.text) : expression.text;
    out.value.text = expression.text;
    out.value.root = expression.text;
    out.computed = std::make_shared<const Expression>(std::move(expression));
    return out;
  }

  /// The expression that a part is which is no way to a value; nothing: it is one, or cannot be shown so. Error: it is
  /// neither, and is wrong behind the place up to which it is a way.
  [[nodiscard]] Result<std::optional<Expression>> expression_in(std::string_view part, Form form) const {
    if (form != Form::value && form != Form::hex) return std::nullopt;
    const std::string_view text = session::without_blanks(part);
    const auto path = parse_value_path(text);
    if (path && (path->steps.empty() || path->steps.back().kind != PathStep::Kind::distance)) return std::nullopt;
    auto expression = parse_expression(text);
    if (expression) return computes(expression->root) ? std::optional(std::move(*expression)) : std::nullopt;
    const bool limit = expression.error().kind == ErrorKind::limit;
    if (!path && !limit && expression.error().column.value_or(0) <= path.error().column.value_or(0))
      return std::nullopt;
    return fail(expression.error().within(option_));
  }

  [[nodiscard]] Result<PrintItem> item(const parsers::PrintItemText& parsed) const {
    using Kind = PathStep::Kind;
    if (parsed.form == parsers::PrintForm::attribute) return attribute(parsed.values.front());
    PrintItem out;
    out.form = form_of(parsed.form);
    if (auto expression = TRY(expression_in(parsed.values.front(), out.form)))
      return computed(std::move(*expression), out.form);
    auto path = TRY(path_in(parsed.values.front()));
    out.label = path.text;
    const bool argument = take_argument(path);
    const auto word = argument ? std::nullopt : hit_field_of(path);
    out.value = std::move(path);
    const bool of_bytes = out.form == Form::bytes || out.form == Form::address;
    if (of_bytes) out.value.steps.push_back({.kind = out.form == Form::bytes ? Kind::bytes : Kind::address});
    if (parsed.values.size() > 1) {
      const std::string_view length = parsed.values.back();
      TRY(of_bytes ? add_size(out, length) : add_length(out, length));
      out.label += fmt::format(", {}", session::without_blanks(length));
    }
    if (out.form != Form::value) out.label = fmt::format("{}({})", name_of(out.form), out.label);
    if (of_bytes) out.value.text = name_of_bytes(out.label);
    auto meant = TRY(word_in(out, word));
    out.word = meant;
    return out;
  }

  std::string_view source_;
  std::string option_;  ///< as messages name it
};

}  // namespace

std::optional<HitField> hit_field_of(const ValuePath& path) {
  const auto* name = std::get_if<std::string>(&path.root);
  if (name == nullptr || !path.steps.empty()) return std::nullopt;
  const HitFieldInfo* known = find_hit_field(*name);
  return known != nullptr ? std::optional(known->field) : std::nullopt;
}

bool is_text(HitField word) noexcept {
  const ExpressionType type = info_of(word).type;
  return type == ExpressionType::text || type == ExpressionType::stack;
}

bool is_of_owner(HitField word) noexcept { return info_of(word).source == HitFieldSource::owner; }

ArgName arg_name_of(const ValuePath& path) { return path.steps.empty() ? path.root : ArgName(path.text); }

bool has_word(const PrintList& list, HitField word) noexcept {
  return std::ranges::any_of(list, [word](const PrintItem& each) {
    return each.word == word || (each.computed && expr::may_ask(*each.computed, word));
  });
}

bool has_attribute(const PrintList& list) noexcept {
  return std::ranges::any_of(list, [](const PrintItem& each) {
    return each.attribute.has_value() || (each.computed && expr::asks_attribute(*each.computed));
  });
}

Result<PrintList> parse_print_list(std::string_view text, std::string_view prefix) {
  return PrintListParser(text, prefix).parse();
}

std::optional<std::size_t> position_of(const PrintItem& wanted, const std::vector<Arg>& args) {
  if (!wanted.gives_way()) return std::nullopt;
  const auto found = find_arg(args, arg_name_of(wanted.value));
  const auto& steps = wanted.value.steps;
  if (found || steps.empty() || steps.back().kind != PathStep::Kind::address || !steps.back().name.empty() ||
      steps.back().index != 0)
    return found;
  // Recordings from before there were addresses other than IPv4 have the number itself.
  if (steps.size() == 1) return find_arg(args, wanted.value.root);
  const bool of_end = steps.size() == 2 && wanted.value.root == ArgName("end");
  return of_end ? find_arg(args, ArgName("end." + steps.front().name)) : std::nullopt;
}

}  // namespace v1
}  // namespace usdt
