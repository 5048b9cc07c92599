// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "follow/changing_files.hpp"
#include "follow/clock.hpp"
#include "follow/exec_hold.hpp"
#include "follow/file_looks.hpp"
#include "follow/file_shares.hpp"
#include "follow/followed_processes.hpp"
#include "follow/held_files.hpp"
#include "follow/path_watch.hpp"
#include "follow/task_rings.hpp"
#include "follow/unread_files.hpp"
#include "sys/bell.hpp"
#include "sys/thread.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/discover.hpp"
#include "usdt/follow.hpp"

namespace usdt {
inline namespace v1 {

std::string_view to_string(FollowKind kind) noexcept {
  switch (kind) {
    case FollowKind::library:
      return "library";
    case FollowKind::program:
      return "program";
    case FollowKind::runtime:
      return "runtime";
    case FollowKind::file:
      return "file";
    case FollowKind::gone:
      return "gone";
    case FollowKind::unused:
      return "unused";
  }
  return "unknown";
}

namespace {

using follow::file_of;
using follow::HeldFiles;
using follow::MappedFile;
using follow::TaskEvent;
using Kind = sys::TaskRecord::Kind;

using follow::now;

}  // namespace

struct Follower::Impl {
  ~Impl() {
    hold.reset();  // before all: nobody waits for what follows
    if (!thread.joinable()) return;
    stop.request_stop();
    wake();
    thread.join();
  }

  void wake() const { sys::ring_eventfd(asked.get()); }

  Result<void> begin(FollowOptions wanted) {
    if (thread.joinable()) return fail(ErrorKind::invalid_argument, "the follower has begun already");
    options = std::move(wanted);
    asked.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!asked) return fail(os_failure(ErrorKind::limit, "follow what comes", errno));
    looks.emplace(options.patterns, stop.get_token());
    if (options.most_files > 0) shares.emplace(options.most_files, options.most_files_ever);
    if (options.tell_gone) held.emplace(rings.has_value(), shares ? &*shares : nullptr);
    if (!options.scope.processes && !(held && held->wants_mappings())) rings.reset();
    for (const auto& file : options.known) {
      if (const auto id = follow::id_of(*file)) looks->know(*id);
      if (held) held->hold(file, {file->path(), file->path()}, HeldFiles::Found::named);
    }
    family.insert(options.scope.pids.begin(), options.scope.pids.end());
    paths.watch(options.paths);
    if (options.hold_exec) {
      auto started = TRY(follow::ExecHold::start(options.scope, [this] { wake(); }));
      hold.emplace(std::move(started));
    }
    thread = TRY(sys::start_thread("that follows what comes", [this] { run(); }));
    return {};
  }

  // --- in the thread ------------------------------------------------------------------------------------------------

  void run() {
    if (stop.stop_requested()) return;  // it begins again where memory runs out
    // Finds files that were mapped before, and those mapped between the application's search and this.
    if (options.scope.descendants) find_descendants();
    look_at_all();
    look_at_paths();
    std::vector<pollfd> fds{{asked.get(), POLLIN, 0}};
    if (paths.fd() >= 0) fds.push_back({paths.fd(), POLLIN, 0});
    if (rings) {
      for (const int fd : rings->descriptors()) fds.push_back({fd, POLLIN, 0});
    }
    bool more = true;
    constexpr std::uint64_t ms = 1'000'000;
    std::uint64_t look = now() + kLookEveryMs * ms;  // again; on a busy machine there is no pause to wait for
    while (!stop.stop_requested()) {
      const std::uint64_t rest = unread.rest(now(), look - std::min(look, now()));
      const bool busy = more || (held && held->is_looking());
      const int ready = busy ? 1 : ::poll(fds.data(), fds.size(), static_cast<int>((rest + ms - 1) / ms));
      if (ready < 0 && errno != EINTR) return;
      std::uint64_t times = 0;
      [[maybe_unused]] const ssize_t n = ::read(asked.get(), &times, sizeof(times));
      more = false;
      take_execs();
      take_refused();
      if (rings) take_records(more);
      for (const TaskEvent& event : unread.due(now())) look_at(event.pid, {event});
      for (const std::size_t number : paths.changed()) look_at_path(options.paths[number]);
      find_gone();
      if (now() < look) continue;
      look_again();
      look = now() + kLookEveryMs * ms;
    }
  }

  /// Takes the files that could not be attached: most are looked at again once they change.
  void take_refused() {
    std::unique_lock lock(mutex);
    std::vector<Refused> all = std::exchange(refused, {});
    lock.unlock();
    for (Refused& each : all) {
      if (each.for_want_of_room && rings) {
        looks->forget(each.file);  // it is found when somebody maps it again
        continue;
      }
      if (each.changed) {
        looks->know(each.file, *each.changed);
        continue;
      }
      looks->forget(each.file);
      changing.add(std::move(each.found));
    }
  }

  void look_at_changing() {
    for (const follow::FoundBy& found : changing.at_rest()) find(found);
  }

  /// Looks for changes that no event tells.
  void look_again() {
    look_at_changing();
    for (const std::size_t number : paths.unwatched()) look_at_path(options.paths[number]);
    if (!rings && options.scope.processes) {
      if (options.scope.descendants) find_descendants();
      look_at_all();
    }
    // Files without points of ours are looked at again: their ctime tells whether they may have some by now.
    constexpr std::uint64_t for_so_long = 60'000'000'000;
    if (now() - seen_since < for_so_long) return;
    seen.clear();
    unread = {};
    seen_since = now();
  }

  /// Finds files that nobody can run any more. Files that are reported as gone are forgotten, so that they are found
  /// anew if somebody maps them after all.
  void find_gone() {
    if (!held) return;
    for (HeldFiles::Gone& gone : held->look()) {
      if (gone.elf == nullptr) {  // another file may have the number of its inode by now
        looks->know(gone.id, gone.changed);
        continue;
      }
      looks->forget(gone.id);
      std::erase_if(seen, [&](const MappedFile& file) { return std::get<2>(file) == gone.id.second; });
      ++(gone.makes_room ? unused_files : gone_files);
      tell({gone.makes_room ? FollowKind::unused : FollowKind::gone,
            0,
            now(),
            {.target = std::move(gone.target), .elf = std::move(gone.elf), .sites = {}}});
    }
  }

  /// Looks at programs that wait at their start.
  void take_execs() {
    if (!hold) return;
    for (const follow::HeldExec& exec : hold->take()) {
      const std::string descriptor = fmt::format("/proc/self/fd/{}", exec.file.get());
      std::error_code none;
      const std::filesystem::path path = std::filesystem::read_symlink(descriptor, none);
      // A path that leads to another file here is one of another mount namespace, and so are its libraries.
      const bool ours = same_file(path, descriptor);
      auto files = ours ? files_of_program(path) : Result<std::vector<TargetFile>>(std::vector<TargetFile>());
      if (!files || files->empty()) files = std::vector{TargetFile{path, ours ? path.string() : descriptor}};
      std::unique_lock lock(mutex);
      outstanding[exec.id] = 1;
      lock.unlock();
      for (std::size_t i = 0; i < files->size(); ++i) hold_for((*files)[i], exec, i == 0);
      for (const follow::MemoryFile& file : follow::memory_files_of(exec.pid))
        hold_for({file.name, file.path.string()}, exec, true);
      lock.lock();
      finish_one(exec.id);
    }
  }

  /// `exec` waits for `file`, if there is something of ours in it that is not attached yet.
  void hold_for(const TargetFile& file, const follow::HeldExec& exec, bool is_program) {
    struct stat st {};
    if (::stat(file.access.c_str(), &st) != 0) return;
    const follow::FileId id(st.st_dev, st.st_ino);
    const FollowKind kind = is_program ? FollowKind::program : FollowKind::library;
    const follow::FoundBy found_by{kind, exec.pid, now(), file};
    auto found = look(found_by);
    std::unique_lock lock(mutex);
    const auto known = pending.find(id);
    if (!found && known == pending.end()) return;
    ++outstanding[exec.id];
    pending[id].push_back(exec.id);
    lock.unlock();
    if (!found || emit({kind, exec.pid, found_by.time, std::move(*found)}, true)) return;
    lock.lock();
    pending.erase(id);
    finish_one(exec.id);
  }

  /// Under the mutex: one of the things that an exec waits for is done.
  void finish_one(std::uint64_t exec) {
    const auto found = outstanding.find(exec);
    if (found == outstanding.end() || --found->second > 0) return;
    outstanding.erase(found);
    hold->know(exec);
    hold->release(exec);
  }

  static bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
    struct stat one {
    }, other{};
    return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
  }

