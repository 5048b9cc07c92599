// SPDX-License-Identifier: BSD-2-Clause
#include "guard_flags.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "wrong_usage.hpp"

namespace usdt_trace {
namespace {

/// The whole number that `text` is between `before` and `after`, from 1 to `most`.
std::optional<std::uint32_t> number_within(std::string_view text, std::string_view before, std::string_view after,
                                           std::uint32_t most) {
  if (!text.starts_with(before)) return std::nullopt;
  text.remove_prefix(before.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || rest != after || number == 0 || number > most) return std::nullopt;
  return number;
}

/// "5", "0.5", "5%"
std::optional<double> percents(std::string_view text) {
  if (text.ends_with('%')) text.remove_suffix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number / 100;
}

/// --max-overhead
usdt::Result<void> interpret_overhead(Flags& flags, const RawFlags& raw) {
  if (raw.max_overhead.empty()) return {};
  const auto share = percents(raw.max_overhead);
  if (!share || !(*share >= usdt::TraceOptions::kLeastOverhead && *share <= usdt::TraceOptions::kMostOverhead))
    return wrong("--max-overhead: \"" + raw.max_overhead +
                 "\" is not a number of percent from 0.01 to 1000, such as 5");
  flags.question.limits.max_overhead = *share;
  return {};
}

}  // namespace

usdt::Result<void> interpret_guards(Flags& flags, const RawFlags& raw) {
  if (!raw.sample.empty()) {
    const auto sample = number_within(raw.sample, "1/", "", usdt::TraceOptions::kMostSampled);
    if (!sample) return wrong("--sample: \"" + raw.sample + "\" is not 1/N, N up to 1000000, such as 1/100");
    flags.question.limits.sample = *sample;
  }
  if (!raw.max_rate.empty()) {
    const auto rate = number_within(raw.max_rate, "", "/s", usdt::TraceOptions::kMostRate);
    if (!rate) return wrong("--max-rate: \"" + raw.max_rate + "\" is not N/s, N up to 10000000, such as 1000/s");
    flags.question.limits.max_rate = *rate;
  }
  return interpret_overhead(flags, raw);
}

}  // namespace usdt_trace
