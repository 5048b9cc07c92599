// SPDX-License-Identifier: BSD-2-Clause
#include "session/check_printed.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "event/event_question.hpp"
#include "expr/computed.hpp"
#include "session/option_names.hpp"
#include "usdt/question_plan.hpp"
#include "usdt/signature.hpp"

namespace usdt {
namespace session {
namespace {

/// "(i32, u64)", of kernel functions with names: "(struct file *file, size_t count), retval ssize_t".
std::string signature_of(const std::vector<Arg>& args) {
  std::vector<std::string> shown;
  std::string result;
  for (const Arg& arg : args) {
    if (arg.derived) continue;
    if (arg.result)
      result = fmt::format(", {} {}", kReturnValue, c_type_text(arg));
    else
      shown.push_back(declaration_text(arg));
  }
  return fmt::format("({}){}", fmt::join(shown, ", "), result);
}

/// Returns the prefix of probes that see both ends of the calls whose returns `prefix` sees; empty: it sees more than
/// returns.
std::string_view call_of_return(std::string_view prefix) {
  if (prefix == "uretprobe") return "ucall";
  if (prefix == "kretprobe") return "kcall";
  return {};
}

/// Checks an item that every event has, and no site's list.
Result<void> check_word(const Question& question, const AttachPlan& plan, const PrintItem& item,
                        std::string_view option) {
  const auto refused = [&](const std::string& why) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("{}: {}; an argument of that name is args.{}", option, why, item.value.text));
  };
  const bool is_of_context = info_of(*item.word).source == HitFieldSource::context;
  if ((is_of_owner(*item.word) && !plan.owners) || (is_of_context && !plan.contexts))
    return refused(fmt::format("it was not recorded: a trace with {0}record and {0}print {1} has it",
                               question.option_prefix, item.value.text));
  if (*item.word == HitField::ustack && question.stacks.user_depth == 0)
    return refused(name_options("no stacks of processes were recorded: a trace with --record and --ustack has them",
                                question.option_prefix));
  if (*item.word == HitField::kstack && question.stacks.kernel_depth == 0)
    return refused(name_options("no stacks of the kernel were recorded: a trace with --record and --kstack has them",
                                question.option_prefix));
  if (*item.word == HitField::duration && !traces_calls(plan) && !plan.spans)
    return refused("only calls (ucall, kcall, ksession, fsession) and spans have one");
  if (*item.word == HitField::elapsed && question.began == 0) return refused("the recording does not say since when");
  return {};
}

}  // namespace

bool is_used(const Printed& printed, ListNumber number) {
  return std::ranges::find(printed.of_probe, number) != printed.of_probe.end();
}

std::string what_there_is(const AttachPlan& plan, const Printed& printed, ListNumber number) {
  constexpr std::size_t most = 3;
  std::set<std::uint32_t> seen;
  std::vector<std::string> shown;
  bool numbers = false;
  std::string_view whole_call;
  for (const PlannedSite& site : plan.sites) {
    if (plan.spans && !site.span) continue;
    if (printed.of_probe[site.probe.value] != number || !seen.insert(site.args.value).second || shown.size() == most)
      continue;
    const PlannedProbe& probe = plan.probes[site.probe];
    const bool is_function = probe.function || !probe.file;  // a provider may be called as their prefixes are
    const std::string_view call = is_function ? call_of_return(probe.provider) : std::string_view();
    if (!call.empty()) whole_call = call;
    numbers |= probe.file.has_value() && call.empty();
    shown.push_back(fmt::format("{}:{}{}", probe.provider, probe.name, signature_of(plan.args[site.args])));
  }
  return fmt::format("{}{}{}{}", fmt::join(shown, "; "), seen.size() > most ? "; ..." : "",
                     numbers ? "; arguments count from arg0" : "",
                     whole_call.empty() ? "" : fmt::format("; with {}: a return has its arguments, too", whole_call));
}

/// What is computed can be at some site at least.
Result<void> check_computed(const AttachPlan& plan, const Printed& printed, ListNumber number, const PrintItem& item,
                            const std::string& option) {
  event::EventQuestion asked(*item.computed, plan);
  if (auto checked = asked.check(); !checked) return fail(checked.error().within(option));
  std::string_view refusal;
  for (const Index<PlannedSite> site : plan.sites.indices()) {
    if (printed.of_probe[plan.sites[site].probe.value] != number || !asked.has_events(site)) continue;
    const auto& there = asked.at(site);
    const std::string_view why = there.typed ? expr::why_no_number(*there.typed) : std::string_view(there.refusal);
    if (why.empty()) return {};
    if (refusal.empty()) refusal = why;
  }
  if (refusal.empty()) return {};
  return fail(ErrorKind::invalid_argument, fmt::format("{}: {}", option, refusal));
}

/// A text is read once, by one length or up to its NUL.
Result<void> check_texts(const PrintList& list, std::string_view option) {
  for (const PrintItem& a : list)
    for (const PrintItem& b : list)
      if (a.form == PrintItem::Form::text && b.form == a.form && a.length && a.length != b.length &&
          arg_name_of(a.value) == arg_name_of(b.value))
        return fail(ErrorKind::invalid_argument,
                    fmt::format("{} {}, {}: a text is read once, by one length", option, a.label, b.label));
  return {};
}

