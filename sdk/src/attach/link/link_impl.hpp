// SPDX-License-Identifier: BSD-2-Clause
// The belongings of a Link. Private to attach/link.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "link/attached_programs.hpp"
#include "link/family_members.hpp"
#include "link/file_guard.hpp"
#include "link/kernel_links.hpp"
#include "link/served.hpp"
#include "program/bpf_object_impl.hpp"
#include "usdt/link.hpp"

namespace usdt {
inline namespace v1 {

/// A link that usdt-broker makes for each process of a family.
struct LinkThere {
  std::shared_ptr<backends::ProgramsThere> programs;
  std::uint32_t number = 0;             ///< of the planned link
  std::vector<std::uint32_t> left_out;  ///< places of it
  backends::AttachedTo to;
  std::set<pid_t> asked = {};  ///< processes that it was asked for, attached or not
};

struct Link::Impl {
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    watch.reset();
    guard.reset();
  }

  /// Watches the attached files that are not watched yet; from then on another thread may detach them. Errors: limit.
  [[nodiscard]] Result<void> guard_files();
  /// Attaches to what `family` starts from now on, unless that is done already. Errors: limit.
  [[nodiscard]] Result<void> watch_family(const backends::Family& family);
  /// Takes over what `other` has attached, which nothing guards yet. Its plan is a part of `whole`, which begins there
  /// at `place`.
  void absorb(Impl& other, std::shared_ptr<const AttachPlan> whole, const backends::PartPlace& place);
  /// Takes over the kernel's links of `again`, which are of these sites, after pause().
  void take_links(Impl& again);
  /// Detaches the sites of files of the plan, for good; how many they were.
  std::size_t detach_files(const std::set<Index<PlannedFile>>& files);
  /// Stops watching these files.
  void forget_files(const std::set<Index<PlannedFile>>& files);

  mutable std::mutex mutex;                ///< of what detach_files() changes, as long as there is a guard
  std::shared_ptr<const AttachPlan> plan;  ///< null: opened from pins
  Backend backend = Backend::automatic;
  Carrier carrier = Carrier::automatic;
  std::string carrier_text;
  std::string program;  ///< the one that runs at the sites; empty: those that the plan names
  bool joined = false;  ///< by absorb(): it is of several objects
  backends::KernelLinks links;
  backends::AttachedPrograms programs;
  backends::AttachedSites sites;
  /// In place of `programs`: those that usdt-broker has loaded, which of several objects are several.
  std::vector<std::shared_ptr<backends::ProgramsThere>> there;
  std::vector<LinkThere> of_family;         ///< each is also in `links`, once for each process
  std::optional<StartedProcesses> started;  ///< nothing: there is no family
  std::set<pid_t> known;                    ///< processes of the family that are counted
  std::set<pid_t> ended;                    ///< processes whose links are still to be closed
  std::vector<SkippedSite> refused;
  std::vector<MissedHits> missed_by_links;  ///< when they were detached
  std::vector<FileChange> changes;
  std::set<Index<PlannedFile>> given_up;    ///< detach_files()
  std::vector<Index<PlannedFile>> guarded;  ///< by the guard's numbers
  std::optional<backends::FileGuard> guard;
  std::unique_ptr<backends::FamilyWatch> watch;  ///< of a family that is traced through usdt-broker

 private:
  /// Attaches to processes that have come.
  void attach_to(const backends::FamilyWatch& found);
  void attach_to(pid_t pid, const backends::FamilyMembers& members);
  /// Asks for one link. Errors: those of the service.
  [[nodiscard]] Result<void> attach_to(pid_t pid, const LinkThere& link, const backends::FamilyMembers& members);
  /// Closes the links of processes that have ended, many together.
  void close_ended(const backends::FamilyMembers& members);
  void close_ended_now();
  /// Returns the files that are attached and not watched yet; they count as watched from here on.
  [[nodiscard]] std::vector<backends::GuardedFile> take_unguarded();
};

}  // namespace v1
}  // namespace usdt
