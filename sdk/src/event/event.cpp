// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "event/event_copies.hpp"
#include "event/plain_text.hpp"
#include "kernel/tracer_frame.hpp"
#include "usdt/bits.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// A negative errno of usdt_read() or bpf_probe_read_user_str() in words.
std::string_view read_error(std::int32_t error) noexcept {
  switch (-error) {
    case EFAULT:
      return "memory could not be read (EFAULT: unmapped or paged out)";
    case ENODATA:
      return "thread-local: this kernel has no type information (BTF) to find the thread's segment base";
    case EOPNOTSUPP:
      return "operand is unreadable";
    default:
      return "memory could not be read";
  }
}

constexpr std::string_view kUnnamed = "the process does not say what it is called";

/// A step that failed has left its number as its text's length, and the address as its value.
std::string_view failed_step(const Arg& arg, const usdt_event_arg& slot) noexcept {
  const auto number = static_cast<std::size_t>(slot.text);
  if (number > arg.steps.size()) return read_error(slot.error);
  const Step& step = arg.steps[number - 1];
  return slot.bits == step.displacement ? step.if_null : step.if_unread;
}

/// Whether text `n` ends at a NUL before its length: of an array of characters that is how many there is room for.
bool ends_at_nul(const std::vector<Arg>& args, std::size_t n, std::uint8_t capture) noexcept {
  if (capture < USDT_CAPTURE_LENGTH) return true;
  if (!args[n].length || *args[n].length >= args.size()) return false;
  const Arg& length = args[*args[n].length];
  return length.hidden && std::holds_alternative<Constant>(length.location);
}

}  // namespace

Result<Event> Event::from(std::span<const std::byte> record, const AttachPlan& plan, const EventLayout& layout) {
  if (record.size() != layout.record_size())
    return fail(ErrorKind::malformed,
                fmt::format("event record has {} bytes, not {}", record.size(), layout.record_size()));
  Event event;
  event.plan_ = &plan;
  event.layout_ = layout;
  event.view(record.data());
  const Index<PlannedSite> site(event.header_->site);
  if (!plan.sites.contains(site))
    return fail(ErrorKind::malformed,
                fmt::format("event record of site {}, but the plan has {}", event.header_->site, plan.sites.size()));
  event.site_ = &plan.sites[site];
  event.args_ = &plan.args[event.site_->args];
  return event;
}

Result<Event> Event::from(std::span<const std::byte> record, const std::shared_ptr<const AttachPlan>& plan,
                          const EventLayout& layout) {
  if (!plan) return fail(ErrorKind::invalid_argument, "no plan of the event");
  auto event = from(record, *plan, layout);
  if (event) event->shared_plan_ = &plan;
  return event;
}

void Event::view(const std::byte* record) noexcept {
  header_ = reinterpret_cast<const usdt_event*>(record);
  slots_ = reinterpret_cast<const usdt_event_arg*>(record + sizeof(usdt_event));
  stack_ = reinterpret_cast<const std::uint64_t*>(slots_ + layout_.max_args);
  strings_ = reinterpret_cast<const char*>(stack_ + layout_.stack_depth);
}

OwnedEvent::OwnedEvent(const Event& event) : OwnedEvent(EventCopies::of(event)) {}

std::optional<std::size_t> string_slot(const EncodedSpec& spec, std::size_t n) noexcept {
  if (n >= spec.args.size() || spec.args[n].capture == USDT_CAPTURE_NONE) return std::nullopt;
  return std::count_if(spec.args.begin(), spec.args.begin() + static_cast<std::ptrdiff_t>(n),
                       [](const usdt_arg_spec& arg) { return arg.capture != USDT_CAPTURE_NONE; });
}

std::string_view Event::comm() const noexcept {
  return {header_->comm, ::strnlen(header_->comm, sizeof(header_->comm))};
}

std::optional<HitOwner> Event::owner() const noexcept {
  if (!layout_.owners) return std::nullopt;
  const auto* owner = reinterpret_cast<const usdt_owner*>(record().data() + layout_.owner_at());
  return HitOwner{.uid = static_cast<std::uint32_t>(owner->uid_gid),
                  .gid = static_cast<std::uint32_t>(owner->uid_gid >> 32),
                  .cgroup = owner->cgroup,
                  .ppid = static_cast<std::int32_t>(owner->parent)};
}

