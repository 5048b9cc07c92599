// SPDX-License-Identifier: BSD-2-Clause
#include "export/clock_text.hpp"

#include <fmt/format.h>

namespace usdt::exports {

void ClockText::show(io::Stream& out, std::int64_t wall) {
  const auto second = static_cast<std::time_t>(wall / 1'000'000'000);
  if (second != second_) {
    second_ = second;
    std::tm local{};
    ::localtime_r(&second, &local);
    text_ = fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
  }
  out.print("{}.{:06}", text_, wall % 1'000'000'000 / 1000);
}

}  // namespace usdt::exports
