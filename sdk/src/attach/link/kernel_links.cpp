// SPDX-License-Identifier: BSD-2-Clause
#include "link/kernel_links.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

namespace usdt::backends {
namespace {

using MaybeFile = std::optional<Index<PlannedFile>>;

/// Moves the elements of `all` whose number is one `taken` says yes to into what is returned.
template <class T, class Taken>
std::vector<T> take_out(std::vector<T>& all, Taken taken) {
  std::vector<T> out, kept;
  for (std::size_t i = 0; i < all.size(); ++i) (taken(i) ? out : kept).push_back(std::move(all[i]));
  all = std::move(kept);
  return out;
}

template <class T>
void move_behind(std::vector<T>& all, std::vector<T>& more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
  more.clear();
}

}  // namespace

std::set<Index<PlannedFile>> KernelLinks::files() const {
  std::set<Index<PlannedFile>> files;
  const auto take = [&](MaybeFile file) {
    if (file) files.insert(*file);  // not of the kernel
  };
  std::ranges::for_each(event_files_, take);
  std::ranges::for_each(fds_, take, &LinkFd::file);
  return files;
}

void KernelLinks::add(FileLinks& links, const AttachedTo& to) {
  std::size_t first = 0;
  for (LinkFd& link : links.fds) {
    const bool all = static_cast<bool>(link.deep_calls);
    served_.push_back(
        {to.backend, all ? each_once(to.probes, 0, to.probes.size()) : each_once(to.probes, first, link.sites)});
    first += link.sites;
    link.backend = to.backend;
    link.file = to.file;
    if (!to.counts) link.sites = 0;
  }
  move_behind(fds_, links.fds);
  move_behind(events_, links.events);
  move_behind(definitions_, links.definitions);
  event_files_.resize(events_.size(), to.file);
}

void KernelLinks::append(KernelLinks&& part, const PartPlace& place) {
  const auto move_file = [&](MaybeFile& file) {
    if (file) file->value += place.files;
  };
  std::ranges::for_each(part.fds_, move_file, &LinkFd::file);
  std::ranges::for_each(part.event_files_, move_file);
  for (Served& served : part.served_) move_to(place, served);
  move_behind(fds_, part.fds_);
  move_behind(served_, part.served_);
  move_behind(events_, part.events_);
  move_behind(event_files_, part.event_files_);
  move_behind(definitions_, part.definitions_);
}

void KernelLinks::replace(KernelLinks&& again) noexcept {
  fds_ = std::exchange(again.fds_, {});
  served_ = std::exchange(again.served_, {});
  events_ = std::exchange(again.events_, {});
  event_files_ = std::exchange(again.event_files_, {});
  definitions_ = std::exchange(again.definitions_, {});
}

KernelLinks KernelLinks::take_all() noexcept {
  KernelLinks all;
  all.replace(std::move(*this));
  return all;
}

template <class IsOne>
KernelLinks KernelLinks::take_links(const IsOne& is_one) {
  std::vector<bool> taken;
  for (const LinkFd& link : fds_) taken.push_back(is_one(link));
  const auto is_taken = [&](std::size_t i) { return i < taken.size() && taken[i]; };
  KernelLinks out;
  out.fds_ = take_out(fds_, is_taken);
  out.served_ = take_out(served_, is_taken);
  return out;
}

KernelLinks KernelLinks::take_of(const std::set<pid_t>& processes) {
  return take_links([&](const LinkFd& link) { return processes.contains(link.pid); });
}

KernelLinks KernelLinks::take(const std::set<Index<PlannedFile>>& files) {
  const auto is_one = [&files](MaybeFile file) { return file && files.contains(*file); };
  KernelLinks out = take_links([&](const LinkFd& link) { return is_one(link.file); });
  out.events_ = take_out(events_, [&](std::size_t i) { return is_one(event_files_[i]); });
  std::erase_if(event_files_, is_one);
  return out;
}

void KernelLinks::unpin() noexcept {
  std::error_code gone_already;
  for (const LinkFd& link : fds_)
    if (!link.pin.empty()) std::filesystem::remove(link.pin, gone_already);
}

void KernelLinks::close() noexcept {
  close_together(fds_, events_);
  served_.clear();
  event_files_.clear();
  definitions_.clear();
}

}  // namespace usdt::backends
