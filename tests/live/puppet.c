/* SPDX-License-Identifier: BSD-2-Clause */
/* Fires its probe exactly as told, so that a test knows every hit. Orders come as arguments (`puppet fire:10 exit:7`)
 * or, without any, as lines on standard input; each order is answered with one line on standard output.
 *     fire:N        N hits: beat(n, "beat text", 3 n), n counting up over the process's life
 *     take:N        N calls of take(), which fires nothing
 *     threads:T:N   N hits in each of T threads
 *     fork:N        N hits in a forked child
 *     die:SIGNAL    ends by a signal          exit:CODE     ends
 *     pause:0       waits for a signal
 *     child:0       leaves a child that hits 100 times a second until this process ends; answers with its number
 *     first-ends:0  the first thread ends, another obeys from then on
 *     watch:0       spins until the semaphore is up, answers with CLOCK_MONOTONIC in ns */
#define _SDT_HAS_SEMAPHORES 1
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((section(".probes"), used)) volatile unsigned short puppet_beat_semaphore;

static _Atomic long long beats;

#ifdef PUPPET_PAD
/* Moves every later site, so that two builds of this file differ in their offsets. */
void puppet_pad(void);
void puppet_pad(void) { __asm__ volatile(".rept 4096\n nop\n .endr"); }
#endif

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

__attribute__((noinline)) static void beat(long long n) {
  const char* text = "beat text";
  DTRACE_PROBE3(puppet, beat, n, text, 3 * n);
}

static void fire(long count) {
  for (long i = 0; i < count; i++) beat(beats++);
}

struct parcel {
  long long number;
};

/* For what is traced by the name of a function. It begins with an instruction that the kernel need not single-step. */
__attribute__((noinline, noclone)) static void take(const struct parcel* parcel, long long weight) {
  __asm__ volatile("nop" ::"r"(parcel), "r"(weight) : "memory");
}

static void take_all(long count) {
  struct parcel parcel = {0};
  for (; parcel.number < count; parcel.number++) take(&parcel, 3 * parcel.number);
}

static void* fire_thread(void* count) {
  fire((long)(intptr_t)count);
  return NULL;
}

static void fire_threads(long threads, long count) {
  pthread_t ids[64];
  if (threads > 64) abort();
  for (long i = 0; i < threads; i++)
    if (pthread_create(&ids[i], NULL, fire_thread, (void*)(intptr_t)count)) abort();
  for (long i = 0; i < threads; i++) pthread_join(ids[i], NULL);
}

static void fire_forked(long count) {
  const pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    fire(count);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static long long leave_child(void) {
  const pid_t parent = getpid(), child = fork();
  if (child < 0) abort();
  for (; child == 0; usleep(10000)) {
    if (getppid() != parent) _exit(0);
    fire(1);
  }
  return child;
}

static void obey(char* order);

static void* serve(void* unused) {
  char line[256];
  while (fgets(line, sizeof(line), stdin)) obey(line);
  exit(0);
  return unused;
}

/* Does not return. */
static void end_first_thread(void) {
  pthread_t other;
  printf("0\n");
  fflush(stdout);
  if (pthread_create(&other, NULL, serve, NULL)) abort();
  pthread_exit(NULL);
}

static long long watch(void) {
  while (puppet_beat_semaphore == 0)
    ;
  return now_ns();
}

/* One order; answers with the time it took, in ns, or with the time watched for. */
static void obey(char* order) {
  char* colon = strchr(order, ':');
  if (!colon) exit(64);
  const long first = strtol(colon + 1, &colon, 10);
  const long second = *colon == ':' ? strtol(colon + 1, NULL, 10) : 0;
  const long long start = now_ns();
  long long answer = 0;

  if (!strncmp(order, "fire:", 5))
    fire(first);
  else if (!strncmp(order, "take:", 5))
    take_all(first);
  else if (!strncmp(order, "threads:", 8))
    fire_threads(first, second);
  else if (!strncmp(order, "fork:", 5))
    fire_forked(first);
  else if (!strncmp(order, "die:", 4))
    raise((int)first);
  else if (!strncmp(order, "exit:", 5))
    exit((int)first);
  else if (!strncmp(order, "pause:", 6))
    pause();
  else if (!strncmp(order, "child:", 6))
    answer = leave_child();
  else if (!strncmp(order, "first-ends:", 11))
    end_first_thread();
  else if (!strncmp(order, "watch:", 6))
    answer = watch();
  else
    exit(64);
  printf("%lld\n", answer ? answer : now_ns() - start);
  fflush(stdout);
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) obey(argv[i]);
  if (argc == 1) serve(NULL);
  return 0;
}
