// SPDX-License-Identifier: BSD-2-Clause
#include "record/read_arguments.hpp"

#include <memory>
#include <utility>

#include "record/definition_codes.hpp"
#include "record/limits.hpp"

namespace usdt::record {
namespace {

bool read_declaration(ByteReader& in, Arg& arg) {
  Declaration declaration;
  declaration.name = in.text();
  declaration.type = in.text();
  declaration.meaning = in.text();
  declaration.unit = in.text();
  const std::uint64_t enumerators = in.up_to(kMostEnumerators);
  for (std::uint64_t n = 0; n < enumerators && !in.failed(); ++n) {
    Enumerator& each = declaration.enumerators.emplace_back();
    each.name = in.text();
    each.bits = in.varint();
  }
  arg.declaration = std::make_shared<const Declaration>(std::move(declaration));
  return !in.failed();
}

bool read_list_facts(ByteReader& in, unsigned flags, Arg& arg) {
  if ((flags & kCounts) != 0) {
    ElementCount& counts = arg.counts.emplace();
    counts.most = in.varint();
    counts.size = in.u32();
    const auto first = record::get(in);
    if (first && *first >= USDT_MAX_ARGS) return false;
    if (first) counts.first = static_cast<std::uint8_t>(*first);
    if (counts.size == 0) return false;
  }
  if ((flags & kElement) != 0) {
    ElementOf& element = arg.element.emplace();
    element.length = in.u8();
    element.index = in.varint();
  }
  return !in.failed();
}

bool read_alternative(ByteReader& in, Arg& arg) {
  AlternativeOf alternative;
  alternative.discriminant = in.u8();
  alternative.reason = in.text();
  alternative.values.others = in.u8() != 0;
  const std::uint64_t ranges = in.up_to(kMostEnumerators);
  for (std::uint64_t n = 0; n < ranges && !in.failed(); ++n) {
    const std::uint64_t first = in.varint();
    alternative.values.ranges.emplace_back(first, in.varint());
  }
  if (in.failed() || alternative.reason.empty()) return false;
  arg.alternative = std::make_shared<const AlternativeOf>(std::move(alternative));
  return true;
}

/// Positions of other arguments are checked by who has the list.
bool read_argument(ByteReader& in, Arg& arg) {
  const std::uint64_t flags = in.varint();
  arg.result = (flags & kResult) != 0;
  arg.derived = (flags & kDerived) != 0;
  arg.hidden = (flags & kHidden) != 0;
  arg.of_end = (flags & kOfEnd) != 0;
  arg.type.is_signed = (flags & kSigned) != 0;
  arg.type.kind = static_cast<TypeKind>(in.below(static_cast<std::size_t>(TypeKind::array) + 1));
  arg.type.size = in.u32();
  arg.source = in.text();
  if ((flags & kPartOf) != 0) arg.part_of = in.u8();
  if ((flags & kLength) != 0) arg.length = in.u8();
  arg.location = Register{};
  if ((flags & kUnreadable) != 0) arg.location = Unreadable{std::string(in.text())};
  if ((flags & kConstant) != 0) arg.location = Constant{in.varint()};
  if ((flags & kDeclared) != 0 && !read_declaration(in, arg)) return false;
  const std::uint64_t steps = in.up_to(USDT_MAX_STEPS);
  for (std::uint64_t n = 0; n < steps && !in.failed(); ++n) {
    Step& step = arg.steps.emplace_back();
    step.displacement = in.varint();
    step.if_null = in.text();
    step.if_unread = in.text();
  }
  if (in.failed() || !read_list_facts(in, static_cast<unsigned>(flags), arg)) return false;
  return (flags & kAlternative) == 0 || read_alternative(in, arg);
}

/// Whether the facts about lists (a number is a length, and is itself in a list) refer to earlier lengths only, so that
/// nothing is within itself.
bool has_list_facts_in_order(const std::vector<Arg>& args, std::size_t n) {
  const auto is_length = [&](std::size_t position, std::size_t limit) {
    return position < limit && args[position].counts.has_value();
  };
  const Arg& arg = args[n];
  // A discriminant is before what it is of, and so is what it needs itself.
  if (arg.alternative) {
    const std::size_t position = arg.alternative->discriminant;
    if (position >= n || args[position].counts) return false;
    if (args[position].element && args[position].element->length >= position) return false;
  }
  if (arg.is_list() && !is_length(*arg.length, args.size())) return false;
  if (arg.element && !is_length(arg.element->length, arg.counts ? n : args.size())) return false;
  if (!arg.counts || !arg.counts->first) return true;
  if (*arg.counts->first >= args.size()) return false;
  const Arg& first = args[*arg.counts->first];
  return !first.counts && (!first.alternative || first.alternative->discriminant < n) &&
         (!first.element || is_length(first.element->length, n));
}

/// Whether a readable value has a size that Event takes for granted: the planner lets no other one through.
bool has_value_size(const Arg& arg) {
  const std::uint32_t size = arg.type.size;
  if (!arg.readable()) return !arg.why_unreadable().empty();
  if (arg.type.is_float()) return size == 2 || size == sizeof(float) || size == sizeof(double);
  return size >= 1 && size <= sizeof(std::uint64_t);
}

}  // namespace

bool read_arguments(ByteReader& in, std::vector<Arg>& args, std::uint64_t& parts) {
  const std::uint64_t count = in.up_to(USDT_MAX_ARGS);
  for (std::uint64_t n = 0; n < count; ++n) {
    if (!read_argument(in, args.emplace_back())) return false;
    const Declaration* declaration = args.back().declaration.get();
    parts += 1 + args.back().steps.size() + (declaration ? declaration->enumerators.size() : 0);
    if (args.back().alternative) parts += args.back().alternative->values.ranges.size();
    if (!has_value_size(args.back())) return false;
    // Members come behind what they are part of, so that nothing is part of itself.
    if (args.back().part_of && *args.back().part_of >= n) return false;
    if (args.back().length && *args.back().length >= count) return false;
  }
  for (std::size_t n = 0; n < args.size(); ++n)
    if (!has_list_facts_in_order(args, n)) return false;
  return true;
}

}  // namespace usdt::record
