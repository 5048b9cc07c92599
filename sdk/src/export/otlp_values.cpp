// SPDX-License-Identifier: BSD-2-Clause
#include "export/otlp_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "export/frames.hpp"
#include "io/escape.hpp"

namespace usdt::exports::otlp {
namespace {

using protozero::pbf_builder;

std::string key_value(std::string_view name, const std::string& value) {
  std::string encoded;
  pbf_builder<KeyValue> pair(encoded);
  pair.add_string(KeyValue::key, io::valid_utf8(name));
  pair.add_message(KeyValue::value, value);
  return encoded;
}

/// An AnyValue, whose field `add` adds.
template <class Add>
std::string any_value(const Add& add) {
  std::string encoded;
  pbf_builder<AnyValue> value(encoded);
  add(value);
  return encoded;
}

}  // namespace

bool AttributeWriter::has(std::string_view name) const {
  std::string beginning;
  pbf_builder<KeyValue>(beginning).add_string(KeyValue::key, io::valid_utf8(name));
  return std::ranges::any_of(attributes_, [&](const std::string& each) { return each.starts_with(beginning); });
}

void AttributeWriter::put(const std::string& value) {
  if (levels_.empty()) {
    attributes_.push_back(key_value(name_, value));
    return;
  }
  Level& level = levels_.back();
  pbf_builder<Values>(level.encoded).add_message(Values::value, level.is_list ? value : key_value(level.name, value));
}

void AttributeWriter::end(AnyValue kind) {
  const Level level = std::move(levels_.back());
  levels_.pop_back();
  put(any_value([&](auto& value) { value.add_message(kind, level.encoded); }));
}

void AttributeWriter::whole(std::int64_t number) {
  put(any_value([&](auto& value) { value.add_int64(AnyValue::whole, number); }));
}

void AttributeWriter::natural(std::uint64_t number) {
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return text(std::to_string(number));
  whole(static_cast<std::int64_t>(number));
}

void AttributeWriter::real(double number) {
  put(any_value([&](auto& value) { value.add_double(AnyValue::real, number); }));
}

void AttributeWriter::text(std::string_view text) {
  put(any_value([&](auto& value) { value.add_string(AnyValue::text, io::valid_utf8(text)); }));
}

void AttributeWriter::cut_text(std::string_view text) {
  put(any_value([&](auto& value) { value.add_string(AnyValue::text, io::valid_utf8(text) + "..."); }));
}

void AttributeWriter::error(std::string_view reason) {
  if (!levels_.empty()) return text(fmt::format("<{}>", reason));
  name_ += ".error";
  text(reason);
}

void AttributeWriter::frames(const Stack& stack) {
  std::string lines;
  for (const std::string& line : frame_texts(stack))
    lines.append(lines.empty() ? "" : "\n").append(io::valid_utf8(line));
  put(any_value([&](auto& value) { value.add_string(AnyValue::text, lines); }));
}

}  // namespace usdt::exports::otlp
