// SPDX-License-Identifier: BSD-2-Clause
#include "doctor.hpp"
#include "json_line.hpp"

namespace usdt_list {
namespace {

void write_features(const Diagnosis& all, usdt::io::Stream& out) {
  for (const usdt::FeatureState& each : all.features) {
    JsonLine line(out, "feature");
    line.text("name", to_string(each.feature));
    line.text("answer", to_string(each.answer));
    line.text("detail", each.detail);
    line.text("since", feature_info(each.feature).since);
    line.text_or_null("commit", feature_info(each.feature).commit);
  }
}

void write_tracing(const Diagnosis& all, usdt::io::Stream& out) {
  {
    JsonLine line(out, "privilege");
    line.text("answer", all.privilege ? "yes" : "no");
    line.text_or_null("detail", all.privilege ? "" : all.privilege.error().message);
    line.text("perf_uprobe", all.perf_privilege ? "yes" : "no");
  }
  JsonLine line(out, "backend");
  line.text_or_null("name", all.backend ? to_string(*all.backend) : "");
  line.text_or_null("detail", all.backend ? "" : all.backend.error().message);
}

void write_rights(const Diagnosis& all, usdt::io::Stream& out) {
  for (const usdt::Right& each : all.rights) {
    JsonLine line(out, "right");
    line.text("purpose", each.purpose);
    line.texts("needs", each.needs);
    line.texts("lacks", each.lacks);
  }
  if (!all.token) return;
  JsonLine line(out, "token");
  line.text("directory", all.token->directory);
  line.texts("delegates", all.token->delegates);
  line.text_or_null("why_not", all.token->why_not);
}

void write_red_zone(const Diagnosis& all, usdt::io::Stream& out) {
  for (const usdt::RedZoneTest& test : all.red_zone) {
    JsonLine line(out, "red_zone");
    line.text("nop", to_string(test.form));
    line.text("intact", to_string(test.intact));
    line.text_or_null("cost", test.cost ? to_string(*test.cost) : "");
    line.number("calls", test.calls);
    line.number("overwritten", test.overwritten);
    line.text("detail", test.detail);
  }
  for (const Verdict& verdict : all.verdicts) {
    JsonLine line(out, "verdict");
    line.text("nop", to_string(verdict.form));
    line.truth("known", verdict.known);
    line.truth("used", verdict.used);
    line.text("text", verdict.text);
  }
}

}  // namespace

void print_diagnosis_json(const Diagnosis& diagnosis, usdt::io::Stream& out) {
  {
    JsonLine line(out, "kernel");
    line.text("release", diagnosis.release);
    line.text("machine", diagnosis.machine);
  }
  write_features(diagnosis, out);
  write_tracing(diagnosis, out);
  write_rights(diagnosis, out);
  write_red_zone(diagnosis, out);
}

}  // namespace usdt_list
