// SPDX-License-Identifier: BSD-2-Clause
#include "agent.hpp"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent_state.hpp"
#include "common/report.hpp"
#include "common/thread.hpp"
#include "exports.hpp"
#include "io/stream.hpp"
#include "memory.hpp"
#include "question_files.hpp"
#include "running_file.hpp"
#include "service_manager.hpp"
#include "wanted_signals.hpp"

namespace usdt_agent {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Waiting for servers that are slow or away, when questions end and batches wait in memory.
constexpr milliseconds kLongestEnd{2000};
/// Until the service is ready; systemd ends one that is not for long.
constexpr std::chrono::seconds kLongestStart{30};
constexpr std::ptrdiff_t kMostBeginning = 2;  ///< files: finding takes memory, and processors that others need
constexpr std::size_t kMostEnding = 16;       ///< files at once

class Agent {
 public:
  explicit Agent(const Options& options)
      : options_(options),
        exports_(options,
                 {.own_metrics = [this] { return state_.metrics(); }, .health = [this] { return state_.health(); }}) {}

  int run() {
    ReadFiles read = read_files(options_, false);
    for (const usdt::Error& error : read.wrong) usdt::tools::print_error(kTool, error);
    if (!read.wrong.empty()) return kUsageError;
    if (auto opened = exports_.open(); !opened) return complain(opened.error(), kRunTimeFailure);
    say_where_pages_are();
    exports_.say_what_nobody_asks_for(places_of(read.files));
    for (QuestionFile& file : read.files) files_.push_back(std::make_shared<RunningFile>(std::move(file), exports_));
    is_starting_ = true;
    const auto ready = Clock::now() + kLongestStart;
    while (is_starting_ && Clock::now() < ready && !signals_.end_is_asked_for()) turn();
    manager_.say_ready();
    while (!signals_.end_is_asked_for()) turn();
    manager_.say_stopping();
    end();
    return kSuccess;
  }

 private:
  /// Waits until there is something to do, and does it. Events come in portions: nobody looks at each as it comes, and
  /// to be woken for each would cost more than all that is done with it. Rings have room for what comes meanwhile.
  void turn() {
    constexpr milliseconds portion{25};
    const milliseconds longest{is_starting_ || beginning() > 0 ? 10 : 250};
    std::vector<int> descriptors{signals_.fd()};
    for (const auto& file : files_) file->add_descriptors(descriptors);
    wait_for(descriptors, longest);
    wait_for({signals_.fd()}, std::chrono::ceil<milliseconds>(turned_ + portion - Clock::now()));
    turned_ = Clock::now();
    exports_.wait_at_most(kLongestEnd);
    // Versions of files do not pile up: there is one that is answered, and one that is starting.
    if (!is_starting_ && beginning() == 0 && signals_.take_reload()) reload();
    for (const auto& file : files_) file->step(beginning() < kMostBeginning);
    const bool was_starting = std::exchange(is_starting_, std::ranges::any_of(files_, [](const auto& file) {
                                              return file->state() == FileState::starting;
                                            }));
    if (was_starting && !is_starting_) {
      release_memory();
      looked_ = {};  // what there is to say is said at once
    }
    look_around();
  }

  /// Waits until one of them is readable, at most so long.
  static void wait_for(const std::vector<int>& descriptors, milliseconds longest) {
    std::vector<pollfd> watched;
    for (const int fd : descriptors) watched.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    const int timeout = static_cast<int>(std::max(longest, milliseconds(0)).count());
    static_cast<void>(::poll(watched.data(), watched.size(), timeout));
  }

  /// Files whose questions are being asked.
  [[nodiscard]] std::ptrdiff_t beginning() const {
    return std::ranges::count_if(files_, [](const auto& file) { return file->is_beginning(); });
  }

  /// Ends everything within seconds. Ends of sessions wait for the kernel, and do that beside each other. One that is
  /// still beginning has answered nothing: if it does not end soon, the process ends without it.
  void end() {
    exports_.wait_at_most(kLongestEnd);
    for (const auto& file : files_) file->stop_beginning();
    const auto deadline = Clock::now() + kLongestEnd;
    std::atomic<std::size_t> next = 0;
    const auto end_some = [&] {
      for (std::size_t n = 0; (n = next++) < files_.size();) {
        while (files_[n]->is_beginning() && Clock::now() < deadline) std::this_thread::sleep_for(milliseconds(10));
        if (!files_[n]->is_beginning()) files_[n]->end();
      }
    };
    {
      std::vector<std::jthread> helpers;
      for (std::size_t n = 1; n < std::min(kMostEnding, files_.size()); ++n)
        helpers.push_back(usdt::tools::start_helper(end_some));
      end_some();
    }
    exports_.say_what_was_lost({});
    say_what_waits();
    if (beginning() == 0) return;
    usdt::tools::print_notice(kTool, "it ends while questions are starting");
    std::_Exit(kSuccess);
  }

