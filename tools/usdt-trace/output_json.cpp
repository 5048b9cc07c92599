// SPDX-License-Identifier: BSD-2-Clause
// The JSON contract of usdt-trace, version 1: one object a line (docs/json.md).
#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>

#include "common/utf8.hpp"
#include "output.hpp"

namespace usdt_trace {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void put(Writer& json, std::string_view text) {
  json.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}
void key(Writer& json, std::string_view name) { json.Key(name.data(), static_cast<rapidjson::SizeType>(name.size())); }

class JsonOutput final : public Output {
 public:
  JsonOutput(const usdt::AttachPlan& plan, const PrintList& print) : print_(print), json_(out_) {
    for (const usdt::PlannedProbe& probe : plan.probes) names_.push_back(full_name(plan, probe));
    for (const usdt::PlannedSite& site : plan.sites) pcs_.push_back(fmt::format("{:#x}", site.pc.value));
  }

  void event(const usdt::Event& event) override {
    json_.Reset(out_);
    json_.StartObject();
    head("event");
    key(json_, "ts"), json_.Uint64(event.timestamp());
    key(json_, "cpu"), json_.Uint(event.cpu());
    key(json_, "pid"), json_.Uint(event.pid());
    key(json_, "tid"), json_.Uint(event.tid());
    key(json_, "comm"), put_text(event.comm());
    key(json_, "probe"), put(json_, names_[event.site().probe]);
    key(json_, "pc"), put(json_, pcs_[event.site_number()]);
    key(json_, "args"), args(event);
    // Which of args are strings cut at the string size.
    if (!truncated_.empty()) {
      key(json_, "truncated"), json_.StartArray();
      for (const unsigned n : truncated_) json_.Uint(n);
      json_.EndArray();
    }
    json_.EndObject();
    out_.Put('\n');
  }

  void summary(const Summary& summary) override {
    json_.Reset(out_);
    json_.StartObject();
    head("summary");
    counts(summary.total());
    key(json_, "probes"), json_.StartArray();
    for (std::size_t i = 0; i < summary.probes.size(); ++i) {
      json_.StartObject();
      key(json_, "probe"), put(json_, names_[i]);
      counts(summary.probes[i]);
      json_.EndObject();
    }
    json_.EndArray();
    key(json_, "skipped"), json_.StartArray();
    for (const usdt::SkippedSite& site : summary.skipped) {
      json_.StartObject();
      key(json_, "probe"), put(json_, names_[site.probe]);
      key(json_, "pc"), put(json_, fmt::format("{:#x}", site.pc.value));
      key(json_, "reason"), put_text(site.reason);
      json_.EndObject();
    }
    json_.EndArray();
    json_.EndObject();
    out_.Put('\n');
  }

  bool flush() override {
    const bool written = write_out({out_.GetString(), out_.GetSize()});
    out_.Clear();
    return written;
  }

 private:
  void head(std::string_view type) {
    key(json_, "v"), json_.Uint(1);
    key(json_, "type"), put(json_, type);
  }

  void counts(const usdt::ProbeCounts& counts) {
    key(json_, "events"), json_.Uint64(counts.delivered);
    key(json_, "hits"), json_.Uint64(counts.hits);
    key(json_, "lost"), json_.StartObject();
    key(json_, "ring_full"), json_.Uint64(counts.ring_full);
    key(json_, "discarded"), json_.Uint64(counts.discarded);
    json_.EndObject();
  }

  /// Text of a traced program may be any bytes; a JSON string may not.
  void put_text(std::string_view text) {
    usdt::tools::is_utf8(text) ? put(json_, text) : put(json_, usdt::tools::replace_invalid_utf8(text));
  }

  void args(const usdt::Event& event) {
    truncated_.clear();
    json_.StartArray();
    if (print_.empty()) {
      for (std::size_t n = 0; n < event.arg_count(); ++n) value(event, n);
    }
    for (std::size_t i = 0; i < print_.size(); ++i) {
      const PrintItem& item = print_[i];
      if (item.form == PrintItem::Form::text)
        text(event, item.arg, static_cast<unsigned>(i));
      else if (item.form == PrintItem::Form::hex)
        hex(event, item.arg);
      else
        value(event, item.arg);
    }
    json_.EndArray();
  }

  void error(std::string_view reason) {
    ++unreadable_;
    json_.StartObject();
    key(json_, "error"), put_text(reason);
    json_.EndObject();
  }

  void value(const usdt::Event& event, std::size_t n) {
    const usdt::Value value = event.value(n);
    if (const auto* none = std::get_if<usdt::ArgError>(&value)) return error(none->reason);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) {
      json_.Int64(*whole);
    } else if (const auto* natural = std::get_if<std::uint64_t>(&value)) {
      json_.Uint64(*natural);
    } else {
      real(std::get<double>(value));
    }
  }

  /// JSON has no word for these three.
  void real(double number) {
    if (std::isfinite(number))
      json_.Double(number);
    else
      put(json_, std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
  }

  void hex(const usdt::Event& event, std::size_t n) {
    const usdt::Value value = event.value(n);
    if (const auto* none = std::get_if<usdt::ArgError>(&value)) return error(none->reason);
    if (const auto* number = std::get_if<double>(&value)) return real(*number);
    const unsigned spare = 64 - 8 * event.arg_info(n).size;
    const auto* whole = std::get_if<std::int64_t>(&value);
    const std::uint64_t bits = whole ? static_cast<std::uint64_t>(*whole) : std::get<std::uint64_t>(value);
    put(json_, fmt::format("{:#x}", bits << spare >> spare));
  }

  void text(const usdt::Event& event, std::size_t n, unsigned position) {
    auto text = event.text(n);
    if (!text) return error(text.error().message);
    if (text->truncated) truncated_.push_back(position);
    put_text(text->truncated ? usdt::tools::without_partial_utf8(text->bytes) : text->bytes);
  }

  const PrintList& print_;
  std::vector<std::string> names_;
  std::vector<std::string> pcs_;
  std::vector<unsigned> truncated_;
  rapidjson::StringBuffer out_;
  Writer json_;
};

}  // namespace

std::unique_ptr<Output> json_output(const usdt::AttachPlan& plan, const PrintList& print) {
  return std::make_unique<JsonOutput>(plan, print);
}

}  // namespace usdt_trace
