// SPDX-License-Identifier: BSD-2-Clause
#include "carry/windows.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace usdt::carry {
namespace {

/// Operands whose addresses differ by their displacements only have the same one.
auto base_of(const usdt_arg_spec& arg) {
  constexpr unsigned kNotOfAddress = USDT_ARG_SIGNED | USDT_ARG_FLOAT;
  return std::tuple(arg.reg, arg.index, arg.shift, arg.flags & ~kNotOfAddress);
}

std::int64_t start_of(const usdt_arg_spec& arg) { return static_cast<std::int64_t>(arg.value); }

/// Operands, by their numbers, that one read of `bytes` fetches; the first lies lowest.
struct Run {
  std::vector<std::size_t> args;
  std::uint64_t bytes = 0;
};

/// Cuts the memory operands, ordered by base and displacement, wherever the next one is out of reach.
std::vector<Run> find_runs(const std::vector<usdt_arg_spec>& args) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind == USDT_ARG_MEM) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(base_of(args[a]), start_of(args[a])) < std::pair(base_of(args[b]), start_of(args[b]));
  });
  std::vector<Run> runs;
  for (const std::size_t i : order) {
    const usdt_arg_spec* first = runs.empty() ? nullptr : &args[runs.back().args.front()];
    // Unsigned, so that a distance of more than half the address space is only a large one.
    const std::uint64_t distance = first ? args[i].value - first->value : 0;
    const bool in_reach = distance < USDT_WINDOW_BYTES && distance + args[i].size <= USDT_WINDOW_BYTES;
    if (first && base_of(*first) == base_of(args[i]) && in_reach) {
      runs.back().args.push_back(i);
      runs.back().bytes = std::max(runs.back().bytes, distance + args[i].size);
    } else {
      runs.push_back({{i}, args[i].size});
    }
  }
  return runs;
}

}  // namespace

Windowed gather_windows(std::vector<usdt_arg_spec> args) {
  const auto in_memory = [](const usdt_arg_spec& arg) { return arg.kind == USDT_ARG_MEM; };
  if (std::count_if(args.begin(), args.end(), in_memory) < 2) return {std::move(args), {}};  // most specs
  std::vector<Run> runs = find_runs(args);
  std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.args.size() > b.args.size(); });
  Windowed out{std::move(args), {}};
  for (std::size_t number = 1; number <= std::min<std::size_t>(runs.size(), USDT_WINDOWS); ++number) {
    const Run& run = runs[number - 1];
    if (run.args.size() < 2) break;
    const std::uint64_t lowest = out.args[run.args.front()].value;
    out.sizes[number] = static_cast<std::uint8_t>(run.bytes);
    for (const std::size_t i : run.args) out.args[i].window = USDT_WINDOW(number, out.args[i].value - lowest);
  }
  return out;
}

void write_spec(std::byte* to, const EncodedSpec& spec) {
  const Windowed windowed = gather_windows(spec.args);
  usdt_spec head{};
  head.user_cookie = spec.user_cookie;
  head.arg_cnt = static_cast<std::uint32_t>(spec.args.size());
  std::copy(windowed.sizes.begin(), windowed.sizes.end(), std::begin(head.window_size));
  std::memcpy(to, &head, sizeof(head));
  to += sizeof(head);
  for (const auto* entries : {&windowed.args, &spec.steps}) {
    if (!entries->empty()) std::memcpy(to, entries->data(), entries->size() * sizeof(usdt_arg_spec));
    to += entries->size() * sizeof(usdt_arg_spec);
  }
}

}  // namespace usdt::carry
