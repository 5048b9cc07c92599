// SPDX-License-Identifier: BSD-2-Clause
#include <unistd.h>

#include <cerrno>

#include "print.hpp"

namespace usdt_list {

void Output::flush() {
  std::string_view rest(buffer_.data(), buffer_.size());
  while (!rest.empty() && error_ == 0) {
    const ssize_t n = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) error_ = errno;
  }
  buffer_.clear();
}

}  // namespace usdt_list
