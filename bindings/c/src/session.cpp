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

usdt::Result<std::unique_ptr<usdt::Sink>> open_sink(const usdtc_sink* given, const usdt::Question& question,
                                                    std::string& kept) {
  if (!given) return invalid("a sink is NULL");
  auto read = read_struct(given, kSink, "usdtc_sink");
  if (!read) return usdt::fail(std::move(read.error()));
  const char* format = read->format ? read->format : kJson;
  if (auto goes = usdt::check_sink_format(format, question); !goes) return usdt::fail(std::move(goes.error()));
  usdt::SinkOptions options{.file = read->file ? read->file : "", .program = "libusdt-c " USDTC_VERSION};
  if ((read->flags & ~std::uint32_t{USDTC_SINK_KEEP}) != 0)
    return invalid(fmt::format("flags {:#x} of a sink have bits that mean nothing", read->flags));
  if ((read->flags & USDTC_SINK_KEEP) != 0) {
    if (read->on_text || read->file) return invalid("a sink keeps its text, or hands it on: one of them");
    options.write = [&kept](std::string_view text) {
      kept += text;
      return true;
    };
  }
  if (read->on_text)
    options.write = [take = read->on_text, user = read->user](std::string_view text) {
      return take(text.data(), text.size(), user) == 0;
    };
  return usdt::Sink::open(format, std::move(options));
}

}  // namespace
}  // namespace usdtc

struct usdtc_session {
  usdt::Result<void> ask(const usdtc_question& asked, const char* name, std::span<const usdtc_sink* const> wanted);
  /// Errors: io, of the first sink that could not write everything.
  [[nodiscard]] usdt::Result<void> check_written() const;
  /// Errors: invalid_argument, in a child that fork() has made: the threads of a session are not there.
  [[nodiscard]] usdt::Result<void> check_process() const;

  const pid_t process = ::getpid();
  std::vector<std::unique_ptr<usdt::AnswerConsumer>> keepers = {};
  std::vector<std::unique_ptr<usdt::Sink>> sinks = {};
  std::deque<usdtc::Notice> notices = {};   // their texts stay where they are
  std::string kept = {};                    // text of sinks, for the next usdtc_session_take_text()
  std::string taken = {};                   // and what the last one gave
  usdt::Session session = usdt::Session();  // goes first: it knows the consumers
};

usdt::Result<void> usdtc_session::ask(const usdtc_question& asked, const char* name,
                                      std::span<const usdtc_sink* const> wanted) {
  auto question = usdt::parse_question(asked.text);
  if (!question) return usdt::fail(std::move(question.error()));
  if (name) question->name = name;
  std::vector<std::unique_ptr<usdt::Sink>> opened;
  for (const usdtc_sink* each : wanted) {
    auto sink = usdtc::open_sink(each, *question, kept);
    if (!sink) return usdt::fail(std::move(sink.error()));
    opened.push_back(std::move(*sink));
  }
  if (const std::string& file = question->recording.file; !file.empty()) {
    const usdtc_sink record{.size = sizeof(record),
                            .format = "record",
                            .on_text = nullptr,
                            .user = nullptr,
                            .file = file.c_str(),
                            .flags = 0,
                            .reserved = 0};
    auto sink = usdtc::open_sink(&record, *question, kept);
    if (!sink) return usdt::fail(std::move(sink.error()));
    opened.push_back(std::move(*sink));
  }
  keepers.push_back(std::make_unique<usdtc::NoticeKeeper>(notices));
  std::vector<usdt::AnswerConsumer*> consumers;
  for (const auto& sink : opened) consumers.push_back(sink.get());
  consumers.push_back(keepers.back().get());
  std::ranges::move(opened, std::back_inserter(sinks));
  session.add(std::move(*question), std::move(consumers));
  return {};
}

usdt::Result<void> usdtc_session::check_process() const {
  if (process == ::getpid()) return {};
  return usdtc::invalid(fmt::format("the session is that of process {}, which forked this one", process));
}

usdt::Result<void> usdtc_session::check_written() const {
  for (const auto& sink : sinks)
    if (const auto why = sink->failure())
      return usdt::fail(usdt::ErrorKind::io,
                        fmt::format("{}: {}; what is missing there is counted as not_written", sink->name(), *why));
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

int usdtc_session_take_text(usdtc_session* session, usdtc_text* text, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!session || !text) return usdtc::invalid("the session, or the place for the text, is NULL");
    session->taken = std::exchange(session->kept, {});
    *text = usdtc::text_of(session->taken);
    return {};
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
