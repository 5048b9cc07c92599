// SPDX-License-Identifier: BSD-2-Clause
#include "stack/place_scripts.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace usdt::stack {
namespace {

using Activation = std::span<const usdt_script_frame>;

/// The functions of each activation, innermost first.
std::vector<Activation> activations_of(std::span<const usdt_script_frame> scripts) {
  std::vector<Activation> found;
  for (std::size_t first = 0, i = 0; i < scripts.size(); ++i) {
    if ((scripts[i].flags & USDT_SCRIPT_ENTRY) == 0 && i + 1 < scripts.size()) continue;
    found.push_back(scripts.subspan(first, i + 1 - first));
    first = i + 1;
  }
  return found;
}

/// The outermost one says where it is, where not all do.
std::uint64_t address_of(const Activation& activation) { return activation.back().activation; }

/// Whether none of its functions has begun.
bool is_empty(const Activation& activation) { return (activation.front().flags & USDT_SCRIPT_MARK) != 0; }

/// Whether they lie further and further up the stack, as those of one stack do.
bool is_one_stack(const std::vector<Activation>& activations) {
  return std::ranges::is_sorted(activations, std::less<>(), address_of) &&
         std::ranges::adjacent_find(activations, std::equal_to<>(), address_of) == activations.end();
}

/// The lowest address behind the frame of step `i`; 0: not known.
std::uint64_t end_of_frame(const std::vector<Step>& steps, std::size_t i) {
  for (std::size_t next = i + 1; next < steps.size(); ++next)
    if (steps[next].issue == FrameIssue::none) return steps[next].stack;
  return 0;
}

/// Whether the step has what the loop has that runs this activation.
bool runs(const Step& step, const Activation& activation) {
  return step.issue == FrameIssue::none && step.kept[0] != 0 &&
         std::ranges::any_of(activation, [&](const usdt_script_frame& script) {
           return script.activation == step.kept[0] && script.instruction == step.kept[1];
         });
}

/// The outermost step that runs the activation; nothing: there is none from `first` on.
std::optional<std::size_t> find_loop(const Walked& walked, std::size_t first, const Activation& activation) {
  std::optional<std::size_t> found;
  for (std::size_t i = first; i < walked.steps.size(); ++i)
    if (runs(walked.steps[i], activation)) found = i;
  return found;
}

/// Whether its functions were called by native code alone, so that no loop runs any of them.
bool has_no_loop(const Activation& activation) {
  return std::ranges::all_of(activation, [](const usdt_script_frame& script) {
    return (script.flags & (USDT_SCRIPT_IN_C | USDT_SCRIPT_MARK)) != 0;
  });
}

/// Says where functions come whose place is not known, and what they are.
void add_rest(std::vector<Place>& places, std::span<const Activation> rest, FrameIssue issue) {
  if (rest.empty()) return;
  places.push_back({.issue = issue});
  for (const Activation& activation : rest) places.push_back({.scripts = activation});
}

}  // namespace

std::vector<Place> place_scripts(const Walked& walked, std::span<const usdt_script_frame> scripts) {
  const std::vector<Activation> activations = activations_of(scripts);
  const bool one_stack = is_one_stack(activations);
  std::vector<Place> places;
  std::size_t next = 0;
  for (std::size_t i = 0; i < walked.steps.size(); ++i) {
    const Step& step = walked.steps[i];
    const std::uint64_t end = step.stack != 0 ? end_of_frame(walked.steps, i) : 0;
    const bool is_loop = one_stack && next < activations.size() && address_of(activations[next]) >= step.stack &&
                         address_of(activations[next]) < end;
    if (!is_loop || is_empty(activations[next])) places.push_back({.step = &step});
    if (is_loop) places.push_back({.scripts = activations[next++]});
  }
  // Behind a stack that is known up to some caller come those further up.
  const std::uint64_t last = walked.steps.empty() ? 0 : walked.steps.back().stack;
  const bool is_beyond = next < activations.size() && one_stack && walked.end != FrameIssue::none && last != 0 &&
                         address_of(activations[next]) >= last;
  add_rest(places, std::span(activations).subspan(next),
           is_beyond ? FrameIssue::script_alone : FrameIssue::script_apart);
  return places;
}

std::vector<Place> place_by_loops(const Walked& walked, std::span<const usdt_script_frame> scripts,
                                  const std::function<bool(const Step&)>& is_loop) {
  const std::vector<Activation> activations = activations_of(scripts);
  std::vector<bool> loops;
  for (const Step& step : walked.steps) loops.push_back(step.issue == FrameIssue::none && is_loop(step));
  const auto count = static_cast<std::size_t>(std::ranges::count(loops, true));
  const bool fits = walked.end == FrameIssue::none && count == activations.size();
  std::vector<Place> places;
  std::size_t next = 0;
  for (std::size_t i = 0; i < walked.steps.size(); ++i) {
    if (fits && loops[i])
      places.push_back({.scripts = activations[next++]});
    else
      places.push_back({.step = &walked.steps[i]});
  }
  add_rest(places, std::span(activations).subspan(next), FrameIssue::script_apart);
  return places;
}

std::vector<Place> place_by_registers(const Walked& walked, std::span<const usdt_script_frame> scripts) {
  const std::vector<Activation> activations = activations_of(scripts);
  std::vector<Place> places;
  std::size_t next = 0, step = 0;
  for (std::size_t placed = 0; placed < activations.size(); ++placed) {
    const auto loop = find_loop(walked, step, activations[placed]);
    if (!loop) continue;
    for (; step < *loop; ++step) places.push_back({.step = &walked.steps[step]});
    ++step;
    // Others within it have no loop: their functions are called by native code, and have not begun or have ended.
    for (; next <= placed; ++next) places.push_back({.scripts = activations[next]});
  }
  for (; step < walked.steps.size(); ++step) places.push_back({.step = &walked.steps[step]});
  if (walked.end == FrameIssue::none)
    for (; next < activations.size() && has_no_loop(activations[next]); ++next)
      places.push_back({.scripts = activations[next]});
  // Behind a stack that is known up to some caller come those further up.
  const bool is_beyond = next > 0 && walked.end != FrameIssue::none;
  add_rest(places, std::span(activations).subspan(next),
           is_beyond ? FrameIssue::script_alone : FrameIssue::script_apart);
  return places;
}

}  // namespace usdt::stack
