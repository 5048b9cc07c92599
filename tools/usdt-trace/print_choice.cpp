// SPDX-License-Identifier: BSD-2-Clause
#include "print_choice.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "planning.hpp"

namespace usdt_trace {
namespace {

usdt::Result<ProbePrint> parse_probe_print(std::string_view probe, std::string_view list) {
  auto pattern = usdt::parse_pattern(probe);
  if (!pattern) return usdt::fail(pattern.error().within("--print"));
  auto items = parse_print_list(list);
  if (!items) return usdt::fail(items.error());
  return ProbePrint{.probe = std::string(probe), .pattern = std::move(*pattern), .list = std::move(*items)};
}

/// Whether the pattern's name, without its target, means the point.
bool means(const usdt::FunctionPattern& pattern, const usdt::PointName& point) {
  return usdt::function_prefix(pattern.moment) == point.provider && usdt::means_function(pattern, point.name);
}

bool means(const usdt::KernelPattern& pattern, const usdt::PointName& point) {
  if (point.file || to_string(pattern.kind) != point.provider || !usdt::glob_match(pattern.name, point.name))
    return false;
  if (pattern.module.empty()) return true;
  return point.module.empty() ? pattern.module == "vmlinux" : usdt::glob_match(pattern.module, point.module);
}

}  // namespace

bool Prints::name(usdt::HitField word) const {
  return names(rest, word) ||
         std::ranges::any_of(for_probes, [word](const ProbePrint& print) { return names(print.list, word); });
}

usdt::Result<Prints> parse_prints(const std::vector<std::string>& words) {
  Prints prints;
  bool any_rest = false;
  for (const std::string& word : words) {
    // Lists have none; names of files may.
    if (const std::size_t equals = word.rfind('='); equals != word.npos) {
      auto print =
          parse_probe_print(std::string_view(word).substr(0, equals), std::string_view(word).substr(equals + 1));
      if (!print) return usdt::fail(print.error());
      prints.for_probes.push_back(std::move(*print));
      continue;
    }
    if (std::exchange(any_rest, true))
      return usdt::fail(
          usdt::ErrorKind::invalid_argument,
          fmt::format("--print '{}': a second list for all probes; --print 'PROBE=LIST' is for some", word));
    auto list = parse_print_list(word);
    if (!list) return usdt::fail(list.error());
    prints.rest = std::move(*list);
  }
  return prints;
}

PrintChoice::PrintChoice(const Prints& prints, const usdt::SearchScope& scope) : prints_(prints) {
  for (const ProbePrint& print : prints.for_probes) {
    std::set<Inode>& inodes = files_.emplace_back();
    const std::string* target = target_of(print.pattern);
    if (target == nullptr || usdt::means_everything(*target)) continue;
    for (const usdt::FoundFile& found : usdt::find_files({print.pattern}, scope).files) {
      struct stat st {};
      if (::stat(found.target.access.c_str(), &st) == 0) inodes.emplace(st.st_dev, st.st_ino);
    }
  }
}

bool PrintChoice::means(std::size_t list, const usdt::PointName& point) const {
  const auto& pattern = prints_.for_probes[list].pattern;
  if (const auto* kernel = std::get_if<usdt::KernelPattern>(&pattern)) return usdt_trace::means(*kernel, point);
  const auto* probe = std::get_if<usdt::ProbePattern>(&pattern);
  const auto* function = std::get_if<usdt::FunctionPattern>(&pattern);
  const bool named = probe ? probe->matches(point.provider, point.name) : usdt_trace::means(*function, point);
  if (!point.file || !named) return false;
  const std::string& target = *target_of(pattern);
  if (files_.empty()) return usdt::target_means(target, *point.file);
  struct stat st {};
  return usdt::means_everything(target) ||
         (::stat(point.file->access.c_str(), &st) == 0 && files_[list].contains({st.st_dev, st.st_ino}));
}

ListNumber PrintChoice::of(const usdt::PointName& point) const {
  for (std::size_t i = 0; i < prints_.for_probes.size(); ++i)
    if (means(i, point)) return static_cast<ListNumber>(i + 1);
  return 0;
}

ListNumber PrintChoice::of(const usdt::AttachPlan& plan, const usdt::PlannedProbe& probe) const {
  usdt::PointName point{.provider = probe.provider, .name = probe.name, .module = {}};
  if (probe.file) {
    point.file = &plan.files[*probe.file].target;
  } else if (const std::size_t colon = point.name.find(':'); colon != point.name.npos) {
    point.module = point.name.substr(0, colon);
    point.name.remove_prefix(colon + 1);
  }
  return of(point);
}

}  // namespace usdt_trace
