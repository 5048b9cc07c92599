// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/destination.hpp"
#include "io/stream.hpp"
#include "usdt/answers.hpp"
#include "usdt/sink.hpp"

namespace usdt::exports {

/// The stream and the destination that an output gets beside the answers.
struct OutputPlace {
  io::Stream& out;
  Destination& shared;
};

/// Turns events into lines, and knows which of them were written.
class Output : public AnswerConsumer {
 public:
  using Flushed = io::Stream::Flushed;

  Output(const AnswerStart& start, const OutputPlace& place) : around_(start.around), out_(place.out) {}

  void trace(const AttachPlan& plan, std::size_t probes) override;
  /// Prints it; `around` has been told of it before.
  void event(const Event& event) override;
  void followed(const Followed& followed) override { write_followed(followed); }
  void summary(const SessionSummary& summary) override { write_summary(summary); }
  /// Bytes that are buffered.
  [[nodiscard]] virtual std::uint64_t pending() const noexcept { return out_.printed() - out_.written(); }
  /// Hands them to the kernel.
  [[nodiscard]] virtual Flushed write_out(const io::Stream::Patience& patience);
  /// Nothing will be written any more: events that are not yet, and all that come, are lost.
  virtual void give_up();
  /// Events whose lines are lost, by probe of the plan. Exact after a flush.
  [[nodiscard]] std::vector<std::uint64_t> not_written() const override { return not_written_; }
  [[nodiscard]] std::uint64_t unreadable() const override { return unreadable_; }
  /// Why something could not be written that does not go through the stream; nothing: all of it was.
  [[nodiscard]] virtual std::optional<std::string> failure() const { return std::nullopt; }

 protected:
  /// `probes`: of the plan, that there are so far.
  virtual void look_up(const AttachPlan& plan, std::size_t probes) = 0;
  virtual void write_event(const Event& event) = 0;
  virtual void write_followed(const Followed& followed) = 0;
  virtual void write_summary(const SessionSummary& summary) = 0;
  /// Prints what write_event() has not printed yet, as far as it is time.
  virtual void print_due() {}
  /// The oldest `events` that were not printed are.
  void printed(std::size_t events);
  [[nodiscard]] std::int64_t wall_time(const Event& event) {
    return static_cast<std::int64_t>(event.timestamp()) + around_.wall_offset();
  }

  [[nodiscard]] const AttachPlan& plan() const noexcept { return *plan_; }

  Surroundings& around_;
  io::Stream& out_;
  std::uint64_t unreadable_ = 0;
  std::vector<std::uint64_t> not_written_;

 private:
  /// An event in the buffer, and where its line ends.
  struct Line {
    std::uint64_t end;
    std::uint32_t probe;
  };
  const AttachPlan* plan_ = nullptr;
  std::vector<Line> lines_;
  std::size_t printed_ = 0;  ///< of them; the others have no end yet
  bool given_up_ = false;
};

/// Whether a span was ended by another thread than the one that began it, as far as their numbers say.
[[nodiscard]] inline bool ends_elsewhere(const Event& event) {
  const auto ender = event.ended_by();
  return ender && (ender->pid != event.pid() || ender->tid != event.tid());
}

/// The names of a plan's probes, which tell all of them apart.
[[nodiscard]] std::vector<std::string> full_names(const AttachPlan& plan);

/// Names of probes for lines: "PROVIDER:NAME", and full_name() where several files have a probe of that name.
class ShortNames {
 public:
  ShortNames() = default;
  /// Names the first `probes` of a plan, which outlives this.
  ShortNames(const AttachPlan& plan, std::size_t probes);
  /// There are more of them.
  void know(std::size_t probes);
  [[nodiscard]] const std::string& operator[](std::size_t probe) const { return names_[probe]; }
  /// How many are known.
  [[nodiscard]] std::size_t size() const noexcept { return known_; }

