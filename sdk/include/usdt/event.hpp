// SPDX-License-Identifier: BSD-2-Clause
// One event, viewed in the record that it came in: Event::value() and Event::arg<T>() have its arguments, Event::text()
// the texts they point to, and OwnedEvent is a copy to keep.
//     auto bytes = event.arg<std::uint32_t>(1);   // or type_mismatch, or why it could not be read
//     auto sql = event.text(0);
// Threads: nothing is changed, so that several may read one event. An Event is valid inside its callback alone.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "usdt/bpf/event.h"
#include "usdt/hit_field.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/stack.hpp"

namespace usdt {
inline namespace v1 {

/// Says why one argument of one hit has no value. `reason` is valid as long as the event's plan.
struct ArgError {
  std::string_view reason;
  friend bool operator==(const ArgError&, const ArgError&) = default;
};
/// Holds a value with the type that its site says: signed, unsigned, floating, or the reason why there is none.
using Value = std::variant<std::int64_t, std::uint64_t, double, ArgError>;

/// Holds the text that an argument points to.
struct Text {
  std::string_view bytes;  ///< without the closing NUL; may have NULs if its length was known; valid as the event is
  bool truncated = false;  ///< longer than the string size of the trace
};

/// Returns the string slot of a record in which the text of argument `n` is; nothing: no text is captured for it.
[[nodiscard]] std::optional<std::size_t> string_slot(const EncodedSpec& spec, std::size_t n) noexcept;

/// Holds the functions of a script that were running at a hit, as they were recorded: pointers, which Symbolizer gives
/// names to. Valid as long as the event.
struct RecordedScript {
  usdt_script_state state = USDT_SCRIPT_NONE;  ///< how far they could be followed
  std::uint16_t runtime = USDT_RUNTIME_NONE;   ///< usdt_runtime
  std::uint16_t version = 0;                   ///< major version in the upper byte, minor one in the lower
  std::span<const usdt_script_frame> frames = {};
};

/// Holds the stack of a process as it was recorded at a hit; Symbolizer makes frames of it. Valid as long as the event.
struct RecordedStack {
  /// The addresses found by frame pointers: of the hit, then the return address of each function around it.
  std::span<const std::uint64_t> addresses = {};
  /// The process's registers at the hit, or, at a hit in the kernel, where it entered the kernel. Numbered as in specs
  /// (bpf/spec.h).
  std::span<const std::uint64_t> registers = {};
  /// Return addresses that the kernel's return probes have replaced on the stack by their own; innermost first.
  std::span<const usdt_replaced_return> replaced = {};
  std::span<const std::byte> memory = {};  ///< a copy of the stack, from the stack pointer on
  bool cut = false;                        ///< there was no room for more of it
};

/// Holds the user, group, cgroup and parent of a process at a hit.
struct HitOwner {
  std::uint32_t uid = 0;               ///< HitField::uid
  std::uint32_t gid = 0;               ///< HitField::gid
  std::uint64_t cgroup = 0;            ///< HitField::cgroup
  std::int32_t ppid = USDT_NO_PARENT;  ///< HitField::ppid
  friend bool operator==(const HitOwner&, const HitOwner&) = default;
};

/// Holds the trace and span that a thread works for, as it publishes them (OpenTelemetry's thread context, OTEP 4947).
struct ThreadContext {
  std::array<std::uint8_t, 16> trace_id = {};
  std::array<std::uint8_t, 8> span_id = {};
  std::uint8_t flags = 0;  ///< of the W3C's Trace Context: bit 0, the trace is sampled
  friend bool operator==(const ThreadContext&, const ThreadContext&) = default;
};

/// Knows what the attributes of threads are called in one process, by their numbers.
struct AttributeKeys {
  std::vector<std::string> names = {};  ///< empty ones are not known
  std::string why = {};                 ///< why a number has no name
};

/// Holds an attribute of a thread's context.
struct ThreadAttribute {
  std::string_view key;
  std::string_view text;  ///< which anybody may have written
  friend bool operator==(const ThreadAttribute&, const ThreadAttribute&) = default;
};

/// Holds the attributes of a thread's context.
struct ThreadAttributes {
  std::vector<ThreadAttribute> known = {};  ///< each key once
  std::string_view others = {};             ///< why there may be more than these; empty: there are none
};

/// Holds the thread that ended a span.
struct SpanEnder {
  std::uint32_t pid = 0;  ///< numbered as Event::pid() and tid() are
  std::uint32_t tid = 0;
  std::string_view comm = {};  ///< its name, as Event::comm() has that of the thread that began it
  friend bool operator==(const SpanEnder&, const SpanEnder&) = default;
};

/// Points to the stacks of an event with the names of their functions, which cannot be found once the process has
/// ended; null: there is none.
struct EventStacks {
  const Result<Stack>* kernel = nullptr;
  const Result<Stack>* user = nullptr;
};

/// Describes how the records of one plan are laid out (bpf/event.h), from numbers known at load.
struct EventLayout {
  std::uint32_t max_args = 0;
  std::uint32_t string_slots = 0;
  std::uint32_t string_size = 0;  ///< bytes of a slot: the longest text plus 2, so that truncation is certain
  std::uint32_t stack_depth = 0;  ///< addresses of kernel stacks, at most
  /// The most of these addresses that are shown: the innermost ones of a record may be those of the tracing itself.
  std::uint32_t stack_shown = UINT32_MAX;
  std::uint32_t user_stack_depth = 0;  ///< frames of processes' stacks that are shown, at most; 0: no such stacks
  StackMethod user_stack_method = StackMethod::frame_pointers;
  std::uint32_t user_addresses = 0;  ///< the most addresses that the kernel finds by frame pointers
  /// The copy of the stack: up to a multiple of `user_copy_piece`, a power of two, and then so many pieces.
  std::uint32_t user_copy_piece = 0;
  std::uint32_t user_copy_pieces = 0;
  std::uint32_t script_depth = 0;  ///< functions of scripts, at most; 0: none are recorded
  double weight = 1;               ///< hits, calls or spans that each record stands for (TraceOptions::sample)
  bool owners = false;             ///< records have a struct usdt_owner (PlanOptions::owners)
  bool enders = false;             ///< records have a struct usdt_ender: of spans that may end in another thread
  bool contexts = false;           ///< records have a struct usdt_thread_context (PlanOptions::contexts)
  bool attributes = false;         ///< and with it a struct usdt_thread_attributes (PlanOptions::attributes)
  /// With `owners`, in recordings: processes have a parent. Those of earlier versions do not.
  bool parents = true;
  /// The bytes of all texts of an OwnedEvent, which lie one behind another in the order of the arguments. Nothing:
  /// texts are in slots.
  std::optional<std::uint32_t> packed_texts = {};

  /// Returns the offset of the texts in each record, in bytes.
  [[nodiscard]] std::uint32_t texts_at() const noexcept {
    return static_cast<std::uint32_t>(sizeof(usdt_event) + max_args * sizeof(usdt_event_arg) +
                                      stack_depth * sizeof(std::uint64_t));
  }
  /// Returns the size in bytes of the text that was captured for an argument, without a NUL behind it; 0: there is
  /// none.
  [[nodiscard]] std::uint32_t captured_bytes(const usdt_event_arg& arg) const noexcept {
    if (string_size == 0 || arg.error != 0 || arg.text <= 0) return 0;
    const auto bytes = static_cast<std::uint32_t>(arg.text);
    return (bytes < string_size ? bytes : string_size) - 1;
  }
  /// Returns the offset of struct usdt_user_stack in each record: a multiple of 8 bytes.
  [[nodiscard]] std::uint32_t user_stack_at() const noexcept {
    const std::size_t size = texts_at() + (packed_texts ? *packed_texts : string_slots * std::size_t{string_size});
    return static_cast<std::uint32_t>((size + 7) / 8 * 8);
  }
  /// Returns the offset of struct usdt_script_stack, if records have one: behind the stack, at a multiple of 8 bytes.
  [[nodiscard]] std::uint32_t script_at() const noexcept {
    if (user_stack_depth == 0) return user_stack_at();
    const std::uint32_t copy = user_copy_piece * (user_copy_pieces + 1);
    return user_stack_at() + static_cast<std::uint32_t>(sizeof(usdt_user_stack) + user_addresses * 8ULL + copy);
  }
  /// Returns the offset of struct usdt_ender, if records have one: behind the stacks, at a multiple of 8 bytes.
  [[nodiscard]] std::uint32_t ender_at() const noexcept {
    if (script_depth == 0) return script_at();
    return script_at() +
           static_cast<std::uint32_t>(sizeof(usdt_script_stack) + script_depth * sizeof(usdt_script_frame));
  }
  /// Returns the offset of struct usdt_thread_context, if records have one: behind these, at a multiple of 8 bytes.
  [[nodiscard]] std::uint32_t context_at() const noexcept {
    return ender_at() + (enders ? static_cast<std::uint32_t>(sizeof(usdt_ender)) : 0);
  }
  /// Returns the offset of struct usdt_thread_attributes, if records have one: behind the context.
  [[nodiscard]] std::uint32_t attributes_at() const noexcept {
    return context_at() + (contexts ? static_cast<std::uint32_t>(sizeof(usdt_thread_context)) : 0);
  }
  /// Returns the offset of struct usdt_owner, if records have one: behind all else, at a multiple of 8 bytes.
  [[nodiscard]] std::uint32_t owner_at() const noexcept {
    return attributes_at() + (attributes ? static_cast<std::uint32_t>(sizeof(usdt_thread_attributes)) : 0);
  }
  /// Returns the size of each record in bytes, a multiple of 8.
  [[nodiscard]] std::uint32_t record_size() const noexcept {
    return owner_at() + (owners ? static_cast<std::uint32_t>(sizeof(usdt_owner)) : 0);
  }
};

/// Views one hit (or call, or span) in the record that it came in. Cheap to copy, but valid only inside the callback
/// that received it: OwnedEvent can be kept. Threads: nothing is changed, so that several may read it at once.
class Event {
 public:
  /// Views `record`; record and plan have to outlive the event. Errors: malformed (`record` has not the layout's size,
  /// or names a site that the plan does not have).
  [[nodiscard]] static Result<Event> from(std::span<const std::byte> record, const AttachPlan& plan,
                                          const EventLayout& layout);
  /// Views a record of a plan that is shared: an OwnedEvent then has a share of its own. Errors as above.
  [[nodiscard]] static Result<Event> from(std::span<const std::byte> record,
                                          const std::shared_ptr<const AttachPlan>& plan, const EventLayout& layout);

  /// Returns the time of the hit, or of the beginning of a call or span: ns of CLOCK_MONOTONIC.
  [[nodiscard]] std::uint64_t timestamp() const noexcept { return header_->ts; }
  /// Returns the process, as the tracer's pid namespace numbers it; 0: it is not visible there.
  [[nodiscard]] std::uint32_t pid() const noexcept { return header_->pid; }
  /// Returns the thread, numbered likewise.
  [[nodiscard]] std::uint32_t tid() const noexcept { return header_->tid; }
  /// Returns the processor it was on.
  [[nodiscard]] std::uint32_t cpu() const noexcept { return header_->cpu; }
  /// Returns the thread's name (/proc/PID/comm): at most 15 bytes, which anybody may have chosen.
  [[nodiscard]] std::string_view comm() const noexcept;
  /// Returns the user, group, cgroup and parent of the process at the hit, or where the call or span began. Nothing:
  /// they were not recorded (PlanOptions::owners).
  [[nodiscard]] std::optional<HitOwner> owner() const noexcept;
  /// Returns the trace and span that the thread worked for at the hit, or where the call or span began. Nothing: it
  /// worked for none, or its process publishes none. Errors: not_found (it was not recorded: PlanOptions::contexts; or
  /// the process was seen for the first time, and where it has them is known from then on), not_supported (it does not
  /// tell where), io (why it could not be read: the thread was changing it, say).
  [[nodiscard]] Result<std::optional<ThreadContext>> thread_context() const;
  /// Returns the attributes of the thread's context, valid as long as the event and its keys; a key that is there twice
  /// has the text of the last one. Errors: those of thread_context(), of PlanOptions::attributes; limit
  /// (there are more than are read), io.
  [[nodiscard]] Result<ThreadAttributes> thread_attributes() const;
  /// Gives attributes the names that they have in the event's process. Events of a trace and of a recording have
  /// theirs. `keys` has to live as long as the event; an OwnedEvent has a share of its own.
  void name_attributes(const std::shared_ptr<const AttributeKeys>& keys) noexcept { keys_ = &keys; }
  /// Returns these names; null: none are known.
  [[nodiscard]] const AttributeKeys* attribute_keys() const noexcept { return keys_ ? keys_->get() : nullptr; }
  /// Returns the thread that ended a span, valid as long as the event. Nothing: the one that began it, which alone
  /// could (spans are paired by threads); or it has not ended (View::in_flight), or that was not recorded.
  [[nodiscard]] std::optional<SpanEnder> ended_by() const noexcept;
  /// Returns the address of the breakpoint in the process, or of the kernel function.
  [[nodiscard]] ProcessAddr ip() const noexcept {
    return ProcessAddr(header_->ip ? header_->ip : pc_of(*plan_, *site_).value_or(VirtAddr()).value);
  }
  /// Returns the ns from the beginning to the end of a call (Moment::both) or span; 0 for hits.
  [[nodiscard]] std::uint64_t duration() const noexcept { return header_->duration; }
  /// Returns how many hits, calls or spans this event stands for (TraceOptions::sample, max_overhead). Sums over events
  /// are estimates of those over all hits if each event is multiplied by its weight.
  [[nodiscard]] double weight() const noexcept { return layout_.weight; }
  /// Returns addresses of the kernel's stack, innermost first (TraceOptions::kernel_stack_depth), without those of the
  /// program and of what called it: at the entry the traced function comes first, at the return its caller. Empty: none
  /// was asked for, or this is no hit in the kernel. Errors: io (the kernel could not tell).
  [[nodiscard]] Result<std::span<const std::uint64_t>> kernel_stack() const;
  /// Returns the stack of the process (TraceOptions::user_stack_depth), to be named by Symbolizer::user_stack(). Empty:
  /// none was asked for, or this is a hit in a thread of the kernel. Errors: io (the kernel could not tell).
  [[nodiscard]] Result<RecordedStack> user_stack() const;
  /// Returns the functions of a script that were running (TraceOptions::script_frames), to be named with the stack by
  /// Symbolizer::user_stack(). Empty: none were asked for, or recorded.
  [[nodiscard]] RecordedScript script() const noexcept;
  /// Returns the record it came in (bpf/event.h): layout().record_size() bytes.
  [[nodiscard]] std::span<const std::byte> record() const noexcept {
    return {reinterpret_cast<const std::byte*>(header_), layout_.record_size()};
  }
  /// Returns how the record is laid out.
  [[nodiscard]] const EventLayout& layout() const noexcept { return layout_; }
  /// Returns the plan that its site is in.
  [[nodiscard]] const AttachPlan& plan() const noexcept { return *plan_; }
  /// Returns the site that was hit.
  [[nodiscard]] const PlannedSite& site() const noexcept { return *site_; }
  /// Returns the number of that site: an index into AttachPlan::sites.
  [[nodiscard]] std::uint32_t site_number() const noexcept { return header_->site; }
  /// Returns the probe of that site.
  [[nodiscard]] const PlannedProbe& probe() const noexcept { return plan_->probes[site_->probe]; }
  /// Returns the number that the plan has for this site (PlanOptions::user_cookie, user_cookie_of).
  [[nodiscard]] std::uint64_t user_cookie() const noexcept { return plan_->specs[site_->spec].user_cookie; }

  /// Returns the number of arguments of this site: what is passed, then the return value if there is one (Arg::result),
  /// then the values that were asked for beside them (Arg::derived).
  [[nodiscard]] std::size_t arg_count() const noexcept { return args_->size(); }
  /// Returns the description of argument `n` at its site; `n` is below arg_count().
  [[nodiscard]] const Arg& arg_info(std::size_t n) const noexcept { return (*args_)[n]; }
  /// Returns how argument `n` is called within the argument that shows it (label_of()); `n` is below arg_count().
  [[nodiscard]] std::string_view label(std::size_t n) const noexcept { return label_of(*args_, n); }
  /// Returns argument `n` as its site types it.
  [[nodiscard]] Value value(std::size_t n) const noexcept;
  /// Returns the text captured for argument `n`. Errors: not_found (no such argument, no text was asked for
  /// (PlanOptions::texts), or what it may point to (TextOptions::likely) is not plainly text); or the reason why it
  /// could not be read.
  [[nodiscard]] Result<Text> text(std::size_t n) const noexcept;

  /// Returns the text as text() does, also one that may be text (TextOptions::likely) and is not plainly text: for
  /// comparisons, not to be shown.
  [[nodiscard]] Result<Text> captured_text(std::size_t n) const noexcept;

  /// Returns argument `n` as a T of exactly its size, sign and kind: `event.arg<std::int32_t>(1)`. Errors:
  /// type_mismatch, not_found (there is no such argument); or the reason why it could not be read.
  template <class T>
  requires std::integral<T> || std::floating_point<T>
  [[nodiscard]] Result<T> arg(std::size_t n) const {
    auto bits = typed_bits(n, sizeof(T), std::is_signed_v<T> && std::integral<T>, std::floating_point<T>);
    if (!bits) return fail(bits.error());
    if constexpr (std::is_same_v<T, double>) {
      return std::bit_cast<double>(*bits);
    } else if constexpr (std::is_same_v<T, float>) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(*bits));
    } else {
      return static_cast<T>(*bits);
    }
  }

