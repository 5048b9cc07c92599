// SPDX-License-Identifier: BSD-2-Clause
// Sessions: questions, where their answers are written, and what there is to say beside them.
#include "usdt/session.hpp"

#include <unistd.h>

#include <chrono>
#include <deque>
#include <utility>

#include "handles.hpp"
#include "question.hpp"
#include "usdt/sink.hpp"
#include "values.hpp"

namespace usdtc {
namespace {

constexpr const char* kJson = "json";

/// Keeps what is said to people.
class NoticeKeeper final : public usdt::AnswerConsumer {
 public:
  explicit NoticeKeeper(std::deque<Notice>& kept) : kept_(kept) {}
  void begin(const usdt::AnswerStart& start) override { name_ = start.question.name; }
  void notice(const usdt::SessionNotice& notice) override {
    kept_.push_back({USDTC_NOTICE_SESSION, UINT32_MAX, name_.empty() ? notice.text : name_ + ": " + notice.text});
  }
  bool in_no_hurry() const override { return true; }

 private:
  std::deque<Notice>& kept_;
  std::string name_;
};

/// A form with texts that end in a NUL.
struct FormatTexts {
  std::string name, description;
  bool has_lines;
};

const std::vector<FormatTexts>& format_texts() {
  static const std::vector<FormatTexts> all = [] {
    std::vector<FormatTexts> texts;
    for (const usdt::SinkFormat& format : usdt::sink_formats())
      texts.push_back({std::string(format.name), std::string(format.description), format.has_lines});
    return texts;
  }();
  return all;
}

usdt::Result<usdtc_sink> read_sink(const usdtc_sink* given) {
  if (!given) return invalid("a sink is NULL");
  auto read = read_struct(given, kSink, "usdtc_sink");
  if (!read) return read;
  constexpr std::uint32_t flags = USDTC_SINK_KEEP | USDTC_SINK_VALUES;
  if ((read->flags & ~flags) != 0)
    return invalid(fmt::format("flags {:#x} of a sink have bits that mean nothing", read->flags));
  if (read->flags == flags) return invalid("a sink keeps text, or is given values: one of them");
  if (read->flags != 0 && (read->on_text || read->file))
    return invalid("a sink keeps its text, is given values, or hands text on: one of them");
  if (read->on_event && (read->flags & USDTC_SINK_VALUES) == 0)
    return invalid("on_event of a sink that is not given values: set USDTC_SINK_VALUES");
  return read;
}

usdt::Result<std::unique_ptr<usdt::Sink>> open_sink(const usdtc_sink& sink, const usdt::Question& question,
                                                    std::string& kept) {
  const char* format = sink.format ? sink.format : kJson;
  if (auto goes = usdt::check_sink_format(format, question); !goes) return usdt::fail(std::move(goes.error()));
  usdt::SinkOptions options{.file = sink.file ? sink.file : "", .program = kProgram};
  if ((sink.flags & USDTC_SINK_KEEP) != 0)
    options.write = [&kept](std::string_view text) {
      kept += text;
      return true;
    };
  if (sink.on_text)
    options.write = [take = sink.on_text, user = sink.user](std::string_view text) {
      return take(text.data(), text.size(), user) == 0;
    };
  return usdt::Sink::open(format, std::move(options));
}

/// Says whether answers can be values. Errors: invalid_argument.
usdt::Result<void> check_values(const usdtc_sink& sink, const usdt::View& view) {
  if (sink.format) return invalid(fmt::format("values have no format: \"{}\"", sink.format));
  if (view.heat_map) return invalid("a heat map is no value: it goes to a sink with a format");
  if (view.has_stacks()) return invalid("stacks that are keys of rows are no values: they go to a sink with a format");
  return {};
}

/// A question that was asked, and who takes its answers.
struct AskedQuestion {
  usdt::Result<void> add(const usdtc_sink* given, const usdt::Question& question, std::string& kept);
  std::vector<usdt::AnswerConsumer*> consumers();

