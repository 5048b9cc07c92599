// SPDX-License-Identifier: BSD-2-Clause
// Files that were found, until they are gone: their names lead to them no more, and no process has them mapped. Where
// others need their places, a name alone does not keep them. Private to follow/.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "follow/file_looks.hpp"
#include "follow/file_shares.hpp"
#include "proc/mapped_files.hpp"
#include "usdt/discover.hpp"
#include "usdt/elf_file.hpp"

namespace usdt::follow {

/// Looks for mappings in all processes, which takes some 50 us each: a hundredth of the time at most, and less often
/// while nothing changes.
class HeldFiles {
 public:
  struct Gone {
    FileId id;
    TargetFile target;
    std::shared_ptr<const ElfFile> elf;  ///< null: nobody has kept it, so that it is not traced
    std::int64_t changed = 0;            ///< FileLooks::know()
    bool makes_room = false;             ///< its name still leads to it
  };
  /// How a file that is held was found.
  enum class Found : std::uint8_t {
    named,     ///< by its name, which keeps it whether or not somebody maps it; or it was known before
    mapped,    ///< by who maps it
    executed,  ///< by who is executing it and waits meanwhile (ExecHold), and has not mapped it yet
  };

  /// `told_of_mappings`: mapped() is called for each mapping that is made from now on. `shares`, if not null, says who
  /// has to make room, and lives as long.
  HeldFiles(bool told_of_mappings, FileShares* shares);

  /// From now on it is one of them, as long as somebody keeps `elf`. (What kept it could not be told of its inode.)
  void hold(const std::shared_ptr<const ElfFile>& elf, const TargetFile& target, Found found);
  /// Whether there are processes whose mappings are known by mapped() alone.
  [[nodiscard]] bool wants_mappings() const noexcept { return !unreadable_.empty(); }
  /// Notes that a process maps that file now, or has mapped it a moment ago.
  void mapped(std::uint64_t inode, pid_t pid);
  void ended(pid_t pid) { unreadable_.erase(pid); }
  /// Notes that records of mappings were lost.
  void lost() { unreadable_.clear(); }

  /// Looks for a moment, if it is time to; returns the files that are gone, and holds them no more.
  [[nodiscard]] std::vector<Gone> look();
  /// Whether a look has begun and is not through.
  [[nodiscard]] bool is_looking() const noexcept { return processes_.has_value(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    std::weak_ptr<const ElfFile> elf;
    TargetFile target;
    std::int64_t changed = 0;
    Clock::time_point until = {};   ///< then who executes it has it mapped
    bool linked = true;             ///< it has names, wherever they are
    bool may_be_unreadable = true;  ///< a process that nobody may look into may have it mapped
    bool may_make_room = false;     ///< who maps it again finds it again
    bool is_gone = false;           ///< no name leads to it
  };
  using Candidates = std::multimap<std::uint64_t, FileId>;

  [[nodiscard]] std::vector<Gone> begin();
  void look_below(const std::filesystem::path& root);
  [[nodiscard]] std::vector<Gone> conclude();
  void give_up(Candidates::iterator candidate, std::shared_ptr<const ElfFile> elf, std::vector<Gone>& gone);
  void make_room(std::vector<Candidates::iterator> unmapped, std::vector<Gone>& gone);

  FileShares* shares_;
  std::map<FileId, Held> files_;
  std::unordered_map<std::uint64_t, Clock::time_point> used_;  ///< inodes of `files_`: when they were mapped last
  bool blind_;                                                 ///< it cannot be told what processes have mapped
  /// Processes into which nobody may look, since before `born_`: what was made later they can only have mapped so that
  /// it was told of.
  std::set<pid_t> unreadable_;
  std::set<std::uint64_t> by_unreadable_;       ///< inodes that they have mapped since
  std::int64_t born_ = 0;                       ///< CLOCK_REALTIME, ns
  std::optional<proc::MappedFiles> processes_;  ///< of the look that is under way
  Candidates candidates_;  ///< without a name of ours, or whose places others need; by inode number
  std::size_t candidates_before_ = 0;
  Clock::duration spent_{}, pause_;
  Clock::time_point next_, earliest_ = {};  ///< look
};

}  // namespace usdt::follow
