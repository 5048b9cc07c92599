// SPDX-License-Identifier: BSD-2-Clause
// Options about what the kernel makes of hits in the place of events, and about which events are shown at all.
#include <fmt/format.h>

#include "session/option_rows.hpp"

namespace usdt::session {
namespace {

constexpr std::string_view kTables = "Tables and histograms";

/// An option of one question that takes an expression, about recorded events, too.
struct ExpressionOption {
  std::string_view name;
  std::string ViewText::*text;
  std::string_view description;
  std::string_view value_name = "EXPR";
};

OptionRow row_of(const ExpressionOption& option) {
  return {{.name = option.name,
           .group = kTables,
           .kind = OptionKind::text,
           .value_name = option.value_name,
           .description = std::string(option.description),
           .scope = OptionScope::question,
           .of_replay = true},
          into([text = option.text](QuestionDraft & draft) -> auto& { return draft.view.*text; })};
}

/// The rows about keys and columns.
std::vector<OptionRow> options_of_columns() {
  return {
      {{.name = "count",
        .short_name = "c",
        .group = kTables,
        .description = "No events, but a table of hits at the end",
        .scope = OptionScope::question,
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.view.count; })},
      row_of({"by", &ViewText::by,
              "Count the hits that have the same: expressions as --where has them, texts, probe, name, provider, ip, "
              "hex(EXPR), ntop(EXPR) of an IPv4 address, and the stacks of the process (ustack) and of the kernel "
              "(kstack), found by frame pointers, or as --ustack says; with commas, each with or without a name (EXPR "
              "as NAME)",
              "KEYS"}),
      row_of({"sum", &ViewText::sum, "Of each row of --by the sum of an expression; without --by of all hits"}),
      row_of({"avg", &ViewText::average, "The same of its average"}),
      row_of({"min", &ViewText::minimum, "The same of its smallest value, which may be a real"}),
      row_of({"max", &ViewText::maximum, "The same of its largest value, likewise"}),
      row_of({"distinct", &ViewText::distinct, "How many different values an expression has"}),
      row_of({"variance", &ViewText::variance,
              "Of --sum, where hits are a sample and it is an estimate: what a hit adds to its variance. Each row has "
              "the standard error, the root of the sum. The table then is made of events"}),
  };
}

/// The rows about histograms.
std::vector<OptionRow> options_of_histograms() {
  return {
      row_of({"hist", &ViewText::log2, "How often an expression was in each range from one power of 2 to the next"}),
      {{.name = "hist-detail",
        .group = kTables,
        .kind = OptionKind::number,
        .value_name = "N",
        .description = "Ranges of --hist and --heatmap for each power of 2, as a power of 2 of their own",
        .least = 0,
        .most = 4,
        .scope = OptionScope::question,
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.view.sub_bits; })},
      row_of({"lhist", &ViewText::linear,
              "The same in ranges of equal width: 'size:0:4096:256', of reals 'load:0:1:0.05'", "EXPR:FROM:TO:STEP"}),
      row_of({"heatmap", &ViewText::heat_map,
              "The same as --hist by time, a stretch of --interval (1) beside the other: as a picture, or JSON rows"}),
  };
}

/// The rows about calls and spans.
std::vector<OptionRow> options_of_durations() {
  return {
      {{.name = "latency",
        .group = kTables,
        .description =
            "Of spans and calls: how many, the percentiles of their durations (at most 1/16 too large) and the "
            "largest; with --by by its keys",
        .scope = OptionScope::question,
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.view.latency; })},
      {{.name = "slowest",
        .group = kTables,
        .kind = OptionKind::number,
        .value_name = "N",
        .description =
            "Of spans and calls only the N that took longest, with the values of both ends, the slowest first; "
            "the kernel hands over no others but those that were among them for a while",
        .least = 1,
        .most = 1000,
        .scope = OptionScope::question,
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.view.slowest; })},
      {{.name = "in-flight",
        .group = kTables,
        .kind = OptionKind::number,
        .value_name = "N",
        .description =
            "Of spans and calls the N (100 if it is left out) that have begun and not ended, the oldest first, with "
            "what was known then: at the end, and each --interval. With --by and its like a table of all of them, the "
            "N largest rows",
        .bare_value = "100",
        .least = 1,
        .most = 1000,
        .scope = OptionScope::question,
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.view.in_flight; })},
  };
}

/// The rows about which rows of a table are shown, and when.
std::vector<OptionRow> options_of_rows() {
  return {
      {{.name = "folded",
        .group = kTables,
        .description =
            "One line for each stack, as programs that draw flame graphs take them: 'comm;main;serve 17'. The keys "
            "are those of --by, 'comm, ustack' by default, and of hits in the kernel 'comm, ustack, kstack'",
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.view.folded; })},
      {{.name = "top",
        .group = kTables,
        .kind = OptionKind::number,
        .value_name = "N",
        .description = "Only the N rows with the largest numbers",
        .least = 1,
        .most = UINT32_MAX,
        .scope = OptionScope::question,
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.view.top; })},
      {{.name = "max-rows",
        .group = kTables,
        .kind = OptionKind::number,
        .value_name = "N",
        .description =
            "Room for so many rows, of histograms for so many ranges; hits of further ones are counted as table_full",
        .usual_value = fmt::format("{}", ViewText().max_rows),
        .least = 1,
        .most = 65536,
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.view.max_rows; })},
      {{.name = "key-size",
        .group = kTables,
        .kind = OptionKind::number,
        .value_name = "BYTES",
        .description =
            "Room for the keys of a row together, of which texts that are longer are cut. With more than the usual the "
            "table is made of events, in which texts are as long, and not in the kernel",
        .usual_value = fmt::format("{}", ViewText().key_bytes),
        .least = TableQuestion::kMostKeyBytes,
        .most = TableQuestion::kMostEventKeyBytes,
        .scope = OptionScope::question,
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.view.key_bytes; })},
      {{.name = "rate",
        .group = kTables,
        .description =
            "Hits a second of each row, those with most first: with --interval since the table before, at the end of "
            "the whole trace",
        .scope = OptionScope::question},
       into([](QuestionDraft & draft) -> auto& { return draft.view.rate; })},
      {{.name = "growth",
        .group = kTables,
        .description =
            "With --in-flight, --by and --interval: how much the sum or the count of each row grew since the table "
            "before, at the end since the first one; those that grew most come first",
        .scope = OptionScope::question},
       into([](QuestionDraft & draft) -> auto& { return draft.view.growth; })},
      {{.name = "interval",
        .group = kTables,
        .kind = OptionKind::time,
        .value_name = "TIME",
        .description = "Show the table, or what is slowest or in flight, so far each TIME: 2 (seconds), 500ms, 1m",
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.view.interval; })},
  };
}

}  // namespace

std::vector<OptionRow> options_of_tables() {
  return join_rows(options_of_columns(), options_of_histograms(), options_of_durations(), options_of_rows());
}

}  // namespace usdt::session
