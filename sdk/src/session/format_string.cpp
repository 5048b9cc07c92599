// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/format_string.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/try.hpp"
#include "session/option_names.hpp"

namespace usdt {
inline namespace v1 {
namespace {

constexpr std::array<std::pair<std::string_view, EventField>, 8> kFields{{{"time", EventField::time},
                                                                          {"nsecs", EventField::nsecs},
                                                                          {"pid", EventField::pid},
                                                                          {"tid", EventField::tid},
                                                                          {"cpu", EventField::cpu},
                                                                          {"comm", EventField::comm},
                                                                          {"probe", EventField::probe},
                                                                          {"duration", EventField::duration}}};
constexpr std::string_view kConversions = "diuxXocfegFEGsp";
constexpr std::string_view kReals = "fegFEG";
/// Nobody has so wide a terminal; it bounds what a line takes.
constexpr std::size_t kWidest = 1024;

}  // namespace

std::string format_field_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, field] : kFields) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

namespace {

/// Reads a format from left to right.
class FormatParser {
 public:
  FormatParser(std::string_view source, std::string_view prefix) : source_(source), prefix_(prefix) {
    made_.source = source;
  }

  Result<FormatString> parse() {
    while (at_ < source_.size()) {
      TRY(source_[at_] == '%' ? directive() : character());
    }
    if (made_.pieces.empty()) return fail(wrong_at(0, "nothing to print"));
    if (made_.values() > made_.list.size() && !made_.list.empty())
      return session::refuse(
          "--format-string: values are those of --print (%s, %d), or named in place (%{arg0}): not both", prefix_);
    return std::move(made_);
  }

 private:
  [[nodiscard]] Error wrong_at(std::size_t column, std::string_view why) const {
    return {ErrorKind::syntax,
            fmt::format("{}format-string: {} at column {} of '{}'", prefix_, why, column + 1, source_), 0,
            static_cast<std::uint32_t>(column)};
  }

  /// Takes a character of the text between directives; "\n", "\t" and "\\" as in C.
  Result<void> character() {
    char next = source_[at_++];
    if (next == '\\' && at_ < source_.size()) {
      constexpr std::string_view kEscapes = "nt\\\"", kMeant = "\n\t\\\"";
      const std::size_t which = kEscapes.find(source_[at_]);
      if (which == kEscapes.npos) return fail(wrong_at(at_ - 1, "only \\n, \\t, \\\" and \\\\ are known,"));
      next = kMeant[which];
      ++at_;
    }
    add_text(next);
    return {};
  }

  void add_text(char character) {
    if (made_.pieces.empty() || made_.pieces.back().kind != FormatPiece::Kind::text)
      made_.pieces.push_back({.column = static_cast<std::uint32_t>(at_ - 1)});
    made_.pieces.back().text += character;
  }

  /// "%[flags][width][.precision]CONVERSION", "%[flags][width]{NAME}", "%%".
  Result<void> directive() {
    const std::size_t begin = at_++;
    if (skip('%')) {
      add_text('%');
      return {};
    }
    FormatPiece piece{.kind = FormatPiece::Kind::value, .column = static_cast<std::uint32_t>(begin)};
    flags(piece);
    TRY(number(piece.width));
    if (skip('.')) {
      TRY(number(piece.precision.emplace()));
    }
    if (skip('{')) return named(std::move(piece));
    while (at_ < source_.size() && std::string_view("hljzt").find(source_[at_]) != std::string_view::npos) ++at_;
    if (at_ == source_.size() || kConversions.find(source_[at_]) == kConversions.npos)
      return fail(
          wrong_at(begin, fmt::format("a directive is %s, %d or another one of %{}, %{{NAME}}, or %% for a percent "
                                      "sign: there is none",
                                      fmt::join(kConversions, " %"))));
    piece.conversion = source_[at_++];
    made_.pieces.push_back(std::move(piece));
    return {};
  }

  void flags(FormatPiece& piece) {
    for (;; ++at_) {
      const char flag = at_ < source_.size() ? source_[at_] : '\0';
      if (flag == '-')
        piece.left = true;
      else if (flag == '0')
        piece.zeros = true;
      else if (flag == '+')
        piece.plus = true;
      else if (flag == '#')
        piece.prefix = true;
      else if (flag == ' ')
        piece.blank = true;
      else
        return;
    }
  }

  Result<void> number(std::size_t& number) {
    const std::string_view rest = source_.substr(at_);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc::result_out_of_range || number > kWidest)
      return fail(wrong_at(at_, fmt::format("a number above {}", kWidest)));
    at_ += static_cast<std::size_t>(end - rest.data());
    return {};
  }

