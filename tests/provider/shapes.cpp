// SPDX-License-Identifier: BSD-2-Clause
// Every type that C++ adds.
#include "shapes.hpp"

namespace {

enum class Level : int8_t { low = -100, high = 100 };
enum class Byte : unsigned char {};
enum class Wide : uint64_t { most = UINT64_MAX };

struct Packed {
  int narrow : 3;
  unsigned flag : 1;
};

NOINLINE void types(Level level, Byte byte, Wide wide, bool truth, char16_t unit, wchar_t character, Packed packed,
                    decltype(nullptr) nothing, float single) {
  USDT_PROBE(cpp, types, level, byte, wide, truth, unit, character, packed.narrow, packed.flag, nothing, single);
  unsigned bits = 0;
  __builtin_memcpy(&bits, &single, sizeof bits);
  SAID("types", static_cast<long long>(level), static_cast<long long>(byte), static_cast<long long>(wide), truth, unit,
       static_cast<long long>(character), packed.narrow, packed.flag, 0, bits);
}

/// A temporary lives until its probe is behind it.
struct Made {
  explicit Made(int value) : letters{static_cast<char>('a' + value % 26), 'x'} {}
  ~Made() { letters[0] = letters[1] = '?'; }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  [[nodiscard]] const char* data() const { return letters; }
  [[nodiscard]] size_t size() const { return 2; }
  char letters[2];
};

NOINLINE void views(Text text, const Numbers& numbers, int value) {
  USDT_PROBE(cpp, views, text, numbers, value);
  SAID("views", static_cast<long long>(reinterpret_cast<uintptr_t>(text.begin)), static_cast<long long>(text.length),
       static_cast<long long>(reinterpret_cast<uintptr_t>(numbers.begin)), static_cast<long long>(numbers.count * 4),
       value);
  USDT_PROBE_STUB(cpp, stub_views, text, numbers, value);
  if (USDT_PROBE_ENABLED(cpp, stub_views))
    SAID("stub_views", static_cast<long long>(reinterpret_cast<uintptr_t>(text.begin)),
         static_cast<long long>(text.length), static_cast<long long>(reinterpret_cast<uintptr_t>(numbers.begin)),
         static_cast<long long>(numbers.count * 4), value);
}

NOINLINE void temporary(int value) { USDT_PROBE(cpp, temporary, Made(value), value); }

NOINLINE void in_lambda(int value) {
  auto call = [&](auto twice) {
    USDT_PROBE(cpp, in_lambda, twice, value % 3);
    SAID("in_lambda", twice, value % 3);
  };
  call(2 * value);
}

}  // namespace

extern "C" void run_cpp(int round) {
  const int32_t some[] = {round, round + 1};
  types(round % 2 != 0 ? Level::low : Level::high, static_cast<Byte>(200 + round), Wide::most, round % 2 != 0,
        static_cast<char16_t>(0xff00 + round), static_cast<wchar_t>(-round), {-round % 4, 1}, nullptr,
        static_cast<float>(round));
  views({"some text", 4}, {some, 2}, round);
  temporary(round);
  in_lambda(round);
  in_header(round);
  in_template(round);
  in_template(static_cast<uint8_t>(250 + round % 5));
  Shape().draw(round);
}
