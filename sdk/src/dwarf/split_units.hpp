// SPDX-License-Identifier: BSD-2-Clause
// What skeleton units stand for, of .dwo files and of a package of them. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <memory>
#include <string>

#include "usdt/result.hpp"

namespace usdt::dwarf {

struct DwarfFile;

/// libdw opens the file that DW_AT_dwo_name of a skeleton unit says. We let that name a descriptor of ours, which is at
/// any time the one file that is asked for: the .dwo file, after its claims were checked, or a file in memory where
/// libdw (0.188) could not read that, or somebody else may change it; or the unit's parts of a package, as its .dwo
/// file was.
class SplitUnits {
 public:
  SplitUnits() noexcept;
  SplitUnits(SplitUnits&&) noexcept;
  SplitUnits& operator=(SplitUnits&&) noexcept;
  ~SplitUnits();

  /// Makes the skeletons in `main` lead here. `package` is open in libelf, or no handle; `main` is, too, and libdw has
  /// not begun with it yet. Errors: io; those of DwarfPackage::read().
  [[nodiscard]] Result<void> use(DwarfFile package, DwarfFile& main);

  /// The unit that a skeleton unit stands for; `unit` itself if it is no skeleton, or that unit is not there.
  [[nodiscard]] Dwarf_Die whole(Dwarf_Die unit) const;
  /// Units were left out: those of the package have in common what comes to many times its size, or the .dwo files that
  /// somebody else may change are too much to keep.
  [[nodiscard]] bool spent() const noexcept;
  /// Which of those that were asked for are not there; empty: none.
  [[nodiscard]] std::string missing() const;

 private:
  struct Sources;
  std::unique_ptr<Sources> sources_;
};

}  // namespace usdt::dwarf
