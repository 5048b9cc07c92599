// SPDX-License-Identifier: BSD-2-Clause
#include "record/read_ledger.hpp"

#include <utility>

#include "record/count_places.hpp"
#include "record/definition_codes.hpp"

namespace usdt::record {

bool LedgerReader::read(Tag tag, ByteReader& in, const AttachPlan& plan) {
  switch (tag) {
    case Tag::counts:
      return read_counts(in, plan.probes.size());
    case Tag::missed:
      read_missed(in);
      return true;
    case Tag::skipped:
      read_skipped(in, plan.probes.size());
      return true;
    case Tag::change:
      read_change(in, plan.files.size());
      return true;
    default:
      return false;
  }
}

bool LedgerReader::read_counts(ByteReader& in, std::size_t probes) {
  // In their order, so that the time this takes is bounded by what was read.
  if (in.below(probes) != ledger_.probes.size() || in.failed()) return false;
  ProbeCounts& counts = ledger_.probes.emplace_back();
  for (const CountInfo* count : recorded_counts()) {
    if (may_end_before(count->recorded) && in.at_end()) break;
    counts.*count->member = in.varint();
    if (count->recorded == kLastBeforeMissed) counts.missed = get(in);
  }
  return true;
}

void LedgerReader::read_missed(ByteReader& in) {
  const auto backend = backend_by_name(in.text());
  const auto hits = get(in);
  if (backend) ledger_.missed_hits.push_back({.backend = *backend, .hits = hits, .probes = {}});
}

void LedgerReader::read_skipped(ByteReader& in, std::size_t probes) {
  SkippedSite& site = ledger_.skipped.emplace_back();
  site.probe = Index<PlannedProbe>(in.below(probes));
  const bool has_pc = in.u8() != 0;
  const VirtAddr pc(in.varint());
  if (has_pc) site.pc = pc;
  site.reason = in.text();
}

void LedgerReader::read_change(ByteReader& in, std::size_t files) {
  FileChange& change = ledger_.changes.emplace_back();
  change.file = Index<PlannedFile>(in.below(files));
  change.kind = static_cast<FileChangeKind>(in.below(static_cast<std::size_t>(FileChangeKind::removed) + 1));
  change.let_go = in.varint();
}

RecordedLedger LedgerReader::end(ByteReader& in) && {
  ledger_.missed = get(in);
  ledger_.undecided = in.varint();
  return std::move(ledger_);
}

}  // namespace usdt::record
