// SPDX-License-Identifier: BSD-2-Clause
// Traces that follow: libraries that are opened later, programs that are started, files that take the place of others,
// probes that a process makes at run time. Follower::open() remembers from then on, begin() looks, take() hands over.
//     auto follower = usdt::Follower::open();                    // from here on nothing is overlooked
//     ... select, plan, Tracer::start ...
//     follower->begin({.patterns = patterns, .scope = {.pids = {4711}}, .known = files of the plan, ...});
//     ... wherever events are taken:
//     for (usdt::FollowEvent& each : follower->take()) tracer.add(plan of each.file);
// Threads: one at a time calls a Follower, which has a thread of its own; its destructor ends that.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/pattern.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Names the processes whose files are followed.
struct FollowScope {
  std::vector<pid_t> pids = {};  ///< these processes; none, and no cgroup: every process
  bool descendants = false;      ///< also what `pids` have forked, and what they fork from then on
  /// Directories of cgroup v2: processes in them and below. One need not be there yet.
  std::vector<std::filesystem::path> cgroups = {};
  bool processes = true;  ///< false: nothing that processes map, only `FollowOptions::paths`
};

/// Says what a Follower looks for, and how.
struct FollowOptions {
  /// The patterns, as select() takes them; patterns of the kernel are passed over.
  std::vector<PointPattern> patterns = {};
  FollowScope scope = {};
  /// Names of files: a file that takes the place of one, or is there for the first time, is looked into, whether a
  /// process maps it or not.
  std::vector<std::filesystem::path> paths = {};
  std::vector<std::shared_ptr<const ElfFile>> known = {};  ///< files that are traced already, and need not be found
  /// Called from a thread of the Follower when take() has something.
  std::function<void()> on_event = {};
  /// A program that one of the scope starts is held in execve(2), a second at most, until what it runs, and the
  /// libraries it needs, have been looked at, and done() was called for what was found. For all others on this machine
  /// execve(2) takes some 50 us longer. Nothing stays held when the Follower or its process ends; while that is stopped
  /// (SIGSTOP, a debugger), a second process, of which its wait(2) does not know, releases all after a second.
  /// (fanotify(7), FAN_OPEN_EXEC_PERM: Linux 5.0, CAP_SYS_ADMIN.)
  bool hold_exec = false;
  /// Whether take() also tells which files, of `known` and of those that were found, are gone (FollowKind::gone). Their
  /// sites can then be detached for good (Tracer::let_go()), which makes room for others. The Follower reads in
  /// /proc/PID/maps of all processes in the caller's pid namespace that nobody has a file mapped. This takes
  /// CAP_SYS_PTRACE, and CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; without them no file is said to be gone.
  bool tell_gone = false;
  /// The most files that are followed at once, and in all. Files of one owner other than root get half of these places
  /// at most, so that no user takes those of all others; more are counted (FollowCounts::crowded), and found again when
  /// somebody maps them later. With tell_gone, where an eighth of the places or less is left, take() also tells which
  /// files nobody has mapped any more (FollowKind::unused), as many as leave a quarter. 0: without limit.
  std::size_t most_files = 0, most_files_ever = 0;
};

/// Tells why a file came, or that it went.
enum class FollowKind : std::uint8_t {
  library,  ///< a process mapped another file as code
  program,  ///< a process runs another program
  runtime,  ///< a process made probes at run time: code in a file without a name
  file,     ///< there is another file of a name (FollowOptions::paths)
  /// No name that the file was found by leads to it, and no process has it mapped: nobody runs it
  /// (FollowOptions::tell_gone). Should somebody map it after all, who had it open, it is found again.
  gone,
  /// No process has it mapped, though its name leads to it, and others need its place (FollowOptions::most_files).
  /// Those go first that were mapped longest ago. It is found again when somebody maps it.
  unused,
};
/// Returns "library", "program", "runtime", "file", "gone" or "unused".
[[nodiscard]] std::string_view to_string(FollowKind kind) noexcept;

/// Reports a file that came (or went), with the points in it that the patterns mean.
struct FollowEvent {
  FollowKind kind = FollowKind::library;
  pid_t pid = 0;  ///< the process that maps it, in the caller's pid namespace; 0: none, or FollowKind::file
  /// CLOCK_MONOTONIC, ns: when it was mapped, or was there. Hits between then and the attachment were not traced.
  std::uint64_t time = 0;
  ProbeFile
      file;  ///< the file with the points that the patterns mean in it; of FollowKind::gone and unused its `elf` alone
};

