// SPDX-License-Identifier: BSD-2-Clause
#include "planning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "common/signature.hpp"
#include "notice.hpp"
#include "output.hpp"
#include "words.hpp"

namespace usdt_trace {

bool looks_everywhere(const usdt::PointPattern& pattern) {
  const std::string* target = usdt::target_of(pattern);
  return target != nullptr && usdt::means_everything(*target);
}

namespace {

void ask_for_text(const usdt::PrintItem& item, usdt::TextOptions& texts) {
  if (!item.gives_way()) return;
  if (item.form == usdt::PrintItem::Form::value) texts.described.push_back(usdt::arg_name_of(item.value));
  if (item.form != usdt::PrintItem::Form::text) return;
  const usdt::ArgName text = usdt::arg_name_of(item.value);
  if (item.length) {
    texts.bounded.push_back({text, *item.length});
  } else if (const auto* number = std::get_if<std::uint8_t>(&text)) {
    texts.numbers.push_back(*number);
  } else {
    texts.names.push_back(std::get<std::string>(text));
  }
}

/// What a print list wants beside the arguments; where it is empty, what is in those that are structs or texts.
usdt::ValueOptions values_of(const usdt::PrintList& list, const Flags& flags) {
  usdt::ValueOptions values;
  for (const usdt::PrintItem& item : list) {
    if (!item.gives_way()) continue;
    if (item.size) values.paths.push_back(*item.size);
    values.paths.push_back(item.value);
  }
  values.open = list.empty() && !flags.question.view.no_events();
  values.depth = flags.question.values.depth;
  return values;
}

/// What a print list shows as text; where it is empty, what types or memory say is text.
usdt::TextOptions texts_of(const usdt::PrintList& list, const Flags& flags) {
  usdt::TextOptions texts;
  for (const usdt::PrintItem& item : list) ask_for_text(item, texts);
  texts.typed = list.empty() && !flags.question.view.no_events();
  texts.likely = texts.typed && flags.question.values.likely_texts;
  return texts;
}

/// "(i32, u64)", of kernel functions with names: "(struct file *file, size_t count), retval ssize_t".
std::string signature(const std::vector<usdt::Arg>& args) {
  std::vector<std::string> shown;
  std::string result;
  for (const usdt::Arg& arg : args) {
    if (arg.derived) continue;
    if (arg.result)
      result = fmt::format(", {} {}", usdt::kReturnValue, usdt::tools::type_of(arg));
    else
      shown.push_back(usdt::tools::declaration(arg));
  }
  return fmt::format("({}){}", fmt::join(shown, ", "), result);
}

/// What sees both ends of the calls of whose returns `prefix` tells; empty: that is not of returns alone.
std::string_view call_of_return(std::string_view prefix) {
  if (prefix == "uretprobe") return "ucall";
  if (prefix == "kretprobe") return "kcall";
  return {};
}

/// "fentry:vfs_read(struct file *file, ...); ...": the first few signatures of the probes that have list `number`.
std::string what_there_is(const usdt::AttachPlan& plan, const usdt::Printed& printed, usdt::ListNumber number) {
  constexpr std::size_t most = 3;
  std::set<std::uint32_t> seen;
  std::vector<std::string> shown;
  bool numbers = false;
  std::string_view whole_call;
  for (const usdt::PlannedSite& site : plan.sites) {
    if (plan.spans && !site.span) continue;
    if (printed.of_probe[site.probe.value] != number || !seen.insert(site.args.value).second || shown.size() == most)
      continue;
    const usdt::PlannedProbe& probe = plan.probes[site.probe];
    const bool is_function = probe.function || !probe.file;  // a provider may be called as their prefixes are
    const std::string_view call = is_function ? call_of_return(probe.provider) : std::string_view();
    if (!call.empty()) whole_call = call;
    numbers |= probe.file.has_value() && call.empty();
    shown.push_back(fmt::format("{}:{}{}", probe.provider, probe.name, signature(plan.args[site.args])));
  }
  return fmt::format("{}{}{}{}", fmt::join(shown, "; "), seen.size() > most ? "; ..." : "",
                     numbers ? "; arguments count from arg0" : "",
                     whole_call.empty() ? "" : fmt::format("; with {}: a return has its arguments, too", whole_call));
}

/// What is known of every event, and has no place in a site's list.
usdt::Result<void> check_word(const Flags& flags, const usdt::AttachPlan& plan, const usdt::PrintItem& item,
                              std::string_view option) {
  const auto refused = [&](const std::string& why) {
    return usdt::fail(usdt::ErrorKind::invalid_argument,
                      fmt::format("{}: {}; an argument of that name is args.{}", option, why, item.value.text));
  };
  if (usdt::is_of_owner(*item.word) && !plan.owners)
    return refused(fmt::format("it was not recorded: a trace with --record and --print {} has it", item.value.text));
  if (*item.word == usdt::HitField::ustack && flags.question.stacks.user_depth == 0)
    return refused("no stacks of processes were recorded: a trace with --record and --ustack has them");
  if (*item.word == usdt::HitField::kstack && flags.question.stacks.kernel_depth == 0)
    return refused("no stacks of the kernel were recorded: a trace with --record and --kstack has them");
  if (*item.word == usdt::HitField::duration && !has_calls(plan) && !plan.spans)
    return refused("only calls (ucall, kcall, ksession, fsession) and spans have one");
  if (*item.word == usdt::HitField::elapsed && flags.question.began == 0)
    return refused("the recording does not say since when");
  return {};
}

/// An argument no site has is a mistake, one that some sites lack is not.
usdt::Result<void> check_list(const Flags& flags, const usdt::AttachPlan& plan, const usdt::Printed& printed,
                              usdt::ListNumber number) {
  const bool in_format = !flags.question.values.format.list.empty() && number == 0;
  for (const usdt::PrintItem& item : printed.lists[number]) {
    const bool exists = std::ranges::any_of(plan.sites, [&](const usdt::PlannedSite& site) {
      const auto& args = plan.args[site.args];
      return (!plan.spans || site.span) && printed.of_probe[site.probe.value] == number &&
             usdt::position_of(item, args) && (!item.length || usdt::find_arg(args, *item.length));
    });
    const std::string option =
        in_format ? fmt::format("--format-string %{{{}}}", item.label) : fmt::format("--print {}", item.label);
    if (!exists && item.word) {
      if (auto sense = check_word(flags, plan, item, option); !sense) return sense;
    } else if (!exists) {
      return usdt::fail(usdt::ErrorKind::invalid_argument,
                        fmt::format("{}: no such argument{}: {}", option,
                                    in_format ? fmt::format(", nor one of {}", usdt::format_field_names()) : "",
                                    what_there_is(plan, printed, number)));
    }
  }
  return {};
}

/// "python:gc__start, python:gc__done, ...": what is traced.
std::string names_of_probes(const usdt::AttachPlan& plan) {
  constexpr std::size_t most = 5;
  std::vector<std::string> shown;
  for (const usdt::PlannedProbe& probe : plan.probes) {
    std::string name = fmt::format("{}:{}", probe.provider, probe.name);
    if (std::ranges::find(shown, name) != shown.end()) continue;
    shown.push_back(std::move(name));
    if (shown.size() > most) break;
  }
  if (shown.size() > most) shown.back() = "...";
  return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace

namespace {

bool is_used(const usdt::Printed& printed, usdt::ListNumber number) {
  return std::ranges::find(printed.of_probe, number) != printed.of_probe.end();
}

/// Whether files that come later may have what is meant: a file that is named has its probes, or is waited for.
bool means_any_file(const usdt::PointPattern& pattern) {
  if (const auto* probe = std::get_if<usdt::ProbePattern>(&pattern)) return usdt::means_everything(probe->target);
  const auto* function = std::get_if<usdt::FunctionPattern>(&pattern);
  return function != nullptr && usdt::means_everything(function->target);
}

/// A probe that a list is for may come while the trace runs. Else its name is misspelt.
bool may_come(const Flags& flags, const usdt::ProbePrint& print) {
  return flags.question.recording.replay.empty() && !flags.explain && flags.question.following.follow &&
         !std::holds_alternative<usdt::KernelPattern>(print.pattern) &&
         (flags.question.following.wait || std::ranges::any_of(flags.question.points.patterns, means_any_file));
}

}  // namespace

/// Each list has a probe, but for that of the rest.
usdt::Result<void> check_prints(const Flags& flags, const usdt::AttachPlan& plan, const usdt::Printed& printed) {
  for (usdt::ListNumber number = 0; number < printed.lists.size(); ++number) {
    if (is_used(printed, number)) {
      if (auto sense = check_list(flags, plan, printed, number); !sense) return sense;
    } else if (number > 0 && may_come(flags, flags.question.values.print.for_probes[number - 1])) {
      notice(flags, fmt::format("--print '{}=...' is for no probe of this trace yet: {}",
                                flags.question.values.print.for_probes[number - 1].probe, names_of_probes(plan)));
    } else if (number > 0) {
      return usdt::fail(
          usdt::ErrorKind::invalid_argument,
          fmt::format("--print '{}=...' is for no probe of this trace, or only for those of a --print before it: {}",
                      flags.question.values.print.for_probes[number - 1].probe, names_of_probes(plan)));
    }
  }
  return flags.question.values.format.empty()
             ? usdt::Result<void>()
             : usdt::check_format(flags.question.values.format, plan, printed, kOptionPrefix);
}

namespace {

/// Where to look. Children may have loaded other files; those that end meanwhile have none.
usdt::SearchScope search_scope(const Flags& flags, const Subjects& subjects) {
  usdt::SearchScope scope;
  scope.pids = subjects.pids;
  scope.program = subjects.program;
  scope.skip_unknown = flags.question.points.skip_unknown;
  for (const auto& cgroup : subjects.cgroups) {
    const auto pids = usdt::processes_of_cgroup(cgroup);
    for (std::size_t i = 0; pids && i < pids->size(); ++i)
      if (usdt::files_of_process((*pids)[i])) scope.pids.push_back((*pids)[i]);
  }
  if (!flags.question.processes.children) return scope;
  for (const pid_t pid : subjects.pids) {
    for (const pid_t child : usdt::descendants_of(pid))
      if (usdt::files_of_process(child)) scope.pids.push_back(child);
  }
  return scope;
}

bool has_one_of(const usdt::PointPattern& pattern, const usdt::ProbeFile& file) {
  if (const auto* probe = std::get_if<usdt::ProbePattern>(&pattern))
    return std::ranges::any_of(file.sites,
                               [&](const usdt::Site& site) { return probe->matches(site.provider, site.name); });
  const auto& function = std::get<usdt::FunctionPattern>(pattern);
  return std::ranges::any_of(file.functions, [&](const usdt::FunctionPoint& point) {
    return point.moment == function.moment && usdt::means_function(function, point.name);
  });
}

/// A pattern that means nothing is a mistake that those beside it would hide.
void report_unmatched(const Flags& flags, const std::vector<usdt::PointPattern>& patterns,
                      const usdt::Selection& selection) {
  for (const usdt::PointPattern& pattern : patterns) {
    if (std::holds_alternative<usdt::KernelPattern>(pattern)) continue;
    if (std::ranges::none_of(selection.files, [&](const usdt::ProbeFile& file) { return has_one_of(pattern, file); }))
      notice(flags, fmt::format("nothing matches '{}'", to_string(pattern)));
  }
}

/// "3 out-of-line, 14 inlined, 2 refused: ...", where a function has copies.
void report_copies(const Flags& flags, const usdt::Selection& selection) {
  std::size_t inlined = 0;
  std::size_t out_of_line = 0;
  std::size_t refused = 0;
  std::string why;
  for (const usdt::ProbeFile& file : selection.files) {
    for (const usdt::FunctionPoint& point : file.functions) {
      if (!point.refused.empty()) {
        if (++refused == 1) why = point.refused;
      } else {
        ++(point.inlined ? inlined : out_of_line);
      }
    }
  }
  if (inlined == 0) return;
  const std::string rest = refused == 0 ? "" : fmt::format(", {} refused: {}", refused, why);
  notice(flags, fmt::format("places in code: {} out-of-line, {} inlined{}", out_of_line, inlined, rest));
}

/// Nobody's files would be taken for everybody's.
usdt::Result<void> check_cgroups(const Flags& flags, const Subjects& subjects, const usdt::SearchScope& scope) {
  if (subjects.cgroups.empty() || !scope.pids.empty() ||
      std::ranges::none_of(flags.question.points.patterns, looks_everywhere))
    return {};
  return usdt::fail(usdt::ErrorKind::not_found,
                    fmt::format("no process that could be looked at is in {}", subjects.cgroups.front().string()));
}

/// A command is often one that starts the program which is meant, as scripts, env and shells do.
usdt::Error with_hint_at_started(usdt::Error error, const Flags& flags,
                                 const std::vector<usdt::PointPattern>& patterns) {
  const bool of_command = !flags.question.processes.command.empty() && std::ranges::any_of(patterns, looks_everywhere);
  if (of_command && !flags.question.following.wait && flags.question.following.follow &&
      error.kind == usdt::ErrorKind::not_found)
    error.message += "; where the command starts another program that has it, --wait --hold-exec waits for that";
  return error;
}

usdt::Result<usdt::Selection> select(const Flags& flags, const std::vector<usdt::PointPattern>& patterns,
                                     const usdt::SearchScope& scope) {
  auto selection = usdt::select(patterns, scope);
  if (!selection) return usdt::fail(with_hint_at_started(std::move(selection.error()), flags, patterns));
  report_unmatched(flags, patterns, *selection);
  report_copies(flags, *selection);
  for (const usdt::ProbeFile& file : selection->files) {
    for (const usdt::ScanWarning& warning : file.warnings)
      notice(flags, fmt::format("{}: {}", file.target.path.string(), warning.message));
    if (!file.refused.empty())
      notice(flags, fmt::format("functions or types may be missing: {}", file.refused));
    else if (!file.no_types.empty() && !flags.question.view.no_events())
      notice(flags, fmt::format("no types of functions: {}", file.no_types));
  }
  for (const std::string& why : selection->may_be_missing) notice(flags, why);
  for (const std::string& unknown : selection->kernel.unknown) notice(flags, fmt::format("left out: {}", unknown));
  return selection;
}

bool asks_for(const usdt::ExpressionNode& node, usdt::HitField word) {
  if (node.op == usdt::Operator::field && node.bits == static_cast<std::uint64_t>(word)) return true;
  return std::ranges::any_of(node.of, [word](const auto& each) { return asks_for(each, word); });
}

/// Whether anything that is shown or asked of events is about whose their processes are.
bool wants_owners(const Flags& flags) {
  return std::ranges::any_of(
      std::array{usdt::HitField::uid, usdt::HitField::gid, usdt::HitField::cgroup}, [&](usdt::HitField word) {
        return flags.question.values.print.has_word(word) ||
               (flags.question.recording.dump_on && asks_for(flags.question.recording.dump_on->root, word));
      });
}

usdt::Result<usdt::PlanOptions> plan_options(const Flags& flags, const Subjects& subjects) {
  usdt::PlanOptions options;
  if (!subjects.pids.empty() && !flags.question.processes.children) {
    auto processes = usdt::Processes::of(subjects.pids);
    if (!processes) return usdt::fail(processes.error());
    options.scope = std::move(*processes);
  }
  options.allow_unsafe_nop5 = flags.question.attaching.allow_unsafe_nop5;
  options.kernel_backend = flags.question.attaching.kernel_backend;
  options.owners = wants_owners(flags);
  options.where = flags.question.where;
  options.table = flags.question.view.question;
  return options;
}

/// What the lists want of their probes, in their order.
struct Wanted {
  std::vector<usdt::TextOptions> texts = {};
  std::vector<usdt::ValueOptions> values = {};
};

Wanted wanted_by(const usdt::PrintChoice& choice, const Flags& flags) {
  Wanted wanted;
  for (usdt::ListNumber i = 0; i < choice.count(); ++i) {
    wanted.texts.push_back(texts_of(choice.list(i), flags));
    wanted.values.push_back(values_of(choice.list(i), flags));
  }
  return wanted;
}

/// Each probe's texts and values are those of its list.
void choose_values(const Wanted& wanted, const usdt::PrintChoice& choice, usdt::PlanOptions& options) {
  options.texts = wanted.texts[0];
  options.values = wanted.values[0];
  if (wanted.texts.size() == 1) return;
  options.texts_of = [&](const usdt::PointName& point) { return &wanted.texts[choice.of(point)]; };
  options.values_of = [&](const usdt::PointName& point) { return &wanted.values[choice.of(point)]; };
}

/// What --where or a table could not be asked of is shown beside the reason.
template <class Plan>
usdt::Error explained(usdt::Error error, const Plan& plan, usdt::PlanOptions options) {
  if (error.kind != usdt::ErrorKind::invalid_argument || (!options.where && !options.table)) return error;
  const std::string_view about = options.table ? "" : "--where ";
  options.where = nullptr;
  options.table = nullptr;
  const auto without = plan(options);
  if (!without) return error;  // it is not about that
  const usdt::Printed all{.lists = {}, .of_probe = std::vector<usdt::ListNumber>(without->probes.size())};
  error.message = fmt::format("{}{}: {}", about, error.message, what_there_is(*without, all, 0));
  return error;
}

}  // namespace

usdt::Result<void> check_slowest(const Flags& flags, const usdt::AttachPlan& plan, const std::vector<bool>& probes) {
  if (flags.question.view.slowest == 0 || plan.spans) return {};
  for (const usdt::AttachGroup& group : plan.groups) {
    if (group.moment == usdt::Moment::both) continue;
    for (const usdt::Index<usdt::PlannedSite> site : group.sites) {
      const usdt::Index<usdt::PlannedProbe> probe = plan.sites[site].probe;
      if (!probes.empty() && !probes[probe.value]) continue;
      return usdt::fail(usdt::ErrorKind::invalid_argument,
                        fmt::format("{}: {} is one moment; spans ('A ~~ B') and calls (ucall, kcall) take some time",
                                    flags.question.view.in_flight ? "--in-flight" : "--slowest",
                                    full_name(plan, plan.probes[probe])));
    }
  }
  return {};
}

namespace {

/// `ends`: of spans; `before`: what is traced already.
usdt::Result<PlannedTrace> plan_selection(const Flags& flags, const Subjects& subjects, const usdt::SearchScope& scope,
                                          const usdt::Selection& selection, const usdt::Selection* ends,
                                          const usdt::AttachPlan* before) {
  auto options = plan_options(flags, subjects);
  if (!options) return usdt::fail(options.error());
  if (before != nullptr && before->table) options->rows = std::make_shared<const usdt::PlannedTable>(*before->table);
  const usdt::PrintChoice choice(flags.question.values.print, scope);
  const Wanted wanted = wanted_by(choice, flags);
  choose_values(wanted, choice, *options);
  const usdt::KernelFacts kernel = facts_for(flags);
  const auto plan_with = [&](const usdt::PlanOptions& how) {
    return ends ? usdt::plan_spans(selection, *ends, kernel, how, flags.question.points.pairing)
                : usdt::plan_attach(selection, kernel, how);
  };
  auto plan = plan_with(*options);
  if (!plan) {
    // What the kernel does not tell for want of privilege looks like what it cannot do.
    if (plan.error().kind == usdt::ErrorKind::not_supported && !flags.explain)
      if (const auto may = usdt::check_privilege(); !may) return usdt::fail(may.error());
    return usdt::fail(explained(plan.error(), plan_with, *options));
  }
  if (auto sense = check_slowest(flags, *plan); !sense) return usdt::fail(sense.error());
  PlannedTrace trace{std::move(*plan), {}};
  for (usdt::ListNumber i = 0; i < choice.count(); ++i) trace.printed.lists.push_back(choice.list(i));
  for (const usdt::PlannedProbe& probe : trace.plan.probes)
    trace.printed.of_probe.push_back(choice.of(trace.plan, probe));
  return trace;
}

}  // namespace

bool FoundTrace::lacks_something() const {
  const auto lacks = [](const usdt::Selection& side) { return side.files.empty() && side.kernel.entries.empty(); };
  return lacks(selection) || (ends && lacks(*ends));
}

namespace {

/// What one side of spans means of a file that has points of both.
usdt::ProbeFile side_of(const std::vector<usdt::PointPattern>& patterns, usdt::ProbeFile file) {
  const auto none_means = [&](const auto& means) {
    return std::ranges::none_of(patterns, [&](const usdt::PointPattern& pattern) {
      const std::string* target = usdt::target_of(pattern);
      return target != nullptr && (usdt::means_everything(*target) || usdt::target_means(*target, file.target)) &&
             means(pattern);
    });
  };
  std::erase_if(file.sites, [&](const usdt::Site& site) {
    return none_means([&](const usdt::PointPattern& pattern) {
      const auto* probe = std::get_if<usdt::ProbePattern>(&pattern);
      return probe != nullptr && probe->matches(site.provider, site.name);
    });
  });
  std::erase_if(file.functions, [&](const usdt::FunctionPoint& point) {
    return none_means([&](const usdt::PointPattern& pattern) {
      const auto* function = std::get_if<usdt::FunctionPattern>(&pattern);
      return function != nullptr && point.moment == function->moment && usdt::means_function(*function, point.name);
    });
  });
  return file;
}

/// Lists that nothing was printed by before.
usdt::Result<void> check_new_lists(const Flags& flags, const PlannedTrace& trace, const usdt::Printed& before) {
  for (usdt::ListNumber number = 1; number < trace.printed.lists.size(); ++number) {
    if (!is_used(trace.printed, number) || is_used(before, number)) continue;
    if (auto sense = check_list(flags, trace.plan, trace.printed, number); !sense) return sense;
  }
  return {};
}

usdt::Result<PlannedTrace> plan_what_came(const Flags& flags, const Subjects& subjects, const FoundTrace& found,
                                          const Traced* before) {
  auto trace = plan_selection(flags, subjects, found.scope, found.selection, found.ends ? &*found.ends : nullptr,
                              before ? &before->plan : nullptr);
  if (!trace) return trace;
  if (auto sense = check_new_lists(flags, *trace, before ? before->printed : usdt::Printed()); !sense)
    return usdt::fail(sense.error());
  return trace;
}

}  // namespace

void add_file(const Flags& flags, usdt::ProbeFile file, FoundTrace& found) {
  const auto add = [](usdt::ProbeFile side, usdt::Selection& selection) {
    if (!side.sites.empty() || !side.functions.empty()) selection.files.push_back(std::move(side));
  };
  if (!found.ends) return add(std::move(file), found.selection);
  add(side_of(flags.question.points.patterns, file), found.selection);
  add(side_of(flags.question.points.ends, std::move(file)), *found.ends);
}

usdt::Result<PlannedTrace> plan_more(const Flags& flags, const Subjects& subjects, usdt::ProbeFile file,
                                     const Traced& before) {
  FoundTrace found{.scope = search_scope(flags, subjects), .selection = {}};
  if (!flags.question.points.ends.empty()) found.ends.emplace();
  add_file(flags, std::move(file), found);
  if (found.lacks_something())
    return usdt::fail(usdt::ErrorKind::not_supported,
                      fmt::format("spans only {} in it: of what comes, they have both ends in one file",
                                  found.selection.files.empty() ? "end" : "begin"));
  return plan_what_came(flags, subjects, found, &before);
}

usdt::Result<PlannedTrace> plan_first(const Flags& flags, const Subjects& subjects, const FoundTrace& found) {
  return plan_what_came(flags, subjects, found, nullptr);
}

usdt::KernelFacts facts_for(const Flags& flags) {
  usdt::KernelFacts kernel =
      usdt::kernel_facts(usdt::all_patterns(flags.question), flags.question.attaching.kernel_backend);
  if (flags.question.attaching.backend != usdt::Backend::automatic)
    kernel.abilities.uprobe_session = false;  // another one is wanted
  // Sessions are everybody's, or one process's: a command's and its children's calls have two programs.
  if (flags.question.processes.children ||
      (!flags.question.processes.command.empty() && flags.question.following.follow))
    kernel.abilities.uprobe_session = false;
  return kernel;
}

usdt::Result<FoundTrace> find_trace(const Flags& flags, const Subjects& subjects) {
  FoundTrace found{.scope = search_scope(flags, subjects), .selection = {}};
  if (auto some = check_cgroups(flags, subjects, found.scope); !some) return usdt::fail(some.error());
  auto selection = select(flags, flags.question.points.patterns, found.scope);
  if (!selection) return usdt::fail(selection.error());
  found.selection = std::move(*selection);
  if (flags.question.points.ends.empty()) return found;
  auto ends = select(flags, flags.question.points.ends, found.scope);
  if (!ends) return usdt::fail(ends.error());
  found.ends = std::move(*ends);
  return found;
}

FoundTrace find_beginning(const Flags& flags, const Subjects& subjects) {
  FoundTrace found{.scope = search_scope(flags, subjects), .selection = {}};
  if (flags.question.points.ends.empty()) return found;
  found.ends.emplace();
  if (!check_cgroups(flags, subjects, found.scope)) return found;
  if (auto begins = usdt::select(flags.question.points.patterns, found.scope)) found.selection = std::move(*begins);
  if (auto ends = usdt::select(flags.question.points.ends, found.scope)) found.ends = std::move(*ends);
  return found;
}

usdt::Result<PlannedTrace> plan_trace(const Flags& flags, const Subjects& subjects, const FoundTrace& found) {
  auto trace =
      plan_selection(flags, subjects, found.scope, found.selection, found.ends ? &*found.ends : nullptr, nullptr);
  if (!trace) return trace;
  if (auto sense = check_prints(flags, trace->plan, trace->printed); !sense) return usdt::fail(sense.error());
  return trace;
}

usdt::Result<PlannedTrace> plan_trace(const Flags& flags, const Subjects& subjects) {
  auto found = find_trace(flags, subjects);
  return found ? plan_trace(flags, subjects, *found) : usdt::fail(found.error());
}

}  // namespace usdt_trace
