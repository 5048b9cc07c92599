// SPDX-License-Identifier: BSD-2-Clause
// Reads the fields of a hit that its event has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/try.hpp"
#include "usdt/event.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Number = std::optional<std::uint64_t>;

/// A number of the process's owner, if the event has that.
template <auto member>
Number of_owner(const Event& event) {
  const auto owner = event.owner();
  return owner ? Number((*owner).*member) : std::nullopt;
}

/// Nothing, too, where the kernel or an earlier version did not tell.
Number parent_of(const Event& event) {
  const auto owner = event.owner();
  return owner && owner->ppid != USDT_NO_PARENT ? Number(static_cast<std::uint64_t>(owner->ppid)) : std::nullopt;
}

Number address_of(const Event& event) {
  const auto pc = pc_of(event.plan(), event.site());
  return pc ? Number(pc->value) : std::nullopt;
}

/// How an event has a field. Outputs show the number as an unsigned one: one that is not known is nothing, and not -1.
struct FieldRow {
  HitField field;
  Number (*read)(const Event& event);
};

constexpr std::array kFieldRows{
    FieldRow{HitField::pid, [](const Event& event) { return Number(event.pid()); }},
    FieldRow{HitField::tid, [](const Event& event) { return Number(event.tid()); }},
    FieldRow{HitField::cpu, [](const Event& event) { return Number(event.cpu()); }},
    FieldRow{HitField::uid, of_owner<&HitOwner::uid>},
    FieldRow{HitField::gid, of_owner<&HitOwner::gid>},
    FieldRow{HitField::ppid, parent_of},
    FieldRow{HitField::cgroup, of_owner<&HitOwner::cgroup>},
    FieldRow{HitField::nsecs, [](const Event& event) { return Number(event.timestamp() + event.duration()); }},
    FieldRow{HitField::duration, [](const Event& event) { return Number(event.duration()); }},
    FieldRow{HitField::probe, [](const Event& event) { return Number(event.site().probe.value); }},
    FieldRow{HitField::ip, address_of},
};

}  // namespace

Result<std::string> context_text(const Event& event, HitField field) {
  const auto context = event.thread_context();
  if (!context) return fail(context.error());
  if (!*context) return std::string();
  return field == HitField::span_id ? fmt::format("{:02x}", fmt::join((*context)->span_id, ""))
                                    : fmt::format("{:02x}", fmt::join((*context)->trace_id, ""));
}

Result<std::string> attribute_text(const Event& event, std::string_view key) {
  const ThreadAttributes attributes = TRY(event.thread_attributes());
  const auto found = std::ranges::find(attributes.known, key, &ThreadAttribute::key);
  if (found != attributes.known.end()) return std::string(found->text);
  if (!attributes.others.empty()) return fail(ErrorKind::not_found, std::string(attributes.others));
  return std::string();
}

std::optional<std::uint64_t> number_of(const Event& event, HitField field) {
  const auto* row = std::ranges::find(kFieldRows, field, &FieldRow::field);
  return row != kFieldRows.end() ? row->read(event) : std::nullopt;
}

}  // namespace v1
}  // namespace usdt
