/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes of <usdt/provider.h>, in the ways that runtime_test.py traces: `program COMMAND [ARGUMENTS]`. It says its pid
 * when its probes are there and goes on at the first line of its standard input.
 */
#include "runtime_program.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <usdt/provider.h>

void must(int status, const char* what) {
  if (status == 0) return;
  fprintf(stderr, "%s: %s\n", what, strerror(-status));
  exit(3);
}

usdtp_provider* provider_of(const char* name) {
  usdtp_provider* provider;
  must(usdtp_provider_create(name, 0, &provider), "create");
  return provider;
}

usdtp_probe* probe_of(usdtp_provider* provider, const char* name, const char* arguments) {
  usdtp_probe* probe;
  must(usdtp_probe_add(provider, name, arguments, &probe), name);
  return probe;
}

void ready(void) {
  char line[16];
  printf("%d\n", (int)getpid());
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) exit(4);
}

static usdtp_probe* one_published(const char* provider_name) {
  usdtp_provider* provider = provider_of(provider_name);
  usdtp_probe* probe = probe_of(provider, "tick", "i32 number");
  must(usdtp_provider_publish(provider), "publish");
  return probe;
}

/* Fires numbers 0 to `count` - 1. */
static void tick(usdtp_probe* probe, int count) {
  for (int i = 0; i < count; ++i) USDT_PROBE_FIRE(probe, i);
}

/* A parent and a child, each with the probe from before and with one of its own, which only differ in the name. */
static int run_fork(int count) {
  usdtp_provider* provider = provider_of("forked");
  usdtp_probe* before = probe_of(provider, "before", "i32 number");
  usdtp_probe* waiting = NULL;
  must(usdtp_provider_publish(provider), "publish");
  waiting = probe_of(provider, "waiting", "i32 number");
  const pid_t child = fork();
  usdtp_probe* own = probe_of(provider, child == 0 ? "of_child" : "of_parent", "i32 number");
  must(usdtp_provider_publish(provider), "publish");
  if (child == 0) {
    close(0);
    pause();
  }
  printf("%d\n", (int)child);
  ready();
  for (int i = 0; i < count; ++i) {
    USDT_PROBE_FIRE(before, i);
    USDT_PROBE_FIRE(waiting, i);
    USDT_PROBE_FIRE(own, i);
  }
  return kill(child, SIGKILL) != 0 || waitpid(child, NULL, 0) != child;
}

/* The child fires what its parent made, and what it adds itself. */
static int run_child_fires(int count) {
  usdtp_provider* provider = provider_of("forked");
  usdtp_probe* before = probe_of(provider, "before", "i32 number");
  must(usdtp_provider_publish(provider), "publish");
  usdtp_probe* waiting = probe_of(provider, "waiting", "i32 number");
  const pid_t child = fork();
  if (child != 0) {
    probe_of(provider, "of_parent", "str a, str b"); /* in the slot that the child gives to another one */
    must(usdtp_provider_publish(provider), "publish");
    int status = 0;
    return waitpid(child, &status, 0) != child || status != 0;
  }
  usdtp_probe* own = probe_of(provider, "of_child", "i32 number");
  must(usdtp_provider_publish(provider), "publish");
  ready();
  for (int i = 0; i < count; ++i) {
    USDT_PROBE_FIRE(before, i);
    USDT_PROBE_FIRE(waiting, i);
    USDT_PROBE_FIRE(own, i);
  }
  return 0;
}

/* Probes that are published one after the other, the second while the first is traced. */
static int run_later(int count) {
  usdtp_provider* provider = provider_of("later");
  usdtp_probe* first = probe_of(provider, "first", "i32 number");
  must(usdtp_provider_publish(provider), "publish");
  ready();
  usdtp_probe* second = probe_of(provider, "second", "i32 number");
  usleep(300000); /* its file is mapped, and has no head yet: who looks now sees nothing */
  must(usdtp_provider_publish(provider), "publish");
  ready();
  tick(first, count);
  tick(second, count);
  return 0;
}

static int run_many(int count) {
  usdtp_provider* provider = provider_of("many");
  usdtp_probe** probes = calloc((size_t)count, sizeof *probes);
  for (int i = 0; i < count; ++i) {
    char name[32];
    snprintf(name, sizeof name, "probe_%d", i);
    probes[i] = probe_of(provider, name, "i32 number, u64 square");
  }
  must(usdtp_provider_publish(provider), "publish");
  ready();
  for (int i = 0; i < count; ++i) USDT_PROBE_FIRE(probes[i], i, (long)i * i);
  free(probes);
  return 0;
}

/* Threads fire probes while another one retires them and adds others in their places. */
enum { THREADS = 4, PLACES = 8 };
static usdtp_probe* places[PLACES];
static int stop;

static void* fire_on(void* unused) {
  (void)unused;
  unsigned long fired = 0;
  for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); ++fired)
    USDT_PROBE_FIRE(__atomic_load_n(&places[fired % PLACES], __ATOMIC_ACQUIRE), fired, "text");
  return NULL;
}

