// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace usdt::proc {

/// Regular files called `name` in the directories of PATH, in its order.
struct ProgramsOnPath {
  std::string path_list;  ///< PATH, or the C library's default where it is unset
  std::vector<std::filesystem::path> executable;
  std::vector<std::filesystem::path> refused;  ///< there, but not executable for us
};
[[nodiscard]] ProgramsOnPath programs_on_path(std::string_view name);

}  // namespace usdt::proc
