// SPDX-License-Identifier: BSD-2-Clause
// Sinks: ready-made consumers (answers.hpp) that write the answers to a question somewhere, in one of the forms that
// sink_formats() lists. usdt-trace's --format, --export and --record are these, and a program's own sessions may feed
// several of them and consumers of its own at once:
//
//     auto json = usdt::Sink::open("json", {.file = "answers.json"});
//     if (!json) return fail(json.error());
//     session.add(question, {json->get()});
//
// Nothing that other programs wrote (comm, strings, names) reaches a terminal or a line unescaped. If a reader goes
// away or sleeps, or a disk is full, the session goes on: events that were not written count as lost (not_written()),
// and failure() says why. The session refers to its sinks, which outlive it. One thread at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "usdt/answers.hpp"
#include "usdt/backlog.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// A form that answers are written in.
struct SinkFormat {
  std::string_view name;         ///< "json"
  bool has_lines;                ///< lines of text, which a pipe or a terminal may take; else a file for other programs
  std::string_view description;  ///< a line about it, as help texts show it
  bool is_sent = false;          ///< to a server by HTTP: SinkOptions::file is a URL
  bool of_one_question = false;  ///< a place has the answers to one question: its columns, or its stacks
};

/// Returns all forms there are, in the order in which help texts name them.
[[nodiscard]] std::span<const SinkFormat> sink_formats() noexcept;

/// Says whether the answers to a question can be written in the form with this name. Needs no privilege. Errors:
/// invalid_argument, with what does not go with what, and why.
[[nodiscard]] Result<void> check_sink_format(std::string_view format, const Question& question);

/// Says whether the form with this name can be written to a place: of those that are sent (SinkFormat::is_sent) whether
/// it is a URL, with options that there are. Asks nothing of the network. Errors: invalid_argument, with what is wrong.
[[nodiscard]] Result<void> check_sink_place(std::string_view format, const std::string& place);

/// Says whether a page can be served there (SinkOptions::listen): whether it is an address and a port. Asks nothing of
/// the network. Errors: invalid_argument.
[[nodiscard]] Result<void> check_listen_place(std::string_view place);
/// Returns the place as it may be shown to people: what is before '@' in a URL, a user and maybe a password, is "...".
[[nodiscard]] std::string shown_place(std::string_view place);

/// Says, again and again while a reader takes nothing, whether to go on waiting for it. It is given the time since the
/// reader last took something.
using SinkPatience = std::function<bool(std::chrono::milliseconds)>;

/// A number that a program shows beside those of its questions (SinkOptions::own_metrics).
struct OwnMetric {
  std::string name;                                              ///< [a-zA-Z_][a-zA-Z0-9_]*, a counter without "_total"
  std::string help;                                              ///< a line about it; that of the first of its name
  std::vector<std::pair<std::string, std::string>> labels = {};  ///< names, as `name`, and any values
  double value = 0;
  bool is_counter = false;  ///< it only grows
};

/// The state of a program, as it says it (SinkOptions::health).
struct ProgramHealth {
  bool is_well = true;
  std::string text = {};  ///< lines for people
};

/// The place that a sink writes to, and other options.
struct SinkOptions {
  /// Takes the answers, in pieces that end with a line's end where the form has lines. False: it takes no more, and the
  /// session has done what it was asked for. If it throws, the sink catches that and does not call it again: the
  /// session ends, and Sink::failure() has the words. Null: `file` is written to.
  std::function<bool(std::string_view)> write = nullptr;
  /// Is made if it is not there; empty: `descriptor` is written to. Of forms that are sent, "http://HOST:PORT".
  std::string file = {};
  int descriptor = 1;  ///< stays the caller's
  /// "ADDRESS:PORT", "[ADDRESS]:PORT", or "PORT" of 127.0.0.1: a page of metrics is served there while the sink lives,
  /// as "/metrics", and is nowhere else. Whoever can reach the port can read it.
  std::string listen = {};
  /// Returns numbers that are served with them. Called for each page, by the thread that serves. Null: there are none.
  std::function<std::vector<OwnMetric>()> own_metrics = nullptr;
  /// Returns what is served as "/healthz", with status 200, or 503 if the program is not well. Called by that thread.
  /// Null: there is no such page.
  std::function<ProgramHealth()> health = nullptr;
  /// Where the form is sent: a directory of this sink and its siblings alone, where batches wait for a server that is
  /// slow or away, also beyond the end of the process: who opens a sink with it next sends them. It is made if it is
  /// not there. Empty: they wait in memory.
  std::string spool = {};
  std::uint64_t spool_size = 256U << 20;  ///< bytes of all batches there together; what comes then is lost
  /// Null: as long as it takes. Of forms that are sent: events are lost while a server takes none.
  SinkPatience wait_while_tracing = nullptr;
  /// Of what is left when the trace is over. Null: as long as it takes; of forms that are sent, five seconds in which
  /// the server takes nothing.
  SinkPatience wait_at_end = nullptr;
  std::size_t label_width = 0;      ///< columns of the names before lines of questions that have names
  bool counts_unreadable = false;   ///< of recordings: unreadable() is counted, which takes time
  std::string program = "libusdt";  ///< the writer that recordings name
  /// Takes sentences for people about what was written, from within calls of the sink; null: they are dropped.
  std::function<void(const std::string&)> tell = nullptr;
};

