// SPDX-License-Identifier: BSD-2-Clause
#include "event/event_question.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "expr/row.hpp"
#include "plan/find_value.hpp"
#include "usdt/table.hpp"

namespace usdt::event {
namespace {

/// Of the texts that the question needs: what it compares them with, or a key of a row.
std::size_t longest_text(const TypedExpression::Node& node) {
  std::size_t longest = node.op == Operator::row ? TableQuestion::kMostKeyBytes : node.text.size();
  for (const TypedExpression::Node& each : node.of) longest = std::max(longest, longest_text(each));
  return longest;
}

}  // namespace

std::optional<std::uint64_t> EventFacts::value(std::size_t position) const {
  const Value value = event_.value(position);
  if (std::holds_alternative<ArgError>(value)) return std::nullopt;
  if (const auto* natural = std::get_if<std::uint64_t>(&value)) return *natural;
  const auto* args = reinterpret_cast<const usdt_event_arg*>(event_.record().data() + sizeof(usdt_event));
  return args[position].bits;
}

std::optional<std::string_view> EventFacts::text(std::size_t position) const {
  const auto text = event_.captured_text(position);
  if (!text || (text->truncated && text->bytes.size() <= longest_)) return std::nullopt;
  return text->bytes;
}

std::optional<std::uint64_t> EventFacts::field(HitField field) const {
  switch (field) {
    case HitField::pid:
      return event_.pid();
    case HitField::tid:
      return event_.tid();
    case HitField::cpu:
      return event_.cpu();
    case HitField::nsecs:
      return event_.timestamp() + event_.duration();  // of calls, which have their entry's time
    case HitField::duration:
      return event_.duration();
    case HitField::probe:
      return event_.site().probe.value;
    case HitField::uid:
    case HitField::gid:
    case HitField::cgroup:
    case HitField::comm:
    case HitField::ustack:
    case HitField::kstack:
      break;
  }
  return std::nullopt;
}

const Result<Stack>* EventFacts::stack(HitField field) const {
  return field == HitField::kstack ? stacks_.kernel : stacks_.user;
}

/// Whether the site's events are whole calls or spans, which alone have a duration.
bool EventQuestion::is_call(Index<PlannedSite> site) {
  while (calls_.size() < plan_.sites.size()) {
    calls_.assign(plan_.sites.size(), false);
    for (const AttachGroup& group : plan_.groups)
      for (const Index<PlannedSite> each : group.sites) calls_[each.value] = group.moment == Moment::both;
  }
  return calls_[site.value] || plan_.sites[site].span;
}

const EventQuestion::Asked& EventQuestion::at(Index<PlannedSite> site) {
  const std::pair key(plan_.sites[site].args.value, is_call(site));
  const auto [known, is_new] = asked_.try_emplace(key);
  Asked& made = known->second;
  if (!is_new) return made;
  auto typed = plan::typed_over(question_, plan_.args[plan_.sites[site].args]);
  if (!typed) {
    made.refusal = typed.error().message;
  } else if (typed->asks(HitField::duration) && !key.second) {
    made.refusal = "duration: only calls have one (ucall, kcall, ksession, fsession)";
  } else {
    made.longest = longest_text(typed->root());
    made.typed = std::move(*typed);
  }
  return made;
}

Result<void> EventQuestion::check() {
  std::string_view first;
  bool any = plan_.sites.empty();
  for (const Index<PlannedSite> site : plan_.sites.indices()) {
    if (plan_.spans && !plan_.sites[site].span) continue;
    const Asked& asked = at(site);
    if (asked.typed) {
      any = true;
      for (const HitField field : {HitField::uid, HitField::gid, HitField::cgroup})
        if (asked.typed->asks(field))
          return fail(
              ErrorKind::invalid_argument,
              fmt::format("{}: events do not have it; it can only be asked while they are traced", to_string(field)));
    } else if (first.empty()) {
      first = asked.refusal;
    }
  }
  if (!any) return fail(ErrorKind::invalid_argument, std::string(first));
  return {};
}

}  // namespace usdt::event
