// SPDX-License-Identifier: BSD-2-Clause
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

/// How a recording came about.
struct RecordingInfo {
  std::string made_by = {};  ///< "usdt-trace 0.1.0"
  std::string machine = {};  ///< as uname(2) has them; empty: those of the running system are recorded
  std::string kernel = {};   ///< its release
  /// What its maker wants to find again, by names of its own.
  std::vector<std::pair<std::string, std::string>> properties = {};
};

/// What became of all hits, as far as it was known then.
struct RecordedLedger {
  std::vector<ProbeCounts> probes = {};      ///< by AttachPlan::probes
  std::optional<std::uint64_t> missed = {};  ///< Link::missed()
  std::vector<MissedHits> missed_hits = {};  ///< Link::missed_hits(), without their probes
  std::uint64_t undecided = 0;               ///< Tracer::undecided()
  std::vector<SkippedSite> skipped = {};     ///< by the planner and by the kernel
  std::vector<FileChange> changes = {};      ///< Link::changes()
};

/// Something that was said while it was recorded.
struct RecordedNotice {
  std::uint64_t timestamp = 0;  ///< CLOCK_MONOTONIC, ns
  std::string text = {};
};

/// Something that came while it was recorded.
struct RecordedFollowed : Followed {
  std::size_t probes_by_then = 0;  ///< of the plan, those that were traced from then on
};

/// Where blocks of a recording go.
struct RecordedBlock {
  std::span<const std::byte> bytes = {};
  std::size_t events = 0;  ///< that are in it: the oldest of those added and not in a block before
};

/// Writes a recording of events (docs/recording.md), of which whatever was written can be read, however it ends. One
/// thread at a time.
class RecordingWriter {
 public:
  /// Takes whole blocks, in their order; the first one is the file's head. An error ends the recording.
  using Sink = std::function<Result<void>(const RecordedBlock& block)>;

  /// Of events of `plan`, which are laid out by `layout`; both are those of a Tracer. The plan has to live as long, and
  /// may have grown by the time an event is added.
  [[nodiscard]] static Result<RecordingWriter> start(Sink sink, const AttachPlan& plan, const EventLayout& layout,
                                                     RecordingInfo info = {});
  /// The same to a file, which is made, or made empty. Errors: no_permission, io.
  [[nodiscard]] static Result<RecordingWriter> create(const std::filesystem::path& file, const AttachPlan& plan,
                                                      const EventLayout& layout, RecordingInfo info = {});
  RecordingWriter(RecordingWriter&&) noexcept;
  RecordingWriter& operator=(RecordingWriter&&) noexcept;
  /// What is not in a block yet is lost.
  ~RecordingWriter();

  /// What is traced has grown to `plan` (Tracer::add()), which lives from here on as long. Errors: the sink's.
  [[nodiscard]] Result<void> plan(const AttachPlan& plan);
  /// Adds an event. `wall_offset`: what the time of day is more than CLOCK_MONOTONIC then, ns. Errors: the sink's.
  [[nodiscard]] Result<void> event(const Event& event, std::int64_t wall_offset, const EventStacks& stacks = {});
  /// Adds what people were told. Errors: the sink's, as below.
  [[nodiscard]] Result<void> notice(const RecordedNotice& notice);
  /// Adds what came and is traced from here on (after plan()), or is not. Errors: the sink's.
  [[nodiscard]] Result<void> followed(const Followed& followed);
  /// Adds one of RecordingInfo::properties. Errors: the sink's.
  [[nodiscard]] Result<void> property(std::string_view name, std::string_view text);
  /// Adds an account of all hits so far; readers take the last one.
  [[nodiscard]] Result<void> ledger(const RecordedLedger& ledger);
  /// Hands the events that are not in a block yet to the sink, as one.
  [[nodiscard]] Result<void> flush();
  /// The same, if one of them has waited for a second. Blocks are handed on by themselves once they are large.
  [[nodiscard]] Result<void> flush_if_due();
  /// Says that nothing is missing behind the last account.
  [[nodiscard]] Result<void> finish(const RecordedLedger& ledger);

