// SPDX-License-Identifier: BSD-2-Clause
#include "event/row_map.hpp"

#include <bpf/bpf.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

#include "base/try.hpp"
#include "expr/context_words.hpp"
#include "expr/numbers.hpp"
#include "expr/row.hpp"
#include "expr/site_words.hpp"
#include "kernel/tracer_frame.hpp"
#include "sys/read.hpp"
#include "usdt/bpf/event.h"
#include "usdt/bpf/filter.h"

namespace usdt::event {
namespace {

constexpr const char* kRowsMap = "usdt_rows";
constexpr const char* kKeysMap = "usdt_row_keys";
constexpr const char* kBlankMap = "usdt_blank_row";
/// More parts than that help no machine much, and each has room for all rows.
constexpr long kMostParts = 16;
constexpr std::uint32_t kMostEntries = 1u << 20;
constexpr std::uint64_t kTopBit = 1ULL << 63;

/// Maps of stacks, which are told apart by a hash. The second one takes what finds no place in the first: of 2,000
/// different stacks 4 find none in either, of 5,000 one in 75.
constexpr const char* kStackMaps[] = {"usdt_stacks", "usdt_more_stacks"};
constexpr std::uint32_t kStacks = 16384;

/// usdt_row as far as there are keys.
std::uint32_t key_size(const PlannedTable& table) {
  const std::uint32_t keys = table.keys.empty() ? 0 : table.keys.back().offset + table.keys.back().size;
  return static_cast<std::uint32_t>(offsetof(usdt_row, key)) + keys;
}

/// Reads the text of a key. The last byte of an argument is the length of its text; one that fills its bytes may go on.
TableText text_of(const char* bytes, const TableColumn& column) {
  if (column.field) return {std::string(bytes, ::strnlen(bytes, column.size)), false};  // the name of a task
  const std::size_t most = column.size - 1;
  const std::size_t length = std::min<std::size_t>(static_cast<unsigned char>(bytes[most]), most);
  return {std::string(bytes, length), length == most};
}

/// How many addresses a stack may have: what the administrator allows.
std::uint32_t stack_depth() {
  const auto text = sys::read_text("/proc/sys/kernel/perf_event_max_stack", 32);
  std::uint32_t allowed = USDT_ROW_STACK_DEPTH;
  if (text) std::from_chars(text->data(), text->data() + text->size(), allowed);
  return std::clamp<std::uint32_t>(allowed, 1, USDT_ROW_STACK_DEPTH);
}

/// Reads stacks of rows, each once.
class StackReader {
 public:
  StackReader(const AttachPlan& plan, const KeptStacks& kept)
      : kept_(kept), tracepoints_(std::ranges::any_of(plan.sites, [](const PlannedSite& site) {
          return site.tracer_frames > 0 && std::holds_alternative<TracepointPlace>(site.point);
        })) {}

  Result<void> open(const LoadedObject& object) {
    for (std::size_t i = 0; i < maps_.size(); ++i) {
      auto map = TRY(object.map_fd(kStackMaps[i]));
      maps_[i] = map;
    }
    return {};
  }

  TableStack of(const usdt_row_stack& key, HitField field) {
    TableStack stack{.kernel = field == HitField::kstack, .pid = key.pid, .caller = key.caller};
    if (key.number < 0) {
      stack.pid = 0;
      stack.why_none = key.number == -EFAULT || key.number == -ENOENT ? std::string(expr::why_no_stack(field))
                       : key.number == -EEXIST
                           ? "not known: there was no room beside other stacks"
                           : os_failure(ErrorKind::io, "the kernel could not take the stack", -key.number).message;
      return stack;
    }
    const auto kept = kept_.find({key.number, key.pid});
    stack.addresses = kept != kept_.end() ? kept->second : addresses(key.number, stack.kernel);
    stack.cut = stack.addresses.size() >= depth_;
    return stack;
  }
  /// The addresses of one that was read.
  [[nodiscard]] std::vector<std::uint64_t> known(std::int32_t number) const {
    const auto found = known_.find(number);
    return found != known_.end() ? found->second : std::vector<std::uint64_t>();
  }

 private:
  std::vector<std::uint64_t> addresses(std::int32_t number, bool kernel) {
    const auto [known, fresh] = known_.try_emplace(number);
    std::vector<std::uint64_t>& found = known->second;
    if (!fresh) return found;
    const std::uint32_t slot = static_cast<std::uint32_t>(number) & ~static_cast<std::uint32_t>(USDT_MORE_STACKS);
    found.resize(USDT_ROW_STACK_DEPTH);
    if (bpf_map_lookup_elem(maps_[(number & USDT_MORE_STACKS) != 0 ? 1 : 0], &slot, found.data()) != 0) found.clear();
    found.erase(std::ranges::find(found, 0U), found.end());
    // The kernel has left out the frames of raw tracepoints that are there everywhere. The others are removed here.
    while (kernel && tracepoints_ && !found.empty() && kernel::is_tracer_frame(found.front()))
      found.erase(found.begin());
    return found;
  }

