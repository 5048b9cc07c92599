// SPDX-License-Identifier: BSD-2-Clause
#include "explain.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/report.hpp"
#include "ending.hpp"
#include "notice.hpp"
#include "signals.hpp"

namespace usdt_trace {
namespace {

usdt::Result<usdt::Explanation> explained(const Flags& flags) {
  const auto subjects = usdt::find_subjects(flags.question.processes);
  if (!subjects) return usdt::fail(subjects.error());
  std::vector<usdt::SessionNotice> notices;
  auto explanation = usdt::explain_question(flags.question, *subjects, notices);
  for (const usdt::SessionNotice& each : notices) notice(flags, each.text);
  return explanation;
}

}  // namespace

int explain(const std::vector<Flags>& questions) {
  ignore_write_signals();
  const std::string& file = questions.front().output.shown.file;
  auto opened =
      file.empty() ? usdt::Result<usdt::io::Stream>(usdt::io::Stream(STDOUT_FILENO)) : usdt::io::Stream::create(file);
  if (!opened) return complain(opened.error(), questions.front());
  usdt::io::Stream& out = *opened;
  out.make_empty();
  int worst = success;
  for (const Flags& flags : questions) {
    const auto explanation = explained(flags);
    if (!explanation) {
      const usdt::Error& error = explanation.error();
      worst = std::max(worst, complain(flags.question.name.empty() ? error : error.within(flags.script.place), flags));
      continue;
    }
    flags.output.shown.format == kJsonFormat ? write_json(*explanation, flags, out)
                                             : write_text(*explanation, flags, out);
  }
  const bool written = out.flush() == usdt::io::Stream::Flushed::all || out.error() == EPIPE;
  return written ? worst : run_time_failure;
}

}  // namespace usdt_trace
