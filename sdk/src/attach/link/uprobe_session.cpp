// SPDX-License-Identifier: BSD-2-Clause
// uprobe_multi with programs of BPF_TRACE_UPROBE_SESSION (kernel 6.13): the program runs at the entry of a function and
// again at its return, where it finds the 8 bytes that it left at the entry (bpf_session_cookie()).
#include "link/backend.hpp"

namespace usdt::backends {

Result<FileLinks> attach_uprobe_session(const AttachTarget& target, const SiteArrays& sites) {
  return attach_multi_link({.attach_type = sys::kBpfAttachTraceUprobeSession}, target, sites);
}

}  // namespace usdt::backends
