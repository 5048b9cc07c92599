// SPDX-License-Identifier: BSD-2-Clause
#include "plan/planner.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/symbol_name.hpp"
#include "plan/kernel.hpp"

namespace usdt::plan {
namespace {

std::size_t bytes_of(const ElfFile& file) {
  struct stat st {};
  return ::fstat(file.fd(), &st) == 0 ? static_cast<std::size_t>(st.st_size) : 0;
}

/// The part of a site that says where its breakpoint goes.
Site site_of(const FunctionPoint& point) {
  Site site;
  site.pc = site.pc_adjusted = point.pc;
  site.offset = point.offset;
  site.bytes = point.bytes;
  site.site_class = point.site_class;
  return site;
}

std::size_t hash_of(const PointName& name) noexcept {
  const std::hash<std::string_view> of_text;
  return of_text(name.provider) * 31 + of_text(name.name);
}

}  // namespace

void Planner::add(const ProbeFile& file) {
  most_arguments_ += bytes_of(*file.elf) / kFileBytesPerArgument;
  Current current{plan_.files.add({.target = file.target, .elf = file.elf}), *file.elf, ArgDecoder(*file.elf)};
  add_sites(file, current);
  add_functions(file, current);
}

Result<void> Planner::add(const KernelSelection& selection) {
  return add_kernel(selection, kernel_.abilities, options_, plan_, specs_, values_);
}

std::string Planner::too_many_arguments() const {
  return fmt::format("the plan has {} different arguments without it: trace fewer probes", decoded_);
}

void Planner::add_sites(const ProbeFile& file, Current& current) {
  current.probes.reserve(file.sites.size());
  current.templates.reserve(file.sites.size());
  for (const Site& site : file.sites) {
    if (options_.stop.stop_requested()) return;
    const PointName name = name_of(site, current);
    const Index<PlannedProbe> probe = probe_of(name, std::nullopt, current);
    auto placement = place(site, current.elf, kernel_, options_);
    if (placement && decoded_ >= most_arguments_ &&
        !current.templates.contains(texts_of(site, current).key(site.args_text))) {
      placement = tl::unexpected(too_many_arguments());
    }
    if (placement) {
      add_site({name, site.pc_adjusted, *placement}, template_of(site, current), probe, current);
    } else {
      plan_.skipped.push_back({.probe = probe, .pc = site.pc, .reason = std::move(placement.error())});
    }
  }
}

void Planner::add_functions(const ProbeFile& file, Current& current) {
  for (const FunctionPoint& point : file.functions) {
    if (options_.stop.stop_requested()) return;
    add_function(point, current);
  }
}

void Planner::add_function(const FunctionPoint& point, Current& current) {
  const PointName name = name_of(point, current);
  const Index<PlannedProbe> probe = probe_of(name, point.moment, current);
  plan_.probes[probe].distance = point.distance;
  std::string refusal = point.refused;
  if (refusal.empty() && point.moment != Moment::entry && !kernel_.abilities.perf_cookies)
    refusal =
        "returns are told apart by attach cookies, which this kernel does not have (Linux 5.15), does not tell this "
        "user "
        "of, or was not asked about (kernel_facts() takes the patterns)";
  if (refusal.empty() && !point.signature) refusal = "nothing is known of its values";
  if (refusal.empty() && decoded_ >= most_arguments_) refusal = too_many_arguments();
  auto placement =
      refusal.empty() ? place(site_of(point), current.elf, kernel_, options_) : tl::unexpected(std::move(refusal));
  if (!placement) {
    plan_.skipped.push_back({.probe = probe, .pc = point.pc, .reason = std::move(placement.error())});
    return;
  }
  const ReturnBy returns = point.moment == Moment::entry ? ReturnBy::probe : point.returns;
  // (What begins with its name in the cold part of a file, the function jumps to.)
  const bool at_entry = point.moment != Moment::exit && point.caller.empty() && !point.inlined && point.distance == 0 &&
                        !is_cold_half(point.name);
  add_site({name, point.pc, *placement, point.moment, returns, &point.rets, at_entry}, template_of(point, current),
           probe, current);
}

Index<PlannedProbe> Planner::probe_of(const PointName& name, std::optional<Moment> function, Current& current) {
  const auto [number, fresh] =
      current.probes.try_add(hash_of(name), plan_.probes.next().value, [&](std::uint32_t known) {
        const PlannedProbe& probe = plan_.probes[Index<PlannedProbe>(known)];
        // (A provider may be called as a prefix of functions is: "uprobe".)
        return probe.function == function && probe.provider == name.provider && probe.name == name.name;
      });
  if (fresh)
    plan_.probes.add({.file = current.file,
                      .provider = std::string(name.provider),
                      .name = std::string(name.name),
                      .function = function});
  return Index<PlannedProbe>(number);
}

/// One link serves all entries of a file, whether probes or functions.
Index<AttachGroup> Planner::group_of(Moment moment, ReturnBy returns, Current& current) {
  const auto [it, fresh] = current.groups.try_emplace({moment, returns}, plan_.groups.next());
  if (!fresh) return it->second;
  const bool session = moment == Moment::both && returns == ReturnBy::probe && kernel_.abilities.uprobe_session;
  AttachGroup& group = plan_.groups[plan_.groups.add()];
  if (session) group.backend = Backend::uprobe_session;
  group.moment = moment;
  group.session = session;
  group.returns = returns;
  group.of = current.file;
  return it->second;
}

PointName Planner::name_of(const Site& site, const Current& current) const {
  return {.provider = site.provider,
          .name = site.name,
          .module = {},
          .address = site.pc.value,
          .file = &plan_.files[current.file].target};
}

PointName Planner::name_of(const FunctionPoint& point, const Current& current) const {
  return {.provider = function_prefix(point.moment),
          .name = point.name,
          .module = {},
          .address = point.pc.value,
          .file = &plan_.files[current.file].target};
}

void Planner::add_site(const Spot& spot, const ArgTemplate& args, Index<PlannedProbe> probe, Current& current) {
  if (!args.filter.refusal.empty()) {
    plan_.skipped.push_back({.probe = probe, .pc = VirtAddr(spot.name.address), .reason = args.filter.refusal});
    return;
  }
  const std::uint64_t user_cookie = plan::user_cookie(options_, spot.name);
  const Index<EncodedSpec> spec = spec_of(args, spot, user_cookie, current.decoder.machine());
  const FilePlace place{.file = current.file,
                        .pc = VirtAddr(spot.name.address),
                        .offset = spot.placement.offset,
                        .semaphore = spot.placement.semaphore,
                        .rets = spot.rets ? *spot.rets : std::vector<FileOffset>(),
                        .at_entry = spot.at_entry};
  plan_.groups[group_of(spot.moment, spot.returns, current)].sites.push_back(
      plan_.sites.add({.probe = probe, .point = place, .spec = spec, .args = args.args, .filter = args.filter.number}));
}

}  // namespace usdt::plan
