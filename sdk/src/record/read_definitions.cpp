// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "arch/arch.hpp"
#include "record/definition_codes.hpp"
#include "record/definitions.hpp"
#include "record/limits.hpp"
#include "record/read_arguments.hpp"

namespace usdt::record {
namespace {

constexpr std::uint32_t kMostStringSize = 65536 + 2;  ///< of TraceOptions::string_size

/// Each below `limit`; false: they are not.
template <class T>
bool get_span(ByteReader& in, std::size_t limit, std::optional<FromTo<T>>& span) {
  if (in.at_end()) return true;
  span = {Index<T>(in.below(limit)), Index<T>(in.below(limit))};
  return !in.failed();
}

}  // namespace

Result<void> Definitions::read(ByteSpan block) {
  ByteReader in(block);
  while (!in.at_end()) {
    const std::uint8_t tag = in.u8();
    const std::string_view content = in.text();
    ByteReader body({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
    if (in.failed() || !entry(static_cast<Tag>(tag), body) || body.failed())
      return fail(ErrorKind::malformed, fmt::format("a definition that cannot be (tag {})", tag));
    if (++parts_ > kMostParts) return fail(ErrorKind::limit, fmt::format("more than {} definitions", kMostParts));
  }
  return {};
}

EventLayout Definitions::layout() const {
  EventLayout layout;
  layout.max_args = plan.max_args;
  layout.string_slots = plan.string_slots;
  layout.string_size = plan.string_slots > 0 ? string_size : 0;
  layout.weight = weight;
  layout.owners = plan.owners;
  layout.parents = parents;
  layout.enders = enders;
  layout.contexts = plan.contexts;
  layout.attributes = plan.attributes;
  return layout;
}

bool Definitions::entry(Tag tag, ByteReader& in) {
  switch (tag) {
    case Tag::info:
      return read_info(in);
    case Tag::string_size:
      string_size = std::max(string_size, static_cast<std::uint32_t>(in.up_to(kMostStringSize)));
      return true;
    case Tag::weight:
      weight = std::bit_cast<double>(in.varint());
      return weight >= 1 && weight <= kMostWeight;
    case Tag::owners:
      plan.owners = true;
      parents = !in.at_end() && in.u8() == 1;
      return true;
    case Tag::enders:
      enders = true;
      return true;
    case Tag::contexts:
      plan.contexts = true;
      return true;
    case Tag::attributes:
      plan.contexts = plan.attributes = true;
      return true;
    case Tag::property:
      return read_property(in);
    case Tag::file:
      return read_file(in);
    case Tag::function:
      return read_function(in);
    case Tag::probe:
      return read_probe(in);
    case Tag::arguments:
      return add_arguments(in);
    case Tag::spec:
      return read_spec(in);
    case Tag::group:
      return read_group(in);
    case Tag::site:
      return read_site(in);
    case Tag::notice:
      return read_notice(in);
    case Tag::followed:
      return read_followed(in);
    case Tag::ledger:
      open_ledger_.emplace();
      return true;
    case Tag::counts:
    case Tag::missed:
    case Tag::skipped:
    case Tag::change:
      return open_ledger_ && open_ledger_->read(tag, in, plan);
    case Tag::ledger_end:
      return open_ledger_ && end_ledger(in);
  }
  return true;  // of a later version
}

bool Definitions::read_info(ByteReader& in) {
  if (std::exchange(has_info_, true)) return false;
  info.made_by = in.text();
  info.machine = in.text();
  info.kernel = in.text();
  string_size = static_cast<std::uint32_t>(in.up_to(kMostStringSize));
  // Recordings that do not name the kernel's machine are of earlier versions, and name the system's alone.
  const std::string_view kernel = in.text();
  const arch::Arch* arch = arch::for_name(kernel.empty() ? std::string_view(info.machine) : kernel);
  if (arch != nullptr) plan.kernel_machine = arch->machine;
  return arch != nullptr || kernel.empty();
}

bool Definitions::read_property(ByteReader& in) {
  std::string name(in.text());
  info.properties.emplace_back(std::move(name), in.text());
  return true;
}

bool Definitions::read_function(ByteReader& in) {
  PlannedFunction function;
  function.name = in.text();
  function.module = in.text();
  function.address = in.varint();
  plan.functions.add(std::move(function));
  return true;
}

bool Definitions::read_notice(ByteReader& in) {
  RecordedNotice& notice = notices.emplace_back();
  notice.timestamp = in.varint();
  notice.text = in.text();
  return true;
}

bool Definitions::read_file(ByteReader& in) {
  PlannedFile file;
  file.target.path = std::string(in.text());
  file.target.access = file.target.path;
  file.target.deleted = in.u8() != 0;
  const arch::Arch* arch = arch::for_name(in.text());
  if (arch == nullptr) return false;
  files.push_back({arch->machine, std::string(in.text())});
  plan.files.add(std::move(file));
  return true;
}

bool Definitions::read_probe(ByteReader& in) {
  PlannedProbe probe;
  if (const auto file = get(in)) {
    if (*file >= plan.files.size()) return false;
    probe.file = Index<PlannedFile>(*file);
  }
  probe.provider = in.text();
  probe.name = in.text();
  const std::uint8_t moment = in.u8();
  if (moment > static_cast<std::uint8_t>(Moment::both)) return false;
  if (moment != 0) probe.function = static_cast<Moment>(moment);
  probe.distance = in.varint();
  if (!get_span(in, plan.probes.size(), probe.span)) return false;
  plan.probes.add(std::move(probe));
  return true;
}

bool Definitions::add_arguments(ByteReader& in) {
  std::vector<Arg> args;
  if (!read_arguments(in, args, parts_)) return false;
  plan.args.add(std::move(args));
  return true;
}

bool Definitions::end_ledger(ByteReader& in) {
  ledger = std::move(*open_ledger_).end(in);
  open_ledger_.reset();
  return true;
}

bool Definitions::read_spec(ByteReader& in) {
  EncodedSpec spec;
  spec.user_cookie = in.varint();
  const std::uint64_t count = in.up_to(USDT_MAX_ARGS);
  std::uint32_t slots = 0;
  for (std::uint64_t n = 0; n < count; ++n) {
    usdt_arg_spec& arg = spec.args.emplace_back();
    arg.capture = in.u8();
    if (arg.capture != USDT_CAPTURE_NONE) ++slots;
  }
  plan.max_args = std::max(plan.max_args, static_cast<std::uint32_t>(count));
  plan.string_slots = std::max(plan.string_slots, slots);
  plan.specs.add(std::move(spec));
  return true;
}

bool Definitions::read_group(ByteReader& in) {
  AttachGroup group;
  const std::uint8_t moment = in.u8();
  if (moment < static_cast<std::uint8_t>(Moment::entry) || moment > static_cast<std::uint8_t>(Moment::both))
    return false;
  group.moment = static_cast<Moment>(moment);
  const auto file = get(in);
  const std::string_view module = in.text();
  if (!file) {
    group.of = KernelModule{.name = std::string(module), .kind = {}};
  } else {
    if (*file >= plan.files.size()) return false;
    group.of = Index<PlannedFile>(*file);
  }
  plan.groups.add(std::move(group));
  return true;
}

bool Definitions::read_site(ByteReader& in) {
  PlannedSite site;
  site.probe = Index<PlannedProbe>(in.below(plan.probes.size()));
  const Index<AttachGroup> group(in.below(plan.groups.size()));
  site.spec = Index<EncodedSpec>(in.below(plan.specs.size()));
  site.args = Index<std::vector<Arg>>(in.below(plan.args.size()));
  if (const std::uint8_t kind = in.u8(); kind == kInFile) {
    FilePlace place;
    place.file = Index<PlannedFile>(in.below(plan.files.size()));
    place.pc = VirtAddr(in.varint());
    place.offset = FileOffset(in.varint());
    site.point = std::move(place);
  } else {
    const Index<PlannedFunction> function(in.below(plan.functions.size()));
    if (kind == kAtFunction)
      site.point = KernelFunctionPlace{function};
    else if (kind == kAtTracepoint)
      site.point = TracepointPlace{function};
    else
      return false;
  }
  if (!get_span(in, plan.sites.size(), site.span) || in.failed()) return false;
  if (!site.span) {
    plan.groups[group].sites.push_back(plan.sites.add(std::move(site)));
    return true;
  }
  if (!plan.spans) plan.spans.emplace().begins = static_cast<std::uint32_t>(plan.sites.size());
  plan.sites.add(std::move(site));
  return true;
}

bool Definitions::read_followed(ByteReader& in) {
  RecordedFollowed& each = followed.emplace_back();
  each.kind = static_cast<FollowKind>(in.below(static_cast<std::size_t>(FollowKind::file) + 1));
  each.pid = static_cast<pid_t>(in.up_to(INT32_MAX));
  each.file = in.text();
  each.time = in.varint();
  each.wall_time = static_cast<std::int64_t>(in.varint());
  each.after_ns = in.varint();
  for (std::size_t* number : {&each.probes, &each.sites, &each.attached}) *number = in.up_to(USDT_MAX_SITES);
  each.error = in.text();
  each.probes_by_then = plan.probes.size();
  return !in.failed();
}

}  // namespace usdt::record