  void find_descendants() {
    for (const pid_t pid : options.scope.pids) {
      for (const pid_t child : descendants_of(pid)) family.insert(child);
    }
  }

  void look_at_all() {
    for (const auto& cgroup : options.scope.cgroups) {
      const auto pids = processes_of_cgroup(cgroup);
      for (std::size_t i = 0; pids && i < pids->size() && !stop.stop_requested(); ++i) look_at((*pids)[i], {});
    }
    for (const pid_t pid : std::vector<pid_t>(family.begin(), family.end())) {
      if (stop.stop_requested()) return;
      look_at(pid, {});
    }
  }

  void look_at_paths() {
    for (const auto& path : options.paths) look_at_path(path);
  }

  void look_at_path(const std::filesystem::path& path) { find({FollowKind::file, 0, now(), {path, path}}); }

  /// Returns the points of a file; a file that changes meanwhile is looked at again.
  std::optional<ProbeFile> look(const follow::FoundBy& found_by) {
    auto found = looks->look(found_by.file);
    if (looks->was_changing()) changing.add(found_by);
    return found;
  }
  void find(const follow::FoundBy& by) {
    if (auto found = look(by)) emit({by.kind, by.pid, by.time, std::move(*found)});
  }

  [[nodiscard]] bool is_followed(pid_t pid) const { return options.scope.pids.empty() || family.contains(pid); }