  std::vector<std::unique_ptr<usdt::Sink>> sinks = {};
  std::unique_ptr<ValueTaker> values = std::make_unique<ValueTaker>();
  std::unique_ptr<NoticeKeeper> notices = nullptr;
};

usdt::Result<void> AskedQuestion::add(const usdtc_sink* given, const usdt::Question& question, std::string& kept) {
  auto sink = read_sink(given);
  if (!sink) return usdt::fail(std::move(sink.error()));
  if ((sink->flags & USDTC_SINK_VALUES) != 0) {
    values->want_events(sink->on_event, sink->user);
    return check_values(*sink, question.view);
  }
  auto opened = open_sink(*sink, question, kept);
  if (!opened) return usdt::fail(std::move(opened.error()));
  sinks.push_back(std::move(*opened));
  return {};
}

std::vector<usdt::AnswerConsumer*> AskedQuestion::consumers() {
  std::vector<usdt::AnswerConsumer*> all;
  for (const auto& sink : sinks) all.push_back(sink.get());
  all.push_back(values.get());
  all.push_back(notices.get());
  return all;
}

}  // namespace
}  // namespace usdtc

struct usdtc_session {
  usdt::Result<void> ask(const usdtc_question& asked, const char* name, std::span<const usdtc_sink* const> wanted);
  /// Errors: io, of the first sink that could not write everything.
  [[nodiscard]] usdt::Result<void> check_written() const;
  /// Errors: invalid_argument, in a child that fork() has made: the threads of a session are not there.
  [[nodiscard]] usdt::Result<void> check_process() const;
  /// Who takes the values of question `n`. Errors: not_found; check_process().
  [[nodiscard]] usdt::Result<usdtc::ValueTaker*> values_of(std::size_t n) const;

  const pid_t process = ::getpid();
  std::vector<usdtc::AskedQuestion> questions = {};
  std::deque<usdtc::Notice> notices = {};   // their texts stay where they are
  std::string kept = {};                    // text of sinks
  std::uint64_t forgotten = 0;              // bytes of that which were before it
  usdt::Session session = usdt::Session();  // goes first: it knows the consumers
};

usdt::Result<void> usdtc_session::ask(const usdtc_question& asked, const char* name,
                                      std::span<const usdtc_sink* const> wanted) {
  auto question = usdt::parse_question(asked.text);
  if (!question) return usdt::fail(std::move(question.error()));
  if (name) question->name = name;
  usdtc::AskedQuestion all{.notices = std::make_unique<usdtc::NoticeKeeper>(notices)};
  for (const usdtc_sink* each : wanted)
    if (auto added = all.add(each, *question, kept); !added) return added;
  if (const std::string& file = question->recording.file; !file.empty()) {
    usdtc_sink record{};
    record.size = sizeof(record);
    record.format = "record";
    record.file = file.c_str();
    if (auto added = all.add(&record, *question, kept); !added) return added;
  }
  session.add(std::move(*question), all.consumers());
  questions.push_back(std::move(all));
  return {};
}

usdt::Result<usdtc::ValueTaker*> usdtc_session::values_of(std::size_t n) const {
  if (auto own = check_process(); !own) return usdt::fail(std::move(own.error()));
  if (n >= questions.size()) return usdtc::no_more("question", n, questions.size());
  return questions[n].values.get();
}

usdt::Result<void> usdtc_session::check_process() const {
  if (process == ::getpid()) return {};
  return usdtc::invalid(fmt::format("the session is that of process {}, which forked this one", process));
}

usdt::Result<void> usdtc_session::check_written() const {
  for (const usdtc::AskedQuestion& question : questions)
    for (const auto& sink : question.sinks)
      if (auto written = sink->check_written(); !written) {
        written.error().message += "; what is missing there is counted as not_written";
        return written;
      }
  return {};
}

extern "C" {

int usdtc_format_describe(size_t n, usdtc_format* format, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    const auto& all = usdtc::format_texts();
    if (n >= all.size()) return usdtc::no_more("format", n, all.size());
    return usdtc::write_struct(
        {0, all[n].name.c_str(), all[n].description.c_str(), all[n].has_lines ? std::uint32_t{1} : 0, 0}, format,
        usdtc::kFormat, "usdtc_format");
  });
}