Result<std::optional<ThreadContext>> Event::thread_context() const {
  if (!layout_.contexts) return fail(ErrorKind::not_found, "it was not recorded");
  const auto* found = reinterpret_cast<const usdt_thread_context*>(record().data() + layout_.context_at());
  switch (found->state) {
    case USDT_CONTEXT_NONE:
      return std::optional<ThreadContext>();
    case USDT_CONTEXT_SET:
      break;
    case -ENOENT:
      return fail(ErrorKind::not_found, "it was not known yet where this process has it");
    case -EAGAIN:
      return fail(ErrorKind::io, "the thread was changing it");
    case -ENXIO:
      return fail(ErrorKind::not_found, "the kernel did not have the thread's pointer yet");
    case -EOPNOTSUPP:
      return fail(ErrorKind::not_supported, "this process does not tell where its libraries have their variables");
    case -ENODATA:
      return fail(ErrorKind::io, "the kernel does not say where threads have their variables");
    default:
      return fail(os_failure(ErrorKind::io, "the thread's context", -found->state));
  }
  ThreadContext context;
  std::ranges::copy(found->trace_id, context.trace_id.begin());
  std::ranges::copy(found->span_id, context.span_id.begin());
  context.flags = found->flags;
  // Both all zeros stand for none (OTEP 4947).
  ThreadContext none;
  none.flags = context.flags;
  return context == none ? std::nullopt : std::optional(context);
}

Result<ThreadAttributes> Event::thread_attributes() const {
  if (!layout_.attributes) return fail(ErrorKind::not_found, "it was not recorded");
  if (auto context = thread_context(); !context) return fail(context.error());
  const auto* found = reinterpret_cast<const usdt_thread_attributes*>(record().data() + layout_.attributes_at());
  if (found->size < 0) return fail(os_failure(ErrorKind::io, "the attributes of the thread's context", -found->size));
  const std::span bytes(found->bytes, std::min<std::size_t>(static_cast<std::size_t>(found->size),
                                                            std::size_t{USDT_CONTEXT_ATTRIBUTE_BYTES}));
  const AttributeKeys* const keys = attribute_keys();
  ThreadAttributes attributes;
  const auto* context = reinterpret_cast<const usdt_thread_context*>(record().data() + layout_.context_at());
  // A later one with the same key would count.
  if (context->attributes_size > bytes.size())
    return fail(ErrorKind::limit, fmt::format("the thread has {} bytes of attributes, of which {} are read",
                                              context->attributes_size, bytes.size()));
  // One that goes beyond the end is none (OTEP 4947).
  for (std::size_t at = 0; at + 2 <= bytes.size() && at + 2 + bytes[at + 1] <= bytes.size(); at += 2U + bytes[at + 1]) {
    const std::string_view text(reinterpret_cast<const char*>(&bytes[at]) + 2, bytes[at + 1]);
    if (keys == nullptr || bytes[at] >= keys->names.size() || keys->names[bytes[at]].empty()) {
      attributes.others = keys && !keys->why.empty() ? std::string_view(keys->why) : kUnnamed;
      continue;
    }
    const std::string& key = keys->names[bytes[at]];
    const auto same = std::ranges::find(attributes.known, std::string_view(key), &ThreadAttribute::key);
    if (same == attributes.known.end())
      attributes.known.push_back({key, text});
    else
      same->text = text;
  }
  return attributes;
}

std::optional<SpanEnder> Event::ended_by() const noexcept {
  if (!layout_.enders) return std::nullopt;
  const auto* ender = reinterpret_cast<const usdt_ender*>(record().data() + layout_.ender_at());
  constexpr std::size_t kLast = sizeof(ender->comm) - 1;
  if (ender->comm[kLast] != USDT_ENDED) return std::nullopt;
  return SpanEnder{.pid = ender->pid, .tid = ender->tid, .comm = {ender->comm, ::strnlen(ender->comm, kLast)}};
}