/// Reports what became of a FollowEvent.
struct Followed {
  FollowKind kind = FollowKind::library;
  pid_t pid = 0;               ///< 0: nobody's
  std::string file = {};       ///< its path
  std::uint64_t time = 0;      ///< FollowEvent::time
  std::int64_t wall_time = 0;  ///< the time of day then: CLOCK_REALTIME, ns
  std::uint64_t after_ns = 0;  ///< from then on until it was attached
  std::size_t probes = 0, sites = 0, attached = 0;
  std::string error = {};  ///< why it is not traced; empty: it is
};

/// Counts what a Follower did since it was opened.
struct FollowCounts {
  std::uint64_t looked_at = 0;  ///< files that were scanned
  /// Mappings whose file was gone before it could be looked at, since the process lived for a moment only. Should the
  /// file be mapped again, it is looked at then.
  std::uint64_t too_short = 0;
  /// Records that the kernel had no room for; all processes in question were looked at instead.
  std::uint64_t lost = 0;
  std::uint64_t dropped = 0;  ///< events that nobody took in time
  /// FollowOptions::hold_exec: programs that were held, those that went on after a second whatever they run, and how
  /// long 99 of 100 were held, and the longest.
  std::uint64_t held = 0, let_go = 0, hold_p99_ns = 0, hold_max_ns = 0;
  std::uint64_t gone = 0;     ///< FollowOptions::tell_gone: files
  std::uint64_t unused = 0;   ///< files that made room for others (FollowKind::unused)
  std::uint64_t crowded = 0;  ///< times a file was left out, since its owner has as many as one may have
};

/// Lists the processes in a directory of cgroup v2 and below it, by their numbers in the caller's pid namespace.
/// Errors: not_found (no such directory).
[[nodiscard]] Result<std::vector<pid_t>> processes_of_cgroup(const std::filesystem::path& cgroup);
/// Finds a directory of cgroup v2 by its path: absolute, below where cgroup v2 is mounted, or as /proc/PID/cgroup has
/// it. Errors: not_found (no such cgroup; cgroup v2 is not mounted).
[[nodiscard]] Result<std::filesystem::path> find_cgroup(std::string_view name);
/// Finds the cgroup of a container of Docker, Podman, containerd, CRI-O or systemd-nspawn, by its id or the beginning
/// of that (at least 6 characters), which these have in the names of their cgroups. Errors: not_found; invalid_argument
/// (`id` is shorter, or several begin so).
[[nodiscard]] Result<std::filesystem::path> find_container(std::string_view id);

/// Watches processes and files, and finds the points that patterns mean in new ones. A thread of its own looks; one
/// thread at a time calls the functions.
class Follower {
 public:
  /// Milliseconds between two looks at processes and directories where the kernel does not tell of changes.
  static constexpr int kLookEveryMs = 250;

  /// Begins to record what processes map (perf_event_open(2); CAP_PERFMON where sysctl kernel.perf_event_paranoid is
  /// above 0). Without that permission processes are looked at every kLookEveryMs after begin(): this is no error.
  [[nodiscard]] static Result<Follower> open();
  Follower(Follower&&) noexcept;
  Follower& operator=(Follower&&) noexcept;
  ~Follower();

  /// Begins to look, also at what has happened since open(). Errors: limit (threads, descriptors), invalid_argument (it
  /// has begun already); with hold_exec no_permission, not_supported.
  [[nodiscard]] Result<void> begin(FollowOptions options);

  /// Returns what was found since the last call; never waits.
  [[nodiscard]] std::vector<FollowEvent> take();

  /// Says that the file of `event` is attached, or will not be: the program that is held for it goes on.
  void done(const FollowEvent& event);
  /// Says that the file of `event` could not be attached. It is found again after it has changed; a file that is still
  /// being written is found again once it has not changed for a moment.
  /// `for_want_of_room`: it is also found again when somebody maps it a minute later.
  void refused(const FollowEvent& event, bool for_want_of_room = false);

  /// Returns what the follower did so far.
  [[nodiscard]] FollowCounts counts() const;
  /// Says in words by what means it learns of new files: "perf events", "/proc, every 250 ms: ...".
  [[nodiscard]] std::string source() const;

 private:
  struct Impl;
  explicit Follower(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
