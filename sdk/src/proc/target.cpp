// SPDX-License-Identifier: BSD-2-Clause
// resolve_target: one word of a command line -> the files it means.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/near_text.hpp"
#include "base/try.hpp"
#include "parsers/quote.hpp"
#include "proc/file_head.hpp"
#include "proc/library_search.hpp"
#include "proc/programs.hpp"
#include "proc/walk.hpp"
#include "sys/descriptor_room.hpp"
#include "usdt/discover.hpp"
#include "usdt/pattern.hpp"

namespace usdt {
inline namespace v1 {
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

/// "libpq.so.5.15" is called so, and "libpq.so.5", "libpq.so", "libpq" and "pq".
bool has_name(const TargetFile& file, const std::string& name) {
  const std::string whole = file.path.filename().string();
  const bool has_version = name.find(".so") != name.npos && whole.starts_with(fmt::format("{}.", name));
  return whole == name || has_version || whole.starts_with(fmt::format("{}.so", name)) ||
         whole.starts_with(fmt::format("lib{}.so", name));
}

/// Files of that name, or libraries of that soname, which are at no usual place but are used: a server that runs from a
/// directory of its own, Java's virtual machine.
std::vector<TargetFile> in_use(const std::string& name) {
  std::vector<TargetFile> all = files_of_all_processes().value_or(std::vector<TargetFile>());
  if (const auto java = find_program("java"); java && name.starts_with("libj")) {
    auto files = files_of_program(*java).value_or(std::vector<TargetFile>());
    std::move(files.begin(), files.end(), std::back_inserter(all));
  }
  std::erase_if(all, [&](const TargetFile& file) { return !has_name(file, name); });
  std::vector<TargetFile> out;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (TargetFile& file : all) {
    struct stat st {};
    if (::stat(file.access.c_str(), &st) == 0 && seen.emplace(st.st_dev, st.st_ino).second)
      out.push_back(std::move(file));
  }
  return out;
}

/// "; did you mean python3?", of the programs on PATH.
std::string near_programs(const std::string& name) {
  NearTexts near(name);
  for (const std::string& directory : proc::split_path(proc::programs_on_path(name).path_list)) {
    std::error_code ec;
    for (fs::directory_iterator each(directory, ec), end; !ec && each != end; each.increment(ec))
      near.offer(each->path().filename().native());
  }
  const auto best = std::move(near).best();
  return best.empty() ? std::string() : fmt::format("; did you mean {}?", fmt::join(best, ", "));
}

/// A name without '/': what looks like a library is one first, anything else is a program first ("python3" is not
/// libpython3.so).
Result<std::vector<TargetFile>> of_name(const std::string& name) {
  const bool library_first = name.starts_with("lib") || name.find(".so") != name.npos;
  auto first = library_first ? find_library(name) : program_for_probes(name);
  if (!first && first.error().kind == ErrorKind::no_permission) return fail(first.error());
  if (!first) first = library_first ? program_for_probes(name) : find_library(name);
  if (first) return std::vector<TargetFile>{{*first, *first}};
  if (auto used = in_use(name); !used.empty()) return used;
  return fail(ErrorKind::not_found, fmt::format("no file, program on PATH or shared library is called '{}', and no "
                                                "running process maps one{}",
                                                name, near_programs(name)));
}

/// The files of a path that exists: of a file itself, of a directory all in it.
Result<std::vector<TargetFile>> of_existing(const std::string& path, mode_t mode, const Progress& progress,
                                            const StopToken& stop) {
  if (S_ISREG(mode)) return std::vector<TargetFile>{{path, path}};
  if (!S_ISDIR(mode)) {
    return fail(ErrorKind::invalid_argument, fmt::format("{}: neither a regular file nor a directory", path));
  }
  if (::access(path.c_str(), R_OK | X_OK) != 0) return fail(os_failure(ErrorKind::io, path, errno));
  auto files = as_targets(proc::walk_directory(path, progress, stop));
  if (stop.stop_requested()) return fail(ErrorKind::stopped, fmt::format("{}: not searched to the end", path));
  return files;
}

/// A path or name without globs.
Result<std::vector<TargetFile>> of_text(const std::string& text, const Progress& progress, const StopToken& stop) {
  struct stat st {};
  if (::stat(text.c_str(), &st) == 0) return of_existing(text, st.st_mode, progress, stop);
  if (text.find('/') != text.npos || errno == EACCES || errno == ELOOP)
    return fail(os_failure(ErrorKind::io, text, errno));
  return of_name(text);
}

bool is_below(const std::string& path, std::string_view directory) {
  return path.starts_with(directory) && (directory.ends_with('/') || path.substr(directory.size()).starts_with('/'));
}

/// A path, or the name of a program on PATH, without globs.
bool is_same_file(const std::string& text, const TargetFile& file) {
  fs::path path = text;
  if (text.find('/') == text.npos) {
    auto program = program_for_probes(text);
    if (!program) return false;
    path = std::move(*program);
  }
  struct stat wanted {
  }, mapped{};
  if (::stat(path.c_str(), &wanted) != 0) return false;
  if (S_ISDIR(wanted.st_mode)) return is_below(file.path.string(), text);
  return ::stat(file.access.c_str(), &mapped) == 0 && wanted.st_dev == mapped.st_dev && wanted.st_ino == mapped.st_ino;
}

bool text_means(const std::string& text, const TargetFile& file) {
  if (text == file.path) return true;
  return (text.find('/') == text.npos && has_name(file, text)) || is_same_file(text, file);
}

}  // namespace

Result<std::vector<TargetFile>> resolve_target(std::string_view target, const Progress& progress,
                                               const StopToken& stop) {
  const std::string text(target);
  if (text.empty()) return fail(ErrorKind::invalid_argument, "empty target");
  TRY(sys::need_descriptors(sys::kDescriptorsToRead, "looking for files"));
  if (means_everything(text)) return files_of_all_processes();
  struct stat st {};
  const auto exact = unquoted(text);
  if (exact && ::stat(exact->c_str(), &st) == 0) return of_existing(*exact, st.st_mode, progress, stop);
  // A file of this very name comes first, whatever characters it has.
  if (::stat(text.c_str(), &st) == 0) return of_existing(text, st.st_mode, progress, stop);
  if (exact) return of_text(*exact, progress, stop);
  // A name that is there but leads nowhere is no pattern and no program's name.
  if (errno == EACCES || errno == ELOOP) return fail(os_failure(ErrorKind::io, text, errno));
  return has_glob(text) ? of_glob(text) : of_text(without_backslashes(text), progress, stop);
}

bool means_everything(std::string_view target) noexcept { return target.empty() || target == "*"; }

bool target_means(std::string_view target, const TargetFile& file) {
  if (means_everything(target)) return true;
  if (const auto exact = unquoted(target)) return text_means(*exact, file);
  if (file.path == target) return true;
  if (has_glob(target))
    return glob_match(target, file.path.string()) || glob_match(target, file.path.filename().string()) ||
           is_same_file(std::string(target), file);
  return text_means(without_backslashes(target), file);
}

}  // namespace v1
}  // namespace usdt
