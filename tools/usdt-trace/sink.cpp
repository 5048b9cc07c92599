// SPDX-License-Identifier: BSD-2-Clause
#include "sink.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "common/report.hpp"
#include "record_output.hpp"

namespace usdt_trace {

usdt::Result<std::unique_ptr<Sink>> Sink::open(const std::string& file, What what, const Flags& flags,
                                               Patience patience) {
  std::string name = "standard output";
  std::shared_ptr<usdt::tools::Stream> stream;
  if (file.empty()) {
    stream = std::make_shared<usdt::tools::Stream>(STDOUT_FILENO);
  } else {
    auto created = usdt::tools::Stream::create(file);
    if (!created) return usdt::fail(created.error());
    stream = std::make_shared<usdt::tools::Stream>(std::move(*created));
    name = file;
  }
  return std::unique_ptr<Sink>(new Sink(std::move(name), what, std::move(stream), flags, std::move(patience)));
}

std::unique_ptr<Sink> Sink::sibling(const Flags& flags) const {
  return std::unique_ptr<Sink>(new Sink(name_, what_, stream_, flags, patience_));
}

usdt::Result<void> Sink::check(const usdt::AttachPlan& plan) {
  const auto written = stream_->file();
  for (const auto number : plan.files.indices()) {
    const usdt::PlannedFile& file = plan.files[number];
    struct stat st {};
    if (!written || file.elf == nullptr || ::fstat(file.elf->fd(), &st) != 0) continue;
    if (*written == std::pair(st.st_dev, st.st_ino))
      return usdt::fail(usdt::ErrorKind::invalid_argument,
                        fmt::format("{} is the file {}, which is to be traced: nothing is written to it", name_,
                                    file.target.path.native()));
  }
  return {};
}

void Sink::begin(const usdt::AnswerStart& start) {
  stream_->make_empty();
  flags_.question = start.question;
  output_ = what_ == What::recorded ? make_recorder(start, flags_, *stream_)
                                    : line_output(start.plan, start.printed, flags_, start.around, *stream_);
}

void Sink::event(const usdt::Event& event) {
  constexpr std::uint64_t much = 1 << 20;
  output_->event(event);
  if (output_->pending() > much) static_cast<void>(output_->write_out(patience_.at_end));
}

void Sink::table(const usdt::ArrangedTable& table) {
  if (written_) output_->table(table);
}

void Sink::heat(const usdt::HeatSlice& slice, bool last) {
  if (written_) output_->heat(slice, last);
}

void Sink::slowest(const usdt::SlowestEvents& events, bool last) {
  if (written_) output_->slowest(events, last);
}

void Sink::notice(const usdt::SessionNotice& notice) {
  if (output_) output_->notice(notice);
}

bool Sink::flush() { return written_ && output_->write_out(patience_.while_tracing) == Output::Flushed::all; }

/// Where the reader sleeps on, or there is none, the rest is given up.
void Sink::flush_rest() {
  if (!written_) return;
  const auto result = output_->write_out(patience_.at_end);
  written_ = result == Output::Flushed::all;
  if (result == Output::Flushed::waiting) output_->give_up();
}

void Sink::summary(const usdt::SessionSummary& summary) {
  if (written_) output_->summary(summary);
}

void Sink::end_untraced() {
  if (flags_.output.format != Format::json || what_ == What::recorded || !flags_.question.name.empty()) return;
  const usdt::AttachPlan nothing;
  const usdt::Printed printed;
  usdt::LiveSurroundings around(flags_.question);
  begin({.question = flags_.question, .plan = nothing, .layout = nullptr, .printed = printed, .around = around});
  summary({.probes = {}, .skipped = {}, .missed = 0, .changed = {}});
  flush_rest();
  output_.reset();
}

bool Sink::failed() const {
  if (written_ || stream_->error() == EPIPE) return false;
  const std::string why = stream_->error() == 0       ? "its reader took nothing for a second"
                          : stream_->error() == EBADF ? "it is closed"
                                                      : std::system_category().message(stream_->error());
  usdt::tools::print_notice("usdt-trace",
                            fmt::format("{}: {}; what is missing there is counted as not_written", name_, why));
  return true;
}

}  // namespace usdt_trace
