// SPDX-License-Identifier: BSD-2-Clause
#include "link/attach_table.hpp"

#include <array>

#include "backend/table.hpp"

namespace usdt::backends {
namespace {

constexpr std::array kAttach = {
    AttachRow{.backend = Backend::uprobe_multi, .to_file = attach_uprobe_multi},
    AttachRow{.backend = Backend::perf_uprobe, .to_file = attach_perf_uprobe},
    AttachRow{.backend = Backend::perf_uretprobe, .to_file = attach_perf_uretprobe},
    AttachRow{.backend = Backend::uprobe_return, .to_file = attach_uprobe_return},
    AttachRow{.backend = Backend::uprobe_session, .to_file = attach_uprobe_session},
    AttachRow{.backend = Backend::kprobe_session, .to_kernel = attach_kprobe_multi},
    AttachRow{.backend = Backend::kprobe_multi, .to_kernel = attach_kprobe_multi},
    AttachRow{.backend = Backend::perf_kprobe, .to_kernel = attach_perf_kprobe},
    AttachRow{.backend = Backend::tracing_multi, .to_kernel = attach_tracing_multi},
    AttachRow{.backend = Backend::tracing, .to_kernel = attach_tracing},
    AttachRow{.backend = Backend::raw_tp, .to_kernel = attach_raw_tp},
    AttachRow{.backend = Backend::tp_btf, .to_kernel = attach_tracing},
    AttachRow{.backend = Backend::uprobe_family, .to_file = attach_uprobe_family},
    AttachRow{.backend = Backend::uprobe_family_return, .to_file = attach_uprobe_family_return},
};

/// A row for each of backends::kBackends, that attaches to what the backend is for.
constexpr bool is_complete() {
  if (kAttach.size() != backends::kBackends.size()) return false;
  for (std::size_t i = 0; i < kAttach.size(); ++i) {
    const backends::BackendRow& known = backends::kBackends[i];
    const bool of_file = known.info.points == PointKind::file;
    if (kAttach[i].backend != known.backend) return false;
    if ((kAttach[i].to_file != nullptr) != of_file || (kAttach[i].to_kernel != nullptr) == of_file) return false;
  }
  return true;
}
static_assert(is_complete());

}  // namespace

const AttachRow& attach_row(Backend backend) noexcept { return kAttach[static_cast<std::size_t>(backend) - 1]; }

}  // namespace usdt::backends
