// SPDX-License-Identifier: BSD-2-Clause
// Addresses of source lines.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/near_text.hpp"
#include "dwarf/die.hpp"
#include "dwarf/impl.hpp"

namespace usdt::dwarf {
namespace {

/// `path` is `suffix`, or ends in it after a '/'.
bool ends_in(std::string_view path, std::string_view suffix) {
  if (!path.ends_with(suffix)) return false;
  return path.size() == suffix.size() || suffix.starts_with('/') || path[path.size() - suffix.size() - 1] == '/';
}

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Rows of one unit's line table.
struct Row {
  std::uint64_t address = 0;
  const char* file = nullptr;
  int line = 0;
  bool statement = false;
  bool end = false;
};

Row row_of(Dwarf_Lines* lines, std::size_t index) {
  Row row;
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

class LineSearch {
 public:
  LineSearch(const CodeRanges& code, std::string_view file, std::uint32_t line)
      : code_(code), file_(file), line_(line) {}

  void unit(Dwarf_Die die) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(&die, &files, &count) != 0) return;
    bool named = false;
    for (std::size_t i = 0; i < count && !named; ++i) {
      const char* name = dwarf_filesrc(files, i, nullptr, nullptr);
      named = name != nullptr && ends_in(name, file_);
    }
    if (!named) return;
    file_known_ = true;
    Dwarf_Lines* lines = nullptr;
    if (dwarf_getsrclines(&die, &lines, &count) == 0) rows(lines, count);
  }

  [[nodiscard]] bool file_known() const noexcept { return file_known_; }
  [[nodiscard]] std::optional<std::uint32_t> next_line() const noexcept { return next_line_; }
  [[nodiscard]] std::vector<VirtAddr> take() && {
    std::ranges::sort(found_);
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    return std::move(found_);
  }

 private:
  /// A row begins a block of the line unless the one before it, of another address or not, is of the line too. Code
  /// without a line (0) between belongs to what is before it. What another unit has described already (Owners in
  /// find.cpp) is that one's: rows from one end to the next begin where they do in its table.
  void rows(Dwarf_Lines* lines, std::size_t count) {
    bool inside = false;
    bool begins = true;
    bool is_others = false;
    for (std::size_t i = 0; i < count; ++i) {
      const Row row = row_of(lines, i);
      if (begins) is_others = !begun_.emplace(row.address).second;
      begins = row.end;
      if (is_others) continue;
      if (row.line == 0 && !row.end) continue;
      const auto line = static_cast<std::uint32_t>(std::max(row.line, 0));
      const bool in_file = !row.end && line >= line_ && row.file != nullptr && ends_in(row.file, file_);
      const bool ours = in_file && line == line_;
      if (in_file && !ours && row.statement && line < next_line_.value_or(UINT32_MAX) &&
          code_.contains(VirtAddr(row.address)))
        next_line_ = line;
      if (!ours) {
        inside = false;
      } else if (row.statement && !inside) {
        inside = true;
        if (code_.contains(VirtAddr(row.address))) found_.emplace_back(row.address);
      }
    }
  }

  const CodeRanges& code_;
  std::string_view file_;
  std::uint32_t line_;
  bool file_known_ = false;
  std::optional<std::uint32_t> next_line_;
  std::vector<VirtAddr> found_;
  std::set<std::uint64_t> begun_;  ///< where runs of rows began
};

}  // namespace

namespace {

/// The number of the first row of `lines`, which are in the order of their addresses, at `address` or behind it.
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

}  // namespace

SourceLine line_at(Dwarf_Die unit, VirtAddr pc) {
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrclines(&unit, &lines, &count) != 0) return {};
  std::size_t behind = pc.value == UINT64_MAX ? count : first_row(lines, count, pc.value + 1);
  if (behind == 0) return {};
  // The last row of an address counts; where that begins no statement, one of the same address that does.
  const Row last = row_of(lines, behind - 1);
  Row best = last;
  while (!best.statement && behind > 1) {
    const Row before = row_of(lines, --behind - 1);
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

std::optional<VirtAddr> DebugInfo::body_of(const Instance& instance) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto known = impl_->known(instance.die);
  if (!known || instance.inlined) return std::nullopt;
  return function_lines(known->die).body();
}

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
      const Row row = row_of(lines, i);
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

  /// Of the function itself, as far as lines tell: functions inlined into it are declared before it.
  [[nodiscard]] bool is_ours(const Row& row) const {
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

bool DebugInfo::is_repeated(const FunctionInfo& function, const Instance& instance) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto known = impl_->known(instance.die);
  Dwarf_Die unit;
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (!known || !instance.inlined) return false;
  Dwarf_Die die = known->die;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr || dwarf_getsrclines(&unit, &lines, &count) != 0)
    return false;
  Statements statements(function, instance);
  for_each_range(die, impl_->shared_reads, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    statements.range(lines, count, begin, end);
    return true;
  });
  return statements.are_repeated();
}

namespace {

/// "; did you mean ...?" by the last components of the source files' paths.
std::string near_files(const DebugInfo::Impl& impl, std::string_view file, const StopToken& stop) {
  NearTexts near(last_component(file));
  for_each_unit(impl.main.dwarf.get(), impl.split, [&](Dwarf_Die unit) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(&unit, &files, &count) != 0) return true;
    for (std::size_t i = 0; i < count; ++i)
      if (const char* name = dwarf_filesrc(files, i, nullptr, nullptr)) near.offer(last_component(name));
    return !stop.stop_requested();
  });
  return std::move(near).question();
}

LineSearch search_units(const DebugInfo::Impl& impl, std::string_view file, std::uint32_t line, const StopToken& stop) {
  LineSearch search(impl.code, file, line);
  for_each_unit(impl.main.dwarf.get(), impl.split, [&](Dwarf_Die unit) {
    search.unit(unit);
    return !stop.stop_requested();
  });
  return search;
}

}  // namespace

std::optional<std::uint32_t> DebugInfo::next_line_with_code(std::string_view file, std::uint32_t line,
                                                            const StopToken& stop) const {
  const std::scoped_lock lock(impl_->mutex);
  return search_units(*impl_, file, line, stop).next_line();
}

Result<std::vector<VirtAddr>> DebugInfo::addresses_of_line(std::string_view file, std::uint32_t line,
                                                           const StopToken& stop) const {
  const std::scoped_lock lock(impl_->mutex);
  LineSearch search = search_units(*impl_, file, line, stop);
  if (stop.stop_requested())
    return fail(ErrorKind::stopped, fmt::format("stopped while reading line tables of {}", path().string()));
  if (!search.file_known())
    return fail(ErrorKind::not_found, fmt::format("no source file of {} is called '{}'{}", path().string(), file,
                                                  near_files(*impl_, file, stop)));
  return std::move(search).take();
}

}  // namespace usdt::dwarf
