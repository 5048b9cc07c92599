// SPDX-License-Identifier: BSD-2-Clause
// A plan while it is attached: LoadedObject::attach() makes a Link, Tracer::link() has one; destroying it detaches all.
// Link::refused() and Link::changes() tell what is not attached, or no longer; Link::pin() leaves it attached for
// others.
//     auto link = loaded->attach();
//     if (!link) return fail(link.error());
//     print(link->backend_text(), link->attached());   // "uprobe_multi", 3
// Threads: several may call the const functions, as long as none detaches, moves or destroys the Link meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/backend.hpp"
#include "usdt/carrier.hpp"
#include "usdt/file_change.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Counts hits that the kernel ran no program for, as one of its counters tells: that of a program, or of a link.
struct MissedHits {
  Backend backend = Backend::automatic;
  std::optional<std::uint64_t> hits;        ///< nothing: this kernel does not count them
  std::vector<Index<PlannedProbe>> probes;  ///< their probes; if there are several, the counter does not tell which
};

/// Counts what a family has started since it is traced through a Broker (LoadOptions::family), whose links are for one
/// process each: processes are found some milliseconds after they began, and attached then. Hits before that are in no
/// count, nor are those of processes that ended before they were found.
struct StartedProcesses {
  std::uint64_t attached = 0;   ///< they were attached, after their start
  std::uint64_t too_short = 0;  ///< they were found, and ended before they could be attached
  std::uint64_t refused = 0;    ///< setuid programs, for example
  std::string why = {};         ///< the first of `refused` was
};

/// Holds a plan that is attached. Destroying the Link detaches every site; if the process dies, the kernel detaches
/// them. Threads: several may call the const functions, as long as none detaches, moves or destroys the Link meanwhile.
class Link {
 public:
  Link(Link&&) noexcept;
  Link& operator=(Link&&) noexcept;
  ~Link();

  /// Returns the backend by which the plan's files are attached; if it has no files, that of its kernel functions.
  [[nodiscard]] Backend backend() const noexcept;
  /// Returns all backends in words: "uprobe_multi", "uprobe_multi (3 sites), tracing_multi (409 sites)".
  [[nodiscard]] std::string backend_text() const;
  /// Returns the carrier by which the specs of most sites reach the program.
  [[nodiscard]] Carrier carrier() const noexcept;
  /// Returns the carriers of all sites in words (CarrierPlan::describe()).
  [[nodiscard]] const std::string& carrier_text() const noexcept;
  /// Returns the number of sites attached.
  [[nodiscard]] std::size_t attached() const noexcept;
  /// Returns the sites of the plan that the kernel refused, each named by bisection with its errno; all others are
  /// attached. Valid until more is attached (LoadedObject::attach_to()).
  [[nodiscard]] const std::vector<SkippedSite>& refused() const noexcept;
  /// Returns the hits that the kernel did not run a program for, one entry for each counter that the kernel has:
  /// programs count them in bpf_prog_info::recursion_misses (Linux 5.12; of kprobes 6.7), links of kprobes as missed.
  /// They are in no other number, except that a call whose end is missed is also unfinished.
  ///
  /// A trampoline or raw tracepoint does not run its program on a processor where a task was preempted or interrupted
  /// within that same program. Kprobes run none on a processor that is within any BPF program, or within a system call
  /// about BPF maps.
  ///
  /// The numbers stay readable after detach(). Empty: the link was opened from pins.
  [[nodiscard]] std::vector<MissedHits> missed_hits() const;
  /// Returns the sum of missed_hits(). Nothing: the kernel does not count them (hits of kprobes are taken to be
  /// uncounted before 6.10), or the link was opened from pins.
  [[nodiscard]] std::optional<std::uint64_t> missed() const;
  /// Returns what the processes of a family have started that is traced through a Broker; nothing: there is none.
  [[nodiscard]] std::optional<StartedProcesses> started() const;
  /// Returns the changes of the plan's files since they were attached, in the order in which they were seen. A thread
  /// of the Link watches the files, and detaches the sites of a file that is written to: before the first byte is
  /// written, wherever the kernel allows that (FileChangeKind). The files of links opened from pins are not watched.
  [[nodiscard]] std::vector<FileChange> changes() const;
  /// Makes `directory` in a BPF file system (/sys/fs/bpf/NAME) and pins the kernel's links there: they stay attached
  /// when this Link and its process are gone. Errors: io (exists already, ...), invalid_argument (no BPF file system;
  /// detached), no_permission. After an error nothing is pinned.
  [[nodiscard]] Result<void> pin(const std::filesystem::path& directory) const;
  /// Opens what pin() left, in any process; its refused() is empty. Destroying the Link detaches only what is no longer
  /// pinned. Errors: not_found (no directory, or no links in it), malformed, no_permission, io.
  [[nodiscard]] static Result<Link> open(const std::filesystem::path& directory);
  /// Removes the pins in `directory`, and the directory. Kernel links that no Link holds are detached. Errors:
  /// not_found, no_permission, io.
  [[nodiscard]] static Result<void> unpin(const std::filesystem::path& directory);

  /// Detaches the sites of these files of the plan for good, and closes the files. `plan` becomes the link's plan: a
  /// copy of the plan so far in which these files have no PlannedFile::elf. Returns how many sites were detached.
  std::size_t let_go(const std::vector<Index<PlannedFile>>& files, std::shared_ptr<const AttachPlan> plan);

  /// Detaches for a while: the link still knows its sites, and LoadedObject::resume() attaches them again. Meanwhile
  /// hits cost nothing, and semaphores are down. It takes as long as detach(). Only for links to files.
  void pause() noexcept;

  /// Detaches every site now; the kernel waits for running programs to end (10 to 35 ms for a link of any size
  /// on 6.18).
  void detach() noexcept;

 private:
  friend class Attachment;
  friend class LoadedObject;
  struct Impl;
  explicit Link(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
