// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string_view>

#include "io/json.hpp"
#include "io/stream.hpp"

namespace usdt_list {

/// One line: {"v":1,"type":TYPE, and what is added until it is destroyed.
class JsonLine {
 public:
  JsonLine(usdt::io::Stream& out, std::string_view type) : out_(out), json_(buffer_) {
    json_.StartObject();
    usdt::io::json_key(json_, "v");
    json_.Uint(1);
    text("type", type);
  }
  JsonLine(const JsonLine&) = delete;
  JsonLine& operator=(const JsonLine&) = delete;
  ~JsonLine() {
    json_.EndObject();
    out_.json({buffer_.GetString(), buffer_.GetSize()});
  }

  void text(std::string_view key, std::string_view value) {
    usdt::io::json_key(json_, key);
    usdt::io::json_text(json_, value);
  }
  void text_or_null(std::string_view key, std::string_view value) {
    usdt::io::json_key(json_, key);
    usdt::io::json_text_or_null(json_, value);
  }
  template <class Texts>
  void texts(std::string_view key, const Texts& values) {
    usdt::io::json_key(json_, key);
    json_.StartArray();
    for (const std::string_view each : values) usdt::io::json_text(json_, each);
    json_.EndArray();
  }
  void number(std::string_view key, std::uint32_t value) {
    usdt::io::json_key(json_, key);
    json_.Uint(value);
  }
  void truth(std::string_view key, bool value) {
    usdt::io::json_key(json_, key);
    json_.Bool(value);
  }

 private:
  usdt::io::Stream& out_;
  rapidjson::StringBuffer buffer_;
  usdt::io::JsonWriter json_;
};

}  // namespace usdt_list
