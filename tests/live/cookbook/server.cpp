// SPDX-License-Identifier: BSD-2-Clause
// What the recipes about C++ trace: it handles requests of several kinds, some of which throw, and says by its own
// clock and counters what it did.
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

struct request {
  int kind;
  const char* path;
};

namespace app {
struct NotFound : std::runtime_error {
  using std::runtime_error::runtime_error;
};
}  // namespace app

namespace {

constexpr int kinds = 4;

struct Times {
  long long calls, spent, longest;
};

long long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

}  // namespace

__attribute__((noinline)) void look_up(const request* req) {
  if (req->kind == 1) throw app::NotFound(req->path);
}

__attribute__((noinline)) void check_range(int number) {
  if (number % 5 == 0) throw std::out_of_range("number");
  if (number % 7 == 0) throw number;
}

__attribute__((noinline)) int handle(const request* req) {
  usleep(static_cast<useconds_t>(req->kind) * 700);
  return req->kind * 2;
}

int main() {
  Times times[kinds] = {};
  int not_found = 0, out_of_range = 0, numbers = 0;
  for (int i = 0; i < 80; ++i) {
    const request request{i % kinds, "/orders"};
    const long long begin = now();
    handle(&request);
    const long long took = now() - begin;
    Times& of_kind = times[request.kind];
    ++of_kind.calls;
    of_kind.spent += took;
    if (took > of_kind.longest) of_kind.longest = took;
    try {
      look_up(&request);
      check_range(i);
    } catch (const app::NotFound&) {
      ++not_found;
    } catch (const std::out_of_range&) {
      ++out_of_range;
    } catch (int) {
      ++numbers;
    }
  }
  std::printf("[");
  for (const Times& each : times) std::printf("[%lld, %lld, %lld], ", each.calls, each.spent, each.longest);
  std::printf("[%d, %d, %d]]\n", not_found, out_of_range, numbers);
  return 0;
}
