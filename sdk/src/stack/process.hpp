// SPDX-License-Identifier: BSD-2-Clause
// Code mappings of processes, read while they live. Private to stack/.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "proc/mapped_code.hpp"
#include "stack/hotspot_code.hpp"
#include "stack/map_watch.hpp"
#include "stack/module.hpp"
#include "stack/perf_map.hpp"
#include "stack/script_names.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/event.hpp"

namespace usdt::stack {

/// One executable mapping.
struct Area {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;        ///< of `start` in the file
  std::shared_ptr<Module> module;  ///< null: of no file, or `issue`
  FrameIssue issue = FrameIssue::none;
  std::string name;    ///< the path, or what the kernel calls it ("[vdso]"); may be empty
  std::string detail;  ///< of the issue

  /// True for the mapping "[uprobes]": return probes replace return addresses by an address in it.
  [[nodiscard]] bool is_return_probe() const noexcept { return name == "[uprobes]"; }
  /// True for memory that a program has made code in: it has no name, or one that the program gave it.
  [[nodiscard]] bool may_be_jit() const noexcept {
    return !module && (!name.starts_with('[') || name.starts_with("[anon:"));
  }
};

/// Modules by inode: processes share them. An open one keeps its inode, so that no other file has its number.
class Modules {
 public:
  explicit Modules(const SymbolizerOptions& options) : options_(options) {}
  /// Sets the module of the mapping `code`, or the issue. `root`: the process's directory below /proc; empty: it is
  /// gone, and paths are as the kernel told them.
  void open(const proc::MappedCode& code, const std::string& root, Area& area);
  [[nodiscard]] const SymbolizerOptions& options() const noexcept { return options_; }
  /// Returns what a process holds as long as its code is followed (HotspotCode); null: as many are as may be.
  [[nodiscard]] std::shared_ptr<const void> follower() const;
  /// Returns the module of a file of a plan.
  [[nodiscard]] std::shared_ptr<Module> of(const PlannedFile& file);

 private:
  void open_vdso(const proc::MappedCode& code, const std::string& root, Area& area);

  using Inode = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;
  [[nodiscard]] OpenOptions open_options() const {
    return {.debug_dirs = options_.debug_dirs,
            .debuginfod = options_.debuginfod,
            .stop = options_.stop,
            .stop_asking = options_.stop_asking};
  }

  const SymbolizerOptions& options_;
  std::shared_ptr<const void> followers_ = std::make_shared<char>();
  std::map<Inode, std::weak_ptr<Module>> known_;
  std::deque<std::shared_ptr<Module>> kept_;              ///< the last ones
  std::map<std::string, std::shared_ptr<Module>> vdsos_;  ///< by their bytes
  std::map<const ElfFile*, std::pair<std::shared_ptr<const ElfFile>, std::shared_ptr<Module>>> planned_;
};

/// One process. Its mappings are remembered after it has ended.
class Process {
 public:
  /// Only tells it from others: refresh() reads what it has mapped.
  Process(pid_t pid, Modules& modules);
  /// A process that has ended, by its mappings.
  Process(std::vector<Area> areas, Modules& modules);
  /// Has the mappings of one that had ended before they were read. What is known of its scripts stays.
  void set_past(std::vector<Area> areas);

