// SPDX-License-Identifier: BSD-2-Clause
// The return type of every function that can fail: Result<T> has a T or an Error, and fail() makes the Error.
//     usdt::Result<usdt::ElfFile> file = usdt::ElfFile::open("/usr/bin/python3");
//     if (!file) return usdt::fail(file.error());   // or print file.error().message
//     use(*file);
// Threads: a Result is a plain value, as its T is. It does not refer to anything of the library.
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

/// Makes what a failing function returns: `return fail(ErrorKind::not_found, "no such probe: x:y");`
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return fail(Error{kind, std::move(message)});
}

}  // namespace v1
}  // namespace usdt
