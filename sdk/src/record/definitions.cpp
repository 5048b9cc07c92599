// SPDX-License-Identifier: BSD-2-Clause
#include "record/definitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "record/events.hpp"
#include "record/limits.hpp"
#include "usdt/elf_file.hpp"

namespace usdt::record {
namespace {

/// A block of entries is ended once it is so large.
constexpr std::size_t kEnough = 256U << 10;

// What is said of an argument.
constexpr unsigned kResult = 1, kDerived = 2, kHidden = 4, kSigned = 8, kPartOf = 16, kLength = 32, kUnreadable = 64,
                   kDeclared = 128, kConstant = 256, kOfEnd = 512, kCounts = 1024, kElement = 2048;
constexpr std::uint32_t kMostStringSize = 65536 + 2;  ///< of TraceOptions::string_size
/// What a site's place is.
enum PlaceKind : std::uint8_t { kInFile = 0, kAtFunction = 1, kAtTracepoint = 2 };

// The file has these numbers.
static_assert(static_cast<int>(TypeKind::integer) == 0 && static_cast<int>(TypeKind::array) == 7);
static_assert(static_cast<int>(Moment::entry) == 1 && static_cast<int>(Moment::both) == 3);
static_assert(static_cast<int>(FileChangeKind::written) == 0 && static_cast<int>(FileChangeKind::removed) == 2);
static_assert(static_cast<int>(FollowKind::library) == 0 && static_cast<int>(FollowKind::file) == 3);
static_assert(static_cast<int>(FrameIssue::none) == 0 && static_cast<int>(FrameIssue::return_probe) == 15);

std::optional<Machine> machine_by_name(std::string_view name) {
  for (const Machine machine : {Machine::x86_64, Machine::i386, Machine::aarch64})
    if (to_string(machine) == name) return machine;
  return std::nullopt;
}

/// 0 is none, and all else one more.
void put(ByteWriter& out, std::optional<std::uint64_t> number) { out.varint(number ? *number + 1 : 0); }
std::optional<std::uint64_t> get(ByteReader& in) {
  const std::uint64_t number = in.varint();
  return number == 0 ? std::nullopt : std::optional(number - 1);
}

/// What is at both ends of a span, if it is one.
template <class T>
void put(ByteWriter& out, const std::optional<FromTo<T>>& span) {
  if (!span) return;
  out.varint(span->begin.value);
  out.varint(span->end.value);
}
/// Each below `limit`; false: they are not.
template <class T>
bool get_span(ByteReader& in, std::size_t limit, std::optional<FromTo<T>>& span) {
  if (in.at_end()) return true;
  span = {Index<T>(in.below(limit)), Index<T>(in.below(limit))};
  return !in.failed();
}

}  // namespace

void DefinitionWriter::end(Tag tag) {
  out_.u8(static_cast<std::uint8_t>(tag));
  out_.text(entry_.view());
  entry_.clear();
  ends_.push_back(out_.size());
}

void DefinitionWriter::take(const std::function<void(ByteSpan)>& use) {
  std::size_t begin = 0;
  for (std::size_t n = 0; n < ends_.size(); ++n) {
    if (n + 1 < ends_.size() && ends_[n] - begin < kEnough) continue;
    use(out_.bytes().subspan(begin, ends_[n] - begin));
    begin = ends_[n];
  }
  out_.clear();
  ends_.clear();
}

void DefinitionWriter::info(const RecordingInfo& info, const EventLayout& layout, Machine kernel) {
  entry_.text(info.made_by);
  entry_.text(info.machine);
  entry_.text(info.kernel);
  entry_.varint(layout.string_size);
  entry_.text(to_string(kernel));
  end(Tag::info);
  if (layout.weight != 1) {
    entry_.varint(std::bit_cast<std::uint64_t>(layout.weight));
    end(Tag::weight);
  }
  if (layout.owners) end(Tag::owners);
  for (const auto& [name, text] : info.properties) property(name, text);
}

void DefinitionWriter::property(std::string_view name, std::string_view text) {
  entry_.text(name);
  entry_.text(text);
  end(Tag::property);
}

void DefinitionWriter::string_size(std::uint32_t bytes) {
  entry_.varint(bytes);
  end(Tag::string_size);
}

void DefinitionWriter::plan(const AttachPlan& plan) {
  for (; files_ < plan.files.size(); ++files_) {
    const PlannedFile& file = plan.files[Index<PlannedFile>(files_)];
    entry_.text(file.target.path.native());
    entry_.u8(file.target.deleted ? 1 : 0);
    entry_.text(to_string(file.elf ? file.elf->machine() : file.machine.value_or(plan.kernel_machine)));
    entry_.text(file.elf ? file.elf->build_id() : std::string());
    end(Tag::file);
  }
  for (; functions_ < plan.functions.size(); ++functions_) {
    const PlannedFunction& function = plan.functions[Index<PlannedFunction>(functions_)];
    entry_.text(function.name);
    entry_.text(function.module);
    entry_.varint(function.address);
    end(Tag::function);
  }
  for (; probes_ < plan.probes.size(); ++probes_) probe(plan.probes[Index<PlannedProbe>(probes_)]);
  for (; arguments_ < plan.args.size(); ++arguments_) arguments(plan.args[Index<std::vector<Arg>>(arguments_)]);
  for (; specs_ < plan.specs.size(); ++specs_) spec(plan.specs[Index<EncodedSpec>(specs_)]);
  for (; groups_ < plan.groups.size(); ++groups_) group(plan.groups[Index<AttachGroup>(groups_)]);
  if (sites_ == plan.sites.size()) return;
  std::vector<std::uint32_t> group_of(plan.sites.size());
  for (const Index<AttachGroup> number : plan.groups.indices())
    for (const Index<PlannedSite> site : plan.groups[number].sites) group_of[site.value] = number.value;
  for (; sites_ < plan.sites.size(); ++sites_) site(plan.sites[Index<PlannedSite>(sites_)], group_of[sites_]);
}

void DefinitionWriter::probe(const PlannedProbe& probe) {
  put(entry_, probe.file ? std::optional<std::uint64_t>(probe.file->value) : std::nullopt);
  entry_.text(probe.provider);
  entry_.text(probe.name);
  entry_.u8(probe.function ? static_cast<std::uint8_t>(*probe.function) : 0);
  entry_.varint(probe.distance);
  put(entry_, probe.span);
  end(Tag::probe);
}

void DefinitionWriter::arguments(const std::vector<Arg>& args) {
  entry_.varint(args.size());
  for (const Arg& arg : args) argument(arg);
  end(Tag::arguments);
}

void DefinitionWriter::argument(const Arg& arg) {
  const auto* constant = std::get_if<Constant>(&arg.location);
  entry_.varint((arg.result ? kResult : 0U) | (arg.derived ? kDerived : 0U) | (arg.hidden ? kHidden : 0U) |
                (arg.type.is_signed ? kSigned : 0U) | (arg.part_of ? kPartOf : 0U) | (arg.length ? kLength : 0U) |
                (arg.readable() ? 0U : kUnreadable) | (arg.declaration ? kDeclared : 0U) | (constant ? kConstant : 0U) |
                (arg.of_end ? kOfEnd : 0U) | (arg.counts ? kCounts : 0U) | (arg.element ? kElement : 0U));
  entry_.u8(static_cast<std::uint8_t>(arg.type.kind));
  entry_.varint(arg.type.size);
  entry_.text(arg.source);
  if (arg.part_of) entry_.u8(*arg.part_of);
  if (arg.length) entry_.u8(*arg.length);
  if (!arg.readable()) entry_.text(arg.why_unreadable());
  if (constant) entry_.varint(constant->bits);
  if (arg.declaration) {
    entry_.text(arg.declaration->name);
    entry_.text(arg.declaration->type);
    entry_.text(arg.declaration->meaning);
    entry_.text(arg.declaration->unit);
    entry_.varint(arg.declaration->enumerators.size());
    for (const Enumerator& each : arg.declaration->enumerators) {
      entry_.text(each.name);
      entry_.varint(each.bits);
    }
  }
  entry_.varint(arg.steps.size());
  for (const Step& step : arg.steps) {
    entry_.varint(step.displacement);
    entry_.text(step.if_null);
    entry_.text(step.if_unread);
  }
  if (arg.counts) {
    entry_.varint(arg.counts->most);
    entry_.varint(arg.counts->size);
    put(entry_, arg.counts->first);
  }
  if (arg.element) {
    entry_.u8(arg.element->length);
    entry_.varint(arg.element->index);
  }
}

void DefinitionWriter::spec(const EncodedSpec& spec) {
  entry_.varint(spec.user_cookie);
  entry_.varint(spec.args.size());
  for (const usdt_arg_spec& arg : spec.args) entry_.u8(arg.capture);
  end(Tag::spec);
}

void DefinitionWriter::group(const AttachGroup& group) {
  entry_.u8(static_cast<std::uint8_t>(group.moment));
  const auto* file = std::get_if<Index<PlannedFile>>(&group.of);
  put(entry_, file ? std::optional<std::uint64_t>(file->value) : std::nullopt);
  entry_.text(file ? std::string_view() : std::string_view(std::get<KernelModule>(group.of).name));
  end(Tag::group);
}

void DefinitionWriter::site(const PlannedSite& site, std::uint32_t group) {
  entry_.varint(site.probe.value);
  entry_.varint(group);
  entry_.varint(site.spec.value);
  entry_.varint(site.args.value);
  if (const auto* place = std::get_if<FilePlace>(&site.point)) {
    entry_.u8(kInFile);
    entry_.varint(place->file.value);
    entry_.varint(place->pc.value);
    entry_.varint(place->offset.value);
  } else if (const auto* function = std::get_if<KernelFunctionPlace>(&site.point)) {
    entry_.u8(kAtFunction);
    entry_.varint(function->function.value);
  } else {
    entry_.u8(kAtTracepoint);
    entry_.varint(std::get<TracepointPlace>(site.point).tracepoint.value);
  }
  put(entry_, site.span);
  end(Tag::site);
}

void DefinitionWriter::notice(const RecordedNotice& notice) {
  entry_.varint(notice.timestamp);
  entry_.text(notice.text);
  end(Tag::notice);
}

void DefinitionWriter::followed(const Followed& followed) {
  entry_.u8(static_cast<std::uint8_t>(followed.kind));
  entry_.varint(static_cast<std::uint64_t>(std::max(followed.pid, 0)));
  entry_.text(followed.file);
  for (const std::uint64_t number :
       {followed.time, static_cast<std::uint64_t>(followed.wall_time), followed.after_ns,
        std::uint64_t{followed.probes}, std::uint64_t{followed.sites}, std::uint64_t{followed.attached}})
    entry_.varint(number);
  entry_.text(followed.error);
  end(Tag::followed);
}

void DefinitionWriter::counts(std::uint32_t probe, const ProbeCounts& counts) {
  entry_.varint(probe);
  for (const std::uint64_t count : {counts.hits, counts.delivered, counts.ring_full, counts.calls_full,
                                    counts.unfinished, counts.rejected, counts.undecided, counts.discarded})
    entry_.varint(count);
  put(entry_, counts.missed);
  for (const std::uint64_t count :
       {counts.paired, counts.unmatched, counts.unpaired, counts.not_sampled, counts.held_back, counts.estimated})
    entry_.varint(count);
  end(Tag::counts);
}

void DefinitionWriter::ledger(const RecordedLedger& ledger) {
  end(Tag::ledger);
  for (std::size_t n = 0; n < ledger.probes.size(); ++n) counts(static_cast<std::uint32_t>(n), ledger.probes[n]);
  for (const MissedHits& missed : ledger.missed_hits) {
    entry_.text(to_string(missed.backend));
    put(entry_, missed.hits);
    end(Tag::missed);
  }
  for (const SkippedSite& site : ledger.skipped) {
    entry_.varint(site.probe.value);
    entry_.u8(site.pc ? 1 : 0);
    entry_.varint(site.pc ? site.pc->value : 0);
    entry_.text(site.reason);
    end(Tag::skipped);
  }
  for (const FileChange& change : ledger.changes) {
    entry_.varint(change.file.value);
    entry_.u8(static_cast<std::uint8_t>(change.kind));
    entry_.varint(change.let_go);
    end(Tag::change);
  }
  put(entry_, ledger.missed);
  entry_.varint(ledger.undecided);
  end(Tag::ledger_end);
}

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
  return layout;
}

