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
#include <utility>
#include <vector>

#include "dwarf/copies.hpp"
#include "dwarf/debug_info.hpp"
#include "dwarf/functions.hpp"
#include "dwarf/lines.hpp"
#include "dwarf/running.hpp"
#include "elf/code_reader.hpp"
#include "elf/code_ways.hpp"
#include "elf/demangle.hpp"
#include "elf/elf_impl.hpp"
#include "elf/function_flow.hpp"
#include "elf/function_pieces.hpp"
#include "elf/functions.hpp"
#include "elf/go_program.hpp"
#include "elf/return_address.hpp"
#include "find/indirect.hpp"
#include "find/joined_types.hpp"
#include "locate/signature.hpp"
#include "usdt/select.hpp"

namespace usdt::find {

class FunctionFinder {
 public:
  FunctionFinder(const std::vector<FunctionPattern>& patterns, const StopToken& stop, const FilesBeside& beside,
                 ProbeFile& file)
      : patterns_(patterns),
        stop_(stop),
        beside_(beside),
        file_(file),
        code_(elf::Inside::of(*file.elf)->file, elf::Inside::of(*file.elf)->image),
        go_(elf::go_program(elf::Inside::of(*file.elf)->file, elf::Inside::of(*file.elf)->image)) {
    for (const FunctionPattern& pattern : patterns) names_.emplace_back(pattern.name);
  }

  /// Finds what patterns of lines mean, which have no names.
  Result<void> run_lines();

  /// Finds what patterns of names mean.
  Result<void> run();

 private:
  using Signature = std::shared_ptr<const FunctionSignature>;
  /// Bytes of names as programmers wrote them, of one file.
  static constexpr std::size_t kDemangled = std::size_t{16} << 20;

  /// Holds what debug information says of a function.
  struct Known {
    Signature signature;
    dwarf::SourceLine declared;
    std::vector<elf::CodePart> elsewhere;  ///< its code that does not follow its entry
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
  /// Other symbols of the address whose names are other ones, too, to who wrote the source.
  [[nodiscard]] std::vector<std::string> other_names(const Function& function);
  /// Which of those names are functions of their own, whose code was folded.
  Result<void> find_folded(const std::vector<Function>& functions);
  /// Keeps for a notice functions that are one in the file. Whether what debug information has there, `info`, is
  /// another one.
  bool tell_folded(const Function& function, const dwarf::FunctionInfo& info);
  void warn_of_folded();
  /// Notes functions of one address without debug information: libraries give functions several names, which are
  /// aliases where the symbols have versions or look alike; what else shares an address may be either.
  void note_one_address(const Function& function);
  void warn_of_one_address();
  /// Notes that debug information was not read, which differs from there being none.
  void note_refusal(const Error& error);
  Result<void> add(const Function& function, const Known& known, const FunctionPattern& pattern);
  /// The functions that an indirect one chose in running processes.
  Result<void> add_chosen(const Function& indirect, const Choices& choices, const FunctionPattern& pattern);
  void tell_of_chosen();
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
  /// Takes a function itself in the place of its entry in a jump table, where Clang's checks of indirect calls (CFI)
  /// have put one in front of it: only indirect calls come by the entry.
  Result<void> take_bodies_of_entries(std::vector<Function>& functions);
  // --- destructors and constructors: variants.cpp ---
  /// Finds the symbols of a destructor or constructor, if it has several, whose code only leads to another one's.
  void find_variants(const std::vector<Function>& functions);
  /// Whether an inlined copy of one only calls another one.
  [[nodiscard]] bool begins_with_variant(const Function& function, const dwarf::Instance& copy) const;
  /// Leaves out variants that have a copy of another one inlined, which is a point of its own.
  void leave_out_variants_around_copies();

