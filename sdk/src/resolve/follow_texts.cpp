// SPDX-License-Identifier: BSD-2-Clause
// Texts: arrays of characters, and what libraries keep as a pointer and a length.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/try.hpp"
#include "resolve/follow.hpp"

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

}  // namespace

Result<void> Follower::show_text(const Object& object, Arg text, Number length, std::optional<std::size_t> at) {
  std::size_t where = 0;
  TRY(place_in_whole(object, text));
  TRY(put(std::move(text), at, where));
  Object of_length = object;
  of_length.text = fmt::format("the length of {}", object.text);
  TypeInfo number;
  number.type = {.size = arch_.word_size};
  number.text = "unsigned long";
  Arg bytes = make(of_length, number, std::move(length));
  bytes.hidden = true;
  TRY(place_in_whole(object, bytes));
  auto appended = TRY(append(std::move(bytes)));
  list_.args[where].length = static_cast<std::uint8_t>(appended);
  return {};
}

Result<bool> Follower::show_known_text(const Object& object, const TypeInfo& type, std::optional<std::size_t> at,
                                       std::optional<std::uint8_t> part_of) {
  const Type as_text{.size = arch_.word_size, .kind = TypeKind::text};
  TypeInfo shown = type;
  shown.type = as_text;
  if (type.type.kind == TypeKind::array) {
    auto element = type.is_char ? Result<TypeInfo>(type) : info({type.target});  // Fortran's texts have no elements
    if (!element) return fail(std::move(element.error()));
    if (type.is_char) element->type.size = 1;
    if (!element->is_char || element->type.size != 1 || !type.count || !is_in_memory(object.place, *type.count))
      return false;
    Arg text = make(object, shown, address_of(object.place, object.text, arch_));
    text.part_of = part_of;
    auto done = show_text(object, std::move(text), Number{Constant{*type.count}}, at);
    return done ? Result<bool>(true) : fail(std::move(done.error()));
  }
  auto known = known_text(object, type);
  if (!known) return false;
  Arg text = make(object, shown, std::move(known->pointer));
  text.part_of = part_of;
  auto done = show_text(object, std::move(text), std::move(known->length), at);
  return done ? Result<bool>(true) : fail(std::move(done.error()));
}

std::optional<Follower::TextOf> Follower::known_text(const Object& object, const TypeInfo& type) const {
  for (const KnownText& known : kKnownTexts) {
    if (!known.type.empty() && type.text != known.type) continue;
    const bool bytes = !known.type.empty() || !known.of.empty();
    auto pointer = number_within(object, known.pointer, bytes ? TypeKind::pointer : TypeKind::text, known.of);
    auto length = pointer ? number_within(object, known.length, TypeKind::integer) : std::nullopt;
    if (pointer && length) return TextOf{std::move(*pointer), std::move(*length)};
  }
  return std::nullopt;
}

/// The first bytes of a std::string are no text, though a pointer to it is one to memory.
std::string Follower::why_no_text(const ValuePath& path) const {
  auto object = root_of(path);
  for (std::size_t i = 0; i < path.steps.size() && object; ++i) object = take(std::move(*object), path.steps[i]);
  if (object) object = without_reference(std::move(*object));
  if (!object) return {};
  const auto type = info(object->type);
  if (!type || type->type.kind != TypeKind::pointer) return {};
  const Object behind = dereferenced(*object, target_of(object->type, *type));
  const auto target = info(behind.type);
  if (target && behind.type.pointers == 0 && is_wide(target->text))
    return fmt::format("{} points to characters of {} bytes, and str() reads those of one: write {}[0]", path.text,
                       target->type.size, path.text);
  if (!target || target->type.kind != TypeKind::structure || behind.type.pointers > 0) return {};
  if (!known_text(behind, *target)) return {};
  return fmt::format("{0} points to {1}, which keeps its text elsewhere: write str(*{0})", path.text, target->text);
}

/// What is at "a.b.c" of an object; nothing: it has no such member.
std::optional<Follower::Object> Follower::object_within(const Object& object, std::string_view members) const {
  Object inner = object;
  while (!members.empty()) {
    const std::size_t dot = std::min(members.find('.'), members.size());
    auto info_of = info(inner.type);
    if (!info_of || info_of->type.kind != TypeKind::structure || inner.type.pointers > 0) return std::nullopt;
    auto found = find_member(inner.type.id, members.substr(0, dot));
    if (!found || !*found || (*found)->is_virtual) return std::nullopt;
    if ((*found)->variant) return std::nullopt;
    inner.place = moved(std::move(inner.place), (*found)->offset);
    inner.type = {(*found)->type};
    inner.range = {(*found)->shift, (*found)->bits};
    members.remove_prefix(std::min(dot + 1, members.size()));
  }
  return inner;
}

/// A word of that kind, a text where a pointer will do, at "a.b.c" of an object, of type `of` if that is not empty;
/// nothing: it has no such member.
std::optional<Number> Follower::number_within(const Object& object, std::string_view members, TypeKind kind,
                                              std::string_view of) const {
  const auto found = object_within(object, members);
  if (!found) return std::nullopt;
  Object inner = *found;
  inner.text = object.text;
  const auto type = info(inner.type);
  if (!type || (!of.empty() && type->text != of)) return std::nullopt;
  const bool declared_only = type->type.kind == TypeKind::structure && type->type.size == 0 &&
                             type->text.find("basic_string<char,") != type->text.npos;
  const bool as_pointer = type->type.kind == TypeKind::text && kind == TypeKind::pointer;
  const bool fits = (type->type.kind == kind || as_pointer) && type->type.size == arch_.word_size;
  if (!fits && !(declared_only && kind == TypeKind::text)) return std::nullopt;
  return number_of(inner, arch_.word_size);
}

}  // namespace usdt::resolve
