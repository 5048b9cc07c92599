// SPDX-License-Identifier: BSD-2-Clause
// The places where answers go, each opened once, whichever questions write there.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "flags.hpp"
#include "options.hpp"
#include "usdt/usdt.hpp"

namespace usdt_agent {

/// Whether agents can have their answers in a form: it is sent, or it is metrics. A file of another one would grow for
/// ever.
[[nodiscard]] bool is_for_agents(const usdt::SinkFormat& format);
/// Says whether an agent can write there: it runs for ever, and a file that grows would fill its disk; and a server is
/// named by a URL, a page by an address. Errors: invalid_argument.
[[nodiscard]] usdt::Result<void> check_export(const usdt_trace::ExportPart& wanted);

/// Returns the places where the answers to a question go: its own, and those of the agent's that it can be written to.
/// Errors: invalid_argument (there is none, none for the values that it prints, one that cannot be written to).
[[nodiscard]] usdt::Result<std::vector<usdt_trace::ExportPart>> exports_of(const usdt_trace::Flags& question,
                                                                           const Options& options);

/// Returns the place in words: "otlp=http://127.0.0.1:4318", "metrics at 9435".
[[nodiscard]] std::string name_of(const usdt_trace::ExportPart& place);

/// Opens sinks. Those of one place share it.
class Exports {
 public:
  /// Further parts of a page of metrics; called by the thread that serves it.
  struct Pages {
    std::function<std::vector<usdt::OwnMetric>()> own_metrics;
    std::function<usdt::ProgramHealth()> health;
  };
  Exports(const Options& options, Pages pages) : options_(options), pages_(std::move(pages)) {}

  /// Opens the places of the command line. Errors: as Sink::open().
  [[nodiscard]] usdt::Result<void> open();
  /// Returns a sink of the place. Errors: as Sink::open().
  [[nodiscard]] usdt::Result<std::unique_ptr<usdt::Sink>> sink_of(const usdt_trace::ExportPart& place);
  /// Closes the places that none of `wanted` is.
  void keep_only(const std::vector<usdt_trace::ExportPart>& wanted);

  /// Says what the spool has for servers that neither one of `wanted` nor the command line names.
  void say_what_nobody_asks_for(const std::vector<usdt_trace::ExportPart>& wanted) const;

  /// Says what servers did not take of what waited on disk, of each no sooner than `pause` after the last time.
  void say_what_was_lost(std::chrono::milliseconds pause);

  /// Outputs that end from now on wait so long for their servers, all together.
  void wait_at_most(std::chrono::milliseconds time);

  /// Returns one sink of each place, by its name.
  [[nodiscard]] std::vector<std::pair<std::string, const usdt::Sink*>> all() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Key = std::tuple<std::string, std::string, std::string>;
  [[nodiscard]] static Key key_of(const usdt_trace::ExportPart& place) {
    return {place.format, place.file, place.listen};
  }
  [[nodiscard]] usdt::SinkOptions sink_options(const usdt_trace::ExportPart& place) const;

  const Options& options_;
  Pages pages_;
  std::atomic<Clock::time_point> wait_until_ = Clock::time_point();
  std::map<Key, std::unique_ptr<usdt::Sink>> open_ = {};  ///< none of them takes answers: their siblings do
  std::map<Key, std::pair<usdt::Backlog, Clock::time_point>> said_ = {};  ///< what was lost, and when
};

}  // namespace usdt_agent
