// SPDX-License-Identifier: BSD-2-Clause
#include "runtime_views.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime_program.h"

namespace {

enum class Level : std::int8_t { low = -100, high = 100 };
usdtp_probe* of_views;
usdtp_probe* of_scalars;

template <class T>
void fire_scalars(T value) {
  USDT_PROBE_FIRE(of_scalars, value, nullptr, sizeof value, value > T(0), u'x', static_cast<float>(value));
}

}  // namespace

void make_views(usdtp_provider* provider) {
  of_views = probe_of(provider, "views", "text name, bytes numbers, i8 level, str literal");
  of_scalars = probe_of(provider, "scalars", "i64 value, ptr nothing, u32 size, bool positive, u16 letter, f64 number");
}

void fire_views(std::FILE* log, int round) {
  const std::string_view name = std::string_view("abcdefgh").substr(0, static_cast<std::size_t>(round % 8 + 1));
  const std::vector<int> numbers(static_cast<std::size_t>(round % 3), round);
  const Level level = round % 2 == 0 ? Level::low : Level::high;
  USDT_PROBE_FIRE(of_views, std::string(name), numbers, level, "literal");
  std::fprintf(log, "views [\"%.*s\", %zu, %ju, %zu, %d, \"literal\"]\n", static_cast<int>(name.size()), name.data(),
               name.size(), static_cast<std::uintmax_t>(reinterpret_cast<std::uintptr_t>(numbers.data())),
               numbers.size() * sizeof(int), static_cast<int>(level));
  fire_scalars(static_cast<short>(-round));
  std::fprintf(log, "scalars [%d, 0, 2, false, 120, %d]\n", -round, -round);
  fire_scalars(round + 0LL);
  std::fprintf(log, "scalars [%d, 0, 8, %s, 120, %d]\n", round, round > 0 ? "true" : "false", round);
}
