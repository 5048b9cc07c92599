// SPDX-License-Identifier: BSD-2-Clause
// Events in files, and out of them again: RecordingWriter::event() writes what a Tracer hands out, Recording::next()
// reads it on any machine, FlightRecorder keeps the last seconds until something happens. docs/recording.md has the
// format.
//     auto recording = usdt::Recording::open("trace.usdt");
//     for (auto event = recording->next(); event && *event; event = recording->next()) print(**event);
//     if (!recording->cut().empty()) print("it breaks off: ", recording->cut());
// Threads: one at a time for each object. The plan of a writer has to outlive it; events of next() live until the next.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "usdt/event.hpp"
#include "usdt/file_change.hpp"
#include "usdt/follow.hpp"
#include "usdt/link.hpp"
#include "usdt/machine.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/stack.hpp"
#include "usdt/tracer.hpp"

namespace usdt {
inline namespace v1 {

/// Names the program that made a recording, and the system it ran on.
struct RecordingInfo {
  std::string made_by = {};  ///< the program: "usdt-trace 1.0.0"
  std::string machine = {};  ///< "x86_64", as uname(2) names it; empty when a recording starts: the running system's
  std::string kernel = {};   ///< the kernel's release, "6.18.5"; likewise
  /// Texts that the program wants to find again, each under a name of its own choice.
  std::vector<std::pair<std::string, std::string>> properties = {};
};

/// Accounts for all hits, as far as their fate was known when the account was recorded.
struct RecordedLedger {
  std::vector<ProbeCounts> probes = {};      ///< in the order of AttachPlan::probes
  std::optional<std::uint64_t> missed = {};  ///< Link::missed()
  std::vector<MissedHits> missed_hits = {};  ///< Link::missed_hits(); their lists of probes are empty
  std::uint64_t undecided = 0;               ///< Tracer::undecided()
  std::vector<SkippedSite> skipped = {};     ///< the sites that the planner left out or the kernel refused
  std::vector<FileChange> changes = {};      ///< Link::changes()
};

/// Holds a notice that the user was given while the recording was made.
struct RecordedNotice {
  std::uint64_t timestamp = 0;  ///< ns of CLOCK_MONOTONIC
  std::string text = {};
};

/// Reports a file that came while the recording was made (follow.hpp), and what became of it.
struct RecordedFollowed : Followed {
  std::size_t probes_by_then = 0;  ///< from then on the first so many of AttachPlan::probes were traced
};

/// Holds a piece of a recording for a RecordingWriter::Sink; `bytes` are valid until the sink returns.
struct RecordedBlock {
  std::span<const std::byte> bytes = {};
  std::size_t events = 0;  ///< how many events are in it: the oldest ones that were in no block before
};

/// Writes a recording of events (docs/recording.md). Whatever has been written can be read, however the writer ends.
/// Threads: one at a time.
///     auto writer = usdt::RecordingWriter::create("trace.usdt", tracer.plan(), tracer.layout());
///     tracer.poll([&](const usdt::Event& e) { writer->event(e, clock.offset_at(e.timestamp())); }, 100ms);
///     writer->finish({.probes = tracer.counts()});
class RecordingWriter {
 public:
  /// Takes whole blocks in their order; the first one is the head of the file. An error that it returns goes to whoever
  /// called the writer, and ends the recording: later blocks rest on those before them.
  using Sink = std::function<Result<void>(const RecordedBlock& block)>;

  /// Starts a recording of events of `plan`, whose records are laid out as `layout` says; a Tracer has both. The plan
  /// has to outlive the writer; it may have grown by the time an event is added. Errors: the sink's.
  [[nodiscard]] static Result<RecordingWriter> start(Sink sink, const AttachPlan& plan, const EventLayout& layout,
                                                     RecordingInfo info = {});
  /// Starts a recording in a file, which is created, or emptied if it exists. Errors: no_permission, io.
  [[nodiscard]] static Result<RecordingWriter> create(const std::filesystem::path& file, const AttachPlan& plan,
                                                      const EventLayout& layout, RecordingInfo info = {});
  RecordingWriter(RecordingWriter&&) noexcept;
  RecordingWriter& operator=(RecordingWriter&&) noexcept;
  /// Drops the events that are in no block yet: flush() or finish() first.
  ~RecordingWriter();

  // Each of these can fail, with the errors of the sink.
  /// Says that the plan has grown to `plan` (Tracer::add()), which from here on has to outlive the writer.
  [[nodiscard]] Result<void> plan(const AttachPlan& plan);
  /// Adds an event. `wall_offset`: the time of day less CLOCK_MONOTONIC at that time, ns.
  [[nodiscard]] Result<void> event(const Event& event, std::int64_t wall_offset, const EventStacks& stacks = {});
  /// Adds a notice that the user was given.
  [[nodiscard]] Result<void> notice(const RecordedNotice& notice);
  /// Adds a file that came. If it is traced from here on, plan() comes first.
  [[nodiscard]] Result<void> followed(const Followed& followed);
  /// Adds one of RecordingInfo::properties.
  [[nodiscard]] Result<void> property(std::string_view name, std::string_view text);
  /// Adds an account of all hits so far. Readers go by the last one.
  [[nodiscard]] Result<void> ledger(const RecordedLedger& ledger);
  /// Hands the events that are in no block yet to the sink, as one block.
  [[nodiscard]] Result<void> flush();
  /// Does flush() if one of these events has waited for a second. A block that has become large goes to the sink at
  /// once, without a call.
  [[nodiscard]] Result<void> flush_if_due();
  /// Adds the last account and the end of the file, which tells readers that nothing is missing.
  [[nodiscard]] Result<void> finish(const RecordedLedger& ledger);

 private:
  struct Impl;
  explicit RecordingWriter(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Keeps the latest events in memory, so that they can be written once something has happened. Threads: one at a time.
class FlightRecorder {
 public:
  /// Says how much is kept.
  struct Limits {
    std::chrono::nanoseconds time = std::chrono::seconds(10);  ///< at least the events of so long, if `bytes` suffice
    std::uint64_t bytes = 256U << 20;  ///< size of the compressed events; one block may go beyond it
  };
  /// Reports how much is kept at a time.
  struct Kept {
    std::vector<std::uint64_t> events = {};  ///< how many of each probe, in the order of AttachPlan::probes
    std::uint64_t bytes = 0;                 ///< their size, compressed
    std::uint64_t first = 0, last = 0;       ///< times of the oldest and the newest, ns of CLOCK_MONOTONIC; 0: none
    bool out_of_room = false;                ///< events younger than Limits::time were dropped for lack of room
  };

  /// Starts to keep events of `plan`; parameters as of RecordingWriter::start().
  [[nodiscard]] static FlightRecorder start(const AttachPlan& plan, const EventLayout& layout, RecordingInfo info,
                                            const Limits& limits);
  FlightRecorder(FlightRecorder&&) noexcept;
  FlightRecorder& operator=(FlightRecorder&&) noexcept;
  ~FlightRecorder();

  /// Does what RecordingWriter::plan() does.
  void plan(const AttachPlan& plan);
  /// Adds an event, as RecordingWriter::event(), and forgets those that are too old by now.
  void event(const Event& event, std::int64_t wall_offset, const EventStacks& stacks = {});
  /// Adds a notice, as RecordingWriter::notice(). Notices are never forgotten.
  void notice(const RecordedNotice& notice);
  /// Adds a file that came, as RecordingWriter::followed(). These are never forgotten.
  void followed(const Followed& followed);
  /// Adds a property, as RecordingWriter::property(). Properties are never forgotten.
  void property(std::string_view name, std::string_view text);
  /// Returns how much write() would write now.
  [[nodiscard]] Kept kept();
  /// Writes what is kept as a complete recording that ends with `ledger`, and keeps it on. Errors: the sink's.
  [[nodiscard]] Result<void> write(const RecordingWriter::Sink& sink, const RecordedLedger& ledger);

 private:
  struct Impl;
  explicit FlightRecorder(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Reads a recording. It may come from anybody: the memory and the time that it takes are bounded by the size of the
/// file. Its events are Events like those of a Tracer. Threads: one at a time.
class Recording {
 public:
  /// Adds to AttachPlan::files what else the recording has about a traced file.
  struct File {
    Machine machine = host_machine();
    std::string build_id = {};  ///< in lower-case hexadecimal; empty: it had none
  };

  /// Opens a recording and reads all of it but the events. Errors: not_found, no_permission, io; malformed (it is no
  /// recording, or contradicts itself); not_supported (another version of the format, or no regular file); limit (it
  /// claims more sites than anybody traces).
  [[nodiscard]] static Result<Recording> open(const std::filesystem::path& file);
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;
  ~Recording();

  /// Returns who made the recording, and on which system.
  [[nodiscard]] const RecordingInfo& info() const noexcept;
  /// Returns one of RecordingInfo::properties. Nothing: there is none of that name.
  [[nodiscard]] std::optional<std::string_view> property(std::string_view name) const;
  /// Returns the plan of what was traced, with everything that was added to the trace later. This plan cannot be
  /// attached: no file of it is open, and its arguments have types and constants, but no places of values.
  [[nodiscard]] const std::shared_ptr<const AttachPlan>& plan() const noexcept;
  /// Returns what else is known of the traced files, in the order of AttachPlan::files.
  [[nodiscard]] const std::vector<File>& files() const noexcept;
  /// Returns how the records of next()'s events are laid out. Stacks are not in them: kernel_stack(), user_stack().
  [[nodiscard]] const EventLayout& layout() const noexcept;
  /// Returns the notices in the order in which they were given.
  [[nodiscard]] const std::vector<RecordedNotice>& notices() const noexcept;
  /// Returns the files that came, in their order.
  [[nodiscard]] const std::vector<RecordedFollowed>& followed() const noexcept;
  /// Returns how many of followed() came before the event that next() gave last; all of them once it has given all
  /// events.
  [[nodiscard]] std::size_t followed_by_now() const noexcept;
  /// Returns the last account in the file; it is the final one if the recording is whole (cut()). Nothing: there is
  /// none.
  [[nodiscard]] const std::optional<RecordedLedger>& ledger() const noexcept;

  /// Returns the next event, valid until the next call. Null: there are no more. Errors: io, malformed.
  [[nodiscard]] Result<const Event*> next();
  /// Returns the time of day less CLOCK_MONOTONIC when next()'s event was recorded, ns.
  [[nodiscard]] std::int64_t wall_offset() const noexcept;
  /// Returns the stack of the kernel at that event, named when it was recorded. Empty: none was recorded. Errors: the
  /// reason that was recorded instead of it.
  [[nodiscard]] Result<Stack> kernel_stack() const;
  /// Returns the stack of the process at that event; empty and errors as kernel_stack().
  [[nodiscard]] Result<Stack> user_stack() const;
  /// Returns an empty text if the recording is whole. Else a sentence that says where it breaks off and why ("... after
  /// 1234 bytes"), or how ledger() contradicts itself or the events. Final once next() has given all events.
  [[nodiscard]] const std::string& cut() const noexcept;

 private:
  struct Impl;
  explicit Recording(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
