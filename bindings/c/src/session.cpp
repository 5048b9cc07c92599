// SPDX-License-Identifier: BSD-2-Clause
// Sessions: questions, where their answers are written, and what there is to say beside them.
#include "usdt/session.hpp"

#include <unistd.h>

#include <chrono>
#include <deque>
#include <utility>

#include "asked_question.hpp"
#include "question.hpp"

namespace usdtc {
namespace {

/// A form with texts that end in a NUL.
struct FormatTexts {
  std::string name, description;
  bool has_lines, is_sent;
};

const std::vector<FormatTexts>& format_texts() {
  static const std::vector<FormatTexts> all = [] {
    std::vector<FormatTexts> texts;
    for (const usdt::SinkFormat& format : usdt::sink_formats())
      texts.push_back({std::string(format.name), std::string(format.description), format.has_lines, format.is_sent});
    return texts;
  }();
  return all;
}

}  // namespace
}  // namespace usdtc

struct usdtc_session {
  usdt::Result<void> ask(const usdtc_question& asked, const char* name, std::span<const usdtc_sink* const> wanted);
  /// Errors: invalid_argument, of a sink that would write over another one, or over the recording that is read.
  [[nodiscard]] usdt::Result<void> check_apart(const usdtc::AskedQuestion& question, const std::string& replayed) const;
  /// Errors: io, of the first sink that could not write everything; limit, of text that could not be kept.
  [[nodiscard]] usdt::Result<void> check_written() const;
  /// Errors: invalid_argument, in a child that fork() has made: the threads of a session are not there.
  [[nodiscard]] usdt::Result<void> check_process() const;
  /// Returns the taker of the values of question `n`. Errors: not_found; check_process().
  [[nodiscard]] usdt::Result<usdtc::ValueTaker*> values_of(std::size_t n) const;

  const pid_t process = ::getpid();
  std::vector<usdtc::AskedQuestion> questions = {};
  std::deque<usdtc::Notice> notices = {};  // their texts stay where they are
  usdtc::KeptText kept = {};
  bool begun = false;
  std::uint64_t forgotten = 0;                                    // bytes of it that were passed over
  usdt::Session session = usdt::Session({.finds_broker = true});  // goes first: it knows the consumers
};

usdt::Result<void> usdtc_session::ask(const usdtc_question& asked, const char* name,
                                      std::span<const usdtc_sink* const> wanted) {
  if (begun) return usdtc::invalid("the session has begun: its questions are asked before that");
  auto question = usdt::parse_question(asked.text);
  if (!question) return usdt::fail(std::move(question.error()));
  if (name) question->name = name;
  usdtc::AskedQuestion all(notices);
  for (const usdtc_sink* each : wanted)
    if (auto added = all.add(each, *question, kept); !added) return added;
  if (!question->recording.file.empty())
    if (auto added = all.add_record(*question); !added) return added;
  if (auto apart = check_apart(all, question->recording.replay); !apart) return apart;
  questions.push_back(std::move(all));
  session.add(std::move(*question), questions.back().consumers());
  return {};
}

usdt::Result<void> usdtc_session::check_apart(const usdtc::AskedQuestion& question, const std::string& replayed) const {
  if (auto apart = question.check_apart(question); !apart) return apart;
  for (const usdtc::AskedQuestion& other : questions)
    if (auto apart = question.check_apart(other); !apart) return apart;
  return replayed.empty() ? usdt::Result<void>() : question.check_spared(replayed);
}

usdt::Result<usdtc::ValueTaker*> usdtc_session::values_of(std::size_t n) const {
  if (auto own = check_process(); !own) return usdt::fail(std::move(own.error()));
  if (n >= questions.size()) return usdtc::no_more("question", n, questions.size());
  return &questions[n].values();
}

usdt::Result<void> usdtc_session::check_process() const {
  if (process == ::getpid()) return {};
  return usdtc::invalid(fmt::format("the session is that of process {}, which forked this one", process));
}

usdt::Result<void> usdtc_session::check_written() const {
  for (const usdtc::AskedQuestion& question : questions)
    if (auto written = question.check_written(); !written) return written;
  if (kept.overflowed)
    return usdt::fail(
        usdt::ErrorKind::limit,
        "nobody took the text that is kept (usdtc_session_text()), and there was more than usdtc_sink.max_kept");
  return {};
}

extern "C" {

int usdtc_format_describe(size_t n, usdtc_format* format, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    const auto& all = usdtc::format_texts();
    if (n >= all.size()) return usdtc::no_more("format", n, all.size());
    return usdtc::write_struct({0, all[n].name.c_str(), all[n].description.c_str(),
                                all[n].has_lines ? std::uint32_t{1} : 0, all[n].is_sent ? std::uint32_t{1} : 0},
                               format, usdtc::kFormat, "usdtc_format");
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
    session->begun = !session->questions.empty();
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
    std::string& kept = session->kept.text;
    if (skipped > kept.size())
      return usdtc::invalid(fmt::format("no text from byte {} on: there are bytes {} to {}", from, session->forgotten,
                                        session->forgotten + kept.size()));
    kept.erase(0, skipped);
    session->forgotten = from;
    *text = usdtc::text_of(kept);
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
