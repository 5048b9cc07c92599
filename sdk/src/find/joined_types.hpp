// SPDX-License-Identifier: BSD-2-Clause
// The types of a file, and for what it only declares those of the libraries that it needs, and of the program that
// needs it. Private to find/.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "usdt/discover.hpp"
#include "usdt/stop.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::find {

/// Files of the processes or the program that are looked at; they are looked for when it is called.
using FilesBeside = std::function<std::vector<TargetFile>()>;

/// `own` are the types of the file at `path`. Others are looked for, and read, when somebody asks for what is in a
/// struct that the file only declares: in the libraries that it needs, and then in the files `beside` it (null: there
/// are none), such as the program that a library is loaded by. One of that name is taken if no other file has another
/// one; else TypeGraph::members() says that they differ.
[[nodiscard]] std::shared_ptr<const TypeGraph> with_types_of_libraries(std::shared_ptr<const TypeGraph> own,
                                                                       std::filesystem::path path, FilesBeside beside,
                                                                       StopToken stop);

}  // namespace usdt::find
