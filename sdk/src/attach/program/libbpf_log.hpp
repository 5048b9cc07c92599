// SPDX-License-Identifier: BSD-2-Clause
// Messages of libbpf, kept for errors instead of printed. Private to attach/program.
#pragma once

#include <bpf/libbpf.h>

#include <string>
#include <string_view>

namespace usdt::backends {

/// Keeps what libbpf has to say on this thread while it lives, instead of letting it print. Lives around each call that
/// may print. The process's print function is ours only while one of these lives, and passes on what other threads'
/// calls say; then the application has its own again. So nothing of ours is left in libbpf when the library is
/// unloaded. (A thread that has just read the address of ours in libbpf still calls it: our shared libraries are linked
/// with -z nodelete.)
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
