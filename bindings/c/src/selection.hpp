// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <mutex>
#include <optional>

#include "handles.hpp"

namespace usdtc {

/// A point with its texts, as struct usdtc_point hands them out.
struct Point {
  std::uint32_t kind = 0;
  std::uint32_t flags = 0;
  std::string full_name = {};
  std::string file = {};
  std::string machine = {};
  std::string provider = {};
  std::string name = {};
  std::uint64_t pc = 0;
  std::uint64_t offset = UINT64_MAX;
  std::uint64_t semaphore = 0;
  std::string args_text = {};
  bool has_args_text = false;
  std::string instruction = {};
  std::string source_file = {};
  std::uint32_t source_line = 0;
  std::string refused = {};
  std::shared_ptr<const std::vector<usdt::Arg>> args = std::make_shared<const std::vector<usdt::Arg>>();
};

}  // namespace usdtc

struct usdtc_selection {
  std::vector<usdt::PointPattern> patterns;
  usdt::Selection selection;
  std::vector<usdtc::Notice> notices;

  [[nodiscard]] std::size_t count() const noexcept;
  /// Made when they are first asked for: a trace never does.
  [[nodiscard]] const std::vector<usdtc::Point>& points() const;

 private:
  mutable std::mutex mutex_;
  mutable std::optional<std::vector<usdtc::Point>> points_;
};
