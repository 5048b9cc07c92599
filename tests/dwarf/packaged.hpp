// SPDX-License-Identifier: BSD-2-Clause
// Programs whose split debug information is in a package.
#pragma once

#include <string>
#include <string_view>

namespace usdt::test {

/// The command that makes `prog` of `files`. `compile`: a compiler with its flags, and " | PACKAGER" behind, where its
/// .dwo files are to go into prog.dwp.
inline std::string build_command(std::string_view compile, std::string_view files) {
  const auto bar = compile.find(" | ");
  const std::string linked = std::string(compile.substr(0, bar)) + " " + std::string(files) + " -o prog";
  if (bar == std::string_view::npos) return linked;
  return linked + " && " + std::string(compile.substr(bar + 3)) + " -e prog -o prog.dwp && rm *.dwo";
}

}  // namespace usdt::test
