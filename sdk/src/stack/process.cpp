// SPDX-License-Identifier: BSD-2-Clause
#include "stack/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <set>
#include <utility>

#include "base/try.hpp"
#include "elf/file.hpp"
#include "stack/v8_name.hpp"
#include "sys/read.hpp"
#include "usdt/clock.hpp"

namespace usdt::stack {
namespace {

constexpr std::uint64_t kLargestVdso = 64 << 10;
/// Modules that stay open although no process maps them any more: often the next process does.
constexpr std::size_t kMostKept = 64;
/// The least time between two readings of the mappings for addresses that are in none.
constexpr std::int64_t kPatienceNs = 10'000'000;
/// The age at which mappings are read again: another library may be in the place of one by then.
constexpr std::int64_t kOldNs = 1'000'000'000;
/// Where reading them anew takes the processor for longer than this, so many times as long passes until the next time:
/// a process may have mapped 60,000 files.
constexpr std::int64_t kLongNs = 50'000'000, kTimes = 4;
/// Files of one process that are opened, and stay so.
constexpr std::size_t kMostFiles = 4096;
/// The time between two looks for an interpreter where none was found, which grows.
constexpr std::int64_t kFirstPauseNs = 2'000'000, kLongestPauseNs = 5'000'000'000;
/// Processes whose code is followed at a time: each has a trace of its own, with a ring.
constexpr long kMostFollowed = 8;

std::int64_t now_ns() { return static_cast<std::int64_t>(event_clock()); }

std::int64_t processor_ns() {
  struct timespec used {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * std::int64_t{1'000'000'000} + used.tv_nsec;
}

std::string directory_of(pid_t pid) { return fmt::format("/proc/{}", pid); }

/// Whether `fd` is the inode that was mapped. btrfs and overlayfs show another device by stat(2): where the process's
/// own files were looked at, proc::mapped_code() has seen to that.
bool is_of(const proc::Mapping& mapping, int fd, bool by_path_alone) {
  struct stat st {};
  if (::fstat(fd, &st) != 0 || st.st_ino != mapping.inode) return false;
  return !by_path_alone || st.st_dev == makedev(mapping.major, mapping.minor);
}

}  // namespace

std::shared_ptr<const void> Modules::follower() const {
  return followers_.use_count() <= kMostFollowed ? followers_ : nullptr;
}

void Modules::open(const proc::MappedCode& code, const std::string& root, Area& area) {
  area.name = code.file.path.empty() ? code.mapping.path : code.file.path.string();
  if (code.mapping.path == "[vdso]") return open_vdso(code, root, area);
  if (code.file.access.empty()) return;
  std::weak_ptr<Module>& known = known_[{code.mapping.major, code.mapping.minor, code.mapping.inode}];
  area.module = known.lock();
  if (area.module) return;
  auto file = ElfFile::open(code.file.access, open_options());
  if (file && !is_of(code.mapping, file->fd(), root.empty()))
    file = fail(ErrorKind::changed, "another file is in its place");
  if (!file) {
    area.issue = FrameIssue::file_unreadable;
    area.detail = file.error().message;
    return;
  }
  area.module = std::make_shared<Module>(std::move(*file), area.name, options_);
  known = area.module;
  kept_.push_back(area.module);
  if (kept_.size() > kMostKept) kept_.pop_front();
  if (known_.size() % 1024 == 0) std::erase_if(known_, [](const auto& each) { return each.second.expired(); });
}

void Modules::open_vdso(const proc::MappedCode& code, const std::string& root, Area& area) {
  const std::uint64_t start = code.mapping.start.value;
  const std::uint64_t size = code.mapping.end.value - start;
  area.issue = FrameIssue::file_unreadable;
  const sys::UniqueFd memory(size <= kLargestVdso ? ::open((root + "/mem").c_str(), O_RDONLY | O_CLOEXEC) : -1);
  std::string bytes(memory ? size : 0, '\0');
  if (sys::read_at(memory.get(), start, std::as_writable_bytes(std::span(bytes))) != size || size == 0) return;
  // Every process of one kind has the same one.
  if (const auto known = vdsos_.find(bytes); known != vdsos_.end()) {
    area.module = known->second;
  } else {
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    const auto copy = elf::File::in_memory({data, bytes.size()});
    auto file =
        copy ? ElfFile::open(fmt::format("/proc/self/fd/{}", copy->fd()), {.debug_dirs = {}}) : fail(copy.error());
    if (!file) return;
    area.module = std::make_shared<Module>(std::move(*file), area.name, options_);
    if (vdsos_.size() < 8) vdsos_.emplace(std::move(bytes), area.module);
  }
  area.issue = FrameIssue::none;
}

std::shared_ptr<Module> Modules::of(const PlannedFile& file) {
  if (!file.elf) return nullptr;
  // Drops files that the trace no longer has.
  if (!planned_.contains(file.elf.get()))
    std::erase_if(planned_, [](const auto& each) { return each.second.first.use_count() == 1; });
  auto& [elf, module] = planned_[file.elf.get()];
  if (elf) return module;
  elf = file.elf;
  auto opened = ElfFile::open(fmt::format("/proc/self/fd/{}", elf->fd()), open_options());
  if (opened) module = std::make_shared<Module>(std::move(*opened), file.target.path.string(), options_);
  return module;
}

Process::Process(pid_t pid, Modules& modules)
    : pid_(pid), modules_(&modules), directory_(::open(directory_of(pid).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  struct stat exe {};
  if (!directory_ || ::fstatat(directory_.get(), "exe", &exe, 0) != 0) return;
  device_ = exe.st_dev;
  inode_ = exe.st_ino;
}

Process::Process(std::vector<Area> areas, Modules& modules) : pid_(0), modules_(&modules) {
  set_past(std::move(areas));
}

void Process::set_past(std::vector<Area> areas) {
  pid_ = 0;
  areas_ = std::move(areas);
  std::ranges::stable_sort(areas_, {}, &Area::start);
  if (!areas_.empty()) issue_ = FrameIssue::none;
}

void Process::read() {
  if (pid_ == 0) return;
  read_at_ = now_ns();
  const std::int64_t began = processor_ns();
  const std::string root = directory_of(pid_);
  sys::UniqueFd directory(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto code = directory ? proc::mapped_code(pid_) : fail(ErrorKind::not_found, "no such process");
  if (!code || code->empty()) {
    // The mappings that it had before it ended, or became a zombie, are still right for recorded stacks.
    const bool refused = !code && code.error().kind == ErrorKind::no_permission;
    if (areas_.empty()) issue_ = refused ? FrameIssue::no_permission : FrameIssue::process_gone;
    return;
  }
  // A process that ends meanwhile has only the mappings that were read until then.
  struct stat exe {};
  const bool lives = ::fstatat(directory.get(), "exe", &exe, 0) == 0;
  if (!lives && !areas_.empty()) return;
  complete_ = lives;
  device_ = exe.st_dev;
  inode_ = exe.st_ino;
  directory_ = std::move(directory);
  std::vector<Area> areas;
  std::set<const Module*> opened;
  for (const proc::MappedCode& each : *code) {
    Area& area = areas.emplace_back();
    area.start = each.mapping.start.value;
    area.end = each.mapping.end.value;
    area.offset = each.mapping.offset;
    if (opened.size() == kMostFiles && !each.file.access.empty()) {
      area.name = each.file.path.string();
      area.issue = FrameIssue::file_unreadable;
      area.detail = "it has mapped more files than are opened";
      continue;
    }
    modules_->open(each, root, area);
    if (area.module) opened.insert(area.module.get());
  }
  const std::int64_t used = areas_.empty() ? 0 : processor_ns() - began;
  pause_ = used > kLongNs ? now_ns() - read_at_ + kTimes * used : 0;
  areas_ = std::move(areas);
  makes_code_ = std::ranges::any_of(areas_, &Area::may_be_jit);
  issue_ = FrameIssue::none;
  if (makes_code_ && !perf_map_) perf_map_.emplace(root, runtime() != Runtime::hotspot);
}

bool Process::lives() const noexcept {
  struct stat exe {};
  return directory_ && ::fstatat(directory_.get(), "exe", &exe, 0) == 0 && exe.st_dev == device_ &&
         exe.st_ino == inode_;
}

bool Process::renew() {
  struct stat exe {};
  const bool there = directory_ && ::fstatat(directory_.get(), "exe", &exe, 0) == 0;
  const bool same = there && exe.st_dev == device_ && exe.st_ino == inode_;
  if (!there || same) return same;
  pause_ = 0;
  perf_map_.reset();
  compiled_.reset();
  follower_.reset();
  follow_asked_ = false;
  scripts_.reset();
  return false;
}

void Process::refresh() {
  if (!renew() || now_ns() - read_at_ >= std::max(kOldNs, pause_)) read_again();
}

void Process::read_again() {
  if (now_ns() - read_at_ >= std::max(kPatienceNs, pause_)) read();
}

const Area* Process::known(std::uint64_t address) const noexcept {
  const auto after = std::ranges::upper_bound(areas_, address, {}, &Area::start);
  return after != areas_.begin() && address < std::prev(after)->end ? &*std::prev(after) : nullptr;
}

const Area* Process::find(std::uint64_t address) {
  if (const Area* area = known(address)) return area;
  read_again();
  return known(address);
}

std::optional<PerfMap::Found> Process::in_perf_map(std::uint64_t address, Period when) {
  if (!perf_map_) return std::nullopt;
  follow_code();
  if (compiled_) {
    compiled_->read(when.until);
    if (auto compiled = compiled_->find(address, when)) return compiled;
  }
  auto listed = perf_map_->find(address, when);
  // What is known to have been compiled before and since is known at that time, too.
  const std::uint64_t written = perf_map_->written_at();
  if (listed && compiled_ && compiled_->knows_all_since(std::min(when.from, written)) &&
      !compiled_->was_unloaded(listed->name, written, when.until))
    listed->listed_at.reset();
  return listed;
}

/// OpenJDK's own list is of one moment.
void Process::follow_code() {
  if (perf_map_->is_growing() || !modules_->options().follow_code || follow_asked_) return;
  follower_ = modules_->follower();
  if (!follower_) return;
  follow_asked_ = true;
  if (auto followed = HotspotCode::follow(pid_))
    compiled_.emplace(std::move(*followed));
  else
    follower_.reset();
}

void Process::look_at_code(std::uint64_t time) {
  if (!perf_map_) return;
  follow_code();
  perf_map_->look(time);
}

/// Returns the function of V8 itself that is at `address`, with its name and distance; without: there is none. Where
/// the file is stripped, the perf map knows them.
Frame Process::builtin_at(std::uint64_t address, Period when) {
  const Area* area = makes_code_ ? known(address) : nullptr;
  if (area == nullptr || !area->module || area->module->runtime() != Runtime::v8) return {};
  const auto linked = area->module->address_of(FileOffset(address - area->start + area->offset));
  if (!linked) return {};
  const Frame& frame = area->module->functions_at(*linked).back();
  if (frame.function.starts_with("Builtins_")) return frame;
  const auto code = frame.function.empty() ? in_perf_map(address, when) : std::nullopt;
  Frame found;
  if (code) found.function = code->name, found.distance = code->distance;
  return found;
}

bool Process::keeps_frame_pointers(std::uint64_t address, Period when) {
  const Area* area = find(address);
  if (area == nullptr || area->module) return !builtin_at(address, when).function.empty();
  const auto code = in_perf_map(address, when);
  return code && is_v8_name(code->name);
}

bool Process::resumes_at(std::uint64_t address, Period when) {
  const Frame builtin = builtin_at(address, when);
  return !builtin.function.empty() && builtin.distance == 0;
}

Runtime Process::runtime() {
  for (const Area& area : areas_)
    if (area.module && area.module->runtime() != Runtime::none) return area.module->runtime();
  return Runtime::none;
}

std::string_view Process::why_no_perf_map() {
  if (perf_map_ && !perf_map_->why_not().empty()) return perf_map_->why_not();
  if (perf_map_ && perf_map_->is_there()) return {};
  switch (runtime()) {
    case Runtime::v8:
      return "V8 names its code if it is started with --perf-basic-prof";
    case Runtime::hotspot:
      return "OpenJDK names its code if it is asked to: jcmd PID Compiler.perfmap";
    case Runtime::none:
      break;
  }
  return {};
}

ScriptNames& Process::scripts(bool has_some) {
  if (scripts_ && (!has_some || scripts_->are_known() || now_ns() < scripts_next_)) return *scripts_;
  scripts_ = std::make_unique<ScriptNames>(pid_);
  scripts_pause_ = std::clamp(2 * scripts_pause_, kFirstPauseNs, kLongestPauseNs);
  scripts_next_ = has_some ? now_ns() + scripts_pause_ : 0;  // what it runs may have been found since
  return *scripts_;
}

Result<void> ProcessTable::watch() {
  auto started = TRY(MapWatch::start());
  watch_.emplace(std::move(started));
  return {};
}

std::vector<Area> ProcessTable::areas_at(pid_t pid, std::uint64_t time, unsigned generations) {
  MapHistory history = watch_ ? watch_->at(pid, time) : MapHistory{};
  std::vector<Area> areas;
  if (history.parent != 0 && generations > 0) areas = areas_at(history.parent, time, generations - 1);
  if (areas.empty() && history.parent != 0)
    if (const auto known = by_pid_.find(history.parent); known != by_pid_.end()) areas = known->second->process.areas();
  for (proc::Mapping& mapping : history.mappings) {
    Area area;
    area.start = mapping.start.value;
    area.end = mapping.end.value;
    area.offset = mapping.offset;
    const TargetFile file{.path = mapping.path, .access = mapping.path};
    modules_.open({std::move(mapping), file}, "", area);
    std::erase_if(areas, [&](const Area& old) { return old.start < area.end && area.start < old.end; });
    areas.push_back(std::move(area));
  }
  return areas;
}

Process& ProcessTable::at(pid_t pid, std::uint64_t time) {
  constexpr unsigned most_generations = 16;
  std::vector<Area> areas = areas_at(pid, time, most_generations);
  // One that had ended when it was first seen will not change any more.
  if (const auto known = by_pid_.find(pid);
      known != by_pid_.end() && known->second->process.issue() == FrameIssue::process_gone) {
    known->second->process.set_past(std::move(areas));
    return known->second->process;
  }
  return past_.emplace(std::move(areas), modules_);
}

Process& ProcessTable::of(pid_t pid) {
  Process& process = unread(pid);
  process.refresh();
  return process;
}

Process& ProcessTable::unread(pid_t pid) {
  if (const auto known = by_pid_.find(pid); known != by_pid_.end()) {
    entries_.splice(entries_.begin(), entries_, known->second);
    entries_.front().process.renew();
    return entries_.front().process;
  }
  if (entries_.size() == most_processes) {
    by_pid_.erase(entries_.back().pid);
    entries_.pop_back();
  }
  entries_.push_front({pid, Process(pid, modules_)});
  by_pid_.emplace(pid, entries_.begin());
  return entries_.front().process;
}

}  // namespace usdt::stack