bool Definitions::entry(Tag tag, ByteReader& in) {
  switch (tag) {
    case Tag::info: {
      if (std::exchange(has_info_, true)) return false;
      info.made_by = in.text();
      info.machine = in.text();
      info.kernel = in.text();
      string_size = static_cast<std::uint32_t>(in.up_to(kMostStringSize));
      plan.kernel_machine = machine_by_name(in.text()).value_or(Machine::x86_64);
      return true;
    }
    case Tag::string_size:
      string_size = std::max(string_size, static_cast<std::uint32_t>(in.up_to(kMostStringSize)));
      return true;
    case Tag::weight:
      weight = std::bit_cast<double>(in.varint());
      return weight >= 1 && weight <= kMostWeight;
    case Tag::owners:
      plan.owners = true;
      return true;
    case Tag::property: {
      std::string name(in.text());
      info.properties.emplace_back(std::move(name), in.text());
      return true;
    }
    case Tag::file:
      return read_file(in);
    case Tag::function: {
      PlannedFunction function;
      function.name = in.text();
      function.module = in.text();
      function.address = in.varint();
      plan.functions.add(std::move(function));
      return true;
    }
    case Tag::probe:
      return read_probe(in);
    case Tag::arguments:
      return read_arguments(in);
    case Tag::spec:
      return read_spec(in);
    case Tag::group:
      return read_group(in);
    case Tag::site:
      return read_site(in);
    case Tag::notice: {
      RecordedNotice& notice = notices.emplace_back();
      notice.timestamp = in.varint();
      notice.text = in.text();
      return true;
    }
    case Tag::followed:
      return read_followed(in);
    case Tag::ledger:
    case Tag::counts:
    case Tag::missed:
    case Tag::skipped:
    case Tag::change:
    case Tag::ledger_end:
      return read_account(tag, in);
  }
  return true;  // of a later version
}