Result<std::span<const std::uint64_t>> Event::kernel_stack() const {
  if (header_->stack_size < 0) return fail(os_failure(ErrorKind::io, "the kernel's stack", -header_->stack_size));
  const std::size_t depth = static_cast<std::size_t>(header_->stack_size) / sizeof(std::uint64_t);
  std::span stack(stack_, std::min<std::size_t>(depth, layout_.stack_depth));
  stack = stack.subspan(std::min<std::size_t>(stack.size(), site_->tracer_frames));
  const bool tracepoint = std::holds_alternative<TracepointPlace>(site_->point);
  while (site_->tracer_frames > 0 && tracepoint && !stack.empty() && kernel::is_tracer_frame(stack[0]))
    stack = stack.subspan(1);
  return stack.first(std::min<std::size_t>(stack.size(), layout_.stack_shown));
}

Result<RecordedStack> Event::user_stack() const {
  if (layout_.user_stack_depth == 0) return RecordedStack{};
  const auto* record = reinterpret_cast<const std::byte*>(header_);
  const auto* stack = reinterpret_cast<const usdt_user_stack*>(record + layout_.user_stack_at());
  if (stack->size < 0) return fail(os_failure(ErrorKind::io, "the process's stack", -stack->size));
  const auto* addresses = reinterpret_cast<const std::uint64_t*>(stack + 1);
  const auto* memory = reinterpret_cast<const std::byte*>(addresses + layout_.user_addresses);
  const auto found = static_cast<std::size_t>(stack->size) / sizeof(std::uint64_t);
  const std::uint32_t room = layout_.user_copy_piece * (layout_.user_copy_pieces + 1);
  RecordedStack recorded;
  recorded.addresses = {addresses, std::min<std::size_t>(found, layout_.user_addresses)};
  if (!std::holds_alternative<FilePlace>(site_->point) && recorded.addresses.empty()) return recorded;
  recorded.registers = {reinterpret_cast<const std::uint64_t*>(stack->regs), USDT_USER_REGS};
  const auto* behind = std::ranges::find(stack->returns, 0U, &usdt_replaced_return::address);
  recorded.replaced = {std::begin(stack->returns), behind};
  recorded.memory = {memory, std::min(stack->copied, room)};
  recorded.cut = recorded.memory.size() + layout_.user_copy_piece > room;
  return recorded;
}

RecordedScript Event::script() const noexcept {
  if (layout_.script_depth == 0) return {};
  const auto* stack = reinterpret_cast<const usdt_script_stack*>(record().data() + layout_.script_at());
  const auto* frames = reinterpret_cast<const usdt_script_frame*>(stack + 1);
  const bool known = stack->state <= USDT_SCRIPT_MOST_THREADS;
  return {.state = known ? static_cast<usdt_script_state>(stack->state) : USDT_SCRIPT_NONE,
          .runtime = stack->runtime,
          .version = stack->version,
          .frames = {frames, std::min(stack->count, layout_.script_depth)}};
}

std::string_view Event::why_not(std::size_t n) const noexcept {
  if (n >= args_->size()) return "no such argument";
  const Arg& arg = (*args_)[n];
  if (arg.element) {
    if (const auto reason = why_not(arg.element->length); !reason.empty()) return reason;
    if (bits(arg.element->length) <= arg.element->index) return "behind the last element";
  }
  if (arg.alternative) {
    const std::size_t discriminant = arg.alternative->discriminant;
    if (const auto reason = why_not(discriminant); !reason.empty()) return reason;
    if (!arg.alternative->values.has(bits(discriminant))) return arg.alternative->reason;
  }
  if (const auto reason = arg.why_unreadable(); !reason.empty()) return reason;
  if (n >= layout_.max_args || n >= header_->arg_cnt) return "argument was not recorded";
  if (slots_[n].error == -ENODATA && (arg.result || !std::holds_alternative<FilePlace>(site_->point)))
    return "not known at this end of the call";
  if (slots_[n].error != 0 && slots_[n].text > 0) return failed_step(arg, slots_[n]);
  if (slots_[n].error != 0) return read_error(slots_[n].error);
  if (arg.type.kind == TypeKind::boolean && arg.type.size == 1 && slots_[n].bits > 1)
    return "no truth value: neither 0 nor 1";
  return arg.counts ? why_no_count(n) : std::string_view{};
}

