// SPDX-License-Identifier: BSD-2-Clause
#include "base/try.hpp"
#include "btf/type_graph.hpp"
#include "usdt/kernel.hpp"

namespace usdt {
inline namespace v1 {

Result<std::shared_ptr<const TypeGraph>> kernel_types() {
  auto types = TRY(btf::Types::load());
  return std::make_shared<const btf::Graph>(std::move(types));
}

}  // namespace v1
}  // namespace usdt
