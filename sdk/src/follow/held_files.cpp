// SPDX-License-Identifier: BSD-2-Clause
#include "follow/held_files.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "follow/exec_hold.hpp"

namespace usdt::follow {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSoon{250}, kSeldom{8000};
constexpr int kShareOfLooks = 100;
constexpr milliseconds kAtOnce{20};  ///< what is to be followed waits meanwhile
/// The longest that an execve(2) waits, and what it may take from then on to map what it executes.
constexpr milliseconds kExecuted{ExecHold::kLongest / 1'000'000 + 4000};

/// Others' maps can be read, and where /proc hides processes (hidepid) it shows them nevertheless.
bool sees_all_processes() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  return ::syscall(SYS_capget, &header, sets.data()) == 0 && (sets[0].effective >> CAP_SYS_PTRACE & 1) != 0;
}

/// Processor time of this thread: a look is no dearer because others run meanwhile.
std::chrono::nanoseconds own_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// When the inode was; nothing: this file system does not know.
std::optional<std::int64_t> time_made(int fd) {
  struct statx made {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &made) != 0 || (made.stx_mask & STATX_BTIME) == 0)
    return std::nullopt;
  return std::int64_t{made.stx_btime.tv_sec} * 1'000'000'000 + made.stx_btime.tv_nsec;
}

}  // namespace