 private:
  struct Impl;
  explicit RecordingWriter(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Keeps the events of the last while in memory, to be written when something has happened. One thread at a time.
class FlightRecorder {
 public:
  /// How much is kept.
  struct Limits {
    std::chrono::nanoseconds time = std::chrono::seconds(10);  ///< at least, while there is room for it
    std::uint64_t bytes = 256U << 20;                          ///< of packed events, at most, but for one block
  };
  /// What there is.
  struct Kept {
    std::vector<std::uint64_t> events = {};  ///< by AttachPlan::probes
    std::uint64_t bytes = 0;                 ///< packed
    std::uint64_t first = 0, last = 0;       ///< times of its events; 0: there is none
    bool out_of_room = false;                ///< some were dropped although they were not too old
  };

  /// As RecordingWriter::start().
  [[nodiscard]] static FlightRecorder start(const AttachPlan& plan, const EventLayout& layout, RecordingInfo info,
                                            const Limits& limits);
  FlightRecorder(FlightRecorder&&) noexcept;
  FlightRecorder& operator=(FlightRecorder&&) noexcept;
  ~FlightRecorder();

  /// As RecordingWriter::plan().
  void plan(const AttachPlan& plan);
  /// Adds an event, as RecordingWriter::event(), and forgets what is too old.
  void event(const Event& event, std::int64_t wall_offset, const EventStacks& stacks = {});
  /// As RecordingWriter::notice(); all are kept.
  void notice(const RecordedNotice& notice);
  /// As RecordingWriter::followed(); all are kept.
  void followed(const Followed& followed);
  /// As RecordingWriter::property(); all are kept.
  void property(std::string_view name, std::string_view text);
  /// What write() would write.
  [[nodiscard]] Kept kept();
  /// A whole recording of what is kept, with this account of it. It goes on keeping. Errors: the sink's.
  [[nodiscard]] Result<void> write(const RecordingWriter::Sink& sink, const RecordedLedger& ledger);

 private:
  struct Impl;
  explicit FlightRecorder(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Reads a recording, which may be anybody's: memory and time are bounded by its size. Events are those of the trace,
/// and what shows or judges those of a Tracer takes these as well. One thread at a time.
class Recording {
 public:
  /// A file of the plan, beside what that has of it.
  struct File {
    Machine machine = Machine::x86_64;
    std::string build_id = {};  ///< lower-case hex; empty: none
  };

  /// Reads all but the events. Errors: not_found, no_permission, io; malformed (no recording, or one that contradicts
  /// itself), not_supported (another version, no regular file), limit (more sites than anybody traces).
  [[nodiscard]] static Result<Recording> open(const std::filesystem::path& file);
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;
  ~Recording();

  /// Who made it, and where.
  [[nodiscard]] const RecordingInfo& info() const noexcept;
  /// One of RecordingInfo::properties; nothing: it has none of that name.
  [[nodiscard]] std::optional<std::string_view> property(std::string_view name) const;
  /// What was traced, complete from the start. It cannot be attached: no file of it is open, and of arguments it is
  /// known what they are and, but for constants, not where.
  [[nodiscard]] const std::shared_ptr<const AttachPlan>& plan() const noexcept;
  /// By AttachPlan::files.
  [[nodiscard]] const std::vector<File>& files() const noexcept;
  /// Of the events that next() gives. Their stacks are beside them: kernel_stack(), user_stack().
  [[nodiscard]] const EventLayout& layout() const noexcept;
  /// In the order in which they were said.
  [[nodiscard]] const std::vector<RecordedNotice>& notices() const noexcept;
  /// In the order in which they came.
  [[nodiscard]] const std::vector<RecordedFollowed>& followed() const noexcept;
  /// How many of them came before the event that next() gave; once it has given all, all of them.
  [[nodiscard]] std::size_t followed_by_now() const noexcept;
  /// The last account; nothing: there is none. It is final if the recording is whole.
  [[nodiscard]] const std::optional<RecordedLedger>& ledger() const noexcept;

  /// The next event, valid until the next call; null: there are no more. Errors: io, malformed.
  [[nodiscard]] Result<const Event*> next();
  /// What the time of day was more than CLOCK_MONOTONIC at that event, ns.
  [[nodiscard]] std::int64_t wall_offset() const noexcept;
  /// The stacks of that event, with the names they had then. Empty: none was recorded. Errors: why there was none.
  [[nodiscard]] Result<Stack> kernel_stack() const;
  /// The same of the process.
  [[nodiscard]] Result<Stack> user_stack() const;
  /// Empty: it is whole. Else where it ends before its end, and why: "... after 1234 bytes"; or how ledger()
  /// contradicts itself or the events. Complete once next() has given all events.
  [[nodiscard]] const std::string& cut() const noexcept;

 private:
  struct Impl;
  explicit Recording(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
