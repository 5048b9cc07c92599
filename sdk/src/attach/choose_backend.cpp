// SPDX-License-Identifier: BSD-2-Clause
// Apart from BpfObject, so that programs that only ask what the kernel offers are linked without libbpf.
#include <fmt/format.h>

#include "usdt/bpf_object.hpp"
#include "usdt/features.hpp"
#include "usdt/privilege.hpp"

namespace usdt {

Result<Backend> choose_backend(Backend wanted) {
  if (wanted == Backend::perf_uprobe) return wanted;
  const FeatureState multi = probe_feature(Feature::uprobe_multi);
  if (multi.answer == Answer::yes) return Backend::uprobe_multi;
  if (wanted == Backend::uprobe_multi && multi.answer == Answer::no)
    return fail(ErrorKind::not_supported, fmt::format("uprobe_multi: not supported: {}", multi.detail));
  if (multi.answer == Answer::unknown) {
    if (auto privilege = check_privilege(); !privilege) return fail(privilege.error());
  }
  return wanted == Backend::automatic ? Backend::perf_uprobe : wanted;
}

}  // namespace usdt
