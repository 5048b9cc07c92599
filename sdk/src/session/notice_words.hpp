// SPDX-License-Identifier: BSD-2-Clause
// Notices of a live trace, in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/follow.hpp"
#include "usdt/plan.hpp"
#include "usdt/question_plan.hpp"
#include "usdt/tracer.hpp"

namespace usdt::session {

using NoticeKind = SessionNotice::Kind;

/// Writes "3 sites of 2 probes in 1 file, and 409 kernel functions"; `verbose`: each with "by tracing_multi".
[[nodiscard]] std::string attached_text(const Tracer& tracer, bool verbose);

/// Returns the sites left out by the planner and by the kernel.
[[nodiscard]] std::vector<SkippedSite> skipped_sites(const Tracer& tracer);

/// Returns a notice for each of the first reasons why sites are left out, and one of the rest. `what` comes first:
/// "not attached".
[[nodiscard]] std::vector<SessionNotice> notices_of_reasons(const AttachPlan& plan,
                                                            const std::vector<SkippedSite>& sites, NoticeKind kind,
                                                            std::string_view what);

/// Returns the one notice that all `sites` have together: how many, and the first reason.
[[nodiscard]] SessionNotice notice_of_all(const AttachPlan& plan, const std::vector<SkippedSite>& sites);

/// Writes "followed: process 4711 opened /usr/lib/libx.so: 3 sites of 2 probes attached, 12.3 ms after".
[[nodiscard]] std::string followed_text(const Followed& followed);

/// Writes "waiting on: process 4711 opened /usr/lib/libx.so, which has one side of the spans".
[[nodiscard]] std::string half_came_text(const Followed& followed);

/// Writes "let go: 37 files: /usr/bin/server, ..., gone, and mapped by nobody: 111 sites detached, their hits stay
/// counted".
[[nodiscard]] std::string let_go_text(const std::vector<std::string>& files, std::size_t sites);

/// Writes the same of files that nobody has mapped, whose places others need.
[[nodiscard]] std::string made_room_text(const std::vector<std::string>& files, std::size_t sites);
/// Says that files of somebody are left out who has so many (FollowCounts::crowded). `most`: AskedFollowing.
[[nodiscard]] std::string crowded_text(std::uint32_t most, std::string_view option_prefix);

/// Returns what a follower cannot say of each file, at the end, a line each.
[[nodiscard]] std::vector<std::string> lines_of(const FollowCounts& counts);

}  // namespace usdt::session
