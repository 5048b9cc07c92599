// SPDX-License-Identifier: BSD-2-Clause
#include "asked_question.hpp"

#include <utility>

namespace usdtc {
namespace {

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

usdt::SinkOptions options_of(const usdtc_sink& sink, std::string& kept) {
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
  return options;
}

/// Says whether answers can be values. Errors: invalid_argument.
usdt::Result<void> check_values(const usdtc_sink& sink, const usdt::View& view) {
  if (sink.format) return invalid(fmt::format("values have no format: \"{}\"", sink.format));
  if (view.heat_map) return invalid("a heat map is no value: it goes to a sink with a format");
  if (view.has_stacks()) return invalid("stacks that are keys of rows are no values: they go to a sink with a format");
  return {};
}

}  // namespace

usdt::Result<void> AskedQuestion::add(const usdtc_sink* given, const usdt::Question& question, std::string& kept) {
  auto sink = read_sink(given);
  if (!sink) return usdt::fail(std::move(sink.error()));
  if ((sink->flags & USDTC_SINK_VALUES) == 0)
    return open(sink->format ? sink->format : "json", options_of(*sink, kept), question);
  values_->want_events(sink->on_event, sink->user);
  return check_values(*sink, question.view);
}

usdt::Result<void> AskedQuestion::add_record(const usdt::Question& question) {
  return open("record", {.file = question.recording.file, .program = kProgram}, question);
}

usdt::Result<void> AskedQuestion::open(const char* format, usdt::SinkOptions options, const usdt::Question& question) {
  if (auto goes = usdt::check_sink_format(format, question); !goes) return goes;
  auto sink = usdt::Sink::open(format, std::move(options));
  if (!sink) return usdt::fail(std::move(sink.error()));
  sinks_.push_back(std::move(*sink));
  return {};
}

std::vector<usdt::AnswerConsumer*> AskedQuestion::consumers() const {
  std::vector<usdt::AnswerConsumer*> all;
  for (const auto& sink : sinks_) all.push_back(sink.get());
  all.push_back(values_.get());
  all.push_back(notices_.get());
  return all;
}

usdt::Result<void> AskedQuestion::check_written() const {
  for (const auto& sink : sinks_)
    if (auto written = sink->check_written(); !written) {
      written.error().message += "; what is missing there is counted as not_written";
      return written;
    }
  return {};
}

}  // namespace usdtc
