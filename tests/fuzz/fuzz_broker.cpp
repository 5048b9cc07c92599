// SPDX-License-Identifier: BSD-2-Clause
// Messages that somebody made up, as usdt-broker reads them: what is read can be planned, and written into programs. An
// input is the kind of message, and what is in it.
#include <cstdint>
#include <span>

#include "broker/channel.hpp"
#include "broker/messages.hpp"
#include "event/stock_objects.hpp"
#include "expr/compile.hpp"
#include "program/specialise.hpp"

namespace {

using usdt::broker::Kind;

template <class Message>
bool is_read(usdt::ByteSpan bytes, Message& message) {
  usdt::ByteReader in(bytes);
  return usdt::broker::read(in, message);
}

void load(usdt::ByteSpan bytes) {
  usdt::broker::LoadRequest request;
  if (!is_read(bytes, request)) return;
  for (const usdt::TypedExpression& filter : request.plan.filters) static_cast<void>(usdt::expr::compile(filter, {}));
  const auto carriers = plan_carriers(
      request.plan, {.carrier = request.carrier, .arguments = request.arguments, .max_programs = request.max_programs});
  if (!carriers) return;
  // To copy the object takes a thousand times as long as all else.
  const auto& program = carriers->programs[0];
  if (bytes.size() % 64 == 0 && (program.carriers & USDT_CARRIER_BIT(USDT_CARRIER_LINK)) != 0)
    static_cast<void>(usdt::backends::specialise(usdt::event::stock_programs(), program));
  usdt::ByteWriter out;
  usdt::broker::write_plan(out, request.plan);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const usdt::ByteSpan bytes(data + 1, size - 1);
  usdt::broker::Hello hello;
  usdt::broker::Welcome welcome;
  usdt::Error error;
  usdt::broker::LoadReply loaded;
  usdt::broker::AttachRequest attach;
  usdt::broker::AttachReply attached;
  switch (static_cast<Kind>(data[0])) {
    case Kind::hello:
      static_cast<void>(is_read(bytes, hello));
      break;
    case Kind::welcome:
      static_cast<void>(is_read(bytes, welcome));
      break;
    case Kind::refused:
      static_cast<void>(is_read(bytes, error));
      break;
    case Kind::loaded:
      static_cast<void>(is_read(bytes, loaded));
      break;
    case Kind::attach:
      static_cast<void>(is_read(bytes, attach));
      break;
    case Kind::attached:
      static_cast<void>(is_read(bytes, attached));
      break;
    default:
      load(bytes);
  }
  return 0;
}
