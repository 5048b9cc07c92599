// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/select.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "usdt/discover.hpp"

namespace usdt {
namespace {

/// A file and the patterns that mean it.
struct Candidate {
  TargetFile target;
  std::vector<ProbePattern> patterns;
};

using Inode = std::pair<dev_t, ino_t>;

std::optional<Inode> inode_of(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return Inode{info.st_dev, info.st_ino};
}

/// Candidates in the order found, each inode once.
class Candidates {
 public:
  void add(const TargetFile& target, const ProbePattern& pattern) {
    const auto inode = inode_of(target.access);
    const auto [known, is_new] = inode ? by_inode_.emplace(*inode, all_.size()) : std::pair{by_inode_.end(), true};
    if (is_new) all_.push_back({target, {}});
    Candidate& candidate = is_new ? all_.back() : all_[known->second];
    candidate.patterns.push_back(pattern);
  }
  [[nodiscard]] const std::vector<Candidate>& all() const noexcept { return all_; }

 private:
  std::vector<Candidate> all_;
  std::map<Inode, std::size_t> by_inode_;
};

Result<std::vector<TargetFile>> files_in_scope(const SearchScope& scope) {
  if (scope.pid) return files_of_process(*scope.pid);
  if (scope.program) return files_of_program(*scope.program);
  return files_of_all_processes();
}

std::string scope_name(const SearchScope& scope) {
  if (scope.pid) return fmt::format("the files of process {}", *scope.pid);
  if (scope.program) return fmt::format("{} and its libraries", scope.program->string());
  return "the files of all running processes";
}

class Search {
 public:
  explicit Search(const SearchScope& scope) : scope_(scope) {}

  Result<void> add(const ProbePattern& pattern) {
    if (!pattern.target.empty() && !scope_.pid) return add_target(pattern);
    auto files = in_scope();
    if (!files) return fail(files.error());
    const std::size_t before = candidates_.all().size();
    bool any = false;
    for (const TargetFile& file : **files) {
      if (!pattern.target.empty() && !target_means(pattern.target, file)) continue;
      candidates_.add(file, pattern);
      any = true;
    }
    if (candidates_.all().size() > before || any || pattern.target.empty()) {
      note(pattern.target.empty() ? scope_name(scope_) : pattern.target);
      return {};
    }
    // Not mapped yet: it may be loaded later.
    return add_target(pattern);
  }

  Result<Selection> finish() {
    for (const Candidate& candidate : candidates_.all()) {
      auto file = find_probes(candidate.target, candidate.patterns);
      if (!file)
        selection_.unreadable.push_back(file.error());
      else if (!file->sites.empty())
        selection_.files.push_back(std::move(*file));
    }
    return std::move(selection_);
  }

  /// Providers of the searched files, for people who mistyped one.
  [[nodiscard]] std::vector<std::string> providers() const {
    std::set<std::string> names;
    for (const Candidate& candidate : candidates_.all()) {
      auto file = find_probes(candidate.target, {});
      if (!file) continue;
      for (const Site& site : file->sites) names.insert(site.provider);
    }
    return {names.begin(), names.end()};
  }

 private:
  Result<void> add_target(const ProbePattern& pattern) {
    auto files = resolve_target(pattern.target);
    if (!files) return fail(files.error());
    for (const TargetFile& file : *files) candidates_.add(file, pattern);
    note(pattern.target);
    return {};
  }

  Result<const std::vector<TargetFile>*> in_scope() {
    if (!scope_files_) {
      auto files = files_in_scope(scope_);
      if (!files) return fail(files.error());
      scope_files_ = std::move(*files);
    }
    return &*scope_files_;
  }

  void note(std::string what) {
    if (std::find(selection_.looked.begin(), selection_.looked.end(), what) == selection_.looked.end())
      selection_.looked.push_back(std::move(what));
  }

  const SearchScope& scope_;
  std::optional<std::vector<TargetFile>> scope_files_;
  Candidates candidates_;
  Selection selection_;
};

Error nothing_matches(const std::vector<ProbePattern>& patterns, const Selection& selection,
                      const std::vector<std::string>& providers) {
  if (!selection.unreadable.empty() && providers.empty()) return selection.unreadable.front();
  std::vector<std::string> names;
  for (const ProbePattern& pattern : patterns) names.push_back(fmt::format("{}:{}", pattern.provider, pattern.name));
  const std::string there = providers.empty() ? "there are no USDT probes in it"
                                              : fmt::format("it has providers {}", fmt::join(providers, ", "));
  return {ErrorKind::not_found, fmt::format("no probe matches {} in {}: {}; usdt-list shows what there is",
                                            fmt::join(names, ", "), fmt::join(selection.looked, ", "), there)};
}

/// Characters that a pattern takes for a glob or a border are quoted, so that the name means itself.
std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string probe_name(const TargetFile& file, std::string_view provider, std::string_view name) {
  return fmt::format("usdt:{}:{}:{}", file.access.string(), quoted(provider), quoted(name));
}

Result<Selection> select_probes(const std::vector<ProbePattern>& patterns, const SearchScope& scope) {
  Search search(scope);
  for (const ProbePattern& pattern : patterns) {
    if (auto added = search.add(pattern); !added) return fail(added.error());
  }
  auto selection = search.finish();
  if (selection && selection->files.empty()) return fail(nothing_matches(patterns, *selection, search.providers()));
  return selection;
}

}  // namespace usdt
