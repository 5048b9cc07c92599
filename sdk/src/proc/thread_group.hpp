// SPDX-License-Identifier: BSD-2-Clause
// Private to the SDK.
#pragma once

#include <sys/types.h>

namespace usdt::proc {

/// The process that a thread belongs to, both as /proc numbers them (proc(5), "Tgid" of status): itself where it is
/// one. 0: there is no such thread, or /proc cannot say.
[[nodiscard]] pid_t thread_group_of(pid_t thread);

}  // namespace usdt::proc
