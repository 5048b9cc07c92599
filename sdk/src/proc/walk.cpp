// SPDX-License-Identifier: BSD-2-Clause
#include "proc/walk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "proc/file_head.hpp"

namespace usdt::proc {
namespace fs = std::filesystem;
namespace {

using Inode = std::pair<dev_t, ino_t>;

Inode inode_of(const struct stat& st) { return {st.st_dev, st.st_ino}; }

/// File systems whose files are made up as they are read: endless, slow, or (as /proc/kcore) an ELF image of no file.
bool is_kernel_file_system(int fd) {
  static constexpr std::array<std::uint32_t, 11> kMagic = {
      PROC_SUPER_MAGIC,   SYSFS_MAGIC,         DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC,
      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,       SELINUX_MAGIC, PSTOREFS_MAGIC};
  struct statfs fs {};
  return ::fstatfs(fd, &fs) == 0 && std::ranges::find(kMagic, static_cast<std::uint32_t>(fs.f_type)) != kMagic.end();
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

class Walk {
 public:
  Walk(const std::function<void(std::size_t)>& progress, const StopToken& stop) : progress_(progress), stop_(stop) {}

  std::vector<fs::path> of(const fs::path& root) {
    pending_.push_back({root, true});
    // A list, not recursion: the depth of a hostile tree is not ours to choose.
    while (!pending_.empty() && !stop_.stop_requested()) {
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      read_directory(next);
    }
    // Links come last, so that a file is known by its own name rather than by a link to it.
    std::ranges::sort(links_);
    for (const fs::path& link : links_) {
      if (stop_.stop_requested()) break;
      take_link(link);
    }
    std::ranges::sort(found_);
    return std::move(found_);
  }

 private:
  struct Pending {
    fs::path path;
    bool root = false;
  };

  void read_directory(const Pending& where) {
    const Dir dir(::opendir(where.path.c_str()));
    if (!dir) return;
    const int fd = ::dirfd(dir.get());
    struct stat st {};
    // A bind mount can show a directory inside itself: each is read once.
    if (::fstat(fd, &st) != 0 || !directories_.insert(inode_of(st)).second) return;
    if (!where.root && is_kernel_file_system(fd)) return;
    while (const dirent* entry = ::readdir(dir.get())) {
      if (stop_.stop_requested()) return;
      const std::string name = entry->d_name;
      if (name != "." && name != "..") take_entry(fd, where.path / name, name);
    }
  }

  void take_entry(int dir, fs::path path, const std::string& name) {
    struct stat st {};
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (S_ISDIR(st.st_mode))
      pending_.push_back({std::move(path)});
    else if (S_ISLNK(st.st_mode))
      links_.push_back(std::move(path));
    else if (S_ISREG(st.st_mode))
      take_file(dir, name.c_str(), st, std::move(path));
  }

  void take_link(const fs::path& link) {
    struct stat st {};
    if (::stat(link.c_str(), &st) == 0 && S_ISREG(st.st_mode)) take_file(AT_FDCWD, link.c_str(), st, link);
  }

  void take_file(int dir, const char* name, const struct stat& st, fs::path path) {
    if (progress_) progress_(++seen_);
    // Only an inode with several names or links can come again, but any may have a link to it.
    if (!files_.insert(inode_of(st)).second) return;
    const auto head = read_head_at(dir, name);
    if (head && (head->format == FileFormat::elf || head->format == FileFormat::archive)) {
      found_.push_back(std::move(path));
    }
  }

  const std::function<void(std::size_t)>& progress_;
  const StopToken& stop_;
  std::size_t seen_ = 0;
  std::vector<Pending> pending_;
  std::vector<fs::path> links_;
  std::vector<fs::path> found_;
  std::set<Inode> directories_;
  std::set<Inode> files_;
};

}  // namespace

std::vector<fs::path> walk_directory(const fs::path& root, const std::function<void(std::size_t)>& progress,
                                     const StopToken& stop) {
  return Walk(progress, stop).of(root);
}

}  // namespace usdt::proc
