// SPDX-License-Identifier: BSD-2-Clause
// A question: what to trace, which hits count, and what to show of them, as one plain value. parse_points(),
// parse_pairing(), parse_prints() and parse_view() make its parts of texts; complete_question() fills in what follows
// from others, check_question() says whether all of it goes together. Neither needs privilege:
//
//     usdt::Question question;
//     question.points = *usdt::parse_points({"python:gc__start ~~ python:gc__done"});
//     question.view = *usdt::parse_view({.by = "pid", .latency = true});
//     usdt::complete_question(question);
//     if (auto sense = usdt::check_question(question); !sense) puts(sense.error().message.c_str());
//
// Values may be copied freely; what they share is constant, so that threads may have copies of their own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/backend.hpp"
#include "usdt/carrier.hpp"
#include "usdt/expression.hpp"
#include "usdt/format_string.hpp"
#include "usdt/pattern.hpp"
#include "usdt/plan.hpp"
#include "usdt/print_list.hpp"
#include "usdt/result.hpp"
#include "usdt/stack.hpp"
#include "usdt/tracer.hpp"
#include "usdt/view.hpp"

namespace usdt {
inline namespace v1 {

/// The points that are traced.
struct AskedPoints {
  std::vector<PointPattern> patterns = {};
  std::vector<PointPattern> ends = {};  ///< of spans, which begin at `patterns`; empty: hits are events of their own
  SpanPairing pairing = {};             ///< of spans
  bool skip_unknown = false;            ///< goes on without points of the kernel that this kernel does not have
  bool debuginfod = false;              ///< asks servers for debug files
};

/// The processes whose hits count. Nothing of these: everybody's.
struct AskedProcesses {
  std::vector<pid_t> pids = {};              ///< each once
  bool children = false;                     ///< and the children of these, and theirs
  std::vector<std::string> command = {};     ///< a program and its arguments, which the caller starts for the trace
  std::vector<std::string> cgroups = {};     ///< cgroups of version 2, by name (find_cgroup())
  std::vector<std::string> containers = {};  ///< by id (find_container())
};

/// The values of events.
struct AskedValues {
  Prints print = {};         ///< which are shown
  FormatString format = {};  ///< how lines of them look; empty: one after the other
  /// Reads the text that an argument plainly points to besides the number; nothing: it is read, and sinks of text show
  /// it, those of JSON and CSV do not. `false` for consumers of your own that take numbers, or name texts in `print`
  /// ("str(arg1)"): a short text may not be told from a number.
  std::optional<bool> likely_texts = {};
  bool trace_context = false;       ///< events are shown with what their threads work for (Event::thread_context())
  bool trace_attributes = false;    ///< and with its attributes (Event::thread_attributes())
  bool containers = false;          ///< events have an owner (Event::owner()), by which sinks name its container
  std::uint32_t depth = 1;          ///< structs within structs that are shown with their members
  std::uint32_t string_size = 200;  ///< of a text at most so many bytes
};

/// How much is enough, and too much.
struct AskedLimits {
  std::uint64_t max_events = UINT64_MAX;
  std::optional<double> seconds = {};  ///< of the trace
  std::uint32_t sample = 1;            ///< of the hits one in so many is looked at
  std::uint32_t max_rate = 0;          ///< events a second; 0: any number
  double max_overhead = 0;             ///< TraceOptions::max_overhead
};

/// The stacks that events have.
struct AskedStacks {
  /// Functions of a stack that are shown, if nobody says how many.
  static constexpr std::uint32_t kUsualUserDepth = 32, kUsualKernelDepth = 16;

  std::uint32_t kernel_depth = 0;  ///< functions; 0: no stack
  std::uint32_t user_depth = 0;    ///< functions; 0: no stack
  bool kernel_in_lists = false;    ///< the stack is shown where print lists name it, and nowhere else
  bool user_in_lists = false;      ///< likewise
  StackMethod user_method = StackMethod::call_frame_info;
  std::uint32_t user_kilobytes = 16;  ///< of a process's stack so much is copied at each hit: 4 to 64, a multiple of 4
};

/// Whether the trace takes in what comes after it has begun.
struct AskedFollowing {
  bool follow = true;                                   ///< libraries, programs, files and children of the command
  bool wait = false;                                    ///< waits for what is not there yet
  bool hold_exec = false;                               ///< FollowOptions::hold_exec
  std::uint32_t max_followed = Tracer::kMostAdditions;  ///< TraceOptions::max_additions
};

/// How sites are attached and values reach their programs.
struct AskedAttaching {
  Backend backend = Backend::automatic;  ///< of files
  Backend kernel_backend = Backend::automatic;
  Carrier carrier = Carrier::automatic;
  std::uint32_t max_programs = 64;          ///< TraceOptions::max_programs
  std::optional<bool> wait_for_pages = {};  ///< TraceOptions::wait_for_pages
  bool allow_unsafe_nop5 = false;           ///< PlanOptions::allow_unsafe_nop5
  std::uint32_t ring_megabytes = 0;         ///< of the ring of events; 0: as ring_size() says

  static constexpr std::uint32_t kUsualRing = 32, kUsualRingThroughBroker = 8;
  /// Returns the size of the ring of events in MiB. A service (SessionOptions::broker) bounds what a user gets within
  /// an hour: unless somebody says more, each trace takes little of that.
  [[nodiscard]] std::uint32_t ring_size(bool through_broker) const noexcept {
    if (ring_megabytes != 0) return ring_megabytes;
    return through_broker ? kUsualRingThroughBroker : kUsualRing;
  }
};

/// The files that events go to and come from.
struct AskedRecording {
  std::string file = {};                              ///< for the caller, who opens the sink "record" on it (sink.hpp)
  std::string replay = {};                            ///< events are those of this recording; empty: they are traced
  std::optional<std::chrono::nanoseconds> last = {};  ///< only those of the last while are recorded
  std::shared_ptr<const Expression> dump_on = nullptr;  ///< which are written, too, once it holds for an event
};

/// One question.
struct Question {
  std::string name = {};           ///< of one among several; empty: there is one
  std::string option_prefix = {};  ///< stands before the names of options in messages: "--" on a command line
  AskedPoints points = {};
  AskedProcesses processes = {};
  /// Null: every hit counts. The kernel decides it, but for what asks for Operator::attribute.
  std::shared_ptr<const Expression> where = nullptr;
  AskedValues values = {};
  View view = {};
  AskedLimits limits = {};
  AskedStacks stacks = {};
  AskedFollowing following = {};
  AskedAttaching attaching = {};
  AskedRecording recording = {};
  std::uint64_t began = 0;  ///< event_clock(), ns, from which "elapsed" counts; 0: where its session begins
};

/// The names of points as text: where spans begin and where they end. Without spans all are among the first.
struct SpanSides {
  std::vector<std::string> begins = {};
  std::vector<std::string> ends = {};
};
/// Splits "A ~~ B", or "A" "~~" "B". Errors: invalid_argument.
[[nodiscard]] Result<SpanSides> split_spans(const std::vector<std::string>& words);
/// Makes points of names, with "~~" between those where spans begin and those where they end. Errors: as split_spans()
/// and parse_patterns().
[[nodiscard]] Result<AskedPoints> parse_points(const std::vector<std::string>& words);
/// Makes a pairing of "KEYS", or "KEYS ~~ KEYS". Messages put `prefix` before the names of options. Errors: syntax.
[[nodiscard]] Result<SpanPairing> parse_pairing(std::string_view text, std::string_view prefix = {});

/// Returns the patterns of a question; of spans those of both sides.
[[nodiscard]] std::vector<PointPattern> all_patterns(const Question& question);
/// Whether nothing but kernel functions and raw tracepoints is traced.
[[nodiscard]] bool all_in_kernel(const Question& question);

/// Makes "elapsed" count from `nanoseconds` on, ns of event_clock(), in all that is asked.
void begin_question(Question& question, std::uint64_t nanoseconds);
/// Fills in what follows from other parts: a process that is named twice is meant once, texts that have a size have
/// room, and stacks that print lists name are taken.
void complete_question(Question& question);
/// Says whether the parts of a complete question go together. Errors: invalid_argument, with what does not go with
/// what, and why.
[[nodiscard]] Result<void> check_question(const Question& question);

}  // namespace v1
}  // namespace usdt
