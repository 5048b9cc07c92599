// SPDX-License-Identifier: BSD-2-Clause
// What skeleton units stand for, of .dwo files and of a package of them. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <memory>

#include "usdt/result.hpp"

namespace usdt::dwarf {

struct DwarfFile;

/// libdw opens the file that DW_AT_dwo_name of a skeleton unit says. Of units that a package has we let that name a
/// descriptor of ours, which is at any time a file in memory with the one unit that is asked for, as its .dwo file was.
class SplitUnits {
 public:
  SplitUnits() noexcept;
  SplitUnits(SplitUnits&&) noexcept;
  SplitUnits& operator=(SplitUnits&&) noexcept;
  ~SplitUnits();

  /// Makes the skeletons in `main` whose units are in `package` lead here. Both are open in libelf; libdw has not begun
  /// with `main` yet. Errors: io; those of DwarfPackage::read().
  [[nodiscard]] Result<void> use(DwarfFile package, DwarfFile& main);

  /// What a skeleton unit stands for; `unit` itself where it is none, or that is not there.
  [[nodiscard]] Dwarf_Die whole(Dwarf_Die unit) const;
  /// Units of the package were left out: what they have in common comes to many times its size.
  [[nodiscard]] bool spent() const noexcept;

 private:
  struct Package;
  std::unique_ptr<Package> package_;
};

}  // namespace usdt::dwarf
