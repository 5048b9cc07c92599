// SPDX-License-Identifier: BSD-2-Clause
// What a Link owns. Private to attach/.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attach/backend.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/link.hpp"

namespace usdt {

/// What a program or link is attached to, for what it misses.
struct Served {
  Backend backend = Backend::automatic;
  std::vector<std::uint32_t> probes;  ///< of the plan, in order, each once
};

struct Link::Impl {
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { backends::close_together(fds, events); }

  std::shared_ptr<const AttachPlan> plan;  ///< null: opened from pins
  Backend backend = Backend::automatic;
  Carrier carrier = Carrier::automatic;
  std::string carrier_text;
  std::vector<backends::LinkFd> fds;
  std::vector<sys::AttachedFd> events;        ///< perf events below them
  std::vector<sys::UniqueFd> programs;        ///< each that was attached, once; kept when detached, for what they count
  std::vector<Served> served_by_links;        ///< parallel to fds
  std::vector<Served> served_by_programs;     ///< parallel to programs
  std::map<Backend, std::size_t> by_backend;  ///< sites attached
  std::vector<SkippedSite> refused;
  std::size_t attached = 0;
  std::vector<MissedHits> missed_by_links;  ///< when they were detached

  /// What `links` attached to `probes`, in this order; call it before they are moved to fds and programs.
  void note_served(const backends::FileLinks& links, Backend way, const std::vector<std::uint32_t>& probes);
  /// A program of the object itself, among programs at `index` or about to be put there, is attached to `probes` too.
  void note_program(std::size_t index, Backend way, const std::vector<std::uint32_t>& probes);
  /// Hits at kprobes that came within another one's handler and never got to a program; what did, and found one
  /// running, programs count.
  [[nodiscard]] std::vector<MissedHits> ask_links() const;
};

}  // namespace usdt
