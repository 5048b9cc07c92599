// SPDX-License-Identifier: BSD-2-Clause
#include "asked_question.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
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
  if (read->file && *read->file == '\0') return invalid("the name of a sink's file is empty");
  if (read->listen && (read->flags != 0 || read->on_text || read->file))
    return invalid("a sink is served, keeps its text, is given values, or hands text on: one of them");
  if (read->listen && *read->listen == '\0') return invalid("the place where a sink listens is empty");
  if (read->max_kept != 0 && (read->flags == 0 || read->on_event))
    return invalid("max_kept of a sink that keeps nothing");
  return read;
}

/// Returns the most that is kept of the answers, in bytes. One look at a ring, which comes at once when a session ends,
/// has room.
std::uint64_t most_kept(const usdtc_sink& sink, const usdt::Question& question) {
  if (sink.max_kept != 0) return sink.max_kept;
  constexpr std::uint64_t least = 256 << 20, mebibyte = 1 << 20;
  return std::max(least, 8 * mebibyte * question.attaching.ring_size(false));
}

usdt::SinkOptions options_of(const usdtc_sink& sink, const usdt::Question& question, KeptText& kept) {
  usdt::SinkOptions options{
      .file = sink.file ? sink.file : "", .listen = sink.listen ? sink.listen : "", .program = kProgram};
  if ((sink.flags & USDTC_SINK_KEEP) != 0)
    options.write = [&kept, most = most_kept(sink, question)](std::string_view text) {
      if (text.size() > most || kept.text.size() > most - text.size()) {
        kept.overflowed = true;
        return false;
      }
      kept.text += text;
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

usdt::Result<void> AskedQuestion::add(const usdtc_sink* given, const usdt::Question& question, KeptText& kept) {
  auto sink = read_sink(given);
  if (!sink) return usdt::fail(std::move(sink.error()));
  if ((sink->flags & USDTC_SINK_VALUES) == 0)
    return open(sink->format   ? sink->format
                : sink->listen ? "prometheus"
                               : "json",
                options_of(*sink, question, kept), question);
  if (std::exchange(has_values_, true)) return invalid("the answers to a question are values for one sink");
  values_->want_events(sink->on_event, sink->user);
  values_->keep_at_most(most_kept(*sink, question));
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

/// Sinks of standard output share its position: none writes over another.
usdt::Result<void> AskedQuestion::check_apart(const AskedQuestion& other) const {
  for (const auto& sink : sinks_) {
    for (const auto& another : other.sinks_) {
      const bool both_on_output = sink->options().file.empty() && another->options().file.empty();
      if (sink == another || both_on_output || !sink->file() || sink->file() != another->file()) continue;
      return invalid(
          fmt::format("{} and {} are one file: each sink needs one of its own", another->name(), sink->name()));
    }
  }
  return {};
}

usdt::Result<void> AskedQuestion::check_spared(const std::string& recording) const {
  for (const auto& sink : sinks_) {
    std::error_code unknown;
    if (sink->file() && std::filesystem::equivalent(sink->name(), recording, unknown))
      return invalid(fmt::format("{} is the recording itself", sink->name()));
  }
  return {};
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
