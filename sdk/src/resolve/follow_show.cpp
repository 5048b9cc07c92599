// SPDX-License-Identifier: BSD-2-Clause
// What an object is shown by: arguments of its own, for its members and elements, too.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/try.hpp"
#include "resolve/follow.hpp"
#include "usdt/bpf/spec.h"

namespace usdt::resolve {
namespace {

/// Enumerators that are kept of one type: what else is shown is a number.
constexpr std::size_t kMostEnumerators = 4096;

/// A member that debug information has a number for, which knows nothing of its sign.
void extend_constant(Arg& arg) {
  auto* constant = std::get_if<Constant>(&arg.location);
  if (constant == nullptr || !arg.steps.empty() || arg.type.size == 0 || arg.type.size >= 8) return;
  const unsigned spare = 64 - 8 * arg.type.size;
  const std::uint64_t top = constant->bits << spare;
  const bool is_signed = arg.type.is_signed && !arg.type.is_float();
  constant->bits = is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(top) >> spare) : top >> spare;
}

}  // namespace

Result<std::size_t> Follower::append(Arg arg) {
  if (list_.args.size() >= USDT_MAX_ARGS)
    return fail(ErrorKind::limit, fmt::format("more than {} values at one point", USDT_MAX_ARGS));
  arg.derived = true;
  list_.args.push_back(std::move(arg));
  return list_.args.size() - 1;
}

Result<void> Follower::put(Arg arg, std::optional<std::size_t> at, std::size_t& where) {
  if (at) {
    where = *at;
    list_.args[where] = std::move(arg);
    return {};
  }
  auto appended = TRY(append(std::move(arg)));
  where = appended;
  return {};
}

Arg Follower::make(const Object& object, const TypeInfo& type, Number number) const {
  Declaration declaration{.name = object.text, .type = type.text, .enumerators = {}};
  if (object.result && object.text == "retval") declaration.name.clear();
  if (type.type.kind == TypeKind::enumeration && types_ != nullptr && object.type.pointers == 0) {
    declaration.enumerators = types_->enumerators(object.type.id);
    declaration.enumerators.resize(std::min(declaration.enumerators.size(), kMostEnumerators));
  }
  Arg arg;
  arg.type = type.type;
  arg.location = std::move(number.location);
  arg.declaration = std::make_shared<const Declaration>(std::move(declaration));
  arg.needs = object.needs;
  arg.result = object.result;
  arg.steps = std::move(number.steps);
  extend_constant(arg);
  if (!arg.readable()) arg.steps.clear();
  if (arg.steps.size() > USDT_MAX_STEPS) {
    arg.location = Unreadable{.reason = fmt::format("more than {} reads to one value", USDT_MAX_STEPS)};
    arg.steps.clear();
  }
  return arg;
}

void Follower::open(std::size_t n, bool asked) {
  if (types_ == nullptr || n >= list_.types.size()) return;
  if (list_.args[n].length) return;  // a text whose length is another argument (Fortran)
  Object object = object_of(n);
  auto referred = without_reference(object);
  const auto type = referred ? info(referred->type) : Result<TypeInfo>(TypeInfo{});
  const bool by_reference = std::holds_alternative<BehindPointer>(referred ? referred->place : object.place);
  if (!type) return;
  if (type->type.kind != TypeKind::structure && type->type.kind != TypeKind::array && type->parts.empty()) {
    if (!by_reference || type->type.size == 0) return;
    asked = true;
  }
  const std::vector<Arg> before = list_.args;
  const auto shown = by_reference && !asked
                         ? show_known(*referred, *type, depth_.structures, n, std::nullopt)
                         : show(std::move(*referred), depth_.structures, n, std::nullopt).map([] { return true; });
  if (!shown) list_.args = before;
}

/// Shows a text or list that is known; false: it is neither.
Result<bool> Follower::show_known(const Object& object, const TypeInfo& type, unsigned depth,
                                  std::optional<std::size_t> at, std::optional<std::uint8_t> part_of) {
  auto text = show_known_text(object, type, at, part_of);
  if (!text || *text) return text;
  auto alternatives = show_known_alternatives(object, type, depth, at, part_of);
  if (!alternatives || *alternatives) return alternatives;
  auto interface = show_known_interface(object, type, depth, at, part_of);
  if (!interface || *interface) return interface;
  return show_known_list(object, depth, at, part_of);
}

