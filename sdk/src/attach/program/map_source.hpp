// SPDX-License-Identifier: BSD-2-Clause
// Maps of an object that exist before it is loaded, or outlive it: by descriptor, or pinned. Private to attach/program.
#pragma once

#include "program/bpf_object_impl.hpp"

namespace usdt::backends {

/// not_found (the object has no such map), invalid_argument (a map of this library's own), type_mismatch (what is there
/// already is another kind of map, naming the difference).
[[nodiscard]] Result<void> check_map_source(const ObjectCopy& object, const Recipe::MapSource& source);
/// Checks it once more, since sizes may have been set meanwhile, and tells libbpf.
[[nodiscard]] Result<void> set_map_source(const ObjectCopy& object, const Recipe::MapSource& source);

}  // namespace usdt::backends
