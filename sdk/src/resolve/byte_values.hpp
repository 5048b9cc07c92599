// SPDX-License-Identifier: BSD-2-Clause
// Bytes that are no text: "buf(p, 16)", and addresses of the Internet, "ntop(p)"; how many bytes there are between two
// addresses, "end - p". Private to resolve/.
#pragma once

#include "resolve/path_walker.hpp"
#include "resolve/value_list.hpp"

namespace usdt::resolve {

/// Appends the bytes that a path with the last step PathStep::Kind::bytes means. Errors: as MemberAdder::add().
[[nodiscard]] Result<void> append_bytes(ValueList& list, const PathWalker& paths, const ValuePath& path);
/// Appends the address that a path with the last step PathStep::Kind::address means. Errors: as MemberAdder::add().
[[nodiscard]] Result<void> append_address(ValueList& list, const PathWalker& paths, const ValuePath& path);

/// Appends the distance that a path with the last step PathStep::Kind::distance means. Errors: as MemberAdder::add().
[[nodiscard]] Result<void> append_distance(ValueList& list, const PathWalker& paths, const ValuePath& path);

}  // namespace usdt::resolve
