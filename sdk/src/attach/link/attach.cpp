// SPDX-License-Identifier: BSD-2-Clause
// From a loaded object to a Link.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "backend/table.hpp"
#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "link/attachment.hpp"
#include "program/process_list.hpp"
#include "program/specialise.hpp"
#include "usdt/discover.hpp"
#include "usdt/features.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Two of them run in one memory, as after vfork(): a link for each would count the hits of both.
bool share_memory(const std::vector<pid_t>& pids) {
  for (std::size_t i = 0; i < pids.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k)
      if (::syscall(SYS_kcmp, pids[i], pids[k], KCMP_VM, 0, 0) == 0) return true;
  }
  return false;
}

/// The processes of a plan; none: it is for everybody. Errors: not_found (all have ended).
Result<std::vector<pid_t>> living_pids(const AttachPlan& plan) {
  std::vector<pid_t> pids = pids_of(plan.scope);
  if (pids.empty()) return pids;
  const std::string all = fmt::format("{}", fmt::join(pids, ", "));
  std::erase_if(pids, backends::has_ended);
  if (pids.empty()) return fail(ErrorKind::not_found, fmt::format("no process {}", all));
  return pids;
}

/// The pids the kernel shall filter by, with a link for each; only 0, where it cannot (before 6.10 uprobe_multi
/// compared threads; it puts breakpoints into the memory of the first thread, which one that has ended lacks) or need
/// not. Those that have ended are left out. Errors: not_found (all have).
Result<std::vector<pid_t>> kernel_pid_filter(const AttachPlan& plan, Backend files) {
  auto pids = TRY(living_pids(plan));
  if (pids.empty()) return std::vector<pid_t>{0};
  const bool exact = std::ranges::all_of(plan.groups, [&](const AttachGroup& group) {
    const Backend backend = group.backend == Backend::automatic ? files : group.backend;
    const auto& fix = backends::row_of(backend).exact_pid;
    return !fix || probe_feature(*fix).answer == Answer::yes;
  });
  if (!exact || std::ranges::any_of(pids, first_thread_has_ended) || share_memory(pids)) return std::vector<pid_t>{0};
  return pids;
}

/// The processes that usdt-broker attaches to; none: those that have a file mapped. Errors: not_found (all have ended).
Result<std::vector<pid_t>> pids_there(const AttachPlan& plan, const backends::Family& family) {
  if (family.roots.empty()) return living_pids(plan);
  backends::FamilyMembers members(family);
  members.look();
  const std::set<pid_t> living = members.living();
  if (living.empty()) return fail(ErrorKind::not_found, "the processes to trace have ended");
  return std::vector<pid_t>(living.begin(), living.end());
}

Result<std::vector<pid_t>> pids_to_attach(const AttachPlan& plan, Backend files, bool there,
                                          const backends::Family& family) {
  return there ? pids_there(plan, family) : kernel_pid_filter(plan, files);
}

/// The one program for sites that is loaded, of an object whose plan names none. invalid_argument: there are several.
Result<std::string> only_program(const ObjectCopy& object) {
  std::vector<std::string> loaded;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    if (backends::is_site_program(program) && bpf_program__fd(program) >= 0)
      loaded.emplace_back(bpf_program__name(program));
  }
  if (loaded.size() == 1) return loaded.front();
  if (loaded.empty()) return fail(ErrorKind::not_found, "the BPF object has no program for attach points");
  return fail(ErrorKind::invalid_argument,
              fmt::format("the plan names no program, and there are {}: say which", fmt::join(loaded, ", ")));
}

}  // namespace

Result<Link> LoadedObject::attach(std::string_view program) const {
  const Table<std::string>& named = impl_->plan->programs;
  if (!named.empty() && std::ranges::find(named, program) == named.end())
    return fail(ErrorKind::not_found,
                fmt::format("the plan has no sites for '{}', but for {}", program, fmt::join(named, ", ")));
  return attach_program(program);
}

Result<Link> LoadedObject::attach() const {
  if (!impl_->plan->programs.empty()) return attach_program({});
  auto only = TRY(only_program(impl_->first()));
  return attach_program(only);
}

Result<Link> LoadedObject::attach_unguarded(std::string_view program) const {
  auto pids = TRY(pids_to_attach(*impl_->plan, impl_->backend, impl_->there != nullptr, impl_->family));
  auto attached = Attachment(*impl_, program, std::move(pids), {}, impl_->stop).run();
  if (attached) return Link(std::move(*attached));
  // A process that has ended meanwhile is the reason, whatever the kernel called it.
  TRY(kernel_pid_filter(*impl_->plan, impl_->backend));
  return fail(attached.error());
}

Result<void> LoadedObject::resume(Link& link) const {
  Link::Impl& paused = *link.impl_;
  std::unique_lock lock(paused.mutex);
  const bool same = paused.plan == impl_->plan && !paused.joined;
  const bool attached = !paused.links.none();
  const std::set<Index<PlannedFile>> changed = paused.given_up;
  lock.unlock();
  if (!same || attached || has_kernel_points(*impl_->plan))
    return fail(ErrorKind::invalid_argument,
                attached ? "the link is not paused" : "only links to files, of one object, can be attached again");
  auto pids = TRY(pids_to_attach(*impl_->plan, impl_->backend, impl_->there != nullptr, impl_->family));
  auto again = TRY(Attachment(*impl_, paused.program, std::move(pids), changed, {}).run());
  paused.take_links(*again);
  return {};
}

Result<Link> LoadedObject::attach_program(std::string_view program) const try {
  auto link = attach_unguarded(program);
  if (!link) return link;
  TRY(link->impl_->guard_files());
  if (impl_->there) TRY(link->impl_->watch_family(impl_->family));
  return link;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

Result<void> LoadedObject::attach_to(Link& link, std::string_view program,
                                     std::shared_ptr<const AttachPlan> whole) const try {
  const AttachPlan& part = *impl_->plan;
  if (!whole || whole->files.size() < part.files.size() || whole->probes.size() < part.probes.size())
    return fail(ErrorKind::invalid_argument, "the whole plan lacks the part that is to be attached");
  const backends::PartPlace place{static_cast<std::uint32_t>(whole->files.size() - part.files.size()),
                                  static_cast<std::uint32_t>(whole->probes.size() - part.probes.size())};
  auto more = TRY(attach_unguarded(program));
  link.impl_->absorb(*more.impl_, std::move(whole), place);
  TRY(link.impl_->guard_files());
  return impl_->there ? link.impl_->watch_family(impl_->family) : Result<void>();
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

}  // namespace v1
}  // namespace usdt
