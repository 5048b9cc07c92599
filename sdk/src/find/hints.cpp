// SPDX-License-Identifier: BSD-2-Clause
// hints_for: nothing matched, but something may have been meant.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/near_text.hpp"
#include "elf/functions.hpp"
#include "find/find_functions.hpp"
#include "usdt/select.hpp"

namespace usdt {
inline namespace v1 {
namespace {

constexpr std::size_t kSuggestions = 3;
constexpr unsigned kFar = 99;

/// '-', '_' and '__' are one character: sources write gc__start, DTrace's scripts gc-start for the same probe.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool bar = c == '-' || c == '_';
    if (!bar)
      out += c;
    else if (!out.ends_with('_'))
      out += '_';
  }
  return out;
}

/// How far a name is from the part of a pattern; a glob that does not match it is too far.
unsigned distance(const std::string& part, const std::string& name) {
  if (glob_match(part, name)) return 0;
  if (has_glob(part)) return glob_match(plain(part), plain(name)) ? 1 : kFar;
  const std::string wanted = plain(part);
  const unsigned most = likely_mistakes(wanted);
  const unsigned changes = typing_distance(wanted, plain(name), most);
  return changes > most ? kFar : changes + 1;
}

class Hints {
 public:
  Hints(const std::vector<PointPattern>& patterns, const FoundFiles& found, const StopToken& stop)
      : patterns_(patterns), found_(found), stop_(stop) {}

  std::vector<std::string> run() && {
    for (const FoundFile& each : found_.files) {
      if (stop_.stop_requested()) break;
      look_into(each);
    }
    std::vector<std::string> out;
    // What may have been meant comes before why it may not be known.
    if (std::string near = nearest(near_); !near.empty()) out.push_back(std::move(near));
    if (std::string near = nearest(near_functions_); !near.empty()) out.push_back(std::move(near));
    if (near_functions_.empty()) add_stripped();
    out.insert(out.end(), of_functions_.begin(), of_functions_.end());
    if (!out.empty()) return out;
    if (!any_probe_) add_libraries(out);
    return out;
  }

 private:
  void look_into(const FoundFile& each) {
    const auto file = find_probes(each.target, {}, {.stop = stop_});
    if (!file) return;
    look_for_functions(each, *file->elf);
    any_probe_ |= !file->sites.empty();
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (const Site& site : file->sites) {
      if (!seen.emplace(site.provider, site.name).second) continue;
      for (const PointPattern& each_pattern : patterns_) {
        const auto* pattern = std::get_if<ProbePattern>(&each_pattern);
        if (!pattern) continue;
        const unsigned far = distance(pattern->provider, site.provider) + distance(pattern->name, site.name);
        if (far > 0 && far < kFar) near_.emplace(far, probe_name(each.target, site.provider, site.name));
      }
    }
  }

  void look_for_functions(const FoundFile& found, const ElfFile& file) {
    for (const PointPattern& each : patterns_) {
      const auto* pattern = std::get_if<FunctionPattern>(&each);
      if (!pattern) continue;
      if (!pattern->source_file.empty()) {
        add_reason(find::why_no_line(file, *pattern, stop_));
        continue;
      }
      elf::FunctionHints hints = elf::hints_for_function(file, elf::FunctionName(pattern->name), stop_);
      for (std::string& name : hints.near) {
        const bool is_part = name.find(pattern->name) != std::string::npos;
        const unsigned far = is_part ? 0 : typing_distance(pattern->name, name, kFar);
        near_functions_.emplace(far, std::move(name));
      }
      if (!pattern->target.empty())
        add_reason(std::move(hints.stripped));
      else if (!hints.stripped.empty())
        stripped_.emplace(found.target.path.string(), std::move(hints.stripped));
    }
  }

  /// Most libraries of a process are stripped, and are not where its own functions are looked for.
  void add_stripped() {
    if (stripped_.size() == 1) return add_reason(stripped_.begin()->second);
    if (stripped_.empty()) return;
    add_reason(
        fmt::format("{} of these files are stripped, {} among them: of each only the functions that it exports "
                    "are known",
                    stripped_.size(), stripped_.begin()->first));
  }

  void add_reason(std::string reason) {
    constexpr std::size_t most = 6;
    if (!reason.empty() && of_functions_.size() < most) of_functions_.insert(std::move(reason));
  }

  static std::string nearest(const std::set<std::pair<unsigned, std::string>>& near) {
    std::vector<std::string> names;
    for (const auto& [far, name] : near) {
      if (names.size() < kSuggestions && far == near.begin()->first) names.push_back(name);
    }
    return names.empty() ? std::string() : fmt::format("did you mean {}?", fmt::join(names, ", "));
  }

  /// A program may have none while the library that does its work has many: ruby and libruby, java and libjvm.
  void add_libraries(std::vector<std::string>& out) const {
    constexpr std::size_t most_programs = 5;
    if (found_.files.size() > most_programs) return;
    for (const FoundFile& each : found_.files) {
      if (!each.named || stop_.stop_requested()) continue;
      const auto files = files_of_program(each.target.access);
      if (!files) continue;
      for (const TargetFile& library : *files) add_library(each.target, library, out);
    }
  }

  void add_library(const TargetFile& program, const TargetFile& library, std::vector<std::string>& out) const {
    const auto file = find_probes(library, {}, {.stop = stop_});
    // The loader and the C library have probes of their own in every program: nobody looks for them there.
    if (!file || file->sites.empty() || library.path == program.path) return;
    std::set<std::string_view> providers;
    std::set<std::pair<std::string_view, std::string_view>> probes;
    for (const Site& site : file->sites) {
      providers.insert(site.provider);
      probes.emplace(site.provider, site.name);
    }
    if (providers.contains("rtld") || providers.contains("libc") || providers.contains("libm")) return;
    out.push_back(fmt::format("{}, which {} loads, has {} {} of {} {}", library.path.string(),
                              program.path.filename().string(), probes.size(), probes.size() == 1 ? "probe" : "probes",
                              providers.size() == 1 ? "provider" : "providers", fmt::join(providers, ", ")));
  }

  const std::vector<PointPattern>& patterns_;
  const FoundFiles& found_;
  const StopToken& stop_;
  bool any_probe_ = false;
  std::set<std::string> of_functions_;
  std::map<std::string, std::string> stripped_;                ///< files that nobody named, and what is said of them
  std::set<std::pair<unsigned, std::string>> near_;            ///< probes, by how far their names are
  std::set<std::pair<unsigned, std::string>> near_functions_;  ///< likewise
};

}  // namespace

std::vector<std::string> hints_for(const std::vector<PointPattern>& patterns, const FoundFiles& found,
                                   const StopToken& stop) {
  return Hints(patterns, found, stop).run();
}

}  // namespace v1
}  // namespace usdt
