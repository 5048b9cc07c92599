// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// What stands before the names of options in messages about them.
inline constexpr std::string_view kOptionPrefix = "--";

enum class Format : std::uint8_t { text, json, csv };

/// The command line, or one question of a script, parsed and checked for sense.
struct Flags {
  std::string script;           ///< its file; empty: none
  std::string question = {};    ///< its name in the script; empty: it is the command line's
  std::string question_place;   ///< "gc.toml:7:1 (pauses)"
  std::size_t label_width = 0;  ///< of the longest name of a question
  bool first_question = true;   ///< of those that show what they find
  std::vector<usdt::PointPattern> patterns;
  bool debuginfod = false;               ///< servers are asked for debug files
  std::vector<usdt::PointPattern> ends;  ///< of spans, which begin at `patterns`; empty: hits are events of their own
  usdt::SpanPairing pairing;             ///< of spans
  std::vector<pid_t> pids;               ///< each once; empty: every process, or the command
  std::vector<std::string> command;      ///< after "--"
  usdt::Prints print;
  usdt::FormatString format_string;               ///< of lines of events; empty: ours
  std::shared_ptr<const usdt::Expression> where;  ///< null: every hit counts
  std::uint64_t began = 0;                        ///< CLOCK_MONOTONIC, ns: what "elapsed" counts from
  usdt::View view;                                ///< what is shown instead of events, if anything
  std::uint64_t max_events = UINT64_MAX;
  std::optional<double> duration_seconds;
  std::uint32_t sample = 1;    ///< of the hits one in so many is looked at
  std::uint32_t max_rate = 0;  ///< events a second; 0: any number
  double max_overhead = 0;     ///< TraceOptions::max_overhead
  Format format = Format::text;
  std::string output;                               ///< a file; empty: standard output
  std::string record;                               ///< a file for the events themselves; empty: none
  std::optional<std::chrono::nanoseconds> last;     ///< only events of the last while are recorded
  std::shared_ptr<const usdt::Expression> dump_on;  ///< which are written, too, once it holds for an event
  bool dump_on_signal = false;                      ///< or once SIGUSR1 came
  std::string replay;                               ///< such a file, to be shown instead of a trace
  std::uint32_t string_size = 200;
  std::uint32_t ring_megabytes = 32;
  usdt::Backend backend = usdt::Backend::automatic;  ///< of files
  usdt::Backend kernel_backend = usdt::Backend::automatic;
  std::uint32_t kernel_stack_depth = 0;
  std::uint32_t user_stack_depth = 0;
  /// They are shown where print lists name them, and nowhere else.
  bool kernel_stack_in_lists = false, user_stack_in_lists = false;
  usdt::StackMethod user_stack_method = usdt::StackMethod::call_frame_info;
  std::uint32_t user_stack_kilobytes = 16;  ///< of the copy
  std::uint32_t depth = 1;                  ///< structs within structs that are shown with their members
  bool skip_unknown = false;
  bool count_only = false;
  /// No event is shown, but what they come to.
  [[nodiscard]] bool no_events() const noexcept { return count_only || view.question; }
  /// Events are shown as they come.
  [[nodiscard]] bool each_event() const noexcept { return !no_events() && view.slowest == 0; }
  bool likely_texts = true;            ///< shown where an argument points to plain text
  std::optional<bool> wait_for_pages;  ///< TraceOptions::wait_for_pages
  usdt::Carrier carrier = usdt::Carrier::automatic;
  std::uint32_t max_programs = 64;
  bool follow = true;
  std::vector<std::string> cgroups;                           ///< --cgroup, by name
  std::vector<std::string> containers;                        ///< --container, by id
  bool wait = false;                                          ///< for what is not there yet
  bool hold_exec = false;                                     ///< FollowOptions::hold_exec
  std::uint32_t max_followed = usdt::Tracer::kMostAdditions;  ///< TraceOptions::max_additions
  bool children = false;                                      ///< of the process, too
  bool strict = false;
  bool allow_unsafe_nop5 = false;
  bool quiet = false;
  bool explain = false;      ///< say what would be traced, and trace nothing
  std::string verifier_log;  ///< file for what the kernel's verifier says of a program it refuses
  bool verbose = false;      ///< how it is attached
};

/// From when on "elapsed" counts in all that is asked.
void begin_at(Flags& flags, std::uint64_t nanoseconds);

/// Parses argv, and a script that it names; prints help, version or a usage error itself. Returns the questions,
/// without a script one; nothing when the program shall end, with the exit code in `exit_code`.
[[nodiscard]] std::optional<std::vector<Flags>> parse_flags(int argc, char** argv, int& exit_code);

}  // namespace usdt_trace
