// SPDX-License-Identifier: BSD-2-Clause
#include "serve/allowed_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "base/try.hpp"
#include "expr/beginning.hpp"
#include "expr/kept_texts.hpp"
#include "expr/row.hpp"
#include "usdt/bpf/event.h"
#include "usdt/bpf/filter.h"

namespace usdt::serve {
namespace {

constexpr std::string_view kBegin = "usdt_trace_span_begin";
constexpr std::array<std::string_view, 3> kEnds = {"usdt_trace_span_end", "usdt_trace_table_span_end",
                                                   "usdt_trace_table_span_end_extremes"};
/// Programs of calls that have a text from where the call began (find_kept_text() of bpf/trace/wanted.h).
constexpr std::array<std::string_view, 7> kKeepTexts = {
    "usdt_trace_call_memory",         "usdt_trace_call_steps",        "usdt_trace_table_call",
    "usdt_trace_table_call_extremes", "usdt_trace_table_call_stacks", "usdt_trace_table_call_extremes_stacks",
    "usdt_trace_count_calls_where"};

/// Maps whose values are made of others' entries, or by the kernel.
constexpr std::array<std::string_view, 5> kValuesOfAnySize = {"usdt_open_calls", "usdt_blank", "usdt_blank_row",
                                                              "usdt_stacks", "usdt_more_stacks"};

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

tl::unexpected<Error> refuse(std::string_view what) {
  return fail(ErrorKind::invalid_argument, fmt::format("usdt-broker: {}", what));
}

class ProgramCheck {
 public:
  ProgramCheck(const broker::LoadRequest& request, const usdt_stock_constants& constants)
      : request_(request), plan_(request.plan), constants_(constants) {}

  Result<void> run() {
    for (const broker::MapSize& size : request_.sizes) TRY(check_size(size));
    if (plan_.spans.has_value() != request_.program.empty() || plan_.spans.has_value() == plan_.programs.empty())
      return refuse("spans name their programs in the plan, and nothing else does");
    for (const AttachGroup& group : plan_.groups)
      for (const Index<PlannedSite> site : group.sites) TRY(check(group, site));
    return check_records();
  }

 private:
  /// Keys, and some values, are copied from a program's stack: what is behind them there may be anybody's, and a
  /// verifier lets who has CAP_PERFMON read it.
  [[nodiscard]] Result<void> check_size(const broker::MapSize& size) const {
    using broker::MapProperty;
    if (size.what == MapProperty::key_size) {
      const bool is_row = size.map == "usdt_rows" || size.map == "usdt_row_keys";
      const std::size_t most = is_row                          ? sizeof(usdt_row)
                               : size.map != "usdt_open_calls" ? 0
                               : plan_.spans                   ? sizeof(usdt_span_key)
                                                               : sizeof(usdt_call_key);
      if (size.value > most) return refuse("keys that are larger than what programs have for them");
    }
    if (size.what != MapProperty::value_size || is_among(kValuesOfAnySize, size.map)) return {};
    // Sums of reals follow the tally, and are made of a map's entry.
    if (size.map == "usdt_rows" && (constants_.table.sum_pieces != 0 || size.value == sizeof(usdt_tally))) return {};
    return refuse("values that are not as large as programs have them");
  }

  [[nodiscard]] bool ends_spans(std::string_view name) const { return plan_.spans && name != kBegin; }

  /// The program of a site. Errors: invalid_argument (it is not one for that side of spans).
  Result<std::string_view> name_of(Index<PlannedSite> number) const {
    const PlannedSite& site = plan_.sites[number];
    if (!plan_.spans) {
      if (request_.program.find("span") != std::string::npos || site.pair || site.program)
        return refuse("a program for spans, and no spans");
      return std::string_view(request_.program);
    }
    const bool begins = number.value < plan_.spans->begins;
    const std::string_view name = site.program ? std::string_view(plan_.programs[*site.program]) : std::string_view();
    if (!site.pair || !(begins ? name == kBegin && !site.filter : is_among(kEnds, name)))
      return refuse("a place of spans with another program than it has");
    return name;
  }