  const KeptStacks& kept_;
  bool tracepoints_;
  std::array<int, 2> maps_{};
  std::uint32_t depth_ = stack_depth();
  std::map<std::int32_t, std::vector<std::uint64_t>> known_;
};

TableKey key_of(const TableColumn& column, const usdt_row& row, const AttachPlan& plan, StackReader& stacks) {
  const auto* at = reinterpret_cast<const char*>(row.key) + column.offset;
  if (column.type == ExpressionType::stack) {
    usdt_row_stack key{};
    std::memcpy(&key, at, sizeof(key));
    return stacks.of(key, *column.field);
  }
  if (column.form == KeyForm::fingerprint) return expr::Fingerprint::key_of(at);
  const bool of_site = column.field && expr::is_site_word(*column.field);
  if (column.field && expr::is_context_word(*column.field))
    return TableText{expr::context_digits(*column.field, {at, expr::kContextBytes}), false};
  if (column.type == ExpressionType::text && !of_site) return text_of(at, column);
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  if (of_site) {
    const PlannedSite& site = plan.sites[Index<PlannedSite>(static_cast<std::uint32_t>(bits))];
    if (*column.field == HitField::probe) return static_cast<std::int64_t>(site.probe.value);
    if (*column.field == HitField::provider) return TableText{plan.probes[site.probe].provider};
    if (*column.field == HitField::name) return TableText{plan.probes[site.probe].name};
    if (*column.field == HitField::ip) return pc_of(plan, site).value_or(VirtAddr()).value;
  }
  if (expr::is_real(column.type)) return TableReal{expr::real_of(column.type, bits)};
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
  constexpr Int128 piece = Int128{1} << USDT_TALLY_BITS;
  return (high * piece + tally.middle) * piece + tally.low;
}

/// Pieces of the exact sum of reals behind each tally; 0: there is none.
std::uint32_t sum_pieces(const PlannedTable& table) {
  if (!table.real_sums) return 0;
  return *table.value == ExpressionType::real32 ? USDT_SUM_PIECES32 : USDT_SUM_PIECES64;
}

/// A tally with what is behind it, as the kernel has it.
using TallyWords = std::vector<std::uint64_t>;
TallyWords blank_tally(const PlannedTable& table) {
  const std::uint32_t pieces = sum_pieces(table);
  return TallyWords(sizeof(usdt_tally) / sizeof(std::uint64_t) + (pieces > 0 ? pieces + USDT_SUM_INFINITIES : 0));
}

RealSum real_sum_of(const TallyWords& words, const PlannedTable& table) {
  const std::uint32_t pieces = sum_pieces(table);
  RealSum sum;
  if (pieces == 0) return sum;
  const int lowest = *table.value == ExpressionType::real32 ? -149 : -1074;  // 2^that is the smallest real above 0
  const std::uint64_t* piece = words.data() + sizeof(usdt_tally) / sizeof(std::uint64_t);
  for (std::uint32_t i = 0; i < pieces; ++i)
    sum.add(static_cast<std::int64_t>(piece[i]), lowest + static_cast<int>(i) * USDT_SUM_BITS);
  for (const bool negative : {false, true})
    if (piece[pieces + (negative ? 1 : 0)] != 0) sum.add_infinity(negative);
  return sum;
}

TableRow told_by(const TallyWords& words, const PlannedTable& table, std::uint64_t bias) {
  usdt_tally tally{};
  std::memcpy(&tally, words.data(), sizeof(tally));
  const bool of_reals = table.value && expr::is_real(*table.value);
  return {.keys = {},
          .count = tally.count,
          .sum = of_reals ? Int128{0} : sum_of(tally, bias),
          .minimum = number_of(tally.minimum, bias),
          .maximum = number_of(tally.maximum, bias),
          .real_sum = real_sum_of(words, table)};
}

std::uint64_t bias_of(const PlannedTable& table) {
  const bool is_signed = !table.value || *table.value == ExpressionType::signed_integer;
  return is_signed ? 0 : kTopBit;  // reals come as numbers that order them
}

/// As many parts as there are processors, or nearly; of large rows fewer.
std::uint32_t parts_of_rows(const PlannedTable& table) {
  constexpr long most_of_large = 4;
  const long most = table.real_sums ? most_of_large : kMostParts;
  const long processors = std::clamp(::sysconf(_SC_NPROCESSORS_CONF), 1L, most);
  return std::bit_ceil(static_cast<std::uint32_t>(processors));
}

/// Makes room in rows for their sums of reals, and in the blank row that new ones are made of.
Result<void> size_sums(BpfObject& object, const PlannedTable& table) {
  const auto size = static_cast<std::uint32_t>(blank_tally(table).size() * sizeof(std::uint64_t));
  TRY(object.set_value_size(kRowsMap, size));
  return object.set_value_size(kBlankMap, size);
}

Result<void> size_stacks(BpfObject& object) {
  for (const char* map : kStackMaps) {
    TRY(object.set_max_entries(map, kStacks));
    TRY(object.set_value_size(map, stack_depth() * static_cast<std::uint32_t>(sizeof(__u64))));
  }
  return {};
}

/// Reads rows, each of which is in several parts.
class RowReader {
 public:
  RowReader(const AttachPlan& plan, const KeptStacks& kept) : plan_(plan), stacks_(plan, kept) {}

