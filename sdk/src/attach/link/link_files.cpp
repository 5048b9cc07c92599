// SPDX-License-Identifier: BSD-2-Clause
// A Link and the files it is attached to: what is written to is let go.
#include <algorithm>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "link/link_impl.hpp"
#include "sys/descriptor_room.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Moves the elements of `all` whose number is one `taken` says yes to into what is returned.
template <class T, class Taken>
std::vector<T> take_out(std::vector<T>& all, Taken taken) {
  std::vector<T> out, kept;
  for (std::size_t i = 0; i < all.size(); ++i) (taken(i) ? out : kept).push_back(std::move(all[i]));
  all = std::move(kept);
  return out;
}

}  // namespace

/// Under the lock: the guard may be letting go of files that were attached before.
std::vector<backends::GuardedFile> Link::Impl::take_unguarded() {
  std::set<Index<PlannedFile>> attached_files;
  const auto take = [&](std::optional<Index<PlannedFile>> file) {
    if (file) attached_files.insert(*file);  // not of the kernel
  };
  const std::lock_guard lock(mutex);
  std::ranges::for_each(event_files, take);
  std::ranges::for_each(fds, take, &backends::LinkFd::file);
  for (const Index<PlannedFile> number : guarded) attached_files.erase(number);
  guarded.insert(guarded.end(), attached_files.begin(), attached_files.end());
  std::vector<backends::GuardedFile> files;
  for (const Index<PlannedFile> number : attached_files)
    files.push_back({plan->files[number].elf, plan->files[number].target.access});
  constexpr std::size_t spare = 256;
  // The files, their leases, the links.
  if (!files.empty()) sys::make_room_for(2 * files.size() + fds.size() + events.size() + spare);
  return files;
}

Result<void> Link::Impl::guard_files() {
  std::vector<backends::GuardedFile> files = take_unguarded();
  if (files.empty()) return {};
  if (guard) {
    guard->add(std::move(files));
    return {};
  }
  auto started = backends::FileGuard::start(std::move(files), [this](std::size_t i, FileChangeKind kind) {
    std::unique_lock changing(mutex);
    const Index<PlannedFile> file = guarded[i];
    changing.unlock();
    const std::size_t let_go = kind == FileChangeKind::written ? detach_files({file}) : 0;
    changing.lock();
    changes.push_back({file, kind, let_go});
  });
  if (!started) return fail(started.error());
  guard = std::move(*started);
  return {};
}

void Link::Impl::absorb(Impl& other, std::shared_ptr<const AttachPlan> whole, std::uint32_t files,
                        std::uint32_t probes) {
  const auto move_file = [files](std::optional<Index<PlannedFile>>& file) {
    if (file) file->value += files;
  };
  for (backends::LinkFd& fd : other.fds) move_file(fd.file);
  for (auto& file : other.event_files) move_file(file);
  for (auto* all : {&other.served_by_links, &other.served_by_programs}) {
    for (Served& served : *all) {
      for (Index<PlannedProbe>& probe : served.probes) probe.value += probes;
      std::set<Index<PlannedFile>> moved;
      for (const Index<PlannedFile> file : served.files) moved.emplace(file.value + files);
      served.files = std::move(moved);
    }
  }
  for (SkippedSite& site : other.refused) site.probe.value += probes;
  const auto append = [](auto& to, auto& from) { std::move(from.begin(), from.end(), std::back_inserter(to)); };
  const std::lock_guard lock(mutex);
  joined = true;
  plan = std::move(whole);
  append(fds, other.fds);
  append(events, other.events);
  append(event_files, other.event_files);
  append(definitions, other.definitions);
  append(programs, other.programs);
  append(served_by_links, other.served_by_links);
  append(served_by_programs, other.served_by_programs);
  append(refused, other.refused);
  for (const auto& [attached_by, sites] : other.by_backend) by_backend[attached_by] += sites;
  for (const auto& [of, sites] : other.sites_of_file)
    sites_of_file[{Index<PlannedFile>(of.first.value + files), of.second}] += sites;
  attached += other.attached;
  other.fds.clear();
  other.events.clear();
}

void Link::Impl::take_links(Impl& again) {
  std::unique_lock lock(mutex);
  fds = std::exchange(again.fds, {});
  events = std::exchange(again.events, {});
  event_files = std::exchange(again.event_files, {});
  served_by_links = std::exchange(again.served_by_links, {});
  const std::set<Index<PlannedFile>> changed = given_up;
  lock.unlock();
  if (!changed.empty()) detach_files(changed);  // while they were attached again
}

std::size_t Link::Impl::detach_files(const std::set<Index<PlannedFile>>& files) {
  const auto is_one = [&files](std::optional<Index<PlannedFile>> file) { return file && files.contains(*file); };
  std::unique_lock lock(mutex);
  given_up.insert(files.begin(), files.end());
  std::vector<bool> taken;
  for (const backends::LinkFd& link : fds) taken.push_back(is_one(link.file));
  std::vector<backends::LinkFd> links = take_out(fds, [&](std::size_t i) { return taken[i]; });
  take_out(served_by_links, [&](std::size_t i) { return taken[i]; });
  std::vector<sys::AttachedFd> of_links = take_out(events, [&](std::size_t i) { return is_one(event_files[i]); });
  std::erase_if(event_files, is_one);
  std::size_t sites = 0;
  for (auto& [of, of_backend] : sites_of_file) {
    if (!files.contains(of.first)) continue;
    sites += of_backend;
    by_backend[of.second] -= std::exchange(of_backend, 0);
  }
  attached -= sites;
  lock.unlock();
  std::error_code gone_already;
  for (const backends::LinkFd& link : links)
    if (!link.pin.empty()) std::filesystem::remove(link.pin, gone_already);
  backends::close_together(links, of_links);
  return sites;
}

std::size_t Link::let_go(const std::vector<Index<PlannedFile>>& files, std::shared_ptr<const AttachPlan> plan) {
  const std::set<Index<PlannedFile>> all(files.begin(), files.end());
  const std::size_t sites = impl_->detach_files(all);
  impl_->close_programs(all);
  std::unique_lock lock(impl_->mutex);
  impl_->plan = std::move(plan);
  std::vector<std::size_t> watched;
  for (std::size_t i = 0; i < impl_->guarded.size(); ++i)
    if (all.contains(impl_->guarded[i])) watched.push_back(i);
  lock.unlock();  // the guard may have something to say
  if (impl_->guard) impl_->guard->forget(std::move(watched));
  return sites;
}

std::vector<FileChange> Link::changes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->changes;
}

}  // namespace v1
}  // namespace usdt
