// SPDX-License-Identifier: BSD-2-Clause
#include "event/site_counts.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <numeric>
#include <utility>

#include "base/try.hpp"
#include "sys/kernel_counter.hpp"

namespace usdt::event {
namespace {

constexpr const char* kMap = "usdt_stats";
/// Rows begin on cache lines of their own: of two, since x86 processors fetch pairs.
constexpr std::size_t kLine = std::lcm(std::size_t{128}, sizeof(usdt_site_stats)) / sizeof(usdt_site_stats);
/// Bytes of all rows, unless one alone is larger.
constexpr std::size_t kMostBytes = 64u << 20;
constexpr long kMostRows = 1024;

/// Adds a row that the kernel counts in meanwhile, number by number: each is one word.
void add(usdt_site_stats& sum, const usdt_site_stats& row) noexcept {
  static_assert(sizeof(usdt_site_stats) % sizeof(__u64) == 0, "numbers of 64 bits");
  auto* to = reinterpret_cast<__u64*>(&sum);
  const auto* from = reinterpret_cast<const __u64*>(&row);
  for (std::size_t n = 0; n < sizeof(usdt_site_stats) / sizeof(__u64); ++n) to[n] += sys::load_kernel_counter(from[n]);
}

}  // namespace

CountRows count_rows(std::size_t sites, long processors) noexcept {
  const std::size_t row = (std::max<std::size_t>(sites, 1) + kLine - 1) / kLine * kLine;
  const auto wanted = std::bit_ceil(static_cast<std::size_t>(std::clamp(processors, 1L, kMostRows)));
  const auto room = std::bit_floor(std::max<std::size_t>(kMostBytes / (row * sizeof(usdt_site_stats)), 1));
  return {static_cast<std::uint32_t>(std::min(wanted, room)), static_cast<std::uint32_t>(row)};
}

Result<CountRows> SiteCounts::size(BpfObject& object, std::size_t sites) {
  const CountRows rows = count_rows(sites, ::sysconf(_SC_NPROCESSORS_CONF));
  TRY(object.set_max_entries(kMap, rows.entries()));
  return rows;
}

Result<SiteCounts> SiteCounts::open(const LoadedObject& object, CountRows rows) {
  auto map = object.map_fd(kMap);
  if (!map) return fail(map.error());
  const std::size_t entries = rows.entries();
  // Only the BPF program writes the counters.
  void* start = ::mmap(nullptr, entries * sizeof(usdt_site_stats), PROT_READ, MAP_SHARED, *map, 0);
  if (start == MAP_FAILED) return fail(os_failure(ErrorKind::io, "map the counters of hits", errno));
  return SiteCounts(rows, {static_cast<usdt_site_stats*>(start), entries});
}

SiteCounts::SiteCounts(SiteCounts&& other) noexcept
    : rows_(other.rows_), entries_(std::exchange(other.entries_, {})), final_(std::move(other.final_)) {}

SiteCounts& SiteCounts::operator=(SiteCounts&& other) noexcept {
  std::swap(rows_, other.rows_);
  std::swap(entries_, other.entries_);
  std::swap(final_, other.final_);
  return *this;
}

SiteCounts::~SiteCounts() {
  if (!entries_.empty()) ::munmap(entries_.data(), entries_.size_bytes());
}

void SiteCounts::finish() {
  if (entries_.empty()) return;
  for (std::uint32_t site = 0; site < rows_.row_size; ++site) final_.push_back(of(site));
  ::munmap(entries_.data(), entries_.size_bytes());
  entries_ = {};
}

usdt_site_stats SiteCounts::of(std::uint32_t site) const noexcept {
  if (entries_.empty()) return final_[site];
  usdt_site_stats sum{};
  for (std::uint32_t row = 0; row < rows_.rows; ++row) {
    const usdt_site_stats& entry = entries_[std::size_t{row} * rows_.row_size + site];
    add(sum, entry);
  }
  return sum;
}

}  // namespace usdt::event
