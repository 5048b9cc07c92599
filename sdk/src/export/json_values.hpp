// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "export/frames.hpp"
#include "io/json.hpp"

namespace usdt::exports {

/// Values as JSON (docs/json.md; value_tree.hpp: TreeWriter).
class JsonValues {
 public:
  explicit JsonValues(io::JsonWriter& json) : json_(json) {}

  void begin_object() { json_.StartObject(); }
  void member(std::string_view name) { io::json_key(json_, name); }
  void end_object() { json_.EndObject(); }
  void begin_list() { json_.StartArray(); }
  void end_list() { json_.EndArray(); }
  void whole(std::int64_t number) { json_.Int64(number); }
  void natural(std::uint64_t number) { json_.Uint64(number); }
  void real(double number) { io::json_real(json_, number); }
  void text(std::string_view text) { io::json_text(json_, text); }
  void cut_text(std::string_view text) {
    truncated.push_back(position);
    io::json_text(json_, text);
  }
  void error(std::string_view reason) {
    json_.StartObject();
    io::json_key(json_, "error"), io::json_text(json_, reason);
    json_.EndObject();
  }
  void frames(const Stack& stack) { write_frames(json_, stack); }

  unsigned position = 0;            ///< of the value among "args",
  std::vector<unsigned> truncated;  ///< and those that are strings cut at the string size

 private:
  io::JsonWriter& json_;
};

}  // namespace usdt::exports
