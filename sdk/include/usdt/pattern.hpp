// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt {

/// Shell-style match of the whole `text`: '*' any run, '?' any one character, '[a-z]' / '[!a-z]' a class, '\' quotes.
[[nodiscard]] bool glob_match(std::string_view glob, std::string_view text) noexcept;
/// True when `text` has an unquoted '*', '?' or '['.
[[nodiscard]] bool has_glob(std::string_view text) noexcept;

/// Which probes are meant: `usdt:TARGET:PROVIDER:NAME`, `TARGET:PROVIDER:NAME`, `PROVIDER:NAME`,
/// `usdt:TARGET:NAME` as in bpftrace, `u:TARGET:NAME` as in bcc (and `U:` for `usdt:`). Globs are allowed in every
/// part. The target may contain ':': the last two parts are provider and name. A part in double quotes means itself,
/// whatever characters it has; outside of quotes a '\' takes the next character's meaning away, and "\n", "\t" and
/// "\xHH" are the newline, the tab and the byte of that number.
struct ProbePattern {
  /// Path, directory, glob, soname or program name, as resolve_target() takes it; empty or "*": whatever the processes
  /// in question (pids, command, all) have mapped.
  std::string target;
  std::string provider = "*";
  std::string name = "*";

  /// Errors: syntax with the column ("empty probe name", "no ':' in 'x': write PROVIDER:NAME").
  [[nodiscard]] static Result<ProbePattern> parse(std::string_view text);
  /// Whether a site of that provider and name is meant.
  [[nodiscard]] bool matches(std::string_view site_provider, std::string_view site_name) const noexcept;
  /// "usdt:TARGET:PROVIDER:NAME", parseable again.
  [[nodiscard]] std::string str() const;
};

}  // namespace usdt