bool Definitions::read_file(ByteReader& in) {
  PlannedFile file;
  file.target.path = std::string(in.text());
  file.target.access = file.target.path;
  file.target.deleted = in.u8() != 0;
  const auto machine = machine_by_name(in.text());
  if (!machine) return false;
  files.push_back({*machine, std::string(in.text())});
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

namespace {

bool read_declaration(ByteReader& in, Arg& arg) {
  Declaration declaration;
  declaration.name = in.text();
  declaration.type = in.text();
  declaration.meaning = in.text();
  declaration.unit = in.text();
  const std::uint64_t enumerators = in.up_to(kMostEnumerators);
  for (std::uint64_t n = 0; n < enumerators && !in.failed(); ++n) {
    Enumerator& each = declaration.enumerators.emplace_back();
    each.name = in.text();
    each.bits = in.varint();
  }
  arg.declaration = std::make_shared<const Declaration>(std::move(declaration));
  return !in.failed();
}

bool read_list_facts(ByteReader& in, unsigned flags, Arg& arg) {
  if ((flags & kCounts) != 0) {
    ElementCount& counts = arg.counts.emplace();
    counts.most = in.varint();
    counts.size = in.u32();
    const auto first = get(in);
    if (first && *first >= USDT_MAX_ARGS) return false;
    if (first) counts.first = static_cast<std::uint8_t>(*first);
    if (counts.size == 0) return false;
  }
  if ((flags & kElement) != 0) {
    ElementOf& element = arg.element.emplace();
    element.length = in.u8();
    element.index = in.varint();
  }
  return !in.failed();
}

/// Positions of other arguments are checked by who has the list.
bool read_argument(ByteReader& in, Arg& arg) {
  const std::uint64_t flags = in.varint();
  arg.result = (flags & kResult) != 0;
  arg.derived = (flags & kDerived) != 0;
  arg.hidden = (flags & kHidden) != 0;
  arg.of_end = (flags & kOfEnd) != 0;
  arg.type.is_signed = (flags & kSigned) != 0;
  arg.type.kind = static_cast<TypeKind>(in.below(static_cast<std::size_t>(TypeKind::array) + 1));
  arg.type.size = in.u32();
  arg.source = in.text();
  if ((flags & kPartOf) != 0) arg.part_of = in.u8();
  if ((flags & kLength) != 0) arg.length = in.u8();
  arg.location = Register{};
  if ((flags & kUnreadable) != 0) arg.location = Unreadable{std::string(in.text())};
  if ((flags & kConstant) != 0) arg.location = Constant{in.varint()};
  if ((flags & kDeclared) != 0 && !read_declaration(in, arg)) return false;
  const std::uint64_t steps = in.up_to(USDT_MAX_STEPS);
  for (std::uint64_t n = 0; n < steps && !in.failed(); ++n) {
    Step& step = arg.steps.emplace_back();
    step.displacement = in.varint();
    step.if_null = in.text();
    step.if_unread = in.text();
  }
  return !in.failed() && read_list_facts(in, static_cast<unsigned>(flags), arg);
}

/// What is said of lists: that a number is their length, and, of that, that it is in a list itself, goes to earlier
/// lengths only, so that nothing is within itself.
bool has_list_facts_in_order(const std::vector<Arg>& args, std::size_t n) {
  const auto is_length = [&](std::size_t position, std::size_t limit) {
    return position < limit && args[position].counts.has_value();
  };
  const Arg& arg = args[n];
  if (arg.is_list() && !is_length(*arg.length, args.size())) return false;
  if (arg.element && !is_length(arg.element->length, arg.counts ? n : args.size())) return false;
  if (!arg.counts || !arg.counts->first) return true;
  if (*arg.counts->first >= args.size()) return false;
  const Arg& first = args[*arg.counts->first];
  return !first.counts && (!first.element || is_length(first.element->length, n));
}

/// What Event takes for granted of a value that can be read: the planner lets no other size through.
bool has_value_size(const Arg& arg) {
  const std::uint32_t size = arg.type.size;
  if (!arg.readable()) return !arg.why_unreadable().empty();
  if (arg.type.is_float()) return size == sizeof(float) || size == sizeof(double);
  return size >= 1 && size <= sizeof(std::uint64_t);
}

}  // namespace

bool Definitions::read_arguments(ByteReader& in) {
  const std::uint64_t count = in.up_to(USDT_MAX_ARGS);
  std::vector<Arg> args;
  for (std::uint64_t n = 0; n < count; ++n) {
    if (!read_argument(in, args.emplace_back())) return false;
    const Declaration* declaration = args.back().declaration.get();
    parts_ += 1 + args.back().steps.size() + (declaration ? declaration->enumerators.size() : 0);
    if (!has_value_size(args.back())) return false;
    // Members come behind what they are part of, so that nothing is part of itself.
    if (args.back().part_of && *args.back().part_of >= n) return false;
    if (args.back().length && *args.back().length >= count) return false;
  }
  for (std::size_t n = 0; n < args.size(); ++n)
    if (!has_list_facts_in_order(args, n)) return false;
  plan.args.add(std::move(args));
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

bool Definitions::read_account(Tag tag, ByteReader& in) {
  if (tag == Tag::ledger) {
    open_ledger_.emplace();
    return true;
  }
  if (!open_ledger_) return false;
  switch (tag) {
    case Tag::counts: {
      // In their order, so that the time this takes is bounded by what was read.
      if (in.below(plan.probes.size()) != open_ledger_->probes.size() || in.failed()) return false;
      ProbeCounts& counts = open_ledger_->probes.emplace_back();
      for (std::uint64_t* count : {&counts.hits, &counts.delivered, &counts.ring_full, &counts.calls_full,
                                   &counts.unfinished, &counts.rejected, &counts.undecided, &counts.discarded})
        *count = in.varint();
      counts.missed = get(in);
      if (in.at_end()) return true;  // of a version without spans
      for (std::uint64_t* count : {&counts.paired, &counts.unmatched, &counts.unpaired}) *count = in.varint();
      if (in.at_end()) return true;  // of one without guards
      for (std::uint64_t* count : {&counts.not_sampled, &counts.held_back}) *count = in.varint();
      if (in.at_end()) return true;  // of one without limits of what a trace costs
      counts.estimated = in.varint();
      return true;
    }
    case Tag::missed: {
      const auto backend = backend_by_name(in.text());
      const auto hits = get(in);
      if (backend) open_ledger_->missed_hits.push_back({.backend = *backend, .hits = hits, .probes = {}});
      return true;
    }
    case Tag::skipped: {
      SkippedSite& site = open_ledger_->skipped.emplace_back();
      site.probe = Index<PlannedProbe>(in.below(plan.probes.size()));
      const bool has_pc = in.u8() != 0;
      const VirtAddr pc(in.varint());
      if (has_pc) site.pc = pc;
      site.reason = in.text();
      return true;
    }
    case Tag::change: {
      FileChange& change = open_ledger_->changes.emplace_back();
      change.file = Index<PlannedFile>(in.below(plan.files.size()));
      change.kind = static_cast<FileChangeKind>(in.below(static_cast<std::size_t>(FileChangeKind::removed) + 1));
      change.let_go = in.varint();
      return true;
    }
    case Tag::ledger_end:
      open_ledger_->missed = get(in);
      open_ledger_->undecided = in.varint();
      ledger = std::exchange(open_ledger_, std::nullopt);
      return true;
    default:
      return false;
  }
}

}  // namespace usdt::record
