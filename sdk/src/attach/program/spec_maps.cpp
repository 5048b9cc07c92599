// SPDX-License-Identifier: BSD-2-Clause
#include "program/spec_maps.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/try.hpp"
#include "carry/windows.hpp"
#include "expr/beginning.hpp"
#include "program/libbpf_specs.hpp"
#include "program/process_list.hpp"
#include "program/thread_base.hpp"
#include "sys/pid_namespace.hpp"
#include "usdt/bpf/filter.h"

namespace usdt::backends {
namespace {

constexpr const char* kTable = "usdt_specs";
constexpr const char* kAddresses = "usdt_ips";

/// Bytes of a table entry: the header, and the arguments and steps of the plan's longest spec.
std::size_t entry_size(const AttachPlan& plan) {
  return sizeof(usdt_spec) + std::size_t{plan.max_entries} * sizeof(usdt_arg_spec);
}

/// Compiled with libbpf's own usdt.bpf.h.
bool is_libbpf(const ObjectCopy& object) { return !object.map(kTable) && has_libbpf_specs(object); }

Result<void> check_version(const ObjectCopy& object) {
  if (!object.map(kTable))
    return fail(ErrorKind::invalid_argument,
                "the BPF object has no spec table: its program must include usdt/bpf/usdt.bpf.h");
  if (has_libbpf_specs(object))
    return fail(
        ErrorKind::invalid_argument,
        "the BPF object has two spec tables, ours and libbpf's: its files must be compiled with one usdt.bpf.h");
  std::uint32_t version = 1;  // the first layout did not say
  if (const auto said = object.constant("usdt_spec_version"); said.size() == sizeof(version))
    std::memcpy(&version, said.data(), sizeof(version));
  if (version == USDT_SPEC_VERSION) return {};
  return fail(ErrorKind::invalid_argument,
              fmt::format("the BPF object was compiled with version {} of usdt/bpf/spec.h, this library writes version "
                          "{}: compile it again with the headers installed beside the library",
                          version, USDT_SPEC_VERSION));
}

Result<void> size_map(const ObjectCopy& object, const char* name, std::size_t value_size, std::size_t entries) {
  bpf_map* map = object.map(name);
  if (!map) return fail(ErrorKind::invalid_argument, fmt::format("the BPF object has no map '{}'", name));
  int error = bpf_map__set_value_size(map, static_cast<std::uint32_t>(value_size));
  if (!error) error = bpf_map__set_max_entries(map, static_cast<std::uint32_t>(std::max<std::size_t>(entries, 1)));
  if (error) return fail(os_failure(ErrorKind::io, fmt::format("size the map '{}'", name), -error));
  return {};
}

/// The arguments that a question reads; how many.
std::uint8_t put_numbers(const std::vector<std::uint8_t>& args, __u8 (&numbers)[USDT_FILTER_VALUES]) {
  for (std::size_t i = 0; i < std::min<std::size_t>(args.size(), USDT_FILTER_VALUES); ++i) numbers[i] = args[i];
  return static_cast<std::uint8_t>(args.size());
}

/// Whether all sites of files are first instructions of functions, or those that return from them: who called them is
/// in a known place there.
bool is_of_entries(const AttachPlan& plan) {
  return std::ranges::all_of(plan.sites, [](const PlannedSite& site) {
    const auto* place = std::get_if<FilePlace>(&site.point);
    return place == nullptr || place->at_entry || !place->rets.empty();
  });
}

std::uint8_t tracer_frames(const AttachPlan& plan, const CarrierPlan& carriers, const PlannedProgram& program) {
  for (const PlannedLink& link : carriers.links)
    if (&carriers.programs[link.program] == &program) return plan.sites[link.sites.front()].tracer_frames;
  return 0;
}

/// Sets whose hits count. A calling process that is among the chosen ones is there on purpose.
void set_scope(usdt_program_constants& out, const AttachPlan& plan, bool leave_out_self) {
  std::vector<pid_t> pids = pids_of(plan.scope);
  if (pids.empty() && leave_out_self) {
    pids.push_back(::getpid());
    out.scope_left_out = 1;
  }
  out.scope = process_list(pids);
}

/// Makes the constants of the program that carries its part of the plan.
usdt_program_constants constants_of(const AttachPlan& plan, const CarrierPlan& carriers,
                                    const PlannedProgram& program) {
  usdt_program_constants out{};
  out.user_cookie = carriers.user_cookie;
  out.carriers = program.carriers;
  out.max_args = plan.max_args;
  out.max_entries = static_cast<std::uint16_t>(plan.max_entries);
  out.max_steps = static_cast<std::uint8_t>(plan.max_steps);
  out.site_bits = carriers.site_bits;
  out.ip_group = program.ip_group;
  out.source = static_cast<std::uint8_t>(program.kind.source);
  out.moment = static_cast<std::uint8_t>(program.kind.moment);
  out.calls = static_cast<std::uint8_t>(program.kind.calls);
  out.return_by = static_cast<std::uint8_t>(program.kind.returns);
  out.one_site = static_cast<std::uint8_t>(plan.places() == 1 && carriers.site_bits == 0);
  out.packed_regs = static_cast<std::uint8_t>(program.packed_regs);
  out.windows = static_cast<std::uint8_t>(carriers.windows);
  if (program.kind.filter) {
    out.filtered = 1;
    const TypedExpression& question = plan.filters[*program.kind.filter];
    std::vector<std::uint8_t> values = question.args();
    std::ranges::copy(
        program.kind.span == USDT_SPAN_END ? expr::beginning_facts(question) : expr::context_facts(question),
        std::back_inserter(values));
    out.filter_values = put_numbers(values, out.filter_args);
    for (const TypedExpression::KeptText& text : plan.filters[*program.kind.filter].kept_texts())
      out.filter_texts[text.value] = static_cast<__u8>((text.slot + 1) | (text.whole ? USDT_KEPT_TEXT_WHOLE : 0));
  }
  out.at_entry = static_cast<std::uint8_t>(program.kind.source == USDT_SOURCE_USER && is_of_entries(plan));
  out.tracer_frames = tracer_frames(plan, carriers, program);
  if (program.kind.pair) out.pair_values = put_numbers(plan.filters[*program.kind.pair].args(), out.pair_args);
  out.span_side = static_cast<std::uint8_t>(program.kind.span);
  if (program.kind.span == USDT_SPAN_END) {
    out.first_arg = static_cast<std::uint8_t>(plan.spans->first_arg);
    out.first_text = static_cast<std::uint8_t>(plan.spans->first_text);
  }
  if ((program.carriers & USDT_CARRIER_BIT(USDT_CARRIER_LINK)) != 0) {
    out.values_by_site = program.values_by_site;
    carry::write_spec(reinterpret_cast<std::byte*>(out.link_spec), program.link_spec);
  }
  return out;
}

}  // namespace

Result<void> check_sources(const ObjectCopy& object, const AttachPlan& plan) {
  const bool returns =
      std::ranges::any_of(plan.groups, [](const AttachGroup& group) { return group.moment != Moment::entry; });
  const bool sites_only = is_libbpf(object) || !object.constant("usdt_of_files_only").empty();
  if (!sites_only || (!has_kernel_points(plan) && !returns)) return {};
  return fail(
      ErrorKind::invalid_argument,
      "the BPF object's programs are for USDT sites, having libbpf's usdt.bpf.h: those for kernel functions and "
      "raw tracepoints, and for returns, must include usdt/bpf/usdt.bpf.h");
}

Result<Carrier> carrier_for(const ObjectCopy& object, Carrier wanted, bool attach_cookies) {
  if (is_libbpf(object)) {
    if (!attach_cookies)
      return fail(
          ErrorKind::not_supported,
          "the BPF object is compiled with libbpf's usdt.bpf.h, whose programs are attached by cookies, which "
          "this kernel has not (Linux 5.15): compile it with usdt/bpf/compat before libbpf in the include path");
    if (wanted != Carrier::automatic && wanted != Carrier::table)
      return fail(
          ErrorKind::not_supported,
          fmt::format("carrier {}: the BPF object is compiled with libbpf's usdt.bpf.h, whose programs know the "
                      "table only; compile it with usdt/bpf/compat before libbpf in the include path",
                      to_string(wanted)));
    return Carrier::table;
  }
  if (!attach_cookies && wanted != Carrier::automatic && wanted != Carrier::ip_hash)
    return fail(ErrorKind::not_supported,
                fmt::format("carrier {}: this kernel has no BPF attach cookies (Linux 5.15); ip-hash does without",
                            to_string(wanted)));
  return wanted;
}

Result<void> size_specs(const ObjectCopy& object, const AttachPlan& plan, const CarrierPlan& carriers) {
  if (is_libbpf(object)) return size_libbpf_specs(object, plan);
  TRY(check_version(object));
  TRY(size_map(object, kTable, entry_size(plan), carriers.needs_table ? plan.read_specs() : 1));
  return size_map(object, kAddresses, sizeof(std::uint64_t), carriers.ips.size());
}

Result<usdt_kernel_constants> kernel_constants(const ObjectCopy& object, const AttachPlan& plan) {
  usdt_kernel_constants out{};
  if (is_libbpf(object)) return out;
  const auto nested = TRY(sys::nested_pid_namespace());
  if (nested) {
    out.pidns_dev = nested->device;
    out.pidns_ino = nested->inode;
  }
  set_thread_base(out, plan);
  return out;
}

Result<void> set_constants(const ObjectCopy& object, const AttachPlan& plan, const CarrierPlan& carriers,
                           const PlannedProgram& program, const usdt_kernel_constants& kernel, bool leave_out_self) {
  if (is_libbpf(object)) return {};
  usdt_program_constants constants = constants_of(plan, carriers, program);
  set_scope(constants, plan, leave_out_self);
  TRY(object.set_constant("usdt_program_constants", constants));
  return object.set_constant("usdt_kernel_constants", kernel);
}

Result<void> fill_specs(const ObjectCopy& object, const AttachPlan& plan, const CarrierPlan& carriers) {
  if (is_libbpf(object)) return fill_libbpf_specs(object, plan);
  if (!carriers.ips.empty()) {
    const std::size_t bytes = carriers.ips.size() * sizeof(std::uint64_t);
    auto written =
        object.write_map(kAddresses, bytes, [&](std::byte* to) { std::memcpy(to, carriers.ips.data(), bytes); });
    if (!written) return written;
  }
  if (!carriers.needs_table) return {};
  const std::size_t size = entry_size(plan);
  return object.write_map(kTable, size * plan.read_specs(), [&](std::byte* to) {
    for (std::size_t i = 0; i < plan.read_specs(); ++i, to += size)
      carry::write_spec(to, plan.specs[Index<EncodedSpec>(i)]);
  });
}

}  // namespace usdt::backends
