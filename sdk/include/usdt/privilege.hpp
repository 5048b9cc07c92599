// SPDX-License-Identifier: BSD-2-Clause
// Asks whether this process may trace, before it tries: check_privilege() loads a small program and explains a refusal,
// why_untraceable() tells what the kernel itself lacks.
//     if (auto may = usdt::check_privilege(); !may) return complain(may.error().message);   // "... needs CAP_BPF ..."
// Threads: any. Nothing stays loaded or attached.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/backend.hpp"
#include "usdt/pattern.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Checks that the kernel lets this process load probe programs, and attach them in files by `backend` (automatic: the
/// one choose_backend() takes). It tries, and explains only a refusal: loading wants CAP_BPF and CAP_PERFMON (5.8,
/// commits 2c78ee898d8f and 980737282232), or CAP_SYS_ADMIN for both. uprobe_multi and everything in the kernel want no
/// more; perf uprobes want CAP_SYS_ADMIN since the fix of CVE-2025-38466 (6.16, commit ba677dbe77af; 6.12.39, 6.6.99,
/// 6.1.146, 5.15.189, 5.10.240). Errors: no_permission, naming the capabilities this process lacks, or what else stands
/// in the way where it has them (a user namespace, lockdown, a seccomp filter).
[[nodiscard]] Result<void> check_privilege(Backend backend = Backend::automatic);

/// Describes something that takes capabilities(7), and which of them this thread lacks.
struct Right {
  std::string_view purpose = {};             ///< "processes of other users"
  std::vector<std::string_view> needs = {};  ///< "CAP_SYS_PTRACE"
  std::vector<std::string_view> lacks = {};  ///< of these; where it has one that includes another, that is not lacking
};
/// Lists what tracing may take. The first entry is what all of it takes: to attach in files that everybody may read, by
/// the backend that choose_backend() takes here. Others add to it: CAP_SYS_PTRACE opens /proc/PID of other users
/// (ptrace(2), "Ptrace access mode checking"), CAP_DAC_READ_SEARCH what they alone may read, CAP_LEASE holds back who
/// opens a traced file for writing (fcntl(2), F_SETLEASE), CAP_SYS_ADMIN keeps breakpoints out of processes that are
/// not traced (tracefs(5)) and holds programs until they are attached (fanotify(7)), CAP_CHECKPOINT_RESTORE tells which
/// files nobody has mapped any more (/proc/PID/map_files: 5.9, commit 12886f8ab10c).
/// In a user namespace of its own a process lacks them all, but for those that count for a BPF token.
[[nodiscard]] std::vector<Right> list_rights();

/// Describes the BPF token by which a process in a user namespace of its own may trace (Linux 6.9, commit
/// 35f96de04127). Capabilities of such a namespace count for what the token delegates.
struct BpfToken {
  std::string directory = {};               ///< where the BPF file system is that delegates: "/sys/fs/bpf"
  std::vector<std::string> delegates = {};  ///< as the kernel shows it: "delegate_progs=kprobe:raw_tracepoint"
  std::string why_not = {};                 ///< why it lets this process load nothing; empty: it does
};
/// Finds it where libbpf does: LIBBPF_BPF_TOKEN_PATH, or /sys/fs/bpf. Nothing: this process is in the initial user
/// namespace, or nothing is delegated to it.
[[nodiscard]] std::optional<BpfToken> find_bpf_token();

/// Returns in words why this kernel has no way at all to trace points of a kind. Empty: it has a way, or does not tell
/// this user.
[[nodiscard]] std::string why_untraceable(KernelKind kind);

}  // namespace v1
}  // namespace usdt
