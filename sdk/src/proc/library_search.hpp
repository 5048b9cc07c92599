// SPDX-License-Identifier: BSD-2-Clause
// Search of the dynamic loader for a library (ld.so(8)), with its places as a value that tests can fill themselves.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proc/file_head.hpp"
#include "proc/ld_cache.hpp"

namespace usdt::proc {

class LibrarySearch {
 public:
  struct Places {
    std::vector<std::string> environment;  ///< directories of LD_LIBRARY_PATH
    std::filesystem::path cache_file;      ///< may be absent or unreadable: then it answers nothing
    std::vector<std::string> defaults;     ///< the loader's built-in directories
  };
  /// This process's environment, /etc/ld.so.cache and the directories that Debian's and Fedora's glibc are built with.
  [[nodiscard]] static Places host_places();

  explicit LibrarySearch(Places places);

  /// The library `soname` for programs of `ident`; nothing where no place has one that fits. In order: `rpath`,
  /// LD_LIBRARY_PATH, `runpath`, the cache, the default directories.
  [[nodiscard]] std::optional<std::filesystem::path> find(std::string_view soname, const ElfIdent& ident,
                                                          std::span<const std::string> rpath = {},
                                                          std::span<const std::string> runpath = {}) const;

  /// The newest version of `stem` ("libpq.so" finds libpq.so.5), likewise.
  [[nodiscard]] std::optional<std::filesystem::path> find_version(std::string_view stem, const ElfIdent& ident) const;

  /// Every library of the cache for programs of `ident` whose soname matches `glob`, in the cache's order.
  [[nodiscard]] std::vector<std::filesystem::path> match(std::string_view glob, const ElfIdent& ident) const;

  /// "LD_LIBRARY_PATH (2 directories), /etc/ld.so.cache (704 libraries), /lib64, ...": for messages.
  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] std::optional<std::filesystem::path> in_directories(std::string_view soname, const ElfIdent& ident,
                                                                    std::span<const std::string> directories) const;
  [[nodiscard]] std::optional<std::filesystem::path> in_cache(std::string_view soname, const ElfIdent& ident) const;

  Places places_;
  std::vector<CacheEntry> cache_;
};

/// "a:b::c" -> {"a", "b", ".", "c"}: an empty item of a search path is the current directory. ';' separates too
/// where `semicolons` (LD_LIBRARY_PATH).
[[nodiscard]] std::vector<std::string> split_path(std::string_view list, bool semicolons = false);

/// Below or above: compares names so that digits count as numbers, as ldconfig orders versions: libx.so.9 < libx.so.10.
[[nodiscard]] bool version_less(std::string_view a, std::string_view b) noexcept;

}  // namespace usdt::proc
