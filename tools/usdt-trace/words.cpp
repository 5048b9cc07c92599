// SPDX-License-Identifier: BSD-2-Clause
#include "words.hpp"

#include <fmt/format.h>

#include "common/meaning.hpp"

namespace usdt_trace {

using usdt::HitField;

std::optional<HitField> word_of(const usdt::ValuePath& path) {
  const auto* name = std::get_if<std::string>(&path.root);
  if (name == nullptr || !path.steps.empty()) return std::nullopt;
  for (auto n = static_cast<std::uint8_t>(HitField::pid); n <= static_cast<std::uint8_t>(HitField::kstack); ++n)
    if (const auto word = static_cast<HitField>(n); *name == to_string(word)) return word;
  return std::nullopt;
}

bool is_text(HitField word) noexcept {
  return word == HitField::comm || word == HitField::provider || word == HitField::name || word == HitField::probe;
}

std::string_view why_not_shown(HitField word) noexcept {
  if (word == HitField::ustack) return "--ustack shows it below each event";
  if (word == HitField::kstack) return "--kstack shows it below each event";
  const bool asked_only = word == HitField::uid || word == HitField::gid || word == HitField::cgroup;
  return asked_only ? "events do not have it; --where and --by can ask for it" : std::string_view();
}

WordValue word_value(HitField word, const usdt::Event& event, std::uint64_t began, std::string_view probe) {
  const std::uint64_t ended = event.timestamp() + event.duration();
  switch (word) {
    case HitField::pid:
      return std::uint64_t{event.pid()};
    case HitField::tid:
      return std::uint64_t{event.tid()};
    case HitField::cpu:
      return std::uint64_t{event.cpu()};
    case HitField::nsecs:
      return ended;
    case HitField::elapsed:
      if (began == 0 || ended < began) return usdt::ArgError{"it is not known since when"};
      return ended - began;
    case HitField::duration:
      if (event.duration() == 0) return usdt::ArgError{"only calls and spans have one"};
      return event.duration();
    case HitField::ip:
      if (const auto pc = pc_of(event.plan(), event.site())) return pc->value;
      return usdt::ArgError{"a tracepoint has no address"};
    case HitField::comm:
      return std::string(event.comm());
    case HitField::provider:
      return event.probe().provider;
    case HitField::name:
      return event.probe().name;
    case HitField::probe:
      return std::string(probe);
    case HitField::uid:
    case HitField::gid:
    case HitField::cgroup:
    case HitField::ustack:
    case HitField::kstack:
      break;
  }
  return usdt::ArgError{why_not_shown(word)};
}

std::string word_text(HitField word, std::uint64_t number) {
  if (word == HitField::duration || word == HitField::elapsed)
    return usdt::tools::duration_text(static_cast<double>(number));
  return word == HitField::ip ? fmt::format("{:#x}", number) : fmt::format("{}", number);
}

}  // namespace usdt_trace
