// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/copies.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "dwarf/debug_state.hpp"
#include "dwarf/die.hpp"
#include "dwarf/line_table.hpp"

namespace usdt::dwarf {
namespace {

/// Statements of a function in one of its inlined copies, by the addresses at which they begin.
class Statements {
 public:
  Statements(const FunctionInfo& function, const Instance& instance) : function_(function), instance_(instance) {}

  /// An empty range is where GCC has a statement that the instructions of the next one belong to.
  void range(Dwarf_Lines* lines, std::size_t count, Dwarf_Addr begin, Dwarf_Addr end) {
    end = std::max(end, begin + 1);
    ++ranges_;
    for (std::size_t i = first_row(lines, count, begin); i < count; ++i) {
      const LineRow row = row_of(lines, i);
      if (row.address >= end || row.end) return;
      if (is_ours(row)) rows_.push_back({row.address, row.line, column_of(lines, i), ranges_});
    }
  }

  /// Whether the first one begins at several addresses; or another one in so many ranges as no scheduling of one copy's
  /// instructions makes of it, as where what comes first was taken out of an unrolled loop.
  [[nodiscard]] bool are_repeated() const {
    constexpr std::size_t of_unrolled_loop = 3;
    const auto first =
        std::ranges::find_if(rows_, [this](const Begun& each) { return each.address >= instance_.pc.value; });
    std::map<std::pair<int, int>, std::set<unsigned>> ranges_of;
    for (const Begun& each : rows_) {
      auto& ranges = ranges_of[{each.line, each.column}];
      ranges.insert(each.range);
      const bool is_first = first != rows_.end() && each.line == first->line && each.column == first->column;
      if ((is_first && each.address != first->address) || ranges.size() >= of_unrolled_loop) return true;
    }
    return false;
  }

 private:
  struct Begun {
    std::uint64_t address;
    int line;
    int column;
    unsigned range;
  };

  /// Whether a row is of the function itself, as far as lines show: functions inlined into it are declared before it.
  [[nodiscard]] bool is_ours(const LineRow& row) const {
    if (!row.statement || row.file == nullptr || row.file != function_.declared.file) return false;
    const auto line = static_cast<std::uint32_t>(std::max(row.line, 0));
    return line >= function_.declared.line && line != instance_.where_called.line;
  }

  static int column_of(Dwarf_Lines* lines, std::size_t index) {
    int column = 0;
    dwarf_linecol(dwarf_onesrcline(lines, index), &column);
    return column;
  }

  const FunctionInfo& function_;
  const Instance& instance_;
  unsigned ranges_ = 0;
  std::vector<Begun> rows_;
};

}  // namespace

bool is_repeated(const DebugInfo& info, const FunctionInfo& function, const Instance& instance) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  const auto known = state.dies.find(instance.die);
  Dwarf_Die unit;
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (!known || !instance.inlined) return false;
  Dwarf_Die die = known->die;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr || dwarf_getsrclines(&unit, &lines, &count) != 0)
    return false;
  Statements statements(function, instance);
  for_each_range(die, state.shared_reads, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    statements.range(lines, count, begin, end);
    return true;
  });
  return statements.are_repeated();
}

InstanceCode code_of(const DebugInfo& info, const Instance& instance) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  const auto known = state.dies.find(instance.die);
  if (!known) return {};
  const auto ranges_of = [&state](Dwarf_Die die) {
    std::vector<elf::CodeRange> ranges;
    for_each_range(die, state.shared_reads, [&](Dwarf_Addr begin, Dwarf_Addr end) {
      if (begin < end) ranges.push_back({VirtAddr(begin), VirtAddr(end)});
      return true;
    });
    return ranges;
  };
  return {.entry = state.entry_of(known->function).value_or(VirtAddr()),
          .function = ranges_of(known->function),
          .copy = ranges_of(known->die)};
}

}  // namespace usdt::dwarf
