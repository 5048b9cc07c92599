// SPDX-License-Identifier: BSD-2-Clause
// Definitions, which events of a recording refer to, and what is beside events: a sequence of entries {tag, length,
// content}. Readers pass over tags they do not know, and over what they do not know at the end of an entry. Private to
// record/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "record/definition_tags.hpp"
#include "record/read_ledger.hpp"
#include "usdt/recording.hpp"

namespace usdt::record {

/// Entries on their way into blocks.
class DefinitionWriter {
 public:
  void info(const RecordingInfo& info, const EventLayout& layout, Machine kernel);
  /// Texts are longer from here on than `info` said.
  void string_size(std::uint32_t bytes);
  /// Whatever of `plan` was not written yet.
  void plan(const AttachPlan& plan);
  /// Whether there is any.
  [[nodiscard]] bool has_grown(const AttachPlan& plan) const noexcept {
    return sites_ != plan.sites.size() || probes_ != plan.probes.size();
  }
  void property(std::string_view name, std::string_view text);
  void notice(const RecordedNotice& notice);
  void followed(const Followed& followed);
  void ledger(const RecordedLedger& ledger);

  [[nodiscard]] bool empty() const noexcept { return out_.empty(); }
  /// Hands over all entries in pieces for blocks, and forgets them.
  void take(const std::function<void(ByteSpan)>& use);

 private:
  void arguments(const std::vector<Arg>& args);
  void argument(const Arg& arg);
  void spec(const EncodedSpec& spec);
  void group(const AttachGroup& group);
  void site(const PlannedSite& site, std::uint32_t group);
  void probe(const PlannedProbe& probe);
  void counts(std::uint32_t probe, const ProbeCounts& counts);
  void end(Tag tag);

  ByteWriter entry_;  ///< the content of the one at hand
  ByteWriter out_;
  std::vector<std::size_t> ends_;  ///< of entries in out_
  std::size_t files_ = 0, functions_ = 0, probes_ = 0, arguments_ = 0, specs_ = 0, groups_ = 0, sites_ = 0;
};

/// The contents of the blocks of definitions so far.
struct Definitions {
  RecordingInfo info = {};
  std::uint32_t string_size = 0;
  double weight = 1;     ///< of each event
  bool parents = false;  ///< threads have the parent of their process
  bool enders = false;   ///< events of spans have the thread that ended them
  AttachPlan plan = {};
  std::vector<Recording::File> files = {};
  std::vector<RecordedNotice> notices = {};
  std::vector<RecordedFollowed> followed = {};
  std::optional<RecordedLedger> ledger = {};

  /// Errors: malformed, limit.
  [[nodiscard]] Result<void> read(ByteSpan block);
  /// The layout of the plan's events.
  [[nodiscard]] EventLayout layout() const;

 private:
  std::optional<LedgerReader> open_ledger_ = {};
  bool has_info_ = false;
  std::uint64_t parts_ = 0;  ///< kMostParts

  // False: the entry cannot be.
  bool entry(Tag tag, ByteReader& in);
  bool read_info(ByteReader& in);
  bool read_property(ByteReader& in);
  bool read_file(ByteReader& in);
  bool read_function(ByteReader& in);
  bool read_probe(ByteReader& in);
  bool read_spec(ByteReader& in);
  bool read_group(ByteReader& in);
  bool read_site(ByteReader& in);
  bool read_notice(ByteReader& in);
  bool read_followed(ByteReader& in);
  bool add_arguments(ByteReader& in);
  bool end_ledger(ByteReader& in);
};

}  // namespace usdt::record
