// SPDX-License-Identifier: BSD-2-Clause
// Links that usdt-broker makes, each to one process of this user.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "link/attachment.hpp"
#include "proc/file_id.hpp"
#include "proc/process_maps.hpp"
#include "program/process_list.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// The places of `planned` that are not in `wanted`, which has the others in their order.
std::vector<std::uint32_t> left_out_of(const PlannedLink& planned, const PlannedLink& wanted) {
  std::vector<std::uint32_t> left_out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < planned.sites.size(); ++i) {
    if (next < wanted.sites.size() && planned.sites[i] == wanted.sites[next] &&
        planned.offsets[i] == wanted.offsets[next])
      ++next;
    else
      left_out.push_back(static_cast<std::uint32_t>(i));
  }
  return left_out;
}

/// The processes of this user, but for this one, that have a file mapped.
std::vector<pid_t> processes_with(const PlannedFile& file) {
  struct stat wanted {};
  std::vector<pid_t> all;
  if (::fstat(file.elf->fd(), &wanted) != 0) return all;
  const proc::FileId id(wanted.st_dev, wanted.st_ino);
  for (const pid_t pid : proc::numbers_in("/proc")) {
    const std::string directory = fmt::format("/proc/{}", pid);
    struct stat owner {};
    if (pid == ::getpid() || ::stat(directory.c_str(), &owner) != 0 || owner.st_uid != ::geteuid()) continue;
    bool has = false;
    const auto look = [&](const proc::Mapping& mapping) {
      if (has || !mapping.executable || mapping.inode != wanted.st_ino) return;
      // Some file systems have other devices there than stat(2) has.
      has = ::makedev(mapping.major, mapping.minor) == wanted.st_dev ||
            proc::file_at(directory + "/root" + mapping.path) == id;
    };
    if (proc::read_maps(directory + "/maps", pid, look) && has) all.push_back(pid);
  }
  return all;
}

backends::FileLinks links_of(broker::AttachedThere attached, pid_t pid) {
  backends::FileLinks links;
  for (sys::UniqueFd& fd : attached.links) {
    const std::size_t sites = links.fds.empty() ? attached.reply.places : 0;
    links.fds.emplace_back(fd.release(), sites).pid = pid;
  }
  for (const auto& [place, os_error] : attached.reply.refused) links.refused.push_back({place, os_error});
  return links;
}

}  // namespace

Result<backends::FileLinks> Attachment::attach_there(Index<PlannedLink> number, const PlannedLink& link,
                                                     const PlannedFile& file) const {
  const std::vector<std::uint32_t> left_out = left_out_of(object_.carriers.links[number], link);
  const std::vector<pid_t> pids = pids_.empty() ? processes_with(file) : pids_;
  if (pids.empty())
    return fail(
        ErrorKind::not_found,
        fmt::format("{}: no process of yours has it mapped, and usdt-broker attaches to processes that are there",
                    file.target.path.string()));
  const bool named = !pids_.empty() && object_.family.roots.empty();
  backends::FileLinks links;
  bool attached = false;
  std::optional<Error> why;
  for (const pid_t pid : pids) {
    auto more = object_.there->attach(number.value, pid, left_out);
    if (!more) why = more.error().within(fmt::format("attach {} by usdt-broker", file.target.path.string()));
    // Some of the processes may be protected, if nobody named them.
    if (!more && pids.size() > 1 && (!named || backends::has_ended(pid))) continue;
    if (!more) return fail(*why);
    if (std::ranges::any_of(more->reply.refused, [&](const auto& each) { return each.first >= link.sites.size(); }))
      return fail(ErrorKind::malformed, "usdt-broker: it refuses what it was not asked for");
    attached = true;
    links.append(links_of(std::move(*more), pid));
  }
  if (!attached) return fail(*why);
  TRY(check_unwritten(file));
  return links;
}

void Attachment::note_of_family(Index<PlannedLink> number, const PlannedLink& link) {
  const auto file = std::get<Index<PlannedFile>>(plan_.groups[link.group].of);
  impl_->of_family.push_back({.programs = object_.there,
                              .number = number.value,
                              .left_out = left_out_of(object_.carriers.links[number], link),
                              .to = {.backend = backend_of(link), .file = file, .probes = {}, .counts = false},
                              .asked = {pids_.begin(), pids_.end()}});
  impl_->known.insert(pids_.begin(), pids_.end());
}

Result<void> Link::Impl::watch_family(const backends::Family& family) {
  if (family.roots.empty() || watch) return {};
  started.emplace();
  watch = TRY(backends::FamilyWatch::start(family, [this](const backends::FamilyWatch& found) { attach_to(found); }));
  return {};
}

void Link::Impl::attach_to(const backends::FamilyWatch& found) {
  for (const pid_t pid : found.members().living())
    if (!found.ends()) attach_to(pid, found.members());
  close_ended(found.members());
}

void Link::Impl::attach_to(pid_t pid, const backends::FamilyMembers& members) {
  if (ended.contains(pid)) close_ended_now();
  std::vector<LinkThere> missing;
  std::unique_lock lock(mutex);
  const bool is_new = known.insert(pid).second;
  for (LinkThere& link : of_family)
    if (link.asked.insert(pid).second) missing.push_back({link.programs, link.number, link.left_out, link.to});
  lock.unlock();
  std::optional<Error> why;
  bool attached = false;
  for (const LinkThere& link : missing) {
    auto done = attach_to(pid, link, members);
    attached |= done.has_value();
    if (!done) why = std::move(done.error());
  }
  if (!is_new || missing.empty()) return;
  lock.lock();
  if (!members.lives(pid) && !attached)
    ++started->too_short;
  else if (!why)
    ++started->attached;
  else if (started->refused++ == 0)
    started->why = why->message;
}

Result<void> Link::Impl::attach_to(pid_t pid, const LinkThere& link, const backends::FamilyMembers& members) {
  auto more = TRY(link.programs->attach(link.number, pid, link.left_out));
  backends::FileLinks made = links_of(std::move(more), pid);
  // Its number may have been another process's by the time it was asked for.
  if (!members.lives(pid)) return fail(ErrorKind::not_found, fmt::format("no process {}", pid));
  const std::lock_guard lock(mutex);
  if (link.to.file && given_up.contains(*link.to.file)) return {};
  links.add(made, link.to);
  return {};
}

void Link::Impl::close_ended(const backends::FamilyMembers& members) {
  const std::set<pid_t> living = members.living();
  std::unique_lock lock(mutex);
  for (const pid_t pid : known)
    if (!living.contains(pid)) ended.insert(pid);
  for (const pid_t pid : ended) {
    known.erase(pid);
    for (LinkThere& link : of_family) link.asked.erase(pid);
  }
  lock.unlock();
  constexpr std::size_t many = 32;
  if (ended.size() >= many) close_ended_now();
}

void Link::Impl::close_ended_now() {
  std::unique_lock lock(mutex);
  backends::KernelLinks of_ended = links.take_of(ended);
  lock.unlock();
  ended.clear();
  of_ended.close();
}

}  // namespace v1
}  // namespace usdt
