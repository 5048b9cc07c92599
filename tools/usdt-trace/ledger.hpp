// SPDX-License-Identifier: BSD-2-Clause
// Account of every hit of a trace, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flags.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// The account of a trace that has ended.
class Ledger {
 public:
  struct Facts {
    usdt::SessionSummary summary;
    std::uint64_t shown = 0;      ///< events taken
    std::uint64_t not_shown = 0;  ///< of a recording: those behind them
    bool followed = false;        ///< what takes the place of files was traced, too
    bool nothing_left = false;    ///< every site was detached, and no command runs
    bool command_ended = false;   ///< by itself
  };
  Ledger(const Flags& flags, const usdt::AttachPlan& plan, Facts facts)
      : flags_(flags), plan_(plan), facts_(std::move(facts)) {}

  [[nodiscard]] const usdt::SessionSummary& summary() const noexcept { return facts_.summary; }
  /// Hits that have no event although --strict wants one of each.
  [[nodiscard]] bool has_losses() const;
  /// To standard error; zeroes included.
  void print() const;

 private:
  void print_changes() const;
  [[nodiscard]] bool any_unseen() const;
  void print_started() const;
  [[nodiscard]] std::string headline(const usdt::Account& total) const;
  void print_guarded(const usdt::Account& total) const;
  void print_left_out(const usdt::Account& total, usdt::CountCause guard, std::string_view noun,
                      std::string_view option) const;
  void print_overhead(const usdt::Overhead& overhead, const usdt::Account& total) const;
  void print_filtered(const usdt::Account& total) const;
  void print_matched(const usdt::Account& total) const;
  void hint_at_pairs(const usdt::Account& total) const;
  void print_losers() const;
  void hint_at_children() const;
  void hint_at_command() const;
  [[nodiscard]] std::string limit_text(const usdt::Account& total) const;
  [[nodiscard]] std::string lost_text(const usdt::Account& counts) const;

  const Flags& flags_;
  const usdt::AttachPlan& plan_;
  Facts facts_;
};

}  // namespace usdt_trace
