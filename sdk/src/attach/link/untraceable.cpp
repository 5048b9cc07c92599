// SPDX-License-Identifier: BSD-2-Clause
#include <string>

#include "plan/kernel.hpp"
#include "usdt/features.hpp"
#include "usdt/privilege.hpp"

namespace usdt {
inline namespace v1 {

std::string why_untraceable(KernelKind kind) {
  const KernelAbilities abilities = kernel_abilities({{kind}});
  // A process that may not ask the kernel knows nothing of what the kernel lacks.
  const bool asked = kind.family == KernelFamily::kprobe || probe_feature(Feature::tracing).answer != Answer::unknown;
  const auto method = plan::choose_method(kind, Backend::automatic, abilities, 1, true);
  return method || !asked ? std::string() : method.error().message;
}

}  // namespace v1
}  // namespace usdt
