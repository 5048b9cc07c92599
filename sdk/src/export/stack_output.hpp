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
#include "export/table_output.hpp"

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

/// Stacks of events are kept until the end in so many bytes.
inline constexpr std::size_t kMostStackBytes = 64U << 20;

/// A stack and its number: its frames from the outermost on, with ';' between them.
struct FoldedRow {
  std::string stack;
  std::string number;  ///< a whole one, in decimal
};

/// The stacks of an event that are asked for.
struct StacksOfEvent {
  const Result<Stack>* user;    ///< null: not asked for
  const Result<Stack>* kernel;  ///< likewise; it is on top of the process's
};

/// Returns them as one: frames from the outermost on, or why there are none.
[[nodiscard]] std::string folded_text(const StacksOfEvent& stacks);

/// A table by a stack as folded stacks, in the order of their texts.
struct FoldedTable {
  std::vector<FoldedRow> rows = {};
  std::size_t not_drawn = 0;  ///< stacks with sums that have no width
};
[[nodiscard]] FoldedTable folded_table(const ShownTable& shown);
/// Says so of so many stacks.
[[nodiscard]] std::string not_drawn_text(std::size_t stacks);

/// The common part of outputs of stacks, which are written once all hits are known.
class StackOutput : public Output {
 public:
  StackOutput(const AnswerStart& start, const OutputPlace& place);

  /// Nothing is printed for it yet, so that it is no line to wait for.
  void event(const Event& event) final;
  /// Looks in between are of the hits so far: the last one has all.
  void table(const ArrangedTable& look) final {
    if (look.last) add_rows(look);
  }
  void ending(const SessionSummary& summary) final { write_all(summary); }
  [[nodiscard]] std::vector<std::uint64_t> folded_full() const final { return left_out_; }
  /// A part of the stacks is no answer about any of the events.
  void give_up() final;

 protected:
  /// Adds an event with these stacks. False: they are new ones that there is no room for.
  [[nodiscard]] virtual bool add_event(const Event& event, const StacksOfEvent& stacks) = 0;
  virtual void add_rows(const ArrangedTable& table) = 0;
  virtual void write_all(const SessionSummary& summary) = 0;
  [[nodiscard]] const View& view() const noexcept { return view_; }
  /// The names of the first probes.
  [[nodiscard]] std::string title() const;

  void look_up(const AttachPlan& plan, std::size_t probes) override;
  void write_event(const Event& /*event*/) final {}
  /// A notice says it.
  void write_followed(const Followed& /*followed*/) final {}
  void write_summary(const SessionSummary& /*summary*/) final {}

 private:
  const View& view_;
  bool kernel_, user_;
  std::vector<std::uint64_t> kept_;      ///< events that were added, by probe
  std::vector<std::uint64_t> left_out_;  ///< events that there was no room for, by probe
};

/// "12 hits; 0 lost"
[[nodiscard]] std::string ledger_text(const SessionSummary& summary);

/// The common part of outputs of stacks as texts, with ';' between frames.
class FoldedStackOutput : public StackOutput {
 public:
  FoldedStackOutput(const AnswerStart& start, const OutputPlace& place);

 protected:
  /// Writes all stacks, in the order of their texts.
  virtual void write_stacks(const std::vector<FoldedRow>& rows, const SessionSummary& summary) = 0;

 private:
  [[nodiscard]] bool add_event(const Event& event, const StacksOfEvent& stacks) final;
  void add_rows(const ArrangedTable& table) final;
  void write_all(const SessionSummary& summary) final;

  const std::function<void(const std::string&)>& tell_;
  FoldedStacks stacks_;
  std::vector<FoldedRow> rows_;  ///< of the table
};

}  // namespace usdt::exports
