// SPDX-License-Identifier: BSD-2-Clause
// How many sites a Link is attached to, and how.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "usdt/plan.hpp"

namespace usdt {

class AttachedSites {
 public:
  /// `file`: none in the kernel, and of pinned links.
  void add(Backend backend, std::optional<Index<PlannedFile>> file, std::size_t sites) {
    by_backend_[backend] += sites;
    if (file) of_file_[*file][backend] += sites;
  }
  /// Those of `file` are attached no more; how many they were, by whatever backends.
  std::size_t remove(Index<PlannedFile> file) {
    std::size_t removed = 0;
    for (const auto& [backend, sites] : of_file_[file]) {
      by_backend_[backend] -= sites;
      removed += sites;
    }
    of_file_.erase(file);
    return removed;
  }
  void remove_all() {
    for (auto& [backend, sites] : by_backend_) sites = 0;
    of_file_.clear();
  }

  [[nodiscard]] std::size_t count() const {
    std::size_t all = 0;
    for (const auto& [backend, sites] : by_backend_) all += sites;
    return all;
  }
  /// A backend whose sites were removed is still there, with none.
  [[nodiscard]] const std::map<Backend, std::size_t>& by_backend() const noexcept { return by_backend_; }

 private:
  std::map<Backend, std::size_t> by_backend_;
  std::map<Index<PlannedFile>, std::map<Backend, std::size_t>> of_file_;
};

}  // namespace usdt
