// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <bpf/libbpf.h>

#include <string>
#include <string_view>

namespace usdt::backends {

/// Keeps what libbpf has to say on this thread while it lives, instead of letting it print. What it says at other times
/// goes to the application's own print function, or libbpf's.
class LibbpfLog {
 public:
  LibbpfLog();
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;

  /// The last line libbpf wrote; `otherwise` if it wrote none.
  [[nodiscard]] std::string last(std::string_view otherwise) const;
  /// Everything libbpf wrote.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string* previous_;
  std::string text_;
};

}  // namespace usdt::backends
