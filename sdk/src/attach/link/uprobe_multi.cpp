// SPDX-License-Identifier: BSD-2-Clause
// BPF_LINK_CREATE with BPF_TRACE_UPROBE_MULTI (kernel 6.6): all sites of a file in one link, all or nothing. The kernel
// does not say which site it refused, so we find out.
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "link/backend.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::backends {
namespace {

/// A link descriptor, or a negative errno.
int create_link(const MultiLink& link, const AttachTarget& target, const SiteArrays& sites) {
  sys::LinkCreateUprobeMulti attr;
  attr.attach_type = link.attach_type;
  attr.flags = link.flags;
  attr.prog_fd = static_cast<std::uint32_t>(target.program_fd);
  attr.path = reinterpret_cast<std::uintptr_t>(target.path.c_str());
  attr.offsets = reinterpret_cast<std::uintptr_t>(sites.offsets.data());
  attr.ref_ctr_offsets = reinterpret_cast<std::uintptr_t>(sites.ref_ctr_offsets.data());
  attr.cookies = reinterpret_cast<std::uintptr_t>(sites.cookies.data());
  attr.cnt = static_cast<std::uint32_t>(sites.offsets.size());
  attr.pid = static_cast<std::uint32_t>(target.pid);
  return sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
}

/// Sites of one file kept by value, so that some can be left out.
struct OwnedSites {
  std::vector<std::uint64_t> offsets, ref_ctr_offsets, cookies;

  [[nodiscard]] SiteArrays view() const { return {offsets, ref_ctr_offsets, cookies}; }
  void append(const SiteArrays& part) {
    offsets.insert(offsets.end(), part.offsets.begin(), part.offsets.end());
    ref_ctr_offsets.insert(ref_ctr_offsets.end(), part.ref_ctr_offsets.begin(), part.ref_ctr_offsets.end());
    cookies.insert(cookies.end(), part.cookies.begin(), part.cookies.end());
  }
};

/// Splits sites the kernel refused as a batch until each refused one stands alone. A batch is tried together with the
/// sites found good so far, because two sites may be at odds only with each other (one offset with two semaphores).
class Bisection {
 public:
  Bisection(const MultiLink& link, const AttachTarget& target, const SiteArrays& sites)
      : link_(link), target_(target), sites_(sites) {}

  /// 0, or the error that ends the search (process gone, ...).
  int search(std::size_t first, std::size_t count, int os_error) {
    if (count == 1) {
      refused.push_back({first, os_error});
      return 0;
    }
    const std::size_t half = count / 2;
    for (const auto& [start, length] : {std::pair{first, half}, std::pair{first + half, count - half}}) {
      if (const int error = add_range(start, length)) return error;
    }
    return 0;
  }

  OwnedSites good;
  std::vector<Refusal> refused;

 private:
  int add_range(std::size_t first, std::size_t count) {
    OwnedSites trial = good;
    trial.append(sites_.part(first, count));
    const int fd = create_link(link_, target_, trial.view());
    if (fd >= 0) {
      const sys::AttachedFd let_go(fd);
      good = std::move(trial);
      return 0;
    }
    return concerns_all_sites(-fd) ? -fd : search(first, count, -fd);
  }

  const MultiLink& link_;
  const AttachTarget& target_;
  const SiteArrays& sites_;
};

}  // namespace

bool concerns_all_sites(int os_error) noexcept {
  static constexpr int whole[] = {EPERM,  EACCES, ENOENT, ESRCH, EBADF,  ENOMEM,
                                  EMFILE, ENFILE, ENOSYS, E2BIG, EFAULT, EINTR};
  return std::find(std::begin(whole), std::end(whole), os_error) != std::end(whole);
}

void FileLinks::append(FileLinks more) {
  const bool same_again = !fds.empty();
  for (LinkFd& link : more.fds) {
    if (same_again) link.sites = 0;
    fds.push_back(std::move(link));
  }
  std::move(more.events.begin(), more.events.end(), std::back_inserter(events));
  std::move(more.definitions.begin(), more.definitions.end(), std::back_inserter(definitions));
  for (const Refusal& refusal : more.refused) {
    if (std::ranges::find(refused, refusal.index, &Refusal::index) == refused.end()) refused.push_back(refusal);
  }
  more.fds.clear();
  more.events.clear();
}

Result<FileLinks> attach_uprobe_multi(const AttachTarget& target, const SiteArrays& sites) {
  return attach_multi_link({}, target, sites);
}

Result<FileLinks> attach_multi_link(const MultiLink& link, const AttachTarget& target, const SiteArrays& sites) {
  FileLinks links;
  std::size_t count = sites.offsets.size();
  int fd = create_link(link, target, sites);
  if (fd < 0 && !concerns_all_sites(-fd)) {
    Bisection bisection(link, target, sites);
    if (const int error = bisection.search(0, count, -fd))
      return fail(os_failure(ErrorKind::io, "uprobe_multi link", error));
    links.refused = std::move(bisection.refused);
    count = bisection.good.offsets.size();
    if (count == 0) return links;
    fd = create_link(link, target, bisection.good.view());
  }
  if (fd < 0) return fail(os_failure(ErrorKind::io, "uprobe_multi link", -fd));
  links.fds.emplace_back(fd, count);
  return links;
}

}  // namespace usdt::backends
