// SPDX-License-Identifier: BSD-2-Clause
// The belongings of a Link. Private to attach/link.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "link/backend.hpp"
#include "link/file_guard.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/link.hpp"

namespace usdt {
inline namespace v1 {

/// Says what a program or link is attached to, for what it misses.
struct Served {
  Backend backend = Backend::automatic;
  std::vector<Index<PlannedProbe>> probes;  ///< in order, each once
  std::set<Index<PlannedFile>> files = {};  ///< of a program for files, those at whose sites it runs
};

struct Link::Impl {
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    guard.reset();
    backends::close_together(fds, events);
  }

  /// Watches the attached files that are not watched yet; from then on another thread may detach them. Errors: limit.
  [[nodiscard]] Result<void> guard_files();
  /// Takes over what `other` has attached, which nothing guards yet. Its plan is a part of `whole`, whose files and
  /// probes begin there at `files` and `probes`.
  void absorb(Impl& other, std::shared_ptr<const AttachPlan> whole, std::uint32_t files, std::uint32_t probes);
  /// Takes over the kernel's links of `again`, which are of these sites, after pause().
  void take_links(Impl& again);
  /// Returns the files that are attached and not watched yet; they count as watched from here on.
  [[nodiscard]] std::vector<backends::GuardedFile> take_unguarded();
  /// Detaches the sites of files of the plan, for good; how many they were.
  std::size_t detach_files(const std::set<Index<PlannedFile>>& files);
  /// Closes the programs that ran at sites of these files alone.
  void close_programs(const std::set<Index<PlannedFile>>& files);

  mutable std::mutex mutex;                ///< of what detach_files() changes, as long as there is a guard
  std::shared_ptr<const AttachPlan> plan;  ///< null: opened from pins
  Backend backend = Backend::automatic;
  Carrier carrier = Carrier::automatic;
  std::string carrier_text;
  std::vector<backends::LinkFd> fds;
  std::vector<sys::AttachedFd> events;                         ///< perf events below them
  std::vector<std::optional<Index<PlannedFile>>> event_files;  ///< parallel to `events`
  std::vector<sys::TraceEvent> definitions;                    ///< of events that a family has; removed after them
  std::vector<sys::UniqueFd> programs;        ///< each that was attached, once; kept when detached, for what they count
  std::vector<Served> served_by_links;        ///< parallel to fds
  std::vector<Served> served_by_programs;     ///< parallel to programs
  std::map<Backend, std::size_t> by_backend;  ///< sites attached
  /// Sites attached, by file of the plan and backend: functions of a file may be attached by one backend at entries and
  /// by another at returns.
  std::map<std::pair<Index<PlannedFile>, Backend>, std::size_t> sites_of_file;
  std::vector<SkippedSite> refused;
  std::size_t attached = 0;
  std::vector<MissedHits> missed_by_links;  ///< when they were detached
  std::vector<MissedHits> missed_before;    ///< by programs that were closed
  std::vector<FileChange> changes;
  std::set<Index<PlannedFile>> given_up;    ///< detach_files()
  std::string program;                      ///< the one that runs at the sites; empty: those that the plan names
  bool joined = false;                      ///< by absorb(): it is of several objects
  std::vector<Index<PlannedFile>> guarded;  ///< by the guard's numbers
  std::optional<backends::FileGuard> guard;

  /// Notes that `links` are attached to `probes`, in this order; call it before they are moved to fds and programs.
  void note_served(const backends::FileLinks& links, Backend attached_by,
                   const std::vector<Index<PlannedProbe>>& probes);
  /// A program of the object itself, among programs at `index` or about to be put there, is attached to `probes`, or to
  /// sites of `file`, too.
  void note_program(std::size_t index, Backend attached_by, const std::vector<Index<PlannedProbe>>& probes,
                    std::optional<Index<PlannedFile>> file);
  /// Hits at kprobes that came within another one's handler and never got to a program; what did, and found one
  /// running, programs count.
  [[nodiscard]] std::vector<MissedHits> ask_links() const;
};

}  // namespace v1
}  // namespace usdt
