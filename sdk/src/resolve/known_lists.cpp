// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/known_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/try.hpp"

namespace usdt::resolve {
namespace {

struct KnownList {
  std::string_view type;   ///< its name begins so; empty: whatever has these members
  std::string_view first;  ///< the address of the first element
  std::string_view length;
  std::string_view end = {};           ///< the address behind the last, of those that have no length
  std::string_view pointer_text = {};  ///< how the type of `first` begins
  bool named = false;  ///< the address is one of bytes: of which type the elements are says only the list's name
};
/// libstdc++: bits/stl_vector.h, span, initializer_list. libc++: vector, span. Rust: what rustc names the members of
/// fat pointers, alloc::vec::Vec of 1.63 and of later ones. Go: reflect.SliceHeader, whose pointers alone are spelt so.
constexpr std::array kKnownLists{
    KnownList{"", "_M_impl._M_start", "", "_M_impl._M_finish"},
    KnownList{"", "__begin_", "", "__end_"},
    KnownList{"", "_M_ptr", "_M_extent._M_extent_value"},
    KnownList{"", "_M_array", "_M_len"},
    KnownList{"", "__data_", "__size_"},
    KnownList{"", "__data", "__size"},
    KnownList{"", "_M_dataplus._M_p", "_M_string_length"},  // std::u16string and the like: texts of char are no lists
    KnownList{"", "_M_str", "_M_len"},
    KnownList{"&[", "data_ptr", "length"},
    KnownList{"&mut [", "data_ptr", "length"},
    KnownList{"alloc::boxed::Box<[", "data_ptr", "length"},
    KnownList{"alloc::vec::Vec<", "buf.ptr.pointer.pointer", "len"},
    KnownList{"alloc::vec::Vec<", "buf.inner.ptr.pointer.pointer", "len", "", "", true},
    KnownList{"", "array", "len", "", "*"},
};

/// The only member of std::array, by libstdc++ and libc++.
constexpr std::array<std::string_view, 2> kWrapped{"_M_elems", "__elems_"};

/// Members that only std::vector<bool> has, by libstdc++ and libc++.
constexpr std::array<std::string_view, 2> kOfBits{"_M_impl._M_start._M_p", "__cap_alloc_"};

/// "u8" of "alloc::vec::Vec<u8, alloc::alloc::Global>": what is before the first comma that is in no other brackets.
std::string_view first_parameter(std::string_view name) {
  name.remove_prefix(std::min(name.find('<') + 1, name.size()));
  unsigned depth = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const char c = name[at];
    const bool arrow = c == '>' && at > 0 && name[at - 1] == '-';
    if (depth == 0 && (c == ',' || c == '>') && !arrow) return name.substr(0, at);
    if (c == '<' || c == '(' || c == '[') ++depth;
    if ((c == '>' && !arrow) || c == ')' || c == ']') --depth;
  }
  return {};
}

bool is_structure(const Result<TypeInfo>& type, const Object& object) {
  return type && type->type.kind == TypeKind::structure && object.type.pointers == 0;
}

/// The list that `object`, whose type is called `name`, is if it has the members of `known`; nothing: it is none.
std::optional<List> list_by(const KnownList& known, const ObjectTypes& types, const Object& object,
                            std::string_view name) {
  const std::uint32_t word_size = types.arch().word_size;
  if (!name.starts_with(known.type)) return std::nullopt;
  const auto first = object_within(types, object, known.first);
  if (!first) return std::nullopt;
  const auto pointer = types.info(first->type);
  const auto last = object_within(types, object, known.end.empty() ? known.length : known.end);
  const auto number = last ? types.info(last->type) : Result<TypeInfo>(TypeInfo{});
  const auto is_word = [&](const Result<TypeInfo>& word, bool address) {
    const bool points = word && (word->type.kind == TypeKind::pointer || word->type.kind == TypeKind::text);
    return word && word->type.size == word_size && (address ? points : word->type.kind == TypeKind::integer);
  };
  if (!is_word(pointer, true) || !is_word(number, !known.end.empty())) return std::nullopt;
  if (!pointer->text.starts_with(known.pointer_text)) return std::nullopt;
  const auto element = known.named ? types.named_exactly(first_parameter(name)) : target_of(first->type, *pointer);
  if (!element) return std::nullopt;
  const auto of = types.info(*element);
  if (!of || of->type.size == 0 || of->type.size > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  const auto read = [&](Object word) {
    word.text = object.text;
    return number_of(types, word, word_size);
  };
  ListLength length{.number = read(*last),
                    .first = {},
                    .type = {.size = word_size, .is_signed = number->type.is_signed},
                    .size = of->type.size,
                    .list = object.text,
                    .result = object.result,
                    .needs = object.needs,
                    .within = object.within,
                    .alternative = object.alternative};
  if (!known.end.empty()) length.first = read(*first);
  return List{std::make_shared<const ListLength>(std::move(length)), read(*first), *element};
}

}  // namespace

Object without_wrapper(const ObjectTypes& types, Object object) {
  const auto type = types.info(object.type);
  if (!is_structure(type, object)) return object;
  for (const std::string_view name : kWrapped) {
    auto inner = object_within(types, object, name);
    const auto known = inner ? types.info(inner->type) : Result<TypeInfo>(TypeInfo{});
    if (inner && known && known->type.kind == TypeKind::array && known->type.size == type->type.size) return *inner;
  }
  return object;
}

std::optional<List> list_of(const ObjectTypes& types, const Object& object) {
  const auto type = types.info(object.type);
  if (!is_structure(type, object)) return std::nullopt;
  for (const KnownList& known : kKnownLists)
    if (auto list = list_by(known, types, object, type->text)) return list;
  return std::nullopt;
}

Object element_of(const Object& object, const List& list, std::uint64_t index) {
  Object element = object;
  element.place = BehindPointer{list.first, index * list.length->size, object.text + "'s data"};
  element.type = list.element;
  element.range = {};
  element.within = std::make_shared<const Membership>(Membership{list.length, index});
  element.text = object.followed_by(fmt::format("[{}]", index));
  element.is_sum = false;
  return element;
}

Result<bool> show_known_list(ValueList& list, const Object& object, unsigned most, const ListPosition& to,
                             const ShowPart& show) {
  const ObjectTypes& types = list.types();
  auto type = types.info(object.type);
  if (!type || type->type.kind != TypeKind::structure) return false;
  for (const std::string_view member : kOfBits) {
    if (!object_within(types, object, member)) continue;
    TRY(list.put_whole(object, *type, "std::vector<bool> keeps its elements as bits, which are not shown", to));
    return true;
  }
  const auto known = list_of(types, object);
  if (!known) return false;
  type->type.kind = TypeKind::array;
  const std::uint8_t whole =
      TRY(list.put_whole(object, *type, fmt::format("a list of elements of {} bytes", known->length->size), to));
  const auto length = TRY(list.position_of(*known->length));
  list[whole].length = length;
  for (std::uint64_t i = 0; i < most && list.has_room(); ++i) TRY(show(element_of(object, *known, i), whole));
  return true;
}

}  // namespace usdt::resolve
