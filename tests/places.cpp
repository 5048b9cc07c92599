// SPDX-License-Identifier: BSD-2-Clause
#include "tests/places.hpp"

#include <cstdlib>

namespace usdt::test {

std::filesystem::path source_dir() { return USDT_SOURCE_DIR; }

std::filesystem::path corpus_dir() {
  const char* given = std::getenv("USDT_CORPUS");
  return std::filesystem::absolute(given != nullptr ? given : source_dir() / "../shared/corpus");
}

}  // namespace usdt::test
