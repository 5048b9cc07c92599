// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/select.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <set>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "find/find_functions.hpp"
#include "find/moved_code.hpp"
#include "kernel/selection.hpp"
#include "parsers/quote.hpp"
#include "sys/descriptor_room.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Patterns = std::vector<PointPattern>;

/// Providers of the searched files, for people who mistyped one.
std::vector<std::string> providers_of(const FoundFiles& found, const StopToken& stop) {
  std::set<std::string> names;
  for (const FoundFile& each : found.files) {
    if (stop.stop_requested()) break;
    auto file = find_probes(each.target, {}, {.stop = stop});
    if (!file) continue;
    for (const Site& site : file->sites) names.insert(site.provider);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> texts_of(const Patterns& patterns) {
  std::vector<std::string> texts;
  for (const PointPattern& pattern : patterns) texts.push_back(to_string(pattern));
  return texts;
}

/// "./server:handle" and "libc.so.6:malloc" have what is a file in the place of a provider: what may be meant.
std::string hint_for_files(const Patterns& patterns) {
  for (const PointPattern& pattern : patterns) {
    const auto* probe = std::get_if<ProbePattern>(&pattern);
    if (probe == nullptr || !probe->target.empty()) continue;
    if (probe->provider.find('/') == std::string::npos && probe->provider.find(".so") == std::string::npos) continue;
    return fmt::format("; a function of a file is uprobe:{0}:{1}, a probe is usdt:{0}:PROVIDER:{1}", probe->provider,
                       probe->name);
  }
  return {};
}

/// Suggests "uprobe:libc.so.6:malloc" for "usdt:libc.so.6:malloc", in case the file has no probes.
std::string hint_for_functions(const Patterns& patterns) {
  for (const PointPattern& pattern : patterns) {
    const auto* probe = std::get_if<ProbePattern>(&pattern);
    if (probe == nullptr || probe->target.empty()) continue;
    return fmt::format("; its functions are uprobe:{0}:{1}", probe->target, probe->name);
  }
  return {};
}

Error nothing_matches(const Patterns& patterns, const Selection& selection, const std::vector<std::string>& providers) {
  if (!selection.unreadable.empty() && providers.empty()) return selection.unreadable.front();
  const bool functions =
      std::ranges::all_of(patterns, [](const auto& each) { return std::holds_alternative<FunctionPattern>(each); });
  // A function may be there and its pattern refused, such as one that gives types which debug information knows.
  const auto refused = std::ranges::find(selection.unreadable, ErrorKind::invalid_argument, &Error::kind);
  if (functions && refused != selection.unreadable.end()) return *refused;
  if (functions)
    return {ErrorKind::not_found, fmt::format("no function matches {} in {}", fmt::join(texts_of(patterns), ", "),
                                              fmt::join(selection.looked, ", "))};
  std::vector<std::string> names;
  for (const PointPattern& pattern : patterns) {
    const auto* probe = std::get_if<ProbePattern>(&pattern);
    names.push_back(probe ? fmt::format("{}:{}", probe->provider, probe->name) : to_string(pattern));
  }
  const std::string there = providers.empty() ? "there are no USDT probes in it" + hint_for_functions(patterns)
                                              : fmt::format("there {} {}; usdt-list shows what there is",
                                                            providers.size() == 1 ? "is provider" : "are providers",
                                                            fmt::join(providers, ", "));
  return {ErrorKind::not_found, fmt::format("no probe matches {} in {}: {}{}", fmt::join(names, ", "),
                                            fmt::join(selection.looked, ", "), there, hint_for_files(patterns))};
}

bool ask_servers(const Patterns& patterns) {
  return std::ranges::any_of(patterns, [](const PointPattern& each) {
    const auto* function = std::get_if<FunctionPattern>(&each);
    return function != nullptr && function->debuginfod;
  });
}

/// Adds why a file may lack what was looked for: its debug information was refused, or is elsewhere.
void tell_why_not(const ProbeFile& file, const Patterns& patterns, std::set<std::string>& why) {
  constexpr std::size_t most = 4;
  if (why.size() >= most) return;
  if (!file.refused.empty())
    why.insert("functions may be missing: " + file.refused);
  else if (!file.no_types.empty() && ask_servers(patterns))
    why.insert(file.no_types);
}

tl::unexpected<Error> stopped() { return fail(ErrorKind::stopped, "probes were not looked for to the end"); }

std::pair<Patterns, std::vector<KernelPattern>> split(const Patterns& patterns) {
  std::pair<Patterns, std::vector<KernelPattern>> out;
  for (const PointPattern& pattern : patterns) {
    const auto* kernel = std::get_if<KernelPattern>(&pattern);
    kernel ? out.second.push_back(*kernel) : out.first.push_back(pattern);
  }
  return out;
}

/// The files that processes have mapped, and those that a program will map.
std::vector<TargetFile> files_of(const std::vector<pid_t>& pids, const std::optional<std::filesystem::path>& program) {
  std::vector<TargetFile> all;
  const auto take = [&all](Result<std::vector<TargetFile>> files) {
    if (files) std::ranges::move(*files, std::back_inserter(all));
  };
  for (const pid_t pid : pids) take(files_of_process(pid));
  if (program) take(files_of_program(*program));
  return all;
}

Result<void> select_in_files(const Patterns& patterns, const SearchScope& scope, Selection& selection) {
  FoundFiles found = find_files(patterns, scope);
  selection.unmapped = std::move(found.unmapped);
  if (!found.errors.empty()) return fail(std::move(found.errors.front()));
  if (!found.nowhere.empty()) return fail(ErrorKind::not_found, fmt::format("no ELF file in '{}'", found.nowhere[0]));
  constexpr std::size_t spare = 256;
  sys::make_room_for(found.files.size() + spare);  // those with what is meant stay open
  std::set<std::string> not_told;
  const find::FilesBeside beside = [pids = scope.pids, program = scope.program] { return files_of(pids, program); };
  for (const FoundFile& each : found.files) {
    if (scope.stop.stop_requested()) return stopped();
    auto file = find::find_probes(each.target, each.patterns, beside, {.stop = scope.stop});
    if (file && file->functions.empty()) tell_why_not(*file, each.patterns, not_told);
    if (!file)
      selection.unreadable.push_back(std::move(file.error()));
    else if (!file->sites.empty() || !file->functions.empty())
      selection.files.push_back(std::move(*file));
  }
  selection.looked = std::move(found.looked);
  if (!selection.files.empty()) {
    find::warn_of_moved_code(scope.pids, scope.stop, selection);
    selection.may_be_missing.assign(not_told.begin(), not_told.end());
    return {};
  }
  Error nothing = nothing_matches(patterns, selection, providers_of(found, scope.stop));
  if (nothing.kind == ErrorKind::invalid_argument) return fail(std::move(nothing));
  for (const std::string& why : not_told) nothing.message += "; " + why;
  for (const std::string& hint : hints_for(patterns, found, scope.stop)) nothing.message += "; " + hint;
  if (scope.stop.stop_requested()) return stopped();
  return fail(std::move(nothing));
}

}  // namespace

std::string probe_name(const TargetFile& file, std::string_view provider, std::string_view name) {
  return fmt::format("usdt:{}:{}:{}", quote_target(file.access.string()), quote_name(provider), quote_name(name));
}

std::string function_name(const TargetFile& file, Moment moment, std::string_view name, std::uint64_t distance) {
  const std::size_t colon = name.rfind(':');
  if (name.starts_with('@') && colon != name.npos)  // line_text()
    return fmt::format("{}:{}:@{}{}", function_prefix(moment), quote_target(file.access.string()),
                       quote_name(name.substr(1, colon - 1)), name.substr(colon));
  const std::string offset = distance == 0 ? "" : offset_text(distance);
  if (name.ends_with(offset)) name.remove_suffix(offset.size());  // a recording may have any name
  return fmt::format("{}:{}:{}{}", function_prefix(moment), quote_target(file.access.string()), quote_function(name),
                     offset);
}

Result<Selection> select(const std::vector<PointPattern>& patterns, const SearchScope& scope) try {
  if (patterns.empty()) return fail(ErrorKind::invalid_argument, "no patterns of probes: write PROVIDER:NAME, or *:*");
  const auto [of_files, of_kernel] = split(patterns);
  Selection selection;
  if (!of_files.empty()) {
    TRY(select_in_files(of_files, scope, selection));
  }
  if (scope.stop.stop_requested()) return stopped();
  if (of_kernel.empty()) return selection;
  auto kernel = TRY(kernel::select_from({}, of_kernel, scope.skip_unknown));
  selection.kernel = std::move(kernel);
  return selection;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

}  // namespace v1
}  // namespace usdt
