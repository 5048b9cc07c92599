// SPDX-License-Identifier: BSD-2-Clause
// Values, among others in a line or by a directive of --format-string.
#include <fmt/format.h>

#include <utility>

#include "base/counted.hpp"
#include "export/directive_text.hpp"
#include "export/meaning.hpp"
#include "export/text.hpp"
#include "export/value_text.hpp"
#include "usdt/utf8.hpp"

namespace usdt::exports {

void TextOutput::show_as(const FormatPiece& piece, const Event& event, const PrintItem& item, std::size_t i) {
  const auto position = columns_.position(event, i);
  if (!position && item.word) return show_word_as(piece, event, *item.word);
  if (!position) return show_error("no such argument");
  const Arg& arg = event.arg_info(*position);
  if (item.form == PrintItem::Form::bytes) return show_bytes_as(piece, event, *position);
  if (item.form == PrintItem::Form::address && piece.conversion == 's') return show_address(event, *position);
  const auto described = item.form == PrintItem::Form::value ? described_text(plan(), event, *position) : std::nullopt;
  if (piece.conversion == 's') {
    const bool is_text = item.form == PrintItem::Form::text || (arg.length && !arg.is_list());
    if (!is_text && !described) return show_value_of(event, item, i);
    const auto text = described ? Result<Text>(*described) : event.text(*position);
    if (!text) return show_error(text.error().message);
    const auto whole = text->truncated ? without_partial_utf8(text->bytes) : text->bytes;
    return out_.print("{}{}", whole, text->truncated ? "..." : "");
  }
  const Value value = event.value(*position);
  if (const auto* error = std::get_if<ArgError>(&value)) return show_error(error->reason);
  if (const auto* real = std::get_if<double>(&value)) return out_.print("{}", real_text(piece, *real));
  out_.print("{}", integer_text(piece, value, arg.type.size));
}

void TextOutput::show_item(const Event& event, const PrintItem& item, std::size_t i) {
  out_.print(" {}=", item.label);
  show_value_of(event, item, i);
}

void TextOutput::show_value_of(const Event& event, const PrintItem& item, std::size_t i) {
  const auto position = columns_.position(event, i);
  if (!position && item.word)
    show_word(event, item);
  else if (!position)
    show_error("no such argument");
  else if (item.form == PrintItem::Form::text)
    show_text(event, *position);
  else if (item.form == PrintItem::Form::address)
    show_address(event, *position);
  else if (item.form == PrintItem::Form::bytes)
    show_bytes(event, *position);
  else if (const auto text = described_text(plan(), event, *position); text && item.form == PrintItem::Form::value)
    show_text(*text);
  else
    show_whole(event, *position, item.form == PrintItem::Form::hex);
}

WordValue TextOutput::value_of(const Event& event, HitField word) {
  return word_value(word, event, {began_, names_[event.site().probe.value], around_});
}

void TextOutput::show_word(const Event& event, const PrintItem& item) {
  const WordValue value = value_of(event, *item.word);
  if (const auto* error = std::get_if<NoWord>(&value)) return show_error(error->reason);
  if (const auto* text = std::get_if<std::string>(&value)) return out_.print("{}", io::quoted(*text));
  const std::uint64_t number = std::get<std::uint64_t>(value);
  item.form == PrintItem::Form::hex ? out_.print("{:#x}", number) : out_.print("{}", word_text(*item.word, number));
}

void TextOutput::show_word_as(const FormatPiece& piece, const Event& event, HitField word) {
  const WordValue value = value_of(event, word);
  if (const auto* error = std::get_if<NoWord>(&value)) return show_error(error->reason);
  if (const auto* text = std::get_if<std::string>(&value)) return out_.print("{}", *text);
  const std::uint64_t number = std::get<std::uint64_t>(value);
  piece.conversion == 's' ? out_.print("{}", word_text(word, number))
                          : out_.print("{}", integer_text(piece, number, sizeof(number)));
}

void TextOutput::show_address(const Event& event, std::size_t n) {
  const auto text = address_in(event, n);
  text ? out_.print("{}", *text) : show_error(text.error().message);
}

void TextOutput::show_bytes(const Event& event, std::size_t n) {
  const auto bytes = event.text(n);
  if (!bytes) return show_error(bytes.error().message);
  out_.print("\"{}\"{}", bytes_text(bytes->bytes), bytes->truncated ? "..." : "");
}

void TextOutput::show_bytes_as(const FormatPiece& piece, const Event& event, std::size_t n) {
  const auto bytes = event.text(n);
  if (!bytes) return show_error(bytes.error().message);
  out_.print("{}{}",
             piece.conversion == 's' ? bytes_text(bytes->bytes) : hex_digits(bytes->bytes, piece.conversion == 'X'),
             bytes->truncated ? "..." : "");
}

void TextOutput::show_whole(const Event& event, std::size_t n, bool hex) {
  const Arg& arg = event.arg_info(n);
  if (const auto why = why_undecided(event, n); !why.empty()) return show_error(why);
  if (arg.is_list()) return show_list(event, n, hex);
  if (arg.length && !hex) return show_text(event, n);
  if (const auto wide = wide_number(event, n, hex)) {
    if (wide->is_error) return show_error(wide->text);
    return out_.print("{}", wide->text);
  }
  const auto characters = hex ? std::nullopt : text_of_elements(event, n);
  if (characters) return out_.print("{}", io::quoted(*characters));
  if (!has_members(arg) || !show_members(event, n, hex)) show_value(event, n, hex);
}

bool TextOutput::show_members(const Event& event, std::size_t whole, bool hex) {
  if (is_no_alternative(event, whole)) return show_error(kNoAlternative), true;
  const bool array = event.arg_info(whole).type.kind == TypeKind::array;
  bool known = false;
  bool any = false;
  for (std::size_t n = 0; n < event.arg_count(); ++n) {
    const Arg& arg = event.arg_info(n);
    if (arg.part_of != whole) continue;
    if (!std::exchange(known, true)) out_.print("{}", array ? "[" : "{");
    if (arg.hidden || !is_there(event, n)) continue;
    out_.print("{}", std::exchange(any, true) ? " " : "");
    const std::string_view label = event.label(n);
    if (label == "...") {
      out_.print("...({})", arg.why_unreadable());
      continue;
    }
    if (!array) out_.print("{}=", label);
    show_part(event, n, hex);
  }
  if (known) out_.print("{}", array ? "]" : "}");
  return known;
}

void TextOutput::show_part(const Event& event, std::size_t n, bool hex) {
  const Arg& arg = event.arg_info(n);
  const bool opens = has_members(arg) && !arg.is_list() && (hex || !text_of_elements(event, n));
  if (!opens) return show_whole(event, n, hex);
  if (!show_members(event, n, hex)) out_.print("{}", arg.type.kind == TypeKind::array ? "[...]" : "{...}");
}

void TextOutput::show_list(const Event& event, std::size_t whole, bool hex) {
  const auto count = length_of(event, whole);
  if (!count) return show_error(count.error().message);
  out_.print("[");
  std::uint64_t shown = 0;
  for (std::size_t n = 0; n < event.arg_count(); ++n) {
    if (event.arg_info(n).part_of != whole || !is_there(event, n)) continue;
    if (shown++ > 0) out_.print(" ");
    show_part(event, n, hex);
  }
  if (*count > shown) out_.print("{}...({})", shown > 0 ? " " : "", more_text(*count - shown));
  out_.print("]");
}

void TextOutput::show_named(const Event& event, std::size_t n) {
  const Arg& arg = event.arg_info(n);
  if (arg.result)
    out_.print(" return=");
  else if (!arg.name().empty())
    out_.print(" {}=", arg.name());
  else
    out_.print(" arg{}=", n);
  if (has_members(arg) || arg.length || arg.type.size > 8) return show_whole(event, n, false);
  const bool typed = arg.type.kind == TypeKind::text;
  const auto text = unasked_text(plan(), event, n, likely_texts_);
  if (!text || !typed) show_value(event, n, text.has_value());
  if (text && !typed) out_.print(" ");
  if (text) show_text(*text);
}

void TextOutput::show_error(std::string_view reason) {
  ++unreadable_;
  out_.print("<{}>", reason);
}

void TextOutput::show_value(const Event& event, std::size_t n, bool hex) {
  const Value value = event.value(n);
  if (const auto* error = std::get_if<ArgError>(&value)) return show_error(error->reason);
  const Arg& arg = event.arg_info(n);
  if (!hex && show_name(arg, value)) return;
  if (const auto meant = text_by_meaning(arg, value); meant && !hex) return out_.print("{}", *meant);
  if (const auto* number = std::get_if<double>(&value)) {
    // The shortest text that reads back as the same float.
    arg.type.size <= sizeof(float) ? out_.print("{}", static_cast<float>(*number)) : out_.print("{}", *number);
  } else if (const auto* wide = std::get_if<std::uint64_t>(&value)) {
    hex || looks_like_address(arg, *wide) ? out_.print("{:#x}", *wide) : out_.print("{}", *wide);
  } else {
    const std::int64_t whole = std::get<std::int64_t>(value);
    const std::uint64_t bits =
        static_cast<std::uint64_t>(whole) << (64 - 8 * arg.type.size) >> (64 - 8 * arg.type.size);
    hex ? out_.print("{:#x}", bits) : out_.print("{}", whole);
  }
}

bool TextOutput::show_name(const Arg& arg, const Value& value) {
  if (std::holds_alternative<double>(value)) return false;
  const auto* whole = std::get_if<std::int64_t>(&value);
  const std::uint64_t bits = whole ? static_cast<std::uint64_t>(*whole) : std::get<std::uint64_t>(value);
  std::string_view word;
  if (arg.type.kind == TypeKind::boolean && bits <= 1)
    word = bits ? "true" : "false";
  else
    word = enumerator_name(arg, bits);
  out_.print("{}", word);
  return !word.empty();
}

void TextOutput::show_text(const Event& event, std::size_t n) {
  auto text = event.text(n);
  text ? show_text(*text) : show_error(text.error().message);
}

void TextOutput::show_text(const Text& text) {
  const auto whole = text.truncated ? without_partial_utf8(text.bytes) : text.bytes;
  out_.print("{}{}", io::quoted(whole), text.truncated ? "..." : "");
}

}  // namespace usdt::exports
