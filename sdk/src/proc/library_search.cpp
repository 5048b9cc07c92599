// SPDX-License-Identifier: BSD-2-Clause
#include "proc/library_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "arch/arch.hpp"
#include "arch/host.hpp"
#include "elf/file.hpp"
#include "usdt/pattern.hpp"

namespace usdt::proc {
namespace fs = std::filesystem;
namespace {

/// Subdirectories the loader tries before a directory itself.
const std::vector<std::string>& hwcaps_subdirectories() {
  static const std::vector<std::string> subdirectories = [] {
    std::vector<std::string> out;
    for (const std::string_view level : arch::hwcaps_levels()) out.push_back(fmt::format("glibc-hwcaps/{}", level));
    out.emplace_back();
    return out;
  }();
  return subdirectories;
}

bool usable_here(const CacheEntry& entry) {
  if (entry.hwcap == 0) return true;
  return std::ranges::any_of(hwcaps_subdirectories(), [&](const std::string& sub) {
    return !sub.empty() && entry.path.find("/" + sub + "/") != entry.path.npos;
  });
}

/// A file of that name that the loader would map for `ident`; it passes over others (a linker script called libc.so,
/// a library of the other class).
bool loadable(const fs::path& path, const ElfIdent& ident) {
  const auto head = read_head(path.c_str());
  return head && head->format == FileFormat::elf && head->ident == ident;
}

std::vector<CacheEntry> load_cache(const fs::path& path) {
  const auto file = elf::File::open(path);
  if (!file) return {};
  const elf::Bytes bytes = file->bytes(0, file->size());
  auto entries = parse_ld_cache({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return entries ? std::move(*entries) : std::vector<CacheEntry>();
}

/// Directories in which the loaders of this system look: Debian's, then those of others.
std::vector<std::string> default_directories() {
  const arch::Arch& host = arch::for_machine(arch::kHostMachine);
  std::vector<std::string> directories;
  const auto add = [&directories](std::string_view name) {
    for (const std::string_view root : {"/lib", "/usr/lib"}) directories.push_back(fmt::format("{}{}", root, name));
  };
  const auto add_multiarch = [&add](const arch::Arch& arch) { add(fmt::format("/{}", arch.loader.multiarch)); };
  add_multiarch(host);
  if (host.word_size == 8) add("64");
  add("");
  for (const arch::Arch* guest : arch::all()) {
    if (guest->kernel.guest_of != host.machine) continue;
    add_multiarch(*guest);
    add("32");
  }
  return directories;
}

}  // namespace

std::vector<std::string> split_path(std::string_view list, bool semicolons) {
  std::vector<std::string> out;
  if (list.empty()) return out;
  const std::string_view separators = semicolons ? ":;" : ":";
  while (true) {
    const auto end = list.find_first_of(separators);
    out.emplace_back(end == 0 || list.empty() ? "." : list.substr(0, end));
    if (end == list.npos) return out;
    list.remove_prefix(end + 1);
  }
}

bool version_less(std::string_view a, std::string_view b) noexcept {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      std::uint64_t x = 0, y = 0;
      const auto after_x = std::from_chars(a.data(), a.data() + a.size(), x).ptr;
      const auto after_y = std::from_chars(b.data(), b.data() + b.size(), y).ptr;
      if (x != y) return x < y;
      a.remove_prefix(static_cast<std::size_t>(after_x - a.data()));
      b.remove_prefix(static_cast<std::size_t>(after_y - b.data()));
    } else {
      if (a[0] != b[0]) return a[0] < b[0];
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && !b.empty();
}

LibrarySearch::Places LibrarySearch::host_places() {
  Places places;
  if (const char* list = std::getenv("LD_LIBRARY_PATH")) places.environment = split_path(list, true);
  places.cache_file = "/etc/ld.so.cache";
  places.defaults = default_directories();
  return places;
}

LibrarySearch::LibrarySearch(Places places) : places_(std::move(places)), cache_(load_cache(places_.cache_file)) {}

std::optional<fs::path> LibrarySearch::in_directories(std::string_view soname, const ElfIdent& ident,
                                                      std::span<const std::string> directories) const {
  for (const std::string& directory : directories) {
    for (const std::string& sub : hwcaps_subdirectories()) {
      fs::path path = fs::path(directory) / sub / soname;
      if (loadable(path, ident)) return path;
    }
  }
  return std::nullopt;
}

std::optional<fs::path> LibrarySearch::in_cache(std::string_view soname, const ElfIdent& ident) const {
  for (const CacheEntry& entry : cache_) {
    if (entry.soname != soname || !cache_flags_fit(entry.flags, ident) || !usable_here(entry)) continue;
    // The cache may be older than the disk: an entry whose file is gone answers nothing.
    if (loadable(entry.path, ident)) return entry.path;
  }
  return std::nullopt;
}

std::optional<fs::path> LibrarySearch::find(std::string_view soname, const ElfIdent& ident,
                                            std::span<const std::string> rpath,
                                            std::span<const std::string> runpath) const {
  if (auto path = in_directories(soname, ident, rpath)) return path;
  if (auto path = in_directories(soname, ident, places_.environment)) return path;
  if (auto path = in_directories(soname, ident, runpath)) return path;
  if (auto path = in_cache(soname, ident)) return path;
  return in_directories(soname, ident, places_.defaults);
}

std::optional<fs::path> LibrarySearch::find_version(std::string_view stem, const ElfIdent& ident) const {
  const std::string prefix = fmt::format("{}.", stem);
  std::vector<std::string> names;
  const auto consider = [&](std::string_view name) {
    if (name == stem || name.starts_with(prefix)) names.emplace_back(name);
  };
  for (const CacheEntry& entry : cache_) {
    if (cache_flags_fit(entry.flags, ident)) consider(entry.soname);
  }
  for (const auto* directories : {&places_.environment, &places_.defaults}) {
    for (const std::string& directory : *directories) {
      std::error_code ec;
      for (fs::directory_iterator it(directory, ec), end; !ec && it != end; it.increment(ec)) {
        consider(it->path().filename().native());
      }
    }
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return version_less(b, a); });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    if (auto path = find(name, ident)) return path;
  }
  return std::nullopt;
}

std::vector<fs::path> LibrarySearch::match(std::string_view glob, const ElfIdent& ident) const {
  std::vector<fs::path> out;
  for (const CacheEntry& entry : cache_) {
    if (cache_flags_fit(entry.flags, ident) && usable_here(entry) && glob_match(glob, entry.soname) &&
        loadable(entry.path, ident)) {
      out.emplace_back(entry.path);
    }
  }
  return out;
}

std::string LibrarySearch::describe() const {
  std::string out;
  if (!places_.environment.empty()) out = fmt::format("LD_LIBRARY_PATH {}, ", fmt::join(places_.environment, ":"));
  out += fmt::format("{} ({} libraries)", places_.cache_file.string(), cache_.size());
  for (const std::string& directory : places_.defaults) {
    std::error_code ec;
    if (fs::is_directory(directory, ec)) out += ", " + directory;
  }
  return out;
}

}  // namespace usdt::proc
