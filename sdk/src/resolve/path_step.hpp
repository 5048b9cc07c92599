// SPDX-License-Identifier: BSD-2-Clause
// The steps of paths: from an object to a member, an element, what it points to, or itself as another type.
// Private to resolve/.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "resolve/object.hpp"
#include "usdt/result.hpp"
#include "usdt/value_path.hpp"

namespace usdt::resolve {

/// Fails with invalid_argument, about a step of a path.
[[nodiscard]] inline tl::unexpected<Error> refuse_step(std::string message, const PathStep& step) {
  return fail(Error{ErrorKind::invalid_argument, std::move(message), 0, step.column});
}

/// "foo *" of "struct foo **" and so on: the type's name, and how many pointers to it.
[[nodiscard]] std::pair<std::string, unsigned> split_pointers(std::string_view text);

/// Takes a step that leads to an object: any but size_of, bytes and address. Errors: invalid_argument (the type of
/// `object` does not have what is asked for), and those of the types.
[[nodiscard]] Result<Object> take_step(const ObjectTypes& types, Object object, const PathStep& step);

}  // namespace usdt::resolve
