// SPDX-License-Identifier: BSD-2-Clause
#include "presets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/conditions.hpp"
#include "common/report.hpp"
#include "exit_code.hpp"
#include "json_line.hpp"
#include "print.hpp"
#include "usdt/usdt.hpp"

namespace usdt_list {
namespace {

using usdt::tools::Fires;
using usdt::tools::Preset;
using usdt::tools::ScriptQuestion;

/// The name of a point as a command line has it.
std::string name_of(const usdt::PointPattern& pattern) {
  const auto* probe = std::get_if<usdt::ProbePattern>(&pattern);
  if (probe == nullptr || !probe->target.empty()) return to_string(pattern);
  return fmt::format("{}:{}", probe->provider, probe->name);
}

/// Says which probe of a question is the first that is not there; empty: all are.
std::string missing_probe(const ScriptQuestion& question, pid_t pid) {
  const auto points = usdt::parse_points(question.probes);
  if (!points) return points.error().message;
  for (const auto* side : {&points->patterns, &points->ends}) {
    for (const usdt::PointPattern& pattern : *side) {
      const bool in_kernel = std::holds_alternative<usdt::KernelPattern>(pattern);
      const auto found = usdt::select({pattern}, {.pids = in_kernel ? std::vector<pid_t>() : std::vector{pid}});
      if (!found || (found->files.empty() && found->kernel.entries.empty()))
        return fmt::format("{} has no {}", in_kernel ? "this kernel" : fmt::format("process {}", pid),
                           name_of(pattern));
    }
  }
  return {};
}

ListedQuestion look_at(const ScriptQuestion& question, pid_t pid) {
  ListedQuestion listed{.question = &question};
  if (pid == 0) return listed;
  listed.why = missing_probe(question, pid);
  if (!listed.why.empty()) {
    listed.readiness = Readiness::missing;
    return listed;
  }
  const Fires fires = usdt::tools::judge(question.fires_only_if, usdt::tools::subject_of(pid));
  if (fires == Fires::yes) return listed;
  listed.readiness = fires == Fires::no ? Readiness::not_firing : Readiness::may_fire;
  listed.why = fmt::format("its probes fire only if {}", usdt::tools::describe(question.fires_only_if));
  return listed;
}

/// What a condition is that several questions of a preset have, and which these are.
struct SharedCondition {
  std::string text;
  std::vector<std::string_view> questions = {};
};

/// The condition that keeps a question's hits away, or may do so; empty: none is known.
std::string condition_of(const ListedPreset& preset, const ListedQuestion& listed) {
  const bool is_open =
      preset.pid == 0 || listed.readiness == Readiness::not_firing || listed.readiness == Readiness::may_fire;
  return is_open ? usdt::tools::describe(listed.question->fires_only_if) : std::string();
}

/// Finds those that more than one question has, in the order of the first.
std::vector<SharedCondition> shared_conditions(const ListedPreset& preset) {
  std::vector<SharedCondition> all;
  for (const ListedQuestion& listed : preset.questions) {
    std::string text = condition_of(preset, listed);
    if (text.empty()) continue;
    auto known = std::ranges::find(all, text, &SharedCondition::text);
    if (known == all.end()) known = all.insert(known, SharedCondition{.text = std::move(text)});
    known->questions.emplace_back(listed.question->name);
  }
  std::erase_if(all, [](const SharedCondition& each) { return each.questions.size() < 2; });
  return all;
}

class PresetPage {
 public:
  explicit PresetPage(usdt::io::Stream& out) : out_(out) {}

  void print(const std::vector<ListedPreset>& all) {
    for (const ListedPreset& each : all)
      for (const ListedQuestion& listed : each.questions) column_ = std::max(column_, name_of(each, listed).size() + 4);
    for (const ListedPreset& each : all) print(each);
    out_.print("\n");
    paragraph("usdt-trace --preset NAME asks those with a mark, NAME.QUESTION any one.", usdt::io::Style::plain);
  }

 private:
  static std::string name_of(const ListedPreset& preset, const ListedQuestion& listed) {
    return fmt::format("{}.{}", preset.preset->name, listed.question->name);
  }

  void print(const ListedPreset& preset) {
    const std::string& title = preset.preset->script.title;
    std::string heading = title.empty() ? preset.preset->name : title;
    if (preset.pid != 0) heading += fmt::format(" (process {})", preset.pid);
    if (!std::exchange(is_first_, false)) out_.print("\n");
    paragraph(heading, usdt::io::Style::bold);
    if (!preset.preset->place.empty()) line("", preset.preset->place, usdt::io::Style::dim);
    const std::vector<SharedCondition> shared = shared_conditions(preset);
    for (const SharedCondition& each : shared) {
      const bool is_of_all = each.questions.size() == preset.questions.size();
      line("",
           fmt::format("{}: only if {}", is_of_all ? "all" : fmt::format("{}", fmt::join(each.questions, ", ")),
                       each.text),
           usdt::io::Style::dim);
    }
    for (const ListedQuestion& listed : preset.questions) {
      line(fmt::format("{} {}", listed.question->on_request ? ' ' : '*', name_of(preset, listed)),
           listed.question->title, usdt::io::Style::plain);
      if (!listed.question->cost.empty()) line("", listed.question->cost, usdt::io::Style::dim);
      if (!listed.question->known_as.empty())
        line("", fmt::format("known as {}", fmt::join(listed.question->known_as, ", ")), usdt::io::Style::dim);
      const std::string condition = condition_of(preset, listed);
      const bool is_said = std::ranges::find(shared, condition, &SharedCondition::text) != shared.end();
      if (listed.readiness != Readiness::ready)
        line("", fmt::format("{}{}", to_string(listed.readiness), is_said ? "" : ": " + listed.why),
             usdt::io::Style::bad);
      else if (!condition.empty() && !is_said)
        line("", fmt::format("only if {}", condition), usdt::io::Style::dim);
    }
  }

