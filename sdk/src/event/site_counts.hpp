// SPDX-License-Identifier: BSD-2-Clause
// The stock program's counters: a row of one entry a site for each processor or few. Private to event/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "usdt/bpf/event.h"
#include "usdt/bpf/stock_constants.h"
#include "usdt/bpf_object.hpp"
#include "usdt/result.hpp"

namespace usdt::event {

/// How the counters are laid out. Any number of rows counts exactly; too few, and processors wait for each other.
struct CountRows {
  std::uint32_t rows = 1;  ///< a power of two
  std::uint32_t row_size = 1;

  [[nodiscard]] std::uint32_t entries() const noexcept { return rows * row_size; }
  /// Returns what the program is loaded with, which counts in them.
  [[nodiscard]] usdt_counter_constants constants() const noexcept {
    return {.row_mask = rows - 1, .row_size = row_size};
  }
};
/// Decides the rows of counters on a machine that says it has `processors`, which may be wrong.
[[nodiscard]] CountRows count_rows(std::size_t sites, long processors) noexcept;

/// The counters of a loaded object, as memory shared with its program.
class SiteCounts {
 public:
  /// Before the load: sizes the map.
  [[nodiscard]] static Result<CountRows> size(BpfObject& object, std::size_t sites);
  /// Called after the load.
  [[nodiscard]] static Result<SiteCounts> open(const LoadedObject& object, CountRows rows);
  SiteCounts(SiteCounts&& other) noexcept;
  SiteCounts& operator=(SiteCounts&& other) noexcept;
  ~SiteCounts();

  /// The sum over all rows.
  [[nodiscard]] usdt_site_stats of(std::uint32_t site) const noexcept;
  /// The program is detached: what it has counted stays known, and the memory is given back.
  void finish();

 private:
  SiteCounts(CountRows rows, std::span<usdt_site_stats> entries) noexcept : rows_(rows), entries_(entries) {}

  CountRows rows_;
  std::span<usdt_site_stats> entries_;
  std::vector<usdt_site_stats> final_ = {};  ///< by site
};

}  // namespace usdt::event
