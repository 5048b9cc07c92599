// SPDX-License-Identifier: BSD-2-Clause
// The backends of sites in files: each takes sites of one file and makes kernel links. A link is a descriptor; closing
// it detaches, also when the process dies.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/family.hpp"
#include "sys/trace_event.hpp"
#include "sys/uapi.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/backend.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::backends {

/// Sites of one file, as parallel arrays (a view into a PlannedLink, or a part of one).
struct SiteArrays {
  std::span<const std::uint64_t> offsets;
  std::span<const std::uint64_t> ref_ctr_offsets;
  std::span<const std::uint64_t> cookies;

  [[nodiscard]] SiteArrays part(std::size_t first, std::size_t count) const {
    return {offsets.subspan(first, count), ref_ctr_offsets.subspan(first, count), cookies.subspan(first, count)};
  }
};

/// Says where to attach: a path that names the scanned inode, and whose hits count.
struct AttachTarget {
  int program_fd = -1;
  std::string path;  ///< /proc/self/fd/N
  pid_t pid = 0;     ///< 0: every process
  const Family* family = nullptr;
};

/// Holds what sets links of uprobe_multi's kind apart.
struct MultiLink {
  std::uint32_t attach_type = sys::kBpfAttachTraceUprobeMulti;
  std::uint32_t flags = 0;  ///< BPF_F_UPROBE_MULTI_*
};

/// A site (index into the arrays) the kernel refused, and its errno.
struct Refusal {
  std::size_t index;
  int os_error;
};

/// A kernel link.
struct LinkFd : sys::AttachedFd {
  explicit LinkFd(int fd, std::size_t count = 1) noexcept : OwnedFd(fd), sites(count) {}

  std::size_t sites;
  Backend backend = Backend::automatic;  ///< these are known to its Link
  std::optional<Index<PlannedFile>> file = {};
  pid_t pid = 0;                   ///< the process that usdt-broker has made it for
  std::filesystem::path pin = {};  ///< where it is pinned
  sys::UniqueFd deep_calls = {};   ///< of return probes: the map of count_deep_calls(); none: they are not counted
};

/// Detaches. Closing a link waits until no program of it runs any more (grace periods of RCU, some 50 ms on 6.18):
/// closed together, the waits of many are about one.
void close_together(std::vector<LinkFd>& links, std::vector<sys::AttachedFd>& events) noexcept;

/// Links of one file. `refused` sites are left out, all others are attached.
struct FileLinks {
  FileLinks() = default;
  FileLinks(FileLinks&&) = default;
  FileLinks& operator=(FileLinks&&) = delete;
  ~FileLinks() { close_together(fds, events); }

  /// Adds links of these sites for another process: their sites are counted once, and one that is refused for a process
  /// is refused.
  void append(FileLinks more);

  std::vector<LinkFd> fds;
  std::vector<sys::AttachedFd> events;       ///< perf events below the links
  std::vector<sys::UniqueFd> programs;       ///< that were loaded for these links alone
  std::vector<sys::TraceEvent> definitions;  ///< of the events; removed after them
  std::vector<Refusal> refused;
  /// All that the kernel said of the first program that was loaded for one function and refused.
  std::optional<Error> first_refusal = {};
};

/// One link for all sites of the file; should the kernel refuse the batch for a site's sake, the site is found by
/// bisection.
[[nodiscard]] Result<FileLinks> attach_uprobe_multi(const AttachTarget& target, const SiteArrays& sites);
[[nodiscard]] Result<FileLinks> attach_multi_link(const MultiLink& link, const AttachTarget& target,
                                                  const SiteArrays& sites);
/// One such link at the returns of the functions that begin at the sites.
[[nodiscard]] Result<FileLinks> attach_uprobe_return(const AttachTarget& target, const SiteArrays& sites);
/// One such link at both ends of their calls.
[[nodiscard]] Result<FileLinks> attach_uprobe_session(const AttachTarget& target, const SiteArrays& sites);
/// One perf event and one link for each site.
[[nodiscard]] Result<FileLinks> attach_perf_uprobe(const AttachTarget& target, const SiteArrays& sites);
/// Attaches by perf events at the returns of the functions that begin at the sites.
[[nodiscard]] Result<FileLinks> attach_perf_uretprobe(const AttachTarget& target, const SiteArrays& sites);

/// A trace event for all sites of one cookie, and perf events of it that the family's tasks hand on to what they fork.
[[nodiscard]] Result<FileLinks> attach_uprobe_family(const AttachTarget& target, const SiteArrays& sites);
/// Attaches by inherited perf events at the returns of the functions that begin at the sites.
[[nodiscard]] Result<FileLinks> attach_uprobe_family_return(const AttachTarget& target, const SiteArrays& sites);

/// A program on a perf event: a BPF link with a cookie (5.15; before, the program alone and no cookie). 0 with the
/// descriptors appended, or an errno.
[[nodiscard]] int link_perf_event(int program_fd, sys::AttachedFd event, std::uint64_t cookie, FileLinks& links);

/// True for errors that blame the whole request (privilege, process, path, memory), false for those a single site may
/// cause.
[[nodiscard]] bool concerns_all_sites(int os_error) noexcept;

}  // namespace usdt::backends
