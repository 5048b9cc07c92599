// SPDX-License-Identifier: BSD-2-Clause
#include "proc/mapped_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <tuple>

#include "proc/process_maps.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::proc {

MappedFiles::Seen MappedFiles::look(std::chrono::nanoseconds time) {
  constexpr unsigned most_rounds = 64;
  const auto end = std::chrono::steady_clock::now() + time;
  if (!waiting_) find_processes();
  while (std::chrono::steady_clock::now() < end) {
    if (waiting_->empty()) find_processes();
    if (waiting_->empty()) return Seen::all;
    if (rounds_ > most_rounds) return Seen::restless;
    const pid_t pid = waiting_->back();
    waiting_->pop_back();
    looked_at_.insert(pid);
    if (!add(pid)) return Seen::forbidden;
  }
  return Seen::some;
}

void MappedFiles::find_processes() {
  ++rounds_;
  waiting_.emplace();
  for (const pid_t pid : numbers_in("/proc"))
    if (!looked_at_.contains(pid)) waiting_->push_back(pid);
}

void MappedFiles::look_at_root(const std::filesystem::path& directory) {
  struct stat mounts {
  }, root{}, still{};
  const std::filesystem::path of_mounts = directory / "ns/mnt", of_root = directory / "root";
  if (::stat(of_mounts.c_str(), &mounts) != 0 || ::stat(of_root.c_str(), &root) != 0) return;
  const auto [known, fresh] = roots_.emplace(mounts.st_ino, FileId(root.st_dev, root.st_ino));
  if (!fresh) return;
  on_root_(of_root);
  if (::stat(of_mounts.c_str(), &still) != 0) roots_.erase(known);  // it has ended: names led nowhere
}

bool MappedFiles::add(pid_t pid) {
  std::filesystem::path directory = fmt::format("/proc/{}", pid);
  bool allowed = true, any = false;
  const auto take = [&](const Mapping& mapping) {
    any = true;
    if (mapping.inode == 0 || !mapping.path.starts_with('/')) return;
    const std::tuple file(mapping.major, mapping.minor, mapping.inode);
    if (known_.contains(file)) return;
    // map_files leads to the mapped file itself: its name may lead elsewhere by now, and on btrfs and overlayfs stat(2)
    // and maps show different devices.
    const auto link = directory / fmt::format("map_files/{:x}-{:x}", mapping.start.value, mapping.end.value);
    if (const auto id = file_at(link)) {
      known_.insert(file);
      files_.insert(*id);
    } else if (errno == EPERM) {
      allowed = false;
    } else if (errno == EACCES) {
      // A mount that is its owner's alone: root cannot have opened the file. To be sure, it is remembered by its
      // number.
      hidden_.insert(mapping.inode);
    }
  };
  const auto read = [&] {
    const auto done = read_maps(directory / "maps", pid, take);
    if (!done && done.error().kind == ErrorKind::no_permission) unreadable_.insert(pid);
  };
  read();
  // Kernel threads have none, and neither has a process whose first thread has ended.
  struct stat tasks {};
  constexpr nlink_t of_one_thread = 3;  // ".", ".." and its own
  if (!any && ::stat((directory / "task").c_str(), &tasks) == 0 && tasks.st_nlink > of_one_thread) {
    directory = directory_of(pid);
    read();
  }
  if (any && on_root_) look_at_root(directory);
  return allowed;
}

std::set<pid_t> unreadable_processes() {
  std::set<pid_t> all;
  for (const pid_t pid : numbers_in("/proc")) {
    const sys::UniqueFd maps(::open(fmt::format("/proc/{}/maps", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!maps && (errno == EACCES || errno == EPERM)) all.insert(pid);
  }
  return all;
}

}  // namespace usdt::proc
