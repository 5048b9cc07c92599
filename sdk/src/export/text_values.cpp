// SPDX-License-Identifier: BSD-2-Clause
#include "export/text_values.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/counted.hpp"
#include "export/meaning.hpp"
#include "export/value_text.hpp"
#include "usdt/utf8.hpp"

namespace usdt::exports {

void ValueWriter::show_error(std::string_view reason) {
  ++unreadable_;
  out_.print("<{}>", reason);
}

void ValueWriter::show_value(const Arg& arg, const Value& value, bool hex) {
  if (const auto* error = std::get_if<ArgError>(&value)) return show_error(error->reason);
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

void ValueWriter::show_whole(const Event& event, std::size_t n, bool hex) {
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

void ValueWriter::show_text(const Event& event, std::size_t n) {
  auto text = event.text(n);
  text ? show_text(*text) : show_error(text.error().message);
}

void ValueWriter::show_text(const Text& text) {
  const auto whole = text.truncated ? without_partial_utf8(text.bytes) : text.bytes;
  out_.print("{}{}", io::quoted(whole), text.truncated ? "..." : "");
}

void ValueWriter::show_address(const Event& event, std::size_t n) {
  const auto text = address_in(event, n);
  text ? out_.print("{}", *text) : show_error(text.error().message);
}

void ValueWriter::show_bytes(const Event& event, std::size_t n) {
  const auto bytes = event.text(n);
  if (!bytes) return show_error(bytes.error().message);
  out_.print("\"{}\"{}", bytes_text(bytes->bytes), bytes->truncated ? "..." : "");
}

bool ValueWriter::show_members(const Event& event, std::size_t whole, bool hex) {
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

void ValueWriter::show_part(const Event& event, std::size_t n, bool hex) {
  const Arg& arg = event.arg_info(n);
  const bool opens = has_members(arg) && !arg.is_list() && (hex || !text_of_elements(event, n));
  if (!opens) return show_whole(event, n, hex);
  if (!show_members(event, n, hex)) out_.print("{}", arg.type.kind == TypeKind::array ? "[...]" : "{...}");
}

void ValueWriter::show_list(const Event& event, std::size_t whole, bool hex) {
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

bool ValueWriter::show_name(const Arg& arg, const Value& value) {
  std::string_view word = name_of_number(arg, value);
  const auto bits = integer_bits(value);
  if (arg.type.kind == TypeKind::boolean && bits && *bits <= 1) word = *bits == 1 ? "true" : "false";
  out_.print("{}", word);
  return !word.empty();
}

}  // namespace usdt::exports
