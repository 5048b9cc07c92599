// SPDX-License-Identifier: BSD-2-Clause
// Batches on their way to a server that may be slow or away: a bounded queue, in memory or on disk, and a thread that
// sends what is in it, one after the other, deflated, again where the server asks for that, and says what became of
// each.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/client.hpp"
#include "http/spool.hpp"
#include "http/url.hpp"
#include "usdt/backlog.hpp"
#include "usdt/result.hpp"

namespace usdt::http {

/// What is sent as a whole or not at all.
struct Batch {
  std::size_t owner = 0;     ///< who gets its outcome
  std::uint64_t number = 0;  ///< of the owner's
  std::string path;          ///< behind that of the URL
  std::string_view type;     ///< media type; outlives the poster
  std::string body;
  std::uint64_t events = 0;  ///< that are in it
};

/// What became of a batch.
struct Outcome {
  std::uint64_t number = 0;
  /// The server has it, or it is on disk, and whatever comes of it is in the Backlog from then on.
  bool accepted = false;
  std::string why = {};        ///< it was not, or not all of it ("400 Bad Request: ..."), or the server warns
  std::uint64_t rejected = 0;  ///< items of an accepted one that the server did not take
  /// It was sent anew after the server may have had it: what it has is there at least once.
  bool maybe_twice = false;
  /// It was the first for which the server wanted an older form (Endpoint::older_form), and so said the server; empty:
  /// it was not. With a spool it is the first that was put after such a one.
  std::string older_because = {};
};

/// How long to wait before a batch is sent again, after so many attempts: longer each time, and never all senders at
/// the same moment. `random`: of 0 to 1.
[[nodiscard]] std::chrono::milliseconds backoff(unsigned attempts, double random);
/// Reads the header Retry-After, seconds or a date; `now` is the time of day. Nothing: it is neither.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_retry_after(std::string_view text,
                                                                         std::chrono::system_clock::time_point now);
/// Whether a server that answered so wants it once more later (OTLP's specification names these and no others).
[[nodiscard]] bool is_worth_another_attempt(unsigned status) noexcept;

/// The meaning of a reply for the batch that it answers.
enum class Verdict : std::uint8_t {
  accepted,
  again,        ///< it is sent once more later
  maybe_again,  ///< likewise, and the server may have it already
  refused,
  unknown_form,  ///< refused, since the server is older than the form of the message
};
/// Judges as the specification of OTLP has it: any 2xx is accepted, is_worth_another_attempt() comes again.
[[nodiscard]] Verdict judge_status(const Reply& reply);

/// The words of a server about a batch that it took. Words without a count are a warning.
struct Rejected {
  std::uint64_t items = 0;  ///< that it did not take
  std::string why = {};
};

/// Makes the form of a message that older servers know: a batch with the same path, type and body otherwise. Nothing:
/// it has that form, or what it has is damaged. Called in the poster's thread.
using OlderForm = std::optional<SpooledBatch> (*)(const Message& message);

/// A server, and how it is spoken to.
struct Endpoint {
  Url url = {};
  Headers headers = {};  ///< of each message
  Verdict (*judge)(const Reply& reply) = judge_status;
  // These two are called in the poster's thread.
  /// Reads the reply to a batch that was taken. Null: the server takes all of one or nothing.
  Rejected (*rejected_by)(const Reply& reply) = nullptr;
  /// Reads in the reply to one that was not why that is. Null, or an empty text: the body's first line says it.
  std::string (*message_of)(const Reply& reply) = nullptr;
  OlderForm older_form = nullptr;  ///< of all messages once a verdict was unknown_form; null: there is none
};

/// Sends batches. put() and the like are for one thread.
class Poster {
 public:
  /// `spool`: batches wait there and not in memory. Those that are there from before are sent first. Errors: limit (no
  /// thread).
  [[nodiscard]] static Result<std::unique_ptr<Poster>> start(const Endpoint& endpoint, std::optional<Spool> spool = {});
  /// Gives up what is not sent, but for what is on disk.
  ~Poster();
  Poster(const Poster&) = delete;
  Poster& operator=(const Poster&) = delete;

  /// Whether another batch may be put.
  [[nodiscard]] bool has_room() const;
  /// Adds a batch, whether there is room or not.
  void put(Batch batch);
  /// Returns the outcomes of an owner's batches so far, each once.
  [[nodiscard]] std::vector<Outcome> take_outcomes(std::size_t owner);
  /// Waits until there is another outcome, whoever's, at most so long. False: there is none.
  bool wait(std::chrono::milliseconds most);
  /// Returns why the batch at hand was not taken yet, which is tried again; empty: nothing has failed.
  [[nodiscard]] std::string trouble() const;
  /// Returns what waits on disk; nothing: batches wait in memory.
  [[nodiscard]] std::optional<Backlog> backlog() const;
  /// Ends all attempts with an owner's batches, and no others: what is not sent by now has the outcome that it was
  /// given up. Batches on disk stay there.
  void give_up(std::size_t owner);
  /// Whether somebody gave up within the last ten seconds and the server has taken nothing since: there is no reason to
  /// wait for it again.
  [[nodiscard]] bool is_hopeless() const;
  /// Ends all attempts: what is not sent by now has the outcome that it was given up.
  void stop();

 private:
  struct Impl;
  explicit Poster(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace usdt::http
