// SPDX-License-Identifier: BSD-2-Clause
#include "find/moved_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "find/some_of.hpp"

namespace usdt::find {
namespace {

constexpr std::size_t kMostAsked = 64;

/// Names what is mapped at an address where the file's code should be.
std::string what_is_at(const LoadedCode& code, ProcessAddr address) {
  const proc::MappedCode* there = code.at(address);
  if (there == nullptr) return "nothing that could run";
  return there->mapping.inode == 0 ? "anonymous memory" : there->mapping.path;
}

/// The places of the points of a file that programs can be attached to.
std::vector<CodePlace> places_of(const ProbeFile& file) {
  std::vector<CodePlace> all;
  for (const FunctionPoint& point : file.functions)
    if (point.refused.empty() && point.offset) all.push_back({*point.offset, point.pc, point.name});
  for (const Site& site : file.sites)
    if (site.offset) all.push_back({*site.offset, site.pc, fmt::format("{}:{}", site.provider, site.name)});
  return all;
}

}  // namespace

std::string moved_text(const LoadedCode& code, const TargetFile& target, const ElfFile& elf,
                       const std::vector<CodePlace>& places) {
  const auto loaded = LoadedFile::of(code, target, elf::Inside::of(elf)->image);
  if (!loaded) return {};
  std::set<std::string> names;
  std::string there;
  for (const CodePlace& place : places) {
    if (loaded->has(place.offset)) continue;
    const ProcessAddr address = loaded->in_process(place.pc);
    if (names.insert(place.name).second && there.empty())
      there = fmt::format("{} at {:#x}", what_is_at(code, address), address.value);
  }
  if (names.empty()) return {};
  const auto [shown, others] = first_ones({names.begin(), names.end()}, ", ");
  return fmt::format(
      "no hits of {}{} come from process {}: where the file's code was mapped is {}, such as text that was moved to "
      "huge pages; breakpoints are in the file's pages",
      shown, others == 0 ? "" : fmt::format(" and {} others", others), code.pid(), there);
}

void warn_of_moved_code(const std::vector<pid_t>& pids, const StopToken& stop, Selection& selection) {
  for (std::size_t i = 0; i < std::min(pids.size(), kMostAsked) && !stop.stop_requested(); ++i) {
    const auto code = LoadedCode::of(pids[i]);
    if (!code) continue;
    for (ProbeFile& file : selection.files) {
      if (stop.stop_requested()) return;
      if (std::string text = moved_text(*code, file.target, *file.elf, places_of(file)); !text.empty())
        file.warnings.push_back({{}, std::move(text)});
    }
  }
}

}  // namespace usdt::find
