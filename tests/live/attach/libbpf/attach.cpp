// SPDX-License-Identifier: BSD-2-Clause
// Attaches a program of an object of hits.bpf.c and prints what it records, a JSON object for each hit.
//     attach-hits usdt OBJECT PROGRAM PROBE [CARRIER [BACKEND]]     by usdt::attach
//     attach-hits libbpf OBJECT PROGRAM FILE PROVIDER NAME          by libbpf's own bpf_program__attach_usdt
// Says "attached ..." on standard output, or on standard error why not; ends when standard input does. User cookie: 77.
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <usdt/usdt.hpp>
#include <vector>

#include "hits.h"

namespace {

constexpr std::uint64_t kUserCookie = 77;

void print(const hit& h) {
  fmt::print(
      "{{\"count\": {}, \"cookie\": {}, \"params\": [{}], \"values\": [{}], \"errors\": [{}], \"sizes\": [{}]}}\n",
      h.count, h.cookie, fmt::join(h.param, ", "), fmt::join(h.value, ", "), fmt::join(h.error, ", "),
      fmt::join(h.size, ", "));
}

void say(const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void wait_for_end_of_input() {
  while (std::getchar() != EOF) {
  }
}

usdt::Result<usdt::AttachPlan> plan_for(const char* probe) {
  auto pattern = usdt::ProbePattern::parse(probe);
  if (!pattern) return usdt::fail(pattern.error());
  auto selection = usdt::select({*pattern});
  if (!selection) return usdt::fail(selection.error());
  return usdt::plan_attach(*selection, usdt::kernel_facts(), {.user_cookie = kUserCookie});
}

usdt::Result<usdt::LoadOptions> options_from(const std::vector<std::string>& words) {
  usdt::LoadOptions options;
  if (words.size() > 4) {
    auto carrier = usdt::carrier_by_name(words[4]);
    if (!carrier) return usdt::fail(carrier.error());
    options.carrier = *carrier;
  }
  if (words.size() > 5 && words[5] == "perf_uprobe") options.backend = usdt::Backend::perf_uprobe;
  return options;
}

usdt::Result<void> by_usdt(const std::vector<std::string>& words) {
  auto plan = plan_for(words[3].c_str());
  if (!plan) return usdt::fail(plan.error());
  auto options = options_from(words);
  if (!options) return usdt::fail(options.error());
  auto object = usdt::BpfObject::open(std::filesystem::path(words[1]));
  if (!object) return usdt::fail(object.error());
  auto loaded = object->load(std::move(*plan), *options);
  if (!loaded) return usdt::fail(loaded.error());
  auto link = loaded->attach(words[2]);
  if (!link) return usdt::fail(link.error());
  say(fmt::format("attached {} sites by {}", link->attached(), link->carrier_text()));

  std::jthread reader([&](const std::stop_token& stop) {
    const auto stats = usdt::consume<hit>(*loaded, "events", stop, print);
    if (!stats || stats->wrong_size) std::abort();
  });
  wait_for_end_of_input();
  return {};
}

/// A negative errno, or 0.
long by_libbpf(const std::vector<std::string>& words) {
  bpf_object* object = bpf_object__open(words[1].c_str());
  if (!object) return -errno;
  if (const int error = bpf_object__load(object)) return error;
  bpf_program* program = bpf_object__find_program_by_name(object, words[2].c_str());
  LIBBPF_OPTS(bpf_usdt_opts, options, .usdt_cookie = kUserCookie);
  bpf_link* link =
      bpf_program__attach_usdt(program, -1, words[3].c_str(), words[4].c_str(), words[5].c_str(), &options);
  const long error = libbpf_get_error(link);
  if (error) return error;
  say("attached");
  wait_for_end_of_input();
  ring_buffer* ring = ring_buffer__new(
      bpf_object__find_map_fd_by_name(object, "events"),
      [](void*, void* record, std::size_t) {
        print(*static_cast<const hit*>(record));
        return 0;
      },
      nullptr, nullptr);
  if (!ring) return -errno;
  ring_buffer__consume(ring);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 4 && words[0] == "usdt") {
    const auto done = by_usdt(words);
    if (!done) std::cerr << done.error().message << '\n';
    return done ? 0 : 1;
  }
  if (words.size() == 6 && words[0] == "libbpf") {
    const long error = by_libbpf(words);
    if (error) std::cerr << "libbpf: " << strerrorname_np(static_cast<int>(-error)) << '\n';
    return error ? 1 : 0;
  }
  std::cerr << "usage: attach-hits usdt|libbpf OBJECT PROGRAM PROBE...\n";
  return 2;
}
