// SPDX-License-Identifier: BSD-2-Clause
#include "exports.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <set>
#include <utility>

#include "common/report.hpp"
#include "io/escape.hpp"

namespace usdt_agent {

using usdt_trace::ExportPart;

namespace {

const usdt::SinkFormat* find_format(std::string_view name) {
  const auto formats = usdt::sink_formats();
  const auto found = std::ranges::find(formats, name, &usdt::SinkFormat::name);
  return found == formats.end() ? nullptr : &*found;
}

/// The agent's own places, with the page that it serves.
std::vector<ExportPart> places_of(const Options& options) {
  std::vector<ExportPart> places = options.exports;
  if (!options.listen.empty())
    places.push_back({.format = std::string(usdt_trace::kMetricsFormat), .file = {}, .listen = options.listen});
  return places;
}

/// "otlp-http%3a%2f%2f127.0.0.1%3a4318": places that differ have directories that differ.
std::string directory_name(const ExportPart& place) {
  std::string name = place.format + "-";
  for (const char c : place.file) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_';
    is_plain ? name.push_back(c) : void(name += fmt::format("%{:02x}", byte));
  }
  return name;
}

}  // namespace

usdt::Result<void> check_export(const ExportPart& wanted) {
  const usdt::SinkFormat* const format = find_format(wanted.format);
  if (format != nullptr && (format->is_sent || wanted.format == usdt_trace::kMetricsFormat))
    return usdt::check_sink_place(wanted.format, wanted.file);
  if (format == nullptr)
    return usdt::fail(usdt::ErrorKind::invalid_argument, fmt::format("there is no format \"{}\"", wanted.format));
  return usdt::fail(
      usdt::ErrorKind::invalid_argument,
      fmt::format("{} would grow for ever: an agent sends its answers, or has them as metrics", name_of(wanted)));
}

usdt::Result<std::vector<ExportPart>> exports_of(const usdt_trace::Flags& question, const Options& options) {
  std::vector<ExportPart> all = question.output.exports;
  for (const ExportPart& place : all)
    if (auto fits = check_export(place); !fits) return usdt::fail(fits.error());
  std::string why = "there is no --export and no --listen";
  for (const ExportPart& place : places_of(options)) {
    const auto fits = usdt::check_sink_format(place.format, question.question);
    fits ? all.push_back(place) : void(why = fits.error().message);
  }
  if (!all.empty()) return all;
  return usdt::fail(usdt::ErrorKind::invalid_argument, "its answers would go nowhere: " + why);
}

std::string name_of(const ExportPart& place) {
  return place.listen.empty() ? fmt::format("{}={}", place.format, place.file)
                              : fmt::format("metrics at {}", place.listen);
}

usdt::Result<void> Exports::open() {
  if (!options_.spool.empty() && ::mkdir(options_.spool.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "make " + options_.spool, errno));
  for (const ExportPart& place : places_of(options_))
    if (auto sink = sink_of(place); !sink) return usdt::fail(sink.error().within(name_of(place)));
  return {};
}

usdt::Result<std::unique_ptr<usdt::Sink>> Exports::sink_of(const ExportPart& place) {
  auto found = open_.find(key_of(place));
  if (found == open_.end()) {
    auto sink = usdt::Sink::open(place.format, sink_options(place));
    if (!sink) return usdt::fail(sink.error());
    found = open_.emplace(key_of(place), std::move(*sink)).first;
  }
  return found->second->sibling();
}

void Exports::wait_at_most(std::chrono::milliseconds time) { wait_until_ = Clock::now() + time; }

/// Nobody waits for a server here: where there is no room for what it does not take, that is lost and counted.
usdt::SinkOptions Exports::sink_options(const ExportPart& place) const {
  usdt::SinkOptions options{.file = place.file, .listen = place.listen, .program = "usdt-agent " USDT_VERSION};
  options.wait_at_end = [this](std::chrono::milliseconds) { return Clock::now() < wait_until_.load(); };
  options.tell = [name = name_of(place)](const std::string& text) { usdt::tools::print_notice(kTool, text); };
  if (!place.listen.empty()) {
    options.own_metrics = pages_.own_metrics;
    options.health = pages_.health;
  }
  const usdt::SinkFormat* const format = find_format(place.format);
  if (format != nullptr && format->is_sent && !options_.spool.empty()) {
    options.spool = options_.spool + "/" + directory_name(place);
    options.spool_size = options_.spool_bytes;
  }
  return options;
}

void Exports::keep_only(const std::vector<ExportPart>& wanted) {
  std::set<Key> keys;
  for (const ExportPart& place : wanted) keys.insert(key_of(place));
  for (const ExportPart& place : places_of(options_)) keys.insert(key_of(place));
  std::erase_if(open_, [&](const auto& each) {
    const bool goes = !keys.contains(each.first);
    if (const auto backlog = each.second->backlog(); goes && backlog && backlog->events > 0)
      usdt::tools::print_notice(
          kTool, fmt::format("{}: {} wait on disk, and are sent when a question goes there again", each.second->name(),
                             usdt::tools::counted(backlog->events, "event")));
    if (goes) said_.erase(each.first);
    return goes;
  });
}

void Exports::say_what_was_lost(std::chrono::milliseconds pause) {
  for (const auto& [key, sink] : open_) {
    const auto backlog = sink->backlog();
    auto& [before, told] = said_[key];
    if (!backlog || backlog->lost_batches == before.lost_batches || Clock::now() - told < pause) continue;
    const std::uint64_t events = backlog->lost - before.lost;
    usdt::tools::print_notice(kTool, fmt::format("{}: {} that waited on disk not taken: {}", sink->name(),
                                                 events > 0 ? usdt::tools::counted(events, "event") : "numbers",
                                                 usdt::io::printable(backlog->why)));
    before = *backlog;
    told = Clock::now();
  }
}

std::vector<std::pair<std::string, const usdt::Sink*>> Exports::all() const {
  std::vector<std::pair<std::string, const usdt::Sink*>> all;
  for (const auto& [key, sink] : open_)
    all.emplace_back(name_of({.format = std::get<0>(key), .file = std::get<1>(key), .listen = std::get<2>(key)}),
                     sink.get());
  return all;
}

}  // namespace usdt_agent
