// SPDX-License-Identifier: BSD-2-Clause
// {Type, Location} -> usdt_arg_spec, which BPF programs read. The only such place.
#pragma once

#include <vector>

#include "arch/arch.hpp"
#include "usdt/address.hpp"
#include "usdt/arg.hpp"
#include "usdt/bpf/spec.h"

namespace usdt::resolve {

/// Says what a spec's meaning depends on besides the argument itself.
struct EncodeOptions {
  VirtAddr site = {};        ///< the site's address, as linked (corrected): Origin::site counts from it
  VirtAddr breakpoint = {};  ///< the instruction pointer at a hit, as linked: the site, or a nop behind it
  /// Programs at both ends of a call: a return value is not there before the end.
  bool result_comes_later = false;
  /// The slot that the kernel has the return value in (USDT_SOURCE_OLD_SLOTS: behind the arguments').
  std::uint8_t result_slot = USDT_SLOT_RESULT;
};

/// An unreadable argument has kind USDT_ARG_UNREADABLE and keeps its size.
[[nodiscard]] usdt_arg_spec encode(const Arg& arg, const arch::Arch& arch, const EncodeOptions& options = {}) noexcept;

/// Appends the steps of `arg` to `steps`, those of its spec so far, and says in `spec` where they begin. False: there
/// are too many of them (a spec's steps are numbered by a byte, a value has at most USDT_MAX_STEPS), and `spec` is
/// unreadable.
[[nodiscard]] bool encode_steps(const Arg& arg, const arch::Arch& arch, usdt_arg_spec& spec,
                                std::vector<usdt_arg_spec>& steps);

/// The encoded value is a distance from the breakpoint, so that each site has a spec of its own.
[[nodiscard]] bool depends_on_breakpoint(const usdt_arg_spec& spec) noexcept;

}  // namespace usdt::resolve
