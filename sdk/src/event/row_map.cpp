// SPDX-License-Identifier: BSD-2-Clause
#include "event/row_map.hpp"

#include <bpf/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <map>

#include "usdt/bpf/event.h"
#include "usdt/bpf/filter.h"

namespace usdt::event {
namespace {

constexpr const char* kMap = "usdt_rows";
/// More parts than that help no machine much, and each has room for all rows.
constexpr long kMostParts = 16;
constexpr std::uint32_t kMostEntries = 1u << 20;
constexpr std::uint64_t kTopBit = 1ULL << 63;

/// usdt_row as far as there are keys.
std::uint32_t key_size(const PlannedTable& table) {
  const std::uint32_t keys = table.keys.empty() ? 0 : table.keys.back().offset + table.keys.back().size;
  return static_cast<std::uint32_t>(offsetof(usdt_row, key)) + keys;
}

/// Of an argument the last byte says how many there are, and of one that fills its bytes there may be more.
TableText text_of(const char* bytes, const TableColumn& column) {
  if (column.field) return {std::string(bytes, ::strnlen(bytes, column.size)), false};  // the name of a task
  const std::size_t most = column.size - 1;
  const std::size_t length = std::min<std::size_t>(static_cast<unsigned char>(bytes[most]), most);
  return {std::string(bytes, length), length == most};
}

TableKey key_of(const TableColumn& column, const usdt_row& row, const AttachPlan& plan) {
  const auto* at = reinterpret_cast<const char*>(row.key) + column.offset;
  if (column.type == ExpressionType::text) return text_of(at, column);
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  if (column.field == HitField::probe)
    return static_cast<std::int64_t>(plan.sites[Index<PlannedSite>(static_cast<std::uint32_t>(bits))].probe.value);
  if (column.type == ExpressionType::unsigned_integer) return bits;
  return static_cast<std::int64_t>(bits);
}

Int128 number_of(std::uint64_t biased, std::uint64_t bias) {
  const std::uint64_t bits = biased ^ bias;
  return bias != 0 ? static_cast<Int128>(bits) : static_cast<Int128>(static_cast<std::int64_t>(bits));
}

Int128 sum_of(const usdt_tally& tally, std::uint64_t bias) {
  const Int128 high =
      bias != 0 ? static_cast<Int128>(tally.high) : static_cast<Int128>(static_cast<std::int64_t>(tally.high));
  return high * (Int128{1} << USDT_TALLY_LOW_BITS) + tally.low;
}

TableRow told_by(const usdt_tally& tally, std::uint64_t bias) {
  return {.keys = {},
          .count = tally.count,
          .sum = sum_of(tally, bias),
          .minimum = number_of(tally.minimum, bias),
          .maximum = number_of(tally.maximum, bias)};
}

std::uint64_t bias_of(const PlannedTable& table) {
  return table.value == ExpressionType::unsigned_integer ? kTopBit : 0;
}

}  // namespace

Result<void> size_rows(BpfObject& object, usdt_stock_constants& constants, const PlannedTable& table) {
  const long processors = std::clamp(::sysconf(_SC_NPROCESSORS_CONF), 1L, kMostParts);
  const auto parts = std::bit_ceil(static_cast<std::uint32_t>(processors));
  constants.table_part_mask = parts - 1;
  constants.value_bias = bias_of(table);
  const std::uint32_t rows = std::clamp(table.max_rows, 1u, kMostEntries / parts);
  if (auto set = object.set_max_entries(kMap, rows * parts); !set) return set;
  return object.set_key_size(kMap, key_size(table));
}

Result<std::vector<TableRow>> read_rows(const LoadedObject& object, const AttachPlan& plan) {
  auto map = object.map_fd(kMap);
  if (!map) return fail(map.error());
  const std::uint64_t bias = bias_of(*plan.table);
  std::map<std::vector<TableKey>, TableRow> rows;
  usdt_row row{};
  usdt_row next{};
  const void* after = nullptr;
  // Rows are never taken out, so that each is met once.
  while (bpf_map_get_next_key(*map, after, &next) == 0) {
    row = next;
    after = &row;
    usdt_tally tally{};
    if (bpf_map_lookup_elem(*map, &row, &tally) != 0)
      return fail(os_failure(ErrorKind::io, "read a row of the table", errno));
    std::vector<TableKey> keys;
    for (const TableColumn& column : plan.table->keys) keys.push_back(key_of(column, row, plan));
    TableRow& whole = rows[keys];
    whole.keys = std::move(keys);
    whole.add(told_by(tally, bias));
  }
  std::vector<TableRow> all;
  for (auto& [keys, whole] : rows) all.push_back(std::move(whole));
  return all;
}

}  // namespace usdt::event
