// SPDX-License-Identifier: BSD-2-Clause
// What is behind the handles of usdtc.h, and what all its functions do: read and fill structs of any version, and let
// no exception out.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/usdt.hpp"
#include "usdt/usdtc.h"

struct usdtc_error {
  std::uint32_t kind = USDTC_ERROR_INTERNAL;
  usdt::Error error;
};

struct usdtc_stop {
  usdt::StopSource source;
};

namespace usdtc {

/// Names the library in what it writes.
constexpr const char* kProgram = "libusdt-c " USDTC_VERSION;

/// Makes an error what the caller gets: `*error`, and the negative errno of its kind.
int report(std::uint32_t kind, usdt::Error&& why, usdtc_error** error) noexcept;
int report(usdt::Error&& why, usdtc_error** error) noexcept;
int report_no_memory(usdtc_error** error) noexcept;

/// Runs the body of a function that can fail: `body` returns Result<void>.
template <class Body>
int guarded(usdtc_error** error, Body&& body) noexcept {
  if (error) *error = nullptr;
  try {
    usdt::Result<void> done = body();
    return done ? 0 : report(std::move(done.error()), error);
  } catch (const std::bad_alloc&) {
    return report_no_memory(error);
  } catch (const std::exception& thrown) {
    try {
      return report(USDTC_ERROR_INTERNAL, {usdt::ErrorKind::io, fmt::format("unexpected: {}", thrown.what())}, error);
    } catch (...) {
      return report_no_memory(error);
    }
  } catch (...) {
    return report(USDTC_ERROR_INTERNAL, {usdt::ErrorKind::io, "a callback threw"}, error);
  }
}

inline auto invalid(std::string message) { return usdt::fail(usdt::ErrorKind::invalid_argument, std::move(message)); }
inline auto no_more(std::string_view what, std::size_t n, std::size_t count) {
  return usdt::fail(usdt::ErrorKind::not_found, fmt::format("no {} {}: there are {}", what, n, count));
}

/// A struct the caller filled in, as this version has it: what an older caller does not know is 0, and what a newer one
/// asks for beyond what is known here is refused. `first` is the size it had in the first version. NULL: all 0.
template <class T>
usdt::Result<T> read_struct(const T* given, std::size_t first, std::string_view what) {
  T out{};
  if (!given) return out;
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (size < first || size > 4096)
    return invalid(fmt::format("the size in struct {} is {}: set it to sizeof(struct {})", what, size, what));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](unsigned char byte) { return byte != 0; }))
    return usdt::fail(usdt::ErrorKind::not_supported,
                      fmt::format("struct {} asks for what libusdt-c {} does not know", what, usdtc_version()));
  std::memcpy(&out, given, std::min(size, sizeof(T)));
  return out;
}

