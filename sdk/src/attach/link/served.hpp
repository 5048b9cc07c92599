// SPDX-License-Identifier: BSD-2-Clause
// Says what the kernel's links and the programs on them are attached to. Private to attach/link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "usdt/backend.hpp"
#include "usdt/plan.hpp"

namespace usdt::backends {

/// Says what a program or link is attached to, for what it misses.
struct Served {
  Backend backend = Backend::automatic;
  std::vector<Index<PlannedProbe>> probes;  ///< in order, each once
  std::set<Index<PlannedFile>> files = {};  ///< of a program for files, those at whose sites it runs
};

/// Returns the probes of attached sites [first, first + count), in order, each once. Sites of one probe follow each
/// other.
[[nodiscard]] std::vector<Index<PlannedProbe>> each_once(const std::vector<Index<PlannedProbe>>& sites,
                                                         std::size_t first, std::size_t count);

/// The place of a plan in a larger one, of which it is a part.
struct PartPlace {
  std::uint32_t files = 0;
  std::uint32_t probes = 0;
};

/// Renumbers what is served in a part of a plan as the whole plan does.
void move_to(const PartPlace& place, Served& served);

/// Counts the sites that are attached.
class AttachedSites {
 public:
  [[nodiscard]] std::size_t all() const noexcept { return all_; }
  /// Returns them by backend; one that has none any more stays there.
  [[nodiscard]] const std::map<Backend, std::size_t>& by_backend() const noexcept { return by_backend_; }

  /// Adds sites of a file; nothing as `file`: of the kernel, or of pinned links.
  void add(std::size_t sites, Backend backend, std::optional<Index<PlannedFile>> file);
  /// Adds the sites of a part of the plan.
  void append(const AttachedSites& part, const PartPlace& place);
  /// Takes out the sites of these files. Returns how many they were.
  std::size_t take(const std::set<Index<PlannedFile>>& files);
  /// Takes all out, but goes on telling by which backends they were attached.
  void clear() noexcept { all_ = 0; }

 private:
  std::size_t all_ = 0;
  std::map<Backend, std::size_t> by_backend_;
  /// By file of the plan and backend: functions of a file may be attached by one backend at entries and by another at
  /// returns.
  std::map<std::pair<Index<PlannedFile>, Backend>, std::size_t> of_file_;
};

}  // namespace usdt::backends
