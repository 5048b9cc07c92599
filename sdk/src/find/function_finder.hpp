// SPDX-License-Identifier: BSD-2-Clause
// Finds the functions of one file that patterns mean. Private to find/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "dwarf/function_info.hpp"
#include "dwarf/functions.hpp"
#include "elf/demangle.hpp"
#include "elf/functions.hpp"
#include "find/code_notices.hpp"
#include "find/file_code.hpp"
#include "find/function_returns.hpp"
#include "find/function_values.hpp"
#include "find/indirect.hpp"
#include "find/inlined_copies.hpp"
#include "find/joined_types.hpp"
#include "find/shared_addresses.hpp"
#include "find/variants.hpp"
#include "usdt/select.hpp"

namespace usdt::find {

/// Makes points of functions: which are meant, and where each is. What else is asked of the file each finds out that is
/// named for it: its code, the values of functions, their returns, copies, variants, and those that share an address.
class FunctionFinder {
 public:
  /// All of them outlive this.
  FunctionFinder(const std::vector<FunctionPattern>& patterns, const StopToken& stop, const FilesBeside& beside,
                 ProbeFile& file)
      : patterns_(patterns),
        stop_(stop),
        file_(file),
        code_(*file.elf, stop),
        values_(code_, debug_, beside, stop, file) {
    for (const FunctionPattern& pattern : patterns) names_.emplace_back(pattern.name);
  }

  /// Finds what patterns of lines mean, which have no names.
  Result<void> run_lines();

  /// Finds what patterns of names mean.
  Result<void> run();

 private:
  /// Bytes of names as programmers wrote them, of one file.
  static constexpr std::size_t kDemangled = std::size_t{16} << 20;

  /// None is no error but in ProbeFile::no_types.
  Result<void> open_debug_information();
  /// Takes a function itself in the place of its entry in a jump table, where Clang's checks of indirect calls (CFI)
  /// have put one in front of it: only indirect calls come by the entry.
  Result<void> take_bodies_of_entries(std::vector<Function>& functions);

  /// Each block of its code. A source file or line that is not known is no error: other files may have it.
  Result<void> add_line(const FunctionPattern& pattern);
  /// The function that a line's block is in, and its variables there.
  void describe(FunctionPoint& point, const dwarf::FunctionInfo& function, const FunctionPattern& pattern);

  Result<void> add(const Function& function);
  Result<void> add(const Function& function, const KnownFunction& known, const FunctionPattern& pattern);
  KnownFunction look_up(const Function& function);
  /// The functions that an indirect one chose in running processes.
  Result<void> add_chosen(const Function& indirect, const Choices& choices, const FunctionPattern& pattern);
  void tell_of_chosen();
  /// Notes the names of a function that a pattern means and its point, which another pattern may have made, has not.
  void note_aliases(const Function& function, const FunctionPattern& pattern);
  void tell_of_names();

  /// Copies inlined into other functions, and functions whose symbol says another name ("handle.isra.0").
  Result<void> add_by_debug_information();
  /// A hint about the names that are looked for in debug information.
  [[nodiscard]] dwarf::NameHint names_hint() const;
  /// The function as a symbol table would name it.
  Function named(const dwarf::FunctionInfo& info);
  void add_instance(const Function& function, const dwarf::FunctionInfo& info, const dwarf::Instance& instance);
  void make_inlined(FunctionPoint& point, const dwarf::Instance& instance, bool go);

  /// A point of `function`, not placed yet.
  [[nodiscard]] FunctionPoint point_of(const Function& function, const KnownFunction& known,
                                       const FunctionPattern& pattern);
  /// Whether no point of that moment was added yet. `start`: before what it is placed behind.
  bool is_new(const FunctionPoint& point, VirtAddr start);

  const std::vector<FunctionPattern>& patterns_;
  const StopToken& stop_;
  ProbeFile& file_;
  std::vector<elf::FunctionName> names_;  ///< of patterns_
  elf::Demangler demangler_{kDemangled};
  FileCode code_;
  std::optional<FileDebug> debug_;
  FunctionValues values_;
  CodeNotices notices_;
  FunctionReturns returns_{code_, notices_};
  SharedAddresses shared_addresses_{demangler_};
  Variants variants_{code_};
  std::optional<InlinedCopies> copies_;     ///< with debug_
  std::map<VirtAddr, std::string> chosen_;  ///< what processes use of indirect functions, as it is told
  std::set<std::tuple<Moment, std::uint64_t, std::string>> taken_;
  std::set<std::string> one_function_;  ///< what is to be said of functions with several names
  std::set<std::string> typed_anyway_;  ///< functions whose types were said by hand, and are known
};

}  // namespace usdt::find
