// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "arch/arch.hpp"
#include "base/try.hpp"
#include "broker/expressions.hpp"
#include "broker/limits.hpp"
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
  out.varint(site.pair ? site.pair->value + 1 : 0);
  out.varint(site.program ? site.program->value + 1 : 0);
  out.varint(place.offset.value);
  out.varint(place.semaphore);
  out.u8(place.at_entry ? 1 : 0);
  out.varint(place.rets.size());
  for (const FileOffset ret : place.rets) out.varint(ret.value);
}

void write_spans(ByteWriter& out, const std::optional<PlannedSpans>& spans) {
  out.u8(spans ? 1 : 0);
  if (!spans) return;
  for (const std::uint32_t number :
       {spans->begins, spans->ends, spans->args, spans->first_arg, spans->first_text, spans->key_bytes})
    out.varint(number);
}

/// Those of places: spans, whose sites are none, have others behind them.
std::uint32_t count_probes(const AttachPlan& plan) {
  std::uint32_t count = 0;
  for (std::uint32_t site = 0; site < plan.places(); ++site)
    count = std::max(count, plan.sites[Index<PlannedSite>(site)].probe.value + 1);
  return std::min(count, static_cast<std::uint32_t>(plan.probes.size()));
}

Result<void> check_count(std::size_t count, std::size_t most, std::string_view what) {
  if (count <= most) return {};
  return fail(ErrorKind::limit,
              fmt::format("{} {}: usdt-broker takes {} in one trace: name fewer probes", count, what, most));
}

}  // namespace

Result<void> check_size(const AttachPlan& plan) {
  TRY(check_count(plan.files.size(), kMostFiles, "files"));
  TRY(check_count(plan.places(), kMostSites, "sites"));
  TRY(check_count(plan.filters.size(), kMostFilters, "questions"));
  std::size_t places = 0;
  for (std::uint32_t number = 0; number < plan.places(); ++number) {
    const PlannedSite& site = plan.sites[Index<PlannedSite>(number)];
    const PlannedProbe& probe = plan.probes[site.probe];
    const std::size_t rets = std::get<FilePlace>(site.point).rets.size();
    TRY(check_count(rets, kMostRets, fmt::format("RET instructions of {}", probe.name)));
    TRY(check_count(probe.name.size(), kMostProbeName, "letters in the name of a probe"));
    places += 1 + rets;
  }
  return check_count(places, kMostPlaces, "places");
}

/// The plan has nothing but places in files.
void write_plan(ByteWriter& out, const AttachPlan& plan) {
  const std::vector<pid_t> pids = pids_of(plan.scope);
  out.varint(pids.size());
  for (const pid_t pid : pids) out.varint(static_cast<std::uint64_t>(pid));
  out.varint(plan.files.size());
  for (const PlannedFile& file : plan.files)
    out.text(arch::for_machine(file.elf ? file.elf->machine() : plan.kernel_machine).name);
  const std::uint32_t probes = count_probes(plan);
  out.varint(probes);
  for (std::uint32_t number = 0; number < probes; ++number) write_probe(out, plan.probes[Index<PlannedProbe>(number)]);
  out.varint(plan.read_specs());
  for (std::uint32_t number = 0; number < plan.read_specs(); ++number) {
    const EncodedSpec& spec = plan.specs[Index<EncodedSpec>(number)];
    out.varint(spec.user_cookie);
    write_entries(out, spec.args);
    write_entries(out, spec.steps);
  }
  write_spans(out, plan.spans);
  for (const std::uint32_t number : {plan.max_args, plan.max_entries, plan.max_steps, plan.string_slots})
    out.varint(number);
  out.varint(plan.filters.size());
  for (const TypedExpression& filter : plan.filters) write(out, filter);
  out.varint(plan.programs.size());
  for (const std::string& program : plan.programs) out.text(program);
  out.varint(plan.groups.size());
  std::vector<std::uint32_t> group_of(plan.sites.size());
  for (const Index<AttachGroup> number : plan.groups.indices()) {
    write_group(out, plan.groups[number]);
    for (const Index<PlannedSite> site : plan.groups[number].sites) group_of[site.value] = number.value;
  }
  out.varint(plan.places());
  for (const Index<PlannedSite> number : Indices<PlannedSite>(Index<PlannedSite>(plan.places())))
    write_site(out, plan.sites[number], group_of[number.value]);
}

}  // namespace usdt::broker
