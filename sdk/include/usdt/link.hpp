// SPDX-License-Identifier: BSD-2-Clause
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

/// Hits that the kernel ran no program for, as one program or link counts them.
struct MissedHits {
  Backend backend = Backend::automatic;
  std::optional<std::uint64_t> hits;        ///< nothing: this kernel does not count them
  std::vector<Index<PlannedProbe>> probes;  ///< whose hits they were; none of them known if there are several
};

/// A plan that is attached. Dropping it detaches every site; the kernel does the same should the process die. Its const
/// functions may be called from several threads, though not while one detaches, moves or drops it.
class Link {
 public:
  Link(Link&&) noexcept;
  Link& operator=(Link&&) noexcept;
  ~Link();

  /// Of the plan's files; of its kernel functions where it has no files.
  [[nodiscard]] Backend backend() const noexcept;
  /// All of them: "uprobe_multi", "uprobe_multi (3 sites), tracing_multi (409 sites)".
  [[nodiscard]] std::string backend_text() const;
  /// How the specs of most sites travel, and that of all in words (CarrierPlan::describe).
  [[nodiscard]] Carrier carrier() const noexcept;
  /// The same in words.
  [[nodiscard]] const std::string& carrier_text() const noexcept;
  /// Number of sites attached.
  [[nodiscard]] std::size_t attached() const noexcept;
  /// Sites of the plan that the kernel refused, each named by bisection with its errno; all others are attached. Valid
  /// until more is attached (LoadedObject::attach_to()).
  [[nodiscard]] const std::vector<SkippedSite>& refused() const noexcept;
  /// Hits the kernel did not run a program for (bpf_prog_info::recursion_misses, 5.12; of kprobes 6.7, with what their
  /// links count as missed), in no other number, but that a call whose end is missed is also unfinished. Why, depends
  /// on the backend: a trampoline or raw tracepoint does not run its program where a task was preempted or interrupted
  /// within the same one on that processor; kprobes run none while that processor is within any BPF program or system
  /// call of BPF maps. One for each program and link that can miss. Stays readable when detached; empty if the link was
  /// opened from pins.
  [[nodiscard]] std::vector<MissedHits> missed_hits() const;
  /// Their sum; nullopt: the kernel does not count them (of kprobes, taken to be so before 6.10), or the link was
  /// opened from pins.
  [[nodiscard]] std::optional<std::uint64_t> missed() const;
  /// Files of the plan that were changed since they were attached, in the order in which that was seen. A thread of the
  /// Link watches them, and lets go of one that is written to, before the first byte is written wherever the kernel
  /// lets it (see FileChangeKind). Links opened from pins are not watched.
  [[nodiscard]] std::vector<FileChange> changes() const;
  /// Pins the kernel's links in `directory`, which is made, in a BPF file system (/sys/fs/bpf/NAME): then they stay
  /// attached when this Link and its process are gone. Errors: io (exists already, ...), invalid_argument (no BPF file
  /// system; detached), no_permission. After an error nothing is pinned.
  [[nodiscard]] Result<void> pin(const std::filesystem::path& directory) const;
  /// What pin() left, in any process; refused() is empty. Dropping it detaches only what is no longer pinned. Errors:
  /// not_found, malformed, no_permission.
  [[nodiscard]] static Result<Link> open(const std::filesystem::path& directory);
  /// Removes the pins of `directory`: what no Link holds is detached.
  [[nodiscard]] static Result<void> unpin(const std::filesystem::path& directory);

  /// Detaches the sites of these files of the plan, for good, and keeps nothing of them open. `plan`: the same plan,
  /// without their PlannedFile::elf. How many sites that were.
  std::size_t let_go(const std::vector<Index<PlannedFile>>& files, std::shared_ptr<const AttachPlan> plan);

  /// Detaches for a while: what is known of the sites stays, and LoadedObject::resume() attaches them again. Takes what
  /// detach() does. Of links to files; what their hits cost is nothing meanwhile, and semaphores are down.
  void pause() noexcept;

  /// Detaches now; the kernel waits for running programs to end (10 to 35 ms for a link of any size on 6.18).
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
