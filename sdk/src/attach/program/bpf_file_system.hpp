// SPDX-License-Identifier: BSD-2-Clause
// The file system in which links and maps can be pinned. Private to attach/program.
#pragma once

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <filesystem>
#include <string>

namespace usdt::backends {

inline bool is_bpf_file_system(const std::filesystem::path& directory) {
  struct statfs info {};
  return ::statfs(directory.c_str(), &info) == 0 && info.f_type == BPF_FS_MAGIC;
}

/// Containers and chroots often lack one.
inline std::string no_bpf_file_system(const std::filesystem::path& directory) {
  return fmt::format("{} is in no BPF file system: mount one (`mount -t bpf bpf /sys/fs/bpf`) and pin below it",
                     directory.string());
}

}  // namespace usdt::backends
