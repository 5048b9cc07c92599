// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/privilege.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace usdt {
namespace {

bool has(const std::array<__user_cap_data_struct, 2>& sets, unsigned capability) {
  return sets[capability / 32].effective >> (capability % 32) & 1;
}

}  // namespace

Result<void> check_privilege() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) < 0) return fail(os_failure(ErrorKind::io, "capget", errno));
  if (has(sets, CAP_SYS_ADMIN)) return {};
  std::string missing;
  if (!has(sets, CAP_BPF)) missing = "CAP_BPF";
  if (!has(sets, CAP_PERFMON)) missing += missing.empty() ? "CAP_PERFMON" : " and CAP_PERFMON";
  if (missing.empty()) return {};
  return fail(Error{ErrorKind::no_permission,
                    fmt::format("tracing needs {}: run as root, or `setcap cap_bpf,cap_perfmon,cap_dac_read_search+ep` "
                                "on the program",
                                missing),
                    EPERM});
}

}  // namespace usdt