  void take_records(bool& more) {
    std::map<pid_t, std::vector<TaskEvent>> mapped;
    bool any_lost = false;
    for (TaskEvent& event : rings->take(more)) {
      if (event.kind == Kind::lost) {
        ++lost;
        any_lost = true;
        if (held) held->lost();
      } else if (event.kind == Kind::forked) {
        if (options.scope.descendants && family.contains(event.parent) && family.size() < most_processes)
          family.insert(event.pid);
      } else if (event.kind == Kind::ended) {
        if (options.scope.descendants && std::ranges::find(options.scope.pids, event.pid) == options.scope.pids.end())
          family.erase(event.pid);
        became.erase(event.pid);
        if (held) held->ended(event.pid);
      } else if (event.kind == Kind::became) {
        if (became.size() < most_processes) became.insert(event.pid);
      } else if (event.kind == Kind::mapped) {
        event.is_program = became.erase(event.pid) > 0;
        if (held) held->mapped(event.inode, event.pid);
        if (!options.scope.processes) continue;
        if (!is_followed(event.pid) || seen.contains(file_of(event)) || unread.mapped_again(event)) continue;
        auto& of_process = mapped[event.pid];
        if (of_process.size() < kMostMappings) of_process.push_back(std::move(event));
      }
    }
    for (auto& [pid, events] : mapped) {
      if (stop.stop_requested()) return;
      // The first process of a storm may have told what there is to know of its file.
      std::erase_if(events, [this](const TaskEvent& event) { return seen.contains(file_of(event)); });
      if (!events.empty()) look_at(pid, events);
    }
    if (!any_lost || !options.scope.processes) return;
    if (options.scope.descendants) find_descendants();
    const bool some = !options.scope.pids.empty() || !options.scope.cgroups.empty();
    some ? look_at_all() : look_at_everybody();
  }

