// SPDX-License-Identifier: BSD-2-Clause
// files_of_process: what /proc/PID/maps names, and how to open exactly that inode.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "proc/file_head.hpp"
#include "proc/mapped_code.hpp"
#include "proc/maps.hpp"
#include "proc/process_maps.hpp"
#include "sys/read.hpp"
#include "usdt/discover.hpp"

namespace usdt {
inline namespace v1 {
namespace fs = std::filesystem;
namespace {

using proc::Mapping;
using proc::numbers_in;
using proc::process_error;
using proc::read_maps;

constexpr std::string_view kDeleted = " (deleted)";

std::optional<struct stat> stat_of(const fs::path& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return std::nullopt;
  return st;
}

bool same_inode(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// One process's view of its files.
class ProcessFiles {
 public:
  explicit ProcessFiles(pid_t pid) : pid_(pid), root_(proc::directory_of(pid)) {
    exe_ = stat_of(root_ / "exe");
    std::error_code ec;
    exe_path_ = fs::read_symlink(root_ / "exe", ec).string();
    shown_root_ = fs::read_symlink(root_ / "root", ec).string();
    const auto ours = stat_of("/proc/self/ns/mnt");
    const auto theirs = stat_of(root_ / "ns/mnt");
    our_namespace_ = ours && theirs && same_inode(*ours, *theirs);
  }

  Result<std::vector<TargetFile>> list() {
    auto executable = TRY(executable_files());
    std::vector<Mapping>& mappings = executable;
    // clang 14 cannot instantiate libstdc++ 12's std::ranges::stable_partition.
    std::stable_partition(mappings.begin(), mappings.end(), [&](const Mapping& m) { return is_main(m); });
    std::vector<TargetFile> out;
    for (const Mapping& mapping : mappings) {
      TargetFile file = locate(mapping);
      if (may_hold_probes(file)) out.push_back(std::move(file));
    }
    if (!out.empty()) return out;
    // A zombie has no maps either, but says nothing; a process that went away meanwhile is gone from /proc.
    if (!stat_of(root_)) return fail(process_error(pid_, ESRCH));
    return fail(ErrorKind::not_found, fmt::format("process {} maps no program: it is a kernel thread or has ended "
                                                  "without being waited for",
                                                  pid_));
  }

  [[nodiscard]] Result<std::vector<proc::MappedCode>> code() const {
    std::vector<proc::MappedCode> out;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, TargetFile> files;
    const auto read = read_maps(root_ / "maps", pid_, [&](Mapping& m) {
      if (!m.executable || out.size() == proc::kMostMappings) return;
      TargetFile file;
      if (m.inode != 0 && m.path.starts_with('/')) {
        const auto [known, is_new] = files.try_emplace({m.major, m.minor, m.inode});
        if (is_new) known->second = locate(m);
        file = known->second;
      }
      out.push_back({std::move(m), std::move(file)});
    });
    if (!read) return fail(read.error());
    return out;
  }

 private:
  [[nodiscard]] Result<std::vector<Mapping>> executable_files() const {
    std::vector<Mapping> out;
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> seen;
    const auto read = read_maps(root_ / "maps", pid_, [&](Mapping& m) {
      // A path without a '/' is no file: [vdso], [heap], anon_inode:[perf_event].
      if (!m.executable || m.inode == 0 || !m.path.starts_with('/')) return;
      if (seen.emplace(m.major, m.minor, m.inode).second) out.push_back(std::move(m));
    });
    if (!read) return fail(read.error());
    return out;
  }

  [[nodiscard]] bool is_main(const Mapping& m) const {
    return m.path == exe_path_ && (!exe_ || m.inode == exe_->st_ino || !on_mapped_device(*exe_, m));
  }

  static bool on_mapped_device(const struct stat& st, const Mapping& m) {
    return st.st_dev == makedev(m.major, m.minor);
  }

  [[nodiscard]] fs::path map_file(const Mapping& m) const {
    return root_ / fmt::format("map_files/{:x}-{:x}", m.start.value, m.end.value);
  }

  /// True when `path` is the mapped inode. btrfs and overlayfs show stat(2) another device than maps: there the inode
  /// number has to agree and, where we may look, what the kernel itself opens for the mapping.
  [[nodiscard]] bool is_mapped_file(const fs::path& path, const Mapping& m) const {
    const auto st = stat_of(path);
    if (!st || !S_ISREG(st->st_mode)) return false;
    if (on_mapped_device(*st, m)) return st->st_ino == m.inode;
    if (const auto direct = stat_of(map_file(m))) return same_inode(*st, *direct);
    return st->st_ino == m.inode;
  }

  [[nodiscard]] fs::path direct_access(const Mapping& m) const {
    // /proc/PID/exe needs less privilege than map_files (CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN).
    if (is_main(m)) return root_ / "exe";
    const fs::path direct = map_file(m);
    struct stat st {};
    if (::stat(direct.c_str(), &st) == 0 || errno != EPERM) return direct;
    const auto open = open_file(m);
    return open ? *open : direct;
  }

  /// The mapped file among those that the process has open, which its user may open: programs that make probes while
  /// they run keep what they make them of open.
  [[nodiscard]] std::optional<fs::path> open_file(const Mapping& m) const {
    constexpr std::size_t most = 4096;
    std::size_t looked_at = 0;
    for (const pid_t number : numbers_in(root_ / "fd")) {
      if (++looked_at > most) break;
      const fs::path each = root_ / "fd" / std::to_string(number);
      const auto st = stat_of(each);
      if (st && S_ISREG(st->st_mode) && on_mapped_device(*st, m) && st->st_ino == m.inode) return each;
    }
    return std::nullopt;
  }

  [[nodiscard]] TargetFile locate(const Mapping& m) const {
    // The path as it stands comes first: a file may really be called "x (deleted)".
    if (our_namespace_ && is_mapped_file(m.path, m)) return {m.path, m.path};
    for (const std::string& path : {m.path, own_path(m)}) {
      if (path.empty()) continue;
      if (fs::path inside = root_ / "root" / path.substr(1); is_mapped_file(inside, m)) return {path, inside};
    }
    const bool deleted = m.path.ends_with(kDeleted);
    return {m.path.substr(0, m.path.size() - (deleted ? kDeleted.size() : 0)), direct_access(m), deleted};
  }

  /// The path as the process itself knows it, where /proc shows another; else empty. The kernel writes paths from the
  /// reader's root directory on, and those of mounts that cannot be reached from there from the root of their namespace
  /// on (prepend_path(), fs/d_path.c): seen from within a chroot, the processes of another namespace have the chroot's
  /// directory before their paths, and before their root.
  [[nodiscard]] std::string own_path(const Mapping& m) const {
    const bool below = shown_root_.size() > 1 && m.path.starts_with(shown_root_ + '/');
    return below ? m.path.substr(shown_root_.size()) : std::string();
  }

  /// Mapped code of another format (a JIT's memfd, a Wine program) has no notes. A file that cannot be opened stays:
  /// its error is for whoever reads it.
  static bool may_hold_probes(const TargetFile& file) {
    const auto head = proc::read_head(file.access.c_str());
    return head ? head->format == proc::FileFormat::elf : errno == EACCES || errno == EPERM;
  }

  pid_t pid_;
  fs::path root_;
  std::optional<struct stat> exe_;
  std::string exe_path_;
  std::string shown_root_;  ///< of the process
  bool our_namespace_ = false;
};

}  // namespace

Result<std::vector<TargetFile>> files_of_process(pid_t pid) {
  if (pid <= 0) return fail(process_error(pid, ESRCH));
  return ProcessFiles(pid).list();
}

}  // namespace v1
}  // namespace usdt

namespace usdt::proc {

Result<std::vector<MappedCode>> mapped_code(pid_t pid) {
  if (pid <= 0) return fail(process_error(pid, ESRCH));
  return ProcessFiles(pid).code();
}

}  // namespace usdt::proc

namespace usdt {
inline namespace v1 {

Result<std::vector<TargetFile>> files_of_all_processes() {
  if (::access("/proc/self", F_OK) != 0) return fail(os_failure(ErrorKind::io, "/proc", errno));
  std::vector<TargetFile> out;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const pid_t pid : numbers_in("/proc")) {
    auto files = files_of_process(pid);
    if (!files) continue;
    for (TargetFile& file : *files) {
      const auto st = stat_of(file.access);
      if (st && seen.emplace(st->st_dev, st->st_ino).second) out.push_back(std::move(file));
    }
  }
  return out;
}

bool first_thread_has_ended(pid_t pid) { return proc::directory_of(pid) != fs::path(fmt::format("/proc/{}", pid)); }

namespace {

/// /proc/PID/stat is one line of some 50 numbers and a name of at most 64 bytes.
Result<std::string> read_stat(pid_t pid) { return sys::read_text(fmt::format("/proc/{}/stat", pid), 4096); }

}  // namespace

std::vector<pid_t> descendants_of(pid_t pid) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t each : numbers_in("/proc")) {
    if (const pid_t parent = proc::parent_of(each); parent > 0) children.emplace(parent, each);
  }
  std::vector<pid_t> out = {pid};
  std::set<pid_t> known = {pid};
  // Read one after the other, the numbers need not be of one moment: nobody is taken twice.
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto [from, to] = children.equal_range(out[i]);
    for (auto child = from; child != to; ++child)
      if (known.insert(child->second).second) out.push_back(child->second);
  }
  out.erase(out.begin());
  return out;
}

}  // namespace v1

