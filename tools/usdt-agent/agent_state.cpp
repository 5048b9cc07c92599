// SPDX-License-Identifier: BSD-2-Clause
#include "agent_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "io/escape.hpp"

namespace usdt_agent {
namespace {

/// Names of FileState.
constexpr std::array<std::string_view, 4> kStates{"starting", "waiting", "traced", "failing"};

/// Bytes of memory that the process has now.
double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Seconds of processors that it has used.
double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

usdt::OwnMetric gauge(std::string name, std::string help, double value, decltype(usdt::OwnMetric::labels) labels = {}) {
  return {.name = std::move(name), .help = std::move(help), .labels = std::move(labels), .value = value};
}

usdt::OwnMetric counter(std::string name, std::string help, std::uint64_t value,
                        decltype(usdt::OwnMetric::labels) labels = {}) {
  return {.name = std::move(name),
          .help = std::move(help),
          .labels = std::move(labels),
          .value = static_cast<double>(value),
          .is_counter = true};
}

}  // namespace

void AgentState::take(const std::vector<std::shared_ptr<RunningFile>>& files, const Exports& exports,
                      const Reloads& reloads) {
  const std::lock_guard lock(mutex_);
  questions_ = {};
  restarts_ = 0;
  failures_.clear();
  waiting_.clear();
  for (const auto& file : files) {
    const FileState state = file->state();
    questions_[static_cast<std::size_t>(state)] += file->file().questions.size();
    restarts_ += file->restarts();
    if (state == FileState::failing)
      failures_ += fmt::format("{}: {}\n", file->file().path, usdt::io::printable(file->failure()));
  }
  for (const auto& file : files)
    if (const std::string reason = file->waits_for(); !reason.empty())
      waiting_ += fmt::format("{}: waiting: {}\n", file->file().path, usdt::io::printable(reason));
  reloads_ = reloads;
  places_.clear();
  for (const auto& [name, sink] : exports.all())
    places_.push_back({name, sink->backlog(), sink->format().is_sent, sink->trouble()});
  taken_ = Clock::now();
}

std::string AgentState::in_words() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> words;
  for (std::size_t n = 0; n < kStates.size(); ++n) words.push_back(fmt::format("{} {}", questions_[n], kStates[n]));
  return fmt::format("questions: {}", fmt::join(words, ", "));
}

std::vector<usdt::OwnMetric> AgentState::metrics() const {
  const std::lock_guard lock(mutex_);
  std::vector<usdt::OwnMetric> metrics{
      gauge("usdt_agent_info", "the agent's version", 1, {{"version", USDT_VERSION}}),
      counter("usdt_agent_restarts", "sessions that began again", restarts_),
      counter("usdt_agent_reloads", "files read again", reloads_.done, {{"result", "done"}}),
      counter("usdt_agent_reloads", "", reloads_.refused, {{"result", "refused"}}),
      gauge("process_resident_memory_bytes", "memory of the agent", resident_bytes()),
      {.name = "process_cpu_seconds",
       .help = "processor time of the agent",
       .value = cpu_seconds(),
       .is_counter = true},
  };
  for (std::size_t n = 0; n < kStates.size(); ++n)
    metrics.push_back(gauge("usdt_agent_questions", "questions by state", static_cast<double>(questions_[n]),
                            {{"state", std::string(kStates[n])}}));
  add_places(metrics);
  return metrics;
}

void AgentState::add_places(std::vector<usdt::OwnMetric>& metrics) const {
  for (const Place& place : places_) {
    const std::vector<std::pair<std::string, std::string>> labels{{"export", place.name}};
    if (place.is_sent)
      metrics.push_back(gauge("usdt_agent_export_up", "whether the server takes what is sent",
                              place.trouble.empty() ? 1 : 0, labels));
    if (!place.backlog) continue;
    const usdt::Backlog& backlog = *place.backlog;
    metrics.push_back(
        gauge("usdt_agent_spool_bytes", "what waits on disk", static_cast<double>(backlog.bytes), labels));
    metrics.push_back(
        gauge("usdt_agent_spool_events", "events that wait on disk", static_cast<double>(backlog.events), labels));
    metrics.push_back(
        counter("usdt_agent_spool_sent_events", "events that were on disk and are sent", backlog.sent, labels));
    metrics.push_back(counter("usdt_agent_spool_lost_events", "events that were on disk and that the server refused",
                              backlog.lost, labels));
    metrics.push_back(counter("usdt_agent_spool_lost_batches",
                              "batches, of numbers too, that were on disk and that the server did not take all of",
                              backlog.lost_batches, labels));
  }
}

usdt::ProgramHealth AgentState::health() const {
  constexpr std::chrono::seconds longest{30};
  const std::lock_guard lock(mutex_);
  usdt::ProgramHealth health{.is_well = failures_.empty(), .text = failures_};
  if (const auto silent = Clock::now() - taken_; silent > longest) {
    health.is_well = false;
    health.text += fmt::format("the agent has not looked at anything for {} s\n",
                               std::chrono::duration_cast<std::chrono::seconds>(silent).count());
  }
  for (const Place& place : places_)
    if (!place.trouble.empty()) health.text += fmt::format("{}: {}\n", place.name, usdt::io::printable(place.trouble));
  health.text += waiting_;
  if (health.text.empty()) health.text = "ok\n";
  return health;
}

}  // namespace usdt_agent