  void look_at_everybody() {
    const auto files = files_of_all_processes();
    for (std::size_t i = 0; files && i < files->size() && !stop.stop_requested(); ++i)
      look_at(0, (*files)[i], now(), false);
  }

  /// Looks at the mapped files of a process that nobody has looked at; `events` tell when they were mapped.
  void look_at(pid_t pid, const std::vector<TaskEvent>& events) {
    std::vector<bool> done(events.size()), half_written(events.size());
    const auto files = files_of_process(pid);
    for (std::size_t i = 0; files && i < files->size(); ++i) {
      const TargetFile& file = (*files)[i];
      std::uint64_t time = now();
      bool is_program = events.empty() && runs(pid, file);
      for (std::size_t k = 0; k < events.size(); ++k) {
        if (!is_of(events[k], file)) continue;
        done[k] = true;
        time = std::min(time, events[k].time);
        is_program |= events[k].is_program;
      }
      look_at(pid, file, time, is_program);
      for (std::size_t k = 0; k < events.size() && looks->was_unread(); ++k)
        half_written[k] = half_written[k] || is_of(events[k], file);
    }
    for (std::size_t k = 0; k < events.size(); ++k) {
      const bool looked = !half_written[k] && (done[k] || look_by_name(events[k]));
      if (!looked && !files) {
        ++too_short;
        unread.forget(events[k]);
        continue;
      }
      // A file that a living process does not list is no ELF file, or not yet one, or unmapped.
      if (!looked) {
        unread.add(events[k], now());
        continue;
      }
      unread.forget(events[k]);
      if (seen.size() >= most_files) seen.clear();
      seen.insert(file_of(events[k]));
    }
  }

  static bool is_of(const TaskEvent& event, const TargetFile& file) {
    if (event.own_path == file.path.native()) return true;
    struct stat st {};
    return ::stat(file.access.c_str(), &st) == 0 && st.st_ino == event.inode;
  }

  /// The process is gone, or has unmapped the file: where it has a name that leads to it, we need neither.
  bool look_by_name(const TaskEvent& event) {
    struct stat st {};
    if (::stat(event.own_path.c_str(), &st) != 0 || st.st_ino != event.inode) return false;
    look_at(event.pid, {event.own_path, event.own_path}, event.time, event.is_program);
    return true;
  }

  void look_at(pid_t pid, const TargetFile& file, std::uint64_t time, bool is_program) {
    const bool runtime = file.path.native().starts_with("/memfd:");
    find({is_program ? FollowKind::program : runtime ? FollowKind::runtime : FollowKind::library, pid, time, file});
  }

  static bool runs(pid_t pid, const TargetFile& file) {
    return same_file(fmt::format("/proc/{}/exe", pid), file.access);
  }

  /// False: the file is not offered to anybody.
  bool emit(FollowEvent event, bool is_executed = false) {
    const auto id = follow::id_of(*event.file.elf);
    if (shares && !shares->take(event.file.elf)) {
      if (id && rings) looks->forget(*id);  // there may be room when somebody maps it again
      ++crowded;
      return false;
    }
    if (held) {
      const bool is_named = event.kind == FollowKind::file;
      held->hold(event.file.elf, event.file.target,
                 is_executed ? HeldFiles::Found::executed
                 : is_named  ? HeldFiles::Found::named
                             : HeldFiles::Found::mapped);
    }
    std::unique_lock lock(mutex);
    scanned = looks->scanned();
    if (waiting.size() >= most_events) {
      ++dropped;
      return false;
    }
    if (hold && id) pending.try_emplace(*id);
    lock.unlock();
    tell(std::move(event));
    return true;
  }

  void tell(FollowEvent event) {
    std::unique_lock lock(mutex);
    waiting.push_back(std::move(event));
    lock.unlock();
    if (options.on_event) options.on_event();
  }

  // Bounds of what others can make us keep.
  static constexpr std::size_t most_processes = 1 << 16;
  static constexpr std::size_t kMostMappings = 4096;  ///< of a process at once
  static constexpr std::size_t most_files = 1 << 16;
  static constexpr std::size_t most_events = 4096;

