// SPDX-License-Identifier: BSD-2-Clause
#include "common/guarded.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/report.hpp"

namespace usdt::tools {
namespace {

/// Libraries make objects before main(), where nobody catches what they throw: they have memory, or the tool ends here,
/// before all of them.
[[gnu::constructor(101)]] void check_there_is_memory_to_begin() noexcept {
  void* volatile const room = std::malloc(std::size_t{256} << 10);  // volatile: compilers leave out what is only freed
  std::free(room);
  if (room != nullptr) return;
  char colon[] = ": ", words[] = "out of memory\n";
  const std::array parts{iovec{program_invocation_short_name, std::strlen(program_invocation_short_name)},
                         iovec{colon, sizeof(colon) - 1}, iovec{words, sizeof(words) - 1}};
  static_cast<void>(::writev(STDERR_FILENO, parts.data(), static_cast<int>(parts.size())));
  ::_exit(kTroubleExitCode);
}

}  // namespace

void print_exhausted(std::string_view tool, const char* what) {
  print_error(tool, Error{.kind = ErrorKind::limit, .message = what});
}

}  // namespace usdt::tools
