// SPDX-License-Identifier: BSD-2-Clause
#include "event/event_question.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "expr/attributes.hpp"
#include "expr/context_words.hpp"
#include "expr/row.hpp"
#include "expr/site_words.hpp"
#include "plan/find_value.hpp"
#include "usdt/table.hpp"

namespace usdt::event {
std::optional<std::uint64_t> EventFacts::value(std::size_t position) const {
  const Value value = event_.value(position);
  if (std::holds_alternative<ArgError>(value)) return std::nullopt;
  if (const auto* natural = std::get_if<std::uint64_t>(&value)) return *natural;
  const auto* args = reinterpret_cast<const usdt_event_arg*>(event_.record().data() + sizeof(usdt_event));
  return args[position].bits;
}

std::optional<std::string_view> EventFacts::text(std::size_t position) const {
  const auto text = event_.captured_text(position);
  if (!text) return std::nullopt;
  return text->bytes;
}

bool EventFacts::is_cut(std::size_t position) const {
  const auto text = event_.captured_text(position);
  return text && text->truncated;
}

std::optional<std::uint64_t> EventFacts::field(HitField field) const {
  const auto number = number_of(event_, field);
  return field == HitField::ip ? number.value_or(0) : number;  // as programs have it of a tracepoint
}

std::optional<std::string> EventFacts::site_text(HitField field) const {
  const PlannedProbe& probe = event_.probe();
  return expr::site_text(field, {.provider = probe.provider, .name = probe.name});
}

std::optional<std::string> EventFacts::context_bytes(HitField field) const {
  const auto text = context_text(event_, field);
  return text ? expr::context_bytes(field, *text) : std::nullopt;
}

std::optional<std::string> EventFacts::trace_attribute(std::string_view key) const {
  auto text = attribute_text(event_, key);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

const Result<Stack>* EventFacts::stack(HitField field) const {
  return field == HitField::kstack ? stacks_.kernel : stacks_.user;
}

/// Looks at the sites that the plan has by now.
const EventQuestion::Site& EventQuestion::know(Index<PlannedSite> site) {
  if (sites_.size() == plan_.sites.size()) return sites_[site.value];
  sites_.assign(plan_.sites.size(), {.has_events = !plan_.spans, .lasts = false});
  for (const AttachGroup& group : plan_.groups)
    for (const Index<PlannedSite> each : group.sites) sites_[each.value].lasts = group.moment == Moment::both;
  for (const Index<PlannedSite> each : plan_.sites.indices())
    if (const auto& span = plan_.sites[each].span)
      sites_[(state_ == EventState::in_flight ? span->begin : each).value] = {.has_events = true, .lasts = true};
  return sites_[site.value];
}

const EventQuestion::Asked& EventQuestion::at(Index<PlannedSite> site) {
  const std::pair key(plan_.sites[site].args.value, know(site).lasts);
  const auto [known, is_new] = asked_.try_emplace(key);
  Asked& made = known->second;
  if (!is_new) return made;
  auto typed = plan::typed_over(question_, plan_.args[plan_.sites[site].args]);
  if (!typed) {
    made.refusal = typed.error().message;
  } else if (typed->asks(HitField::duration) && !key.second) {
    made.refusal = "duration: only calls have one (ucall, kcall, ksession, fsession), and spans (A ~~ B)";
  } else {
    made.typed = std::move(*typed);
  }
  return made;
}

Result<void> EventQuestion::check() {
  std::string_view first;
  bool any = false, none = true;
  for (const Index<PlannedSite> site : plan_.sites.indices()) {
    if (!has_events(site)) continue;
    const Asked& asked = at(site);
    none = false;
    if (asked.typed) {
      any = true;
      if (expr::asks_attribute(asked.typed->root()) && !plan_.attributes)
        return fail(ErrorKind::invalid_argument,
                    "trace_attribute(...): it was not recorded: a trace with --record and --trace-attributes has it");
      for (const HitFieldInfo& each : kHitFields)
        if (asked.typed->asks(each.field) && ((each.source == HitFieldSource::owner && !plan_.owners) ||
                                              (each.source == HitFieldSource::context && !plan_.contexts)))
          return fail(ErrorKind::invalid_argument,
                      fmt::format("{0}: it was not recorded: a trace with --record and --print {0} has it", each.word));
    } else if (first.empty()) {
      first = asked.refusal;
    }
  }
  if (!any && !none) return fail(ErrorKind::invalid_argument, std::string(first));
  return {};
}

}  // namespace usdt::event
