// SPDX-License-Identifier: BSD-2-Clause
// resolve_target: one word of a command line -> the files it means.
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proc/file_head.hpp"
#include "proc/library_search.hpp"
#include "proc/programs.hpp"
#include "proc/walk.hpp"
#include "usdt/discover.hpp"
#include "usdt/pattern.hpp"

namespace usdt {
namespace fs = std::filesystem;
namespace {

using Progress = std::function<void(std::size_t)>;

bool may_hold_probes(const fs::path& path) {
  const auto head = proc::read_head(path.c_str());
  return head && (head->format == proc::FileFormat::elf || head->format == proc::FileFormat::archive);
}

std::vector<TargetFile> as_targets(const std::vector<fs::path>& paths) {
  std::vector<TargetFile> out;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const fs::path& path : paths) {
    struct stat st {};
    if (::stat(path.c_str(), &st) == 0 && seen.emplace(st.st_dev, st.st_ino).second) out.push_back({path, path});
  }
  return out;
}

/// Paths that match, of ELF files and archives alone: a glob names files, it does not walk directories.
std::vector<fs::path> expand_glob(const std::string& pattern) {
  glob_t result{};
  std::vector<fs::path> out;
  if (::glob(pattern.c_str(), 0, nullptr, &result) == 0) {
    for (std::size_t i = 0; i < result.gl_pathc; ++i) {
      if (may_hold_probes(result.gl_pathv[i])) out.emplace_back(result.gl_pathv[i]);
    }
  }
  ::globfree(&result);
  return out;
}

Result<std::vector<TargetFile>> of_glob(const std::string& pattern) {
  auto files = as_targets(expand_glob(pattern));
  if (files.empty() && pattern.find('/') == pattern.npos) {
    const proc::LibrarySearch search(proc::LibrarySearch::host_places());
    files = as_targets(search.match(pattern, proc::host_ident()));
  }
  if (!files.empty()) return files;
  return fail(ErrorKind::not_found, fmt::format("no ELF file matches '{}'", pattern));
}

/// The program that a name means. A wrapper script has no probes: an ELF file of that name further down PATH goes
/// first.
Result<fs::path> program_for_probes(const std::string& name) {
  for (fs::path& path : proc::programs_on_path(name).executable) {
    if (may_hold_probes(path)) return std::move(path);
  }
  return find_program(name);
}

/// A name without '/': what looks like a library is one first, anything else is a program first ("python3" is not
/// libpython3.so).
Result<std::vector<TargetFile>> of_name(const std::string& name) {
  const bool library_first = name.starts_with("lib") || name.find(".so") != name.npos;
  auto first = library_first ? find_library(name) : program_for_probes(name);
  if (!first && first.error().kind == ErrorKind::no_permission) return fail(first.error());
  if (!first) first = library_first ? program_for_probes(name) : find_library(name);
  if (first) return std::vector<TargetFile>{{*first, *first}};
  return fail(ErrorKind::not_found, fmt::format("no file, program on PATH or shared library is called '{}'", name));
}

}  // namespace

Result<std::vector<TargetFile>> resolve_target(std::string_view target, const Progress& progress) {
  const std::string text(target);
  if (text.empty()) return fail(ErrorKind::invalid_argument, "empty target");
  // What exists under that very name is meant, whatever characters it has: listed names paste back.
  struct stat st {};
  if (::stat(text.c_str(), &st) == 0) {
    if (S_ISREG(st.st_mode)) return std::vector<TargetFile>{{text, text}};
    if (!S_ISDIR(st.st_mode)) {
      return fail(ErrorKind::invalid_argument, fmt::format("{}: neither a regular file nor a directory", text));
    }
    if (::access(text.c_str(), R_OK | X_OK) != 0) return fail(os_failure(ErrorKind::io, text, errno));
    return as_targets(proc::walk_directory(text, progress));
  }
  const int stat_error = errno;
  // A name that is there but leads nowhere is no pattern and no program's name.
  if (stat_error == EACCES || stat_error == ELOOP) return fail(os_failure(ErrorKind::io, text, stat_error));
  if (has_glob(text)) return of_glob(text);
  if (text.find('/') != text.npos) return fail(os_failure(ErrorKind::io, text, stat_error));
  return of_name(text);
}

bool target_means(std::string_view target, const TargetFile& file) {
  const std::string path = file.path.string();
  const std::string name = file.path.filename().string();
  if (target == path || glob_match(target, path) || glob_match(target, name)) return true;
  if (target.find('/') == target.npos) {
    return name.starts_with(fmt::format("{}.so", target)) || name.starts_with(fmt::format("lib{}.so", target));
  }
  struct stat wanted {
  }, mapped{};
  if (::stat(std::string(target).c_str(), &wanted) != 0) return false;
  if (S_ISDIR(wanted.st_mode)) {
    return path.starts_with(target.ends_with('/') ? std::string(target) : fmt::format("{}/", target));
  }
  return ::stat(file.access.c_str(), &mapped) == 0 && wanted.st_dev == mapped.st_dev && wanted.st_ino == mapped.st_ino;
}

}  // namespace usdt
