// SPDX-License-Identifier: BSD-2-Clause
#include "find/moved_code.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

#include "find/loaded_file.hpp"

namespace usdt::find {
namespace {

constexpr std::size_t most_asked = 64;
constexpr std::size_t most_names = 3;

/// What is at an address where the file's code should be.
std::string what_is_at(const LoadedCode& code, ProcessAddr address) {
  const proc::MappedCode* there = code.at(address);
  if (there == nullptr) return "nothing that could run";
  return there->mapping.inode == 0 ? "anonymous memory" : there->mapping.path;
}

void look_at(const LoadedCode& code, ProbeFile& file) {
  const auto loaded = LoadedFile::of(code, file.target, elf::Inside::of(*file.elf)->image);
  if (!loaded) return;
  std::set<std::string> names;
  std::string there;
  const auto look = [&](const std::optional<FileOffset>& offset, VirtAddr pc, const std::string& name) {
    if (!offset || loaded->has(*offset)) return;
    if (names.insert(name).second && there.empty())
      there = fmt::format("{} at {:#x}", what_is_at(code, loaded->in_process(pc)), loaded->in_process(pc).value);
  };
  for (const FunctionPoint& point : file.functions)
    if (point.refused.empty()) look(point.offset, point.pc, point.name);
  for (const Site& site : file.sites) look(site.offset, site.pc, fmt::format("{}:{}", site.provider, site.name));
  if (names.empty()) return;
  std::vector<std::string> first(names.begin(), names.end());
  const std::string others = first.size() > most_names ? fmt::format(" and {} others", first.size() - most_names) : "";
  first.resize(std::min(first.size(), most_names));
  file.warnings.push_back({{},
                           fmt::format("no hits of {}{} come from process {}: where the file's code was mapped is {}, "
                                       "such as text that was moved to huge pages; breakpoints are in the file's pages",
                                       fmt::join(first, ", "), others, code.pid(), there)});
}

}  // namespace

void warn_of_moved_code(const std::vector<pid_t>& pids, const StopToken& stop, Selection& selection) {
  for (std::size_t i = 0; i < std::min(pids.size(), most_asked) && !stop.stop_requested(); ++i) {
    const auto code = LoadedCode::of(pids[i]);
    if (!code) continue;
    for (ProbeFile& file : selection.files)
      if (!stop.stop_requested()) look_at(*code, file);
  }
}

}  // namespace usdt::find
