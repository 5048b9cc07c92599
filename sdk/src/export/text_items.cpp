// SPDX-License-Identifier: BSD-2-Clause
#include "export/text_items.hpp"

#include <fmt/format.h>

#include <utility>

#include "export/directive_text.hpp"
#include "export/value_text.hpp"
#include "usdt/utf8.hpp"

namespace usdt::exports {

void ItemWriter::look_up(const AttachPlan& plan, std::size_t probes) {
  plan_ = &plan;
  columns_ = Columns(plan, printed_);
  names_ = ShortNames(plan, probes);
}

void ItemWriter::show_argument(const Event& event, std::size_t n, bool likely_texts) {
  const Arg& arg = event.arg_info(n);
  if (arg.result)
    out_.print(" return=");
  else if (!arg.name().empty())
    out_.print(" {}=", arg.name());
  else
    out_.print(" arg{}=", n);
  if (has_members(arg) || arg.length || arg.type.size > 8) return values_.show_whole(event, n, false);
  const bool typed = arg.type.kind == TypeKind::text;
  const auto text = unasked_text(*plan_, event, n, likely_texts);
  if (!text || !typed) values_.show_value(event, n, text.has_value());
  if (text && !typed) out_.print(" ");
  if (text) values_.show_text(*text);
}

void ItemWriter::show_as(const FormatPiece& piece, const Event& event, const PrintItem& item, std::size_t i) {
  if (const auto made = columns_.computed(event, i)) return show_computed_as(piece, *made, item);
  const auto position = columns_.position(event, i);
  if (!position && item.is_of_hit()) return show_word_as(piece, event, item);
  if (!position) return values_.show_error("no such argument");
  const Arg& arg = event.arg_info(*position);
  if (item.form == PrintItem::Form::bytes) return show_bytes_as(piece, event, *position);
  if (item.form == PrintItem::Form::address && piece.conversion == 's') return values_.show_address(event, *position);
  const auto described = item.form == PrintItem::Form::value ? described_text(*plan_, event, *position) : std::nullopt;
  if (piece.conversion == 's') {
    const bool is_text = item.form == PrintItem::Form::text || (arg.length && !arg.is_list());
    if (!is_text && !described) return show_value_of(event, item, i);
    const auto text = described ? Result<Text>(*described) : event.text(*position);
    if (!text) return values_.show_error(text.error().message);
    const auto whole = text->truncated ? without_partial_utf8(text->bytes) : text->bytes;
    return out_.print("{}{}", io::unambiguous(whole), text->truncated ? "..." : "");
  }
  const Value value = event.value(*position);
  if (const auto* error = std::get_if<ArgError>(&value)) return values_.show_error(error->reason);
  if (const auto* real = std::get_if<double>(&value)) return out_.print("{}", real_text(piece, *real));
  out_.print("{}", integer_text(piece, value, arg.type.size));
}

void ItemWriter::show_item(const Event& event, const PrintItem& item, std::size_t i) {
  out_.print(" {}=", item.name());
  show_value_of(event, item, i);
}

void ItemWriter::show_value_of(const Event& event, const PrintItem& item, std::size_t i) {
  const auto position = columns_.position(event, i);
  if (const auto made = columns_.computed(event, i))
    values_.show_value(made->arg, made->value, item.form == PrintItem::Form::hex);
  else if (!position && item.is_of_hit())
    show_word(event, item);
  else if (!position)
    values_.show_error("no such argument");
  else if (item.form == PrintItem::Form::text)
    values_.show_text(event, *position);
  else if (item.form == PrintItem::Form::address)
    values_.show_address(event, *position);
  else if (item.form == PrintItem::Form::bytes)
    values_.show_bytes(event, *position);
  else if (const auto text = described_text(*plan_, event, *position); text && item.form == PrintItem::Form::value)
    values_.show_text(*text);
  else if (const Arg* called = columns_.called(event, i); called != nullptr)
    values_.show_value(*called, event.value(*position), false);
  else
    values_.show_whole(event, *position, item.form == PrintItem::Form::hex);
}

WordValue ItemWriter::value_of(const Event& event, const PrintItem& item) {
  return value_of_hit(item, event, {began_, names_[event.site().probe.value], around_});
}

void ItemWriter::show_word(const Event& event, const PrintItem& item) {
  const WordValue value = value_of(event, item);
  if (const auto* error = std::get_if<NoWord>(&value)) return values_.show_error(error->reason);
  if (const auto* text = std::get_if<std::string>(&value)) return out_.print("{}", io::quoted(*text));
  const std::uint64_t number = std::get<std::uint64_t>(value);
  item.form == PrintItem::Form::hex ? out_.print("{:#x}", number) : out_.print("{}", word_text(*item.word, number));
}

void ItemWriter::show_word_as(const FormatPiece& piece, const Event& event, const PrintItem& item) {
  const WordValue value = value_of(event, item);
  if (const auto* error = std::get_if<NoWord>(&value)) return values_.show_error(error->reason);
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && item.word == HitField::probe)
    return out_.print("{}", *text);  // its name is quoted where it is odd
  if (text != nullptr) return out_.print("{}", io::unambiguous(*text));
  const std::uint64_t number = std::get<std::uint64_t>(value);
  piece.conversion == 's' ? out_.print("{}", word_text(*item.word, number))
                          : out_.print("{}", integer_text(piece, number, sizeof(number)));
}

void ItemWriter::show_computed_as(const FormatPiece& piece, const Columns::Computed& made, const PrintItem& item) {
  const bool is_error = std::holds_alternative<ArgError>(made.value);
  if (piece.conversion == 's' || is_error)
    return values_.show_value(made.arg, made.value, item.form == PrintItem::Form::hex);
  out_.print("{}", integer_text(piece, made.value, made.arg.type.size));
}

void ItemWriter::show_bytes_as(const FormatPiece& piece, const Event& event, std::size_t n) {
  const auto bytes = event.text(n);
  if (!bytes) return values_.show_error(bytes.error().message);
  out_.print("{}{}",
             piece.conversion == 's' ? bytes_text(bytes->bytes) : hex_digits(bytes->bytes, piece.conversion == 'X'),
             bytes->truncated ? "..." : "");
}

}  // namespace usdt::exports