  Result<void> open(const LoadedObject& object) {
    auto map = TRY(object.map_fd(kRowsMap));
    map_ = map;
    return has_stacks(*plan_.table) ? stacks_.open(object) : Result<void>();
  }

  /// Returns the keys that the map has by now. Nobody else takes rows out, so that each is met once.
  [[nodiscard]] std::vector<usdt_row> keys() const {
    std::vector<usdt_row> all;
    usdt_row next{};
    while (bpf_map_get_next_key(map_, all.empty() ? nullptr : &all.back(), &next) == 0) all.push_back(next);
    return all;
  }

  Result<void> add(const usdt_row& row) {
    if (bpf_map_lookup_elem(map_, &row, tally_.data()) != 0)
      return fail(os_failure(ErrorKind::io, "read a row of the table", errno));
    const TableRow told = told_by(tally_, *plan_.table, bias_);
    if (told.count == 0) return {};  // its first hit is being added
    std::vector<TableKey> keys;
    for (const TableColumn& column : plan_.table->keys) keys.push_back(key_of(column, row, plan_, stacks_));
    TableRow& whole = rows_[keys];
    whole.keys = std::move(keys);
    whole.add(told);
    return {};
  }
  void remove(const usdt_row& row) const { static_cast<void>(bpf_map_delete_elem(map_, &row)); }
  [[nodiscard]] std::vector<std::uint64_t> addresses(std::int32_t number) const { return stacks_.known(number); }

  std::vector<TableRow> take() && {
    std::vector<TableRow> all;
    for (auto& [keys, whole] : rows_) all.push_back(std::move(whole));
    return all;
  }

 private:
  const AttachPlan& plan_;
  StackReader stacks_;
  int map_ = -1;
  std::uint64_t bias_ = bias_of(*plan_.table);
  TallyWords tally_ = blank_tally(*plan_.table);
  std::map<std::vector<TableKey>, TableRow> rows_;
};

}  // namespace

bool has_stacks(const PlannedTable& table) {
  return std::ranges::find(table.keys, ExpressionType::stack, &TableColumn::type) != table.keys.end();
}

usdt_table_constants describe_rows(const PlannedTable& table) {
  usdt_table_constants constants{};
  constants.value_bias = bias_of(table);
  constants.part_mask = parts_of_rows(table) - 1;
  constants.sum_pieces = static_cast<__u32>(sum_pieces(table));
  for (const TableColumn& column : table.keys) {
    const auto behind = static_cast<__u32>(column.offset + 1);
    if (column.field == HitField::ustack) constants.user_stack = behind;
    if (column.field == HitField::kstack) constants.kernel_stack = behind;
  }
  return constants;
}

Result<void> size_rows(BpfObject& object, const PlannedTable& table) {
  const std::uint32_t parts = parts_of_rows(table);
  const std::uint32_t rows = std::clamp(table.max_rows, 1u, kMostEntries / parts);
  if (has_stacks(table)) {
    TRY(size_stacks(object));
  }
  if (table.real_sums) {
    TRY(size_sums(object, table));
  }
  TRY(object.set_max_entries(kRowsMap, rows * parts));
  TRY(object.set_max_entries(kKeysMap, rows));
  TRY(object.set_key_size(kKeysMap, key_size(table)));
  return object.set_key_size(kRowsMap, key_size(table));
}

Result<void> fill_blank_row(const LoadedObject& object, const PlannedTable& table) {
  if (!table.real_sums) return {};
  auto map = TRY(object.map_fd(kBlankMap));
  TallyWords words = blank_tally(table);
  const usdt_tally none{
      .count = 0, .low = 0, .middle = 0, .high = 0, .minimum = INT64_MAX, .maximum = kTopBit};  // with signs
  std::memcpy(words.data(), &none, sizeof(none));
  const std::uint32_t first = 0;
  if (bpf_map_update_elem(map, &first, words.data(), BPF_ANY) != 0)
    return fail(os_failure(ErrorKind::io, "fill the blank row of a table", errno));
  return {};
}

std::vector<const char*> maps_of_rows(const PlannedTable& table) {
  std::vector<const char*> maps{kRowsMap, kKeysMap};
  if (table.real_sums) maps.push_back(kBlankMap);
  if (has_stacks(table)) maps.insert(maps.end(), std::begin(kStackMaps), std::end(kStackMaps));
  return maps;
}

Result<std::vector<TableRow>> read_rows(const LoadedObject& object, const AttachPlan& plan, const KeptStacks& kept) {
  RowReader reader(plan, kept);
  TRY(reader.open(object));
  for (const usdt_row& row : reader.keys()) TRY(reader.add(row));
  return std::move(reader).take();
}

namespace {

/// The stacks of a row's process, or of the kernel, by their numbers.
std::vector<usdt_row_stack> stacks_of(const PlannedTable& table, const usdt_row& row, HitField field) {
  std::vector<usdt_row_stack> found;
  for (const TableColumn& column : table.keys) {
    if (column.field != field) continue;
    std::memcpy(&found.emplace_back(), reinterpret_cast<const char*>(row.key) + column.offset, sizeof(usdt_row_stack));
  }
  return found;
}

/// Waits until every program that runs now has ended. False: the kernel does not offer it.
bool wait_for_programs() { return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0; }

/// Takes stacks out of the kernel's maps that were those of rows which are gone.
class StackRemover {
 public:
  StackRemover(const LoadedObject& object, const AttachPlan& plan, KeptStacks& kept)
      : object_(object), plan_(plan), kept_(kept) {}

