// SPDX-License-Identifier: BSD-2-Clause
#include "arch/arch.hpp"
#include "broker/expressions.hpp"
#include "broker/messages.hpp"

namespace usdt::broker {
namespace {

void write_entries(ByteWriter& out, const std::vector<usdt_arg_spec>& entries) {
  out.varint(entries.size());
  out.raw(entries.data(), entries.size() * sizeof(usdt_arg_spec));
}

void write_probe(ByteWriter& out, const PlannedProbe& probe) {
  out.varint(probe.file ? probe.file->value : 0);
  out.text(probe.provider);
  out.text(probe.name);
  out.u8(probe.function ? static_cast<std::uint8_t>(*probe.function) : 0);
  out.varint(probe.distance);
}

void write_group(ByteWriter& out, const AttachGroup& group) {
  out.varint(static_cast<std::uint64_t>(group.backend));
  out.u8(static_cast<std::uint8_t>(group.moment));
  out.u8(group.session ? 1 : 0);
  out.u8(static_cast<std::uint8_t>(group.returns));
  out.varint(std::get<Index<PlannedFile>>(group.of).value);
}

void write_site(ByteWriter& out, const PlannedSite& site, std::uint32_t group) {
  const auto& place = std::get<FilePlace>(site.point);
  out.varint(site.probe.value);
  out.varint(group);
  out.varint(site.spec.value);
  out.varint(site.filter ? site.filter->value + 1 : 0);
  out.varint(place.offset.value);
  out.varint(place.semaphore);
  out.u8(place.at_entry ? 1 : 0);
  out.varint(place.rets.size());
  for (const FileOffset ret : place.rets) out.varint(ret.value);
}

}  // namespace

/// The plan has nothing but places in files.
void write_plan(ByteWriter& out, const AttachPlan& plan) {
  const std::vector<pid_t> pids = pids_of(plan.scope);
  out.varint(pids.size());
  for (const pid_t pid : pids) out.varint(static_cast<std::uint64_t>(pid));
  out.varint(plan.files.size());
  for (const PlannedFile& file : plan.files)
    out.text(arch::for_machine(file.elf ? file.elf->machine() : plan.kernel_machine).name);
  out.varint(plan.probes.size());
  for (const PlannedProbe& probe : plan.probes) write_probe(out, probe);
  out.varint(plan.specs.size());
  for (const EncodedSpec& spec : plan.specs) {
    out.varint(spec.user_cookie);
    write_entries(out, spec.args);
    write_entries(out, spec.steps);
  }
  for (const std::uint32_t number : {plan.max_args, plan.max_entries, plan.max_steps, plan.string_slots})
    out.varint(number);
  out.varint(plan.filters.size());
  for (const TypedExpression& filter : plan.filters) write(out, filter);
  out.varint(plan.groups.size());
  std::vector<std::uint32_t> group_of(plan.sites.size());
  for (const Index<AttachGroup> number : plan.groups.indices()) {
    write_group(out, plan.groups[number]);
    for (const Index<PlannedSite> site : plan.groups[number].sites) group_of[site.value] = number.value;
  }
  out.varint(plan.sites.size());
  for (const Index<PlannedSite> number : plan.sites.indices())
    write_site(out, plan.sites[number], group_of[number.value]);
}

}  // namespace usdt::broker
