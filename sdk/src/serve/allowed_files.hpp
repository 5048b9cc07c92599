// SPDX-License-Identifier: BSD-2-Clause
// Which files a client may have breakpoints in. Private to serve/.
#pragma once

#include <cstdint>
#include <string>

#include "sys/unique_fd.hpp"
#include "usdt/broker_service.hpp"
#include "usdt/result.hpp"

namespace usdt::serve {

/// A file that a client has opened and handed over.
struct AllowedFile {
  sys::UniqueFd fd;
  std::string path;  ///< for people: the name that it has just now
  /// It is the client's, who may harm own programs by a breakpoint within an instruction. Of others' files only places
  /// are attached that are found in them here.
  bool own = false;

  /// Names the very inode.
  [[nodiscard]] std::string access() const;
};

/// Errors: no_permission, not_supported, with the reason: it is no regular file, was not opened for reading, is
/// somebody else's, may be written by others, runs with other rights than its user's, or its pages come from a program
/// that the kernel would have to wait for.
[[nodiscard]] Result<AllowedFile> check_file(sys::UniqueFd fd, const BrokerClient& client);

}  // namespace usdt::serve