 private:
  friend class EventCopies;
  Event() = default;
  void view(const std::byte* record) noexcept;
  /// Returns the beginning of the text that was captured for argument `n`, which has that slot.
  [[nodiscard]] const char* text_start(std::size_t n, std::size_t slot) const noexcept;
  [[nodiscard]] Result<std::uint64_t> typed_bits(std::size_t n, std::size_t size, bool is_signed, bool is_float) const;
  /// Returns why argument `n` has no value; empty: it has one.
  [[nodiscard]] std::string_view why_not(std::size_t n) const noexcept;
  [[nodiscard]] std::string_view why_no_count(std::size_t n) const noexcept;
  /// Returns the bits of an argument that has a value; for the length of a list the number of its elements.
  [[nodiscard]] std::uint64_t bits(std::size_t n) const noexcept;

  const usdt_event* header_ = nullptr;
  const usdt_event_arg* slots_ = nullptr;
  const std::uint64_t* stack_ = nullptr;
  const char* strings_ = nullptr;
  const AttachPlan* plan_ = nullptr;
  const std::shared_ptr<const AttachPlan>* shared_plan_ = nullptr;  ///< null: the plan is somebody else's
  const std::shared_ptr<const AttributeKeys>* keys_ = nullptr;
  const PlannedSite* site_ = nullptr;
  const std::vector<Arg>* args_ = nullptr;
  EventLayout layout_;
};

