// SPDX-License-Identifier: BSD-2-Clause
// The kernel's links of an attached plan. Private to attach/link.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "link/backend.hpp"
#include "link/served.hpp"
#include "sys/trace_event.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::backends {

/// Says what new links are attached to.
struct AttachedTo {
  Backend backend = Backend::automatic;
  std::optional<Index<PlannedFile>> file = {};   ///< nothing: to the kernel
  std::vector<Index<PlannedProbe>> probes = {};  ///< of their sites, in this order
  bool counts = true;                            ///< false: their calls are counted at the other end
};

/// Links, and perf events below them. Closing them detaches their sites, all together.
class KernelLinks {
 public:
  KernelLinks() = default;
  KernelLinks(KernelLinks&&) noexcept = default;
  KernelLinks& operator=(KernelLinks&&) = delete;
  ~KernelLinks() { close(); }

  [[nodiscard]] bool none() const noexcept { return fds_.empty() && events_.empty(); }
  [[nodiscard]] std::vector<LinkFd>& fds() noexcept { return fds_; }
  [[nodiscard]] const std::vector<LinkFd>& fds() const noexcept { return fds_; }
  [[nodiscard]] const std::vector<Served>& served() const noexcept { return served_; }
  /// Returns how many perf events are below links, or in the place of one.
  [[nodiscard]] std::size_t events() const noexcept { return events_.size(); }
  /// Returns the files of the plan that something is attached to.
  [[nodiscard]] std::set<Index<PlannedFile>> files() const;

  /// Takes over new links.
  void add(FileLinks& links, const AttachedTo& to);
  /// Takes over one link that was pinned.
  void add_pinned(LinkFd link) { fds_.push_back(std::move(link)); }
  /// Takes over the links of a part of the plan.
  void append(KernelLinks&& part, const PartPlace& place);
  /// Takes over links to the same sites, where there are none any more.
  void replace(KernelLinks&& again) noexcept;
  /// Takes all links out.
  [[nodiscard]] KernelLinks take_all() noexcept;
  /// Takes out the links of these files.
  [[nodiscard]] KernelLinks take(const std::set<Index<PlannedFile>>& files);
  /// Takes out the links that are for these processes.
  [[nodiscard]] KernelLinks take_of(const std::set<pid_t>& processes);
  /// Removes the pins of these links, which stay attached until they are closed.
  void unpin() noexcept;
  /// Detaches; the kernel waits until no program runs any more (close_together()).
  void close() noexcept;

 private:
  /// Takes out the links that `is_one` says yes to.
  template <class IsOne>
  KernelLinks take_links(const IsOne& is_one);

  std::vector<LinkFd> fds_;
  std::vector<Served> served_;  ///< parallel to fds_, but of pinned ones
  std::vector<sys::AttachedFd> events_;
  std::vector<std::optional<Index<PlannedFile>>> event_files_;  ///< parallel to events_
  std::vector<sys::TraceEvent> definitions_;                    ///< of events that a family has; removed after them
};

}  // namespace usdt::backends
