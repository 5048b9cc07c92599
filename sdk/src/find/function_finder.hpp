// SPDX-License-Identifier: BSD-2-Clause
// Finds the functions of one file that patterns mean. Private to find/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "dwarf/debug_info.hpp"
#include "elf/code_reader.hpp"
#include "elf/demangle.hpp"
#include "elf/elf_impl.hpp"
#include "elf/function_flow.hpp"
#include "elf/functions.hpp"
#include "elf/go_program.hpp"
#include "usdt/select.hpp"

namespace usdt::find {

class FunctionFinder {
 public:
  FunctionFinder(const std::vector<FunctionPattern>& patterns, const StopToken& stop, ProbeFile& file)
      : patterns_(patterns),
        stop_(stop),
        file_(file),
        code_(elf::Inside::of(*file.elf)->file, elf::Inside::of(*file.elf)->image),
        go_(elf::go_program(elf::Inside::of(*file.elf)->file, elf::Inside::of(*file.elf)->image)) {
    for (const FunctionPattern& pattern : patterns) names_.emplace_back(pattern.name);
  }

  /// For patterns of lines, which have no names.
  Result<void> run_lines();

  /// For patterns of names.
  Result<void> run();

 private:
  using Signature = std::shared_ptr<const FunctionSignature>;
  /// Bytes of names as programmers wrote them, of one file.
  static constexpr std::size_t kDemangled = std::size_t{16} << 20;

  /// What debug information says of a function.
  struct Known {
    Signature signature;
    dwarf::SourceLine declared;
    bool go = false;  ///< a function of a Go program is taken for Go's, unless it is known to be another language's
  };

  // --- which functions, and where they begin: function_finder.cpp ---
  /// None is no error but in ProbeFile::no_types.
  Result<void> open_debug_information();
  /// Each block of its code. A source file or line that is not known is no error: other files may have it.
  Result<void> add_line(const FunctionPattern& pattern);
  /// The function that a line's block is in, and its variables there.
  void describe(FunctionPoint& point, const dwarf::FunctionInfo& function, const FunctionPattern& pattern);
  Result<void> add(const Function& function);
  Known look_up(const Function& function);
  /// That what there is was not read, which is not the same as that there is none.
  void note_refusal(const Error& error);
  Result<void> add(const Function& function, const Known& known, const FunctionPattern& pattern);
  /// A point of `function`, not placed yet.
  [[nodiscard]] FunctionPoint point_of(const Function& function, const Known& known, const FunctionPattern& pattern);
  /// Puts the point on the instruction at `pc`.
  void place(FunctionPoint& point, VirtAddr pc);
  /// The function's first instruction, behind one that only allows indirect jumps.
  void place_at_start(FunctionPoint& point, VirtAddr address);
  /// Whether no point of that moment was added yet. `start`: before what it is placed behind.
  bool is_new(const FunctionPoint& point, VirtAddr start);
  /// Copies inlined into other functions, and functions whose symbol says another name ("handle.isra.0").
  Result<void> add_by_debug_information();
  /// Inlined copies that are not all there is of them.
  void warn_of_repeated(const std::vector<dwarf::FunctionInfo>& functions);
  /// The function as a symbol table would name it.
  /// What names of debug information have in common with those that are looked for.
  [[nodiscard]] dwarf::NameHint names_hint() const;
  Function named(const dwarf::FunctionInfo& info);
  void add_instance(const Function& function, const dwarf::FunctionInfo& info, const dwarf::Instance& instance);
  void make_inlined(FunctionPoint& point, const dwarf::Instance& instance, bool go);

  // --- what is known of their values: function_signatures.cpp ---
  Signature signature_of(const dwarf::FunctionInfo& info, const dwarf::Instance& instance);
  [[nodiscard]] Signature shared(dwarf::Signature&& found) const;
  [[nodiscard]] Signature typed_by_hand(std::vector<Type> types) const;
  const Signature& untyped();
  [[nodiscard]] const std::shared_ptr<const TypeGraph>& types() const;
  /// Behind the first instructions, registers and stack are no longer as the caller left them. Go has a calling
  /// convention of its own.
  const Signature& nothing();

  // --- where they return: function_returns.cpp ---
  /// What the instructions of a function say of its entry and returns.
  void follow_code(FunctionPoint& point, const Function& function, bool go, std::optional<bool> ret_probes);
  /// Where a jump of the function leads to the point, or before it, as that of a loop it begins with does.
  [[nodiscard]] std::optional<VirtAddr> comes_back_to(const FunctionPoint& point, const Function& function) const;
  /// Calls come by a landing pad, which such a loop leaves out, and each goes by one RET instruction. Without the
  /// former nothing tells a call from a round where the function begins.
  void count_calls_alone(FunctionPoint& point, const Function& function, VirtAddr comes_back_to);
  [[nodiscard]] std::vector<const Function*> halves_of(const Function& function) const;
  /// From an instruction that the kernel steps to one that it emulates, where that is the same. Debug information with
  /// parameters tells that a compiler made the code. Go's functions are entered again where the stack has grown.
  void move_to_cheaper_start(FunctionPoint& point, const Function& function, const Known& known);
  void take_returns(FunctionPoint& point, const Function& function, const Result<elf::FunctionFlow>& flow);
  /// Where programs can run before each of its RET instructions.
  Result<std::vector<FileOffset>> rets_of(const elf::FunctionFlow& flow);
  /// The kernel's probe takes the place of the return address, by which the unwinder of an exception finds callers. RET
  /// instructions have probes instead, unless a return would be lost by it.
  void let_exceptions_pass(FunctionPoint& point, const Function& function, const Result<elf::FunctionFlow>& flow);
  bool may_be_left_by_exceptions();
  void warn_of_exceptions(std::string_view name);
  /// Empty: a program may run where the function returns.
  [[nodiscard]] std::string why_no_returns(const Function& function, const FunctionPoint& point) const;

  [[nodiscard]] const elf::Image& image() const noexcept { return elf::Inside::of(*file_.elf)->image; }

  [[nodiscard]] std::string go_version() const { return go_->version.empty() ? "a Go before 1.18" : go_->version; }

  const std::vector<FunctionPattern>& patterns_;
  const StopToken& stop_;
  ProbeFile& file_;
  elf::CodeReader code_;
  std::optional<elf::GoProgram> go_;
  elf::Demangler demangler_{kDemangled};
  std::vector<elf::FunctionName> names_;  ///< of patterns_
  std::optional<dwarf::DebugInfo> debug_;
  Signature untyped_;
  mutable std::shared_ptr<const TypeGraph> types_;
  Signature nothing_;
  std::map<std::string_view, std::vector<const Function*>> halves_;  ///< elsewhere, by the symbol of the function
  std::optional<bool> unwinds_;
  bool warned_of_exceptions_ = false;
  std::set<std::tuple<Moment, std::uint64_t, std::string>> taken_;
};

}  // namespace usdt::find