/* `traced`: as if somebody traced all of them. */
static int run_threads(int rounds, int traced) {
  usdtp_provider* provider = provider_of("threads");
  for (int i = 0; i < PLACES; ++i) {
    char name[16];
    snprintf(name, sizeof name, "place_%d", i);
    places[i] = probe_of(provider, name, "u64 number, str what");
    if (traced) __atomic_store_n(&places[i]->semaphore, 1, __ATOMIC_RELAXED);
  }
  must(usdtp_provider_publish(provider), "publish");
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) must(-pthread_create(&threads[i], NULL, fire_on, NULL), "thread");
  if (!traced) ready();
  for (int round = 0; round < rounds; ++round) {
    const int at = round % PLACES;
    char name[16];
    snprintf(name, sizeof name, "place_%d", at);
    usdtp_probe_retire(places[at]);
    usdtp_probe* next = probe_of(provider, name, "u64 number, str what");
    if (traced) __atomic_store_n(&next->semaphore, 1, __ATOMIC_RELAXED);
    if (round % 4 == 0) must(usdtp_provider_publish(provider), "publish");
    __atomic_store_n(&places[at], next, __ATOMIC_RELEASE);
    if (round % 16 == 3) {
      const pid_t child = fork();
      if (child == 0) {
        probe_of(provider, "of_child", "");
        const int status = usdtp_provider_publish(provider);
        usdtp_provider_retire(provider);
        _exit(status != 0);
      }
      int status = 0;
      if (waitpid(child, &status, 0) != child || status != 0) return 5;
    }
    if (!traced) usleep(5000);
  }
  if (rounds % 2) usdtp_provider_retire(provider); /* while they fire */
  usleep(20000);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  if (rounds % 2 == 0) usdtp_provider_retire(provider);
  return 0;
}

/* Fired before and after its end. */
static int run_retire(void) {
  usdtp_provider* provider = provider_of("ends");
  usdtp_probe* probe = probe_of(provider, "tick", "i32 number");
  must(usdtp_provider_publish(provider), "publish");
  ready();
  tick(probe, 10);
  if (!usdtp_probe_traced(probe)) return 5;
  usdtp_probe_retire(probe);
  tick(probe, 10);
  if (usdtp_probe_traced(probe)) return 6;
  ready();
  usdtp_provider_retire(provider);
  tick(probe, 10);
  const uint64_t number = 1;
  return probe->semaphore != 0 || usdtp_fire(probe, &number, 1) != 0;
}

/* Makes system call `number` fail with `error`; with `mask` only where argument 2 has one of its bits. */
static void refuse(int number, int error, unsigned mask) {
  const unsigned yes = mask ? 0 : 2;
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, (unsigned char)yes, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof code[0], code};
  must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges");
  must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

/* With a system that refuses something: says the error, or fires. */
static int run_refused(const char* what, int count) {
  if (strcmp(what, "memfd") == 0) refuse(SYS_memfd_create, ENOSYS, 0);
  if (strcmp(what, "executable") == 0) refuse(SYS_mmap, EACCES, PROT_EXEC);
  if (strcmp(what, "memory") == 0) setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, 1 << 20});
  if (strcmp(what, "files") == 0) setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
  if (strcmp(what, "size") == 0) setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096});
#ifdef PR_SET_MDWE
  if (strcmp(what, "write_and_execute") == 0) must(prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0), "MDWE");
#endif
  usdtp_provider* provider = NULL;
  usdtp_probe* probe = NULL;
  must(usdtp_provider_create("refused", 0, &provider), "create");
  const int status = usdtp_probe_add(provider, "tick", "i32 number", &probe);
  USDT_PROBE_FIRE(probe, 1); /* also where it could not be added */
  if (status != 0) {
    printf("%d\n", -status);
    const uint64_t number = 1;
    const int fired = usdtp_fire(probe, &number, 1);
    usdtp_probe_retire(probe);
    usdtp_provider_retire(provider);
    return fired;
  }
  must(usdtp_provider_publish(provider), "publish");
  ready();
  tick(probe, count);
  return 0;
}

int main(int argc, char** argv) {
  const char* command = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  if (strcmp(command, "values") == 0 && argc > 3) return run_values(number, argv[3]);
  if (strcmp(command, "fork") == 0) return run_fork(number);
  if (strcmp(command, "child") == 0) return run_child_fires(number);
  if (strcmp(command, "later") == 0) return run_later(number);
  if (strcmp(command, "many") == 0) return run_many(number);
  if (strcmp(command, "threads") == 0) return run_threads(number, 0);
  if (strcmp(command, "threads_as_if_traced") == 0) return run_threads(number, 1);
  if (strcmp(command, "retire") == 0) return run_retire();
  if (strcmp(command, "refused") == 0 && argc > 3) return run_refused(argv[3], number);
  if (strcmp(command, "tick") == 0) {
    usdtp_probe* probe = one_published("ticks");
    ready();
    tick(probe, number);
    return 0;
  }
  fprintf(stderr, "which command?\n");
  return 2;
}
