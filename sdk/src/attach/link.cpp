// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/link.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <system_error>
#include <thread>

#include "attach/backend.hpp"
#include "attach/link_impl.hpp"
#include "sys/uapi.hpp"
#include "usdt/features.hpp"
#include "usdt/privilege.hpp"

namespace usdt {

namespace {

/// Closing a link waits until no program of it runs any more (grace periods of RCU, some 50 ms on 6.18). Side by side,
/// the waits of many links are about one.
void close_together(std::vector<sys::UniqueFd>& links) noexcept {
  constexpr std::size_t most_threads = 32;
  std::vector<std::thread> threads;
  std::atomic<std::size_t> next{0};
  const auto close_some = [&] {
    for (std::size_t i = next++; i < links.size(); i = next++) links[i].reset();
  };
  try {
    while (threads.size() < most_threads && threads.size() + 1 < links.size()) threads.emplace_back(close_some);
  } catch (const std::system_error&) {
    // Fewer threads than wished for: those there are, and this one, do it.
  }
  close_some();
  for (std::thread& thread : threads) thread.join();
  links.clear();
}

}  // namespace

Link::Link(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Link::Link(Link&&) noexcept = default;
Link& Link::operator=(Link&& other) noexcept {
  if (impl_ && this != &other) detach();
  impl_ = std::move(other.impl_);
  return *this;
}
Link::~Link() {
  if (impl_) detach();
}

Backend Link::backend() const noexcept { return impl_->backend; }
Carrier Link::carrier() const noexcept { return impl_->carrier; }
const std::string& Link::carrier_text() const noexcept { return impl_->carrier_text; }
std::size_t Link::attached() const noexcept { return impl_->attached; }
const std::vector<SkippedSite>& Link::refused() const noexcept { return impl_->refused; }
void Link::detach() noexcept {
  close_together(impl_->fds);
  impl_->events.clear();
  impl_->attached = 0;
}

namespace {

/// The pid the kernel shall filter by; 0 where it cannot (before 6.10 uprobe_multi compared threads) or need not.
Result<pid_t> kernel_pid_filter(const Scope& scope, Backend backend) {
  const auto* one = std::get_if<OneProcess>(&scope);
  if (!one) return 0;
  if (::kill(one->pid, 0) != 0 && errno == ESRCH)
    return fail(ErrorKind::not_found, fmt::format("no process {}", one->pid));
  const bool exact = backend == Backend::perf_uprobe || probe_feature(Feature::uprobe_multi_pid).answer == Answer::yes;
  return exact ? one->pid : 0;
}

std::string refusal_text(const backends::Refusal& refusal, const PlannedLink& link) {
  const char* text = refusal.os_error == sys::enotsupp ? "ENOTSUPP" : std::strerror(refusal.os_error);
  return fmt::format("the kernel refuses file offset 0x{:x}: {}", link.offsets[refusal.index], text);
}

Error explain(const Error& error, Backend backend, const PlannedFile& file) {
  if (error.kind == ErrorKind::no_permission) {
    if (auto privilege = check_privilege(); !privilege) return privilege.error();
  }
  return error.within(fmt::format("attach {} by {}", file.target.path.string(), to_string(backend)));
}

Result<backends::FileLinks> attach_link(Backend backend, int program_fd, pid_t pid, const PlannedFile& file,
                                        const PlannedLink& link) {
  const backends::AttachTarget target{program_fd, fmt::format("/proc/self/fd/{}", file.elf->fd()), pid};
  const backends::SiteArrays sites{link.offsets, link.ref_ctr_offsets, link.cookies};
  auto links = backend == Backend::uprobe_multi ? backends::attach_uprobe_multi(target, sites)
                                                : backends::attach_perf_uprobe(target, sites);
  if (!links) return fail(explain(links.error(), backend, file));
  if (!file.elf->unchanged())
    return fail(ErrorKind::changed,
                fmt::format("{} changed on disk while it was being attached: run again", file.target.path.string()));
  return links;
}

}  // namespace

Result<Link> attach(BpfObject& object, std::string_view program, const AttachPlan& plan) {
  if (!object.loaded()) {
    // Another thread may be first.
    if (auto loaded = object.load(plan); !loaded && !object.loaded()) return fail(loaded.error());
  }
  auto pid = kernel_pid_filter(plan.scope, object.backend());
  if (!pid) return fail(pid.error());

  auto impl = std::make_unique<Link::Impl>();
  impl->backend = object.backend();
  impl->carrier = object.carriers().carrier;
  impl->carrier_text = object.carriers().describe();
  for (const PlannedLink& planned : object.carriers().links) {
    if (planned.file >= plan.files.size() || planned.sites.back() >= plan.sites.size())
      return fail(ErrorKind::invalid_argument, "the BPF object was loaded for another plan");
    auto program_fd = object.program_fd(program, planned.program);
    if (!program_fd) return fail(program_fd.error());
    auto links = attach_link(object.backend(), *program_fd, *pid, plan.files[planned.file], planned);
    if (!links) return fail(links.error());
    impl->attached += planned.offsets.size() - links->refused.size();
    std::move(links->fds.begin(), links->fds.end(), std::back_inserter(impl->fds));
    std::move(links->events.begin(), links->events.end(), std::back_inserter(impl->events));
    for (const backends::Refusal& refusal : links->refused) {
      const PlannedSite& site = plan.sites[planned.sites[refusal.index]];
      impl->refused.push_back({site.probe, site.file, site.pc, refusal_text(refusal, planned)});
    }
  }
  if (impl->attached == 0) {
    if (impl->refused.empty()) return fail(ErrorKind::not_found, "the plan has no site to attach");
    return fail(ErrorKind::not_supported, fmt::format("no site could be attached: {}", impl->refused.front().reason));
  }
  return Link(std::move(impl));
}

}  // namespace usdt