/// A length is that by which the text, or the bytes, are read at each site.
Result<void> check_length(const AttachPlan& plan, const Printed& printed, ListNumber number, const PrintItem& item,
                          const std::string& option) {
  if (!item.length && !item.size) return {};
  const ArgName name = item.length ? *item.length : arg_name_of(*item.size);
  for (const PlannedSite& site : plan.sites) {
    if ((plan.spans && !site.span) || printed.of_probe[site.probe.value] != number) continue;
    const std::vector<Arg>& args = plan.args[site.args];
    const auto text = position_of(item, args), length = find_arg(args, name);
    if (!text || !length || !args[*text].readable()) continue;
    const std::vector<usdt_arg_spec>& encoded = plan.specs[site.spec].args;
    if (args[*text].length == *length && *text < encoded.size() && encoded[*text].capture != USDT_CAPTURE_NONE)
      continue;
    return fail(ErrorKind::invalid_argument, fmt::format("{}: {}", option,
                                                         args[*text].length && args[*text].length != *length
                                                             ? fmt::format("{} has another length", item.value.text)
                                                             : "it cannot be read by this length"));
  }
  return {};
}

/// An argument no site has is a mistake, one that some sites lack is not.
Result<void> check_list(const Question& question, const AttachPlan& plan, const Printed& printed, ListNumber number) {
  const bool in_format = !question.values.format.list.empty() && number == 0;
  TRY(check_texts(printed.lists[number], name_options("--print", question.option_prefix)));
  for (const PrintItem& item : printed.lists[number]) {
    const bool exists = std::ranges::any_of(plan.sites, [&](const PlannedSite& site) {
      const auto& args = plan.args[site.args];
      return (!plan.spans || site.span) && printed.of_probe[site.probe.value] == number && position_of(item, args) &&
             (!item.length || find_arg(args, *item.length));
    });
    const std::string option = in_format ? fmt::format("{}format-string %{{{}}}", question.option_prefix, item.label)
                                         : fmt::format("{}print {}", question.option_prefix, item.label);
    if (item.computed) {
      TRY(check_computed(plan, printed, number, item, option));
    } else if (item.attribute) {
      if (!plan.attributes)
        return fail(ErrorKind::invalid_argument,
                    name_options(fmt::format("{}: it was not recorded: a trace with --record and --trace-attributes "
                                             "has it",
                                             option),
                                 question.option_prefix));
    } else if (!exists && item.word) {
      TRY(check_word(question, plan, item, option));
    } else if (!exists && !question.recording.replay.empty() && !in_format) {
      return fail(
          ErrorKind::invalid_argument,
          fmt::format("{}: no such argument in the recording, which has values of memory only where it was made "
                      "with {}print: {}",
                      option, question.option_prefix, what_there_is(plan, printed, number)));
    } else if (!exists) {
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{}: no such argument{}: {}", option,
                              in_format ? fmt::format(", nor one of {}", format_field_names()) : "",
                              what_there_is(plan, printed, number)));
    } else {
      TRY(check_length(plan, printed, number, item, option));
    }
  }
  return {};
}

}  // namespace session

inline namespace v1 {
namespace {

/// "python:gc__start, python:gc__done, ...": what is traced.
std::string names_of_probes(const AttachPlan& plan) {
  constexpr std::size_t most = 5;
  std::vector<std::string> shown;
  for (const PlannedProbe& probe : plan.probes) {
    std::string name = fmt::format("{}:{}", probe.provider, probe.name);
    if (std::ranges::find(shown, name) != shown.end()) continue;
    shown.push_back(std::move(name));
    if (shown.size() > most) break;
  }
  if (shown.size() > most) shown.back() = "...";
  return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace

bool traces_calls(const AttachPlan& plan) {
  return std::ranges::any_of(plan.groups, [](const AttachGroup& group) { return group.moment == Moment::both; });
}

/// Each list has a probe, but for that of the rest.
Result<void> check_printed(const Question& question, const AttachPlan& plan, const Printed& printed, bool may_come,
                           std::vector<SessionNotice>& notices) {
  using session::check_list;
  for (ListNumber number = 0; number < printed.lists.size(); ++number) {
    if (session::is_used(printed, number)) {
      TRY(check_list(question, plan, printed, number));
      continue;
    }
    if (number == 0) continue;
    const ProbePrint& print = question.values.print.for_probes[number - 1];
    const std::string list = fmt::format("{}print '{}=...'", question.option_prefix, print.probe);
    const bool of_kernel = std::holds_alternative<KernelPattern>(print.pattern);  // all its points are there already
    if (!may_come || of_kernel)
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{} is for no probe of this trace, or only for those of a {}print before it: {}", list,
                              question.option_prefix, names_of_probes(plan)));
    notices.push_back({SessionNotice::Kind::unused_print, print.probe,
                       fmt::format("{} is for no probe of this trace yet: {}", list, names_of_probes(plan))});
  }
  return question.values.format.empty() ? Result<void>()
                                        : check_format(question.values.format, plan, printed, question.option_prefix);
}

Result<void> check_durations(const Question& question, const AttachPlan& plan, const std::vector<bool>& probes) {
  if (question.view.slowest == 0 || plan.spans) return {};
  for (const AttachGroup& group : plan.groups) {
    if (group.moment == Moment::both) continue;
    for (const Index<PlannedSite> site : group.sites) {
      const Index<PlannedProbe> probe = plan.sites[site].probe;
      if (!probes.empty() && !probes[probe.value]) continue;
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{}: {} is one moment; spans ('A ~~ B') and calls (ucall, kcall) take some time",
                              session::name_options(question.view.in_flight ? "--in-flight" : "--slowest",
                                                    question.option_prefix),
                              full_name(plan, plan.probes[probe])));
    }
  }
  return {};
}

}  // namespace v1
}  // namespace usdt
