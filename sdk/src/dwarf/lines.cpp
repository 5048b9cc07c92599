// SPDX-License-Identifier: BSD-2-Clause
// Addresses of source lines.
#include "dwarf/lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/near_text.hpp"
#include "dwarf/debug_state.hpp"
#include "dwarf/die.hpp"
#include "dwarf/line_table.hpp"

namespace usdt::dwarf {
namespace {

/// `path` is `suffix`, or ends in it after a '/'.
bool ends_in(std::string_view path, std::string_view suffix) {
  if (!path.ends_with(suffix)) return false;
  return path.size() == suffix.size() || suffix.starts_with('/') || path[path.size() - suffix.size() - 1] == '/';
}

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

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
  /// code_walk.hpp) is that one's: rows from one end to the next begin where they do in its table.
  void rows(Dwarf_Lines* lines, std::size_t count) {
    bool inside = false;
    bool begins = true;
    bool is_others = false;
    for (std::size_t i = 0; i < count; ++i) {
      const LineRow row = row_of(lines, i);
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

/// "; did you mean ...?" by the last components of the source files' paths.
std::string near_files(DebugState& state, std::string_view file, const StopToken& stop) {
  NearTexts near(last_component(file));
  for_each_unit(state.files.main.dwarf.get(), state.files.split, [&](Dwarf_Die unit) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(&unit, &files, &count) != 0) return true;
    for (std::size_t i = 0; i < count; ++i)
      if (const char* name = dwarf_filesrc(files, i, nullptr, nullptr)) near.offer(last_component(name));
    return !stop.stop_requested();
  });
  return std::move(near).question();
}

LineSearch search_units(DebugState& state, std::string_view file, std::uint32_t line, const StopToken& stop) {
  LineSearch search(state.files.code, file, line);
  for_each_unit(state.files.main.dwarf.get(), state.files.split, [&](Dwarf_Die unit) {
    search.unit(unit);
    return !stop.stop_requested();
  });
  return search;
}

}  // namespace

std::optional<VirtAddr> body_of(const DebugInfo& info, const Instance& instance) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  const auto known = state.dies.find(instance.die);
  if (!known || instance.inlined) return std::nullopt;
  return function_lines(known->die).body();
}

std::optional<std::uint32_t> next_line_with_code(const DebugInfo& info, std::string_view file, std::uint32_t line,
                                                 const StopToken& stop) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  return search_units(state, file, line, stop).next_line();
}

Result<std::vector<VirtAddr>> addresses_of_line(const DebugInfo& info, std::string_view file, std::uint32_t line,
                                                const StopToken& stop) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  LineSearch search = search_units(state, file, line, stop);
  if (stop.stop_requested())
    return fail(ErrorKind::stopped, fmt::format("stopped while reading line tables of {}", info.path().string()));
  if (!search.file_known())
    return fail(ErrorKind::not_found, fmt::format("no source file of {} is called '{}'{}", info.path().string(), file,
                                                  near_files(state, file, stop)));
  return std::move(search).take();
}

}  // namespace usdt::dwarf
