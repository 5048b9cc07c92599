// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt::io {

/// A file whose readers see what it has now or what it had before, never a part.
class ReplacedFile {
 public:
  /// `path`: of a regular file that is there, or of a link to one.
  explicit ReplacedFile(const std::string& path);
  /// Puts another file with this text in its place, with the rights it had. Errors: io, no_permission; then it stays.
  [[nodiscard]] Result<void> replace(std::string_view text) const;

 private:
  std::string path_;
};

}  // namespace usdt::io
