// SPDX-License-Identifier: BSD-2-Clause
#include <utility>

#include "handles.hpp"

namespace usdtc {
namespace {

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = usdt::utf8_sequence(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

usdtc_event_info info_of(const usdtc_event& owner) {
  const usdt::Event& event = owner.event();
  const usdt::PlannedProbe& probe = event.probe();
  usdtc_event_info info{};
  info.kind = USDTC_EVENT_HIT;
  info.probe = event.site().probe.value;
  info.site = event.site_number();
  info.arg_count = static_cast<std::uint32_t>(event.arg_count());
  info.time = event.timestamp();
  info.duration = event.duration();
  info.pid = event.pid();
  info.tid = event.tid();
  info.cpu = event.cpu();
  info.address = event.ip().value;
  info.user_cookie = event.user_cookie();
  info.comm = text_of(event.comm());
  info.full_name = owner.texts->full_names[info.probe].c_str();
  info.file = probe.file ? owner.texts->files[probe.file->value].c_str() : nullptr;
  info.provider = probe.provider.c_str();
  info.name = probe.name.c_str();
  info.wall_time = event.timestamp() + static_cast<std::uint64_t>(owner.wall_offset);
  info.weight = event.weight();
  return info;
}

void set_unreadable(usdtc_value& value, std::string_view why) {
  value.kind = USDTC_VALUE_UNREADABLE;
  value.text = text_of(why);
}

/// The text of an argument for which one was captured. What is only likely to be one stays a number where it is none.
void choose_text(const usdtc_event& owner, std::size_t n, usdtc_value& value) {
  const usdt::Event& event = owner.event();
  const usdt::EncodedSpec& spec = event.plan().specs[event.site().spec];
  if (!usdt::string_slot(spec, n)) return;
  auto text = event.text(n);
  if (text) return set_text(value, text->bytes, text->truncated);
  if (spec.args[n].capture == USDT_CAPTURE_LIKELY) return;
  if (value.number.u == 0) value.flags = USDTC_VALUE_NULL;
  set_unreadable(value, owner.texts->keep(std::move(text.error().message)));
}

usdtc_value value_of(const usdtc_event& owner, std::size_t n) {
  const usdt::Event& event = owner.event();
  usdtc_value out{};
  const usdt::Value value = event.value(n);
  if (const auto* error = std::get_if<usdt::ArgError>(&value)) {
    set_unreadable(out, error->reason);
  } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
    out.kind = USDTC_VALUE_SIGNED;
    out.number.i = *number;
  } else if (const auto* floating = std::get_if<double>(&value)) {
    out.kind = USDTC_VALUE_FLOAT;
    out.number.f = *floating;
  } else {
    out.kind = USDTC_VALUE_UNSIGNED;
    out.number.u = std::get<std::uint64_t>(value);
  }
  if (out.kind != USDTC_VALUE_SIGNED && out.kind != USDTC_VALUE_UNSIGNED) return out;
  out.enumerator = text_of(usdt::enumerator_name(event.arg_info(n), out.number.u));
  choose_text(owner, n, out);
  return out;
}

}  // namespace

void set_text(usdtc_value& value, std::string_view bytes, bool truncated) noexcept {
  // A cut may be in the midst of a character, which then goes.
  const std::string_view whole = truncated ? usdt::without_partial_utf8(bytes) : bytes;
  const bool utf8 = is_utf8(whole);
  value.kind = utf8 ? USDTC_VALUE_TEXT : USDTC_VALUE_BYTES;
  value.flags = truncated ? USDTC_VALUE_TRUNCATED : 0;
  value.text = text_of(utf8 ? whole : bytes);
}

}  // namespace usdtc

extern "C" {

size_t usdtc_batch_count(const usdtc_batch* batch) { return batch ? batch->events.size() : 0; }
const usdtc_event* usdtc_batch_event(const usdtc_batch* batch, size_t n) {
  return n < usdtc_batch_count(batch) ? &batch->events[n] : nullptr;
}
void usdtc_batch_free(usdtc_batch* batch) { delete batch; }

int usdtc_event_copy(const usdtc_event* event, usdtc_event** copy, usdtc_error** error) {
  if (copy) *copy = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!event || !copy) return usdtc::invalid("the event, or the place for its copy, is NULL");
    *copy = new usdtc_event{event->texts, event->wall_offset, nullptr,
                            event->own ? *event->own : usdt::OwnedEvent(event->event())};
    return {};
  });
}
void usdtc_event_free(usdtc_event* event) { delete event; }

int usdtc_event_read(const usdtc_event* event, usdtc_event_info* info, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!event) return usdtc::invalid("the event is NULL");
    return usdtc::write_struct(usdtc::info_of(*event), info, usdtc::kEventInfo, "usdtc_event_info");
  });
}

int usdtc_event_arg(const usdtc_event* event, size_t n, usdtc_arg* info, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!event) return usdtc::invalid("the event is NULL");
    const usdt::Event& of = event->event();
    if (n >= of.arg_count()) return usdtc::no_more("argument", n, of.arg_count());
    return usdtc::write_struct(usdtc::describe(of.arg_info(n)), info, usdtc::kArg, "usdtc_arg");
  });
}

int usdtc_event_value(const usdtc_event* event, size_t n, usdtc_value* value, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!event) return usdtc::invalid("the event is NULL");
    if (n >= event->event().arg_count()) return usdtc::no_more("argument", n, event->event().arg_count());
    return usdtc::write_struct(usdtc::value_of(*event, n), value, usdtc::kValue, "usdtc_value");
  });
}
}
