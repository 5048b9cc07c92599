// SPDX-License-Identifier: BSD-2-Clause
// A perf event of the dynamic uprobe event source for each site, and a BPF link with a cookie on it (kernel 5.15;
// before, the program alone).
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/try.hpp"
#include "link/backend.hpp"
#include "link/kernel_backend.hpp"
#include "sys/descriptor_room.hpp"
#include "sys/probe_source.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::backends {
namespace {

/// 0 with both descriptors appended, or a positive errno.
int attach_site(const AttachTarget& target, const sys::ProbeSource& source, bool returns, const SiteArrays& sites,
                std::size_t i, FileLinks& links) {
  const std::uint64_t ref_ctr = sites.ref_ctr_offsets[i];
  // perf_event_attr::config has 32 bits for the semaphore's offset.
  if (ref_ctr >> (64 - source.ref_ctr_shift)) return EOVERFLOW;
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = source.type;
  attr.config = ref_ctr << source.ref_ctr_shift | (returns ? std::uint64_t{1} << source.retprobe_bit : 0);
  attr.config1 = reinterpret_cast<std::uintptr_t>(target.path.c_str());
  attr.config2 = sites.offsets[i];
  const bool all = target.pid == 0;
  sys::AttachedFd event;
  const int fd = sys::syscalls().perf_event_open(&attr, all ? -1 : target.pid, all ? 0 : -1, -1, 0);
  if (fd < 0) return -fd;
  event.reset(fd);

  return link_perf_event(target.program_fd, std::move(event), sites.cookies[i], links);
}

Result<FileLinks> attach_each(const AttachTarget& target, bool returns, const SiteArrays& sites) {
  auto source = TRY(sys::probe_source("uprobe"));
  const std::size_t spare = 256;
  sys::make_room_for(2 * sites.offsets.size() + spare);
  FileLinks links;
  for (std::size_t i = 0; i < sites.offsets.size(); ++i) {
    const int error = attach_site(target, source, returns, sites, i, links);
    if (error == EMFILE)
      return fail(
          os_failure(ErrorKind::limit, fmt::format("perf uprobes: site {} of {}", i + 1, sites.offsets.size()), error));
    if (error && concerns_all_sites(error)) return fail(os_failure(ErrorKind::io, "perf uprobe", error));
    if (error) links.refused.push_back({i, error});
  }
  return links;
}

}  // namespace

int link_perf_event(int program_fd, sys::AttachedFd event, std::uint64_t cookie, FileLinks& links) {
  sys::LinkCreatePerfEvent link;
  link.prog_fd = static_cast<std::uint32_t>(program_fd);
  link.target_fd = static_cast<std::uint32_t>(event.get());
  link.bpf_cookie = cookie;
  const int link_fd = sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &link, sizeof(link));
  if (link_fd >= 0) {
    links.fds.emplace_back(link_fd);
  } else if (link_fd == -EINVAL && link.bpf_cookie == 0) {
    // Before 5.15 perf events had no links; programs that find their sites by address (ip-hash) need none.
    if (const int set = sys::syscalls().perf_event_set_bpf(event.get(), program_fd); set < 0) return -set;
  } else {
    return -link_fd;
  }
  links.events.push_back(std::move(event));
  return 0;
}

Result<FileLinks> attach_perf_uprobe(const AttachTarget& target, const SiteArrays& sites) {
  return attach_each(target, false, sites);
}

Result<FileLinks> attach_perf_uretprobe(const AttachTarget& target, const SiteArrays& sites) {
  return attach_each(target, true, sites);
}

}  // namespace usdt::backends
