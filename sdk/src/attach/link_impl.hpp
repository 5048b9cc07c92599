// SPDX-License-Identifier: BSD-2-Clause
// What a Link owns. Private to attach/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attach/backend.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/link.hpp"

namespace usdt {

struct Link::Impl {
  Backend backend = Backend::automatic;
  Carrier carrier = Carrier::automatic;
  std::string carrier_text;
  std::vector<backends::LinkFd> fds;
  std::vector<sys::UniqueFd> events;          ///< perf events below them
  std::vector<sys::UniqueFd> programs;        ///< each that was attached, once; kept when detached, for what they count
  std::map<Backend, std::size_t> by_backend;  ///< sites attached
  std::vector<SkippedSite> refused;
  std::size_t attached = 0;
  std::optional<std::uint64_t> missed_by_links;  ///< when they were detached
};

/// Hits at kprobes that came within another one's handler and never got to a program; what did, and found one running,
/// programs count. 0 for other links; nothing where the kernel does not say (before 6.7).
[[nodiscard]] std::optional<std::uint64_t> missed_by(std::span<const backends::LinkFd> links) noexcept;

}  // namespace usdt
