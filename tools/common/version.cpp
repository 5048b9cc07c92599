// SPDX-License-Identifier: BSD-2-Clause
#include "common/version.hpp"

#include <fmt/format.h>

namespace usdt::tools {

std::string version_text(std::string_view tool) {
  return fmt::format("{} {}\nbuilt with {}", tool, USDT_VERSION, USDT_BUILT_WITH);
}

}  // namespace usdt::tools
