// SPDX-License-Identifier: BSD-2-Clause
// Texts: arrays of characters, and what libraries keep as a pointer and a length.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

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
    KnownText{"", "_M_str", "_M_len"},
    KnownText{"", "__data_", "__size_"},
    KnownText{"", "__data", "__size"},
    KnownText{"", "str", "len", "*uint8"},  // Go, which alone spells pointers so
    KnownText{"&str", "data_ptr", "length"},
    KnownText{"&mut str", "data_ptr", "length"},
    KnownText{"alloc::string::String", "vec.buf.ptr.pointer.pointer", "vec.len"},
    KnownText{"alloc::string::String", "vec.buf.inner.ptr.pointer.pointer", "vec.len"},
};

}  // namespace

Result<void> Follower::show_text(const Object& object, Arg text, Number length, std::optional<std::size_t> at) {
  std::size_t where = 0;
  if (auto placed = place_in_list(object.within, text); !placed) return placed;
  if (auto stored = put(std::move(text), at, where); !stored) return stored;
  Object of_length = object;
  of_length.text = fmt::format("the length of {}", object.text);
  TypeInfo number;
  number.type = {.size = arch_.word_size};
  number.text = "unsigned long";
  Arg bytes = make(of_length, number, std::move(length));
  bytes.hidden = true;
  if (auto placed = place_in_list(object.within, bytes); !placed) return placed;
  auto appended = append(std::move(bytes));
  if (!appended) return fail(std::move(appended.error()));
  list_.args[where].length = static_cast<std::uint8_t>(*appended);
  return {};
}

Result<bool> Follower::show_known_text(const Object& object, const TypeInfo& type, std::optional<std::size_t> at,
                                       std::optional<std::uint8_t> part_of) {
  const Type as_text{.size = arch_.word_size, .kind = TypeKind::text};
  TypeInfo shown = type;
  shown.type = as_text;
  if (type.type.kind == TypeKind::array) {
    auto element = info({type.target});
    if (!element) return fail(std::move(element.error()));
    if (!element->is_char || element->type.size != 1 || !type.count || !is_in_memory(object.place, *type.count))
      return false;
    Arg text = make(object, shown, address_of(object.place, object.text, arch_));
    text.part_of = part_of;
    auto done = show_text(object, std::move(text), Number{Constant{*type.count}}, at);
    return done ? Result<bool>(true) : fail(std::move(done.error()));
  }
  for (const KnownText& known : kKnownTexts) {
    if (!known.type.empty() && type.text != known.type) continue;
    const bool bytes = !known.type.empty() || !known.of.empty();
    const auto pointer = number_within(object, known.pointer, bytes ? TypeKind::pointer : TypeKind::text, known.of);
    const auto length = pointer ? number_within(object, known.length, TypeKind::integer) : std::nullopt;
    if (!pointer || !length) continue;
    Arg text = make(object, shown, *pointer);
    text.part_of = part_of;
    auto done = show_text(object, std::move(text), *length, at);
    return done ? Result<bool>(true) : fail(std::move(done.error()));
  }
  return false;
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
  const Object& inner = *found;
  const auto type = info(inner.type);
  if (!type || (!of.empty() && type->text != of)) return std::nullopt;
  const bool declared_only = type->type.kind == TypeKind::structure && type->type.size == 0 &&
                             type->text.find("basic_string<char,") != type->text.npos;
  const bool as_pointer = type->type.kind == TypeKind::text && kind == TypeKind::pointer;
  const bool fits = (type->type.kind == kind || as_pointer) && type->type.size == arch_.word_size;
  if (!fits && !(declared_only && kind == TypeKind::text)) return std::nullopt;
  return number_at(inner.place, arch_.word_size, inner.range, object.text, arch_);
}

}  // namespace usdt::resolve
