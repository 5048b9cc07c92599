// SPDX-License-Identifier: BSD-2-Clause
#include "event/begin_trace.hpp"

#include <utility>

#include "base/try.hpp"
#include "event/family.hpp"

namespace usdt::event {
namespace {

Result<Begun> begin(const std::shared_ptr<const AttachPlan>& shared, const TraceOptions& options,
                    const Shared& common) {
  auto loaded = TRY(load_part(shared, options, common));
  const LoadedObject& object = *loaded.part.object;
  // The walk of bpf/descends.h finds descendants where forks cannot be watched, and counts hits that it cannot decide.
  auto marks = follows_family(options) ? ForkMarks::start(object, loaded.family) : Result<ForkMarks>();
  // Who may not attach asks /proc which threads are there.
  const bool watches_ends = loaded.part.unfinished.any() && !options.broker;
  auto ends = watches_ends ? ThreadEnds::start() : Result<ThreadEnds>();
  if (!options.cgroups.empty()) set_cgroups(object, options.cgroups);
  std::optional<Result<HitPrices>> prices;
  if (options.max_overhead > 0) {
    prices = HitPrices::measure(object, loaded.part.program);
    if (!*prices) return fail(prices->error());
  }
  std::optional<ContextPlaces> contexts;
  if (shared->contexts) {
    contexts = TRY(ContextPlaces::open(object, shared->attributes));
    contexts->look_at(options.family_of ? options.family_of->pids() : pids_of(shared->scope));
  }
  auto link = TRY(shared->spans ? object.attach() : object.attach(loaded.part.program));
  return Begun{std::move(loaded), std::move(marks),    std::move(ends),
               std::move(prices), std::move(contexts), std::move(link)};
}

}  // namespace

bool is_left_to_everybody(const Error& error, Shared& common, std::optional<std::string>& pay) {
  if (common.family.roots.empty() || common.there || error.kind == ErrorKind::stopped ||
      error.kind == ErrorKind::changed || error.kind == ErrorKind::verifier)
    return false;
  pay = error.message;
  common.family = {};
  return true;
}

Result<Begun> begin_trace(const std::shared_ptr<const AttachPlan>& shared, const TraceOptions& options, Shared& common,
                          std::optional<std::string>& pay) {
  auto family = family_of(*shared, options);
  if (!family) pay = family.error().message;
  if (family && !family->roots.empty()) {
    common.family = std::move(*family);
    auto begun = begin(shared, options, common);
    if (begun || !is_left_to_everybody(begun.error(), common, pay)) return begun;
  }
  return begin(shared, options, common);
}

}  // namespace usdt::event
