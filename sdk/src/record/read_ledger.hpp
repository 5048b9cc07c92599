// SPDX-License-Identifier: BSD-2-Clause
// Reads the account of a recording. Private to record/.
#pragma once

#include "base/bytes.hpp"
#include "record/definition_tags.hpp"
#include "usdt/recording.hpp"

namespace usdt::record {

/// Reads the account that begins with Tag::ledger, entry by entry.
class LedgerReader {
 public:
  /// Takes up an entry of the account (Tag::counts, missed, skipped or change). `plan` has what the account is about.
  /// False: the entry cannot be.
  [[nodiscard]] bool read(Tag tag, ByteReader& in, const AttachPlan& plan);
  /// Reads the last entry, Tag::ledger_end, and hands over the account.
  [[nodiscard]] RecordedLedger end(ByteReader& in) &&;

 private:
  [[nodiscard]] bool read_counts(ByteReader& in, std::size_t probes);
  void read_missed(ByteReader& in);
  void read_skipped(ByteReader& in, std::size_t probes);
  void read_change(ByteReader& in, std::size_t files);

  RecordedLedger ledger_;
};

}  // namespace usdt::record
