// SPDX-License-Identifier: BSD-2-Clause
// Characters that the grammars have in common. Texts may have any bytes, also above those of ASCII, for which the
// classes of Spirit (x3::space, x3::ascii::alpha, x3::digit) read beside their tables.
#pragma once

#include <boost/spirit/home/x3/char.hpp>
#include <boost/spirit/home/x3/directive/omit.hpp>
#include <boost/spirit/home/x3/operator/kleene.hpp>

namespace usdt::parsers {

inline const auto space = boost::spirit::x3::char_(" \t\n\v\f\r");
inline const auto blank = boost::spirit::x3::omit[*space];  ///< as many as there are
inline const auto digit = boost::spirit::x3::char_('0', '9');
inline const auto letter = boost::spirit::x3::char_("a-zA-Z_");
inline const auto letter_or_digit = boost::spirit::x3::char_("a-zA-Z0-9_");

}  // namespace usdt::parsers
