// SPDX-License-Identifier: BSD-2-Clause
#include "doctor.hpp"
#include "io/json.hpp"

namespace usdt_list {
namespace {

using usdt::io::json_key;
using usdt::io::json_text;
using usdt::io::JsonWriter;

/// One line: {"v":1,"type":TYPE, and what is added until it is destroyed.
class Line {
 public:
  Line(usdt::io::Stream& out, std::string_view type) : out_(out), json_(buffer_) {
    json_.StartObject();
    json_key(json_, "v");
    json_.Uint(1);
    text("type", type);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    json_.EndObject();
    out_.json({buffer_.GetString(), buffer_.GetSize()});
  }

  void text(std::string_view key, std::string_view value) {
    json_key(json_, key);
    json_text(json_, value);
  }
  void text_or_null(std::string_view key, std::string_view value) {
    json_key(json_, key);
    usdt::io::json_text_or_null(json_, value);
  }
  void texts(std::string_view key, const std::vector<std::string_view>& values) {
    json_key(json_, key);
    json_.StartArray();
    for (const std::string_view each : values) json_text(json_, each);
    json_.EndArray();
  }
  void number(std::string_view key, std::uint32_t value) {
    json_key(json_, key);
    json_.Uint(value);
  }
  void truth(std::string_view key, bool value) {
    json_key(json_, key);
    json_.Bool(value);
  }

 private:
  usdt::io::Stream& out_;
  rapidjson::StringBuffer buffer_;
  JsonWriter json_;
};

void write_features(const Diagnosis& all, usdt::io::Stream& out) {
  for (const usdt::FeatureState& each : all.features) {
    Line line(out, "feature");
    line.text("name", to_string(each.feature));
    line.text("answer", to_string(each.answer));
    line.text("detail", each.detail);
    line.text("since", feature_info(each.feature).since);
    line.text_or_null("commit", feature_info(each.feature).commit);
  }
}

void write_tracing(const Diagnosis& all, usdt::io::Stream& out) {
  {
    Line line(out, "privilege");
    line.text("answer", all.privilege ? "yes" : "no");
    line.text_or_null("detail", all.privilege ? "" : all.privilege.error().message);
    line.text("perf_uprobe", all.perf_privilege ? "yes" : "no");
  }
  Line line(out, "backend");
  line.text_or_null("name", all.backend ? to_string(*all.backend) : "");
  line.text_or_null("detail", all.backend ? "" : all.backend.error().message);
}

void write_rights(const Diagnosis& all, usdt::io::Stream& out) {
  for (const usdt::Right& each : all.rights) {
    Line line(out, "right");
    line.text("purpose", each.purpose);
    line.texts("needs", each.needs);
    line.texts("lacks", each.lacks);
  }
}

void write_red_zone(const Diagnosis& all, usdt::io::Stream& out) {
  for (const usdt::RedZoneTest& test : all.red_zone) {
    Line line(out, "red_zone");
    line.text("nop", to_string(test.form));
    line.text("intact", to_string(test.intact));
    line.text_or_null("cost", test.cost ? to_string(*test.cost) : "");
    line.number("calls", test.calls);
    line.number("overwritten", test.overwritten);
    line.text("detail", test.detail);
  }
  for (const Verdict& verdict : all.verdicts) {
    Line line(out, "verdict");
    line.text("nop", to_string(verdict.form));
    line.truth("known", verdict.known);
    line.truth("used", verdict.used);
    line.text("text", verdict.text);
  }
}

}  // namespace

void print_diagnosis_json(const Diagnosis& diagnosis, usdt::io::Stream& out) {
  {
    Line line(out, "kernel");
    line.text("release", diagnosis.release);
    line.text("machine", diagnosis.machine);
  }
  write_features(diagnosis, out);
  write_tracing(diagnosis, out);
  write_rights(diagnosis, out);
  write_red_zone(diagnosis, out);
}

}  // namespace usdt_list
