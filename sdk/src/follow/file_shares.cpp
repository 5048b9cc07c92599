// SPDX-License-Identifier: BSD-2-Clause
#include "follow/file_shares.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace usdt::follow {

void FileShares::Owner::prune() {
  std::erase_if(files, [](const auto& file) { return file.expired(); });
}

uid_t FileShares::owner_of(const ElfFile& elf) {
  struct stat st {};
  return ::fstat(elf.fd(), &st) == 0 ? st.st_uid : static_cast<uid_t>(-1);
}

bool FileShares::take(const std::shared_ptr<const ElfFile>& elf) {
  const uid_t uid = owner_of(*elf);
  Owner& owner = owners_[uid];
  owner.prune();
  if (uid != 0 && (owner.files.size() >= share(uid, most_) || owner.ever >= share(uid, ever_))) return false;
  owner.files.emplace_back(elf);
  ++owner.ever;
  return true;
}

std::size_t FileShares::too_many(std::size_t taken, std::size_t of) {
  const std::size_t full = of - of / 8, wanted = of - std::max<std::size_t>(1, of / 4);
  return taken < full || of == 0 ? 0 : taken - wanted;
}

FileShares::Need FileShares::need() {
  Need need;
  std::size_t taken = 0;
  for (auto& [uid, owner] : owners_) {
    owner.prune();
    taken += owner.files.size();
    const std::size_t these = too_many(owner.files.size(), share(uid, most_));
    if (uid != 0 && these > 0) need.of_owner[uid] = these;
  }
  need.of_all = too_many(taken, most_);
  return need;
}

void FileShares::Need::meet(uid_t owner) {
  if (of_all > 0) --of_all;
  const auto found = of_owner.find(owner);
  if (found != of_owner.end() && --found->second == 0) of_owner.erase(found);
}

}  // namespace usdt::follow
