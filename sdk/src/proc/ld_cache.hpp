// SPDX-License-Identifier: BSD-2-Clause
// /etc/ld.so.cache, the dynamic loader's index of libraries, in glibc's format "glibc-ld.so.cache1.1"
// (sysdeps/generic/dl-cache.h), alone or behind the older "ld.so-1.7.0" table. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proc/file_head.hpp"
#include "usdt/result.hpp"

namespace usdt::proc {

struct CacheEntry {
  std::string soname;
  std::string path;
  std::uint32_t flags = 0;  ///< library type and ABI: abi_of()
  std::uint64_t hwcap = 0;  ///< not 0: a variant for some processors only, below a glibc-hwcaps directory

  friend bool operator==(const CacheEntry&, const CacheEntry&) = default;
};

/// True when a library with these cache flags is one a program of `ident` can load.
[[nodiscard]] bool cache_flags_fit(std::uint32_t flags, const ElfIdent& ident) noexcept;

/// The entries in file order: the loader's own order of preference, so newer versions come first.
/// Errors: malformed, with the offset of what contradicts the format.
[[nodiscard]] Result<std::vector<CacheEntry>> parse_ld_cache(std::span<const char> bytes);

}  // namespace usdt::proc
