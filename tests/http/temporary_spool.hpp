// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <new>
#include <string>
#include <utility>

#include "http/spool.hpp"

namespace usdt::http {

/// A directory that is removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "spool.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::bad_alloc();
    path_ = std::move(name);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code unknown;
    std::filesystem::remove_all(path_, unknown);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Spool spool_at(const std::string& directory, std::uint64_t most_bytes = 1U << 20) {
  auto spool = Spool::open(directory, most_bytes);
  if (!spool) throw std::bad_alloc();
  return std::move(*spool);
}

}  // namespace usdt::http
