// SPDX-License-Identifier: BSD-2-Clause
// What the debug information of a file says of its functions, as values; libdw stays behind this header.
//
// Sources: DWARF 4 and 5; what GCC and Clang make of them was looked up in objects they wrote (tests/dwarf).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elf/code_ways.hpp"
#include "usdt/address.hpp"
#include "usdt/arg.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::dwarf {

/// A place in a source file.
struct SourceLine {
  std::string file;        ///< as the compiler was told, with its directory; empty: not known
  std::uint32_t line = 0;  ///< from 1; 0: not known
  friend bool operator==(const SourceLine&, const SourceLine&) = default;
};

/// An entry of the debug information; means something only to the DebugInfo that handed it out.
enum class DieId : std::uint32_t { none = 0xffffffff };

/// How much of a function an instance has.
enum class FunctionPart : std::uint8_t {
  whole,
  split,      ///< what GCC split off from it (NAME.part.0), which the rest calls or jumps to, or has inlined again
  coroutine,  ///< what runs when a coroutine is resumed or destroyed; its call only makes it
};

/// One place in the code where a function begins to run: its own code, or a copy of it inlined into another function.
struct Instance {
  VirtAddr pc;
  std::uint64_t size = 0;  ///< bytes of code from `pc` on without a gap; 0: not known
  /// Of one that is not inlined: its other code, each piece with its bytes.
  std::vector<std::pair<VirtAddr, std::uint64_t>> elsewhere = {};
  bool inlined = false;
  std::string caller = {};       ///< of an inlined one: the qualified name of the function whose code it is in
  SourceLine where_called = {};  ///< of an inlined one: the call that it replaces
  DieId die = DieId::none;
  FunctionPart part = FunctionPart::whole;  ///< calls are those of whole ones
};

/// A function of the source, however often its code is in the file.
struct FunctionInfo {
  std::string name;                 ///< as declared: "handle"; "operator==", "{lambda#1}"
  std::string linkage_name;         ///< as the linker knows it; empty: it is `name`
  std::string qualified;            ///< with what it is a member of: "net::Server::handle"
  SourceLine declared;              ///< its definition
  bool external = false;            ///< visible to other source files
  bool noreturn = false;            ///< never returns: has no result
  bool go = false;                  ///< of the Go compiler
  std::vector<Instance> instances;  ///< by address, out-of-line ones first
};

/// A function that runs at an address.
struct RunningFunction {
  std::string name = {};          ///< FunctionInfo::qualified; empty: only the line is known
  std::string linkage_name = {};  ///< as the linker knows it; empty: it is the name
  std::optional<VirtAddr> entry;  ///< of the function whose code it is
  SourceLine line = {};           ///< where it is; of what others are inlined into, the call
  bool inlined = false;
};

/// What is known of a function's parameters at one of its instances.
struct Signature {
  /// {Type, Location} at the very pc of the instance. What cannot be read is unreadable with the reason and keeps its
  /// place. A value that is no number (TypeKind::structure, or wider than 8 bytes) is unreadable itself.
  std::vector<Arg> args;
  /// As long as `args`: where the bytes of each are, as far as that is known, whatever their number; a step to a member
  /// begins there. Empty for one that is not known, and for one in a single place that its Arg names.
  std::vector<std::vector<Piece>> pieces;
  std::vector<TypeId> types;  ///< of DebugInfo::types(); as long as `args`
  /// After the return instruction. Absent: void, noreturn, or an inlined instance, which does not return.
  std::optional<Arg> result;
  std::vector<Piece> result_pieces;  ///< as `pieces`
  TypeId result_type = TypeId::none;
  bool varargs = false;  ///< more arguments follow, of which nothing is known
};

/// What is known beforehand of functions that are looked for, so that not all units need to be read. Of each of them
/// its name as the linker knows it, or where it has none its name as declared, has one of `words` in it as it stands,
/// and is one that `may_be`. Words of less than three bytes, or too many, make no difference.
struct NameHint {
  std::vector<std::string> words;
  std::function<bool(std::string_view name)> may_be;  ///< called for other texts, too
};

/// The debug information of one file. Move-only. All functions are const and may be called from several threads; one
/// works at a time.
class DebugInfo {
 public:
  /// That of `file` itself, else of its separate debug file of the same build (elf::find_debug_file); with what these
  /// refer to: the file that dwz shares between packages (.gnu_debugaltlink), split units of a package beside one of
  /// them (FILE.dwp), else of .dwo files. `file` may be gone afterwards.
  /// Errors: not_found (there is none; the message names the package that would have it), not_supported (a file that
  /// is not linked), malformed, limit, stopped.
  [[nodiscard]] static Result<DebugInfo> open(const ElfFile& file, const StopToken& stop = {});

  DebugInfo(DebugInfo&&) noexcept;
  DebugInfo& operator=(DebugInfo&&) noexcept;
  ~DebugInfo();

  /// The file it was read from: the given one, or its separate debug file.
  [[nodiscard]] const std::filesystem::path& path() const noexcept;

