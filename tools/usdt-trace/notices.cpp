// SPDX-License-Identifier: BSD-2-Clause
#include "notices.hpp"

#include "common/report.hpp"
#include "ledger.hpp"
#include "notice.hpp"
#include "rivals.hpp"

namespace usdt_trace {

void Notices::notice(const usdt::SessionNotice& notice) {
  using Kind = usdt::SessionNotice::Kind;
  const std::string& text = flags_.output.verbose && !notice.detail.empty() ? notice.detail : notice.text;
  switch (notice.kind) {
    case Kind::missing_process:
      return usdt::tools::print_notice("usdt-trace", text);
    case Kind::incomplete:  // the answer is not about all that was named, which is said in more lines unless --quiet
      return flags_.output.quiet ? usdt::tools::print_notice(text) : void();
    case Kind::following:
      return flags_.output.verbose ? usdt_trace::notice(flags_, text) : void();
    default:
      return usdt_trace::notice(flags_, text);
  }
}

void Notices::end(const usdt::AnswerEnd& end) {
  const Ledger ledger(flags_, end.plan,
                      {.summary = end.summary,
                       .shown = end.given,
                       .not_shown = end.beyond,
                       .followed = end.follows,
                       .nothing_left = end.nothing_left && flags_.question.processes.command.empty(),
                       .command_ended = command_ended_()});
  ledger.print();
  if (flags_.question.recording.replay.empty())
    for (const std::string& line : hints_at_rivals(flags_, end.plan, end.summary)) usdt_trace::notice(flags_, line);
  ending_ = {.losses = ledger.has_losses(), .cut = !end.summary.cut.empty(), .nothing_left = end.nothing_left};
}

}  // namespace usdt_trace
