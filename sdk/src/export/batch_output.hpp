// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export/output.hpp"
#include "http/poster.hpp"

namespace usdt::exports {

/// The common part of outputs that go to a server in batches, and know which events are there.
class BatchOutput : public Output {
 public:
  BatchOutput(const AnswerStart& start, const OutputPlace& place);

  /// It is in a batch, which goes out when it is full or a second old.
  void event(const Event& event) final;
  /// Where the server takes nothing, there is more than anybody would buffer.
  [[nodiscard]] std::uint64_t pending() const noexcept final;
  /// Sends what is due, and waits while there is no room for more; once all events were given, until all is there.
  [[nodiscard]] Flushed write_out(const io::Stream::Patience& patience) final;
  void give_up() final;
  [[nodiscard]] std::optional<std::string> failure() const final;
  void ending(const SessionSummary& summary) final;
  /// Numbers go out every ten seconds.
  [[nodiscard]] bool wants_table() const final { return is_due(); }
  [[nodiscard]] bool wants_account() const final { return is_due(); }
  void account(const SessionSummary& summary) final;

 protected:
  using Clock = std::chrono::steady_clock;

  /// Encodes an event for the batch at hand.
  virtual void add_event(const Event& event) = 0;
  /// Sends, by send(), the events that were encoded so far.
  virtual void send_rest() = 0;
  /// Sends, by send(), the account of all hits so far, and the rows of the last look. `last`: all events were given.
  virtual void send_numbers(const SessionSummary& summary, bool last) = 0;

  /// Why a batch that was sent anew may be there but once, in words behind those that say the contrary.
  [[nodiscard]] virtual std::string_view unless() const { return {}; }

  /// How batches are sent to a server that does not know the form that they have, in words behind those that say so.
  [[nodiscard]] virtual std::string_view in_older_form() const { return {}; }

  /// Sends a batch. `probes`: of each item that is an event, in their order. `type` outlives everything.
  void send(std::string path, std::string_view type, std::string body, std::vector<std::uint32_t> probes);

  void write_event(const Event& /*event*/) final {}
  /// A notice says it.
  void write_followed(const Followed& /*followed*/) final {}
  void write_summary(const SessionSummary& /*summary*/) override {}

 private:
  /// Whether events are lost where the server is too slow, since nobody waits for it (SinkOptions::wait_while_tracing).
  [[nodiscard]] bool loses_what_comes() const { return options_.wait_while_tracing == nullptr; }
  [[nodiscard]] bool has_to_wait() const;
  [[nodiscard]] bool is_due() const { return Clock::now() - measured_ >= std::chrono::seconds(10); }
  void take_outcomes();
  void take(const http::Outcome& outcome);
  /// So many of a batch's events are lost, or numbers of one that has none, which `without_events` names.
  void lose(const std::vector<std::uint32_t>& probes, std::size_t count, std::string_view without_events,
            const std::string& why);
  /// Tells of the place, at most once a minute. `told`: the last time.
  void tell_sometimes(std::optional<Clock::time_point>& told, const std::string& text);
  void tell_trouble();
  void tell(const std::string& text);

  http::Poster& poster_;
  const SinkOptions& options_;
  const std::string& place_;  ///< the URL
  std::size_t owner_;
  std::uint64_t sent_ = 0;                                                 ///< batches
  std::map<std::uint64_t, std::vector<std::uint32_t>> on_their_way_ = {};  ///< by number
  Clock::time_point sent_rest_ = Clock::now(), measured_ = Clock::now();
  bool ending_ = false, given_up_ = false;
  std::uint64_t lost_ = 0, maybe_twice_ = 0;  ///< events, batches
  std::string why_;                           ///< the first loss
  std::optional<Clock::time_point> told_loss_, told_warning_;
  std::string told_trouble_;
};

}  // namespace usdt::exports
