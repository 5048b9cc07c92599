// SPDX-License-Identifier: BSD-2-Clause
// find_files: patterns and a scope -> the files to look into.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "parsers/quote.hpp"
#include "usdt/select.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Patterns = std::vector<PointPattern>;

/// `mapped`: what the processes or the program map.
std::string scope_name(const SearchScope& scope, const std::vector<TargetFile>& mapped) {
  if (!scope.pids.empty())
    return fmt::format("the files of {} {}", scope.pids.size() == 1 ? "process" : "processes",
                       fmt::join(scope.pids, ", "));
  // A script is run by another program, whose probes are meant.
  if (scope.program && !mapped.empty() && mapped.front().path != *scope.program)
    return fmt::format("{}, which {} runs, and its libraries", scope.program->string(), mapped.front().path.string());
  if (scope.program) return fmt::format("{} and its libraries", scope.program->string());
  return "the files of all running processes";
}

/// A plain name ("libpq", "python3"), not a path or a glob: whoever maps a file of that name is asked first.
bool is_name(std::string_view target) { return target.find('/') == target.npos && !has_glob(target); }

class Search {
 public:
  Search(const Patterns& patterns, const SearchScope& scope) : patterns_(patterns), scope_(scope) {
    for (const PointPattern& pattern : patterns) {
      if (const std::string* target = target_of(pattern); target && means_everything(*target))
        everywhere_.push_back(pattern);
    }
  }

  FoundFiles run() && {
    for (const pid_t pid : scope_.pids) take(files_of_process(pid), mapped_);
    for (const std::string& target : scope_.targets) {
      if (scope_.stop.stop_requested()) break;
      means_everything(target) ? add_everything(everywhere_) : add_target(target, everywhere_);
    }
    for (const PointPattern& pattern : patterns_) {
      if (scope_.stop.stop_requested()) break;
      const std::string* target = target_of(pattern);
      if (target && !means_everything(*target)) add_target(*target, {pattern});
    }
    if (scope_.targets.empty() && (!everywhere_.empty() || patterns_.empty())) add_everything(everywhere_);
    return std::move(found_);
  }

 private:
  /// The files that the processes or the program map. A program's files are looked for when they are first needed.
  const std::vector<TargetFile>& mapped() {
    if (scope_.program && !std::exchange(program_known_, true)) take(files_of_program(*scope_.program), mapped_);
    return mapped_;
  }

  void take(Result<std::vector<TargetFile>>&& files, std::vector<TargetFile>& into) {
    if (!files) return found_.errors.push_back(std::move(files.error()));
    std::move(files->begin(), files->end(), std::back_inserter(into));
  }

  void add_everything(const Patterns& patterns) {
    note(scope_name(scope_, mapped()));
    const bool named = !scope_.pids.empty() || scope_.program;
    std::vector<TargetFile> all;
    if (!named) take(files_of_all_processes(), all);
    for (const TargetFile& file : named ? mapped() : all) add(file, patterns, named);
  }

  void add_target(const std::string& target, const Patterns& patterns) {
    note(target);
    const bool scoped = !scope_.pids.empty();
    struct stat st {};
    const bool exists = ::stat(unquoted(target).value_or(target).c_str(), &st) == 0;
    // Which library of a name a program loads is for the program to say; of paths and globs it may load more later.
    if ((scoped || (scope_.program && !exists && is_name(target))) && add_mapped(target, patterns)) return;
    if (scoped && !scope_.unmapped_too) return found_.nowhere.push_back(target);
    if (scoped) found_.unmapped.push_back(target);
    const auto progress = [&](std::size_t seen) {
      if (scope_.progress) scope_.progress(target, seen);
    };
    auto files = resolve_target(target, progress, scope_.stop);
    const bool glob = has_glob(target) && !target.starts_with('"') && !exists;
    if (!files) {
      // A glob that matches no file is an answer, a name that does not exist is an error.
      if (glob && files.error().kind == ErrorKind::not_found) return found_.nowhere.push_back(target);
      return found_.errors.push_back(std::move(files.error()));
    }
    if (files->empty()) found_.nowhere.push_back(target);
    const bool named = !glob && !(exists && S_ISDIR(st.st_mode));
    for (const TargetFile& file : *files) add(file, patterns, named);
  }

  /// The mapped files that `target` means; the one of that very path, where there is one, and no other.
  bool add_mapped(const std::string& target, const Patterns& patterns) {
    const auto is_it = [&](const TargetFile& file) { return file.path == target; };
    const bool exact = std::any_of(mapped().begin(), mapped().end(), is_it);
    bool any = false;
    for (const TargetFile& file : mapped_) {
      if (exact ? !is_it(file) : !target_means(target, file)) continue;
      add(file, patterns, true);
      any = true;
    }
    return any;
  }

  void add(const TargetFile& file, const Patterns& patterns, bool named) {
    struct stat st {};
    // A file that stat() cannot see is kept, for its error.
    if (::stat(file.access.c_str(), &st) == 0) {
      const auto [known, is_new] = by_inode_.emplace(std::pair(st.st_dev, st.st_ino), found_.files.size());
      if (!is_new) return merge(found_.files[known->second], patterns, named);
    }
    found_.files.push_back({file, patterns, named});
  }

  static void merge(FoundFile& file, const Patterns& patterns, bool named) {
    file.named |= named;
    const bool every = file.patterns.empty() || patterns.empty();
    if (every) return file.patterns.clear();
    file.patterns.insert(file.patterns.end(), patterns.begin(), patterns.end());
  }

  void note(std::string what) {
    if (std::find(found_.looked.begin(), found_.looked.end(), what) == found_.looked.end())
      found_.looked.push_back(std::move(what));
  }

  const Patterns& patterns_;
  const SearchScope& scope_;
  Patterns everywhere_;
  std::vector<TargetFile> mapped_;
  bool program_known_ = false;
  std::map<std::pair<dev_t, ino_t>, std::size_t> by_inode_;
  FoundFiles found_;
};

}  // namespace

FoundFiles find_files(const std::vector<PointPattern>& patterns, const SearchScope& scope) {
  return Search(patterns, scope).run();
}

}  // namespace v1
}  // namespace usdt
