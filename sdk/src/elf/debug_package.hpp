// SPDX-License-Identifier: BSD-2-Clause
// Where a file's symbols would come from.
#pragma once

#include <filesystem>
#include <string>

namespace usdt::elf {

/// The package that installed `path`, by the lists dpkg keeps ("NAME.list" or "NAME:ARCH.list", one path a
/// line); empty where none did. `lists`: their directory.
[[nodiscard]] std::string package_of(const std::filesystem::path& path,
                                     const std::filesystem::path& lists = "/var/lib/dpkg/info");

/// "package libc6-dbgsym or libc6-dbg has it, for build id 1234": empty where no package is known.
[[nodiscard]] std::string where_symbols_are(const std::string& package, const std::string& build_id);

}  // namespace usdt::elf
