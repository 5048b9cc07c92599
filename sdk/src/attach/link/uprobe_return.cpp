// SPDX-License-Identifier: BSD-2-Clause
// uprobe_multi with BPF_F_UPROBE_MULTI_RETURN (kernel 6.6): the kernel puts its own address in the place of the return
// address when a function is entered, and runs the program when it returns there.
#include "link/backend.hpp"

namespace usdt::backends {

Result<FileLinks> attach_uprobe_return(const AttachTarget& target, const SiteArrays& sites) {
  return attach_multi_link({.flags = sys::kBpfFUprobeMultiReturn}, target, sites);
}

}  // namespace usdt::backends
