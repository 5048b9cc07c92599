// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <bit>

#include "record/count_places.hpp"
#include "record/definition_codes.hpp"
#include "record/definitions.hpp"
#include "usdt/elf_file.hpp"

namespace usdt::record {
namespace {

/// A block of entries is ended once it is so large.
constexpr std::size_t kEnough = 256U << 10;

/// Writes the values at both ends of a span, if it is one.
template <class T>
void put(ByteWriter& out, const std::optional<FromTo<T>>& span) {
  if (!span) return;
  out.varint(span->begin.value);
  out.varint(span->end.value);
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
  if (layout.owners) {
    if (layout.parents) entry_.u8(1);
    end(Tag::owners);
  }
  if (layout.enders) end(Tag::enders);
  if (layout.contexts) end(Tag::contexts);
  if (layout.attributes) end(Tag::attributes);
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
                (arg.of_end ? kOfEnd : 0U) | (arg.counts ? kCounts : 0U) | (arg.element ? kElement : 0U) |
                (arg.alternative ? kAlternative : 0U));
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
  if (arg.alternative) {
    entry_.u8(arg.alternative->discriminant);
    entry_.text(arg.alternative->reason);
    entry_.u8(arg.alternative->values.others ? 1 : 0);
    entry_.varint(arg.alternative->values.ranges.size());
    for (const auto& [first, last] : arg.alternative->values.ranges) {
      entry_.varint(first);
      entry_.varint(last);
    }
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
  for (const CountInfo* count : recorded_counts()) {
    entry_.varint(counts.*count->member);
    if (count->recorded == kLastBeforeMissed) put(entry_, counts.missed);
  }
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

}  // namespace usdt::record
