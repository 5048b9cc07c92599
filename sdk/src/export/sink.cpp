// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/sink.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "base/try.hpp"
#include "export/destination.hpp"
#include "export/formats.hpp"
#include "export/output.hpp"
#include "io/stream.hpp"

namespace usdt {
inline namespace v1 {

/// Siblings have one destination.
struct Sink::Impl {
  std::shared_ptr<exports::Destination> destination;
  const exports::FormatRow* row;
  std::unique_ptr<exports::Output> output = nullptr;
  bool written = true;   ///< everything so far
  std::string why = {};  ///< nothing can be written, if it is not the destination's fault

  [[nodiscard]] io::Stream& stream() const noexcept { return destination->stream; }
  /// Returns why a question cannot be answered there; empty: it can. A form of one question is then this sink's alone.
  [[nodiscard]] std::string take_destination(const AnswerStart& start) {
    if (row->records && start.layout == nullptr) return "what comes out of a recording is not recorded again";
    const void* owner = nullptr;
    if (!row->format.of_one_question || destination->owner.compare_exchange_strong(owner, this) || owner == this)
      return {};
    return fmt::format("{} is of one question, and this one has the answer to another", row->format.name);
  }
};

Sink::Sink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sink::~Sink() = default;

Result<std::unique_ptr<Sink>> Sink::open(std::string_view format, SinkOptions options) {
  const auto row = TRY(exports::find_format(format));
  auto destination = TRY(exports::open_destination(*row, std::move(options)));
  return std::unique_ptr<Sink>(
      new Sink(std::make_unique<Impl>(Impl{.destination = std::move(destination), .row = row})));
}

std::unique_ptr<Sink> Sink::sibling() const {
  return std::unique_ptr<Sink>(
      new Sink(std::make_unique<Impl>(Impl{.destination = impl_->destination, .row = impl_->row})));
}

bool Sink::is_sibling_of(const Sink& other) const noexcept { return impl_->destination == other.impl_->destination; }

const std::string& Sink::name() const noexcept { return impl_->destination->name; }
const SinkFormat& Sink::format() const noexcept { return impl_->row->format; }
const SinkOptions& Sink::options() const noexcept { return impl_->destination->options; }
std::optional<std::pair<dev_t, ino_t>> Sink::file() const { return impl_->stream().file(); }

Result<void> Sink::check(const AttachPlan& plan) {
  const auto written = file();
  for (const auto number : plan.files.indices()) {
    const PlannedFile& file = plan.files[number];
    struct stat st {};
    if (!written || file.elf == nullptr || ::fstat(file.elf->fd(), &st) != 0) continue;
    if (*written == std::pair(st.st_dev, st.st_ino))
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{} is the file {}, which is to be traced: nothing is written to it", name(),
                              file.target.path.native()));
  }
  return {};
}

/// From here on there is an output. A file keeps what it had until then: a question that comes to nothing takes no
/// recording away.
void Sink::begin(const AnswerStart& start) {
  impl_->why = impl_->take_destination(start);
  if (!impl_->why.empty()) {
    impl_->written = false;
    return;
  }
  const bool is_written = !impl_->row->is_of_metrics && !impl_->row->format.is_sent;
  if (is_written) impl_->stream().make_empty();  // nothing comes through that of others, which threads share
  impl_->output = impl_->row->make(start, {impl_->stream(), *impl_->destination});
}

void Sink::trace(const AttachPlan& plan, std::size_t probes) {
  if (impl_->output) impl_->output->trace(plan, probes);
}

void Sink::know(std::size_t probes) {
  if (impl_->output) impl_->output->know(probes);
}

void Sink::event(const Event& event) {
  constexpr std::uint64_t much = 1 << 20;
  if (!impl_->output) return;
  impl_->output->event(event);
  if (impl_->output->pending() > much) static_cast<void>(impl_->output->write_out(options().wait_at_end));
}

void Sink::followed(const Followed& followed) {
  if (impl_->output) impl_->output->followed(followed);
}

