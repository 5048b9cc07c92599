// SPDX-License-Identifier: BSD-2-Clause
#include "record/events.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstring>
#include <utility>

namespace usdt::record {
namespace {

/// Codes of a stack in an event: nothing, why it could not be had, or a number of the block, counted from here.
constexpr std::uint64_t kNoStack = 0, kStackError = 1, kFirstStack = 2;
constexpr std::int64_t kMostErrno = 4095;  // MAX_ERRNO of the kernel's include/linux/err.h
constexpr std::size_t kLastOfComm = sizeof(usdt_ender::comm) - 1;
enum FrameFlag : std::uint8_t { kReturnAddress = 1, kOfKernel = 2, kInlined = 4, kHasOffset = 8 };
/// The language of a function of a script, in the bits above: 0, none. Readers of 1.0 pass over these.
constexpr unsigned kLanguageShift = 4;
constexpr std::array<std::string_view, 6> kLanguages{"", "python", "php", "javascript", "java", "ruby"};
/// Frames of this one have the definition and the tier behind all else.
constexpr std::string_view kCompiledLanguage = "javascript";
constexpr auto kLastIssue = static_cast<std::uint8_t>(FrameIssue::code_replaced);
constexpr auto kLastTier = static_cast<std::uint8_t>(CodeTier::optimized);

const usdt_event& header_of(const Event& event) { return *reinterpret_cast<const usdt_event*>(event.record().data()); }
const usdt_event_arg* args_of(const Event& event) {
  return reinterpret_cast<const usdt_event_arg*>(event.record().data() + sizeof(usdt_event));
}
std::uint8_t language_bits(std::string_view language) {
  const auto known = std::ranges::find(kLanguages, language);
  return static_cast<std::uint8_t>(known == kLanguages.end() ? 0 : (known - kLanguages.begin()) << kLanguageShift);
}
/// Whether somebody else than the thread that began a span has ended it, or nobody.
bool has_other_ender(const Event& event) {
  const SpanEnder beginner{event.pid(), event.tid(), event.comm()};
  return event.layout().enders && event.ended_by() != beginner;
}
/// Differences modulo 2^64, folded.
std::int64_t step(std::uint64_t from, std::uint64_t to) { return static_cast<std::int64_t>(to - from); }

}  // namespace

SiteState& SiteStates::of(std::uint32_t site, std::size_t args) {
  if (site >= sites_.size()) sites_.resize(site + std::size_t{1});
  SiteState& state = sites_[site];
  if (state.block != block_) {
    state.block = block_;
    state.ip = 0;
    std::ranges::fill(state.bits, 0);
  }
  if (state.bits.size() < args) state.bits.resize(args);
  return state;
}

StringSlots string_slots(const EncodedSpec& spec, std::uint32_t slots) {
  StringSlots found(spec.args.size());
  std::uint32_t next = 0;
  for (std::size_t n = 0; n < spec.args.size(); ++n) {
    if (spec.args[n].capture != USDT_CAPTURE_NONE && next < slots) found[n] = next++;
  }
  return found;
}

void EventEncoder::clear() {
  out_.clear();
  events_ = 0;
  first_ = last_ = 0;
  wall_offset_.reset();
  weight_ = usual_weight_;
  sites_.next_block();
  threads_.clear();
  enders_.clear();
  contexts_.clear();
  stacks_.clear();
  frames_.clear();
}

const StringSlots& EventEncoder::slots_of(const Event& event) {
  const std::uint32_t spec = event.site().spec.value;
  if (spec >= slots_.size()) slots_.resize(spec + std::size_t{1});
  if (slots_[spec].empty())
    slots_[spec] = string_slots(event.plan().specs[event.site().spec], event.layout().string_slots);
  return slots_[spec];
}

void EventEncoder::clock(std::int64_t wall_offset) {
  if (wall_offset_ == wall_offset) return;
  wall_offset_ = wall_offset;
  out_.u8(kClock);
  out_.zigzag(wall_offset);
}

void EventEncoder::weight(double weight) {
  if (weight_ == weight) return;
  weight_ = weight;
  out_.u8(kWeight);
  out_.varint(std::bit_cast<std::uint64_t>(weight));
}

/// A thread that becomes another user's, or goes to another cgroup, is another one.
void EventEncoder::thread(const Event& event) {
  const usdt_event& header = header_of(event);
  Thread thread{std::uint64_t{header.pid} << 32 | header.tid, {}, event.owner().value_or(HitOwner())};
  static_assert(sizeof(thread.comm) == sizeof(header.comm));
  std::memcpy(thread.comm, header.comm, sizeof(thread.comm));
  if (!threads_.empty() && last_thread_ == thread) return out_.varint(last_number_);
  const auto [known, is_new] = threads_.try_emplace(thread, threads_.size());
  last_thread_ = thread;
  last_number_ = known->second;
  out_.varint(known->second);
  if (!is_new) return;
  ids_and_name(thread);
  if (!event.layout().owners) return;
  out_.varint(thread.owner.uid);
  out_.varint(thread.owner.gid);
  out_.varint(thread.owner.cgroup);
  if (event.layout().parents) out_.zigzag(thread.owner.ppid);
}

void EventEncoder::ender(const std::optional<SpanEnder>& ender) {
  Thread thread;
  char* const comm = reinterpret_cast<char*>(thread.comm);
  if (ender) {
    thread.ids = std::uint64_t{ender->pid} << 32 | ender->tid;
    ender->comm.copy(comm, kLastOfComm);
    comm[kLastOfComm] = USDT_ENDED;
  }
  const auto [known, is_new] = enders_.try_emplace(thread, enders_.size());
  out_.varint(known->second);
  if (is_new) ids_and_name(thread);
}

/// Written once in a block, since a thread has many hits in one span.
void EventEncoder::context(const Event& event) {
  usdt_thread_context is;
  std::memcpy(&is, event.record().data() + event.layout().context_at(), sizeof(is));
  if (is.state != USDT_CONTEXT_SET)
    is = {.trace_id = {}, .span_id = {}, .valid = 0, .flags = 0, .attributes_size = 0, .state = is.state};
  ByteWriter& text = context_text_;
  text.clear();
  text.zigzag(is.state);
  if (is.state == USDT_CONTEXT_SET) {
    text.raw(is.trace_id, sizeof(is.trace_id));
    text.raw(is.span_id, sizeof(is.span_id));
    text.u8(is.flags);
    if (event.layout().attributes) attributes(event, is.attributes_size);
  }
  const auto [known, is_new] = contexts_.try_emplace(std::string(text.view()), contexts_.size());
  out_.varint(known->second);
  if (is_new) out_.raw(text.bytes().data(), text.size());
}

/// As they were read, with the name of each key that is among them.
void EventEncoder::attributes(const Event& event, std::uint32_t there_were) {
  const auto& is =
      *reinterpret_cast<const usdt_thread_attributes*>(event.record().data() + event.layout().attributes_at());
  ByteWriter& text = context_text_;
  text.zigzag(is.size);
  if (is.size < 0) return;
  const auto size = std::min(static_cast<std::size_t>(is.size), std::size_t{USDT_CONTEXT_ATTRIBUTE_BYTES});
  text.varint(there_were - std::min<std::size_t>(there_were, size));
  if (size == 0) return;
  text.raw(is.bytes, size);
  const AttributeKeys* const keys = event.attribute_keys();
  std::bitset<256> written;
  for (std::size_t at = 0; at + 2 <= size; at += 2U + is.bytes[at + 1]) {
    const std::size_t number = is.bytes[at];
    if (written.test(number)) continue;
    written.set(number);
    const bool has_name = keys != nullptr && number < keys->names.size();
    text.text(has_name ? std::string_view(keys->names[number]) : std::string_view());
  }
  text.text(keys != nullptr ? std::string_view(keys->why) : std::string_view());
}

void EventEncoder::ids_and_name(const Thread& thread) {
  out_.varint(thread.ids >> 32);
  out_.varint(static_cast<std::uint32_t>(thread.ids));
  const char* const comm = reinterpret_cast<const char*>(thread.comm);
  const std::size_t length = ::strnlen(comm, kLastOfComm);
  // One that ended a span, and has neither numbers nor a name, is not nobody.
  const bool is_blank_ender = thread.ids == 0 && length == 0 && comm[kLastOfComm] == USDT_ENDED;
  out_.text({comm, is_blank_ender ? 1 : length});
}

void EventEncoder::add(const Event& event, std::int64_t wall_offset, const EventStacks& stacks) {
  const usdt_event& header = header_of(event);
  const usdt_event_arg* const args = args_of(event);
  const std::size_t count = std::min(header.arg_cnt, event.layout().max_args);
  SiteState& site = sites_.of(header.site, count);
  if (events_++ == 0) first_ = last_ = header.ts;
  clock(wall_offset);
  weight(event.weight());
  const bool notes = std::any_of(args, args + count, [](const auto& arg) { return arg.error != 0 || arg.text != 0; });
  const bool other_ender = has_other_ender(event);
  out_.u8(static_cast<std::uint8_t>(kEvent | (header.ip != site.ip ? kHasIp : 0) |
                                    (header.duration != 0 ? kHasDuration : 0) | (notes ? kHasNotes : 0) |
                                    (stacks.kernel || stacks.user ? kHasStacks : 0) | (other_ender ? kHasEnder : 0)));
  out_.varint(header.site);
  out_.zigzag(step(last_, header.ts));
  last_ = header.ts;
  out_.varint(header.cpu);
  thread(event);
  if (other_ender) ender(event.ended_by());
  if (event.layout().contexts) context(event);
  if (header.ip != site.ip) out_.zigzag(step(site.ip, header.ip));
  site.ip = header.ip;
  if (header.duration != 0) out_.varint(header.duration);
  out_.varint(count);
  for (std::size_t n = 0; n < count; ++n) {
    out_.zigzag(step(site.bits[n], args[n].bits));
    site.bits[n] = args[n].bits;
  }
  if (notes) {
    const EventLayout& layout = event.layout();
    const StringSlots& slots = slots_of(event);
    const std::byte* const texts = event.record().data() + layout.texts_at();
    std::size_t next = 0;  // of packed ones
    for (std::size_t n = 0; n < count; ++n) {
      out_.zigzag(args[n].error);
      out_.zigzag(args[n].text);
      if (args[n].error != 0 || args[n].text <= 0 || n >= slots.size() || !slots[n]) continue;
      const std::size_t bytes = layout.captured_bytes(args[n]);
      out_.raw(texts + (layout.packed_texts ? next : *slots[n] * std::size_t{layout.string_size}), bytes);
      next += bytes;
    }
  }
  if (stacks.kernel || stacks.user) {
    stack(stacks.kernel);
    stack(stacks.user);
  }
}

void EventEncoder::stack(const Result<Stack>* stack) {
  if (stack == nullptr || (*stack && (*stack)->frames.empty() && (*stack)->end == FrameIssue::none))
    return out_.varint(kNoStack);
  if (!*stack) {
    out_.varint(kStackError);
    return out_.text(stack->error().message);
  }
  const std::size_t frames = std::min<std::size_t>((*stack)->frames.size(), kMostFrames);
  for (ByteWriter* out : {&stack_key_, &stack_text_}) {
    out->clear();
    out->u8(static_cast<std::uint8_t>((*stack)->end));
    out->varint(frames);
  }
  for (std::size_t n = 0; n < frames; ++n) frame((*stack)->frames[n]);
  const auto [number, is_new] = stacks_.try_emplace(std::string(stack_key_.view()), stacks_.size());
  out_.varint(kFirstStack + number->second);
  if (is_new) out_.raw(stack_text_.bytes().data(), stack_text_.size());
}

/// A stack is its frames' numbers; each frame is written behind the first of its own.
void EventEncoder::frame(const Frame& frame) {
  ByteWriter& out = frame_text_;
  out.clear();
  out.varint(frame.address.value);
  out.u8(static_cast<std::uint8_t>((frame.return_address ? kReturnAddress : 0) | (frame.kernel ? kOfKernel : 0) |
                                   (frame.inlined ? kInlined : 0) | (frame.offset ? kHasOffset : 0) |
                                   language_bits(frame.language)));
  out.text(frame.function);
  out.varint(frame.distance);
  out.text(frame.module);
  out.text(frame.build_id);
  if (frame.offset) out.varint(frame.offset->value);
  out.text(frame.source);
  out.varint(frame.line);
  out.u8(static_cast<std::uint8_t>(frame.issue));
  out.text(frame.detail);
  if (frame.language == kCompiledLanguage) {
    out.varint(frame.definition_line);
    out.varint(frame.definition_column);
    out.u8(static_cast<std::uint8_t>(frame.tier));
  }
  const auto [number, is_new] = frames_.try_emplace(std::string(out.view()), frames_.size());
  stack_key_.varint(number->second);
  stack_text_.varint(number->second);
  if (is_new) stack_text_.raw(out.bytes().data(), out.size());
}

EventDecoder::EventDecoder(const AttachPlan& plan, const EventLayout& layout) : plan_(plan), layout_(layout) {
  words_.resize(layout.record_size() / sizeof(std::uint64_t));
  for (const EncodedSpec& spec : plan.specs) slots_.push_back(string_slots(spec, layout.string_slots));
}

void EventDecoder::begin(ByteSpan block, std::uint64_t first) {
  in_ = ByteReader(block);
  last_ = first;
  weight_ = layout_.weight;
  sites_.next_block();
  threads_.clear();
  enders_.clear();
  contexts_.clear();
  stacks_.clear();
  frames_.clear();
}

Result<std::span<const std::byte>> EventDecoder::next() {
  const auto malformed = [] { return fail(ErrorKind::malformed, "an event that cannot be"); };
  kernel_ = user_ = {};
  while (!in_.at_end()) {
    const std::uint8_t entry = in_.u8();
    if ((entry & kKindBits) == kEvent) {
      if (!event(entry)) return malformed();
      return std::span<const std::byte>(record(), layout_.record_size());
    }
    if (entry == kClock) {
      wall_offset_ = in_.zigzag();
      continue;
    }
    if (entry != kWeight) return malformed();
    weight_ = std::bit_cast<double>(in_.varint());
    if (!(weight_ >= 1 && weight_ <= kMostWeight)) return malformed();
  }
  if (in_.failed()) return malformed();
  return std::span<const std::byte>();
}

bool EventDecoder::event(std::uint8_t entry) {
  auto& header = *reinterpret_cast<usdt_event*>(record());
  const std::uint32_t number = in_.below(plan_.sites.size());
  if (in_.failed()) return false;
  const PlannedSite& site = plan_.sites[Index<PlannedSite>(number)];
  header = {};
  header.site = number;
  last_ += static_cast<std::uint64_t>(in_.zigzag());
  header.ts = last_;
  header.cpu = in_.u32();
  const Thread thread = this->thread();
  header.pid = thread.pid;
  header.tid = thread.tid;
  std::copy(thread.comm.begin(), thread.comm.end(), header.comm);
  if (layout_.owners) *reinterpret_cast<usdt_owner*>(record() + layout_.owner_at()) = thread.owner;
  if (layout_.enders) (entry & kHasEnder) != 0 ? put_ender(ender()) : put_ender(thread, true);
  if (layout_.contexts) put_context(context());
  SiteState& state = sites_.of(number, 0);
  if ((entry & kHasIp) != 0) state.ip += static_cast<std::uint64_t>(in_.zigzag());
  header.ip = state.ip;
  if ((entry & kHasDuration) != 0) header.duration = in_.varint();
  header.arg_cnt = static_cast<std::uint32_t>(in_.up_to(layout_.max_args));
  if (!arguments(site, sites_.of(number, header.arg_cnt), (entry & kHasNotes) != 0)) return false;
  if ((entry & kHasStacks) != 0) {
    kernel_ = stack();
    user_ = stack();
  }
  return !in_.failed();
}

bool EventDecoder::arguments(const PlannedSite& site, SiteState& state, bool notes) {
  const auto& header = *reinterpret_cast<const usdt_event*>(record());
  auto* const args = reinterpret_cast<usdt_event_arg*>(record() + sizeof(usdt_event));
  for (std::uint32_t n = 0; n < header.arg_cnt; ++n) {
    state.bits[n] += static_cast<std::uint64_t>(in_.zigzag());
    args[n] = {.bits = state.bits[n], .error = 0, .text = 0};
  }
  const StringSlots& slots = slots_[site.spec.value];
  for (std::uint32_t n = 0; notes && n < header.arg_cnt; ++n) note(args[n], n < slots.size() ? slots[n] : std::nullopt);
  return !in_.failed();
}

void EventDecoder::note(usdt_event_arg& arg, std::optional<std::uint32_t> slot) {
  const std::int64_t error = in_.zigzag(), text = in_.zigzag();
  if (error != static_cast<std::int32_t>(error) || text != static_cast<std::int32_t>(text)) return in_.fail();
  arg.error = static_cast<std::int32_t>(error);
  arg.text = static_cast<std::int32_t>(text);
  if (arg.error != 0 || arg.text <= 0 || !slot) return;
  if (layout_.string_size == 0) return in_.fail();
  const ByteSpan bytes = in_.raw(layout_.captured_bytes(arg));
  auto* const start =
      reinterpret_cast<std::uint8_t*>(record()) + layout_.texts_at() + *slot * std::size_t{layout_.string_size};
  std::ranges::copy(bytes, start);
  start[bytes.size()] = 0;
}

EventDecoder::Thread EventDecoder::thread() {
  const std::uint64_t number = in_.up_to(threads_.size());
  if (in_.failed()) return {};
  if (number < threads_.size()) return threads_[number];
  Thread thread = ids_and_name();
  if (layout_.owners) {
    const std::uint64_t uid = in_.u32();
    thread.owner.uid_gid = uid | std::uint64_t{in_.u32()} << 32;
    thread.owner.cgroup = in_.varint();
    thread.owner.parent = layout_.parents ? static_cast<std::int32_t>(in_.zigzag()) : USDT_NO_PARENT;
  }
  if (in_.failed()) return {};
  return threads_.emplace_back(thread);
}

EventDecoder::Thread EventDecoder::ender() {
  const std::uint64_t number = in_.up_to(enders_.size());
  if (in_.failed()) return {};
  if (number < enders_.size()) return enders_[number];
  const Thread thread = ids_and_name();
  if (in_.failed()) return {};
  return enders_.emplace_back(thread);
}

const EventDecoder::Context& EventDecoder::context() {
  static const Context kNone;
  const std::uint64_t number = in_.up_to(contexts_.size());
  if (in_.failed()) return kNone;
  if (number < contexts_.size()) return contexts_[number];
  Context read;
  usdt_thread_context& context = read.ids;
  const std::int64_t state = in_.zigzag();
  if (state > USDT_CONTEXT_SET || state < -kMostErrno) in_.fail();
  context.state = static_cast<__s32>(state);
  if (state == USDT_CONTEXT_SET) {
    std::ranges::copy(in_.raw(sizeof(context.trace_id)), context.trace_id);
    std::ranges::copy(in_.raw(sizeof(context.span_id)), context.span_id);
    context.valid = 1;
    context.flags = in_.u8();
    if (layout_.attributes) attributes(read);
  }
  return in_.failed() ? kNone : contexts_.emplace_back(std::move(read));
}

/// Keys get numbers in the order in which they come: what is kept is no larger than what was read.
void EventDecoder::attributes(Context& context) {
  const std::int64_t size = in_.zigzag();
  if (size < -kMostErrno || size > USDT_CONTEXT_ATTRIBUTE_BYTES) return in_.fail();
  context.error = static_cast<std::int32_t>(std::min<std::int64_t>(size, 0));
  if (size < 0) return;
  const std::uint64_t more = in_.up_to(UINT16_MAX - static_cast<std::uint64_t>(size));
  const ByteSpan read = in_.raw(static_cast<std::size_t>(size));
  std::vector<std::uint8_t>& bytes = context.attributes;
  bytes.assign(read.begin(), read.end());
  context.ids.attributes_size = static_cast<__u16>(static_cast<std::uint64_t>(size) + more);
  if (size == 0) return;
  AttributeKeys keys;
  std::array<std::optional<std::uint8_t>, 256> numbers;
  for (std::size_t at = 0; at + 2 <= bytes.size() && !in_.failed(); at += 2U + bytes[at + 1]) {
    auto& number = numbers[bytes[at]];
    if (!number) {
      number = static_cast<std::uint8_t>(keys.names.size());
      keys.names.emplace_back(in_.text());
    }
    bytes[at] = *number;
  }
  keys.why = in_.text();
  context.keys = std::make_shared<const AttributeKeys>(std::move(keys));
}

void EventDecoder::put_context(const Context& context) {
  *reinterpret_cast<usdt_thread_context*>(record() + layout_.context_at()) = context.ids;
  keys_ = context.keys;
  if (!layout_.attributes) return;
  auto& attributes = *reinterpret_cast<usdt_thread_attributes*>(record() + layout_.attributes_at());
  attributes.size = context.error != 0 ? context.error : static_cast<__s32>(context.attributes.size());
  std::ranges::copy(context.attributes, attributes.bytes);
}

EventDecoder::Thread EventDecoder::ids_and_name() {
  Thread thread;
  thread.pid = in_.u32();
  thread.tid = in_.u32();
  thread.comm = in_.text();
  if (thread.comm.size() > sizeof(usdt_event::comm)) in_.fail();
  return thread;
}

void EventDecoder::put_ender(const Thread& thread, bool is_beginner) {
  auto& ender = *reinterpret_cast<usdt_ender*>(record() + layout_.ender_at());
  ender = {.pid = thread.pid, .tid = thread.tid, .comm = {}};
  std::copy(thread.comm.begin(), thread.comm.end(), ender.comm);
  const bool is_nobody = !is_beginner && thread.pid == 0 && thread.tid == 0 && thread.comm.empty();
  ender.comm[kLastOfComm] = is_nobody ? 0 : USDT_ENDED;
}

EventDecoder::StackRef EventDecoder::stack() {
  const std::uint64_t number = in_.up_to(kFirstStack + stacks_.size());
  if (in_.failed() || number == kNoStack) return {};
  if (number == kStackError) {
    const std::string_view why = in_.text();
    if (why.empty()) in_.fail();
    return {.number = {}, .error = why};
  }
  const std::size_t known = stacks_.size();
  if (number - kFirstStack == known) {
    if (known >= kMostNamed || frames_.size() >= kMostNamed) {
      in_.fail();
      return {};
    }
    RecordedStack& stack = stacks_.emplace_back();
    const std::uint8_t end = in_.u8();
    if (end > kLastIssue) in_.fail();
    stack.end = static_cast<FrameIssue>(end);
    const std::uint64_t frames = in_.up_to(kMostFrames);
    for (std::uint64_t n = 0; n < frames && !in_.failed(); ++n) {
      stack.frames.push_back(static_cast<std::uint32_t>(in_.up_to(frames_.size())));
      if (!in_.failed() && stack.frames.back() == frames_.size()) frame();
    }
  }
  return {.number = number - kFirstStack, .error = {}};
}

void EventDecoder::frame() {
  Frame& frame = frames_.emplace_back();
  frame.address = ProcessAddr(in_.varint());
  const std::uint8_t flags = in_.u8();
  frame.return_address = (flags & kReturnAddress) != 0;
  frame.kernel = (flags & kOfKernel) != 0;
  frame.inlined = (flags & kInlined) != 0;
  const std::size_t language = flags >> kLanguageShift;
  if (language < kLanguages.size())
    frame.language = kLanguages[language];
  else
    in_.fail();
  frame.function = in_.text();
  frame.distance = in_.varint();
  frame.module = in_.text();
  frame.build_id = in_.text();
  if ((flags & kHasOffset) != 0) frame.offset = FileOffset(in_.varint());
  frame.source = in_.text();
  frame.line = in_.u32();
  const std::uint8_t issue = in_.u8();
  if (issue > kLastIssue) in_.fail();
  frame.issue = static_cast<FrameIssue>(issue);
  frame.detail = in_.text();
  if (frame.language != kCompiledLanguage) return;
  frame.definition_line = in_.u32();
  frame.definition_column = in_.u32();
  const std::uint8_t tier = in_.u8();
  if (tier > kLastTier) in_.fail();
  frame.tier = static_cast<CodeTier>(tier);
}

Result<Stack> EventDecoder::stack_of(const StackRef& ref) const {
  if (!ref.error.empty()) return fail(ErrorKind::io, std::string(ref.error));
  Stack stack;
  if (!ref.number) return stack;
  const RecordedStack& recorded = stacks_[*ref.number];
  stack.end = recorded.end;
  stack.frames.reserve(recorded.frames.size());
  for (const std::uint32_t number : recorded.frames) stack.frames.push_back(frames_[number]);
  return stack;
}

}  // namespace usdt::record