HeldFiles::HeldFiles(bool told_of_mappings, FileShares* shares)
    : shares_(shares), blind_(!sees_all_processes()), pause_(kSoon), next_(Clock::now() + kSoon) {
  if (blind_ || !told_of_mappings) return;
  unreadable_ = proc::unreadable_processes();
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // that of inodes
  born_ = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void HeldFiles::mapped(std::uint64_t inode, pid_t pid) {
  candidates_.erase(inode);
  if (const auto held = used_.find(inode); held != used_.end()) held->second = Clock::now();
  if (!unreadable_.contains(pid)) return;
  constexpr std::size_t most = 4096;
  if (by_unreadable_.size() >= most) return lost();
  by_unreadable_.insert(inode);
  for (auto& [id, held] : files_) held.may_be_unreadable |= id.second == inode;
}

void HeldFiles::hold(const std::shared_ptr<const ElfFile>& elf, const TargetFile& target, Found found) {
  struct stat st {};
  if (blind_ || ::fstat(elf->fd(), &st) != 0) return;
  const auto made = time_made(elf->fd());
  const bool may_be_unreadable = !made || *made <= born_ || by_unreadable_.contains(st.st_ino);
  const auto until = found == Found::executed ? Clock::now() + kExecuted : Clock::time_point();
  candidates_.erase(st.st_ino);
  used_[st.st_ino] = Clock::now();
  files_[{st.st_dev, st.st_ino}] = {.elf = elf,
                                    .target = target,
                                    .changed = change_time(st),
                                    .until = until,
                                    .may_be_unreadable = may_be_unreadable,
                                    .may_make_room = found != Found::named};
  if (shares_ == nullptr || !shares_->need().concerns(st.st_uid)) return;
  pause_ = kSoon;
  next_ = std::min(next_, earliest_);
}

std::vector<HeldFiles::Gone> HeldFiles::look() {
  if (blind_ || (!processes_ && Clock::now() < next_)) return {};
  const auto began = own_time();
  std::vector<Gone> gone;
  if (!processes_) gone = begin();
  const auto seen = processes_ ? processes_->look(kAtOnce) : proc::MappedFiles::Seen::restless;
  spent_ += own_time() - began;
  if (seen == proc::MappedFiles::Seen::some) return gone;
  blind_ = seen == proc::MappedFiles::Seen::forbidden;
  if (seen == proc::MappedFiles::Seen::all) std::ranges::move(conclude(), std::back_inserter(gone));
  const bool same = gone.empty() && candidates_.size() <= candidates_before_;
  pause_ = same ? std::min<Clock::duration>(2 * pause_, kSeldom) : kSoon;
  candidates_before_ = candidates_.size();
  processes_.reset();
  const Clock::duration rest = kShareOfLooks * std::exchange(spent_, {});
  earliest_ = Clock::now() + std::max<Clock::duration>(kSoon, rest);
  next_ = Clock::now() + std::max(pause_, rest);
  return gone;
}

/// Finds those without a name, and those whose places others need; what nobody has kept is returned.
std::vector<HeldFiles::Gone> HeldFiles::begin() {
  const auto began = Clock::now();
  std::vector<Gone> unkept;
  candidates_.clear();
  bool any_linked = false;
  const FileShares::Need need = shares_ != nullptr ? shares_->need() : FileShares::Need();
  for (auto each = files_.begin(); each != files_.end();) {
    auto& [id, held] = *each;
    const auto elf = held.elf.lock();
    struct stat st {};
    if (!elf || ::fstat(elf->fd(), &st) != 0) {
      unkept.push_back({id, held.target, nullptr, held.changed});
      used_.erase(id.second);
      each = files_.erase(each);
      continue;
    }
    held.linked = st.st_nlink > 0;
    held.is_gone = !held.linked || (proc::file_at(held.target.path) != id && proc::file_at(held.target.access) != id);
    const bool makes_room = held.may_make_room && need.concerns(FileShares::owner_of(*elf));
    const bool stays = began < held.until || (!held.is_gone && !makes_room);
    if (!stays) candidates_.emplace(id.second, id);
    any_linked |= !stays && held.is_gone && held.linked;
    ++each;
  }
  proc::MappedFiles::OnRoot on_root;
  if (any_linked) on_root = [this](const std::filesystem::path& root) { look_below(root); };
  if (!candidates_.empty()) processes_.emplace(std::move(on_root));
  return unkept;
}

/// A program of a container is no less there when none of its processes is.
void HeldFiles::look_below(const std::filesystem::path& root) {
  std::erase_if(candidates_, [&](const auto& each) {
    Held& held = files_.at(each.second);
    if (!held.is_gone || !held.linked || proc::file_at(root / held.target.path.relative_path()) != each.second)
      return false;
    held.is_gone = false;
    return !held.may_make_room;
  });
}

std::vector<HeldFiles::Gone> HeldFiles::conclude() {
  std::vector<Gone> gone;
  std::vector<Candidates::iterator> unmapped;  // whose names still lead to them
  const std::set<pid_t>& unreadable = processes_->unreadable();
  std::erase_if(unreadable_, [&](pid_t pid) { return !unreadable.contains(pid); });
  const bool any_new = unreadable_.size() < unreadable.size();
  for (auto each = candidates_.begin(); each != candidates_.end();) {
    const auto candidate = each++;
    const auto found = files_.find(candidate->second);
    if (found != files_.end() && processes_->has(candidate->second)) used_[candidate->first] = Clock::now();
    const bool mapped = found == files_.end() || processes_->has(candidate->second) || any_new ||
                        (!unreadable.empty() && found->second.may_be_unreadable);
    auto elf = mapped ? nullptr : found->second.elf.lock();
    if (!elf) continue;
    found->second.is_gone ? give_up(candidate, std::move(elf), gone) : unmapped.push_back(candidate);
  }
  if (!unmapped.empty()) make_room(std::move(unmapped), gone);
  return gone;
}

void HeldFiles::give_up(Candidates::iterator candidate, std::shared_ptr<const ElfFile> elf, std::vector<Gone>& gone) {
  const auto found = files_.find(candidate->second);
  Held& held = found->second;
  gone.push_back({candidate->second, std::move(held.target), std::move(elf), held.changed, !held.is_gone});
  used_.erase(candidate->first);
  files_.erase(found);
  candidates_.erase(candidate);
}

/// Gives up as many as others need the places of, first those that were mapped longest ago.
void HeldFiles::make_room(std::vector<Candidates::iterator> unmapped, std::vector<Gone>& gone) {
  if (shares_ == nullptr) return;
  FileShares::Need need = shares_->need();
  for (const Gone& each : gone) need.meet(FileShares::owner_of(*each.elf));
  const auto used = [this](Candidates::iterator each) { return used_[each->first]; };
  std::ranges::sort(unmapped, {}, used);
  for (const Candidates::iterator each : unmapped) {
    auto elf = files_.at(each->second).elf.lock();
    const uid_t owner = elf ? FileShares::owner_of(*elf) : 0;
    if (!elf || !need.concerns(owner)) continue;
    need.meet(owner);
    give_up(each, std::move(elf), gone);
  }
}

}  // namespace usdt::follow