  /// Of what was asked for up to here: which split units (.dwo, .dwp) it would have been in that are not there. Empty:
  /// nothing is missing.
  [[nodiscard]] std::string missing() const;

  /// The function whose code begins at `entry`, with that one instance; of several the one that the linker knows as
  /// `symbol`, else the first. Reads the address table (.debug_aranges, else
  /// the head of each unit) and one unit. Errors: not_found, stopped, limit.
  [[nodiscard]] Result<FunctionInfo> function_at(VirtAddr entry, std::string_view symbol = {}) const;

  /// Those of `names`, as the linker knows them, that the source defines as functions of their own. Linkers and
  /// compilers fold functions whose code is equal: one of two names at one address may be such a function, or only
  /// another name. Reads the units that may have them, and those that have code at `addresses`. Errors: stopped.
  [[nodiscard]] Result<std::vector<std::string>> defined(const std::vector<std::string>& names,
                                                         const std::vector<VirtAddr>& addresses,
                                                         const StopToken& stop = {}) const;

  /// Whether a function is meant; called with `instances` still empty, once for each declaration.
  using Wanted = std::function<bool(const FunctionInfo&)>;
  /// Every function that is `wanted` and has code in the file, its own or inlined, by name. Reads all units. Errors:
  /// malformed, stopped, limit; none found is no error.
  [[nodiscard]] Result<std::vector<FunctionInfo>> functions(const Wanted& wanted, const StopToken& stop = {}) const;
  /// The same of names about which something is known: `hint` holds for all that is `wanted`. Reads the units that lead
  /// to such names.
  [[nodiscard]] Result<std::vector<FunctionInfo>> functions(const Wanted& wanted, const NameHint& hint,
                                                            const StopToken& stop = {}) const;
  /// Those called `name`: as declared, qualified, or as the linker knows them.
  [[nodiscard]] Result<std::vector<FunctionInfo>> functions_named(std::string_view name,
                                                                  const StopToken& stop = {}) const;

  /// Parameters and result of `function` at `instance`, which is one of its own; its `pc` may be another address of the
  /// same code, such as body_of(). Errors: not_found (it is written in assembler), invalid_argument, stopped, limit.
  [[nodiscard]] Result<Signature> signature(const FunctionInfo& function, const Instance& instance) const;

  /// The function whose code has `pc`, the innermost where it is inlined, with that one instance, whose `pc` it is,
  /// wherever it begins. Errors: not_found, malformed.
  [[nodiscard]] Result<FunctionInfo> function_around(VirtAddr pc) const;
  /// signature() without the result, and with the local variables that are in scope at the instance's `pc` and declared
  /// before line `line`: those behind it have no value yet.
  [[nodiscard]] Result<Signature> variables(const FunctionInfo& function, const Instance& instance,
                                            std::uint32_t line) const;

  /// Where an out-of-line instance has set up its frame, as the line table has it: debuggers stop there. Of unoptimised
  /// code the parameters are in their slots then; of other code that promises nothing. Nothing: it does not say.
  [[nodiscard]] std::optional<VirtAddr> body_of(const Instance& instance) const;

  /// Whether the compiler may have made one of several inlined copies, of which debug information then tells nothing
  /// (LLVM, where branches do the same): by calls that copies of the function make elsewhere in the unit.
  [[nodiscard]] bool may_be_merged(const FunctionInfo& function) const;

  /// The code of an instance, and of the function that it is in (itself, unless it is inlined).
  struct Code {
    VirtAddr entry;  ///< of the function
    std::vector<elf::CodeRange> function;
    std::vector<elf::CodeRange> copy;
  };
  [[nodiscard]] Code code_of(const Instance& instance) const;

  /// Whether the compiler may have made several of an inlined copy, as of one in a loop that it unrolled: debug
  /// information tells where the first one begins, and as code of the same copy has what is begun elsewhere by the
  /// statement that the first begins with.
  [[nodiscard]] bool is_repeated(const FunctionInfo& function, const Instance& instance) const;

  /// What runs at `pc`: the innermost inlined function first, at last the one whose code it is. Empty: not known. Reads
  /// one unit.
  [[nodiscard]] std::vector<RunningFunction> functions_at(VirtAddr pc) const;

  /// Where to put a breakpoint for a line: the address at which each block of its code begins as a statement. `file`:
  /// the path, or its last components. Empty: there is no code of that line. Errors: not_found (no such source file;
  /// near names), stopped.
  [[nodiscard]] Result<std::vector<VirtAddr>> addresses_of_line(std::string_view file, std::uint32_t line,
                                                                const StopToken& stop = {}) const;

  /// The first line behind `line` that addresses_of_line() has addresses of; nothing: none.
  [[nodiscard]] std::optional<std::uint32_t> next_line_with_code(std::string_view file, std::uint32_t line,
                                                                 const StopToken& stop = {}) const;

  /// What the types of signatures are made of; may outlive this.
  [[nodiscard]] std::shared_ptr<const TypeGraph> types() const;

  struct Impl;

 private:
  explicit DebugInfo(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

}  // namespace usdt::dwarf
