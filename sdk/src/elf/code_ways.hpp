// SPDX-License-Identifier: BSD-2-Clause
// The ways through a function's code, as far as its instructions say where they lead.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/instructions.hpp"
#include "usdt/address.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/result.hpp"

namespace usdt::elf {

/// Code from `begin` to before `end`.
struct CodeRange {
  VirtAddr begin;
  VirtAddr end;
  [[nodiscard]] bool contains(VirtAddr at) const noexcept { return begin <= at && at < end; }
};

/// All copies of a function that are inlined into one other function.
struct CopiesInside {
  std::vector<std::vector<CodeRange>> code = {};  ///< of each
  std::vector<bool> marks = {};                   ///< CodeWays::mark_all()
};

/// How a copy of a function, inlined into another one, is come to.
struct CopyArrival {
  /// The first instruction that each call comes by, if that is not the one it is said to begin with: some ways jump
  /// behind that.
  std::optional<VirtAddr> all_come_by;
  bool passed_by = false;  ///< some ways run its code and come by no such instruction
  /// Its first instructions are run before a branch of the other function, behind which more of the copy, or of another
  /// one of the same function, is on some ways alone.
  bool left_early = false;
  bool rounds = false;  ///< it begins with a loop, whose rounds come by its first instruction, too, or are that
  /// Another copy goes on with its first instruction: both have one end.
  bool joined = false;
};

/// The instructions of one function, told apart once.
class CodeWays {
 public:
  /// Errors: not_supported (x86 in a static build; the code is not in this file), malformed (not all instructions).
  [[nodiscard]] static Result<CodeWays> of(const ElfFile& file, VirtAddr entry, std::span<const CodeRange> ranges);

  /// Whether an instruction begins at `at`.
  [[nodiscard]] bool has_instruction(VirtAddr at) const { return number_of(at) != nowhere; }

  /// Marks the instructions of `copies`, once for all of them. Takes what it spends from `steps`.
  void mark_all(CopiesInside& copies, std::uint64_t& steps) const;

  /// How the copy with code in `copy` is come to, which is said to begin at `entry`; `all` are the beginnings of this
  /// and the other copies of the same function, which are `copies`, marked. `steps` is what may be spent: an
  /// instruction each; 0 behind it: the result may lack something.
  [[nodiscard]] CopyArrival arrival(VirtAddr entry, std::span<const CodeRange> copy, std::span<const VirtAddr> all,
                                    const CopiesInside& copies, std::uint64_t& steps) const;

 private:
  static constexpr std::size_t nowhere = SIZE_MAX;
  struct Step {
    VirtAddr at;
    arch::Instruction code;
    std::size_t target = nowhere;  ///< its number; elsewhere than in the function, or not told: nowhere
    std::size_t behind = nowhere;
  };
  using Marks = std::vector<bool>;

  [[nodiscard]] std::size_t number_of(VirtAddr at) const;
  [[nodiscard]] Marks marks_of(std::span<const CodeRange> copy, std::uint64_t& steps) const;
  void mark(std::span<const CodeRange> copy, Marks& marks, std::uint64_t& steps) const;
  /// Marks what is come to from `from` on without `gates`.
  void go(std::size_t from, const Marks& gates, Marks& seen, std::uint64_t& steps) const;
  /// All that is come to by ways that begin outside of `copy` and leave `gates` out.
  [[nodiscard]] Marks come_to(const Marks& copy, const Marks& gates, std::uint64_t& steps) const;
  /// Returns the instruction that all ways to `seen` within the copy pass first; the copy begins at number `first`.
  [[nodiscard]] std::optional<std::size_t> where_ways_meet(std::size_t first, const Marks& copy, const Marks& seen,
                                                           Marks gates, std::uint64_t& steps) const;
  [[nodiscard]] bool leaves_early(std::size_t first, const Marks& copy, const Marks& copies, const Marks& gates,
                                  std::uint64_t& steps) const;
  [[nodiscard]] bool runs(const Marks& copy, const Marks& seen) const;
  [[nodiscard]] bool is_joined(std::size_t first, const Marks& copy, const CopiesInside& copies,
                               std::uint64_t& steps) const;
  /// Returns the targets of a copy's calls, in order; calls without a known target are left out.
  [[nodiscard]] std::vector<VirtAddr> called_by(const Marks& copy) const;

  std::vector<Step> steps_;  ///< by address
  std::size_t entry_ = nowhere;
};

}  // namespace usdt::elf
