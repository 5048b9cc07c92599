// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/value_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/try.hpp"

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

Arg ValueList::make(const Object& object, const TypeInfo& type, Number number) const {
  Declaration declaration{.name = object.text, .type = type.text, .enumerators = {}};
  if (object.result && object.text == "retval") declaration.name.clear();
  const TypeGraph* graph = types_.graph();
  if (type.type.kind == TypeKind::enumeration && graph != nullptr && object.type.pointers == 0) {
    declaration.enumerators = graph->enumerators(object.type.id);
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

Result<std::size_t> ValueList::append(Arg arg) {
  if (args_.size() >= USDT_MAX_ARGS)
    return fail(ErrorKind::limit, fmt::format("more than {} values at one point", USDT_MAX_ARGS));
  arg.derived = true;
  args_.push_back(std::move(arg));
  return args_.size() - 1;
}

Result<std::size_t> ValueList::put(Arg arg, const Object& object, const ListPosition& to) {
  arg.part_of = to.part_of;
  TRY(place_in_whole(object, arg));
  if (!to.at) return append(std::move(arg));
  args_[*to.at] = std::move(arg);
  return *to.at;
}

Result<std::uint8_t> ValueList::put_whole(const Object& object, const TypeInfo& type, std::string why,
                                          const ListPosition& to) {
  const auto position = TRY(put(make(object, type, {Unreadable{.reason = std::move(why)}}), object, to));
  return static_cast<std::uint8_t>(position);
}

Result<void> ValueList::say_left_out(const Object& object, std::uint64_t all, std::uint64_t shown, std::uint8_t whole) {
  if (shown >= all || args_.size() >= USDT_MAX_ARGS) return {};
  Object rest;
  rest.text = object.text + "...";
  Arg arg = make(rest, {}, {Unreadable{.reason = fmt::format("{} more", all - shown)}});
  TRY(put(std::move(arg), object, {.part_of = whole}));
  return {};
}

Result<void> ValueList::place_in_whole(const Object& object, Arg& arg) {
  if (object.within) {
    const auto length = TRY(position_of(*object.within->length));
    arg.element = ElementOf{length, object.within->index};
  }
  if (object.alternative) {
    const Alternative& alternative = *object.alternative;
    const auto position = TRY(position_of(alternative));
    arg.alternative =
        std::make_shared<const AlternativeOf>(AlternativeOf{position, alternative.values, alternative.reason});
  }
  return {};
}

/// The position of what is read of a list, or of alternatives, already. (Variables in scopes within each other may have
/// the same name.)
std::optional<std::uint8_t> ValueList::find_read(const Number& number, std::string_view name) const {
  const auto found = std::ranges::find_if(args_, [&](const Arg& arg) {
    return arg.derived && arg.name() == name && (arg.counts || arg.hidden) && arg.location == number.location &&
           arg.steps == number.steps;
  });
  if (found == args_.end()) return std::nullopt;
  return static_cast<std::uint8_t>(found - args_.begin());
}

Result<std::uint8_t> ValueList::position_of(const Alternative& alternative) {
  if (const auto known = find_read(alternative.discriminant, alternative.name)) return *known;
  Object object;
  object.text = alternative.name;
  object.result = alternative.result;
  object.needs = alternative.needs;
  object.within = alternative.within;
  object.alternative = alternative.outer;
  TypeInfo number;
  number.type = alternative.type;
  Arg discriminant = make(object, number, alternative.discriminant);
  discriminant.hidden = true;
  const auto position = TRY(put(std::move(discriminant), object, {}));
  return static_cast<std::uint8_t>(position);
}

Result<std::uint8_t> ValueList::position_of(const ListLength& length) {
  std::string name = fmt::format("the length of {}", length.list);
  if (const auto known = find_read(length.number, name)) return *known;
  if (const auto shown = find_read(length.number, length.list + ".size")) return *shown;
  const auto position = TRY(put_count(length, std::move(name), true, {}));
  return static_cast<std::uint8_t>(position);
}

Result<std::size_t> ValueList::put_count(const ListLength& length, std::string name, bool hidden,
                                         const ListPosition& to) {
  Object object;
  object.text = std::move(name);
  object.result = length.result;
  object.needs = length.needs;
  object.within = length.within;
  object.alternative = length.alternative;
  TypeInfo number;
  number.type = length.type;
  number.text = length.type.is_signed ? "long" : "unsigned long";
  Arg count = make(object, number, length.number);
  count.hidden = hidden;
  count.counts = ElementCount{.most = length.most(types_.arch().word_size), .size = length.size};
  if (length.first) {
    Object of_first = object;
    of_first.text = fmt::format("the first element of {}", length.list);
    Arg first = make(of_first, number, *length.first);
    first.hidden = true;
    const auto known = find_read(*length.first, of_first.text);
    const auto position = TRY(known ? Result<std::size_t>(*known) : put(std::move(first), of_first, {}));
    count.counts->first = static_cast<std::uint8_t>(position);
  }
  return put(std::move(count), object, to);
}

}  // namespace usdt::resolve
