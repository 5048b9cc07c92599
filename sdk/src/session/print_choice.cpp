// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "parsers/quote.hpp"
#include "session/option_names.hpp"
#include "usdt/print_list.hpp"

namespace usdt {
inline namespace v1 {
namespace {

Result<ProbePrint> parse_probe_print(std::string_view probe, std::string_view list, std::string_view prefix) {
  auto pattern = parse_pattern(probe);
  if (!pattern) return fail(pattern.error().within(session::name_options("--print", prefix)));
  auto items = TRY(parse_print_list(list, prefix));
  return ProbePrint{.probe = std::string(probe), .pattern = std::move(*pattern), .list = std::move(items)};
}

/// Whether the pattern's name, without its target, means the point.
bool name_means(const FunctionPattern& pattern, const PointName& point) {
  return function_prefix(pattern.moment) == point.provider && means_function(pattern, point.name);
}

bool name_means(const KernelPattern& pattern, const PointName& point) {
  if (point.file || to_string(pattern.kind) != point.provider || !glob_match(pattern.name, point.name)) return false;
  if (pattern.module.empty()) return true;
  return point.module.empty() ? pattern.module == "vmlinux" : glob_match(pattern.module, point.module);
}

/// Whether the "=" there is a part of a comparison. ">" may end the name of a function, "max<int>=arg0", and a list may
/// begin with "~": as operators they have a blank before them.
bool is_in_comparison(std::string_view word, std::size_t at) {
  const auto is = [&](std::size_t n, std::string_view which) {
    return n < word.size() && which.find(word[n]) != which.npos;
  };
  return is(at + 1, "=") || is(at - 1, "=!<") || (is(at + 1, "~") && is(at - 1, " ")) ||
         (is(at - 1, ">") && is(at - 2, " "));
}

/// Finds the sign that a list is behind: the last one. Lists have it in comparisons, in quotes and in the names of
/// numbers alone, "{0=idle}"; names of files may.
std::size_t last_equals(std::string_view word) {
  std::size_t depth = 0, found = word.npos;
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (const std::size_t quoted = quoted_length(word.substr(at)); quoted > 0) {
      at += quoted - 1;
      continue;
    }
    if (word[at] == '{') ++depth;
    if (word[at] == '}' && depth > 0) --depth;
    if (word[at] == '=' && depth == 0 && !is_in_comparison(word, at)) found = at;
  }
  return found;
}

}  // namespace

bool Prints::has_word(HitField word) const {
  return usdt::has_word(rest, word) ||
         std::ranges::any_of(for_probes, [word](const ProbePrint& print) { return usdt::has_word(print.list, word); });
}

bool Prints::has_attribute() const {
  return usdt::has_attribute(rest) ||
         std::ranges::any_of(for_probes, [](const ProbePrint& print) { return usdt::has_attribute(print.list); });
}

Result<Prints> parse_prints(const std::vector<std::string>& words, std::string_view prefix) {
  Prints prints;
  bool any_rest = false;
  for (const std::string& word : words) {
    if (const std::size_t equals = last_equals(word); equals != word.npos) {
      auto print = TRY(parse_probe_print(std::string_view(word).substr(0, equals),
                                         std::string_view(word).substr(equals + 1), prefix));
      prints.for_probes.push_back(std::move(print));
      continue;
    }
    if (std::exchange(any_rest, true))
      return fail(
          ErrorKind::invalid_argument,
          fmt::format("{0}print '{1}': a second list for all probes; {0}print 'PROBE=LIST' is for some", prefix, word));
    auto list = TRY(parse_print_list(word, prefix));
    prints.rest = std::move(list);
  }
  return prints;
}

PrintChoice::PrintChoice(const Prints& prints, const SearchScope& scope) : prints_(prints) {
  for (const ProbePrint& print : prints.for_probes) {
    std::set<Inode>& inodes = files_.emplace_back();
    const std::string* target = target_of(print.pattern);
    if (target == nullptr || means_everything(*target)) continue;
    for (const FoundFile& found : find_files({print.pattern}, scope).files) {
      struct stat st {};
      if (::stat(found.target.access.c_str(), &st) == 0) inodes.emplace(st.st_dev, st.st_ino);
    }
  }
}

bool PrintChoice::means(std::size_t list, const PointName& point) const {
  const auto& pattern = prints_.for_probes[list].pattern;
  if (const auto* kernel = std::get_if<KernelPattern>(&pattern)) return name_means(*kernel, point);
  const auto* probe = std::get_if<ProbePattern>(&pattern);
  const auto* function = std::get_if<FunctionPattern>(&pattern);
  const bool named = probe ? probe->matches(point.provider, point.name) : name_means(*function, point);
  if (!point.file || !named) return false;
  const std::string& target = *target_of(pattern);
  if (files_.empty()) return target_means(target, *point.file);
  struct stat st {};
  return means_everything(target) ||
         (::stat(point.file->access.c_str(), &st) == 0 && files_[list].contains({st.st_dev, st.st_ino}));
}

ListNumber PrintChoice::of(const PointName& point) const {
  for (std::size_t i = 0; i < prints_.for_probes.size(); ++i)
    if (means(i, point)) return static_cast<ListNumber>(i + 1);
  return 0;
}

ListNumber PrintChoice::of(const AttachPlan& plan, const PlannedProbe& probe) const {
  PointName point{.provider = probe.provider, .name = probe.name, .module = {}};
  if (probe.file) {
    point.file = &plan.files[*probe.file].target;
  } else if (const std::size_t colon = point.name.find(':'); colon != point.name.npos) {
    point.module = point.name.substr(0, colon);
    point.name.remove_prefix(colon + 1);
  }
  return of(point);
}

}  // namespace v1
}  // namespace usdt
