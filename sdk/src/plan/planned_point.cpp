// SPDX-License-Identifier: BSD-2-Clause
// What a planned probe or site is called, and where it is.
#include <fmt/format.h>

#include <algorithm>

#include "usdt/plan.hpp"

namespace usdt {
inline namespace v1 {

std::string full_name(const AttachPlan& plan, const PlannedProbe& probe) {
  if (probe.span)
    return fmt::format("{} ~~ {}", full_name(plan, plan.probes[probe.span->begin]),
                       full_name(plan, plan.probes[probe.span->end]));
  if (!probe.file) return fmt::format("{}:{}", probe.provider, probe.name);
  const TargetFile& file = plan.files[*probe.file].target;
  if (!probe.function) return probe_name(file, probe.provider, probe.name);
  return function_name(file, *probe.function, probe.name, probe.distance);
}

Machine machine_of(const AttachPlan& plan, const PlannedSite& site) {
  const auto* place = std::get_if<FilePlace>(&site.point);
  if (place == nullptr) return plan.kernel_machine;
  const PlannedFile& file = plan.files[place->file];
  return file.elf ? file.elf->machine() : file.machine.value_or(plan.kernel_machine);
}

const PlannedFunction* function_of(const AttachPlan& plan, const PlannedSite& site) noexcept {
  if (const auto* place = std::get_if<KernelFunctionPlace>(&site.point)) return &plan.functions[place->function];
  if (const auto* place = std::get_if<TracepointPlace>(&site.point)) return &plan.functions[place->tracepoint];
  return nullptr;
}

std::optional<VirtAddr> pc_of(const AttachPlan& plan, const PlannedSite& site) noexcept {
  if (const auto* place = std::get_if<FilePlace>(&site.point)) return place->pc;
  const std::uint64_t address = function_of(plan, site)->address;
  return address == 0 ? std::nullopt : std::optional(VirtAddr(address));
}

bool has_kernel_points(const AttachPlan& plan) noexcept {
  return std::ranges::any_of(plan.groups,
                             [](const AttachGroup& group) { return std::holds_alternative<KernelModule>(group.of); });
}

}  // namespace v1
}  // namespace usdt
