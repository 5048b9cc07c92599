// SPDX-License-Identifier: BSD-2-Clause
#include "export/profile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "export/frames.hpp"
#include "export/pprof_fields.hpp"
#include "io/escape.hpp"

namespace usdt::exports::pprof {
namespace {

using protozero::pbf_builder;

constexpr std::size_t kNode = 64;  ///< bytes that an entry of a map takes beside what it has, about

/// Numbers of samples are integers.
std::int64_t whole(double number) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (std::isnan(number)) return 0;
  if (number >= static_cast<double>(kMost)) return kMost;
  if (number <= -static_cast<double>(kMost)) return -kMost;
  return std::llround(number);
}

/// Profiles have the address of a call, of which that behind it is known.
std::uint64_t call_address(const Frame& frame) { return frame.address.value - (frame.return_address ? 1 : 0); }

std::string module_of(const Frame& frame) {
  if (!frame.kernel) return frame.module;
  return frame.module.empty() ? "[kernel.kallsyms]" : "[" + frame.module + "]";
}

/// Code of a file may get its name elsewhere. Other code, and what is between frames, has a reason in its place.
std::string name_of(const Frame& frame) {
  if (!frame.function.empty() || !module_of(frame).empty()) return frame.function;
  return frame.issue == FrameIssue::none ? "[unknown]" : "[" + issue_text(frame) + "]";
}

bool is_loaded_by_programs(const std::string& name) {
  return name.starts_with('[') || name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

void add_type(pbf_builder<Profile>& profile, Profile field, std::int64_t type, std::int64_t unit) {
  pbf_builder<ValueType> added(profile, field);
  added.add_int64(ValueType::type, type);
  added.add_int64(ValueType::unit, unit);
}

}  // namespace

std::int64_t ProfileBuilder::number_of(std::string_view text, io::Escapes escapes) {
  if (text.empty()) return 0;
  const std::string safe = io::with_escapes(text, escapes);
  return number_in(strings_, safe, safe.size() + kNode);
}

ProfileBuilder::Id ProfileBuilder::function_of(const Frame& frame) {
  const std::int64_t line = frame.definition_line;
  return number_in(functions_, std::tuple(number_of(name_of(frame)), number_of(frame.source), line), 2 * kNode);
}

ProfileBuilder::MappedFile* ProfileBuilder::mapping_of(const Frame& frame) {
  const std::string name = module_of(frame);
  const std::uint64_t start = frame.offset ? frame.address.value - frame.offset->value : 0;
  const MappingKey key{is_loaded_by_programs(name), name, frame.build_id, start};
  if (!mappings_.contains(key) && !take_room(name.size() + 2 * kNode)) return nullptr;
  return &mappings_.try_emplace(key, MappedFile{.id = mappings_.size() + 1, .first = call_address(frame)})
              .first->second;
}

ProfileBuilder::Id ProfileBuilder::location_of(const Frame& frame, const std::vector<LineKey>& lines) {
  MappedFile* const mapping = module_of(frame).empty() ? nullptr : mapping_of(frame);
  if (mapping != nullptr) {
    mapping->first = std::min(mapping->first, call_address(frame));
    mapping->limit = std::max(mapping->limit, frame.address.value + 1);
    mapping->has_functions &= !frame.function.empty();
    mapping->has_filenames &= !frame.source.empty();
    mapping->has_lines &= frame.line > 0;
    mapping->has_inlined |= lines.size() > 1;
  }
  const LocationKey key(mapping != nullptr ? mapping->id : 0, call_address(frame), lines);
  return number_in(locations_, key, lines.size() * sizeof(LineKey) + kNode);
}

/// Inlined functions come before the one they are in, and are lines of one place with it.
void ProfileBuilder::add_frames(const Stack& stack) {
  std::vector<LineKey> lines;
  for (const Frame& frame : stack.frames) {
    if (!name_of(frame).empty()) lines.emplace_back(function_of(frame), frame.line);
    if (!frame.inlined) stack_.push_back(location_of(frame, std::exchange(lines, {})));
  }
}

void ProfileBuilder::add_reason(std::string_view reason) {
  Frame frame;
  frame.function = "[" + std::string(reason) + "]";
  stack_.push_back(location_of(frame, {{function_of(frame), 0}}));
}

bool ProfileBuilder::add_sample(const std::vector<SampleLabel>& labels, const Numbers& numbers) {
  if (stack_.empty()) add_reason("no stack");
  if (found_no_room_) return false;
  SampleKey key(stack_, labels);
  std::size_t bytes = kNode + stack_.size() * sizeof(Id);
  for (const SampleLabel& label : labels) bytes += 2 * kNode + label.name.size();
  if (!samples_.contains(key) && !take_room(bytes)) return false;
  Numbers& sample = samples_[std::move(key)];
  sample.hits += numbers.hits;
  sample.sum += numbers.sum;
  return true;
}

std::string ProfileBuilder::encode(const About& about) {
  begin_stack();
  room_ = std::numeric_limits<std::size_t>::max();  // for texts that go with all samples
  std::string encoded;
  pbf_builder<Profile> profile(encoded);
  for (const NumberType& each : about.types)
    add_type(profile, Profile::sample_type, number_of(each.type, io::Escapes::controls), number_of(each.unit));
  for (const auto& [key, numbers] : samples_) add_sample_to(profile, key, numbers, about.types.size());
  for (const auto& [key, mapping] : mappings_) add_mapping_to(profile, key, mapping);
  for (const auto& [key, id] : locations_) {
    const auto& [mapping, address, lines] = key;
    pbf_builder<Location> location(profile, Profile::location);
    location.add_uint64(Location::id, id);
    location.add_uint64(Location::mapping_id, mapping);
    location.add_uint64(Location::address, address);
    for (const auto& [function, number] : lines) {
      pbf_builder<Line> line(location, Location::line);
      line.add_uint64(Line::function_id, function);
      line.add_int64(Line::line, number);
    }
  }
  for (const auto& [key, id] : functions_) {
    const auto& [name, file, line] = key;
    pbf_builder<Function> function(profile, Profile::function);
    function.add_uint64(Function::id, id);
    function.add_int64(Function::name, name);
    function.add_int64(Function::system_name, name);
    function.add_int64(Function::filename, file);
    function.add_int64(Function::start_line, line);
  }
  for (const std::string& comment : about.comments) profile.add_int64(Profile::comment, number_of(comment));
  if (about.began != 0) {
    profile.add_int64(Profile::time_nanos, about.began);
    profile.add_int64(Profile::duration_nanos, about.took);
  }
  add_type(profile, Profile::period_type, number_of(about.types.front().type), number_of(about.types.front().unit));
  profile.add_int64(Profile::period, static_cast<std::int64_t>(about.period));
  profile.add_int64(Profile::default_sample_type, number_of(about.types.back().type, io::Escapes::controls));
  add_strings_to(profile);
  return encoded;
}

void ProfileBuilder::add_sample_to(pbf_builder<Profile>& profile, const SampleKey& key, const Numbers& numbers,
                                   std::size_t types) {
  pbf_builder<Sample> sample(profile, Profile::sample);
  sample.add_packed_uint64(Sample::location_ids, key.first.begin(), key.first.end());
  const std::array values{whole(numbers.hits), whole(numbers.sum)};
  sample.add_packed_int64(Sample::values, values.begin(), values.begin() + static_cast<std::ptrdiff_t>(types));
  for (const SampleLabel& each : key.second) {
    pbf_builder<Label> label(sample, Sample::label);
    label.add_int64(Label::key, number_of(each.name, io::Escapes::controls));
    if (const auto* text = std::get_if<std::string>(&each.value))
      label.add_int64(Label::text, number_of(*text));
    else
      label.add_int64(Label::number, std::get<std::int64_t>(each.value));
  }
}

void ProfileBuilder::add_mapping_to(pbf_builder<Profile>& profile, const MappingKey& key, const MappedFile& mapping) {
  pbf_builder<Mapping> added(profile, Profile::mapping);
  added.add_uint64(Mapping::id, mapping.id);
  added.add_uint64(Mapping::start, key.start != 0 ? key.start : mapping.first);
  added.add_uint64(Mapping::limit, mapping.limit);
  // Programs open it by this name, in which a backslash is one ("dev-disk\\x2duuid").
  added.add_int64(Mapping::filename, number_of(key.name, io::Escapes::controls));
  added.add_int64(Mapping::build_id, number_of(key.build_id));
  added.add_bool(Mapping::has_functions, mapping.has_functions);
  added.add_bool(Mapping::has_filenames, mapping.has_filenames);
  added.add_bool(Mapping::has_line_numbers, mapping.has_lines);
  added.add_bool(Mapping::has_inline_frames, mapping.has_inlined);
}

/// By their numbers: the last thing, when all are known.
void ProfileBuilder::add_strings_to(pbf_builder<Profile>& profile) const {
  std::vector<std::string_view> by_number(strings_.size() + 1);
  for (const auto& [text, number] : strings_) by_number[static_cast<std::size_t>(number)] = text;
  for (const std::string_view text : by_number) profile.add_string(Profile::string, text.data(), text.size());
}

}  // namespace usdt::exports::pprof
