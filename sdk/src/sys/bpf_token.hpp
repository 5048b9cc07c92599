// SPDX-License-Identifier: BSD-2-Clause
// The BPF token by which a process in a user namespace of its own may load programs (Linux 6.9, commit 35f96de04127).
#pragma once

#include <string>

namespace usdt::sys {

/// Returns where the BPF file system is that a token is made of: as libbpf 1.5 has it, what LIBBPF_BPF_TOKEN_PATH says,
/// or /sys/fs/bpf. Empty: no token is wanted.
[[nodiscard]] std::string token_directory();

/// Returns the token of that directory, which is made once and kept, or -errno: EOPNOTSUPP in the initial user
/// namespace, ENOENT where nothing is delegated, EPERM without CAP_BPF in this namespace, EINVAL before Linux 6.9.
[[nodiscard]] int bpf_token();

/// Makes a call of bpf(2) with the token. Returns what it returns; -EPERM, too, where there is no token, or the command
/// takes none.
[[nodiscard]] int bpf_with_token(int cmd, const void* attr, unsigned size);

}  // namespace usdt::sys
