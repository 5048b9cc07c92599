// SPDX-License-Identifier: BSD-2-Clause
#include "planning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

#include "notice.hpp"

namespace usdt_trace {
namespace {

void ask_for_text(const PrintItem& item, usdt::PlanOptions& options) {
  if (item.form != PrintItem::Form::text) return;
  if (item.length) {
    const usdt::ArgName text = item.arg ? usdt::ArgName(*item.arg) : usdt::ArgName(item.name);
    options.bounded_strings.push_back({text, *item.length});
    return;
  }
  if (item.arg)
    options.strings.push_back(*item.arg);
  else
    options.string_names.push_back(item.name);
  if (item.name == kReturnValue) options.string_results = true;
}

/// "(i32, u64)", of kernel functions with names: "(struct file *file, size_t count), retval ssize_t".
std::string signature(const std::vector<usdt::Arg>& args) {
  std::vector<std::string> shown;
  std::string result;
  for (const usdt::Arg& arg : args) {
    const std::string type = arg.c_type().empty() ? usdt::type_name(arg.type) : std::string(arg.c_type());
    if (arg.result)
      result = fmt::format(", {} {}", kReturnValue, type);
    else
      shown.push_back(arg.name().empty() ? type
                                         : fmt::format("{}{}{}", type, type.back() == '*' ? "" : " ", arg.name()));
  }
  return fmt::format("({}){}", fmt::join(shown, ", "), result);
}

/// "fentry:vfs_read(struct file *file, ...); ...": the first few signatures of the plan.
std::string what_there_is(const usdt::AttachPlan& plan) {
  constexpr std::size_t most = 3;
  std::vector<bool> seen(plan.args.size());
  std::vector<std::string> shown;
  bool numbers = false;
  for (const usdt::PlannedSite& site : plan.sites) {
    if (seen[site.args.value] || shown.size() == most) continue;
    seen[site.args.value] = true;
    const usdt::PlannedProbe& probe = plan.probes[site.probe];
    numbers |= probe.file.has_value();
    shown.push_back(fmt::format("{}:{}{}", probe.provider, probe.name, signature(plan.args[site.args])));
  }
  const bool more = std::count(seen.begin(), seen.end(), true) < static_cast<std::ptrdiff_t>(seen.size());
  return fmt::format("{}{}{}", fmt::join(shown, "; "), more ? "; ..." : "",
                     numbers ? "; arguments count from arg0" : "");
}

/// An argument no site has is a mistake, one that some sites lack is not.
usdt::Result<void> check_print_list(const Flags& flags, const usdt::AttachPlan& plan) {
  for (const PrintItem& item : flags.print) {
    const bool exists = std::any_of(plan.args.begin(), plan.args.end(), [&](const auto& args) {
      return position_of(item, args) && (!item.length || usdt::find_arg(args, *item.length));
    });
    if (!exists)
      return usdt::fail(usdt::ErrorKind::invalid_argument,
                        fmt::format("--print {}: no such argument: {}", item.label, what_there_is(plan)));
  }
  return {};
}

/// Where to look. Children may have loaded other files; those that end meanwhile have none.
usdt::SearchScope search_scope(const Flags& flags, const Subjects& subjects) {
  usdt::SearchScope scope;
  scope.pids = subjects.pids;
  scope.program = subjects.program;
  if (!flags.children) return scope;
  for (const pid_t pid : subjects.pids) {
    for (const pid_t child : usdt::descendants_of(pid))
      if (usdt::files_of_process(child)) scope.pids.push_back(child);
  }
  return scope;
}

usdt::Result<usdt::Selection> select_in_files(const Flags& flags, const Subjects& subjects) {
  if (flags.patterns.empty()) return usdt::Selection{};
  auto selection = usdt::select_probes(flags.patterns, search_scope(flags, subjects));
  if (!selection) return selection;
  for (const usdt::ProbeFile& file : selection->files) {
    for (const usdt::ScanWarning& warning : file.warnings)
      notice(flags, fmt::format("{}: {}", file.target.path.string(), warning.message));
  }
  return selection;
}

usdt::Result<usdt::KernelSelection> select_in_kernel(const Flags& flags) {
  if (flags.kernel_patterns.empty()) return usdt::KernelSelection{};
  auto kernel = usdt::select_kernel(flags.kernel_patterns, {flags.skip_unknown});
  if (!kernel) return kernel;
  for (const std::string& unknown : kernel->unknown) notice(flags, fmt::format("left out: {}", unknown));
  return kernel;
}

usdt::Result<usdt::PlanOptions> plan_options(const Flags& flags, const Subjects& subjects) {
  usdt::PlanOptions options;
  if (!subjects.pids.empty() && !flags.children) {
    auto processes = usdt::Processes::of(subjects.pids);
    if (!processes) return usdt::fail(processes.error());
    options.scope = std::move(*processes);
  }
  options.allow_unsafe_nop5 = flags.allow_unsafe_nop5;
  for (const PrintItem& item : flags.print) ask_for_text(item, options);
  if (!flags.kernel_patterns.empty()) {
    options.kernel_backend = flags.kernel_backend;
    options.capture_text = flags.print.empty() && !flags.count_only;
  }
  return options;
}

}  // namespace

usdt::Result<usdt::AttachPlan> plan_trace(const Flags& flags, const Subjects& subjects) {
  auto selection = select_in_files(flags, subjects);
  if (!selection) return usdt::fail(selection.error());
  auto kernel = select_in_kernel(flags);
  if (!kernel) return usdt::fail(kernel.error());
  auto options = plan_options(flags, subjects);
  if (!options) return usdt::fail(options.error());
  std::vector<usdt::KernelKind> kinds;
  for (const usdt::KernelPattern& pattern : flags.kernel_patterns) kinds.push_back(pattern.kind);
  auto plan = usdt::plan_attach(selection->files, *kernel, usdt::kernel_facts(kinds, flags.kernel_backend), *options);
  if (!plan) return plan;
  if (auto sense = check_print_list(flags, *plan); !sense) return usdt::fail(sense.error());
  return plan;
}

}  // namespace usdt_trace