 private:
  const AttachPlan* plan_ = nullptr;
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> first_of_;  ///< the first probe of each name
  std::size_t known_ = 0;
};

/// The meaning of each item of a print list at each site.
class Columns {
 public:
  Columns() = default;
  Columns(const AttachPlan& plan, const Printed& printed);
  /// Number of an argument of the event's site; nothing: it has no such argument.
  [[nodiscard]] std::optional<std::size_t> position(const Event& event, std::size_t item) const {
    return column(event, item).position;
  }
  /// That argument with the meaning that the list gives its number; null: it gives none.
  [[nodiscard]] const Arg* called(const Event& event, std::size_t item) const {
    return column(event, item).called.get();
  }
  /// A number that was computed.
  struct Computed {
    const Arg& arg;  ///< says what it means
    Value value;
  };
  /// What the item computes of the event, or why it cannot; nothing: it computes nothing.
  [[nodiscard]] std::optional<Computed> computed(const Event& event, std::size_t item) const;

 private:
  struct Column {
    std::optional<std::size_t> position = {};
    std::shared_ptr<const Arg> called = {};
    std::optional<TypedExpression> computed = {};
    std::string refusal = {};  ///< why nothing can be computed
  };
  using OfSite = std::vector<Column>;  ///< by item

  [[nodiscard]] static Column column_of(const PrintItem& item, const std::vector<Arg>& args);

  [[nodiscard]] const Column& column(const Event& event, std::size_t item) const {
    return columns_[printed_->of_probe[event.site().probe.value]][event.site().args.value][item];
  }

  const Printed* printed_ = nullptr;
  std::vector<std::vector<OfSite>> columns_;  ///< by list, by AttachPlan::args
};

/// The name of an argument as it can be asked for: "req", "arg1", "retval".
[[nodiscard]] std::string name_of_argument(const Arg& arg, std::size_t n);
/// Returns that name as it is unique among those of both ends of a span: "end.count".
[[nodiscard]] std::string name_among_ends(const Arg& arg, std::size_t n);
/// The text of a site's argument that its provider describes as text.
[[nodiscard]] std::optional<Text> described_text(const AttachPlan& plan, const Event& event, std::size_t n);
/// Whether the argument is shown with its members, if it has any.
[[nodiscard]] bool has_members(const Arg& arg);
/// The text of an array of characters that is not in memory: its elements are values of their own. Nothing: it is none,
/// or some element could not be read.
[[nodiscard]] std::optional<std::string> text_of_elements(const Event& event, std::size_t array);

/// A number of more than 8 bytes, which is read in parts.
struct WideNumber {
  std::string text;
  bool is_error = false;  ///< `text` says why it is not there
};
/// Nothing: argument `n` is none, or nothing is read of it.
[[nodiscard]] std::optional<WideNumber> wide_number(const Event& event, std::size_t n, bool hex);

/// How many elements a list (Arg::is_list()) has at this hit, or why that is not known.
[[nodiscard]] Result<std::uint64_t> length_of(const Event& event, std::size_t list);
/// Whether argument `n`, maybe an element of a list, is not behind its last one.
[[nodiscard]] bool is_there(const Event& event, std::size_t n);
/// Whether the members of `whole` are alternatives of which, by its discriminant, none is there: what was read is no
/// such value.
[[nodiscard]] bool is_no_alternative(const Event& event, std::size_t whole);
inline constexpr std::string_view kNoAlternative = "its discriminant is that of no variant";
/// Why it is not known whether argument `n`, one of several alternatives, is there; empty: it is known.
[[nodiscard]] std::string_view why_undecided(const Event& event, std::size_t n);
/// "97 more": of what is left out.
[[nodiscard]] std::string more_text(std::uint64_t number);

/// Text that nobody asked for: that of an argument that is known to point to characters, or (`likely`) plainly does.
[[nodiscard]] std::optional<Text> unasked_text(const AttachPlan& plan, const Event& event, std::size_t n, bool likely);

/// Whether it is the result of a call that has not returned yet (--in-flight). A span may begin where one returns.
[[nodiscard]] bool is_to_come(const AttachPlan& plan, const View& view, const Arg& arg);

/// An unsigned word that can only be an address: Linux maps x86-64 and arm64 programs, heaps, libraries and stacks at
/// 0x55... to 0x7f..., and the kernel from 0xffff'8000'0000'0000 on, where no ordinary count is.
/// A pointer by kernel types is an address, whatever its value.
[[nodiscard]] bool looks_like_address(const Arg& arg, std::uint64_t value);

}  // namespace usdt::exports
