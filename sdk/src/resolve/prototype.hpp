// SPDX-License-Identifier: BSD-2-Clause
// Finds the arguments of a kernel function by its prototype: the calling conventions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "btf/types.hpp"
#include "usdt/arg.hpp"
#include "usdt/machine.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::resolve {

/// Tells where a program of some kind finds a function's arguments.
enum class Convention : std::uint8_t {
  registers,   ///< kprobes: pt_regs at the function's entry, and its stack
  slots,       ///< trampolines: 8-byte slots in order, bpf_get_func_arg()
  tracepoint,  ///< raw tracepoints: one 8-byte slot each, the prototype's first parameter left out
};

/// Holds a prototype's arguments under one convention: {Type, Location} like a note's. An argument that cannot be read
/// (a struct by value ...) is unreadable with the reason and keeps its place.
struct KernelSignature {
  std::vector<Arg> args;
  std::optional<Arg> result;           ///< absent: void; slots: USDT_SLOT_RESULT
  std::vector<TypeId> arg_types = {};  ///< by btf::Graph of the prototype's types; as long as `args`, or empty
  TypeId result_type = TypeId::none;
  std::uint32_t slots = 0;  ///< slots: how many the arguments take
  bool varargs = false;     ///< arguments behind the named ones are not known
  /// Why trampolines refuse this prototype (btf_distill_func_proto); empty: they do not.
  std::string no_trampoline;
};

[[nodiscard]] KernelSignature kernel_signature(const btf::Types& types, const btf::Prototype& prototype,
                                               Convention convention, Machine machine);
/// Makes the signature of a function without type information: the words of the machine's argument registers, at least
/// six with those next on the stack (i386), unsigned, named arg0... Slots: none, as only types tell how many there are.
[[nodiscard]] KernelSignature untyped_signature(Convention convention, Machine machine);

}  // namespace usdt::resolve
