/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampler.h"

#include <math.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The generator SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): its numbers
 * are a function of how many there were, which one instruction counts. A signal handler in between takes others. */
static uint64_t random_of(uint64_t seed, uint64_t number) {
  uint64_t z = seed + number * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t heap_random(void) {
  uint64_t number = 0;
  /* Not by getrandom(), at which threads may be cancelled. It fails where the kernel has no randomness yet. */
  const unsigned not_blocking = 1;
  if (syscall(SYS_getrandom, &number, sizeof(number), not_blocking) != (long)sizeof(number) || number == 0) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    number = random_of((uint64_t)(uintptr_t)&now, (uint64_t)now.tv_nsec + (uint64_t)getpid()) | 1;
  }
  return number;
}

/* Draws the whole bytes before a point. Sizes are whole, too: what is left of a distance after an allocation is as long
 * whether it is rounded down before or afterwards. */
static int64_t draw(struct heap_sampler* sampler, uint64_t mean) {
  const uint64_t number = __atomic_add_fetch(&sampler->drawn, 1, __ATOMIC_RELAXED);
  const double uniform = (double)((random_of(sampler->seed, number) >> 11) + 1) * 0x1p-53; /* above 0, up to 1 */
  return (int64_t)(-log(uniform) * (double)mean);
}

bool heap_choose(struct heap_sampler* sampler, uint64_t process, uint64_t mean, size_t size) {
  if (mean == 0) return true;
  if (sampler->process != process) {
    sampler->seed = heap_random();
    sampler->process = process;
    __atomic_store_n(&sampler->left, draw(sampler, mean), __ATOMIC_RELAXED);
  }
  const int64_t bytes = (int64_t)size;
  /* This thread is about to draw, and we are in a signal handler: distances have no memory, so that any other one says
   * as well whether there is a point. */
  if (__atomic_load_n(&sampler->left, __ATOMIC_RELAXED) < 0) return draw(sampler, mean) < bytes;
  if (__atomic_fetch_sub(&sampler->left, bytes, __ATOMIC_RELAXED) >= bytes) return false;
  __atomic_store_n(&sampler->left, draw(sampler, mean), __ATOMIC_RELAXED);
  return true;
}

uint64_t heap_weight(uint64_t mean, size_t size) {
  if (mean == 0) return size;
  const double bytes = (double)size;
  const double chosen = -expm1(-bytes / (double)mean);
  /* Where nearly all are chosen the weight is the size, which as a real may have lost its last bits. */
  return chosen == 1 ? size : (uint64_t)(bytes / chosen + 0.5);
}

int heap_read_mean(const char* text, uint64_t* mean) {
  uint64_t number = 0;
  const char* at = text;
  for (; *at >= '0' && *at <= '9'; ++at) {
    number = number * 10 + (uint64_t)(*at - '0');
    if (number > HEAP_LARGEST_MEAN) return -1;
  }
  if (at == text) return -1;
  const unsigned shift = *at == 'K' ? 10 : *at == 'M' ? 20 : *at == 'G' ? 30 : 0;
  if (shift != 0) ++at;
  if (*at != '\0' || number > HEAP_LARGEST_MEAN >> shift) return -1;
  *mean = number << shift;
  return 0;
}
