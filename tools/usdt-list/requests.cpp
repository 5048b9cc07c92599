// SPDX-License-Identifier: BSD-2-Clause
#include "requests.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <utility>

namespace usdt_list {
namespace {

using Patterns = std::vector<usdt::ProbePattern>;

/// True where the pattern means whatever the rest of the command line names.
bool is_scoped(const usdt::ProbePattern& pattern) { return pattern.target.empty() || pattern.target == "*"; }

class Finder {
 public:
  Finder(const Flags& flags, usdt::tools::Progress& progress) : flags_(flags), progress_(progress) {
    for (const usdt::ProbePattern& pattern : flags.patterns) {
      if (is_scoped(pattern)) scoped_.push_back(pattern);
    }
  }

  Requests find() {
    for (const pid_t pid : flags_.pids) map_process(pid);
    for (const std::string& target : flags_.targets) add_target(target, scoped_);
    bool anywhere = flags_.targets.empty();
    for (const usdt::ProbePattern& pattern : flags_.patterns) {
      if (is_scoped(pattern)) continue;
      add_target(pattern.target, {pattern});
      anywhere = false;
    }
    if (anywhere) add_everything();
    return std::move(requests_);
  }

 private:
  void map_process(pid_t pid) {
    auto files = usdt::files_of_process(pid);
    if (!files) return requests_.errors.push_back(files.error());
    for (usdt::TargetFile& file : *files) mapped_.push_back(std::move(file));
  }

  /// With -p a target chooses among the files of the processes.
  void add_target(const std::string& target, const Patterns& patterns) {
    if (!flags_.pids.empty()) return add_mapped(target, patterns);
    auto files = usdt::resolve_target(target, [&](std::size_t seen) { progress_.show(target, seen); });
    std::error_code ec;
    const bool glob = usdt::has_glob(target) && !std::filesystem::exists(target, ec);
    if (!files) {
      // A glob that matches no file is an answer, a name that does not exist is an error.
      if (glob && files.error().kind == usdt::ErrorKind::not_found) return requests_.nowhere.push_back(target);
      return requests_.errors.push_back(files.error());
    }
    if (files->empty()) requests_.nowhere.push_back(target);
    const bool named = !glob && !std::filesystem::is_directory(target, ec);
    for (const usdt::TargetFile& file : *files) add(file, patterns, named);
  }

  void add_mapped(const std::string& target, const Patterns& patterns) {
    bool any = false;
    for (const usdt::TargetFile& file : mapped_) {
      if (!usdt::target_means(target, file)) continue;
      add(file, patterns, true);
      any = true;
    }
    if (!any) requests_.nowhere.push_back(target);
  }

  /// Neither target nor pattern says where: everything the processes have mapped; without -p, every process.
  void add_everything() {
    for (const usdt::TargetFile& file : mapped_) add(file, scoped_, true);
    if (!flags_.pids.empty()) return;
    auto files = usdt::files_of_all_processes();
    if (!files) return requests_.errors.push_back(files.error());
    for (const usdt::TargetFile& file : *files) add(file, scoped_, false);
  }

  void add(const usdt::TargetFile& file, const Patterns& patterns, bool named) {
    struct stat st {};
    // What cannot be seen is kept, for its error.
    if (::stat(file.access.c_str(), &st) == 0) {
      const auto [known, is_new] = by_inode_.emplace(std::pair(st.st_dev, st.st_ino), requests_.files.size());
      if (!is_new) return merge(requests_.files[known->second], patterns);
    }
    requests_.files.push_back({file, patterns, named});
  }

  static void merge(Request& request, const Patterns& patterns) {
    const bool every = request.patterns.empty() || patterns.empty();
    if (every) return request.patterns.clear();
    request.patterns.insert(request.patterns.end(), patterns.begin(), patterns.end());
  }

  const Flags& flags_;
  usdt::tools::Progress& progress_;
  Patterns scoped_;
  std::vector<usdt::TargetFile> mapped_;
  std::map<std::pair<dev_t, ino_t>, std::size_t> by_inode_;
  Requests requests_;
};

}  // namespace

Requests find_requests(const Flags& flags, usdt::tools::Progress& progress) { return Finder(flags, progress).find(); }

}  // namespace usdt_list
