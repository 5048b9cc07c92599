// SPDX-License-Identifier: BSD-2-Clause
#include "rivals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace usdt_trace {
namespace {

/// Returns the mapped files of the traced processes, and the files that a command would map.
std::vector<usdt::TargetFile> files_of(const Flags& flags) {
  std::vector<usdt::TargetFile> all;
  const auto add = [&](usdt::Result<std::vector<usdt::TargetFile>> files) {
    if (files) std::ranges::move(*files, std::back_inserter(all));
  };
  for (const pid_t pid : flags.question.processes.pids) add(usdt::files_of_process(pid));
  if (flags.question.processes.command.empty()) return all;
  if (const auto program = usdt::find_program(flags.question.processes.command.front()))
    add(usdt::files_of_program(*program));
  return all;
}

/// Whether a file that is not traced has a function of that name.
bool is_rival(const usdt::TargetFile& file, const usdt::AttachPlan& plan, const usdt::FunctionPattern& function) {
  std::error_code unknown;
  const std::string name = file.path.filename().native();
  if (name.starts_with("ld-") || name.starts_with("ld.so")) return false;  // which has some for itself
  for (const usdt::PlannedFile& traced : plan.files)
    if (std::filesystem::equivalent(traced.target.access, file.access, unknown)) return false;
  usdt::FunctionPattern same = function;
  same.target = "*";
  same.inlined = false;
  const auto found = usdt::find_probes(file, {same});
  return found && !found->functions.empty();
}

bool had_no_hits(const std::string& function, const usdt::AttachPlan& plan, const usdt::SessionSummary& summary) {
  bool any = false;
  for (std::size_t i = 0; i < std::min(summary.probes.size(), plan.probes.size()); ++i) {
    const usdt::PlannedProbe& probe = plan.probes[usdt::Index<usdt::PlannedProbe>(i)];
    if (probe.name != function) continue;
    if (summary.probes[i].hits > 0) return false;
    any = true;
  }
  return any;
}

}  // namespace

std::vector<std::string> hints_at_rivals(const Flags& flags, const usdt::AttachPlan& plan,
                                         const usdt::SessionSummary& summary) {
  constexpr std::size_t most = 3;  // functions whose files are looked through
  std::vector<std::string> hints;
  std::vector<usdt::TargetFile> files;
  for (const usdt::PointPattern& pattern : flags.question.points.patterns) {
    const auto* function = std::get_if<usdt::FunctionPattern>(&pattern);
    const bool of_library = function != nullptr && function->target.find(".so") != std::string::npos &&
                            !usdt::has_glob(function->name) && !usdt::means_everything(function->target);
    if (!of_library || hints.size() == most || !had_no_hits(function->name, plan, summary)) continue;
    if (files.empty()) files = files_of(flags);
    const auto rival = std::ranges::find_if(files, [&](const auto& file) { return is_rival(file, plan, *function); });
    if (rival == files.end()) continue;
    hints.push_back(
        fmt::format("  {} of {} had no hits; {} has one, too, which comes first where that is loaded before: {}:{}:{}",
                    function->name, function->target, rival->path.filename().native(),
                    function_prefix(function->moment), rival->path.native(), function->name));
  }
  return hints;
}

}  // namespace usdt_trace
