// SPDX-License-Identifier: BSD-2-Clause
// find_library and find_program: names on a command line -> paths.
#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "arch/arch.hpp"
#include "proc/file_head.hpp"
#include "proc/library_search.hpp"
#include "proc/programs.hpp"
#include "usdt/discover.hpp"

namespace usdt {
inline namespace v1 {
namespace fs = std::filesystem;
namespace {

/// ABIs a library may have on this host: its own first, then those it can also run.
std::vector<proc::ElfIdent> host_abis() {
  std::vector<proc::ElfIdent> abis = {proc::host_ident()};
  for (const arch::Arch* arch : arch::all())
    if (arch->machine != host_machine() && runs_here(arch->machine)) abis.push_back(proc::ident_of(arch->machine));
  return abis;
}

/// File names that `name` may stand for: "pq" and "libpq" mean libpq.so and its versions.
std::vector<std::string> library_stems(std::string_view name) {
  std::vector<std::string> stems = {std::string(name)};
  if (name.find(".so") != name.npos) return stems;
  stems.push_back(fmt::format("{}.so", name));
  if (!name.starts_with("lib")) stems.push_back(fmt::format("lib{}.so", name));
  return stems;
}

/// PATH, or what the C library takes where it is unset.
std::string search_path() {
  if (const char* path = std::getenv("PATH")) return path;
  std::array<char, 256> buffer{};
  ::confstr(_CS_PATH, buffer.data(), buffer.size());
  return buffer.data();
}

bool is_regular(const fs::path& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

auto not_executable(const fs::path& path) {
  return fail(Error{ErrorKind::no_permission, fmt::format("{}: not executable", path.string()), EACCES});
}

Result<fs::path> check_program(const fs::path& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return fail(os_failure(ErrorKind::io, path.string(), errno));
  if (!S_ISREG(st.st_mode)) {
    return fail(ErrorKind::invalid_argument, fmt::format("{}: not a regular file", path.string()));
  }
  if (::access(path.c_str(), X_OK) != 0) return not_executable(path);
  return path;
}

}  // namespace

Result<fs::path> find_library(std::string_view soname) {
  if (soname.empty()) return fail(ErrorKind::invalid_argument, "empty library name");
  if (soname.find('/') != soname.npos) {
    fs::path path(soname);
    if (is_regular(path)) return path;
    return fail(ErrorKind::not_found, fmt::format("no library {}", soname));
  }
  const proc::LibrarySearch search(proc::LibrarySearch::host_places());
  for (const proc::ElfIdent& abi : host_abis()) {
    if (auto path = search.find(soname, abi)) return *path;
    for (const std::string& stem : library_stems(soname)) {
      if (auto path = search.find_version(stem, abi)) return *path;
    }
  }
  return fail(ErrorKind::not_found, fmt::format("no library '{}' in {}", soname, search.describe()));
}

}  // namespace v1
}  // namespace usdt

namespace usdt::proc {

ProgramsOnPath programs_on_path(std::string_view name) {
  ProgramsOnPath found;
  found.path_list = search_path();
  for (const std::string& directory : split_path(found.path_list)) {
    fs::path path = fs::path(directory) / name;
    if (!is_regular(path)) continue;
    auto& list = ::access(path.c_str(), X_OK) == 0 ? found.executable : found.refused;
    list.push_back(std::move(path));
  }
  return found;
}

}  // namespace usdt::proc

namespace usdt {
inline namespace v1 {

Result<fs::path> find_program(std::string_view name) {
  if (name.empty()) return fail(ErrorKind::invalid_argument, "empty program name");
  if (name.find('/') != name.npos) return check_program(name);
  const proc::ProgramsOnPath found = proc::programs_on_path(name);
  if (!found.executable.empty()) return found.executable.front();
  if (!found.refused.empty()) return not_executable(found.refused.front());
  return fail(ErrorKind::not_found, fmt::format("no program '{}' on PATH ({})", name, found.path_list));
}

}  // namespace v1
}  // namespace usdt
