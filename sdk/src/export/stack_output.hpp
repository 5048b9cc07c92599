// SPDX-License-Identifier: BSD-2-Clause
// Stacks with a number each, which are written once all of them are known: those of a table by a stack, or of events,
// added up in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "export/output.hpp"

namespace usdt::exports {

/// Adds up events by their folded stack.
class FoldedStacks {
 public:
  /// Takes new stacks while all of them take at most `most_bytes`.
  explicit FoldedStacks(std::size_t most_bytes) noexcept : room_(most_bytes) {}

  /// Adds `weight` events with this stack. False: it is a new one that there is no room for.
  [[nodiscard]] bool add(std::string stack, double weight);
  /// Returns the stacks in order, and how many events had each.
  [[nodiscard]] const std::map<std::string, double>& all() const noexcept { return stacks_; }

 private:
  static constexpr std::size_t kNode = 96;  ///< bytes that an entry takes beside its text, about

  std::size_t room_;
  std::map<std::string, double> stacks_;
};

/// A stack and its number: its frames from the outermost on, with ';' between them.
struct FoldedRow {
  std::string stack;
  std::string number;  ///< a whole one, in decimal
};

/// The common part of outputs of stacks.
class StackOutput : public Output {
 public:
  StackOutput(const AnswerStart& start, const OutputPlace& place);

  /// Nothing is printed for it yet, so that it is no line to wait for.
  void event(const Event& event) final;
  /// Looks in between are of the hits so far: the last one has all.
  void table(const ArrangedTable& look) final;
  void ending(const SessionSummary& summary) final;
  [[nodiscard]] std::vector<std::uint64_t> folded_full() const final { return left_out_; }
  /// A part of the stacks is no flame graph of any of the events.
  void give_up() final;

 protected:
  /// Writes all stacks, in the order of their texts.
  virtual void write_stacks(const std::vector<FoldedRow>& rows, const SessionSummary& summary) = 0;
  [[nodiscard]] const View& view() const noexcept { return view_; }

  void look_up(const AttachPlan& plan, std::size_t probes) override;
  void write_event(const Event& /*event*/) final {}
  /// A notice says it.
  void write_followed(const Followed& /*followed*/) final {}
  void write_summary(const SessionSummary& /*summary*/) final {}

 private:
  [[nodiscard]] std::string stack_of(const Event& event);
  void add(std::string& text, const Result<Stack>& stack);

  const View& view_;
  bool kernel_, user_;
  const std::function<void(const std::string&)>& tell_;
  FoldedStacks stacks_;
  std::vector<FoldedRow> rows_;          ///< of the table
  std::vector<std::uint64_t> kept_;      ///< events in stacks_, by probe
  std::vector<std::uint64_t> left_out_;  ///< events that there was no room for, by probe
};

}  // namespace usdt::exports