  Result<void> check(const AttachGroup& group, Index<PlannedSite> number) {
    const PlannedSite& site = plan_.sites[number];
    const std::string_view name = TRY(name_of(number));
    if (name.find("call") != name.npos || plan_.spans) has_records_ = true;
    if (site.pair) TRY(check_pair(plan_.filters[*site.pair]));
    if (!site.filter) return {};
    const TypedExpression& filter = plan_.filters[*site.filter];
    const bool is_row = filter.root().op == Operator::row;
    if (is_row != (name.find("_table_") != name.npos)) return refuse("a row of a table is no filter");
    if (is_row) TRY(check_stack(filter, name));
    if (ends_spans(name) && filter.args().size() + expr::beginning_facts(filter).size() > USDT_FILTER_VALUES)
      return refuse("more values of a span than a program reads");
    if (filter.kept_texts().empty()) return {};
    if (!ends_spans(name) && (group.moment != Moment::both || !is_among(kKeepTexts, name)))
      return refuse("texts of where a call began, which such a program does not keep");
    has_texts_ = true;
    for (const TypedExpression::KeptText& text : filter.kept_texts())
      if (text.slot >= constants_.record.string_slots) return refuse("a text that no record keeps");
    return {};
  }

  /// Its keys are written where the key of a map is.
  Result<void> check_pair(const TypedExpression& pair) const {
    if (pair.root().op != Operator::row || !pair.kept_texts().empty() || has_stack(pair))
      return refuse("spans are paired by keys");
    if (expr::row_layout(pair.root()).bytes == plan_.spans->key_bytes) return {};
    return refuse("keys of spans that are larger than the room for them");
  }

  static bool has_stack(const TypedExpression& row) {
    return std::ranges::any_of(row.root().of, [](const TypedExpression::Node& part) {
      return !part.of.empty() && part.of[0].type == ExpressionType::stack;
    });
  }

  /// A stack is written where the constants say, behind what the question has made of the row.
  Result<void> check_stack(const TypedExpression& row, std::string_view name) const {
    const expr::RowLayout layout = expr::row_layout(row.root());
    std::uint32_t at = 0;
    for (std::size_t n = 0; n < layout.keys.size(); ++n) {
      if (row.root().of[n + 1].of[0].type != ExpressionType::stack) continue;
      if (at != 0) return refuse("a stack that is a key twice");
      at = layout.keys[n].offset + 1;
    }
    const bool takes = name.ends_with("_stacks");
    if (takes ? at == constants_.table.user_stack : at == 0) return {};
    return refuse("a stack that is no key of the row");
  }

  /// Records are copied out of a map's entries, and texts read in them, by bpf_probe_read_kernel().
  Result<void> check_records() const {
    if (!has_records_) return {};
    const std::uint64_t room = size_of_open_call();
    if (constants_.record.size > room) return refuse("records of calls that are larger than the room for them");
    if (!has_texts_) return {};
    const std::uint64_t args = std::max(constants_.record.args, plan_.max_args);
    const std::uint64_t texts = std::uint64_t{constants_.record.string_slots} * constants_.record.string_size;
    if (sizeof(usdt_event) + args * sizeof(usdt_event_arg) + texts + expr::kFarthestLook <= room) return {};
    return refuse("texts of calls that are larger than the room for them");
  }

  /// Bytes of an entry of the map of calls that have not ended.
  [[nodiscard]] std::uint32_t size_of_open_call() const {
    std::uint32_t size = sizeof(usdt_event);  // as the object has it
    for (const broker::MapSize& each : request_.sizes)
      if (each.map == "usdt_open_calls" && each.what == broker::MapProperty::value_size) size = each.value;
    return size;
  }

  const broker::LoadRequest& request_;
  const AttachPlan& plan_;
  const usdt_stock_constants& constants_;
  bool has_records_ = false, has_texts_ = false;
};

}  // namespace

Result<void> check_programs(const broker::LoadRequest& request, const usdt_stock_constants& constants) {
  return ProgramCheck(request, constants).run();
}

}  // namespace usdt::serve
