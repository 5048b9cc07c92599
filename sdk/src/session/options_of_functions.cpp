// SPDX-License-Identifier: BSD-2-Clause
// Options about what functions of files mean, and about how their returns are seen.
#include "base/try.hpp"
#include "session/option_rows.hpp"

namespace usdt::session {
namespace {

Result<void> take_types(QuestionDraft& draft, const SetOption& set) {
  auto types = TRY(parse_types(set.value()));
  draft.functions.args = std::move(types);
  return {};
}

/// The rows about how returns are seen.
std::vector<OptionRow> options_of_returns() {
  return {
      {{.name = "ret-probes",
        .group = kFunctionOptions,
        .description =
            "See returns of functions by a probe on each RET instruction alone, as of Go programs always, also where "
            "they return by a jump to another function, which is not seen then. Without it the kernel's return probe "
            "is taken there, unless an exception may pass, which ends the program; so does a change of stacks"},
       [](QuestionDraft& draft, const SetOption&) -> Result<void> {
         draft.functions.ret_probes = true;
         return {};
       }},
      {{.name = "no-ret-probes",
        .group = kFunctionOptions,
        .description =
            "See returns of functions by the kernel's return probes, also where exceptions may leave the function"},
       [](QuestionDraft& draft, const SetOption& set) -> Result<void> {
         if (draft.functions.ret_probes) return set.excluded_by("ret-probes");
         draft.functions.ret_probes = false;
         return {};
       }},
  };
}

}  // namespace

std::vector<OptionRow> options_of_functions() {
  std::vector<OptionRow> rows = {
      {{.name = "args",
        .group = kFunctionOptions,
        .kind = OptionKind::text,
        .value_name = "TYPES",
        .description =
            "The types of arguments where no debug information has them: \"i32, str, f64\"; i8 to i64, u8 to u64, "
            "f32, f64, bool, ptr, str",
        .scope = OptionScope::question},
       take_types},
      {{.name = "debuginfod",
        .group = kFunctionOptions,
        .description = "Ask the servers of $DEBUGINFOD_URLS for debug files that are not there, by build id"},
       into([](QuestionDraft & draft) -> auto& { return draft.functions.debuginfod; })},
      {{.name = "no-inline",
        .group = kFunctionOptions,
        .description = "Without the copies of functions that the compiler inlined into others"},
       [](QuestionDraft& draft, const SetOption&) -> Result<void> {
         draft.functions.inlined = false;
         return {};
       }},
  };
  return join_rows(std::move(rows), options_of_returns());
}

}  // namespace usdt::session