  void look_around() {
    constexpr milliseconds pause{500};
    manager_.say_alive();
    if (Clock::now() - looked_ < pause) return;
    looked_ = Clock::now();
    state_.take(files_, exports_, reloads_);
    exports_.say_what_was_lost(std::chrono::minutes(1));
    if (const std::string words = state_.in_words(); words != said_) manager_.say_status(said_ = words);
  }

  /// All files are read before anything is changed: if one is wrong, everything stays as it is.
  void reload() {
    manager_.say_reloading();
    ReadFiles read = read_files(options_, false);
    if (!read.wrong.empty()) {
      ++reloads_.refused;
      for (const usdt::Error& error : read.wrong) usdt::tools::print_error(kTool, error);
      usdt::tools::print_notice(kTool, "the files were not read again: the questions are those of before");
    } else {
      ++reloads_.done;
      exchange(std::move(read.files));
    }
    manager_.say_ready();
  }

  /// Files that are as they were go on. Questions that take the place of others, whatever file they are in now, begin
  /// before these end.
  void exchange(std::vector<QuestionFile> read) {
    const auto stays = [&](const QuestionFile& file, const RunningFile& running) {
      return running.file().path == file.path && running.file().text == file.text;
    };
    const std::vector<usdt_trace::ExportPart> places = places_of(read);
    std::vector<std::shared_ptr<RunningFile>> next(read.size());
    for (std::size_t n = 0; n < read.size(); ++n) {
      const auto same = std::ranges::find_if(files_, [&](const auto& running) { return stays(read[n], *running); });
      if (same == files_.end()) continue;
      next[n] = std::move(*same);
      files_.erase(same);
    }
    for (std::size_t n = 0; n < read.size(); ++n) {
      if (next[n]) continue;
      std::vector<std::shared_ptr<RunningFile>> before;
      std::ranges::copy_if(files_, std::back_inserter(before),
                           [&](const auto& running) { return running->is_before(read[n]); });
      next[n] = std::make_shared<RunningFile>(std::move(read[n]), exports_, std::move(before));
    }
    files_ = std::move(next);
    is_starting_ = true;
    exports_.keep_only(places);
  }

  /// Where all answers go.
  [[nodiscard]] static std::vector<usdt_trace::ExportPart> places_of(const std::vector<QuestionFile>& files) {
    std::vector<usdt_trace::ExportPart> places;
    for (const QuestionFile& file : files)
      for (const AskedQuestion& asked : file.questions)
        places.insert(places.end(), asked.exports.begin(), asked.exports.end());
    return places;
  }

  void say_where_pages_are() const {
    for (const auto& [name, sink] : exports_.all())
      if (!sink->options().listen.empty()) usdt::tools::print_notice(kTool, "metrics are at " + sink->name());
  }

  void say_what_waits() const {
    for (const auto& [name, sink] : exports_.all())
      if (const auto backlog = sink->backlog(); backlog && backlog->events > 0)
        usdt::tools::print_notice(kTool, fmt::format("{}: {} wait on disk, and are sent when the agent starts again",
                                                     name, usdt::tools::counted(backlog->events, "event")));
  }

  [[nodiscard]] static int complain(const usdt::Error& error, int code) {
    usdt::tools::print_error(kTool, error);
    return code;
  }

  const Options& options_;
  WantedSignals signals_;
  ServiceManager manager_;
  AgentState state_;
  Exports exports_;
  std::vector<std::shared_ptr<RunningFile>> files_;
  Reloads reloads_;
  bool is_starting_ = false;  ///< some file
  Clock::time_point turned_ = {}, looked_ = {};
  std::string said_;
};

}  // namespace

int run(const Options& options) { return Agent(options).run(); }

int check(const Options& options) {
  ReadFiles read = read_files(options, true);
  usdt::io::Stream out(1);
  for (const QuestionFile& file : read.files) {
    out.lines(file.path + "\n");
    for (const AskedQuestion& asked : file.questions) {
      std::string line = "  " + asked.flags.question.name + ":";
      for (const usdt_trace::ExportPart& place : asked.exports) line += " " + name_of(place);
      const auto found = find_now(asked.flags.question);
      if (!found) read.wrong.push_back(found.error().within(asked.flags.script.place));
      if (found == Found::nothing_there) line += " (waits: nothing of it is here yet, to look its names up in)";
      out.lines(line + "\n");
    }
  }
  const bool is_said = out.flush() == usdt::io::Stream::Flushed::all;
  for (const usdt::Error& error : read.wrong) usdt::tools::print_error(kTool, error);
  return !read.wrong.empty() ? kUsageError : is_said ? kSuccess : kRunTimeFailure;
}

}  // namespace usdt_agent