void Sink::table(const ArrangedTable& table) {
  if (impl_->output && impl_->written) impl_->output->table(table);
}

void Sink::heat(const HeatSlice& slice, bool last) {
  if (impl_->output && impl_->written) impl_->output->heat(slice, last);
}

void Sink::slowest(const SlowestEvents& events, bool last) {
  if (impl_->output && impl_->written) impl_->output->slowest(events, last);
}

void Sink::notice(const SessionNotice& notice) {
  if (impl_->output) impl_->output->notice(notice);
}

bool Sink::flush() {
  if (!impl_->output || !impl_->written) return impl_->written;
  return impl_->output->write_out(options().wait_while_tracing) == exports::Output::Flushed::all;
}

bool Sink::wants_table() const { return impl_->output && impl_->output->wants_table(); }

void Sink::look(const ArrangedTable& table) {
  if (impl_->output) impl_->output->look(table);
}

bool Sink::wants_account() const { return impl_->output && impl_->output->wants_account(); }

void Sink::account(const SessionSummary& summary) {
  if (impl_->output) impl_->output->account(summary);
}

bool Sink::in_no_hurry() const { return !impl_->row->format.has_lines || impl_->row->is_of_metrics; }

void Sink::ending(const SessionSummary& summary) {
  if (impl_->output) impl_->output->ending(summary);
}

/// Writes the rest, or gives it up where the reader sleeps on or there is none.
void Sink::flush_rest() {
  if (!impl_->output || !impl_->written) return;
  const auto result = impl_->output->write_out(options().wait_at_end);
  impl_->written = result == exports::Output::Flushed::all;
  if (result == exports::Output::Flushed::waiting) impl_->output->give_up();
}

void Sink::summary(const SessionSummary& summary) {
  if (impl_->output && impl_->written) impl_->output->summary(summary);
}

/// Tells that there was nothing to trace. Readers of a script get the account of its other questions.
void Sink::end_untraced(const Question& question) {
  if (!impl_->row->tells_of_nothing || !question.name.empty()) return;
  const AttachPlan nothing;
  const Printed printed;
  LiveSurroundings around(question);
  begin({.question = question, .plan = nothing, .layout = nullptr, .printed = printed, .around = around});
  summary({.probes = {}, .skipped = {}, .missed = 0, .changed = {}});
  flush_rest();
  impl_->output.reset();
}

std::vector<std::uint64_t> Sink::not_written() const {
  return impl_->output ? impl_->output->not_written() : std::vector<std::uint64_t>();
}

std::vector<std::uint64_t> Sink::folded_full() const {
  return impl_->output ? impl_->output->folded_full() : std::vector<std::uint64_t>();
}

std::vector<std::uint64_t> Sink::forgotten() {
  return impl_->output ? impl_->output->forgotten() : std::vector<std::uint64_t>();
}

std::uint64_t Sink::unreadable() const { return impl_->output ? impl_->output->unreadable() : 0; }

std::optional<std::string> Sink::failure() const {
  if (const std::string& thrown = impl_->stream().thrown(); !thrown.empty())
    return fmt::format("the function that it is given to threw: {}", thrown);
  if (impl_->output && impl_->output->failure()) return impl_->output->failure();
  const int error = impl_->stream().error();
  if (impl_->written || error == EPIPE) return std::nullopt;
  if (!impl_->why.empty()) return impl_->why;
  if (error == 0) return "its reader took nothing for a second";
  return error == EBADF ? "it is closed" : std::system_category().message(error);
}

std::optional<Backlog> Sink::backlog() const {
  const auto& poster = impl_->destination->poster;
  return poster ? poster->backlog() : std::nullopt;
}

std::string Sink::trouble() const {
  const auto& poster = impl_->destination->poster;
  return poster ? poster->trouble() : std::string();
}

Result<void> Sink::check_written() const {
  const auto why = failure();
  if (!why) return {};
  return fail(Error{
      .kind = ErrorKind::io, .message = fmt::format("{}: {}", name(), *why), .os_error = impl_->stream().error()});
}

}  // namespace v1
}  // namespace usdt
