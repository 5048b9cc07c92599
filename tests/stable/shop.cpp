// SPDX-License-Identifier: BSD-2-Clause
// A program whose probes and functions have arguments of every kind that a recording can hold: make.py records it.
// usage: shop ROUNDS [LIBRARY]: the library is opened after half of the rounds, and has a probe of its own.
#include <dlfcn.h>
#include <sys/sdt.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "usdt/probe.h"
#include "usdt/trace_context.h"

USDT_PROBE_DECLARE(shop, paid, "name:string, cents, took:duration[us], status:errno");

namespace {

enum class State { open = 1, paid = 2, sent = 7 };

struct Address {
  const char* city;
  std::uint16_t zip;
};

struct Order {
  long number;
  State state;
  double weight;
  const Address* to;
  std::int8_t marks[3];
};

volatile long sold;

[[gnu::noinline]] long sell(const Order* order, const std::vector<int>& items, std::optional<long> discount,
                            bool gift) {
  for (const int item : items) sold = sold + item;
  return order->number + discount.value_or(gift);
}

[[gnu::noinline]] long wrap(const Order* order, long depth) {
  return depth == 0 ? sell(order, {3, static_cast<int>(order->number), -5},
                           order->number % 2 ? std::optional(7L) : std::nullopt, true)
                    : wrap(order, depth - 1) + 1;
}

/// Every fourth order is of no request. Of the others some have an attribute, or one that has no name.
void take_up(long number) {
  const auto low = static_cast<std::uint8_t>(number);
  const std::uint8_t trace_id[16] = {0xa1, 0xb2, low}, span_id[8] = {0xc3, low};
  usdt_context_clear();
  if (number % 4 == 3) return;
  usdt_context_set(trace_id, span_id, 1);
  if (number % 4 > 0) usdt_context_add(0, "/orders", 7);
  if (number % 4 == 2) usdt_context_add(7, "?", 1);
}

void begin(long number) { DTRACE_PROBE2(shop, begin, number, "in the shop"); }

/// Every third ends in another thread than it began in, and the last does not end.
void end(long number, long last) {
  const auto say = [number] { DTRACE_PROBE2(shop, end, number, static_cast<int>(number % 7) - 3); };
  if (number == last) return;
  if (number % 3 == 0)
    std::thread(say).join();
  else
    say();
}

#if __SIZEOF_POINTER__ == 8
#define WORD ".8byte "
#else
#define WORD ".4byte "
#endif

// One that no kernel attaches to: its address is in no segment that is executable.
__asm__(".data\n.balign 8\nshop_nowhere: " WORD
        "0\n.text\n"
        ".pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n"
        "992: .balign 4\n993: " WORD
        "shop_nowhere, _.stapsdt.base, 0\n.asciz \"shop\"\n.asciz \"begin\"\n"
        ".asciz \"8@%rdi -4@%esi\"\n994: .balign 4\n.popsection");

}  // namespace

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::atol(argv[1]) : 1;
  const Address hamburg{"Hamburg", 20095};
  const char* const names[] = {"http.route"};
  usdt_context_publish("shop", names, 1);
  for (long n = 0; n < rounds; ++n) {
    if (argc > 2 && n == rounds / 2) dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
    const Order order{n,
                      n % 2 ? State::paid : State::sent,
                      static_cast<double>(n) + 0.25,
                      &hamburg,
                      {1, -2, static_cast<std::int8_t>(n)}};
    take_up(n);
    begin(n);
    const long result = wrap(&order, n % 4);
    const std::string name = n % 5 ? "order " + std::to_string(n) : std::string(40, 'x') + "\t\"\xc3\xa4\xff\"";
    USDT_PROBE(shop, paid, name.c_str(), static_cast<int>(result), std::int64_t{150}, n % 4 ? 0 : 2);
    DTRACE_PROBE4(shop, odd, static_cast<std::int8_t>(-n), order.weight, reinterpret_cast<const char*>(n % 2 ? 8 : 0),
                  &order);
    if (auto* fire = argc > 2 ? reinterpret_cast<void (*)(long)>(dlsym(RTLD_DEFAULT, "late_fire")) : nullptr) fire(n);
    end(n, rounds - 1);
    if (argc > 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::printf("%ld\n", sold);
}
