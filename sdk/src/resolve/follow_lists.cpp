// SPDX-License-Identifier: BSD-2-Clause
// Lists that libraries keep as the address of their elements and a length, or as two addresses. How many elements there
// are is known at the hit only: the length is read with the elements, and whoever shows them compares.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/try.hpp"
#include "resolve/follow.hpp"

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

}  // namespace

Follower::Object Follower::without_wrapper(Object object) const {
  const auto type = info(object.type);
  if (!type || type->type.kind != TypeKind::structure || object.type.pointers > 0) return object;
  for (const std::string_view name : kWrapped) {
    auto inner = object_within(object, name);
    const auto known = inner ? info(inner->type) : Result<TypeInfo>(TypeInfo{});
    if (inner && known && known->type.kind == TypeKind::array && known->type.size == type->type.size) return *inner;
  }
  return object;
}

std::optional<Follower::List> Follower::list_of(const Object& object) const {
  const auto type = info(object.type);
  if (!type || type->type.kind != TypeKind::structure || object.type.pointers > 0) return std::nullopt;
  for (const KnownList& known : kKnownLists) {
    if (!type->text.starts_with(known.type)) continue;
    const auto first = object_within(object, known.first);
    if (!first) continue;
    const auto pointer = info(first->type);
    const auto last = object_within(object, known.end.empty() ? known.length : known.end);
    const auto number = last ? info(last->type) : Result<TypeInfo>(TypeInfo{});
    const auto is_word = [&](const Result<TypeInfo>& word, bool address) {
      const bool points = word && (word->type.kind == TypeKind::pointer || word->type.kind == TypeKind::text);
      return word && word->type.size == arch_.word_size && (address ? points : word->type.kind == TypeKind::integer);
    };
    if (!is_word(pointer, true) || !is_word(number, !known.end.empty())) continue;
    if (!pointer->text.starts_with(known.pointer_text)) continue;
    const auto element = known.named ? named_exactly(first_parameter(type->text)) : target_of(first->type, *pointer);
    if (!element) continue;
    const auto of = info(*element);
    if (!of || of->type.size == 0 || of->type.size > std::numeric_limits<std::int32_t>::max()) continue;
    const auto read = [&](Object word) {
      word.text = object.text;
      return number_of(word, arch_.word_size);
    };
    ListLength length{.number = read(*last),
                      .first = {},
                      .type = {.size = arch_.word_size, .is_signed = number->type.is_signed},
                      .size = of->type.size,
                      .list = object.text,
                      .result = object.result,
                      .needs = object.needs,
                      .within = object.within,
                      .alternative = object.alternative};
    if (!known.end.empty()) length.first = read(*first);
    return List{std::make_shared<const ListLength>(std::move(length)), read(*first), *element};
  }
  return std::nullopt;
}

/// The type that has this name and no other that it might be meant for.
std::optional<Follower::TypeRef> Follower::named_exactly(std::string_view name) const {
  if (name.empty()) return std::nullopt;
  const auto found = types_->find_all(name);
  if (!found || found->size() != 1) return std::nullopt;
  const TypeRef type{found->front()};
  const auto known = info(type);
  return known && known->text == name ? std::optional(type) : std::nullopt;
}

Follower::Object Follower::element_of(const Object& object, const List& list, std::uint64_t index) const {
  Object element = object;
  element.place = BehindPointer{list.first, index * list.length->size, object.text + "'s data"};
  element.type = list.element;
  element.range = {};
  element.within = std::make_shared<const Membership>(Membership{list.length, index});
  element.text = fmt::format("{}[{}]", object.is_sum ? fmt::format("({})", object.text) : object.text, index);
  element.is_sum = false;
  return element;
}

Result<bool> Follower::show_known_list(const Object& object, unsigned depth, std::optional<std::size_t> at,
                                       std::optional<std::uint8_t> part_of) {
  const auto type = info(object.type);
  if (!type || type->type.kind != TypeKind::structure) return false;
  for (const std::string_view member : kOfBits) {
    if (!object_within(object, member)) continue;
    Arg list = make(object, *type, {Unreadable{"std::vector<bool> keeps its elements as bits, which are not shown"}});
    list.part_of = part_of;
    std::size_t where = 0;
    TRY(place_in_whole(object, list));
    auto stored = put(std::move(list), at, where);
    return stored ? Result<bool>(true) : fail(std::move(stored.error()));
  }
  const auto list = list_of(object);
  if (!list) return false;
  TypeInfo shown = *type;
  shown.type.kind = TypeKind::array;
  Arg holder = make(object, shown, {Unreadable{fmt::format("a list of elements of {} bytes", list->length->size)}});
  holder.part_of = part_of;
  TRY(place_in_whole(object, holder));
  std::size_t where = 0;
  TRY(put(std::move(holder), at, where));
  auto count = TRY(hidden_count(*list->length));
  list_.args[where].length = count;
  for (std::uint64_t i = 0; depth > 0 && i < depth_.elements && has_room(); ++i) {
    TRY(show(element_of(object, *list, i), depth - 1, std::nullopt, static_cast<std::uint8_t>(where)));
  }
  return true;
}

/// The position of what is read of a list, or of alternatives, already. (Variables in scopes within each other may have
/// the same name.)
std::optional<std::uint8_t> Follower::read_of_list(const Number& number, std::string_view name) const {
  const auto found = std::ranges::find_if(list_.args, [&](const Arg& arg) {
    return arg.derived && arg.name() == name && (arg.counts || arg.hidden) && arg.location == number.location &&
           arg.steps == number.steps;
  });
  if (found == list_.args.end()) return std::nullopt;
  return static_cast<std::uint8_t>(found - list_.args.begin());
}

Result<std::uint8_t> Follower::hidden_count(const ListLength& length) {
  const std::string name = fmt::format("the length of {}", length.list);
  if (const auto known = read_of_list(length.number, name)) return *known;
  if (const auto shown = read_of_list(length.number, length.list + ".size")) return *shown;
  auto position = put_count(length, name, true, std::nullopt);
  return position ? Result<std::uint8_t>(static_cast<std::uint8_t>(*position)) : fail(std::move(position.error()));
}

Result<std::size_t> Follower::put_count(const ListLength& length, std::string name, bool hidden,
                                        std::optional<std::size_t> at) {
  Object object;
  object.text = std::move(name);
  object.result = length.result;
  object.needs = length.needs;
  TypeInfo number;
  number.type = length.type;
  number.text = length.type.is_signed ? "long" : "unsigned long";
  Arg count = make(object, number, length.number);
  count.hidden = hidden;
  count.counts = ElementCount{.most = length.most(arch_.word_size), .size = length.size};
  object.within = length.within;
  object.alternative = length.alternative;
  TRY(place_in_whole(object, count));
  if (length.first) {
    Object of_first = object;
    of_first.text = fmt::format("the first element of {}", length.list);
    Arg first = make(of_first, number, *length.first);
    first.hidden = true;
    TRY(place_in_whole(object, first));
    const auto known = read_of_list(*length.first, of_first.text);
    auto position = known ? Result<std::size_t>(*known) : append(std::move(first));
    if (!position) return position;
    count.counts->first = static_cast<std::uint8_t>(*position);
  }
  std::size_t where = 0;
  TRY(put(std::move(count), at, where));
  return where;
}

Result<void> Follower::place_in_list(const std::shared_ptr<const Membership>& within, Arg& arg) {
  if (!within) return {};
  auto length = TRY(hidden_count(*within->length));
  arg.element = ElementOf{length, within->index};
  return {};
}

}  // namespace usdt::resolve
