// SPDX-License-Identifier: BSD-2-Clause
// Apart from BpfObject, so that programs that only ask what the kernel offers are linked without libbpf.
#include <fmt/format.h>

#include "backend/table.hpp"
#include "base/try.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/features.hpp"
#include "usdt/privilege.hpp"

namespace usdt {
inline namespace v1 {

Result<Backend> choose_backend(Backend wanted) {
  for (const backends::BackendRow& row : backends::kBackends) {
    const bool is_wanted = row.backend == wanted;
    const bool may_be = wanted == Backend::automatic ? row.moments.entry : is_wanted;
    if (row.info.points != PointKind::file || !may_be) continue;
    if (!row.feature) return row.backend;
    const FeatureState state = probe_feature(*row.feature);
    if (state.answer == Answer::yes) return row.backend;
    if (is_wanted && state.answer == Answer::no)
      return fail(ErrorKind::not_supported, fmt::format("{}: not supported: {}", row.info.name, state.detail));
    if (state.answer == Answer::unknown) {
      TRY(check_privilege());
    }
    if (is_wanted) return wanted;
  }
  return fail(ErrorKind::invalid_argument, fmt::format("{} does not attach to files", to_string(wanted)));
}

}  // namespace v1
}  // namespace usdt
