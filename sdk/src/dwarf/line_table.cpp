// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/line_table.hpp"

namespace usdt::dwarf {

LineRow row_of(Dwarf_Lines* lines, std::size_t index) {
  LineRow row;
  Dwarf_Line* line = dwarf_onesrcline(lines, index);
  if (line == nullptr) return row;
  Dwarf_Addr address = 0;
  dwarf_lineaddr(line, &address);
  row.address = address;
  row.file = dwarf_linesrc(line, nullptr, nullptr);
  dwarf_lineno(line, &row.line);
  dwarf_linebeginstatement(line, &row.statement);
  dwarf_lineendsequence(line, &row.end);
  return row;
}

std::size_t first_row(Dwarf_Lines* lines, std::size_t count, std::uint64_t address) {
  std::size_t first = 0;
  for (std::size_t left = count; left != 0;) {
    const std::size_t half = left / 2;
    const bool before = row_of(lines, first + half).address < address;
    first += before ? half + 1 : 0;
    left = before ? left - half - 1 : half;
  }
  return first;
}

SourceLine line_at(Dwarf_Die unit, VirtAddr pc) {
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrclines(&unit, &lines, &count) != 0) return {};
  std::size_t behind = pc.value == UINT64_MAX ? count : first_row(lines, count, pc.value + 1);
  if (behind == 0) return {};
  // The last row of an address counts; where that begins no statement, one of the same address that does.
  const LineRow last = row_of(lines, behind - 1);
  LineRow best = last;
  while (!best.statement && behind > 1) {
    const LineRow before = row_of(lines, --behind - 1);
    if (before.address != last.address || before.line == 0 || before.end) break;
    if (before.statement) best = before;
  }
  if (best.end || best.line <= 0 || best.file == nullptr) return {};
  return {.file = best.file, .line = static_cast<std::uint32_t>(best.line)};
}

FunctionLines function_lines(Dwarf_Die function) {
  FunctionLines found;
  Dwarf_Die unit;
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  Dwarf_Addr low = 0;
  Dwarf_Addr high = 0;
  if (dwarf_lowpc(&function, &low) != 0 || dwarf_highpc(&function, &high) != 0 ||
      dwarf_diecu(&function, &unit, nullptr, nullptr) == nullptr || dwarf_getsrclines(&unit, &lines, &count) != 0)
    return found;
  for (std::size_t i = first_row(lines, count, low); i < count && !found.prologue_end; ++i) {
    Dwarf_Line* line = dwarf_onesrcline(lines, i);
    bool ends = false;
    Dwarf_Addr address = 0;
    if (line == nullptr || dwarf_lineaddr(line, &address) != 0 || address >= high) break;
    if (dwarf_lineprologueend(line, &ends) == 0 && ends) found.prologue_end = VirtAddr(address);
    if (address > low && !found.second) found.second = VirtAddr(address);
  }
  return found;
}

}  // namespace usdt::dwarf
