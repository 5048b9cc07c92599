// SPDX-License-Identifier: BSD-2-Clause
// The account of a recording.
#include <utility>

#include "record/count_places.hpp"
#include "record/definition_codes.hpp"
#include "record/definitions.hpp"

namespace usdt::record {

bool Definitions::read_counts(ByteReader& in) {
  // In their order, so that the time this takes is bounded by what was read.
  if (in.below(plan.probes.size()) != open_ledger_->probes.size() || in.failed()) return false;
  ProbeCounts& counts = open_ledger_->probes.emplace_back();
  for (const CountInfo* count : recorded_counts()) {
    if (may_end_before(count->recorded) && in.at_end()) break;
    counts.*count->member = in.varint();
    if (count->recorded == kLastBeforeMissed) counts.missed = get(in);
  }
  return true;
}

bool Definitions::read_missed(ByteReader& in) {
  const auto backend = backend_by_name(in.text());
  const auto hits = get(in);
  if (backend) open_ledger_->missed_hits.push_back({.backend = *backend, .hits = hits, .probes = {}});
  return true;
}

bool Definitions::read_skipped(ByteReader& in) {
  SkippedSite& site = open_ledger_->skipped.emplace_back();
  site.probe = Index<PlannedProbe>(in.below(plan.probes.size()));
  const bool has_pc = in.u8() != 0;
  const VirtAddr pc(in.varint());
  if (has_pc) site.pc = pc;
  site.reason = in.text();
  return true;
}

bool Definitions::read_change(ByteReader& in) {
  FileChange& change = open_ledger_->changes.emplace_back();
  change.file = Index<PlannedFile>(in.below(plan.files.size()));
  change.kind = static_cast<FileChangeKind>(in.below(static_cast<std::size_t>(FileChangeKind::removed) + 1));
  change.let_go = in.varint();
  return true;
}

bool Definitions::end_ledger(ByteReader& in) {
  open_ledger_->missed = get(in);
  open_ledger_->undecided = in.varint();
  ledger = std::exchange(open_ledger_, std::nullopt);
  return true;
}

}  // namespace usdt::record
