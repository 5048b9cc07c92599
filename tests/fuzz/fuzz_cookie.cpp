// SPDX-License-Identifier: BSD-2-Clause
// Any 64 bits as a packed spec, and any bytes as specs to pack: what packs comes back as it was, and nothing reads or
// shifts out of bounds.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "usdt/bpf/cookie.h"
#include "usdt/cookie.hpp"

namespace {

using Args = std::vector<usdt_arg_spec>;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

bool equal(const Args& a, const Args& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
}

/// Packs `args`, and if that worked, requires them to come back.
void check_packing(usdt::Machine machine, Args args, std::uint32_t site, unsigned site_bits) {
  const auto cookie = usdt::pack_cookie(machine, args, site, site_bits);
  if (!cookie) return;
  for (usdt_arg_spec& arg : args) arg.window = 0;
  const auto back = usdt::unpack_cookie(machine, *cookie);
  require(back.has_value(), "a packed spec is malformed");
  require(equal(*back, args), "a packed spec comes back changed");
  require(site_bits > 30 || USDT_PACKED_SITE(*cookie, site_bits) == site, "the site number comes back changed");
}

void check_bits(usdt::Machine machine, std::uint64_t cookie) {
  const auto args = usdt::unpack_cookie(machine, cookie);
  require(args.has_value() || !args.error().message.empty(), "an error without a message");
  if (args) check_packing(machine, *args, 0, 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint64_t cookie = 0;
  if (size < sizeof(cookie)) return 0;
  std::memcpy(&cookie, data, sizeof(cookie));
  Args args((size - sizeof(cookie)) / sizeof(usdt_arg_spec));
  if (!args.empty()) std::memcpy(args.data(), data + sizeof(cookie), args.size() * sizeof(args[0]));
  for (const usdt::Machine machine :
       {usdt::Machine::x86_64, usdt::Machine::i386, usdt::Machine::aarch64, usdt::Machine::riscv64}) {
    check_bits(machine, cookie);
    check_packing(machine, args, static_cast<std::uint32_t>(cookie), static_cast<unsigned>(cookie >> 32) % 66);
  }
  return 0;
}
