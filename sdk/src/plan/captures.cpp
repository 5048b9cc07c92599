// SPDX-License-Identifier: BSD-2-Clause
#include "plan/captures.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "usdt/bpf/event.h"

namespace usdt::plan {
namespace {

struct KnownProbe {
  std::string_view name;
  std::array<TextAndLength, 4> texts;  ///< {0, 0}: none
};

/// The provider `hotspot` of Java: "DTrace Probes in HotSpot VM" in the JDK's guide, and src/hotspot/share/utilities/
/// dtrace.hpp's users in OpenJDK 8 to 25. Names are UTF-8 without a NUL, each followed by its length.
constexpr std::array kHotspot{
    KnownProbe{"class__loaded", {{{0, 1}}}},
    KnownProbe{"class__unloaded", {{{0, 1}}}},
    KnownProbe{"class__initialization__required", {{{0, 1}}}},
    KnownProbe{"class__initialization__recursive", {{{0, 1}}}},
    KnownProbe{"class__initialization__concurrent", {{{0, 1}}}},
    KnownProbe{"class__initialization__erroneous", {{{0, 1}}}},
    KnownProbe{"class__initialization__super__failed", {{{0, 1}}}},
    KnownProbe{"class__initialization__clinit", {{{0, 1}}}},
    KnownProbe{"class__initialization__error", {{{0, 1}}}},
    KnownProbe{"class__initialization__end", {{{0, 1}}}},
    KnownProbe{"thread__start", {{{0, 1}}}},
    KnownProbe{"thread__stop", {{{0, 1}}}},
    KnownProbe{"mem__pool__gc__begin", {{{0, 1}, {2, 3}}}},
    KnownProbe{"mem__pool__gc__end", {{{0, 1}, {2, 3}}}},
    KnownProbe{"method__compile__begin", {{{0, 1}, {2, 3}, {4, 5}, {6, 7}}}},
    KnownProbe{"method__compile__end", {{{0, 1}, {2, 3}, {4, 5}, {6, 7}}}},
    KnownProbe{"compiled__method__load", {{{0, 1}, {2, 3}, {4, 5}}}},
    KnownProbe{"compiled__method__unload", {{{0, 1}, {2, 3}, {4, 5}}}},
    KnownProbe{"monitor__contended__enter", {{{2, 3}}}},
    KnownProbe{"monitor__contended__entered", {{{2, 3}}}},
    KnownProbe{"monitor__contended__exit", {{{2, 3}}}},
    KnownProbe{"monitor__wait", {{{2, 3}}}},
    KnownProbe{"monitor__waited", {{{2, 3}}}},
    KnownProbe{"monitor__notify", {{{2, 3}}}},
    KnownProbe{"monitor__notifyAll", {{{2, 3}}}},
    KnownProbe{"method__entry", {{{1, 2}, {3, 4}, {5, 6}}}},
    KnownProbe{"method__return", {{{1, 2}, {3, 4}, {5, 6}}}},
    KnownProbe{"object__alloc", {{{1, 2}}}},
    KnownProbe{"vmops__request", {{{0, 1}}}},
    KnownProbe{"vmops__begin", {{{0, 1}}}},
    KnownProbe{"vmops__end", {{{0, 1}}}},
};

bool is_number_of_bytes(const Type& type) {
  return type.size <= sizeof(std::uint64_t) && !type.is_float() && type.kind != TypeKind::structure &&
         type.kind != TypeKind::array;
}

bool is_asked_for_by_type(const std::vector<Arg>& args, std::size_t n, const TextOptions& texts, bool described) {
  const auto is_it = [&](const ArgName& name) { return find_arg(args, name) == n; };
  return args[n].type.kind == TypeKind::text &&
         (texts.typed || (described && std::ranges::any_of(texts.described, is_it)));
}

bool is_asked_for_by_name(const std::vector<Arg>& args, std::size_t n, const TextOptions& texts) {
  if (args[n].result && !args[n].derived) return std::ranges::find(texts.names, "retval") != texts.names.end();
  return std::ranges::find(texts.numbers, n) != texts.numbers.end() ||
         std::ranges::find(texts.names, args[n].name()) != texts.names.end();
}

/// enum usdt_capture of argument `n`, which `may_be_text`: a length that was asked for goes before one that is known.
std::uint8_t capture_of(const std::vector<Arg>& args, std::size_t n, bool may_be_text, const Wanted& wanted) {
  const TextOptions& texts = wanted.texts;
  if (args[n].length) return capture_by(args, n, *args[n].length);
  for (const BoundedString& each : texts.bounded) {
    const auto length = find_arg(args, each.length);
    if (find_arg(args, each.text) == n && length) return capture_by(args, n, *length);
  }
  const bool named = is_asked_for_by_name(args, n, texts);
  const auto kept = std::ranges::find(wanted.asked, n, &expr::AskedText::text);
  const bool asked = named || kept != wanted.asked.end() || is_asked_for_by_type(args, n, texts, wanted.described);
  if (!asked && !texts.likely) return USDT_CAPTURE_NONE;
  for (const TextAndLength& each : wanted.lengths) {
    if (each.text == n && each.length < args.size()) return capture_by(args, n, each.length);
  }
  if (!named && kept != wanted.asked.end() && kept->length) return capture_by(args, n, *kept->length);
  if (asked) return USDT_CAPTURE_STRING;
  return may_be_text ? USDT_CAPTURE_LIKELY : USDT_CAPTURE_NONE;
}

}  // namespace

std::uint8_t capture_by(const std::vector<Arg>& args, std::size_t text, std::size_t length) {
  const std::size_t between = text < length ? length - text : text - length;
  const auto& counts = args[length].counts;
  if (between > USDT_CAPTURE_REACH || !is_number_of_bytes(args[length].type)) return USDT_CAPTURE_NONE;
  if (counts && counts->size != 1) return USDT_CAPTURE_NONE;
  if (!counts || !counts->first) return USDT_CAPTURE_BY(text, length);
  const Arg& first = args[*counts->first];
  const bool same = first.location == args[text].location && first.steps == args[text].steps;
  return same ? USDT_CAPTURE_UP_TO(text, length) : __u8{USDT_CAPTURE_NONE};
}

std::span<const TextAndLength> known_lengths(std::string_view provider, std::string_view name) noexcept {
  if (provider != "hotspot") return {};
  const auto* found = std::ranges::find(kHotspot, name, &KnownProbe::name);
  if (found == kHotspot.end()) return {};
  const auto& texts = found->texts;
  return {texts.begin(), std::ranges::find_if(texts, [](const TextAndLength& each) { return each.length == 0; })};
}

std::uint32_t assign_captures(std::vector<usdt_arg_spec>& encoded, std::vector<Arg>& args, unsigned pointer_size,
                              const Wanted& wanted) {
  std::uint32_t texts = 0;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    usdt_arg_spec& arg = encoded[i];
    const bool pointer =
        arg.kind != USDT_ARG_UNREADABLE && arg.size == pointer_size && (arg.flags & USDT_ARG_FLOAT) == 0;
    const bool is_unsigned = arg.kind != USDT_ARG_CONST && (arg.flags & USDT_ARG_SIGNED) == 0;
    const bool may_be_text = is_unsigned && i < USDT_LIKELY_ARGS && !args[i].derived;  // of those it would not be shown
    if (pointer) arg.capture = capture_of(args, i, may_be_text, wanted);
    if (arg.capture >= USDT_CAPTURE_LENGTH)
      args[i].length = static_cast<std::uint8_t>(USDT_CAPTURE_ARG(i, std::size_t{arg.capture}));
    texts += arg.capture != USDT_CAPTURE_NONE;
  }
  return texts;
}

}  // namespace usdt::plan