  void gone(const usdt_row& row) {
    for (const usdt_row_stack& stack : stacks_of(*plan_.table, row, HitField::ustack))
      if (stack.number >= 0) numbers_.insert(stack.number);
  }
  /// `reader`: of what rows there are. A program that runs meanwhile may have taken the number of one for the stack of
  /// another process, with the same addresses, and make a row of it.
  void run(const RowReader& reader) {
    for (const usdt_row& row : reader.keys()) spare(row);
    std::map<std::int32_t, std::vector<std::uint64_t>> removed;
    for (const std::int32_t number : numbers_) {
      auto addresses = reader.addresses(number);
      const std::uint32_t slot = static_cast<std::uint32_t>(number) & ~static_cast<std::uint32_t>(USDT_MORE_STACKS);
      const auto map = object_.map_fd(kStackMaps[(number & USDT_MORE_STACKS) != 0 ? 1 : 0]);
      if (map && bpf_map_delete_elem(*map, &slot) == 0) removed[number] = std::move(addresses);
    }
    if (removed.empty() || !wait_for_programs()) return;
    for (const usdt_row& row : reader.keys())
      for (const usdt_row_stack& stack : stacks_of(*plan_.table, row, HitField::ustack))
        if (const auto found = removed.find(stack.number); found != removed.end())
          kept_.try_emplace({stack.number, stack.pid}, found->second);
  }

 private:
  void spare(const usdt_row& row) {
    for (const HitField field : {HitField::ustack, HitField::kstack})
      for (const usdt_row_stack& stack : stacks_of(*plan_.table, row, field)) numbers_.erase(stack.number);
  }

  const LoadedObject& object_;
  const AttachPlan& plan_;
  KeptStacks& kept_;
  std::set<std::int32_t> numbers_;
};

}  // namespace

Result<std::vector<TableRow>> take_rows_of_ended(const LoadedObject& object, const AttachPlan& plan,
                                                 const std::function<bool(std::uint32_t pid)>& ended,
                                                 KeptStacks& kept) {
  RowReader reader(plan, kept);
  TRY(reader.open(object));
  auto keys_map = TRY(object.map_fd(kKeysMap));
  StackRemover stacks(object, plan, kept);
  std::map<std::uint32_t, bool> known;
  for (const usdt_row& row : reader.keys()) {
    const auto of_process = stacks_of(*plan.table, row, HitField::ustack);
    if (of_process.empty() || of_process.front().pid == 0) continue;
    const auto [at, fresh] = known.try_emplace(of_process.front().pid);
    if (fresh) at->second = ended(at->first);
    if (!at->second) continue;
    TRY(reader.add(row));
    stacks.gone(row);
    reader.remove(row);
    usdt_row whole = row;
    whole.part = 0;
    static_cast<void>(bpf_map_delete_elem(keys_map, &whole));  // once for all parts
    kept.erase({of_process.front().number, of_process.front().pid});
  }
  // Calls under way have stacks, too, of which no row tells yet.
  const bool calls = std::ranges::find(plan.groups, Moment::both, &AttachGroup::moment) != plan.groups.end();
  if (!calls) stacks.run(reader);
  return std::move(reader).take();
}

}  // namespace usdt::event
