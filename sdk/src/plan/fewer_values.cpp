// SPDX-License-Identifier: BSD-2-Clause
#include "plan/fewer_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "usdt/bpf/spec.h"
#include "usdt/shortened.hpp"

namespace usdt::plan {
namespace {

constexpr const char* kReason = "left out: more values than one BPF program can read";

/// The positions of the values without which argument `n` is none.
std::vector<std::size_t> needed_by(const std::vector<Arg>& args, std::size_t n) {
  const Arg& arg = args[n];
  std::vector<std::size_t> all;
  if (arg.length) all.push_back(*arg.length);
  if (arg.counts && arg.counts->first) all.push_back(*arg.counts->first);
  if (arg.element) all.push_back(arg.element->length);
  if (arg.alternative) all.push_back(arg.alternative->discriminant);
  return all;
}

/// The values of one site that are kept.
class Chosen {
 public:
  explicit Chosen(const std::vector<Arg>& args) : args_(args), kept_(args.size(), false) {
    for (std::size_t n = 0; n < args.size(); ++n)
      if (!args[n].derived) keep(n);
  }

  /// Keeps it, and what it needs.
  void keep(std::size_t n) {
    if (n >= kept_.size() || kept_[n]) return;
    kept_[n] = true;
    for (const std::size_t each : needed_by(args_, n)) keep(each);
  }

  /// Keeps half of the others that are shown, and what these need; false: there is nothing to leave out.
  bool keep_half() {
    std::vector<std::size_t> others;
    bool any = false;
    for (std::size_t n = 0; n < args_.size(); ++n) {
      if (kept_[n] || !args_[n].readable()) continue;
      any = true;
      if (!args_[n].hidden) others.push_back(n);
    }
    std::ranges::stable_sort(others, {}, [&](std::size_t n) { return depth_of(n); });
    for (std::size_t i = 0; i < others.size() / 2; ++i) keep(others[i]);
    return any;
  }

  [[nodiscard]] bool has(std::size_t n) const { return kept_[n]; }

 private:
  /// Counts the values that it is a part of, one within the other.
  [[nodiscard]] std::size_t depth_of(std::size_t n) const {
    std::size_t depth = 0;
    for (auto whole = args_[n].part_of; whole && depth < args_.size(); whole = args_[*whole].part_of) ++depth;
    return depth;
  }

  const std::vector<Arg>& args_;
  std::vector<bool> kept_;
};

class Shortening {
 public:
  Shortening(const AttachPlan& plan, const std::set<Index<EncodedSpec>>& specs) : made_(plan), specs_(specs) {}

  std::optional<AttachPlan> run() {
    std::map<Index<EncodedSpec>, std::vector<Index<PlannedSite>>> sites;
    for (const Index<PlannedSite> site : made_.sites.indices())
      if (specs_.contains(made_.sites[site].spec)) sites[made_.sites[site].spec].push_back(site);
    bool any = false;
    for (const auto& [spec, those] : sites) any |= shorten(spec, those);
    return any ? std::optional(std::move(made_)) : std::nullopt;
  }

 private:
  /// Sites of one spec have lists of arguments that are alike but for names, and questions of their own.
  bool shorten(Index<EncodedSpec> number, const std::vector<Index<PlannedSite>>& sites) {
    EncodedSpec& spec = made_.specs[number];
    Chosen chosen(made_.args[made_.sites[sites.front()].args]);
    bool keeps_texts = false;  // which a question finds by their places among all texts
    for (const Index<PlannedSite> each : sites) {
      for (const auto& question : {made_.sites[each].filter, made_.sites[each].pair}) {
        if (!question) continue;
        for (const std::uint8_t n : made_.filters[*question].args()) chosen.keep(n);
        keeps_texts |= !made_.filters[*question].kept_texts().empty();
      }
    }
    if (!chosen.keep_half()) return false;
    for (std::size_t n = 0; n < spec.args.size(); ++n) {
      if (chosen.has(n)) continue;
      spec.args[n].kind = USDT_ARG_UNREADABLE;
      if (!keeps_texts) spec.args[n].capture = USDT_CAPTURE_NONE;
    }
    std::map<Index<std::vector<Arg>>, Index<std::vector<Arg>>> lists;
    for (const Index<PlannedSite> each : sites) {
      PlannedSite& site = made_.sites[each];
      const auto [list, fresh] = lists.try_emplace(site.args, site.args);
      if (fresh) list->second = made_.args.add(shortened(made_.args[site.args], chosen));
      site.args = list->second;
    }
    return true;
  }

  static std::vector<Arg> shortened(std::vector<Arg> args, const Chosen& chosen) {
    for (std::size_t n = 0; n < args.size(); ++n) {
      if (chosen.has(n) || !args[n].readable()) continue;
      args[n].location = Unreadable{.reason = kReason};
      args[n].steps.clear();
    }
    return args;
  }

  AttachPlan made_;
  const std::set<Index<EncodedSpec>>& specs_;
};

}  // namespace

std::optional<AttachPlan> with_fewer_values(const AttachPlan& plan, const std::set<Index<EncodedSpec>>& specs) {
  if (plan.spans || specs.empty()) return std::nullopt;
  return Shortening(plan, specs).run();
}

}  // namespace usdt::plan

namespace usdt {
inline namespace v1 {

std::vector<SkippedSite> shortened_sites(const AttachPlan& plan) {
  std::vector<SkippedSite> all;
  for (const PlannedSite& site : plan.sites) {
    const std::vector<Arg>& args = plan.args[site.args];
    const auto left_out = std::ranges::count(args, plan::kReason, &Arg::why_unreadable);
    if (left_out == 0) continue;
    const auto* place = std::get_if<FilePlace>(&site.point);
    all.push_back({.probe = site.probe,
                   .pc = place ? std::optional(place->pc) : std::nullopt,
                   .reason = fmt::format("{} of {} values are left out, the deepest ones: they are more than one BPF "
                                         "program can read",
                                         left_out, left_out + std::ranges::count_if(args, &Arg::readable))});
  }
  return all;
}

}  // namespace v1
}  // namespace usdt
