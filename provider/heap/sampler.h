/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses which allocations are reported. Points lie on the bytes that a thread allocates, at distances that are
 * exponential with a mean of R bytes; an allocation with at least one point in it is chosen. So one of S bytes is
 * chosen with the probability p = 1 - exp(-S/R), whatever came before it, and stands for S/p bytes: the sum of these
 * has the sum of all sizes as its expectation (Horvitz and Thompson, 1952).
 */
#ifndef USDT_HEAP_SAMPLER_H
#define USDT_HEAP_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes from one point to the next that are usual, as they are with others who emit these probes. */
#define HEAP_USUAL_MEAN ((uint64_t)512 << 10)
/* Means are exact as reals up to this one. */
#define HEAP_LARGEST_MEAN ((uint64_t)1 << 52)

/* What a thread knows of its next point. All zeroes: nothing yet. Others than the thread never look at it; a signal
 * handler of the thread may at any moment. */
struct heap_sampler {
  uint64_t process; /* the one whose random numbers these are: a child draws its own */
  uint64_t seed;
  uint64_t drawn; /* how many numbers */
  int64_t left;   /* whole bytes before the next point; negative: it is being drawn */
};

/* Returns whether an allocation of `size` bytes is chosen. `mean` 0: each one is. `process` is not 0, and another
 * number in each process. */
bool heap_choose(struct heap_sampler* sampler, uint64_t process, uint64_t mean, size_t size);

/* Returns how many bytes a chosen allocation stands for. */
uint64_t heap_weight(uint64_t mean, size_t size);

/* Reads a mean: a number of bytes, with K, M or G behind it for their multiples by 1024. Returns 0 if it is such a
 * number, which is in `mean` then, else -1. */
int heap_read_mean(const char* text, uint64_t* mean);

/* Returns a number that nobody can tell beforehand, which is not 0. */
uint64_t heap_random(void);

#ifdef __cplusplus
}
#endif

#endif
