// SPDX-License-Identifier: BSD-2-Clause
// A Link and the files it is attached to: what is written to is let go.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "link/link_impl.hpp"
#include "sys/descriptor_room.hpp"

namespace usdt {
inline namespace v1 {

/// Under the lock: the guard may be letting go of files that were attached before.
std::vector<backends::GuardedFile> Link::Impl::take_unguarded() {
  const std::lock_guard lock(mutex);
  std::set<Index<PlannedFile>> attached_files = links.files();
  for (const Index<PlannedFile> number : guarded) attached_files.erase(number);
  guarded.insert(guarded.end(), attached_files.begin(), attached_files.end());
  std::vector<backends::GuardedFile> files;
  for (const Index<PlannedFile> number : attached_files)
    files.push_back({plan->files[number].elf, plan->files[number].target.access});
  constexpr std::size_t spare = 256;
  // The files, their leases, the links.
  if (!files.empty()) sys::make_room_for(2 * files.size() + links.fds().size() + links.events() + spare);
  return files;
}

Result<void> Link::Impl::guard_files() {
  std::vector<backends::GuardedFile> files = take_unguarded();
  if (files.empty()) return {};
  if (guard) {
    guard->add(std::move(files));
    return {};
  }
  auto guarding = backends::FileGuard::start(std::move(files), [this](std::size_t i, FileChangeKind kind) {
    std::unique_lock changing(mutex);
    const Index<PlannedFile> file = guarded[i];
    changing.unlock();
    const std::size_t let_go = kind == FileChangeKind::written ? detach_files({file}) : 0;
    changing.lock();
    changes.push_back({file, kind, let_go});
  });
  if (!guarding) return fail(guarding.error());
  guard = std::move(*guarding);
  return {};
}

void Link::Impl::absorb(Impl& other, std::shared_ptr<const AttachPlan> whole, const backends::PartPlace& place) {
  for (SkippedSite& site : other.refused) site.probe.value += place.probes;
  const std::lock_guard lock(mutex);
  joined = true;
  plan = std::move(whole);
  links.append(std::move(other.links), place);
  programs.append(std::move(other.programs), place);
  sites.append(other.sites, place);
  std::ranges::move(other.there, std::back_inserter(there));
  for (LinkThere& link : other.of_family) {
    if (link.to.file) link.to.file->value += place.files;
    for (Index<PlannedProbe>& probe : link.to.probes) probe.value += place.probes;
    of_family.push_back(std::move(link));
  }
  std::ranges::move(other.refused, std::back_inserter(refused));
}

void Link::Impl::take_links(Impl& again) {
  std::unique_lock lock(mutex);
  links.replace(std::move(again.links));
  const std::set<Index<PlannedFile>> changed = given_up;
  lock.unlock();
  if (!changed.empty()) detach_files(changed);  // while they were attached again
}

std::size_t Link::Impl::detach_files(const std::set<Index<PlannedFile>>& files) {
  std::unique_lock lock(mutex);
  given_up.insert(files.begin(), files.end());
  backends::KernelLinks of_files = links.take(files);
  std::erase_if(of_family, [&](const LinkThere& link) { return link.to.file && files.contains(*link.to.file); });
  const std::size_t detached = sites.take(files);
  lock.unlock();
  of_files.unpin();
  of_files.close();
  return detached;
}

void Link::Impl::forget_files(const std::set<Index<PlannedFile>>& files) {
  std::unique_lock lock(mutex);
  std::vector<std::size_t> watched;
  for (std::size_t i = 0; i < guarded.size(); ++i)
    if (files.contains(guarded[i])) watched.push_back(i);
  lock.unlock();  // the guard may have something to say
  if (guard) guard->forget(std::move(watched));
}

}  // namespace v1
}  // namespace usdt
