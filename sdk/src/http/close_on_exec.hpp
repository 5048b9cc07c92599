// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <fcntl.h>

namespace usdt::http {

/// Programs that the application starts must not have a socket of ours, which asio makes without O_CLOEXEC.
inline void close_on_exec(int fd) noexcept { static_cast<void>(::fcntl(fd, F_SETFD, FD_CLOEXEC)); }

}  // namespace usdt::http