  // --- how inlined copies are come to: inlined_copies.cpp ---
  /// The ways through the code of a function, whose instructions are told apart once.
  const Result<elf::CodeWays>& ways_through(const dwarf::InstanceCode& code);
  /// Returns whether debug information has a place within an instruction, or that of other places of this function: it
  /// is of other code, as a copy of the function that the linker left out had.
  bool is_of_other_code(const dwarf::Instance& instance);
  /// Looks at the ways to each inlined copy, and keeps what is out of the ordinary.
  void look_at_ways(const dwarf::FunctionInfo& info);
  /// Looks at a part that was split off and inlined again where nothing else of the function is: calls may have left
  /// nothing but that.
  void look_at_part(const dwarf::FunctionInfo& info, const dwarf::Instance& part);
  /// Puts the point of a copy that some ways come to behind its beginning to where all of them come by.
  void come_by_all_ways(FunctionPoint& point, const dwarf::Instance& instance);
  /// Copies whose hits may not be their calls.
  void warn_of_ways();
  /// Coroutines that go on in functions where nothing is known to make them.
  void warn_of_coroutines(const std::vector<dwarf::FunctionInfo>& functions);
  /// The function as a symbol table would name it.
  /// What names of debug information have in common with those that are looked for.
  [[nodiscard]] dwarf::NameHint names_hint() const;
  Function named(const dwarf::FunctionInfo& info);
  void add_instance(const Function& function, const dwarf::FunctionInfo& info, const dwarf::Instance& instance);
  void make_inlined(FunctionPoint& point, const dwarf::Instance& instance, bool go);

  // --- what is known of their values: function_signatures.cpp ---
  Signature signature_of(const dwarf::FunctionInfo& info, const dwarf::Instance& instance);
  [[nodiscard]] Signature shared(locate::Signature&& found) const;
  [[nodiscard]] Signature typed_by_hand(std::vector<Type> types) const;
  const Signature& untyped();
  [[nodiscard]] const std::shared_ptr<const TypeGraph>& types() const;
  /// Behind the first instructions, registers and stack are no longer as the caller left them. Go has a calling
  /// convention of its own.
  const Signature& nothing();

  // --- where they return: function_returns.cpp ---
  /// Reads what the instructions of a function say of its entry and returns.
  void follow_code(FunctionPoint& point, const Function& function, const Known& known, std::optional<bool> ret_probes);
  /// Bytes of the room for patches that ends at `pc`; 0: there is none.
  [[nodiscard]] std::uint8_t patch_room_before(VirtAddr pc);
  /// Returns where a jump of the function leads to the point, or before it, as that of a loop it begins with does.
  [[nodiscard]] std::optional<VirtAddr> comes_back_to(const FunctionPoint& point, const Function& function,
                                                      const Known& known);
  /// Whether what it is placed on is an instruction that runs once for each of its rounds.
  [[nodiscard]] bool repeats(const FunctionPoint& point) const;
  /// Calls come by a landing pad, which such a loop leaves out, and each goes by one RET instruction. Without the
  /// former nothing tells a call from a round where the function begins.
  void count_calls_alone(FunctionPoint& point, const Function& function, VirtAddr comes_back_to);
  [[nodiscard]] Result<elf::FunctionFlow> flow_of(const Function& function, const Known& known);
  const elf::FunctionPieces& pieces();
  /// Moves from an instruction that the kernel steps to one that it emulates, where both see equal values. Debug
  /// information with parameters tells that a compiler made the code. Go's functions are entered again where the stack
  /// has grown.
  void move_to_cheaper_start(FunctionPoint& point, const Function& function, const Known& known);
  void take_returns(FunctionPoint& point, const Function& function, const Result<elf::FunctionFlow>& flow);
  /// Returns where programs can run before each of its RET instructions.
  Result<std::vector<FileOffset>> rets_of(const elf::FunctionFlow& flow);
  /// RET instructions, where each return is one. Else the kernel's probe, which takes the place of the return address,
  /// where nobody can look at that meanwhile; where somebody may, RET instructions see what they see.
  void choose_returns(FunctionPoint& point, const Function& function, const Result<elf::FunctionFlow>& flow);
  /// The RET instructions of functions that this one jumps to are ends of its calls, too. False: that is not how its
  /// returns are seen best.
  bool take_others_returns(FunctionPoint& point, const Function& function, const elf::FunctionFlow& flow);
  bool may_take_kernels(const Function& function);
  /// A program of C, not a library, that has no use for its callers: nothing throws through what it calls, either.
  bool is_plain_program();
  /// Empty: the kernel's return probe may stand there, if it is asked for.
  std::string why_not_by_kernel(const Function& function);
  elf::ReturnAddresses& return_addresses();
  /// Keeps a function whose RET instructions are all hits, whoever comes by them.
  void count_rets_of(const Function& function);
  /// Says into which of those other functions lead.
  void tell_of_others_returns();
  bool may_be_left_by_exceptions();
  bool may_switch_stacks();
  /// Says once for the file which hits are no calls, and what is not seen of returns, or could harm, before anything
  /// is attached.
  void tell_of_code();
  /// Empty: a program may run where the function returns.
  [[nodiscard]] std::string why_no_returns(const Function& function, const FunctionPoint& point) const;

