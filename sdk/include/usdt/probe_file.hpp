// SPDX-License-Identifier: BSD-2-Clause
// One file with the points in it that patterns mean, USDT sites and functions: find_probes() scans a file, file_types()
// reads its types. select() (select.hpp) does this for many files at once.
//     auto file = usdt::find_probes({path, path}, {*usdt::parse_pattern("uprobe:malloc")});
//     for (const usdt::FunctionPoint& point : file->functions) print(point.name, point.pc.value);
// Threads: any; what is returned is plain values and shared objects that do not change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/discover.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/moment.hpp"
#include "usdt/pattern.hpp"
#include "usdt/probe.hpp"
#include "usdt/result.hpp"
#include "usdt/type_graph.hpp"

namespace usdt {
inline namespace v1 {

/// Describes the arguments and the return value of a function: by debug information, or where there is none by the
/// calling convention.
struct FunctionSignature {
  std::vector<Arg> args;      ///< at the function's first instruction
  std::optional<Arg> result;  ///< at the function's return; absent: it has none
  bool varargs = false;       ///< more arguments follow, of which nothing is known
  bool typed = false;         ///< false: words of argument registers, whether or not the function has such arguments
  /// The places of the bytes of each argument that is no number, or is not in one place; as long as `args`, or empty.
  std::vector<std::vector<Piece>> pieces = {};
  std::vector<Piece> result_pieces = {};  ///< the places of the bytes of such a result
  /// The types that the values' types are made of; null: not known. Lives as long as one of its signatures.
  std::shared_ptr<const TypeGraph> types = {};
  std::vector<TypeId> arg_types = {};  ///< of `types`; as long as `args`, or empty
  TypeId result_type = TypeId::none;
};

/// Describes a place in a file's code where a program can run for a function.
struct FunctionPoint {
  Moment moment = Moment::entry;
  /// "malloc", "ns::Server::handle(int)", "main+0x10"; of a line "@server.c:120", whose signature are the variables
  /// there. Several functions, and blocks of code of a line, may have one name.
  std::string name;
  std::vector<std::string> aliases = {};  ///< other names of its function that were asked for, too
  std::uint64_t distance = 0;  ///< bytes behind the function's start, where that was asked for; at the end of `name`
  VirtAddr pc;  ///< as linked, behind an instruction that only allows indirect jumps (endbr64), and behind `moved`
  /// Bytes of a compiled function's first instructions that the breakpoint is behind: the kernel would step the first,
  /// which takes a second trap, and emulates the one it is on. They change nothing that a program can read but `ip`.
  std::uint8_t moved = 0;
  std::optional<FileOffset> offset;  ///< absent: the file has no code there
  SiteBytes bytes;
  SiteClass site_class = SiteClass::unknown;
  std::shared_ptr<const FunctionSignature> signature;  ///< shared by all functions whose types are not known
  std::string source_file = {};                        ///< the file that defines it; empty: not known
  std::uint32_t source_line = 0;
  bool inlined = false;                ///< a copy of its code in another function
  std::string caller = {};             ///< of an inlined one, and of a line: that function
  std::string refused = {};            ///< why no program can run there; empty: one can
  ReturnBy returns = ReturnBy::probe;  ///< of other moments than Moment::entry
  std::vector<FileOffset> rets = {};   ///< of other ways than ReturnBy::probe: the RET instructions
};

/// Holds one scanned file with the points in it that were asked for.
struct ProbeFile {
  TargetFile target;
  std::shared_ptr<const ElfFile> elf;
  std::vector<Site> sites;
  std::vector<ScanWarning> warnings = {};
  std::vector<FunctionPoint> functions = {};
  std::string no_types = {};  ///< why nothing is known of the functions' types; empty: something is
  /// Why the file's debug information was refused, or not read to its end, or is in files that are gone, so that
  /// functions, copies inlined by the compiler and types may be missing. Empty: it was read, or there is none.
  std::string refused = {};
};

/// Scans `target` and keeps the sites that one of `patterns` matches by provider and name, and the functions that one
/// of them names (no patterns: all sites, no function). Functions inlined by the compiler are among them where debug
/// information tells of them. A file in which nothing matches is no error. Errors: those of ElfFile::open() and
/// ElfFile::scan(); limit (descriptors, memory).
[[nodiscard]] Result<ProbeFile> find_probes(const TargetFile& target, const std::vector<PointPattern>& patterns,
                                            const OpenOptions& options = {});

/// Reads the types in the debug information of `file`, its own or a separate file's. Errors: not_found (there is none),
/// not_supported, malformed, limit, stopped.
[[nodiscard]] Result<std::shared_ptr<const TypeGraph>> file_types(const ElfFile& file, const StopToken& stop = {});

}  // namespace v1
}  // namespace usdt
