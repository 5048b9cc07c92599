// SPDX-License-Identifier: BSD-2-Clause
// An explanation as JSON (docs/json.md).
#include <fmt/format.h>

#include "explain.hpp"
#include "io/json.hpp"

namespace usdt_trace {
namespace {

using usdt::io::json_key;
using usdt::io::json_text;
using usdt::io::json_text_or_null;
using usdt::io::JsonWriter;

std::string_view role_text(usdt::ExplainedSites::Role role) noexcept {
  switch (role) {
    case usdt::ExplainedSites::Role::point:
      return "point";
    case usdt::ExplainedSites::Role::begin:
      return "begin";
    case usdt::ExplainedSites::Role::end:
      return "end";
    case usdt::ExplainedSites::Role::span:
      return "span";
  }
  return {};
}

class JsonExplanation {
 public:
  JsonExplanation(const usdt::Explanation& what, const Flags& flags, usdt::io::Stream& out)
      : what_(what), flags_(flags), out_(out), json_(object_) {}

  void write() {
    for (const usdt::ExplainedSites& each : what_.sites) {
      begin("explained_sites");
      sites(each);
      end();
    }
    begin("explanation");
    rest();
    end();
  }

 private:
  void begin(std::string_view type) {
    object_.Clear();
    json_.Reset(object_);
    json_.StartObject();
    json_key(json_, "v"), json_.Uint(1);
    json_key(json_, "type"), json_text(json_, type);
    if (!flags_.question.name.empty()) text("question", flags_.question.name);
  }

  void end() {
    json_.EndObject();
    out_.json({object_.GetString(), object_.GetSize()});
    out_.flush_if_full();
  }

  void text(std::string_view key, std::string_view value) { json_key(json_, key), json_text(json_, value); }
  void number(std::string_view key, std::size_t value) { json_key(json_, key), json_.Uint64(value); }

  void probe(usdt::Index<usdt::PlannedProbe> probe) { text("probe", full_name(what_.plan, what_.plan.probes[probe])); }

  void pc(const std::optional<usdt::VirtAddr>& pc) { pc ? usdt::io::json_hex(json_, pc->value) : void(json_.Null()); }

  void sites(const usdt::ExplainedSites& each) {
    probe(each.probe);
    text("role", role_text(each.role));
    number("sites", each.sites.size());
    if (each.role != usdt::ExplainedSites::Role::span) {
      json_key(json_, "pcs"), json_.StartArray();
      for (const auto site : each.sites) pc(pc_of(what_.plan, what_.plan.sites[site]));
      json_.EndArray();
      json_key(json_, "cost"), json_text_or_null(json_, each.cost_class);
      text("cost_text", each.cost);
      json_key(json_, "estimated_ns"), each.estimate ? json_.Uint(*each.estimate) : json_.Null();
    }
    json_key(json_, "recorded"), json_.Bool(each.recorded);
    json_key(json_, "values"), json_.StartArray();
    for (const usdt::ExplainedValue& value : each.values) this->value(value);
    json_.EndArray();
    json_key(json_, "asked"), json_.StartArray();
    for (const usdt::ExplainedQuestion& question : each.questions) {
      json_.StartObject();
      text("about", question.about);
      text("text", question.text);
      if (!question.type.empty()) text("type", question.type);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void value(const usdt::ExplainedValue& value) {
    json_.StartObject();
    text("name", value.name);
    text("type", value.type);
    if (value.unreadable.empty())
      text("where", value.where);
    else
      text("error", value.unreadable);
    number("reads", value.reads);
    if (!value.text.empty()) text("text", value.text);
    json_.EndObject();
  }

  void rest() {
    text("kernel", what_.kernel);
    json_key(json_, "assumed"), json_.StartArray();
    for (const std::string& each : what_.assumed) json_text(json_, each);
    json_.EndArray();
    json_key(json_, "no_privilege"), json_text_or_null(json_, what_.no_privilege);
    json_key(json_, "others_pay"), json_text_or_null(json_, what_.others_pay);
    text("carriers", what_.carriers);
    json_key(json_, "links"), json_.StartArray();
    for (const usdt::ExplainedLinks& each : what_.links) {
      json_.StartObject();
      text("backend", to_string(each.backend));
      number("links", each.links);
      number("programs", each.programs);
      number("sites", each.sites);
      json_.EndObject();
    }
    json_.EndArray();
    json_key(json_, "refused"), json_.StartArray();
    for (const usdt::ExplainedRefusal& refusal : what_.refused) {
      for (const auto& [number, at] : refusal.sites) {
        json_.StartObject();
        probe(number);
        json_key(json_, "pc"), pc(at);
        text("reason", refusal.reason);
        json_.EndObject();
      }
    }
    json_.EndArray();
  }

  const usdt::Explanation& what_;
  const Flags& flags_;
  usdt::io::Stream& out_;
  rapidjson::StringBuffer object_;
  JsonWriter json_;
};

}  // namespace

void write_json(const usdt::Explanation& explanation, const Flags& flags, usdt::io::Stream& out) {
  JsonExplanation(explanation, flags, out).write();
}

}  // namespace usdt_trace
