// SPDX-License-Identifier: BSD-2-Clause
// What is measured against: the bare system calls, and the kernel's own account of a program's run time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sys/unique_fd.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::bench {

struct RunStats {
  std::uint64_t ns = 0;
  std::uint64_t count = 0;
};
/// Of all runs since somebody switched the statistics on.
[[nodiscard]] Result<RunStats> run_stats(int program_fd);
/// The kernel measures programs while the descriptor is open. Linux 5.8, commit d46edd671a14.
[[nodiscard]] Result<sys::UniqueFd> enable_stats();

/// A program of two instructions, for uprobe_multi links.
[[nodiscard]] Result<sys::UniqueFd> load_empty_program();
/// BPF_LINK_CREATE and nothing else.
[[nodiscard]] Result<sys::UniqueFd> create_link(int program_fd, const std::filesystem::path& path,
                                                const std::vector<std::uint64_t>& offsets);

/// The sites of provider "hit" with this name ("*": all) in `path`.
[[nodiscard]] Result<ProbeFile> find_sites(const std::filesystem::path& path, const std::string& name);
/// This program's file, which has the sites of sites.S.
[[nodiscard]] std::filesystem::path own_file();

}  // namespace usdt::bench
