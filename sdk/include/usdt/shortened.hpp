// SPDX-License-Identifier: BSD-2-Clause
// Sites with more values than one BPF program can read: BpfObject::load() leaves out the deepest of them, each of which
// is then an argument of LoadedObject::plan() that is not Arg::readable(). shortened_sites() lists these sites.
//     for (const usdt::SkippedSite& site : usdt::shortened_sites(loaded->plan())) print(site.reason);
// Threads: any; the plan is only read.
#pragma once

#include <vector>

#include "usdt/plan.hpp"

namespace usdt {
inline namespace v1 {

/// Returns the sites of a loaded plan for which values were left out, in the order of AttachPlan::sites. Each reason
/// says how many values those were. A plan that was not loaded yet has none.
[[nodiscard]] std::vector<SkippedSite> shortened_sites(const AttachPlan& plan);

}  // namespace v1
}  // namespace usdt