/// Says why a value that was read for the length of a list is none: nobody has made the list yet, or it is gone.
std::string_view Event::why_no_count(std::size_t n) const noexcept {
  const ElementCount& counts = *(*args_)[n].counts;
  if (counts.first) {
    if (const auto why = why_not(*counts.first); !why.empty()) return why;
    const std::uint64_t first = slots_[*counts.first].bits;
    if (slots_[n].bits < first) return "no list: its end is before its beginning";
    if ((slots_[n].bits - first) % counts.size != 0) return "no list: it ends within an element";
  }
  return bits(n) > counts.most ? "no list: its length is below 0, or more than fits into memory" : std::string_view{};
}

std::uint64_t Event::bits(std::size_t n) const noexcept {
  const auto& counts = (*args_)[n].counts;
  if (!counts || !counts->first) return slots_[n].bits;
  return (slots_[n].bits - slots_[*counts->first].bits) / counts->size;
}

Value Event::value(std::size_t n) const noexcept {
  if (const auto why = why_not(n); !why.empty()) return ArgError{why};
  const Arg& arg = (*args_)[n];
  const std::uint64_t bits = this->bits(n);
  if (arg.type.is_float())
    return float_from_bits(bits, arg.type.size).value_or(0);  // the planner lets no other size through
  if (arg.type.is_signed) return static_cast<std::int64_t>(bits);
  return bits;
}

Result<Text> Event::text(std::size_t n) const noexcept {
  auto text = captured_text(n);
  const auto& args = plan_->specs[site_->spec].args;
  const bool likely = n < args.size() && args[n].capture == USDT_CAPTURE_LIKELY && why_not(n).empty();
  if (!likely || (text && event::is_plainly_text(text->bytes, text->truncated))) return text;
  return fail(ErrorKind::not_found, "not plainly text");
}

Result<Text> Event::captured_text(std::size_t n) const noexcept {
  if (const auto why = why_not(n); !why.empty()) return fail(ErrorKind::not_found, std::string(why));
  const auto slot = string_slot(plan_->specs[site_->spec], n);
  if (!slot || *slot >= layout_.string_slots)
    return fail(ErrorKind::not_found, fmt::format("no text was captured for this {}", type_name((*args_)[n].type)));
  const std::int32_t length = slots_[n].text;
  // Bytes that were read by a length that is not there, as of an empty optional, are none. Of an end before the
  // beginning the program tells.
  const auto& by = (*args_)[n].length;
  const bool before = length == -ERANGE && by && (*args_)[*by].counts;
  if (const auto why = by && !before ? why_not(*by) : std::string_view(); !why.empty())
    return fail(ErrorKind::not_found, std::string(why));
  if (length <= 0) {
    if (length == -ERANGE) return fail(ErrorKind::io, "its length is below 0");
    if (slots_[n].bits == 0) return fail(ErrorKind::not_found, "null pointer");
    return fail(ErrorKind::io, std::string(read_error(length)));
  }
  const char* start = text_start(n, *slot);
  const auto limit = static_cast<std::size_t>(layout_.string_size) - 2;
  auto size = std::min(static_cast<std::size_t>(length) - 1, limit + 1);
  if (ends_at_nul(*args_, n, plan_->specs[site_->spec].args[n].capture)) size = ::strnlen(start, size);
  return Text{{start, std::min(size, limit)}, size > limit};
}

const char* Event::text_start(std::size_t n, std::size_t slot) const noexcept {
  if (!layout_.packed_texts) return strings_ + slot * layout_.string_size;
  const auto& args = plan_->specs[site_->spec].args;
  std::size_t before = 0;
  for (std::size_t each = 0; each < n; ++each)
    if (args[each].capture != USDT_CAPTURE_NONE) before += layout_.captured_bytes(slots_[each]);
  return strings_ + before;
}

Result<std::uint64_t> Event::typed_bits(std::size_t n, std::size_t size, bool is_signed, bool is_float) const {
  if (const auto why = why_not(n); !why.empty()) return fail(ErrorKind::not_found, fmt::format("arg{}: {}", n, why));
  const Type& type = (*args_)[n].type;
  if (type.size != size || type.is_float() != is_float || (!is_float && type.is_signed != is_signed))
    return fail(ErrorKind::type_mismatch, fmt::format("arg{} is {}, not {}{}", n, type_name(type),
                                                      is_float    ? 'f'
                                                      : is_signed ? 'i'
                                                                  : 'u',
                                                      8 * size));
  return bits(n);
}

}  // namespace v1
}  // namespace usdt
