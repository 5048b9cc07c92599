// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "usdt/kernel.hpp"

namespace usdt {
namespace {

struct Prefix {
  std::string_view text;
  KernelKind kind;
};

/// The first of a kind is how it is printed; the others are bpftrace's names.
constexpr std::array kPrefixes = {
    Prefix{"kprobe", {KernelFamily::kprobe, KernelMoment::entry}},
    Prefix{"k", {KernelFamily::kprobe, KernelMoment::entry}},
    Prefix{"kretprobe", {KernelFamily::kprobe, KernelMoment::exit}},
    Prefix{"kr", {KernelFamily::kprobe, KernelMoment::exit}},
    Prefix{"ksession", {KernelFamily::kprobe, KernelMoment::call}},
    Prefix{"fentry", {KernelFamily::trampoline, KernelMoment::entry}},
    Prefix{"fexit", {KernelFamily::trampoline, KernelMoment::exit}},
    Prefix{"fsession", {KernelFamily::trampoline, KernelMoment::call}},
    Prefix{"kfunc", {KernelFamily::any, KernelMoment::entry}},
    Prefix{"kretfunc", {KernelFamily::any, KernelMoment::exit}},
    Prefix{"kcall", {KernelFamily::any, KernelMoment::call}},
    Prefix{"raw_tp", {KernelFamily::raw_tp, KernelMoment::tracepoint}},
    Prefix{"rawtracepoint", {KernelFamily::raw_tp, KernelMoment::tracepoint}},
    Prefix{"rt", {KernelFamily::raw_tp, KernelMoment::tracepoint}},
    Prefix{"tp_btf", {KernelFamily::tp_btf, KernelMoment::tracepoint}},
};

/// The prefix `text` starts with, its ':' included; null where there is none.
const Prefix* find_prefix(std::string_view text) noexcept {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return nullptr;
  for (const Prefix& prefix : kPrefixes) {
    if (prefix.text == text.substr(0, colon)) return &prefix;
  }
  return nullptr;
}

tl::unexpected<Error> bad_syntax(std::string message, std::size_t column) {
  return fail(Error{ErrorKind::syntax, std::move(message), 0, static_cast<std::uint32_t>(column)});
}

}  // namespace

std::string_view to_string(KernelKind kind) noexcept {
  for (const Prefix& prefix : kPrefixes) {
    if (prefix.kind == kind) return prefix.text;
  }
  return "unknown";
}

bool KernelPattern::is_kernel(std::string_view text) noexcept { return find_prefix(text) != nullptr; }

Result<KernelPattern> KernelPattern::parse(std::string_view text) {
  const Prefix* prefix = find_prefix(text);
  if (!prefix) {
    return bad_syntax(
        fmt::format("'{}' starts with no kernel prefix: write kprobe:NAME, fentry:NAME or raw_tp:NAME", text), 0);
  }
  const std::size_t start = prefix->text.size() + 1;
  const std::string_view rest = text.substr(start);
  const std::size_t colon = rest.find(':');
  const std::size_t name_at = colon == rest.npos ? 0 : colon + 1;
  const std::string_view name = rest.substr(name_at);
  if (colon == 0) return bad_syntax(fmt::format("empty module in '{}'", text), start);
  if (const std::size_t extra = name.find(':'); extra != name.npos) {
    return bad_syntax(fmt::format("too many ':' in '{}': write {}:MODULE:NAME", text, prefix->text),
                      start + name_at + extra);
  }
  if (name.empty()) return bad_syntax(fmt::format("empty name in '{}'", text), text.size());
  if (const std::size_t plus = name.find('+'); plus != name.npos) {
    return bad_syntax(
        fmt::format("'{}' asks for an offset: functions are traced at their entry and exit only; write {}", text,
                    text.substr(0, start + name_at + plus)),
        start + name_at + plus);
  }
  KernelPattern pattern;
  pattern.kind = prefix->kind;
  pattern.name = name;
  if (colon != rest.npos) pattern.module = rest.substr(0, colon);
  return pattern;
}

std::string KernelPattern::str() const {
  if (module.empty()) return fmt::format("{}:{}", to_string(kind), name);
  return fmt::format("{}:{}:{}", to_string(kind), module, name);
}

}  // namespace usdt
