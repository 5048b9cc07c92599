/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes below a signal handler, on its own stack too, and in a thread; below qsort() of the C library. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/sdt.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void hit(void) {
  sink++;
  STAP_PROBE(interrupted, hit);
  sink++;
}

static void handler(int number) {
  sink += (unsigned long)number;
  hit();
  sink++;
}

__attribute__((noinline)) static void interrupted(void) {
  raise(SIGUSR1);
  sink++;
}

static int compare(const void* a, const void* b) {
  if (sink++ < 100) hit();
  return *(const int*)a - *(const int*)b;
}

static void* in_thread(void* nothing) {
  interrupted();
  hit();
  sink++;
  return nothing;
}

int main(void) {
  int numbers[] = {3, 2, 1};
  static char other[65536];
  stack_t stack = {.ss_sp = other, .ss_size = sizeof(other)};
  struct sigaction action = {.sa_handler = handler};
  pthread_t thread;
  sigaction(SIGUSR1, &action, NULL);
  interrupted();
  sigaltstack(&stack, NULL);
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, NULL);
  interrupted();
  qsort(numbers, 3, sizeof(numbers[0]), compare);
  pthread_create(&thread, NULL, in_thread, NULL);
  pthread_join(thread, NULL);
  return 0;
}
