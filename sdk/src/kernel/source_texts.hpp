// SPDX-License-Identifier: BSD-2-Clause
// The kernel's lists as they were read, and what could not be.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/sources.hpp"
#include "kernel/symbol_lists.hpp"
#include "usdt/result.hpp"

namespace usdt::kernel {

/// Reads lists and owns their texts: names of functions are views of them, and live as long as this does, wherever it
/// is moved.
class SourceTexts {
 public:
  explicit SourceTexts(Sources sources) : sources_(std::move(sources)) {}

  [[nodiscard]] const Sources& sources() const noexcept { return sources_; }
  /// Keeps a text; returns all of it.
  std::string_view keep(Text&& text);
  /// Reads a file and keeps its text; nothing, and a line in missing(), if it cannot be read.
  std::optional<std::string_view> keep(const std::string& path, std::string_view advice);
  /// Keeps the text of a file in tracefs likewise, wherever that is mounted.
  std::optional<std::string_view> keep_tracefs(std::string_view name);
  /// Reads a file in tracefs without keeping it. Errors: not_found, no_permission, io. Several threads may.
  [[nodiscard]] Result<Text> read_tracefs(std::string_view name) const;
  /// Notes what could not be read, or lacks something.
  void miss(const Error& error, std::string_view advice);
  void miss(std::string what) { missing_.push_back(std::move(what)); }

  /// Returns what could not be read, in words: "/sys/kernel/tracing/...: Permission denied: run as root".
  [[nodiscard]] std::span<const std::string> missing() const noexcept { return missing_; }
  /// The error of a question that cannot be answered without what is missing: no_permission or not_supported.
  [[nodiscard]] Error unusable(std::string_view what) const;

 private:
  Sources sources_;
  std::vector<Text> texts_;
  std::vector<std::string> missing_;
  bool no_permission_ = false;  ///< some list could not be read for lack of privilege
};

}  // namespace usdt::kernel