  /// Forgets what is not of the program that it has now. Whether it goes on with the one that it had.
  bool renew();
  /// Reads anew what may have changed: the process became another program, or its number is another process's; or what
  /// was read is old.
  void refresh();
  /// The area that has `address`. Reads the mappings again if none has. Null: there is none.
  [[nodiscard]] const Area* find(std::uint64_t address);
  /// The area with `address` as far as mappings were read already.
  [[nodiscard]] const Area* known(std::uint64_t address) const noexcept;
  /// Whether it goes on with the program that it had when its mappings were read.
  [[nodiscard]] bool lives() const noexcept;
  /// Reads the mappings again, unless that was just done.
  void read_again();
  [[nodiscard]] const std::vector<Area>& areas() const noexcept { return areas_; }
  /// Why nothing is known; none: something is.
  [[nodiscard]] FrameIssue issue() const noexcept { return issue_; }
  /// Why an address is in no area.
  [[nodiscard]] FrameIssue why_unknown() const noexcept {
    return issue_ != FrameIssue::none ? issue_ : complete_ ? FrameIssue::not_mapped : FrameIssue::process_gone;
  }
  /// Returns what a JIT compiler had at `address` during `when`.
  [[nodiscard]] std::optional<PerfMap::Found> in_perf_map(std::uint64_t address, Period when);
  /// Reads the perf map as it is at `time`, so that it is known what changes later, and follows what OpenJDK compiles.
  void look_at_code(std::uint64_t time);
  /// Whether the code at `address` is known to keep the frame pointer from its first call on, though nothing in the
  /// file says so: V8's, by its calling convention.
  [[nodiscard]] bool keeps_frame_pointers(std::uint64_t address, Period when);
  /// Whether `address` is the first instruction of a function of V8: a return that leads there leads out of no call.
  [[nodiscard]] bool resumes_at(std::uint64_t address, Period when);
  /// Returns the runtime that it runs.
  [[nodiscard]] Runtime runtime();
  /// Returns the names of the functions of scripts that it runs. `has_some`: it ran some, and is asked again if no
  /// interpreter was found in it before.
  [[nodiscard]] ScriptNames& scripts(bool has_some);
  /// Why a JIT compiler's code has no name, as far as that is known.
  [[nodiscard]] std::string_view why_no_perf_map();

 private:
  void read();
  [[nodiscard]] Frame builtin_at(std::uint64_t address, Period when);
  void follow_code();

  pid_t pid_;
  Modules* modules_;
  sys::UniqueFd directory_;  ///< below /proc: good for this process alone, not for the next one of its number
  dev_t device_ = 0;         ///< of the program
  ino_t inode_ = 0;
  std::int64_t read_at_ = 0;  ///< ns, CLOCK_MONOTONIC
  std::int64_t pause_ = 0;    ///< from then on nothing is read for so long
  std::vector<Area> areas_;   ///< by address
  std::optional<PerfMap> perf_map_;
  bool follow_asked_ = false;
  std::shared_ptr<const void> follower_;
  std::optional<HotspotCode> compiled_;
  std::unique_ptr<ScriptNames> scripts_;
  std::int64_t scripts_next_ = 0;   ///< when an interpreter is looked for again, ns
  std::int64_t scripts_pause_ = 0;  ///< from the last time until then
  FrameIssue issue_ = FrameIssue::process_gone;
  bool makes_code_ = false;  ///< some of it is in no file
  bool complete_ = false;    ///< all that it had mapped when it was last looked at is in `areas_`
};

/// Keeps the processes that were seen last.
class ProcessTable {
 public:
  explicit ProcessTable(const SymbolizerOptions& options) : modules_(options) {}
  /// From here on the kernel tells what processes map, where it lets us.
  [[nodiscard]] Result<void> watch();
  /// As it is now, or was when it lived.
  [[nodiscard]] Process& of(pid_t pid);
  /// Its mappings are as they were read last, or not at all yet: for its scripts, whose names are gone with it.
  [[nodiscard]] Process& unread(pid_t pid);
  /// As it was at `time` (CLOCK_MONOTONIC, ns), as far as the kernel told. Good until the next call.
  [[nodiscard]] Process& at(pid_t pid, std::uint64_t time);
  [[nodiscard]] Modules& modules() noexcept { return modules_; }

 private:
  static constexpr std::size_t most_processes = 256;
  struct Entry {
    pid_t pid;
    Process process;
  };
  [[nodiscard]] std::vector<Area> areas_at(pid_t pid, std::uint64_t time, unsigned generations);

  Modules modules_;
  std::optional<MapWatch> watch_;
  std::optional<Process> past_;
  std::list<Entry> entries_;  ///< the one seen last first
  std::unordered_map<pid_t, std::list<Entry>::iterator> by_pid_;
};

}  // namespace usdt::stack
