// SPDX-License-Identifier: BSD-2-Clause
#include "follow/file_looks.hpp"

#include <utility>
#include <variant>

#include "usdt/discover.hpp"

namespace usdt::follow {

std::int64_t change_time(const struct stat& st) noexcept {
  return std::int64_t{st.st_ctim.tv_sec} * 1'000'000'000 + st.st_ctim.tv_nsec;
}

std::optional<FileId> id_of(const ElfFile& file) noexcept {
  struct stat st {};
  if (::fstat(file.fd(), &st) != 0) return std::nullopt;
  return FileId(st.st_dev, st.st_ino);
}

FileLooks::FileLooks(std::vector<PointPattern> patterns, StopToken stop) : stop_(std::move(stop)) {
  for (PointPattern& pattern : patterns)
    if (target_of(pattern)) patterns_.push_back(std::move(pattern));
}

std::vector<PointPattern> FileLooks::patterns_for(const TargetFile& file) const {
  std::vector<PointPattern> wanted;
  for (const PointPattern& pattern : patterns_) {
    const std::string& target = *target_of(pattern);
    if (means_everything(target) || target_means(target, file)) wanted.push_back(pattern);
  }
  return wanted;
}

std::optional<ProbeFile> FileLooks::look(const TargetFile& file) {
  unread_ = changing_ = false;
  struct stat st {};
  if (::stat(file.access.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  const FileId id(st.st_dev, st.st_ino);
  const std::int64_t changed = change_time(st);
  if (const auto known = files_.find(id); known != files_.end() && (!known->second || *known->second == changed))
    return std::nullopt;
  const std::vector<PointPattern> wanted = patterns_for(file);
  std::optional<ProbeFile> found;
  if (!wanted.empty()) {
    ++scanned_;
    auto probes = find_probes(file, wanted, {.stop = stop_});
    unread_ = !probes;
    changing_ = probes && !probes->elf->unchanged();
    if (unread_ || changing_) return std::nullopt;
    if (!probes->sites.empty() || !probes->functions.empty()) found = std::move(*probes);
  }
  if (files_.size() >= most_files) std::erase_if(files_, [](const auto& each) { return each.second.has_value(); });
  // The opened file counts, even if the name leads to another one by now.
  if (found) {
    if (const auto opened = id_of(*found->elf)) know(*opened);
  } else {
    files_[id] = changed;
  }
  return found;
}

}  // namespace usdt::follow
