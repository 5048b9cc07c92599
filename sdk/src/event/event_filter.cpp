// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/event_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace usdt {
inline namespace v1 {
namespace {

/// Of what the question compares texts with.
std::size_t longest_literal(const TypedExpression::Node& node) {
  std::size_t longest = node.text.size();
  for (const TypedExpression::Node& each : node.of) longest = std::max(longest, longest_literal(each));
  return longest;
}

/// What an event tells of its hit.
class EventFacts final : public HitFacts {
 public:
  EventFacts(const Event& event, std::size_t longest) : event_(event), longest_(longest) {}

  [[nodiscard]] std::optional<std::uint64_t> value(std::size_t position) const override {
    const Value value = event_.value(position);
    if (std::holds_alternative<ArgError>(value)) return std::nullopt;
    const auto* args = reinterpret_cast<const usdt_event_arg*>(event_.record().data() + sizeof(usdt_event));
    return args[position].bits;
  }
  [[nodiscard]] std::optional<std::string_view> text(std::size_t position) const override {
    const auto text = event_.captured_text(position);
    if (!text || (text->truncated && text->bytes.size() <= longest_)) return std::nullopt;
    return text->bytes;
  }
  [[nodiscard]] std::optional<std::uint64_t> field(HitField field) const override {
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
        break;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<std::string_view> comm() const override { return event_.comm(); }

 private:
  const Event& event_;
  std::size_t longest_;
};

/// Where in `args` what `path` leads to was read; nothing: it was not.
std::optional<std::size_t> find_value(const std::vector<Arg>& args, const ValuePath& path) {
  if (path.steps.empty()) return find_arg(args, path.root);
  const auto found = std::ranges::find_if(args, [&](const Arg& arg) { return arg.derived && arg.name() == path.text; });
  return found == args.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - args.begin()));
}

Result<TypedExpression> check(const Expression& question, const std::vector<Arg>& args) {
  std::vector<std::size_t> places;
  for (const ValuePath& path : question.values) {
    const auto place = find_value(args, path);
    if (!place)
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{}: {}", path.text,
                              path.steps.empty() ? "there is no such argument" : "it is not among what was recorded"));
    places.push_back(*place);
  }
  return TypedExpression::check(question, args, places);
}

}  // namespace

struct EventFilter::Impl {
  /// The question over one list of arguments.
  struct Asked {
    std::optional<TypedExpression> typed = {};
    std::string refusal = {};
    std::size_t longest = 0;
  };

  Impl(std::shared_ptr<const Expression> q, const AttachPlan& p) : question(std::move(q)), plan(p) {}

  /// Whether the site's events are whole calls, which alone have a duration.
  [[nodiscard]] bool is_call(Index<PlannedSite> site) {
    while (calls.size() < plan.sites.size()) {
      calls.assign(plan.sites.size(), false);
      for (const AttachGroup& group : plan.groups)
        for (const Index<PlannedSite> each : group.sites) calls[each.value] = group.moment == Moment::both;
    }
    return calls[site.value];
  }

  const Asked& of(Index<PlannedSite> site) {
    const std::pair key(plan.sites[site].args.value, is_call(site));
    const auto [known, is_new] = asked.try_emplace(key);
    Asked& made = known->second;
    if (!is_new) return made;
    auto typed = check(*question, plan.args[plan.sites[site].args]);
    if (!typed) {
      made.refusal = typed.error().message;
    } else if (typed->asks(HitField::duration) && !key.second) {
      made.refusal = "duration: only calls have one (ucall, kcall, ksession, fsession)";
    } else {
      made.longest = longest_literal(typed->root());
      made.typed = std::move(*typed);
    }
    return made;
  }

  std::shared_ptr<const Expression> question;
  const AttachPlan& plan;
  std::vector<bool> calls;  ///< by site
  std::map<std::pair<std::uint32_t, bool>, Asked> asked;
};

EventFilter::EventFilter(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
EventFilter::EventFilter(EventFilter&&) noexcept = default;
EventFilter& EventFilter::operator=(EventFilter&&) noexcept = default;
EventFilter::~EventFilter() = default;

Result<EventFilter> EventFilter::make(std::shared_ptr<const Expression> question, const AttachPlan& plan) {
  if (!question) return fail(ErrorKind::invalid_argument, "no question to ask");
  EventFilter filter(std::make_unique<Impl>(std::move(question), plan));
  std::string_view first;
  bool any = plan.sites.empty();
  for (const Index<PlannedSite> site : plan.sites.indices()) {
    const Impl::Asked& asked = filter.impl_->of(site);
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
  return filter;
}

std::optional<bool> EventFilter::operator()(const Event& event) {
  const Impl::Asked& asked = impl_->of(Index<PlannedSite>(event.site_number()));
  if (!asked.typed) return std::nullopt;
  const auto answer = evaluate(*asked.typed, EventFacts(event, asked.longest));
  return answer ? std::optional(*answer != 0) : std::nullopt;
}

std::string_view EventFilter::refusal(Index<PlannedSite> site) { return impl_->of(site).refusal; }

}  // namespace v1
}  // namespace usdt