/// Writes the answers to one question.
class Sink final : public AnswerConsumer {
 public:
  /// Opens a sink of the format with this name. A file keeps what it has until answers begin. Errors: invalid_argument
  /// (there is no such format), io, no_permission, not_found (the file).
  [[nodiscard]] static Result<std::unique_ptr<Sink>> open(std::string_view format, SinkOptions options);
  ~Sink() override;

  /// Returns another sink that writes to where this one does, for another question of the session. Forms that are of
  /// one question (SinkFormat::of_one_question) have nothing that tells the answers apart: the second one that begins
  /// writes nothing, and its failure() says why.
  [[nodiscard]] std::unique_ptr<Sink> sibling() const;
  /// Whether both write to one opened file: they are siblings.
  [[nodiscard]] bool is_sibling_of(const Sink& other) const noexcept;

  /// Returns the place that it writes to, in words: the name of the file, or "standard output".
  [[nodiscard]] const std::string& name() const noexcept;
  /// Returns the form that it writes.
  [[nodiscard]] const SinkFormat& format() const noexcept;
  /// Returns the options that it was opened with.
  [[nodiscard]] const SinkOptions& options() const noexcept;
  /// Returns the regular file that it writes to, by device and inode; nothing: it writes to something else.
  [[nodiscard]] std::optional<std::pair<dev_t, ino_t>> file() const;
  /// Returns why not everything was written; nothing: it was, or the reader of a pipe had seen enough and went.
  [[nodiscard]] std::optional<std::string> failure() const;
  /// Returns what waits in SinkOptions::spool, of siblings too; nothing: there is no spool.
  [[nodiscard]] std::optional<Backlog> backlog() const;
  /// Returns why the server takes nothing at the moment, of forms that are sent; empty: it does, or nothing was sent.
  [[nodiscard]] std::string trouble() const;
  /// Says by an error whether there was a failure(). Errors: io, with the name() and why.
  [[nodiscard]] Result<void> check_written() const;

  /// Refuses a plan by which the file it writes to is traced: who runs that file would die of it.
  [[nodiscard]] Result<void> check(const AttachPlan& plan) override;
  void begin(const AnswerStart& start) override;
  void trace(const AttachPlan& plan, std::size_t probes) override;
  void know(std::size_t probes) override;
  void event(const Event& event) override;
  void followed(const Followed& followed) override;
  void table(const ArrangedTable& table) override;
  void heat(const HeatSlice& slice, bool last) override;
  void slowest(const SlowestEvents& events, bool last) override;
  void notice(const SessionNotice& notice) override;
  [[nodiscard]] bool flush() override;
  [[nodiscard]] bool wants_table() const override;
  void look(const ArrangedTable& table) override;
  [[nodiscard]] bool wants_account() const override;
  void account(const SessionSummary& summary) override;
  [[nodiscard]] bool in_no_hurry() const override;
  void ending(const SessionSummary& summary) override;
  void flush_rest() override;
  void summary(const SessionSummary& summary) override;
  void end_untraced(const Question& question) override;
  [[nodiscard]] std::vector<std::uint64_t> not_written() const override;
  [[nodiscard]] std::vector<std::uint64_t> folded_full() const override;
  [[nodiscard]] std::vector<std::uint64_t> forgotten() override;
  [[nodiscard]] std::uint64_t unreadable() const override;

 private:
  struct Impl;
  explicit Sink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
