// SPDX-License-Identifier: BSD-2-Clause
#include "common/guarded.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "common/report.hpp"

namespace usdt::tools {
namespace {

/// Libraries make objects before main(), where nobody catches what they throw: they have memory, or the tool ends here,
/// before all of them.
[[gnu::constructor(101)]] void check_there_is_memory_to_begin() noexcept {
  void* volatile const room = std::malloc(std::size_t{256} << 10);  // volatile: compilers leave out what is only freed
  std::free(room);
  if (room != nullptr) return;
  constexpr std::string_view words = ": out of memory\n";
  const auto part = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
  const std::array parts{part(kThisTool.name), part(words)};
  static_cast<void>(::writev(STDERR_FILENO, parts.data(), static_cast<int>(parts.size())));
  ::_exit(kThisTool.trouble);
}

}  // namespace

void print_exhausted(const char* what) {
  print_error(kThisTool.name, Error{.kind = ErrorKind::limit, .message = what});
}

}  // namespace usdt::tools
