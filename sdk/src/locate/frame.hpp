// SPDX-License-Identifier: BSD-2-Clause
// Call frames: what .eh_frame and .debug_frame say of the call frame address. Private to locate/.
#pragma once

#include <elfutils/libdw.h>

#include <memory>
#include <optional>

#include "locate/location.hpp"
#include "usdt/address.hpp"

namespace usdt::locate {

struct CfiEnd {
  void operator()(Dwarf_CFI* cfi) const noexcept { dwarf_cfi_end(cfi); }
};

class Frames {
 public:
  /// `code`: the file that has .eh_frame; `dwarf`: the one that may have .debug_frame. Both outlive this.
  Frames(Elf* code, Dwarf* dwarf, const arch::Arch& arch);

  /// The call frame address at `pc`: a register and a displacement. Nothing: there is no rule, or one that looks into
  /// memory.
  [[nodiscard]] std::optional<Sum> cfa_at(VirtAddr pc) const;
  /// The same; `end` becomes the address up to which it is so.
  [[nodiscard]] std::optional<Sum> cfa_until(VirtAddr pc, std::uint64_t& end) const;
  /// Bytes from `reg` to the call frame address behind the prologue [start, end), which makes `reg` the frame's base.
  [[nodiscard]] std::optional<std::uint64_t> known_distance(unsigned reg, VirtAddr start, VirtAddr end) const;

  /// Bytes from `reg`, the stack pointer, up to the call frame address in the body [body, end) of a function whenever
  /// it pushes nothing for a call. Nothing: `body` may be within such pushes.
  [[nodiscard]] std::optional<std::uint64_t> body_distance(unsigned reg, VirtAddr body, VirtAddr end) const;

 private:
  struct Row {
    Sum cfa;
    std::uint64_t end;
  };
  [[nodiscard]] std::optional<Row> row_at(VirtAddr pc) const;

  std::unique_ptr<Dwarf_CFI, CfiEnd> eh_frame_;
  Dwarf_CFI* debug_frame_;
  const arch::Arch& arch_;
};

}  // namespace usdt::locate