/// Holds an event that outlives its callback: it has a copy of the record, in which arguments and texts take only the
/// room that they need, and a share in the plan of its tracer. (A plan given to Event::from() as a mere reference has
/// to live as long.) Copies share that memory, which nobody changes: several threads may read them at once.
///     std::vector<usdt::OwnedEvent> kept;
///     tracer.poll([&](const usdt::Event& event) { kept.emplace_back(event); }, 100ms);
class OwnedEvent {
 public:
  /// Copies `event`.
  explicit OwnedEvent(const Event& event);

  /// Returns the event, valid as long as this.
  [[nodiscard]] const Event& operator*() const noexcept { return event_; }
  /// Reaches a member of the event.
  [[nodiscard]] const Event* operator->() const noexcept { return &event_; }

 private:
  friend class EventCopies;
  OwnedEvent(const Event& event, std::shared_ptr<const void> memory) : event_(event), memory_(std::move(memory)) {}

  Event event_;
  std::shared_ptr<const void> memory_;
};

/// Returns a field of the hit that is a number, as questions have it: of calls and spans `nsecs` is of their end, all
/// else is of their beginning; `probe` is the number of the probe in the plan. Nothing: this event does not have it.
[[nodiscard]] std::optional<std::uint64_t> number_of(const Event& event, HitField field);

/// Returns HitField::trace_id or span_id of the hit, as text. Errors: those of Event::thread_context().
[[nodiscard]] Result<std::string> context_text(const Event& event, HitField field);

/// Returns the attribute of the thread's context that is called `key`; empty: it has none. Errors: those of
/// Event::thread_attributes(); not_found (it is not known what all of its attributes are called).
[[nodiscard]] Result<std::string> attribute_text(const Event& event, std::string_view key);

}  // namespace v1
}  // namespace usdt
