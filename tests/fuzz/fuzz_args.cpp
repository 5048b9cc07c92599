// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as an argument text, in both dialects: nothing is lost, and an argument means the same alone.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "parsers/args.hpp"
#include "tests/parsers/describe.hpp"

namespace {

using usdt::ParsedArg;
using usdt::parsers::parse_args;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void check(std::string_view text, usdt::Machine machine) {
  const std::vector<ParsedArg> args = parse_args(text, machine);
  const std::string broken = usdt::parsers::broken_invariant(text, args);
  require(broken.empty(), broken.c_str());
  for (const ParsedArg& arg : args) {
    if (arg.text.front() == ':') continue;     // alone it would say "no arguments"
    if (&arg - args.data() == 1024) continue;  // the rest, unread
    const std::vector<ParsedArg> alone = parse_args(arg.text, machine);
    require(alone.size() == 1, "an argument alone is not one argument");
    require(alone[0].operand == arg.operand, "an argument alone means something else");
    require(alone[0].size == arg.size, "an argument alone has another size");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly that length: a read behind it is the sanitizer's to see.
  const std::vector<char> text(data, data + size);
  for (const usdt::Machine machine : {usdt::Machine::x86_64, usdt::Machine::aarch64, usdt::Machine::riscv64}) {
    check({text.data(), text.size()}, machine);
  }
  return 0;
}
