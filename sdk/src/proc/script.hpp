// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/result.hpp"

namespace usdt::proc {

/// The program that runs when `path` is executed: itself, or for a "#!" script its interpreter. "/usr/bin/env NAME"
/// stands for NAME on PATH, since env replaces itself by it. Errors: of the files named; limit (scripts that name
/// scripts, deeper than the kernel follows).
[[nodiscard]] Result<std::filesystem::path> interpreter_of(const std::filesystem::path& path);

/// The program of a "#!" line (without the "#!"), as a path, or a name where env is to look it up on PATH. Empty
/// where the line names none.
[[nodiscard]] std::string program_of_script_line(std::string_view line);

}  // namespace usdt::proc