/// Fills the caller's struct, of whatever version: as much as it has room for.
template <class T>
usdt::Result<void> write_struct(const T& value, T* out, std::size_t first, std::string_view what) {
  if (!out) return invalid(fmt::format("no struct {} to fill", what));
  const std::size_t size = out->size;
  if (size < first || size > 4096)
    return invalid(fmt::format("the size in struct {} is {}: set it to sizeof(struct {})", what, size, what));
  std::memcpy(static_cast<void*>(out), &value, std::min(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(reinterpret_cast<char*>(out) + sizeof(T), 0, size - sizeof(T));
  out->size = size;
  return {};
}

/// Gives the caller a handle that was made.
template <class Handle>
usdt::Result<void> give(usdt::Result<Handle*>&& made, Handle** place) {
  if (!made) return usdt::fail(std::move(made.error()));
  *place = *made;
  return {};
}

/// Lists the caller gave. Errors: invalid_argument (NULL where there should be some, a NULL among texts).
usdt::Result<std::vector<std::string>> read_texts(const char* const* texts, std::size_t count, std::string_view what);
usdt::Result<std::vector<pid_t>> read_pids(const std::int32_t* pids, std::size_t count, std::string_view what);

inline usdt::StopToken token_of(const usdtc_stop* stop) { return stop ? stop->source.get_token() : usdt::StopToken(); }
inline usdtc_text text_of(std::string_view text) noexcept { return {text.data(), text.size()}; }
/// NULL: empty.
inline const char* or_null(const std::string& text) noexcept { return text.empty() ? nullptr : text.c_str(); }

/// Describes an argument; the result views `arg`.
usdtc_arg describe(const usdt::Arg& arg) noexcept;
usdt::Result<void> write_arg(const std::vector<usdt::Arg>& args, std::size_t n, usdtc_arg* out);

struct Notice {
  std::uint32_t kind;
  std::uint32_t probe;
  std::string message;
};
usdt::Result<void> write_notice(const Notice* notice, std::size_t n, std::size_t count, usdtc_notice* out);

/// Makes a view of what a table asks for, with its rows in the order of their keys; without a question if `given` is
/// null.
/// Errors: invalid_argument, syntax.
usdt::Result<usdt::View> read_table(const usdtc_table* given);
/// `given` null: no question.
usdt::Result<std::shared_ptr<const usdt::Expression>> read_where(const char* given);

/// The texts of a plan that events, rows and notices hand out.
class PlanTexts {
 public:
  explicit PlanTexts(const usdt::AttachPlan& plan);
  /// Keeps a text that a plan does not, each once: reasons, which are few.
  std::string_view keep(std::string&& reason) const;
  Notice notice_of(const usdt::SkippedSite& site, std::uint32_t kind) const;

  std::vector<std::string> full_names = {};  ///< by probe
  std::vector<std::string> files = {};       ///< by file

 private:
  mutable std::mutex mutex_;
  mutable std::set<std::string, std::less<>> reasons_;
};
/// A text, of which the end may be missing, as UTF-8 or bytes.
void set_text(usdtc_value& value, std::string_view bytes, bool truncated) noexcept;

/// 0: no limit.
inline std::size_t limit_of(std::size_t limit) noexcept { return limit == 0 ? SIZE_MAX : limit; }

/// The sizes that the structs had in the first version, up to what was their last member; they never change.
#define USDTC_UP_TO(type, member) (offsetof(type, member) + sizeof(type::member))
constexpr std::size_t kSearch = USDTC_UP_TO(usdtc_search, stop);
constexpr std::size_t kPoint = USDTC_UP_TO(usdtc_point, refused);
constexpr std::size_t kArg = USDTC_UP_TO(usdtc_arg, refused);
constexpr std::size_t kNotice = USDTC_UP_TO(usdtc_notice, message);
constexpr std::size_t kPlanOptions = USDTC_UP_TO(usdtc_plan_options, stop);
constexpr std::size_t kTraceOptions = USDTC_UP_TO(usdtc_trace_options, family_count);
constexpr std::size_t kCountInfo = USDTC_UP_TO(usdtc_count_info, reserved);
constexpr std::size_t kEventInfo = USDTC_UP_TO(usdtc_event_info, name);
constexpr std::size_t kValue = USDTC_UP_TO(usdtc_value, enumerator);
constexpr std::size_t kOverhead = USDTC_UP_TO(usdtc_overhead, trouble);
constexpr std::size_t kTable = USDTC_UP_TO(usdtc_table, step);
constexpr std::size_t kRow = USDTC_UP_TO(usdtc_row, range_count);
constexpr std::size_t kRange = USDTC_UP_TO(usdtc_range, count);
constexpr std::size_t kReplayOptions = USDTC_UP_TO(usdtc_replay_options, table);
constexpr std::size_t kRecordingInfo = USDTC_UP_TO(usdtc_recording_info, cut);
constexpr std::size_t kOption = USDTC_UP_TO(usdtc_option, reserved);
constexpr std::size_t kFormat = USDTC_UP_TO(usdtc_format, is_sent);
constexpr std::size_t kSink = USDTC_UP_TO(usdtc_sink, reserved);
#undef USDTC_UP_TO

}  // namespace usdtc

struct usdtc_plan {
  std::shared_ptr<const usdt::AttachPlan> plan;
  std::shared_ptr<const usdtc::PlanTexts> texts = std::make_shared<const usdtc::PlanTexts>(*plan);
  usdt::Question asked = {};                ///< `where` and the view, by which it was planned
  std::vector<usdtc::Notice> notices = {};  ///< of points that are not attached
  bool recorded = false;                    ///< of a recording: nothing of it can be attached
};

/// Either a view, of the event a callback sees, or an event of its own.
struct usdtc_event {
  const usdt::Event& event() const noexcept { return view ? *view : **own; }

  std::shared_ptr<const usdtc::PlanTexts> texts;
  std::int64_t wall_offset = 0;
  const usdt::Event* view = nullptr;
  std::optional<usdt::OwnedEvent> own = {};
};

struct usdtc_batch {
  std::vector<usdtc_event> events;
};

struct usdtc_ledger {
  explicit usdtc_ledger(usdt::SessionSummary all) : summary(std::move(all)), total(summary.total()) {}

  usdt::SessionSummary summary;
  usdt::Account total;
};

/// The rows of a table at one look.
struct usdtc_rows {
  std::shared_ptr<const usdtc::PlanTexts> texts;
  usdt::View view;
  usdt::PlannedTable table;
  std::vector<usdt::ArrangedRow> rows;
};
