// SPDX-License-Identifier: BSD-2-Clause
// Private to parsers/: sets of characters for x3::char_(). Texts may have any bytes, also above those of ASCII, for
// which the classes of Spirit (x3::space, x3::ascii::alpha, x3::digit) read beside their tables.
#pragma once

namespace usdt::parsers {

inline constexpr char kSpaces[] = " \t\n\v\f\r";
inline constexpr char kDigits[] = "0-9";
inline constexpr char kLetters[] = "a-zA-Z_";
inline constexpr char kLettersAndDigits[] = "a-zA-Z0-9_";

}  // namespace usdt::parsers
