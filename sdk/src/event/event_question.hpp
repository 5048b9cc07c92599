// SPDX-License-Identifier: BSD-2-Clause
// A question about hits, asked of the events of them. Private to event/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "usdt/event.hpp"
#include "usdt/event_filter.hpp"
#include "usdt/expression.hpp"
#include "usdt/plan.hpp"

namespace usdt::event {

/// Answers what an event tells of its hit.
class EventFacts final : public HitFacts {
 public:
  explicit EventFacts(const Event& event, const EventStacks& stacks = {}) : event_(event), stacks_(stacks) {}

  [[nodiscard]] std::optional<std::uint64_t> value(std::size_t position) const override;
  [[nodiscard]] std::optional<std::string_view> text(std::size_t position) const override;
  [[nodiscard]] bool is_cut(std::size_t position) const override;
  [[nodiscard]] std::optional<std::uint64_t> field(HitField field) const override;
  [[nodiscard]] std::optional<std::string_view> comm() const override { return event_.comm(); }
  [[nodiscard]] std::optional<std::string> site_text(HitField field) const override;
  [[nodiscard]] std::optional<std::string> context_bytes(HitField field) const override;
  [[nodiscard]] std::optional<std::string> trace_attribute(std::string_view key) const override;
  [[nodiscard]] const Result<Stack>* stack(HitField field) const override;

 private:
  const Event& event_;
  EventStacks stacks_;
};

/// The question over each list of arguments of a plan, which lives as long and may grow.
class EventQuestion {
 public:
  /// Over one list of arguments.
  struct Asked {
    std::optional<TypedExpression> typed = {};
    std::string refusal = {};  ///< why it cannot be asked there
  };

  EventQuestion(Expression question, const AttachPlan& plan, EventState state = EventState::ended)
      : question_(std::move(question)), plan_(plan), state_(state) {}

  /// Checks that some site has what the question is about. Errors: invalid_argument (none has, with the first reason;
  /// it asks for what no event has).
  [[nodiscard]] Result<void> check();
  /// Whether events of the site are asked: those of spans, not of their ends; while spans are in flight, of beginnings.
  [[nodiscard]] bool has_events(Index<PlannedSite> site) { return know(site).has_events; }
  /// Returns what is asked of the events of a site.
  const Asked& at(Index<PlannedSite> site);

 private:
  struct Site {
    bool has_events = false;
    bool lasts = false;  ///< they are whole calls or spans, which alone have a duration
  };
  [[nodiscard]] const Site& know(Index<PlannedSite> site);

  Expression question_;
  const AttachPlan& plan_;
  EventState state_;
  std::vector<Site> sites_;  ///< by their numbers
  std::map<std::pair<std::uint32_t, bool>, Asked> asked_;
};

}  // namespace usdt::event
