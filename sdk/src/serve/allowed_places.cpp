// SPDX-License-Identifier: BSD-2-Clause
#include "serve/allowed_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "usdt/features.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/select.hpp"

namespace usdt::serve {
namespace {

/// Functions of one file that are looked for, for a client: each takes a while.
constexpr std::size_t kMostFunctions = 256;

/// How a program is at a place of the file, and where: the ends of calls, the way to their returns, the place and its
/// semaphore.
using Place = std::tuple<Moment, ReturnBy, std::uint64_t, std::uint64_t>;
/// Places, with the RET instructions that go with them.
using PlacesOfFile = std::map<Place, std::vector<FileOffset>>;

/// A name as a glob that means it alone.
std::string glob_of(std::string_view name) {
  std::string glob;
  for (const char each : name) {
    if (std::string_view("*?[]\\").find(each) != std::string_view::npos) glob += '\\';
    glob += each;
  }
  return glob;
}

class PlaceFinder {
 public:
  PlaceFinder(const AttachPlan& plan, Index<PlannedFile> number, const AllowedFile& file)
      : plan_(plan), number_(number), file_(file) {}

  /// Plans the probes of the client's plan once more.
  Result<void> find() {
    std::vector<PointPattern> functions;
    bool any_probe = false;
    for (const AttachGroup& group : plan_.groups) {
      if (std::get<Index<PlannedFile>>(group.of) != number_) continue;
      for (const Index<PlannedSite> site : group.sites) {
        const PlannedProbe& probe = plan_.probes[plan_.sites[site].probe];
        if (!probe.function)
          any_probe = true;
        else
          TRY(add_function(probe, group, functions));
      }
    }
    // Where probes are, their notes say, and no debug file.
    if (any_probe) TRY(plan_again({}, {.debug_dirs = {}}));
    if (!functions.empty()) TRY(plan_again(functions, {}));
    return {};
  }

  [[nodiscard]] bool has(const AttachGroup& group, const FilePlace& place) const {
    const auto known = places_.find({group.moment, group.returns, place.offset.value, place.semaphore});
    if (known == places_.end()) return false;
    const auto is_known = [&](FileOffset ret) { return std::ranges::find(known->second, ret) != known->second.end(); };
    return std::ranges::all_of(place.rets, is_known);
  }

 private:
  Result<void> add_function(const PlannedProbe& probe, const AttachGroup& group, std::vector<PointPattern>& functions) {
    const auto refuse = [&](std::string_view what) {
      return fail(ErrorKind::not_supported,
                  fmt::format("{}: it is root's: usdt-broker attaches to probes and functions "
                              "of such files, and {}",
                              file_.path, what));
    };
    if (probe.distance != 0 || probe.name.starts_with('@')) return refuse("neither to lines nor into functions");
    if (*probe.function != group.moment) return refuse("at the ends of calls that a name says");
    FunctionPattern pattern{.moment = group.moment, .target = {}, .name = glob_of(probe.name)};
    // Nobody asks for the returns of functions that it jumps to: they are found where nothing else is asked for.
    if (group.moment != Moment::entry && group.returns != ReturnBy::any_instruction)
      pattern.ret_probes = group.returns != ReturnBy::probe;
    const auto same = [&](const PointPattern& each) {
      const auto& known = std::get<FunctionPattern>(each);
      return known.name == pattern.name && known.moment == pattern.moment && known.ret_probes == pattern.ret_probes;
    };
    if (std::ranges::any_of(functions, same)) return {};
    if (functions.size() == kMostFunctions) return refuse(fmt::format("to no more than {} at once", kMostFunctions));
    functions.emplace_back(std::move(pattern));
    return {};
  }

  Result<void> plan_again(const std::vector<PointPattern>& patterns, const OpenOptions& options) {
    const TargetFile target{.path = file_.path, .access = file_.access()};
    Selection found;
    found.files.push_back(TRY(find_probes(target, patterns, options)));
    if (found.files.front().sites.empty() && found.files.front().functions.empty()) return {};
    const auto plan = plan_attach(found, kernel_facts(patterns));
    if (!plan && plan.error().kind == ErrorKind::not_supported) return {};  // nothing of it can be attached
    if (!plan) return fail(plan.error());
    for (const AttachGroup& group : plan->groups)
      for (const Index<PlannedSite> site : group.sites) add_place(group, std::get<FilePlace>(plan->sites[site].point));
    return {};
  }

  void add_place(const AttachGroup& group, const FilePlace& place) {
    auto& rets = places_[{group.moment, group.returns, place.offset.value, place.semaphore}];
    rets.insert(rets.end(), place.rets.begin(), place.rets.end());
  }

  const AttachPlan& plan_;
  Index<PlannedFile> number_;
  const AllowedFile& file_;
  PlacesOfFile places_ = {};
};

/// Says that a plan has a place which planning its names again, in a file of root's, does not lead to.
Error not_there(const PlannedProbe& probe, const FilePlace& place, std::string_view path) {
  if (probe.function)
    return {ErrorKind::no_permission,
            fmt::format("{}: it is root's, and usdt-broker does not find {} at {:#x} of the file by its name: not "
                        "through it are traced functions that are chosen when a program starts (strlen), and those of "
                        "debug files that it does not have",
                        path, probe.name, place.offset.value)};
  return {ErrorKind::no_permission,
          fmt::format("{}: it is root's, and has no probe {} at {:#x} of the file with a semaphore at {:#x}", path,
                      probe.name, place.offset.value, place.semaphore)};
}

}  // namespace

Result<void> check_places(const AttachPlan& plan, Index<PlannedFile> number, const AllowedFile& file) {
  PlaceFinder finder(plan, number, file);
  TRY(finder.find());
  for (const AttachGroup& group : plan.groups) {
    if (std::get<Index<PlannedFile>>(group.of) != number) continue;
    for (const Index<PlannedSite> site : group.sites) {
      const auto& place = std::get<FilePlace>(plan.sites[site].point);
      if (finder.has(group, place)) continue;
      return fail(not_there(plan.probes[plan.sites[site].probe], place, file.path));
    }
  }
  return {};
}

}  // namespace usdt::serve
