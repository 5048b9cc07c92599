// SPDX-License-Identifier: BSD-2-Clause
// An explanation for people.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "broker.hpp"
#include "common/report.hpp"
#include "explain.hpp"
#include "io/width.hpp"

namespace usdt_trace {
namespace {

using usdt::io::padded;
using usdt::io::printable;
using usdt::io::shown_width;
using usdt::tools::counted;
using Role = usdt::ExplainedSites::Role;

constexpr std::size_t kLabel = 12;  ///< columns of what lines are about

/// "1.2 us"
std::string time_text(unsigned ns) { return ns < 1000 ? fmt::format("{} ns", ns) : fmt::format("{:.1f} us", ns / 1e3); }

/// "0x12f3ae, 0x12f3c0 and 7 more"
std::string places_text(const usdt::AttachPlan& plan, const std::vector<usdt::Index<usdt::PlannedSite>>& sites,
                        std::size_t most) {
  std::vector<std::string> shown;
  for (const auto site : sites) {
    const auto pc = pc_of(plan, plan.sites[site]);
    if (!pc) continue;
    if (shown.size() == most) {
      shown.back() += fmt::format(" and {} more", sites.size() - most);
      break;
    }
    shown.push_back(fmt::format("{:#x}", pc->value));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

class TextExplanation {
 public:
  TextExplanation(const usdt::Explanation& what, const Flags& flags, usdt::io::Stream& out)
      : what_(what), flags_(flags), out_(out) {}

  void write() {
    if (!flags_.question.name.empty()) out_.print("== {}\n\n", flags_.question.name);
    constexpr std::size_t few = 40;
    const std::size_t shown = flags_.output.verbose ? what_.sites.size() : std::min(what_.sites.size(), few);
    for (std::size_t i = 0; i < shown; ++i) write(what_.sites[i]);
    if (shown < what_.sites.size())
      out_.print("and {} more kinds of sites: -v shows them\n\n", what_.sites.size() - shown);
    write_links();
    write_refused();
    line("kernel", what_.assumed.empty() ? what_.kernel
                                         : fmt::format("{}; it does not tell this user of {}: taken from its release",
                                                       what_.kernel, fmt::join(what_.assumed, ", ")));
    line("privilege", what_.no_privilege.empty() ? "this user may attach it"
                                                 : fmt::format("not enough to attach it: {}{}", what_.no_privilege,
                                                               help_by_broker(what_.no_privilege, flags_)));
    if (!flags_.question.name.empty()) out_.print("\n");
  }

 private:
  void write(const usdt::ExplainedSites& sites) {
    out_.print("{}\n", out_.styled(full_name(what_.plan, what_.plan.probes[sites.probe]), usdt::io::Style::bold));
    if (sites.role == Role::span) {
      line("spans", fmt::format("of {} of sites", counted(sites.sites.size(), "pair")));
    } else {
      const std::string places = places_text(what_.plan, sites.sites, flags_.output.verbose ? SIZE_MAX : 4);
      const char* role = sites.role == Role::begin ? "begins at" : sites.role == Role::end ? "ends at" : "at";
      line(role, places.empty() ? sites.cost : fmt::format("{}: {}", places, sites.cost));
      line("cost", cost_text(sites));
    }
    for (const usdt::ExplainedQuestion& each : sites.questions)
      line(each.about, each.type.empty() ? each.text : fmt::format("{}  ({})", each.text, each.type));
    write_values(sites);
    out_.print("\n");
  }

  static std::string cost_text(const usdt::ExplainedSites& sites) {
    unsigned reads = 0;
    for (const usdt::ExplainedValue& value : sites.values) reads += value.reads;
    const std::string read = reads == 0 ? "no memory is read" : fmt::format("{} of memory", counted(reads, "read"));
    if (sites.cost_class.empty()) return read;
    if (!sites.estimate) return fmt::format("{}; {}", sites.cost_class, read);
    return fmt::format("{}; {}; about {} a hit", sites.cost_class, read, time_text(*sites.estimate));
  }

  /// A line each, in columns.
  void write_values(const usdt::ExplainedSites& sites) {
    std::size_t name = 0;
    std::size_t type = 0;
    for (const usdt::ExplainedValue& value : sites.values) {
      name = std::max(name, shown_width(value.name));
      type = std::max(type, shown_width(value.type));
    }
    constexpr std::size_t widest = 24;
    name = std::min(name, widest);
    type = std::min(type, widest);
    const char* label = sites.recorded ? "records" : "reads";
    if (sites.values.empty() && sites.role != Role::span) line("reads", "no argument");
    for (const usdt::ExplainedValue& value : sites.values) {
      std::string text = padded(printable(value.name), name) + "  " + padded(printable(value.type), type) + "  ";
      const std::size_t indent = usdt::io::width_of(text);
      text += value.unreadable.empty() ? value.where : fmt::format("<{}>", value.unreadable);
      if (value.reads > 0) text += fmt::format("; {}", counted(value.reads, "read"));
      if (!value.text.empty()) text += fmt::format("; text, {}", value.text);
      line(label, text, indent);
      label = "";
    }
  }

  void write_links() {
    std::vector<std::string> parts;
    for (const usdt::ExplainedLinks& each : what_.links)
      parts.push_back(fmt::format("{}: {} of {}, {}", to_string(each.backend), counted(each.links, "link"),
                                  counted(each.sites, "site"), counted(each.programs, "program")));
    line("attaches", fmt::format("{}", fmt::join(parts, "; ")));
    if (!what_.others_pay.empty())
      line("others", fmt::format("processes that are not traced pay for each hit, too: {}", what_.others_pay));
    line("specs", fmt::format("by {}", what_.carriers));
    if (!flags_.question.view.count_only && !flags_.question.view.question)
      line("ring", fmt::format("{} MiB of the kernel's memory for events",
                               flags_.question.attaching.ring_size(is_for_broker(what_.no_privilege, flags_))));
    if (what_.plan.table) line("table", fmt::format("room for {}", counted(what_.plan.table->max_rows, "row")));
  }

  void write_refused() {
    constexpr std::size_t few = 10;
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < what_.refused.size(); ++i) {
      const usdt::ExplainedRefusal& refusal = what_.refused[i];
      if (i >= few && !flags_.output.verbose) {
        left_out += refusal.sites.size();
        continue;
      }
      const auto& [probe, pc] = refusal.sites.front();
      const std::string more =
          refusal.sites.size() > 1 ? fmt::format(" and {} more", refusal.sites.size() - 1) : std::string();
      line("refused", fmt::format("{}{}{}: {}", full_name(what_.plan, what_.plan.probes[probe]),
                                  pc ? fmt::format(" at {:#x}", pc->value) : "", more, refusal.reason));
    }
    if (left_out > 0) line("refused", fmt::format("{} more, for other reasons: -v shows them", left_out));
  }

  /// On a terminal further lines are below the text, `indent` columns into it.
  void line(std::string_view about, std::string_view text, std::size_t indent = 0) {
    const std::string shown = printable(text);
    std::string_view rest = shown;
    const std::size_t room = out_.room(kLabel + 2, 20);
    std::string_view first = usdt::io::next_line(rest, room);
    out_.print("  {:<{}}{}\n", about, kLabel, first);
    if (room < indent + 20) indent = 0;
    while (!rest.empty()) {
      first = usdt::io::next_line(rest, room - indent);
      out_.print("  {:<{}}{}\n", "", kLabel + indent, first);
    }
  }

  const usdt::Explanation& what_;
  const Flags& flags_;
  usdt::io::Stream& out_;
};

}  // namespace

void write_text(const usdt::Explanation& explanation, const Flags& flags, usdt::io::Stream& out) {
  TextExplanation(explanation, flags, out).write();
}

}  // namespace usdt_trace
