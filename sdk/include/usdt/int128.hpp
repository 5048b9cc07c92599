// SPDX-License-Identifier: BSD-2-Clause
// Int128, the type of exact sums: a signed integer of 128 bits, which each supported compiler has or Boost provides.
#pragma once

#ifndef __SIZEOF_INT128__  // 32-bit machines
#include <boost/multiprecision/cpp_int.hpp>
#endif

namespace usdt {
inline namespace v1 {

/// A signed integer of 128 bits: wide enough for the sum of any number of 64-bit values.
#ifdef __SIZEOF_INT128__
__extension__ using Int128 = __int128;
#else
using Int128 = boost::multiprecision::int128_t;
#endif

}  // namespace v1
}  // namespace usdt
