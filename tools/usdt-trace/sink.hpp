// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/stream.hpp"
#include "flags.hpp"
#include "output.hpp"

namespace usdt_trace {

/// Whether to wait for a reader who takes nothing.
struct Patience {
  usdt::tools::Stream::Patience while_tracing;  ///< the trace goes on
  usdt::tools::Stream::Patience at_end;  ///< that, and a second longer, in which who is only slow takes what is there
};

/// Where the answers to a question are shown or recorded, and whether they got there.
class Sink final : public usdt::AnswerConsumer {
 public:
  enum class What : std::uint8_t { shown, recorded };

  /// Opens a file; empty: standard output. `flags` are those of the question.
  [[nodiscard]] static usdt::Result<std::unique_ptr<Sink>> open(const std::string& file, What what, const Flags& flags,
                                                                Patience patience);
  /// Another one that writes there, for the question of `flags`.
  [[nodiscard]] std::unique_ptr<Sink> sibling(const Flags& flags) const;

  [[nodiscard]] const usdt::tools::Stream& stream() const noexcept { return *stream_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// True, and said, where output could not be written. A reader who has seen enough (`| head`) is no failure.
  [[nodiscard]] bool failed() const;

  /// A file that is traced is not written to: who runs it would die of that.
  [[nodiscard]] usdt::Result<void> check(const usdt::AttachPlan& plan) override;
  /// From here on there is an output. A file keeps what it had until then: a command line that comes to nothing takes
  /// no recording away.
  void begin(const usdt::AnswerStart& start) override;
  void trace(const usdt::AttachPlan& plan, std::size_t probes) override { output_->trace(plan, probes); }
  void know(std::size_t probes) override { output_->know(probes); }
  void event(const usdt::Event& event) override;
  void followed(const usdt::Followed& followed) override { output_->followed(followed); }
  void table(const usdt::ArrangedTable& table) override;
  void heat(const usdt::HeatSlice& slice, bool last) override;
  void slowest(const usdt::SlowestEvents& events, bool last) override;
  void notice(const usdt::SessionNotice& notice) override;
  bool flush() override;
  bool wants_account() const override { return output_->wants_account(); }
  void account(const usdt::SessionSummary& summary) override { output_->account(summary); }
  bool in_no_hurry() const override { return what_ == What::recorded; }
  void ending(const usdt::SessionSummary& summary) override { output_->ending(summary); }
  void flush_rest() override;
  void summary(const usdt::SessionSummary& summary) override;
  /// Who reads JSON gets the account of a trace that saw nothing; of a script, that of the others.
  void end_untraced() override;
  std::vector<std::uint64_t> not_written() const override { return output_->not_written(); }
  std::vector<std::uint64_t> forgotten() override { return output_->forgotten(); }
  std::uint64_t unreadable() const override { return output_ ? output_->unreadable() : 0; }

 private:
  Sink(std::string name, What what, std::shared_ptr<usdt::tools::Stream> stream, const Flags& flags, Patience patience)
      : name_(std::move(name)),
        what_(what),
        stream_(std::move(stream)),
        flags_(flags),
        patience_(std::move(patience)) {}

  std::string name_;
  What what_;
  std::shared_ptr<usdt::tools::Stream> stream_;
  Flags flags_;  ///< with the question as it is answered
  Patience patience_;
  std::unique_ptr<Output> output_;
  bool written_ = true;  ///< everything so far
};

}  // namespace usdt_trace
