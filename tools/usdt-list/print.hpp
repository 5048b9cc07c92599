// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "common/terminal.hpp"
#include "usdt/usdt.hpp"

namespace usdt_list {

/// Standard output, written in large pieces.
class Output {
 public:
  ~Output() { flush(); }
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void append(std::string_view text) {
    constexpr std::size_t kEnough = 64 << 10;  // more in one write is no faster, and memory to fault in
    if (buffer_.size() + text.size() > kEnough) flush();
    buffer_.append(text.data(), text.data() + text.size());
  }
  /// Writes what is buffered.
  void flush();
  /// errno of the first write that failed, 0 if none did. Later ones are not tried.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  fmt::memory_buffer buffer_;
  int error_ = 0;
};

/// One line for each probe of `file`; verbosity 1 adds what its sites share, 2 every site with every argument. Aligned
/// in columns on a terminal, tab-separated otherwise.
void print_text(const usdt::ProbeFile& file, int verbosity, const usdt::tools::Terminal& terminal, Output& out);

/// One object for each site, a line each: the JSON contract of usdt-list, version 1 (design.md section 6).
void print_json(const usdt::ProbeFile& file, Output& out);

}  // namespace usdt_list
