// SPDX-License-Identifier: BSD-2-Clause
#include <chrono>
#include <usdt/usdt.hpp>
#include <utility>

using namespace std::chrono_literals;
void show(std::uint64_t duration, const usdt::Value& value);
void trace_spans(const usdt::SearchScope& scope) {
  // BLOCK
}
