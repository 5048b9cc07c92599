// SPDX-License-Identifier: BSD-2-Clause
// How the sites of a plan are loaded: the stock programs with their constants and maps. Private to event/.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "event/site_counts.hpp"
#include "event/trace_options.hpp"
#include "event/unfinished.hpp"
#include "program/family.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/event.hpp"
#include "usdt/plan.hpp"
#include "usdt/trace_options.hpp"

namespace usdt::event {

/// Sites that were loaded together: those the trace began with, or those of one Tracer::add().
struct Part {
  std::optional<LoadedObject> object;  ///< of the first; of others, what is attached keeps what it needs
  EventLayout layout;
  SiteCounts counts;
  Unfinished unfinished;
  std::uint32_t first_site = 0;  ///< in the tracer's plan
  std::uint32_t sites = 0;       ///< places
  std::uint32_t begins = 0;      ///< of spans, the first so many of them
  bool ends_count = false;       ///< of calls it is counted how many ended
  std::string program;
  std::uint32_t first_file = 0;
  std::uint32_t files_left = 0;  ///< of an addition; of one that was added for no file 1
};

/// Holds what the parts of one trace have in common.
struct Shared {
  const LoadedObject* with = nullptr;  ///< null: this is the first part
  std::uint32_t first_site = 0;
  std::uint64_t rate_start = 0;  ///< usdt_guard_constants
  /// LoadOptions::family: the programs then need not ask whose hits count.
  backends::Family family = {};
  bool there = false;  ///< TraceOptions::broker attaches: to everybody it never does
};

/// Holds what is loaded, and whose descendants it counts.
struct Loaded {
  Part part;
  usdt_family_constants family{};
  std::shared_ptr<const AttachPlan> plan;  ///< what it is loaded for: it may have fewer values (shortened_sites())
};

[[nodiscard]] Result<Loaded> load_part(const std::shared_ptr<const AttachPlan>& plan, const TraceOptions& options,
                                       const Shared& common);

/// usdt_guard_constants::rate_start of a trace that begins now: a second's worth of events may come at once.
[[nodiscard]] std::uint64_t rate_start_now();
/// Whether programs ask whose descendant a process is. (usdt-broker attaches them to each process by itself.)
[[nodiscard]] bool follows_family(const TraceOptions& options);
/// Tells the programs which cgroups are meant. True: one of them is another one than they knew.
bool set_cgroups(const LoadedObject& object, const std::vector<std::filesystem::path>& cgroups);

}  // namespace usdt::event
