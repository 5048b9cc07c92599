// SPDX-License-Identifier: BSD-2-Clause
// The places that there are for followed files, and who has how many of them. Private to follow/.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "usdt/elf_file.hpp"

namespace usdt::follow {

/// A file has a place as long as somebody keeps it. Files of one owner other than root have at most half of the places,
/// at once and in all, so that no user takes those of all others by mapping thousands of files.
class FileShares {
 public:
  /// `most` at once, `ever` in all.
  FileShares(std::size_t most, std::size_t ever) : most_(most), ever_(ever) {}

  /// Gives a place to a file. False: its owner has all that one may have. (Whether there is one of all is for those to
  /// say who take the file.)
  [[nodiscard]] bool take(const std::shared_ptr<const ElfFile>& elf);
  /// Returns whose the file is.
  [[nodiscard]] static uid_t owner_of(const ElfFile& elf);

  /// How many files should make room for others, of each owner and of all: where an eighth of the places or less is
  /// left, a quarter shall be.
  struct Need {
    std::size_t of_all = 0;
    std::map<uid_t, std::size_t> of_owner = {};
    /// Whether a file of that owner helps.
    [[nodiscard]] bool concerns(uid_t owner) const { return of_all > 0 || of_owner.contains(owner); }
    /// Notes that one of them goes.
    void meet(uid_t owner);
  };
  [[nodiscard]] Need need();

 private:
  struct Owner {
    std::vector<std::weak_ptr<const ElfFile>> files = {};  ///< with places now
    std::size_t ever = 0;
    /// Forgets files that nobody keeps any more.
    void prune();
  };
  [[nodiscard]] static std::size_t share(uid_t owner, std::size_t of) { return owner == 0 ? of : (of + 1) / 2; }
  [[nodiscard]] static std::size_t too_many(std::size_t taken, std::size_t of);

  std::size_t most_, ever_;
  std::map<uid_t, Owner> owners_;
};

}  // namespace usdt::follow
