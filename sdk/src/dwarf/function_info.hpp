// SPDX-License-Identifier: BSD-2-Clause
// A function of the source, and the places where its code is, as values. Private to the library.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "usdt/address.hpp"

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
  /// The other code of a function that is not inlined, each piece with its bytes.
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

}  // namespace usdt::dwarf