  void paragraph(std::string_view text, usdt::io::Style style, std::size_t column = 0) {
    while (!text.empty())
      out_.print("{:{}}{}\n", "", column, out_.styled(usdt::io::next_line(text, out_.room(column, 20)), style));
  }

  /// `text` goes on below itself where the terminal ends, and below the label where little room is beside it.
  void line(std::string_view label, std::string_view text, usdt::io::Style style) {
    constexpr std::size_t kLeast = 40, kIndent = 4;
    if (out_.room(column_, 0) < kLeast) {
      if (!label.empty()) out_.print("{}\n", label);
      return paragraph(text, style, kIndent);
    }
    out_.print("{:<{}}{}\n", label, column_, out_.styled(usdt::io::next_line(text, out_.room(column_, 20)), style));
    paragraph(text, style, column_);
  }

  usdt::io::Stream& out_;
  std::size_t column_ = 0;
  bool is_first_ = true;
};

void print_json(const ListedPreset& preset, usdt::io::Stream& out) {
  for (const ListedQuestion& listed : preset.questions) {
    JsonLine line(out, "preset");
    line.text("preset", preset.preset->name);
    line.text("question", listed.question->name);
    line.text("title", listed.question->title);
    line.text("about", preset.preset->script.title);
    line.text_or_null("file", preset.preset->place);
    line.truth("on_request", listed.question->on_request);
    line.texts("probes", listed.question->probes);
    line.text_or_null("cost", listed.question->cost);
    line.text_or_null("fires_only_if", usdt::tools::describe(listed.question->fires_only_if));
    line.texts("known_as", listed.question->known_as);
    line.texts("tried", preset.preset->script.tried);
    if (preset.pid == 0) continue;
    line.number("pid", static_cast<std::uint32_t>(preset.pid));
    line.text("state", to_string(listed.readiness));
    line.text_or_null("reason", listed.why);
  }
}

}  // namespace

std::string_view to_string(Readiness readiness) {
  switch (readiness) {
    case Readiness::ready:
      return "ready";
    case Readiness::not_firing:
      return "does not fire";
    case Readiness::may_fire:
      return "may not fire";
    case Readiness::missing:
      break;
  }
  return "not there";
}

std::vector<ListedPreset> list_presets(const usdt::tools::Presets& presets, const std::vector<pid_t>& pids) {
  std::vector<ListedPreset> all;
  const auto add = [&](const Preset& preset, pid_t pid) {
    ListedPreset& listed = all.emplace_back(ListedPreset{.preset = &preset, .pid = pid});
    for (const ScriptQuestion& question : preset.script.questions) listed.questions.push_back(look_at(question, pid));
  };
  for (const Preset& preset : presets.all)
    if (pids.empty()) add(preset, 0);
  for (const pid_t pid : pids) {
    const auto files = usdt::files_of_process(pid);
    if (!files) continue;
    for (const Preset& preset : presets.all)
      if (usdt::tools::is_about(preset, *files)) add(preset, pid);
  }
  return all;
}

namespace {

/// Fails where one of the processes is not there.
usdt::Result<void> check_there(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids)
    if (const auto files = usdt::files_of_process(pid); !files) return usdt::fail(files.error());
  return {};
}

int trouble(const usdt::Error& error) {
  usdt::tools::print_error(kTool, error);
  return kTrouble;
}

}  // namespace

int run_presets(const Flags& flags) {
  const usdt::tools::Presets presets = usdt::tools::find_presets();
  for (const usdt::tools::WrongPreset& wrong : presets.wrong) usdt::tools::print_error(kTool, wrong.error);
  if (const auto there = check_there(flags.pids); !there) return trouble(there.error());
  const std::vector<ListedPreset> all = list_presets(presets, flags.pids);
  // Who ended meanwhile is said once, and not that each probe is missing.
  if (const auto there = check_there(flags.pids); !there) return trouble(there.error());
  usdt::io::Stream out(STDOUT_FILENO);
  if (flags.format == Format::json)
    for (const ListedPreset& each : all) print_json(each, out);
  else if (!all.empty())
    PresetPage(out).print(all);
  if (all.empty()) usdt::tools::print_notice(kTool, "no preset is about what these processes run");
  if (out.flush() != usdt::io::Stream::Flushed::all) return output_failed(out);
  if (!presets.wrong.empty()) return kTrouble;
  return all.empty() ? kNothing : kFound;
}

}  // namespace usdt_list
