// SPDX-License-Identifier: BSD-2-Clause
// TRY(EXPRESSION) is the value of a Result, or returns its error from the function that it stands in.
//     auto file = TRY(ElfFile::open(path));  // an ElfFile
//     TRY(check_tables(file));               // a Result<void>
// It is a statement expression (GNU C; g++ and clang have it), since a lambda could not return from its caller. Write
// it as a whole initialiser or statement: amid the arguments of a call g++ would not destroy those that were made
// before.
#pragma once

#include <utility>

#include "usdt/result.hpp"

namespace usdt::base {

template <class T>
T take(Result<T>&& result) {
  return *std::move(result);
}
inline void take(Result<void>&&) {}

}  // namespace usdt::base

#define TRY(...)                                               \
  __extension__({                                              \
    auto tried = (__VA_ARGS__);                                \
    if (!tried) return ::usdt::fail(std::move(tried).error()); \
    ::usdt::base::take(std::move(tried));                      \
  })
