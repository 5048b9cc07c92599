// SPDX-License-Identifier: BSD-2-Clause
// A Link and the files it is attached to: what is written to is let go.
#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "attach/kernel_backend.hpp"
#include "attach/link_impl.hpp"

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

Result<void> Link::Impl::guard_files() {
  std::set<Index<PlannedFile>> attached_files;
  const auto take = [&](std::optional<Index<PlannedFile>> file) {
    if (file) attached_files.insert(*file);  // not of the kernel
  };
  std::ranges::for_each(event_files, take);
  std::ranges::for_each(fds, take, &backends::LinkFd::file);
  if (attached_files.empty()) return {};
  std::vector<Index<PlannedFile>> numbers(attached_files.begin(), attached_files.end());
  std::vector<backends::GuardedFile> files;
  for (const Index<PlannedFile> number : numbers)
    files.push_back({plan->files[number].elf, plan->files[number].target.access});
  constexpr std::size_t spare = 256;
  backends::make_room_for(2 * files.size() + fds.size() + events.size() + spare);  // the file, its lease, its links
  auto started = backends::FileGuard::start(std::move(files), [this, numbers](std::size_t i, FileChangeKind kind) {
    const std::size_t let_go = kind == FileChangeKind::written ? detach_file(numbers[i]) : 0;
    const std::lock_guard lock(mutex);
    changes.push_back({numbers[i], kind, let_go});
  });
  if (!started) return fail(started.error());
  guard = std::move(*started);
  return {};
}

std::size_t Link::Impl::detach_file(Index<PlannedFile> file) {
  std::unique_lock lock(mutex);
  std::vector<bool> of_file;
  for (const backends::LinkFd& link : fds) of_file.push_back(link.file == file);
  std::vector<backends::LinkFd> links = take_out(fds, [&](std::size_t i) { return of_file[i]; });
  take_out(served_by_links, [&](std::size_t i) { return of_file[i]; });
  std::vector<sys::AttachedFd> of_links = take_out(events, [&](std::size_t i) { return event_files[i] == file; });
  std::erase(event_files, file);
  const std::size_t sites = std::exchange(sites_of_file[file], 0);
  attached -= sites;
  by_backend[backend] -= sites;
  lock.unlock();
  std::error_code gone_already;
  for (const backends::LinkFd& link : links)
    if (!link.pin.empty()) std::filesystem::remove(link.pin, gone_already);
  backends::close_together(links, of_links);
  return sites;
}

std::vector<FileChange> Link::changes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->changes;
}

}  // namespace v1
}  // namespace usdt
