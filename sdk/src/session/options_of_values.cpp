// SPDX-License-Identifier: BSD-2-Clause
// Options about which hits count, and about what is shown of each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <memory>

#include "base/try.hpp"
#include "session/option_names.hpp"
#include "session/option_rows.hpp"

namespace usdt::session {
namespace {

constexpr std::string_view kValues = "Values and questions";

/// Returns the words for what these know of every hit: "pid, tid".
std::string words_of(std::initializer_list<HitFieldSource> sources) {
  std::vector<std::string_view> words;
  for (const HitFieldInfo& each : kHitFields)
    if (std::ranges::find(sources, each.source) != sources.end()) words.push_back(each.word);
  return fmt::format("{}", fmt::join(words, ", "));
}

Result<void> take_print(QuestionDraft& draft, const SetOption& set) {
  auto prints = TRY(parse_prints({set.values.begin(), set.values.end()}, set.prefix));
  draft.question.values.print = std::move(prints);
  return {};
}

Result<void> take_format_string(QuestionDraft& draft, const SetOption& set) {
  auto format = TRY(parse_format_string(set.value(), set.prefix));
  AskedValues& values = draft.question.values;
  if (!format.list.empty() && !values.print.empty())
    return refuse("--format-string names its values in place (%{arg0}): --print does not go with that", set.prefix);
  if (!format.list.empty()) values.print.rest = format.list;
  values.format = std::move(format);
  return {};
}

Result<void> take_where(QuestionDraft& draft, const SetOption& set) {
  auto where = parse_expression(set.value());
  if (!where) return fail(where.error().within(set.name()));
  draft.question.where = std::make_shared<const Expression>(std::move(*where));
  return {};
}

Result<void> take_pairing(QuestionDraft& draft, const SetOption& set) {
  auto pairing = TRY(parse_pairing(set.value(), set.prefix));
  draft.question.points.pairing = std::move(pairing);
  return {};
}

/// Reads "dwarf", "fp", "20", "fp,20"; false: it is none of these.
bool read_user_stack(std::string_view text, AskedStacks& stacks) {
  constexpr std::uint32_t most_by_frame_pointers = 127, most = 512;
  const std::size_t comma = std::min(text.find(','), text.size());
  const std::string_view method = text.substr(0, comma);
  const bool named = method == "fp" || method == "dwarf";
  if (!named && comma != text.size()) return false;
  stacks.user_method = method == "fp" ? StackMethod::frame_pointers : StackMethod::call_frame_info;
  stacks.user_depth = AskedStacks::kUsualUserDepth;
  if (named && comma == text.size()) return true;
  const auto depth = read_number<std::uint32_t>(named ? text.substr(comma + 1) : text);
  stacks.user_depth = depth.value_or(0);
  return stacks.user_depth > 0 && stacks.user_depth <= (method == "fp" ? most_by_frame_pointers : most);
}

Result<void> take_user_stack(QuestionDraft& draft, const SetOption& set) {
  if (read_user_stack(set.value(), draft.question.stacks)) return {};
  return set.wrong(
      fmt::format("\"{}\" is neither a number up to 512, nor dwarf or fp (up to 127), nor one of these with a "
                  "number: fp,20",
                  set.value()));
}

Result<void> take_user_stack_size(QuestionDraft& draft, const SetOption& set) {
  std::uint32_t& size = draft.question.stacks.user_kilobytes;
  store(set, size);
  return size % 4 == 0 ? Result<void>() : set.wrong("not a multiple of 4 KiB");
}

/// The rows about the stacks of events.
std::vector<OptionRow> options_of_stacks() {
  return {
      {{.name = "kstack",
        .group = kValues,
        .kind = OptionKind::number,
        .value_name = "N",
        .description = "Show the kernel's stack, at most N functions of it (16)",
        .bare_value = "16",
        .least = 1,
        .most = 127},
       into([](QuestionDraft & draft) -> auto& { return draft.question.stacks.kernel_depth; })},
      {{.name = "ustack",
        .group = kValues,
        .kind = OptionKind::text,
        .value_name = "[dwarf|fp][,N]",
        .description =
            "Show the stack of the process, at most N functions of it (32). Callers are found by the unwind "
            "information of the files (dwarf) or by frame pointers (fp): smaller events, but many programs keep none",
        .bare_value = "dwarf",
        .words = {"dwarf", "fp"}},
       take_user_stack},
      {{.name = "ustack-size",
        .group = kValues,
        .kind = OptionKind::number,
        .value_name = "KIB",
        .description = "How much of the stack --ustack=dwarf copies at each hit: 4 to 64, a multiple of 4",
        .usual_value = fmt::format("{}", AskedStacks().user_kilobytes),
        .least = 4,
        .most = 64},
       take_user_stack_size},
  };
}

/// The rows about whose processes events are, and what their threads work for.
std::vector<OptionRow> options_of_owners() {
  return {
      {{.name = "containers",
        .group = kValues,
        .description =
            "With --export otlp and clickhouse: the container, the pod and the cgroup (v2) of the process at each hit"},
       into([](QuestionDraft & draft) -> auto& { return draft.question.values.containers; })},
      {{.name = "trace-context",
        .group = kValues,
        .description =
            "The trace and span that the thread works for at each hit, as OpenTelemetry's programs publish them (OTEP "
            "4947): trace_id and span_id, which --print, --where and --by know, too"},
       into([](QuestionDraft & draft) -> auto& { return draft.question.values.trace_context; })},
      {{.name = "trace-attributes",
        .group = kValues,
        .description = "--trace-context with the attributes that the thread's context has, of which --print, --where "
                       "and --by know each: "
                       "trace_attribute(\"http.route\")"},
       [](QuestionDraft& draft, const SetOption& /*set*/) -> Result<void> {
         draft.question.values.trace_context = draft.question.values.trace_attributes = true;
         return {};
       }},
  };
}

/// The rows about how values look.
std::vector<OptionRow> options_of_prints() {
  using Source = HitFieldSource;
  return {
      {{.name = "print",
        .group = kValues,
        .kind = OptionKind::text,
        .value_name = "[PROBE=]LIST",
        .description =
            "What to show: argN, str(argN), str(argN, argM) of the length argM, str(argN, argM - argN) up to the "
            "address "
            "argM, hex(argN), ntop(argN) of an IPv4 "
            "address, ntop(argN, 16) or ntop(argN, 4) of one that it points to, buf(argN, 32) and buf(argN, argM) of "
            "bytes, of functions names as well (count, str(filename)), retval, and what they lead to (req->peer.port, "
            "*p, a[2], ((struct foo *)arg1)->x, sizeof(struct foo)), whole numbers that are computed of them (argM - "
            "argN, "
            "flags & 0xff), " +
            words_of({Source::hit, Source::owner, Source::clock, Source::site, Source::stack, Source::context}) +
            ", trace_attribute(\"KEY\") (args.pid: an argument of that name), each with or without a name (str(arg1) "
            "as file); "
            "PROBE=LIST: of these probes. Default: "
            "every argument",
        .repeats = true,
        .scope = OptionScope::question,
        .of_replay = true},
       take_print},
      {{.name = "format-string",
        .group = kValues,
        .kind = OptionKind::text,
        .value_name = "FORMAT",
        .description =
            "Lines of your own: printf's directives, which take the values of --print in their order ('%s took %d'), "
            "%{NAME} for time, nsecs, pid, tid, cpu, comm, probe and duration, or for a value in place "
            "('%-16{comm} %{str(arg0)} %{elapsed}')",
        .scope = OptionScope::question,
        .of_replay = true},
       take_format_string},
  };
}

/// The rows about which hits count.
std::vector<OptionRow> options_of_conditions() {
  using Source = HitFieldSource;
  return {
      {{.name = "where",
        .group = kValues,
        .kind = OptionKind::text,
        .value_name = "EXPR",
        .description =
            "Only hits for which this holds, which the kernel finds out: C's operators over arguments and what they "
            "lead to, " +
            words_of({Source::hit, Source::owner}) + " (of spans those of the beginning), " +
            words_of({Source::clock, Source::site}) +
            ", numbers (10ms, 4KiB), texts (==, !=, =~ \"SELECT*FROM*\", str(argN, argM) of the length argM), in {1, "
            "2}",
        .scope = OptionScope::question,
        .of_replay = true},
       take_where},
      {{.name = "pair-by",
        .group = kValues,
        .kind = OptionKind::text,
        .value_name = "KEYS",
        .description =
            "What a hit that ends a span and the one that begins it have in common: expressions as --where has them, "
            "with commas, for both or 'KEYS ~~ KEYS'. Default: tid, the thread",
        .scope = OptionScope::question},
       take_pairing},
      {{.name = "depth",
        .group = kValues,
        .kind = OptionKind::number,
        .value_name = "N",
        .description = "Structs within structs shown with their members (default 1)",
        .least = 0,
        .most = 8},
       into([](QuestionDraft & draft) -> auto& { return draft.question.values.depth; })},
      {{.name = "strings",
        .group = kValues,
        .kind = OptionKind::choice,
        .value_name = "WHEN",
        .description =
            "Arguments that point to what is plainly text: auto shows the text behind the number (as text output does "
            "by default, and JSON does not), never only the number",
        .words = {"auto", "never"},
        .of_replay = true},
       [](QuestionDraft& draft, const SetOption& set) -> Result<void> {
         draft.question.values.likely_texts = set.value() == "auto";
         return {};
       }},
  };
}

}  // namespace

std::vector<OptionRow> options_of_values() {
  return join_rows(options_of_prints(), options_of_conditions(), options_of_stacks(), options_of_owners());
}

}  // namespace usdt::session
