// SPDX-License-Identifier: BSD-2-Clause
// Throws known exceptions and writes what libstdc++'s throw probe must show for each: `thrower ROUNDS OUT [wait]`.
// With "wait" it prints a line when it is up and throws only after a line on standard input.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <typeinfo>

namespace {
struct Custom {
  int code;
};

/// One line per exception: the thrown object's address and its type_info's.
template <typename T>
void throw_one(std::FILE* out, T value) {
  try {
    throw value;
  } catch (const T& caught) {
    std::fprintf(out, "[%llu,%llu]\n", (unsigned long long)&caught, (unsigned long long)&typeid(T));
  }
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::FILE* out = std::fopen(argv[2], "w");
  if (out == nullptr) return 2;
  if (argc > 3) {
    std::puts("ready");
    std::fflush(stdout);
    if (std::getchar() == EOF) return 3;
  }
  for (int round = 0; round < std::atoi(argv[1]); ++round) {
    throw_one(out, round);
    throw_one(out, Custom{round});
    throw_one(out, std::runtime_error("round " + std::to_string(round)));
  }
  return std::fclose(out);
}
