// SPDX-License-Identifier: BSD-2-Clause
// Pages for a browser, with their data in them.
#pragma once

#include <string>
#include <string_view>

#include "io/stream.hpp"

namespace usdt::exports {

/// Writes `page` with `json`, a finished object, in the place of the first %DATA% in it.
inline void put_in_page(io::Stream& out, std::string_view page, std::string_view json) {
  constexpr std::string_view kMark = "%DATA%";
  const std::size_t at = page.find(kMark);
  out.lines(page.substr(0, at));
  std::string safe;  // names of others must not end the element of the page that they are in
  safe.reserve(json.size());
  for (const char c : json) c == '<' ? safe += "\\u003c" : safe += c;
  out.json(safe);
  out.lines(page.substr(at + kMark.size()));
}

}  // namespace usdt::exports
