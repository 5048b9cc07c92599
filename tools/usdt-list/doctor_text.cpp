// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <string>

#include "common/rights.hpp"
#include "doctor.hpp"

namespace usdt_list {
namespace {

using usdt::Answer;
using usdt::io::Style;

Style style_of(Answer answer) {
  return answer == Answer::yes ? Style::name : answer == Answer::no ? Style::bad : Style::mark;
}

class Page {
 public:
  Page(const Diagnosis& diagnosis, usdt::io::Stream& out) : all_(diagnosis), out_(out) {}

  void print() {
    out_.print("Linux {}, {}\n", all_.release, all_.machine);
    print_features();
    print_tracing();
    heading("Rights");
    usdt::tools::print_rights(all_.rights, all_.token, out_);
    print_red_zone();
    print_verdicts();
  }

 private:
  void heading(std::string_view text) { out_.print("\n{}\n", out_.styled(text, Style::bold)); }

  /// `text` goes on below itself where the terminal ends.
  void row(std::string_view label, std::string_view word, Style style, std::string_view text) {
    constexpr std::size_t kText = 33;  // column of `text`
    const std::size_t room = out_.room(kText, 20);
    out_.print("  {:<17} {:<12} {}\n", label, out_.styled(word, style), usdt::io::next_line(text, room));
    while (!text.empty()) out_.print("{:{}}{}\n", "", kText, usdt::io::next_line(text, room));
  }

  void print_features() {
    heading("Kernel features");
    for (const usdt::FeatureState& each : all_.features) {
      // A kernel that does not optimise a nop lacks nothing.
      const bool nop = each.feature == usdt::Feature::nop5 || each.feature == usdt::Feature::nop10;
      const Style style = nop && each.answer != Answer::unknown ? Style::plain : style_of(each.answer);
      row(to_string(each.feature), to_string(each.answer), style, each.detail);
    }
  }

  void print_tracing() {
    heading("Tracing");
    const std::string refusal = all_.privilege ? "" : all_.privilege.error().message;
    row("privilege", all_.privilege ? "yes" : "no", all_.privilege ? Style::name : Style::bad,
        all_.privilege ? "programs can be loaded and attached" : refusal);
    if (all_.privilege && !all_.perf_privilege)
      row("perf uprobes", "no", Style::bad, all_.perf_privilege.error().message);
    if (all_.backend) {
      row("backend", "yes", Style::name, to_string(*all_.backend));
    } else if (all_.privilege || all_.backend.error().message != refusal) {
      row("backend", "unknown", Style::mark, all_.backend.error().message);
    } else {
      row("backend", "unknown", Style::mark, "the kernel tells only who may trace");
    }
  }

  void print_red_zone() {
    heading("Red zone: a leaf function keeps values in the 128 bytes below %rsp across a probe on a nop");
    if (all_.red_zone.empty())
      return row("self-test", "-", Style::dim, "not applicable: only x86-64 has a red zone and such nops");
    for (const usdt::RedZoneTest& test : all_.red_zone) {
      const char* word = test.intact == Answer::yes ? "intact" : test.intact == Answer::no ? "overwritten" : "unknown";
      if (test.cost == usdt::CostClass::refused) word = "no probe";
      const Style style = test.cost == usdt::CostClass::refused ? Style::plain : style_of(test.intact);
      const std::string count =
          test.calls == 0 ? "" : fmt::format("changed by {} of {} calls; ", test.overwritten, test.calls);
      const std::string cost = test.calls == 0 || !test.cost ? "" : fmt::format("{}: ", to_string(*test.cost));
      row(to_string(test.form), word, style, count + cost + test.detail);
    }
  }

  void print_verdicts() {
    if (all_.verdicts.empty()) return;
    heading("Verdict");
    for (const Verdict& verdict : all_.verdicts) {
      const Style style = !verdict.known ? Style::mark : verdict.used ? Style::name : Style::bad;
      row(fmt::format("{} sites", to_string(verdict.form)), verdict.used ? "used" : "not used", style, verdict.text);
    }
  }

  const Diagnosis& all_;
  usdt::io::Stream& out_;
};

}  // namespace

void print_diagnosis(const Diagnosis& diagnosis, usdt::io::Stream& out) { Page(diagnosis, out).print(); }

}  // namespace usdt_list
