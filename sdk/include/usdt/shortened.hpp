// SPDX-License-Identifier: BSD-2-Clause
// Sites with more values than one BPF program can read: BpfObject::load() leaves out the deepest of them, each of which
// is then an argument of LoadedObject::plan() that is not Arg::readable(). shortened_sites() says of which sites.
#pragma once

#include <vector>

#include "usdt/plan.hpp"

namespace usdt {
inline namespace v1 {

/// The sites of a plan that is loaded for which values were left out, in the order of AttachPlan::sites; the reason
/// says how many.
[[nodiscard]] std::vector<SkippedSite> shortened_sites(const AttachPlan& plan);

}  // namespace v1
}  // namespace usdt
