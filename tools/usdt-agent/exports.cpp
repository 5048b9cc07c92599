// SPDX-License-Identifier: BSD-2-Clause
#include "exports.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <filesystem>
#include <set>
#include <system_error>
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

bool is_for_agents(const usdt::SinkFormat& format) {
  return format.is_sent || format.name == usdt_trace::kMetricsFormat;
}

usdt::Result<void> check_export(const ExportPart& wanted) {
  const usdt::SinkFormat* const format = find_format(wanted.format);
  if (!wanted.listen.empty()) return usdt::check_listen_place(wanted.listen);
  if (format != nullptr && is_for_agents(*format)) return usdt::check_sink_place(wanted.format, wanted.file);
  if (format == nullptr)
    return usdt::fail(usdt::ErrorKind::invalid_argument, fmt::format("there is no format \"{}\"", wanted.format));
  return usdt::fail(
      usdt::ErrorKind::invalid_argument,
      fmt::format("{} would grow for ever: an agent sends its answers, or has them as metrics", name_of(wanted)));
}

namespace {

/// A file of questions is read wherever the agent was started: as a service that is in "/".
usdt::Result<void> check_own(const ExportPart& place) {
  if (auto fits = check_export(place); !fits) return fits;
  const usdt::SinkFormat* const format = find_format(place.format);
  if (format->is_sent || !place.listen.empty() || place.file.starts_with('/')) return {};
  return usdt::fail(usdt::ErrorKind::invalid_argument,
                    fmt::format("{}: a file needs its whole path, from \"/\" on", name_of(place)));
}

usdt::Result<void> check_spool(const ExportPart& place, const Options& options) {
  const usdt::SinkFormat* const format = find_format(place.format);
  const std::size_t size = directory_name(place).size();
  if (options.spool.empty() || format == nullptr || !format->is_sent || size <= NAME_MAX) return {};
  return usdt::fail(usdt::ErrorKind::invalid_argument,
                    fmt::format("{}: too long for a spool, whose directory is called by it: {} characters of {}",
                                name_of(place), size, NAME_MAX));
}

/// Metrics count events, and have none of their values.
usdt::Result<void> check_values_arrive(const usdt::Question& question, const std::vector<ExportPart>& all) {
  const bool wants_values = !question.view.no_events() && !question.values.print.empty();
  const auto takes_events = [](const ExportPart& place) { return place.format != usdt_trace::kMetricsFormat; };
  if (!wants_values || std::ranges::any_of(all, takes_events)) return {};
  return usdt::fail(
      usdt::ErrorKind::invalid_argument,
      fmt::format("{}: its values would go nowhere: metrics count events, and do not have them; --export otlp=URL and "
                  "clickhouse=URL do (of the service: USDT_AGENT_OPTIONS in /etc/default/usdt-agent)",
                  question.values.format.empty() ? "print" : "format-string"));
}

}  // namespace

usdt::Result<std::vector<ExportPart>> exports_of(const usdt_trace::Flags& question, const Options& options) {
  std::vector<ExportPart> all = question.output.exports;
  for (const ExportPart& place : all)
    if (auto fits = check_own(place); !fits) return usdt::fail(fits.error());
  std::string why = "there is no --export and no --listen";
  for (const ExportPart& place : places_of(options)) {
    const auto fits = usdt::check_sink_format(place.format, question.question);
    fits ? all.push_back(place) : void(why = fits.error().message);
  }
  if (all.empty()) return usdt::fail(usdt::ErrorKind::invalid_argument, "its answers would go nowhere: " + why);
  for (const ExportPart& place : all)
    if (auto fits = check_spool(place, options); !fits) return usdt::fail(fits.error());
  if (auto arrive = check_values_arrive(question.question, all); !arrive) return usdt::fail(arrive.error());
  return all;
}

std::string name_of(const ExportPart& place) {
  return place.listen.empty() ? fmt::format("{}={}", place.format, usdt::shown_place(place.file))
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

namespace {

/// The place that a directory is called by: directory_name() the other way round.
std::string place_of_directory(const std::string& name) {
  std::string place;
  for (std::size_t n = 0; n < name.size(); ++n) {
    unsigned char byte = 0;
    const char* const digits = name.data() + n + 1;
    const bool is_escaped =
        name[n] == '%' && n + 2 < name.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    place.push_back(is_escaped ? static_cast<char>(byte) : name[n]);
    if (is_escaped) n += 2;
  }
  if (const std::size_t dash = place.find('-'); dash != place.npos) place[dash] = '=';
  return usdt::shown_place(place);
}

/// Files in a directory, and their bytes together.
std::pair<std::size_t, std::uint64_t> size_of(const std::filesystem::path& directory) {
  std::error_code error;
  std::pair<std::size_t, std::uint64_t> sum;
  for (auto each = std::filesystem::directory_iterator(directory, error); !error && each != decltype(each)();
       each.increment(error)) {
    std::error_code gone;
    const std::uintmax_t bytes = each->is_regular_file(gone) ? each->file_size(gone) : 0;
    if (gone || bytes == 0) continue;
    ++sum.first;
    sum.second += bytes;
  }
  return sum;
}

}  // namespace

void Exports::say_what_nobody_asks_for(const std::vector<ExportPart>& wanted) const {
  if (options_.spool.empty()) return;
  std::set<std::string> used;
  for (const ExportPart& place : wanted) used.insert(directory_name(place));
  for (const ExportPart& place : places_of(options_)) used.insert(directory_name(place));
  std::error_code error;
  for (auto each = std::filesystem::directory_iterator(options_.spool, error); !error && each != decltype(each)();
       each.increment(error)) {
    std::error_code gone;
    const std::string name = each->path().filename().native();
    if (!each->is_directory(gone) || used.contains(name)) continue;
    if (const auto [batches, bytes] = size_of(each->path()); batches > 0)
      usdt::tools::print_notice(
          kTool,
          fmt::format("{}: {}, {} bytes, on disk, and no question goes there: what is there is sent when one does",
                      usdt::io::printable(place_of_directory(name)),
                      batches == 1 ? "1 batch" : fmt::format("{} batches", batches), bytes));
  }
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
