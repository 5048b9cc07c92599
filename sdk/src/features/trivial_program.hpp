// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

#include "features/measured_code.hpp"
#include "sys/uapi.hpp"

namespace usdt::features {

inline constexpr std::uint64_t kInsnMoveR0 = 0x00000000000000b7;  // r0 = 0
inline constexpr std::uint64_t kInsnExit = 0x0000000000000095;
inline constexpr std::uint64_t kInsnGetAttachCookie = 0x000000ae00000085;  // BPF_FUNC_get_attach_cookie is 174
inline constexpr std::uint64_t kInsnGetFuncArgCnt = 0x000000b900000085;    // BPF_FUNC_get_func_arg_cnt is 185

/// The type that a program is loaded as; by default for perf events.
struct TrivialProgram {
  std::uint32_t type = sys::kBpfProgTypeKprobe;
  std::uint32_t attach_type = 0;
  std::uint32_t flags = 0;
  std::uint32_t btf_id = 0;  ///< what a tracing program is tied to
};

/// A program of these instructions; its descriptor or -errno.
[[nodiscard]] int load_program(std::span<const std::uint64_t> code, const TrivialProgram& as = {});
/// One that returns 0 after `first`.
[[nodiscard]] int load_trivial_program(std::uint64_t first, const TrivialProgram& as = {});

/// A link (uprobe_multi) that runs `program` in process `pid` at one place; its descriptor or -errno.
[[nodiscard]] int link_uprobe(int program, const FilePlace& place, pid_t pid);
/// A perf event at one place in process `pid`; its descriptor or -errno. `type`: sys::probe_source("uprobe").
[[nodiscard]] int open_uprobe_event(std::uint32_t type, const FilePlace& place, pid_t pid);

}  // namespace usdt::features