Result<void> Follower::show(Object object, unsigned depth, std::optional<std::size_t> at,
                            std::optional<std::uint8_t> part_of) {
  auto referred = TRY(without_reference(std::move(object)));
  object = std::move(referred);
  if (object.length) {
    auto count = put_count(*object.length, object.text, false, at);
    return count ? Result<void>{} : fail(std::move(count.error()));
  }
  object = without_wrapper(std::move(object));
  auto type = TRY(info(object.type));
  const bool structure = type.type.kind == TypeKind::structure;
  std::size_t where = 0;
  if (!type.parts.empty()) return show_number_parts(object, type, at, part_of);
  if ((!structure && type.type.kind != TypeKind::array) || !type.no_number.empty()) {
    Arg arg = make(object, type, number_of(object, type.type.size));
    if (!type.no_number.empty()) arg.type.kind = TypeKind::integer;  // nothing in it is shown
    arg.part_of = part_of;
    TRY(place_in_whole(object, arg));
    return put(std::move(arg), at, where);
  }
  auto known = show_known(object, type, depth, at, part_of);
  if (!known) return fail(std::move(known.error()));
  if (*known) return {};
  Arg holder = make(
      object, type,
      Number{Unreadable{.reason = structure || type.count
                                      ? fmt::format("{} of {} bytes", structure ? "struct" : "array", type.type.size)
                                      : "an array of a number of elements that is not known"}});
  holder.part_of = part_of;
  TRY(place_in_whole(object, holder));
  const bool text = !structure && has_characters(type);
  if (auto stored = put(std::move(holder), at, where); !stored || (depth == 0 && !text)) return stored;
  const auto number = static_cast<std::uint8_t>(where);
  if (text) return show_characters(object, type, number);
  if (!structure) return show_elements(object, type, depth - 1, number);
  Shown shown;
  TRY(count_names(object.type.id, 0, shown));
  TRY(show_members(object, depth - 1, number, shown));
  if (shown.all == 0 && object.alternative) return say_empty(object, number);
  return say_left_out(object, shown.all, shown.members, number);
}

/// A number that no program reads at once, and what it is read by.
Result<void> Follower::show_number_parts(const Object& object, const TypeInfo& type, std::optional<std::size_t> at,
                                         std::optional<std::uint8_t> part_of) {
  Arg holder = make(object, type, Number{Unreadable{fmt::format("{} bytes, read in parts", type.type.size)}});
  holder.part_of = part_of;
  TRY(place_in_whole(object, holder));
  std::size_t where = 0;
  TRY(put(std::move(holder), at, where));
  for (const NumberPart& each : type.parts) {
    Object part = object;
    part.place = moved(std::move(part.place), each.offset);
    part.text = object.followed_by("." + each.name);
    TypeInfo of_part;
    of_part.type = each.type;
    Arg arg = make(part, of_part, number_at(part.place, each.type.size, {.swapped = type.swapped}, object.text, arch_));
    arg.part_of = static_cast<std::uint8_t>(where);
    TRY(place_in_whole(object, arg));
    TRY(append(std::move(arg)));
  }
  return {};
}

Result<void> Follower::count_names(TypeId type, unsigned depth, Shown& shown) const {
  auto members = TRY(members_of(type));
  for (const MemberInfo& each : members) {
    const bool nested = each.is_base || each.name.empty();
    if (!nested) ++shown.names[each.name];
    if (!nested || depth == kMostNested) continue;
    if (each.is_virtual && std::ranges::find(shown.virtual_bases, each.type) != shown.virtual_bases.end()) continue;
    if (each.is_virtual) {
      shown.virtual_bases.push_back(each.type);
      const auto left_out = members_of(each.type);
      if (left_out) shown.all += static_cast<unsigned>(std::ranges::count(*left_out, false, &MemberInfo::is_base));
      continue;
    }
    TRY(count_names(each.type, depth + 1, shown));
  }
  return {};
}

