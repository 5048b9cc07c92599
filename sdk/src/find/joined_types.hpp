// SPDX-License-Identifier: BSD-2-Clause
// The types of a file, and for what it only declares those of the libraries that it needs. Private to find/.
#pragma once

#include <filesystem>
#include <memory>

#include "usdt/stop.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::find {

/// `own` are the types of the file at `path`. Libraries are looked for, and read, when somebody asks for what is in a
/// struct that the file only declares. One of that name is taken if no other library has another one.
[[nodiscard]] std::shared_ptr<const TypeGraph> with_types_of_libraries(std::shared_ptr<const TypeGraph> own,
                                                                       std::filesystem::path path, StopToken stop);

}  // namespace usdt::find
