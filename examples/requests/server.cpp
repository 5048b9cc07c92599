// SPDX-License-Identifier: BSD-2-Clause
// The traced program: serves requests in several threads, and keeps a log of its own to compare with.
//
//   requests:begin(id, path)    u64, char*
//   requests:end(id, status)    u64, i32
//
// Usage: request-server LOG REQUESTS      LOG gets a line `id path status micros` for each
#include <sys/sdt.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr std::array<const char*, 4> kPaths = {"/", "/orders", "/orders/17/items", "/favicon.ico"};

void serve(std::uint64_t id, std::FILE* log) {
  const auto start = std::chrono::steady_clock::now();
  const char* path = kPaths[id % kPaths.size()];
  STAP_PROBE2(requests, begin, id, path);
  std::this_thread::sleep_for(std::chrono::microseconds(50 + id * 7919 % 500));
  const std::int32_t status = id % 10 == 3 ? 404 : id % 100 == 50 ? -1 : 200;
  STAP_PROBE2(requests, end, id, status);
  const auto took = std::chrono::steady_clock::now() - start;
  // One call, and so one line, whichever threads write at the same time.
  std::fprintf(log, "%llu %s %d %lld\n", static_cast<unsigned long long>(id), path, status,
               static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* log = argc == 3 ? std::fopen(argv[1], "w") : nullptr;
  if (log == nullptr) {
    std::fprintf(stderr, "usage: request-server LOG REQUESTS\n");
    return 2;
  }
  const std::uint64_t requests = std::strtoull(argv[2], nullptr, 10);
  std::atomic<std::uint64_t> next = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t id = next++; id < requests; id = next++) serve(id, log);
    });
  }
  threads.clear();
  return std::fclose(log) == 0 ? 0 : 1;
}
