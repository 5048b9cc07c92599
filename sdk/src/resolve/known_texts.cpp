// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/known_texts.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/try.hpp"

namespace usdt::resolve {
namespace {

/// A text that some library keeps as a pointer and a length.
struct KnownText {
  std::string_view type;  ///< its name; empty: whatever has these members, the first one a pointer to characters
  std::string_view pointer;
  std::string_view length;
  std::string_view of = {};  ///< the pointer's type, where that is none to characters
};
/// libstdc++: bits/basic_string.h, string_view. libc++: string_view (its string has two forms in one place). Rust: what
/// rustc names the members of fat pointers, alloc::string::String of 1.63 and of 1.78 and later.
constexpr std::array kKnownTexts{
    KnownText{"", "_M_dataplus._M_p", "_M_string_length"},
    KnownText{"", "_M_dataplus", "_M_string_length"},  // Clang only declares its type; the pointer is all it has
    KnownText{"", "_M_pathname._M_dataplus._M_p", "_M_pathname._M_string_length"},  // std::filesystem::path
    KnownText{"", "_M_str", "_M_len"},
    KnownText{"", "__data_", "__size_"},
    KnownText{"", "__data", "__size"},
    KnownText{"", "str", "len", "*uint8"},  // Go, which alone spells pointers so
    KnownText{"&str", "data_ptr", "length"},
    KnownText{"&mut str", "data_ptr", "length"},
    KnownText{"alloc::string::String", "vec.buf.ptr.pointer.pointer", "vec.len"},
    KnownText{"alloc::string::String", "vec.buf.inner.ptr.pointer.pointer", "vec.len"},
};

/// Characters of more than one byte.
bool is_wide(std::string_view type) {
  for (const std::string_view word : {"const ", "volatile "})
    if (type.starts_with(word)) type.remove_prefix(word.size());
  return type == "char16_t" || type == "char32_t" || type == "wchar_t";
}

/// A word of that kind, a text where a pointer will do, at "a.b.c" of an object, of type `of` if that is not empty;
/// nothing: it has no such member.
std::optional<Number> number_within(const ObjectTypes& types, const Object& object, std::string_view members,
                                    TypeKind kind, std::string_view of = {}) {
  auto inner = object_within(types, object, members);
  if (!inner) return std::nullopt;
  inner->text = object.text;
  const auto type = types.info(inner->type);
  if (!type || (!of.empty() && type->text != of)) return std::nullopt;
  const std::uint32_t word_size = types.arch().word_size;
  const bool declared_only = type->type.kind == TypeKind::structure && type->type.size == 0 &&
                             type->text.find("basic_string<char,") != type->text.npos;
  const bool as_pointer = type->type.kind == TypeKind::text && kind == TypeKind::pointer;
  const bool fits = (type->type.kind == kind || as_pointer) && type->type.size == word_size;
  if (!fits && !(declared_only && kind == TypeKind::text)) return std::nullopt;
  return number_of(types, *inner, word_size);
}

struct TextOf {
  Number pointer;
  Number length;
};

/// The text that an object of a library is; nothing: it is none that is known.
std::optional<TextOf> known_text(const ObjectTypes& types, const Object& object, const TypeInfo& type) {
  for (const KnownText& known : kKnownTexts) {
    if (!known.type.empty() && type.text != known.type) continue;
    const bool bytes = !known.type.empty() || !known.of.empty();
    auto pointer = number_within(types, object, known.pointer, bytes ? TypeKind::pointer : TypeKind::text, known.of);
    auto length = pointer ? number_within(types, object, known.length, TypeKind::integer) : std::nullopt;
    if (pointer && length) return TextOf{std::move(*pointer), std::move(*length)};
  }
  return std::nullopt;
}

/// The text that an array of characters in memory is; nothing: it is none.
Result<std::optional<TextOf>> text_in_array(const ObjectTypes& types, const Object& object, const TypeInfo& type) {
  // Fortran's texts have no elements.
  auto element = TRY(type.is_char ? Result<TypeInfo>(type) : types.info({type.target}));
  if (type.is_char) element.type.size = 1;
  if (!element.is_char || element.type.size != 1 || !type.count || !is_in_memory(object.place, *type.count))
    return std::nullopt;
  return TextOf{address_of(object.place, object.text, types.arch()), Number{Constant{*type.count}}};
}

}  // namespace

Result<bool> show_known_text(ValueList& list, const Object& object, const TypeInfo& type, const ListPosition& to) {
  const ObjectTypes& types = list.types();
  const bool array = type.type.kind == TypeKind::array;
  auto known =
      TRY(array ? text_in_array(types, object, type) : Result<std::optional<TextOf>>(known_text(types, object, type)));
  if (!known) return false;
  TypeInfo as_text = type;
  as_text.type = {.size = types.arch().word_size, .kind = TypeKind::text};
  const auto where = TRY(list.put(list.make(object, as_text, std::move(known->pointer)), object, to));
  Object of_length = object;
  of_length.text = fmt::format("the length of {}", object.text);
  TypeInfo number;
  number.type = {.size = types.arch().word_size};
  number.text = "unsigned long";
  Arg length = list.make(of_length, number, std::move(known->length));
  length.hidden = true;
  const auto position = TRY(list.put(std::move(length), object, {}));
  list[where].length = static_cast<std::uint8_t>(position);
  return true;
}

std::string why_no_text(const ObjectTypes& types, const Object& pointer, const std::string& text) {
  const auto type = types.info(pointer.type);
  if (!type || type->type.kind != TypeKind::pointer) return {};
  const Object behind = dereferenced(types, pointer, target_of(pointer.type, *type));
  const auto target = types.info(behind.type);
  if (target && behind.type.pointers == 0 && is_wide(target->text))
    return fmt::format("{} points to characters of {} bytes, and str() reads those of one: write {}[0]", text,
                       target->type.size, text);
  if (!target || target->type.kind != TypeKind::structure || behind.type.pointers > 0) return {};
  if (!known_text(types, behind, *target)) return {};
  return fmt::format("{0} points to {1}, which keeps its text elsewhere: write str(*{0})", text, target->text);
}

}  // namespace usdt::resolve
