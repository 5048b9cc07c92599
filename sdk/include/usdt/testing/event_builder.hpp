// SPDX-License-Identifier: BSD-2-Clause
// Events for tests of a consumer, without a kernel, a privilege or a traced program:
//
//     auto plan = usdt::testing::synthetic_plan("db", "query", usdt::Machine::x86_64, "8@%rdi -4@%esi", {0});
//     auto record = usdt::testing::EventBuilder(plan).pid(42).arg(0, 0x1000).text(0, "select 1").arg(1, -1).build();
//     my_callback(*usdt::Event::from(*record, plan, usdt::testing::layout_of(plan)));
//
// Threads: plain values. Plan and record have to outlive the Event.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "usdt/decode.hpp"
#include "usdt/event.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {
namespace testing {

/// Makes a plan of one probe with one site whose note would read `args_text`; `strings`: TextOptions::numbers.
[[nodiscard]] inline AttachPlan synthetic_plan(std::string provider, std::string name, Machine machine,
                                               std::string_view args_text,
                                               const std::vector<std::uint8_t>& strings = {}) {
  AttachPlan plan;
  const auto file = plan.files.add({{"/synthetic", "/synthetic", false}, nullptr});
  const auto probe = plan.probes.add({file, std::move(provider), std::move(name)});
  const auto site = plan.sites.add({.probe = probe, .point = FilePlace{.file = file}});
  const auto group = plan.groups.add();
  plan.groups[group].of = file;
  plan.groups[group].sites.push_back(site);
  plan.args.add(ArgDecoder(machine).decode(args_text));
  EncodedSpec spec;
  spec.args.resize(plan.args[0].size());
  for (const std::uint8_t n : strings) {
    if (n >= spec.args.size()) continue;
    spec.args[n].capture = USDT_CAPTURE_STRING;
    ++plan.string_slots;
  }
  plan.max_args = static_cast<std::uint32_t>(spec.args.size());
  plan.specs.add(std::move(spec));
  return plan;
}

/// Returns the layout that a trace of `plan` would use with strings of up to `string_size` bytes.
[[nodiscard]] inline EventLayout layout_of(const AttachPlan& plan, std::uint32_t string_size = 200) {
  EventLayout layout{plan.max_args, plan.string_slots, plan.string_slots ? string_size + 2 : 0, 0};
  layout.owners = plan.owners;
  layout.contexts = plan.contexts;
  layout.attributes = plan.attributes;
  return layout;
}

/// Fabricates the record of one hit, as the stock program would have written it.
class EventBuilder {
 public:
  /// Begins a record of site 0, with every argument 0 and no text; `plan` has to live as long.
  explicit EventBuilder(const AttachPlan& plan, std::uint32_t string_size = 200)
      : EventBuilder(plan, layout_of(plan, string_size)) {}
  /// Begins one of that layout.
  EventBuilder(const AttachPlan& plan, const EventLayout& layout)
      : plan_(plan), layout_(layout), bytes_(layout_.record_size()) {
    header().arg_cnt = plan.max_args;
    set_comm("synthetic");
  }

  /// Sets a field of the event; pid() sets the tid, too.
  ///@{
  EventBuilder& site(std::uint32_t number) { return header().site = number, *this; }
  EventBuilder& timestamp(std::uint64_t ns) { return header().ts = ns, *this; }
  EventBuilder& duration(std::uint64_t ns) { return header().duration = ns, *this; }
  EventBuilder& pid(std::uint32_t pid) { return header().pid = header().tid = pid, *this; }
  EventBuilder& tid(std::uint32_t tid) { return header().tid = tid, *this; }
  EventBuilder& cpu(std::uint32_t cpu) { return header().cpu = cpu, *this; }
  EventBuilder& comm(std::string_view name) { return set_comm(name), *this; }
  ///@}

  /// Sets the user, group, cgroup and parent of the process, for a plan with AttachPlan::owners.
  EventBuilder& owner(const HitOwner& owner) {
    if (!layout_.owners) return mistake("the plan's events do not say whose their processes are");
    const usdt_owner is{
        .uid_gid = owner.uid | std::uint64_t{owner.gid} << 32, .cgroup = owner.cgroup, .parent = owner.ppid};
    std::memcpy(bytes_.data() + layout_.owner_at(), &is, sizeof(is));
    return *this;
  }

  /// Sets the trace and span that the thread worked for, for a plan with AttachPlan::contexts.
  EventBuilder& thread_context(const ThreadContext& context) {
    if (!layout_.contexts) return mistake("the plan's events do not say what their threads work for");
    usdt_thread_context is{};
    std::ranges::copy(context.trace_id, is.trace_id);
    std::ranges::copy(context.span_id, is.span_id);
    is.valid = 1;
    is.flags = context.flags;
    is.state = USDT_CONTEXT_SET;
    std::memcpy(bytes_.data() + layout_.context_at(), &is, sizeof(is));
    return *this;
  }