  /// Parses a field or a value, up to the "}".
  Result<void> named(FormatPiece piece) {
    const std::size_t begin = at_;
    const std::size_t end = source_.find('}', begin);
    if (end == source_.npos) return fail(wrong_at(begin - 1, "no } for the {"));
    const std::string_view name = source_.substr(begin, end - begin);
    at_ = end + 1;
    const auto* field = std::ranges::find(kFields, name, [](const auto& each) { return each.first; });
    if (field != kFields.end()) {
      piece.kind = FormatPiece::Kind::field;
      piece.field = field->second;
    } else if (auto added = add_value(name, begin); !added) {
      return added;
    }
    made_.pieces.push_back(std::move(piece));
    return {};
  }

  Result<void> add_value(std::string_view text, std::size_t begin) {
    auto list = parse_print_list(text, prefix_);
    if (!list && list.error().kind == ErrorKind::invalid_argument) return fail(list.error());
    if (!list || list->size() != 1) {
      const std::size_t column = begin + (list ? 0 : list.error().column.value_or(0));
      return fail(wrong_at(
          column,
          session::name_options("neither a value as --print has it (arg0, str(arg1), elapsed) nor one of ", prefix_) +
              format_field_names()));
    }
    made_.list.push_back(std::move(list->front()));
    return {};
  }

  bool skip(char wanted) {
    if (at_ == source_.size() || source_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::string_view source_;
  std::string_view prefix_;
  std::size_t at_ = 0;
  FormatString made_;
};

constexpr std::string_view kText = "a text, for which there is %s";
constexpr std::string_view kBytes = "bytes, for which there are %s, %x and %X";
constexpr std::string_view kInteger = "an integer, for which there are %d, %u, %x and %s";

/// Names the kind of a word that `piece` cannot show; empty: it can show it.
std::string_view mismatch(const FormatPiece& piece, HitField word) {
  if (piece.conversion == 's') return {};
  if (is_text(word)) return kText;
  return kReals.find(piece.conversion) != kReals.npos ? kInteger : std::string_view();
}

/// Names the kind of a value that `piece` cannot show; empty: it can show it.
std::string_view mismatch(const FormatPiece& piece, const PrintItem& item, const Arg& arg) {
  if (piece.conversion == 's' || !arg.readable()) return {};
  const bool digits = piece.conversion == 'x' || piece.conversion == 'X';
  if (item.form == PrintItem::Form::bytes) return digits ? std::string_view() : kBytes;
  if (item.form == PrintItem::Form::text || arg.length) return kText;
  if (arg.type.kind == TypeKind::structure || arg.type.kind == TypeKind::array)
    return "no number, for which there is %s";
  const bool real = kReals.find(piece.conversion) != kReals.npos;
  if (arg.type.is_float() && !real) return "a real, for which there are %f, %e, %g and %s";
  if (!arg.type.is_float() && real) return kInteger;
  return {};
}

Result<void> check_count(const FormatString& format, const PrintList& list, std::string_view prefix) {
  if (format.values() == list.size()) return {};
  const auto says = [](std::size_t n) { return fmt::format("{} value{}", n, n == 1 ? "" : "s"); };
  return fail(ErrorKind::invalid_argument,
              list.empty() ? fmt::format("{0}format-string '{1}' takes {2}: {0}print says which", prefix, format.source,
                                         says(format.values()))
                           : fmt::format("{0}format-string '{1}' takes {2}, and {0}print has {3}", prefix,
                                         format.source, says(format.values()), says(list.size())));
}

}  // namespace

std::size_t FormatString::values() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(pieces, [](const FormatPiece& piece) { return piece.kind == FormatPiece::Kind::value; }));
}

Result<FormatString> parse_format_string(std::string_view source, std::string_view prefix) {
  return FormatParser(source, prefix).parse();
}

Result<void> check_format(const FormatString& format, const AttachPlan& plan, const Printed& printed,
                          std::string_view prefix) {
  for (const PlannedSite& site : plan.sites) {
    if (plan.spans && !site.span) continue;
    const PrintList& list = printed.of(site);
    TRY(check_count(format, list, prefix));
    std::size_t next = 0;
    for (const FormatPiece& piece : format.pieces) {
      if (piece.kind != FormatPiece::Kind::value) continue;
      const PrintItem& item = list[next++];
      const auto position = position_of(item, plan.args[site.args]);
      const std::string_view why = position ? mismatch(piece, item, plan.args[site.args][*position])
                                   : item.computed && kReals.find(piece.conversion) != kReals.npos ? kInteger
                                   : item.word                                 ? mismatch(piece, *item.word)
                                   : item.attribute && piece.conversion != 's' ? kText
                                                                               : std::string_view();
      if (!why.empty())
        return fail(
            ErrorKind::invalid_argument,
            fmt::format("{}format-string: %{} at column {} of '{}': {} of {} is {}", prefix, piece.conversion,
                        piece.column + 1, format.source, item.label, full_name(plan, plan.probes[site.probe]), why));
    }
  }
  return {};
}

}  // namespace v1
}  // namespace usdt