namespace proc {

pid_t parent_of(pid_t pid) {
  const auto stat = read_stat(pid);
  if (!stat) return 0;
  // "PID (NAME) STATE PPID": the name may hold anything, ')' too.
  const std::size_t close = stat->rfind(") ");
  pid_t parent = 0;
  if (close == stat->npos || close + 4 >= stat->size()) return 0;
  std::from_chars(stat->data() + close + 4, stat->data() + stat->size(), parent);
  return parent;
}

namespace {

/// Appends the numbers of a text that has nothing else but spaces.
void append_numbers(std::string_view text, std::vector<pid_t>& to) {
  while (!text.empty()) {
    pid_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc()) to.push_back(number);
    text.remove_prefix(std::max<std::size_t>(static_cast<std::size_t>(end - text.data()), 1));
  }
}

}  // namespace

std::vector<pid_t> children_of(pid_t pid) {
  constexpr std::size_t most = std::size_t{1} << 20;
  std::vector<pid_t> children;
  static const bool is_listed = fs::exists("/proc/thread-self/children");  // CONFIG_PROC_CHILDREN
  if (!is_listed) {
    for (const pid_t each : numbers_in("/proc"))
      if (parent_of(each) == pid) children.push_back(each);
    return children;
  }
  for (const pid_t thread : numbers_in(fmt::format("/proc/{}/task", pid)))
    if (const auto text = sys::read_text(fmt::format("/proc/{}/task/{}/children", pid, thread), most))
      append_numbers(*text, children);
  return children;
}

bool ends_silently(pid_t pid) {
  const auto stat = read_stat(pid);
  // "PID (NAME) STATE PPID ...": the name may hold anything; the signal is the 38th field (proc(5)).
  std::size_t at = stat ? stat->rfind(") ") : std::string::npos;
  constexpr int fields_behind = 36;
  for (int i = 0; stat && at != stat->npos && i < fields_behind; ++i) at = stat->find(' ', at + 1);
  int signal = 0;
  return stat && at != stat->npos &&
         std::from_chars(stat->data() + at + 1, stat->data() + stat->size(), signal).ec == std::errc() && signal == 0;
}

}  // namespace proc
}  // namespace usdt
