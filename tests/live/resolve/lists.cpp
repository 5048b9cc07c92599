// SPDX-License-Identifier: BSD-2-Clause
// Functions that say the lists they are called with, as JSON: "FUNCTION<TAB>PARAMETER<TAB>LIST".
#include <array>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))
#define SAY(list) (std::printf("%s\t%s\t", __func__, #list), say(list), std::puts(""))

enum class Color : std::int16_t { red = 1, green = 2, none = -7 };

struct Point {
  int x;
  short y;
  std::string name;
};

struct Order {
  long id;
  std::vector<std::uint16_t> items;
  std::array<signed char, 3> codes;
  std::vector<std::string> notes;
};

void say(std::integral auto number) { std::printf("%lld", static_cast<long long>(number)); }
void say(bool yes) { std::printf("%d", yes ? 1 : 0); }
void say(double real) { std::printf("%.17g", real); }
void say(Color color) { say(static_cast<int>(color)); }
void say(const int* pointer) {
  std::printf("%llu", static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(pointer)));
}
void say(const std::string& text) { std::printf("\"%s\"", text.c_str()); }
void say(const Point& point) {
  std::printf("{\"x\":%d,\"y\":%d,\"name\":", point.x, point.y);
  say(point.name);
  std::printf("}");
}
void say(const std::ranges::range auto& list) {
  const char* before = "[";
  for (const auto& each : list) {
    std::printf("%s", before);
    say(each);
    before = ",";
  }
  std::printf("%s", before[0] == '[' ? "[]" : "]");
}

NOINLINE void vectors(const std::vector<int>& by_reference, std::vector<std::int64_t> by_copy,
                      std::vector<unsigned char>& bytes, std::vector<double>&& moved) {
  SAY(by_reference);
  SAY(by_copy);
  SAY(bytes);
  SAY(moved);
}

NOINLINE void kinds(const std::vector<Color>& colors, const std::vector<const int*>& pointers,
                    const std::vector<std::string>& texts, const std::vector<float>& floats) {
  SAY(colors);
  SAY(pointers);
  SAY(texts);
  std::printf("%s\tfloats\t[", __func__);
  for (std::size_t i = 0; i < floats.size(); ++i)
    std::printf("%s%.9g", i > 0 ? "," : "", static_cast<double>(floats[i]));
  std::puts("]");
}

NOINLINE void views(std::span<const int> span, std::span<long, 3> fixed, std::initializer_list<int> list,
                    std::array<short, 2> small) {
  SAY(span);
  static_cast<void>(fixed);
  SAY(list);
  SAY(small);
}

NOINLINE void nested(const std::vector<std::vector<int>>& rows, const std::vector<Point>& points) {
  SAY(rows);
  SAY(points);
}

NOINLINE void members(const Order* order) {
  std::printf("%s\torder->items\t", __func__), say(order->items), std::puts("");
  std::printf("%s\torder->codes\t", __func__), say(order->codes), std::puts("");
  std::printf("%s\torder->notes\t", __func__), say(order->notes), std::puts("");
}

NOINLINE std::size_t bits(const std::vector<bool>& flags) { return flags.size(); }

/// Three words that are taken for a vector, and two that are taken for a span.
NOINLINE void forged(const std::vector<std::int32_t>* list, const std::span<std::int32_t>* span) {
  __asm__ volatile("" : : "r"(list), "r"(span) : "memory");
}

static void forge(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t size) {
  const std::uintptr_t list[] = {begin, end, end};
  const std::uintptr_t span[] = {begin, size};
  forged(reinterpret_cast<const std::vector<std::int32_t>*>(list),
         reinterpret_cast<const std::span<std::int32_t>*>(span));
}

int main() {
  static const int values[] = {100, -200, 300};
  const auto* far = reinterpret_cast<const int*>(std::uintptr_t{0x7654321000});
  std::vector<int> few{1, -2, 3};
  few.reserve(16);  // behind them there is memory, which is 77 each
  std::memset(static_cast<void*>(few.data() + 3), 77, 13 * sizeof(int));
  std::vector<std::int64_t> many;
  for (int i = 0; i < 100; ++i) many.push_back(i * -1000000007LL);
  std::vector<unsigned char> bytes{0, 255, 'a'};
  vectors(few, many, bytes, {0.5, -1e300});
  vectors({}, {}, bytes, {});
  kinds({Color::green, Color::none}, {far, nullptr}, {"one", "", "a text that no string has room for itself"},
        {0.5F, -3});
  kinds({}, {}, {}, {});
  long three[] = {1, 2, 3};
  views(values, three, {4, 5}, {-1, 1});
  views({}, three, {}, {0, 7});
  nested({{1, 2}, {}, {3}}, {{1, -2, "first"}, {3, 4, "second"}});
  const Order order{7, {1, 2, 65535, 4, 5, 6, 7, 8, 9, 10}, {-1, 0, 1}, {"hot", "cold"}};
  const Order empty{8, {}, {0, 0, 0}, {}};
  members(&order);
  members(&empty);
  bits({true, false, true});
  std::fflush(stdout);
  static std::int32_t room[] = {11, 12, 13, 14};
  const auto at = reinterpret_cast<std::uintptr_t>(room);
  forge(at, at + sizeof room, 4);
  forge(at + 8, at, std::uintptr_t{1} << 61);
  forge(at, at + 6, std::uintptr_t{1} << 62);
  forge(8, static_cast<std::uintptr_t>(-8), 2);
  forge(0x10000, 0x10008, (std::uintptr_t{1} << 61) - 1);
  forge(0, 8, 0);
}