  [[nodiscard]] const elf::Image& image() const noexcept { return elf::Inside::of(*file_.elf)->image; }

  [[nodiscard]] std::string go_version() const { return go_->version.empty() ? "a Go before 1.18" : go_->version; }

  const std::vector<FunctionPattern>& patterns_;
  const StopToken& stop_;
  const FilesBeside& beside_;
  ProbeFile& file_;
  elf::CodeReader code_;
  std::optional<elf::GoProgram> go_;
  elf::Demangler demangler_{kDemangled};
  std::vector<elf::FunctionName> names_;  ///< of patterns_
  std::optional<dwarf::DebugInfo> debug_;
  std::optional<locate::Signatures> signatures_;  ///< of debug_
  std::vector<std::string> folded_;               ///< what is to be said of them
  std::vector<std::string> one_address_;
  std::set<std::string> defined_;  ///< names of functions that share their address, and are no aliases
  std::map<std::string, std::set<VirtAddr>, std::less<>> variants_of_;  ///< destructors and constructors, by name
  std::set<VirtAddr> outer_variants_;       ///< destructors and constructors that call another one of their name
  std::vector<elf::CodeRange> variants_;    ///< of which there are several, and that may have a copy of another one
  std::map<VirtAddr, std::string> chosen_;  ///< what processes use of indirect functions, as it is told
  Signature untyped_;
  mutable std::shared_ptr<const TypeGraph> types_;
  Signature nothing_;
  std::optional<elf::FunctionPieces> pieces_;
  /// Holds what is known of the ways to inlined copies, by where they begin, and functions whose copies are told of.
  struct Ways {
    std::map<VirtAddr, Result<elf::CodeWays>> of_callers;
    std::set<VirtAddr> other_code;  ///< functions whose debug information is of other code
    std::map<dwarf::DieId, VirtAddr> meet;
    std::set<std::string> missed;
    std::set<std::string> rounds;
    std::uint64_t steps = std::uint64_t{1} << 27;  ///< that may still be looked at: some seconds
  };
  Ways ways_;
  std::optional<bool> plain_;
  std::optional<bool> unwinds_;
  std::optional<bool> switches_;
  std::optional<elf::ReturnAddresses> return_addresses_;
  std::map<VirtAddr, std::pair<std::uint64_t, std::string>> counted_by_rets_;  ///< sizes and names, by address
  std::vector<std::string> repeat_;            ///< lines and places whose hits are rounds of one instruction
  std::vector<std::string> begin_with_loops_;  ///< functions, hits of which are calls and rounds
  std::vector<std::pair<std::string, std::size_t>>
      unseen_;                               ///< functions seen by RET instructions that jump away, how often
  std::vector<std::string> by_kernel_;       ///< functions with the kernel's return probe, unasked
  std::vector<std::string> exceptions_end_;  ///< functions with it, asked for, that exceptions may leave
  std::set<std::tuple<Moment, std::uint64_t, std::string>> taken_;
};

}  // namespace usdt::find
