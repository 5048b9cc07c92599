// SPDX-License-Identifier: BSD-2-Clause
// A list of arguments as one spec, for points of every kind. Private to plan/.
#pragma once

#include <span>
#include <vector>

#include "plan/captures.hpp"
#include "resolve/encode.hpp"
#include "usdt/plan.hpp"

namespace usdt::plan {

/// Encodes `args`, of which those that a spec has no room for become unreadable, and makes the plan's records and
/// tables large enough for them. Beyond USDT_MAX_ARGS none is encoded.
[[nodiscard]] EncodedSpec encode_args(std::vector<Arg>& args, Machine machine, const resolve::EncodeOptions& encoding,
                                      const Wanted& wanted, AttachPlan& plan);

}  // namespace usdt::plan
