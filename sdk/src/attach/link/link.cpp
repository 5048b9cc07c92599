// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/try.hpp"
#include "link/link_impl.hpp"
#include "link/missed.hpp"
#include "link/pin.hpp"

namespace usdt {
inline namespace v1 {

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
std::string Link::backend_text() const {
  const std::lock_guard lock(impl_->mutex);
  const auto& by_backend = impl_->sites.by_backend();
  if (by_backend.empty()) return std::string(to_string(impl_->backend));
  if (by_backend.size() == 1) return std::string(to_string(by_backend.begin()->first));
  std::string text;
  for (const auto& [backend, sites] : by_backend)
    text += fmt::format("{}{} ({} site{})", text.empty() ? "" : ", ", to_string(backend), sites, sites == 1 ? "" : "s");
  return text;
}
Carrier Link::carrier() const noexcept { return impl_->carrier; }
const std::string& Link::carrier_text() const noexcept { return impl_->carrier_text; }
std::size_t Link::attached() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->sites.all();
}
const std::vector<SkippedSite>& Link::refused() const noexcept { return impl_->refused; }

std::optional<StartedProcesses> Link::started() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->started;
}

std::vector<FileChange> Link::changes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->changes;
}

void Link::pause() noexcept {
  std::unique_lock lock(impl_->mutex);
  backends::KernelLinks links = impl_->links.take_all();
  lock.unlock();
  links.close();
}

void Link::detach() noexcept {
  impl_->watch.reset();
  impl_->guard.reset();
  if (!impl_->links.fds().empty()) impl_->missed_by_links = backends::missed_by_links(impl_->links);
  impl_->links.close();
  impl_->sites.clear();
}

std::size_t Link::let_go(const std::vector<Index<PlannedFile>>& files, std::shared_ptr<const AttachPlan> plan) {
  const std::set<Index<PlannedFile>> all(files.begin(), files.end());
  const std::size_t sites = impl_->detach_files(all);
  std::unique_lock lock(impl_->mutex);
  impl_->programs.close_those_of(all);
  impl_->plan = std::move(plan);
  lock.unlock();
  impl_->forget_files(all);
  return sites;
}

std::vector<MissedHits> Link::missed_hits() const {
  std::unique_lock lock(impl_->mutex);
  std::vector<MissedHits> out =
      impl_->links.fds().empty() ? impl_->missed_by_links : backends::missed_by_links(impl_->links);
  lock.unlock();
  std::ranges::move(impl_->programs.missed(), std::back_inserter(out));
  for (const auto& programs : impl_->there) out.push_back({impl_->backend, programs->missed(), {}});
  backends::leave_out_uncounted(out);
  return out;
}

std::optional<std::uint64_t> Link::missed() const {
  if (impl_->programs.none() && impl_->there.empty()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const MissedHits& missed : missed_hits()) {
    if (!missed.hits) return std::nullopt;
    sum += *missed.hits;
  }
  return sum;
}

Result<void> Link::pin(const std::filesystem::path& directory) const {
  const std::lock_guard lock(impl_->mutex);
  return backends::pin_links(impl_->links, impl_->carrier, directory);
}

Result<Link> Link::open(const std::filesystem::path& directory) {
  backends::PinnedLinks pinned = TRY(backends::open_pins(directory));
  auto impl = std::make_unique<Impl>();
  for (const backends::LinkFd& link : pinned.links.fds()) impl->sites.add(link.sites, link.backend, std::nullopt);
  impl->links.replace(std::move(pinned.links));
  impl->backend = impl->sites.by_backend().begin()->first;  // those of files come first
  impl->carrier = pinned.carrier;
  impl->carrier_text = to_string(impl->carrier);
  return Link(std::move(impl));
}

Result<void> Link::unpin(const std::filesystem::path& directory) { return backends::remove_pins(directory); }

}  // namespace v1
}  // namespace usdt