  std::optional<follow::TaskRings> rings;
  std::string no_rings;  ///< why there are none
  FollowOptions options;
  StopSource stop;
  sys::UniqueFd asked;
  std::thread thread;
  std::optional<follow::ExecHold> hold;  ///< its thread wakes ours

  // The thread's.
  std::optional<follow::FileLooks> looks;
  follow::PathWatch paths;
  std::set<pid_t> family;
  std::set<pid_t> became;  ///< another program, of which nothing is mapped yet
  std::set<MappedFile> seen;
  follow::UnreadFiles unread;
  follow::ChangingFiles changing;
  std::optional<follow::FileShares> shares;  ///< with FollowOptions::most_files
  std::optional<HeldFiles> held;             ///< with FollowOptions::tell_gone
  std::uint64_t seen_since = now();

  struct Refused {
    follow::FoundBy found;
    follow::FileId file;
    std::optional<std::int64_t> changed;  ///< FileLooks::know(); nothing: it is another one by now
    bool for_want_of_room = false;
  };
  mutable std::mutex mutex;  ///< of the next four
  std::vector<Refused> refused;
  std::vector<FollowEvent> waiting;
  std::map<follow::FileId, std::vector<std::uint64_t>> pending;  ///< files not attached yet: who is held for them
  std::map<std::uint64_t, std::size_t> outstanding;              ///< by what is held: files it waits for
  std::atomic<std::uint64_t> scanned = 0, too_short = 0, lost = 0, dropped = 0, gone_files = 0, unused_files = 0,
                             crowded = 0;
};

Follower::Follower(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Follower::Follower(Follower&&) noexcept = default;
Follower& Follower::operator=(Follower&&) noexcept = default;
Follower::~Follower() = default;

Result<Follower> Follower::open() try {
  auto impl = std::make_unique<Impl>();
  auto rings = follow::TaskRings::open();
  if (rings)
    impl->rings = std::move(*rings);
  else
    impl->no_rings = rings.error().message;
  return Follower(std::move(impl));
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

Result<void> Follower::begin(FollowOptions options) { return impl_->begin(std::move(options)); }

std::vector<FollowEvent> Follower::take() {
  const std::lock_guard lock(impl_->mutex);
  return std::exchange(impl_->waiting, {});
}

void Follower::done(const FollowEvent& event) {
  const auto id = impl_->hold ? follow::id_of(*event.file.elf) : std::nullopt;
  if (!id) return;
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->pending.find(*id);
  if (found == impl_->pending.end()) return;
  for (const std::uint64_t exec : found->second) impl_->finish_one(exec);
  impl_->pending.erase(found);
}

void Follower::refused(const FollowEvent& event, bool for_want_of_room) {
  done(event);
  struct stat st {};
  if (event.file.elf == nullptr || ::fstat(event.file.elf->fd(), &st) != 0) return;
  const bool same = event.file.elf->unchanged();
  std::unique_lock lock(impl_->mutex);
  impl_->refused.push_back({{event.kind, event.pid, event.time, event.file.target},
                            follow::FileId(st.st_dev, st.st_ino),
                            same ? std::optional(follow::change_time(st)) : std::nullopt,
                            for_want_of_room});
  lock.unlock();
  impl_->wake();
}

FollowCounts Follower::counts() const {
  FollowCounts counts{impl_->scanned, impl_->too_short, impl_->lost, impl_->dropped};
  counts.gone = impl_->gone_files;
  counts.unused = impl_->unused_files;
  counts.crowded = impl_->crowded;
  if (!impl_->hold) return counts;
  const follow::HoldTimes times = impl_->hold->times();
  counts.held = times.held();
  counts.let_go = times.let_go();
  counts.hold_p99_ns = times.p99();
  counts.hold_max_ns = times.longest();
  return counts;
}

std::string Follower::source() const {
  if (impl_->rings) return "perf events";
  return fmt::format("/proc, every {} ms: {}", kLookEveryMs, impl_->no_rings);
}

}  // namespace v1
}  // namespace usdt
