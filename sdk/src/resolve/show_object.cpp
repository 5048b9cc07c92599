// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/show_object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/try.hpp"
#include "resolve/known_alternatives.hpp"
#include "resolve/known_interfaces.hpp"
#include "resolve/known_lists.hpp"
#include "resolve/known_texts.hpp"
#include "resolve/show_structure.hpp"

namespace usdt::resolve {

ShowPart ObjectShower::part_shower(unsigned depth) {
  return [this, depth](Object part, std::uint8_t whole) { return show(std::move(part), depth, {.part_of = whole}); };
}

Result<void> ObjectShower::show_known(const Object& object, const TypeInfo& type, std::size_t at) {
  TRY(show_known(object, type, depth_.structures, {.at = at}));
  return {};
}

/// False: it is nothing that is known.
Result<bool> ObjectShower::show_known(const Object& object, const TypeInfo& type, unsigned depth,
                                      const ListPosition& to) {
  const ShowPart show_part = part_shower(depth);
  if (TRY(show_known_text(list_, object, type, to))) return true;
  if (TRY(show_known_alternatives(list_, object, type, to, show_part))) return true;
  if (TRY(show_known_interface(list_, object, type, to, show_part))) return true;
  return depth > 0 ? show_known_list(list_, object, depth_.elements, to, part_shower(depth - 1))
                   : show_known_list(list_, object, 0, to, show_part);
}

Result<void> ObjectShower::show(Object object, unsigned depth, const ListPosition& to) {
  object = TRY(without_reference(list_.types(), std::move(object)));
  if (object.length) {
    TRY(list_.put_count(*object.length, object.text, false, {.at = to.at}));
    return {};
  }
  object = without_wrapper(list_.types(), std::move(object));
  const auto type = TRY(list_.types().info(object.type));
  const bool has_parts = type.type.kind == TypeKind::structure || type.type.kind == TypeKind::array;
  if (!type.parts.empty()) return show_number_parts(object, type, to);
  if (!has_parts || !type.no_number.empty()) return show_number(object, type, to);
  if (TRY(show_known(object, type, depth, to))) return {};
  return show_whole(object, type, depth, to);
}

Result<void> ObjectShower::show_number(const Object& object, TypeInfo type, const ListPosition& to) {
  Number number = number_of(list_.types(), object, type.type.size);
  if (!type.no_number.empty()) type.type.kind = TypeKind::integer;  // nothing in it is shown
  TRY(list_.put(list_.make(object, type, std::move(number)), object, to));
  return {};
}

/// A number that no program reads at once, and what it is read by.
Result<void> ObjectShower::show_number_parts(const Object& object, const TypeInfo& type, const ListPosition& to) {
  const std::uint8_t whole =
      TRY(list_.put_whole(object, type, fmt::format("{} bytes, read in parts", type.type.size), to));
  for (const NumberPart& each : type.parts) {
    Object part = object;
    part.place = moved(std::move(part.place), each.offset);
    part.text = object.followed_by("." + each.name);
    TypeInfo of_part;
    of_part.type = each.type;
    Number number = number_at(part.place, each.type.size, {.swapped = type.swapped}, object.text, list_.types().arch());
    TRY(list_.put(list_.make(part, of_part, std::move(number)), object, {.part_of = whole}));
  }
  return {};
}

/// A struct or array, and its members or elements.
Result<void> ObjectShower::show_whole(const Object& object, const TypeInfo& type, unsigned depth,
                                      const ListPosition& to) {
  const bool structure = type.type.kind == TypeKind::structure;
  const std::uint8_t whole = TRY(list_.put_whole(
      object, type,
      structure || type.count ? fmt::format("{} of {} bytes", structure ? "struct" : "array", type.type.size)
                              : "an array of a number of elements that is not known",
      to));
  if (!structure && has_characters(type)) return show_characters(object, type, whole);
  if (depth == 0) return {};
  if (!structure) return show_elements(object, type, depth - 1, whole);
  return show_structure(list_, object, whole, depth_.members, part_shower(depth - 1));
}

/// A text that is not in memory: all of it, or why not.
Result<void> ObjectShower::show_characters(const Object& object, const TypeInfo& type, std::uint8_t whole) {
  const std::size_t first = list_.size();
  TRY(show_elements(object, type, 0, whole));
  for (std::size_t n = first; n < list_.size(); ++n) {
    if (list_[n].readable()) continue;
    list_[whole].location = Unreadable{.reason = std::string(list_[n].why_unreadable())};
    list_.shorten_to(first);
  }
  return {};
}

bool ObjectShower::has_characters(const TypeInfo& array) const {
  const auto element = list_.types().info({array.target});
  return element && element->is_char && element->type.size == 1;
}

Result<void> ObjectShower::show_elements(const Object& object, const TypeInfo& type, unsigned depth,
                                         std::uint8_t whole) {
  const auto element = TRY(list_.types().info({type.target}));
  const std::uint64_t all = type.count.value_or(0);
  // A text in registers is shown as a whole, as in memory.
  constexpr unsigned kMostInRegisters = 16;
  const unsigned most = has_characters(type) ? std::max(depth_.elements, kMostInRegisters) : depth_.elements;
  std::uint64_t i = 0;
  for (; i < std::min<std::uint64_t>(all, most) && list_.has_room(); ++i) {
    Object one = object;
    one.place = moved(std::move(one.place), i * element.type.size);
    one.type = {type.target};
    one.text = object.followed_by(fmt::format("[{}]", i));
    one.is_sum = false;
    TRY(show(std::move(one), depth, {.part_of = whole}));
  }
  return list_.say_left_out(object, all, i, whole);
}

}  // namespace usdt::resolve