usdtc_session* usdtc_session_new(void) {
  try {
    return new usdtc_session;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

int usdtc_session_ask(usdtc_session* session, const usdtc_question* question, const char* name,
                      const usdtc_sink* const* sinks, size_t sink_count, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session || !question) return usdtc::invalid("the session, or the question, is NULL");
    if (sink_count > 0 && !sinks) return usdtc::invalid(fmt::format("sinks is NULL, and should have {}", sink_count));
    if (auto own = session->check_process(); !own) return own;
    return session->ask(*question, name, {sinks, sink_count});
  });
}

int usdtc_session_begin(usdtc_session* session, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session) return usdtc::invalid("the session is NULL");
    if (auto own = session->check_process(); !own) return own;
    return session->session.begin();
  });
}

int usdtc_session_step(usdtc_session* session, int timeout_ms, int* more, usdtc_error** error) {
  if (more) *more = 0;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session || !more) return usdtc::invalid("the session, or the place for `more`, is NULL");
    if (auto own = session->check_process(); !own) return own;
    const auto stepped = session->session.step(std::chrono::milliseconds(timeout_ms));
    if (!stepped) return usdt::fail(stepped.error());
    *more = *stepped ? 1 : 0;
    return {};
  });
}

int usdtc_session_finish(usdtc_session* session, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session) return usdtc::invalid("the session is NULL");
    if (auto own = session->check_process(); !own) return own;
    if (auto finished = session->session.finish(); !finished) return finished;
    return session->check_written();
  });
}

void usdtc_session_stop(usdtc_session* session) {
  if (session) session->session.request_stop();
}

int usdtc_session_fd(usdtc_session* session, int* fd, usdtc_error** error) {
  if (fd) *fd = -1;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session || !fd) return usdtc::invalid("the session, or the place for the descriptor, is NULL");
    if (auto own = session->check_process(); !own) return own;
    const auto descriptor = session->session.fd();
    if (!descriptor) return usdt::fail(descriptor.error());
    *fd = *descriptor;
    return {};
  });
}

int usdtc_session_text(usdtc_session* session, uint64_t from, usdtc_text* text, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session || !text) return usdtc::invalid("the session, or the place for the text, is NULL");
    const std::uint64_t skipped = from - session->forgotten;
    if (skipped > session->kept.size())
      return usdtc::invalid(fmt::format("no text from byte {} on: there are bytes {} to {}", from, session->forgotten,
                                        session->forgotten + session->kept.size()));
    session->kept.erase(0, skipped);
    session->forgotten = from;
    *text = usdtc::text_of(session->kept);
    return {};
  });
}

int usdtc_session_take(usdtc_session* session, size_t n, size_t limit, usdtc_batch** batch, usdtc_error** error) {
  if (batch) *batch = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session || !batch) return usdtc::invalid("the session, or the place for the batch, is NULL");
    const auto values = session->values_of(n);
    if (!values) return usdt::fail(values.error());
    *batch = (*values)->take(usdtc::limit_of(limit)).release();
    return {};
  });
}

int usdtc_session_rows(const usdtc_session* session, size_t n, usdtc_rows** rows, usdtc_error** error) {
  if (rows) *rows = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session || !rows) return usdtc::invalid("the session, or the place for the rows, is NULL");
    const auto values = session->values_of(n);
    return values ? usdtc::give((*values)->rows(), rows) : usdt::fail(values.error());
  });
}

int usdtc_session_ledger(const usdtc_session* session, size_t n, usdtc_ledger** ledger, usdtc_error** error) {
  if (ledger) *ledger = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session || !ledger) return usdtc::invalid("the session, or the place for the ledger, is NULL");
    const auto values = session->values_of(n);
    return values ? usdtc::give((*values)->ledger(), ledger) : usdt::fail(values.error());
  });
}

int usdtc_session_notice(const usdtc_session* session, size_t n, usdtc_notice* notice, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session) return usdtc::invalid("the session is NULL");
    const auto& all = session->notices;
    return usdtc::write_notice(n < all.size() ? &all[n] : nullptr, n, all.size(), notice);
  });
}

void usdtc_session_free(usdtc_session* session) {
  if (session && session->check_process()) delete session;
}
}
