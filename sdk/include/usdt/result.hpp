// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "usdt/error.hpp"

namespace usdt {
inline namespace v1 {

/// Either a T or an Error; the names are std::expected's (C++23), the code is tl::expected until
/// every supported compiler ships it. Nothing in this library throws across its interface.
template <class T>
using Result = tl::expected<T, Error>;

/// What a failing function returns: `return fail(ErrorKind::not_found, "no such probe: x:y");`
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return fail(Error{kind, std::move(message)});
}

}  // namespace v1
}  // namespace usdt
