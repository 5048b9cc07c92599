// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/mount.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace usdt::test {

/// A BPF file system of the test's own: machines, containers above all, may have none at /sys/fs/bpf.
class BpfDirectory {
 public:
  BpfDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "usdt-bpf-XXXXXX").string();
    if (!::mkdtemp(name.data())) return;
    path_ = name;
    mounted_ = ::mount("bpf", path_.c_str(), "bpf", 0, nullptr) == 0;
  }
  ~BpfDirectory() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  BpfDirectory(const BpfDirectory&) = delete;
  BpfDirectory& operator=(const BpfDirectory&) = delete;

  /// False where this machine lets us mount none.
  [[nodiscard]] bool mounted() const noexcept { return mounted_; }
  [[nodiscard]] std::filesystem::path file(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
  bool mounted_ = false;
};

}  // namespace usdt::test
