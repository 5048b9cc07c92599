// SPDX-License-Identifier: BSD-2-Clause
// Says of each hit of its probe, and of each call of its functions, what was passed.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sdt.h>

struct peer {
  uint16_t port;
  int flags : 5;
};
struct request {
  const char* name;
  struct peer* peer;
  int64_t size;
};

__attribute__((noinline)) int64_t serve(struct request* req, int step) {
  __asm__ volatile("" ::: "memory");
  return req->size * step - 50;
}

int main(void) {
  struct peer peer;
  struct request req = {.peer = &peer};
  char name[40];
  for (int i = 0; i < 500; i++) {
    uint64_t large = (uint64_t)i * 0x9e3779b97f4a7c15u;
    double real = sin(i);
    union {
      double d;
      uint64_t bits;
    } as = {real};
    snprintf(name, sizeof(name), "name-%d-of-many-that-are-longer", i % 7);
    DTRACE_PROBE6(where, numbers, (short)(i - 250), large, (unsigned char)i, name, real, i % 3 ? (void*)&peer : 0);
    peer.port = (uint16_t)(i * 131);
    peer.flags = i % 31 - 15;
    req.name = name;
    req.size = i - 100;
    req.peer = i % 5 ? &peer : 0;
    int64_t result = serve(&req, i % 4);
    printf("%d %llu %d %s %llu %d %d %lld %d %lld\n", i - 250, (unsigned long long)large, (unsigned char)i, name,
           (unsigned long long)as.bits, peer.port, peer.flags, (long long)req.size, i % 4, (long long)result);
  }
  return 0;
}