/// A name that several have is that of the struct's own; in base classes it has theirs before it.
Result<void> Follower::show_members(const Object& object, unsigned depth, std::uint8_t holder, Shown& shown) {
  auto members = TRY(members_of(object.type.id));
  for (const MemberInfo& each : members) {
    if (each.is_virtual) continue;
    Object member = object;
    member.alternative = alternative_in(object, each);
    member.place = moved(std::move(member.place), each.offset);
    member.type = {each.type};
    member.range = {each.shift, each.bits};
    const bool nested = each.is_base || each.name.empty();
    if (nested && shown.nested == kMostNested) continue;
    if (!nested) ++shown.all;
    if (!nested && (shown.members == depth_.members || !has_room())) continue;
    Result<void> added;
    if (nested) {
      ++shown.nested;
      const std::string outer = shown.of;
      if (const auto base = info(member.type); each.is_base && base) shown.of += base->text + "::";
      added = show_members(member, depth, holder, shown);
      shown.of = outer;
      --shown.nested;
    } else {
      ++shown.members;
      const bool one_of_several = shown.names[each.name] > 1;
      member.text = object.followed_by("." + (one_of_several ? shown.of : "") + each.name);
      member.is_sum = false;
      added = show(std::move(member), depth, std::nullopt, holder);
    }
    if (!added) return added;
  }
  return {};
}

/// What is left out is said, by an entry of its own.
Result<void> Follower::say_left_out(const Object& object, std::uint64_t all, std::uint64_t shown, std::uint8_t holder) {
  if (shown >= all || list_.args.size() >= USDT_MAX_ARGS) return {};
  Object rest;
  rest.text = object.text + "...";
  Arg arg = make(rest, {}, {Unreadable{.reason = fmt::format("{} more", all - shown)}});
  arg.part_of = holder;
  TRY(place_in_whole(object, arg));
  auto appended = append(std::move(arg));
  return appended ? Result<void>{} : fail(std::move(appended.error()));
}

/// A variant that is nothing but its name: a hidden part tells it from one whose parts are not known.
Result<void> Follower::say_empty(const Object& object, std::uint8_t holder) {
  Object nothing;
  nothing.text = object.text;
  TypeInfo number;
  number.type = {.size = 8};
  Arg arg = make(nothing, number, Number{Constant{0}});
  arg.part_of = holder;
  arg.hidden = true;
  auto appended = append(std::move(arg));
  return appended ? Result<void>{} : fail(std::move(appended.error()));
}

/// A text that is not in memory: all of it, or why not.
Result<void> Follower::show_characters(const Object& object, const TypeInfo& type, std::uint8_t holder) {
  const std::size_t first = list_.args.size();
  TRY(show_elements(object, type, 0, holder));
  const auto unread = std::find_if(list_.args.begin() + static_cast<std::ptrdiff_t>(first), list_.args.end(),
                                   [](const Arg& each) { return !each.readable(); });
  if (unread == list_.args.end()) return {};
  list_.args[holder].location = Unreadable{.reason = std::string(unread->why_unreadable())};
  list_.args.resize(first);
  return {};
}

bool Follower::has_characters(const TypeInfo& array) const {
  const auto element = info({array.target});
  return element && element->is_char && element->type.size == 1;
}

Result<void> Follower::show_elements(const Object& object, const TypeInfo& type, unsigned depth, std::uint8_t holder) {
  auto element = TRY(info({type.target}));
  const std::uint64_t all = type.count.value_or(0);
  std::uint64_t i = 0;
  // A text in registers is shown as a whole, as in memory.
  constexpr unsigned kMostInRegisters = 16;
  const unsigned most = has_characters(type) ? std::max(depth_.elements, kMostInRegisters) : depth_.elements;
  for (; i < std::min<std::uint64_t>(all, most) && has_room(); ++i) {
    Object one = object;
    one.place = moved(std::move(one.place), i * element.type.size);
    one.type = {type.target};
    one.text = object.followed_by(fmt::format("[{}]", i));
    one.is_sum = false;
    TRY(show(std::move(one), depth, std::nullopt, holder));
  }
  return say_left_out(object, all, i, holder);
}

}  // namespace usdt::resolve
