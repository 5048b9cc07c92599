// SPDX-License-Identifier: BSD-2-Clause
// Attributes of OpenTelemetry's protocol: names with values that may lie within each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/otlp_fields.hpp"
#include "usdt/stack.hpp"

namespace usdt::exports::otlp {

/// The attributes of one thing, encoded (value_tree.hpp: TreeWriter).
class AttributeWriter {
 public:
  /// Begins an attribute; one value follows.
  void begin(std::string_view name) { name_ = name; }
  /// Adds one.
  void add(std::string_view name, std::string_view value) { begin(name), text(value); }
  void add(std::string_view name, std::int64_t value) { begin(name), whole(value); }
  /// Returns whether there is one of this name.
  [[nodiscard]] bool has(std::string_view name) const;

  void begin_object() { levels_.push_back({}); }
  void member(std::string_view name) { levels_.back().name = name; }
  void end_object() { end(AnyValue::object); }
  void begin_list() { levels_.push_back({.is_list = true}); }
  void end_list() { end(AnyValue::array); }
  void whole(std::int64_t number);
  /// Numbers beyond what an attribute has are text.
  void natural(std::uint64_t number);
  void real(double number);
  void text(std::string_view text);
  void cut_text(std::string_view text);
  /// A value that could not be read is no value: the attribute "NAME.error" says why.
  void error(std::string_view reason);
  void frames(const Stack& stack);

  /// Adds the attributes to a message, and has none any more.
  template <class Builder, class Tag>
  void take(Builder& message, Tag tag) {
    for (const std::string& each : attributes_) message.add_message(tag, each);
    attributes_.clear();
  }

 private:
  /// A list or an object that has not ended.
  struct Level {
    bool is_list = false;
    std::string name = {};     ///< of the member at hand
    std::string encoded = {};  ///< its values so far
  };

  /// Adds an AnyValue.
  void put(const std::string& value);
  void end(AnyValue kind);

  std::string name_;
  std::vector<Level> levels_;
  std::vector<std::string> attributes_;  ///< KeyValues
};

}  // namespace usdt::exports::otlp