  /// Adds an attribute of that context, with the number of its key, for a plan with AttachPlan::attributes.
  EventBuilder& thread_attribute(std::uint8_t key, std::string_view text) {
    if (!layout_.attributes) return mistake("the plan's events have no attributes of their threads");
    auto& is = *reinterpret_cast<usdt_thread_attributes*>(bytes_.data() + layout_.attributes_at());
    const std::size_t at = static_cast<std::size_t>(is.size), size = std::min<std::size_t>(text.size(), 255);
    if (at + 2 + size > std::size_t{USDT_CONTEXT_ATTRIBUTE_BYTES})
      return mistake("the attributes of the thread are longer than a record has room for");
    is.bytes[at] = key;
    is.bytes[at + 1] = static_cast<__u8>(size);
    std::memcpy(is.bytes + at + 2, text.data(), size);
    is.size = static_cast<__s32>(at + 2 + size);
    reinterpret_cast<usdt_thread_context*>(bytes_.data() + layout_.context_at())->attributes_size =
        static_cast<__u16>(is.size);
    return *this;
  }

  /// Sets the thread that ended the span, for a layout with EventLayout::enders.
  EventBuilder& ended_by(const SpanEnder& thread) {
    if (!layout_.enders) return mistake("the layout's events do not say who ended them");
    usdt_ender ender{.pid = thread.pid, .tid = thread.tid, .comm = {}};
    thread.comm.copy(ender.comm, sizeof(ender.comm) - 1);
    ender.comm[sizeof(ender.comm) - 1] = USDT_ENDED;
    std::memcpy(bytes_.data() + layout_.ender_at(), &ender, sizeof(ender));
    return *this;
  }

  /// Sets the value of argument `n`; a float as its bits, as in a register.
  template <class T>
  requires std::is_arithmetic_v<T> EventBuilder& arg(std::size_t n, T value) {
    usdt_event_arg* slot = slot_of(n);
    if (slot == nullptr) return *this;
    if constexpr (std::is_same_v<T, double>)
      slot->bits = std::bit_cast<std::uint64_t>(value);
    else if constexpr (std::is_same_v<T, float>)
      slot->bits = std::bit_cast<std::uint32_t>(value);
    else
      slot->bits = static_cast<std::uint64_t>(value);
    return *this;
  }
  /// Makes argument `n` one that could not be read, with a negative errno.
  EventBuilder& error(std::size_t n, std::int32_t negative_errno) {
    if (usdt_event_arg* slot = slot_of(n)) slot->error = negative_errno;
    return *this;
  }
  /// Sets the text that argument `n` points to. A text longer than the string size is cut as the kernel would.
  EventBuilder& text(std::size_t n, std::string_view text) {
    usdt_event_arg* slot = slot_of(n);
    if (slot == nullptr) return *this;
    const auto string = string_of(n);
    if (!string) return mistake("argument " + std::to_string(n) + " is not captured as text");
    const std::size_t size = std::min<std::size_t>(text.size(), layout_.string_size - 1);
    char* at = reinterpret_cast<char*>(slots() + layout_.max_args) + *string * std::size_t{layout_.string_size};
    std::memcpy(at, text.data(), size);
    at[size] = '\0';
    slot->text = static_cast<std::int32_t>(size + 1);
    return *this;
  }

  /// Returns the bytes of the record. Errors: invalid_argument, for the first thing that the plan does not have.
  [[nodiscard]] Result<std::vector<std::byte>> build() const {
    if (!mistake_.empty()) return fail(ErrorKind::invalid_argument, mistake_);
    return bytes_;
  }

 private:
  usdt_event& header() { return *reinterpret_cast<usdt_event*>(bytes_.data()); }
  usdt_event_arg* slots() { return reinterpret_cast<usdt_event_arg*>(bytes_.data() + sizeof(usdt_event)); }
  usdt_event_arg* slot_of(std::size_t n) {
    if (n < layout_.max_args) return slots() + n;
    mistake("the plan has no argument " + std::to_string(n));
    return nullptr;
  }
  [[nodiscard]] std::optional<std::size_t> string_of(std::size_t n) {
    const Index<PlannedSite> site(header().site);
    if (!plan_.sites.contains(site)) return std::nullopt;
    return string_slot(plan_.specs[plan_.sites[site].spec], n);
  }
  EventBuilder& mistake(std::string what) {
    if (mistake_.empty()) mistake_ = std::move(what);
    return *this;
  }
  void set_comm(std::string_view name) {
    std::memset(header().comm, 0, sizeof(header().comm));
    std::memcpy(header().comm, name.data(), std::min(name.size(), sizeof(header().comm) - 1));
  }

  const AttachPlan& plan_;
  EventLayout layout_;
  std::vector<std::byte> bytes_;
  std::string mistake_;  ///< the first
};

}  // namespace testing
}  // namespace v1
}  // namespace usdt
