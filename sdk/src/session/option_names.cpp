// SPDX-License-Identifier: BSD-2-Clause
#include "session/option_names.hpp"

namespace usdt::session {

std::string name_options(std::string_view text, std::string_view prefix) {
  constexpr std::string_view kWritten = "--";
  std::string named;
  for (std::size_t at = text.find(kWritten); at != text.npos; at = text.find(kWritten)) {
    named.append(text.substr(0, at)).append(prefix);
    text.remove_prefix(at + kWritten.size());
  }
  return named.append(text);
}

}  // namespace usdt::session
