// SPDX-License-Identifier: BSD-2-Clause
#include "stack/hotspot_code.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/try.hpp"
#include "stack/java_name.hpp"
#include "usdt/clock.hpp"
#include "usdt/features.hpp"
#include "usdt/select.hpp"

namespace usdt::stack {
namespace {

/// A JVM compiles some thousand methods in its first seconds; each takes some 900 bytes of the ring.
constexpr std::uint32_t kRingBytes = 4 << 20;
constexpr std::uint32_t kLongestName = 256;
constexpr std::size_t kMostText = 16 << 20;
/// Of code that is made, and of methods whose code is thrown away: whoever wrote the process may say that without end.
constexpr std::size_t kMostMethods = 1 << 17;
/// Events that are taken before it is looked whether there were enough.
constexpr std::size_t kAtOnce = 1024;

std::string name_of(const Event& event) {
  std::array<std::string, 3> texts;
  for (std::size_t n = 0; n < texts.size(); ++n) {
    const auto text = event.text(2 * n);
    if (!text) return "(a method whose name could not be read)";
    texts[n] = std::string(text->bytes).append(text->truncated ? "..." : "");
  }
  return java_method_name(texts[0], texts[1], texts[2]);
}

}  // namespace

Result<HotspotCode> HotspotCode::follow(pid_t pid) {
  const auto patterns = TRY(parse_patterns({"hotspot:compiled__method__load", "hotspot:compiled__method__unload"}));
  const Selection selection = TRY(select(patterns, {.pids = {pid}}));
  PlanOptions options;
  options.texts.numbers = {0, 2, 4};  // class, name and signature
  options.scope = TRY(OneProcess::of(pid));
  AttachPlan plan = TRY(plan_attach(selection, kernel_facts(patterns), options));
  TraceOptions trace;
  trace.string_size = kLongestName;
  trace.ring_bytes = kRingBytes;
  Tracer tracer = TRY(Tracer::start(std::move(plan), trace));
  return HotspotCode(std::move(tracer), event_clock());
}

void HotspotCode::load(const Event& event, std::string name) {
  const auto start = event.arg<std::uint64_t>(6);
  const auto size = event.arg<std::int32_t>(7);
  if (!start || !size || *size <= 0 || text_.size() + name.size() > kMostText || loads_ == kMostMethods) {
    complete_ = false;
    return;
  }
  ++loads_;
  CodeRange code{.start = *start, .code = *start, .made = Period::at(event.timestamp())};
  code.last = code.start + static_cast<std::uint64_t>(*size) - 1;
  code.name = static_cast<std::uint32_t>(text_.size());
  code.length = static_cast<std::uint32_t>(name.size());
  text_ += name;
  history_.put(code);
  loaded_[std::move(name)].push_back(code);
}

/// The probe does not tell which code of the method it was. One that was made anew takes the place of the older ones,
/// and those are thrown away; it may be the newest if there is no other.
void HotspotCode::unload(std::uint64_t time, const std::string& name) {
  if (unloaded_.size() < kMostMethods || unloaded_.contains(name))
    unloaded_[name] = time;
  else
    complete_ = false;
  const auto known = loaded_.find(name);
  if (known == loaded_.end()) return;
  std::vector<CodeRange>& codes = known->second;
  const std::size_t kept = codes.size() > 1 ? 1 : 0;
  for (auto each = codes.begin(); each != codes.end() - static_cast<std::ptrdiff_t>(kept); ++each)
    history_.doubt(*each);
  codes.erase(codes.begin(), codes.end() - static_cast<std::ptrdiff_t>(kept));
}

void HotspotCode::take(const Event& event) {
  taken_until_ = std::max<std::uint64_t>(taken_until_, event.timestamp());
  std::string name = name_of(event);
  if (event.probe().name == "compiled__method__load")
    load(event, std::move(name));
  else
    unload(event.timestamp(), name);
}

/// Others may come for as long as it takes to read these: no more are taken than what came before.
void HotspotCode::read(std::uint64_t time) {
  if (time <= read_until_) return;
  read_until_ = event_clock();
  std::size_t some = 0, taken = 0;
  do {
    some = tracer_.poll([this](const Event& event) { take(event); }, std::chrono::milliseconds(0), kAtOnce).value_or(0);
    taken += some;
  } while (some > 0 && taken_until_ < read_until_);
  if (taken == 0) return;
  const auto counts = tracer_.counts();
  complete_ &= std::ranges::all_of(counts, [](const ProbeCounts& each) { return each.ring_full == 0; });
}

std::optional<PerfMap::Found> HotspotCode::find(std::uint64_t address, Period when) const {
  const CodeHistory::Found found = history_.find(address, when, text_);
  if (found.code == nullptr) return std::nullopt;
  const std::string_view text = text_;
  PerfMap::Found answer{.name = text.substr(found.code->name, found.code->length),
                        .distance = address - found.code->code,
                        .uncertain = found.uncertain || !complete_};
  if (found.other != nullptr) answer.other = text.substr(found.other->name, found.other->length);
  return answer;
}

bool HotspotCode::was_unloaded(std::string_view name, std::uint64_t from, std::uint64_t until) const {
  const auto known = unloaded_.find(name);
  return known != unloaded_.end() && known->second > from && known->second <= until;
}

}  // namespace usdt::stack
