// SPDX-License-Identifier: BSD-2-Clause
#include "btf/type_graph.hpp"
#include "usdt/kernel.hpp"

namespace usdt {
inline namespace v1 {

Result<std::shared_ptr<const TypeGraph>> kernel_types() {
  auto types = btf::Types::load();
  if (!types) return fail(std::move(types.error()));
  return std::make_shared<const btf::Graph>(*std::move(types));
}

}  // namespace v1
}  // namespace usdt
