// SPDX-License-Identifier: BSD-2-Clause
// Work that begins and never ends, in every way there is, and behind it work that does. Says how much of either there
// was: "begun ended".
// usage: never_ends KIND N
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WHOLE = 300 };
static long number;
static jmp_buf out;

/// Ends by a return, by leaving over its caller, or with its thread.
__attribute__((noinline)) long work(long how) {
  volatile long kept = how;
  if (kept == 1) longjmp(out, 1);
  if (kept == 2) pthread_exit(NULL);
  return kept + 1;
}

/// A call within many others, which are left together.
__attribute__((noinline)) long deep(long depth) {
  volatile long kept = depth;
  if (kept > 1) return deep(kept - 1) + 1;
  longjmp(out, 1);
}

static void* starts(void* unused) {
  DTRACE_PROBE1(never, start, 1L);
  return unused;
}

static void* leaves(void* unused) {
  work(2);
  return unused;
}

static void in_threads(void* (*what)(void*)) {
  pthread_t thread;
  for (long i = 0; i < number; i++)
    if (pthread_create(&thread, NULL, what, NULL) == 0) pthread_join(thread, NULL);
}

static void whole(void) {
  for (long i = 0; i < WHOLE; i++) {
    DTRACE_PROBE1(never, start, 1000 + i);
    DTRACE_PROBE1(never, done, 1000 + i);
    work(5);
  }
}

/// One in ten passes no end.
static long skip(void) {
  long ended = 0;
  for (long i = 0; i < number; i++) {
    DTRACE_PROBE1(never, start, i);
    if (i % 10 == 0) continue;
    DTRACE_PROBE1(never, done, i);
    ended++;
  }
  return ended;
}

/// Each is within one that never ends.
static void within(void) {
  DTRACE_PROBE1(never, start, -1L);
  DTRACE_PROBE1(never, start, -2L);
  for (long i = 0; i < number; i++) DTRACE_PROBE1(never, start, i);
  for (long i = 0; i < number; i++) DTRACE_PROBE1(never, done, number - 1 - i);
}

/// Until it sleeps, or a second has passed.
static void wait_for_sleep(pid_t pid) {
  char path[32], line[256];
  snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  for (int i = 0; i < 10000; i++) {
    const int fd = open(path, O_RDONLY);
    const ssize_t length = read(fd, line, sizeof(line) - 1);
    close(fd);
    line[length > 0 ? length : 0] = 0;
    const char* name_end = strrchr(line, ')');
    if (name_end && name_end[1] == ' ' && name_end[2] == 'S') return;
    usleep(100);
  }
}

/// Processes that are killed in poll(), or become another program.
static void in_processes(char** words) {
  const int execs = strcmp(words[1], "execs") == 0;
  char *again[] = {words[0], "nothing", "0", NULL}, *none[] = {NULL};
  for (long i = 0; i < number; i++) {
    const pid_t child = fork();
    if (child == 0) {
      DTRACE_PROBE1(never, start, i);
      if (execs) execve("/proc/self/exe", again, none);
      poll(NULL, 0, -1);
      _exit(1);
    }
    if (!execs) {
      wait_for_sleep(child);
      kill(child, SIGKILL);
    }
    waitpid(child, NULL, 0);
  }
}

/// The next thread gets this number.
static void let_next_be(pid_t tid) {
  char text[16];
  const int length = sprintf(text, "%d", tid - 1);
  const int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
  if (fd < 0 || write(fd, text, (size_t)length) != length) exit(77);
  close(fd);
}

static pid_t first, second;
static void* begins_as_first(void* unused) {
  first = (pid_t)syscall(SYS_gettid);
  DTRACE_PROBE1(never, start, 111L);
  return unused;
}
static void* ends_as_second(void* unused) {
  second = (pid_t)syscall(SYS_gettid);
  DTRACE_PROBE1(never, done, 222L);
  DTRACE_PROBE1(never, start, 333L);
  DTRACE_PROBE1(never, done, 333L);
  return unused;
}

/// Two threads of one number, one after the other. How often that was so.
static long namesakes(void) {
  long same = 0;
  for (long i = 0; i < number; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, begins_as_first, NULL);
    pthread_join(thread, NULL);
    usleep(20000);
    let_next_be(first);
    pthread_create(&thread, NULL, ends_as_second, NULL);
    pthread_join(thread, NULL);
    same += first == second;
  }
  return same;
}

/// The thread goes on as another program, which ends what it did not begin.
static void becomes_another(char** words) {
  char* again[] = {words[0], "ends", "1", NULL};
  DTRACE_PROBE1(never, start, 444L);
  execv("/proc/self/exe", again);
}

static pthread_barrier_t all_began;
static void* waits(void* number_of_it) {
  DTRACE_PROBE1(never, start, 5000 + (long)number_of_it);
  pthread_barrier_wait(&all_began);
  pause();
  return NULL;
}

/// Threads that are in the midst of it.
static void begin_waiting(void) {
  pthread_t thread;
  pthread_barrier_init(&all_began, NULL, (unsigned)number + 1);
  for (long i = 0; i < number; i++) pthread_create(&thread, NULL, waits, (void*)i);
  pthread_barrier_wait(&all_began);
}

/// The program goes on with them until it is ended.
static void hang(void) {
  begin_waiting();
  puts("hanging");
  fflush(stdout);
  pause();
}

/// As many have ended before the program does, in the midst of those others.
static void end(int aborts) {
  in_threads(starts);
  begin_waiting();
  usleep(200000);
  if (aborts) abort();
}

int main(int count, char** words) {
  if (count < 3) return 2;
  const char* kind = words[1];
  number = atol(words[2]);
  long ended = 0;
  if (strcmp(kind, "nothing") == 0) return 0;
  if (strcmp(kind, "ends") == 0) {
    DTRACE_PROBE1(never, done, 555L);
    return 0;
  }
  if (strcmp(kind, "returns") == 0 || strcmp(kind, "aborts") == 0) {
    end(kind[0] == 'a');
    return 0;
  }
  if (strcmp(kind, "skip") == 0) ended = skip();
  if (strcmp(kind, "within") == 0) within();
  if (strcmp(kind, "threads") == 0) in_threads(starts);
  if (strcmp(kind, "leaves") == 0) in_threads(leaves);
  if (strcmp(kind, "jumps") == 0)
    for (long i = 0; i < number; i++)
      if (setjmp(out) == 0) work(1);
  if (strcmp(kind, "deep") == 0)
    for (long i = 0; i < number; i++)
      if (setjmp(out) == 0) deep(100);
  if (strcmp(kind, "killed") == 0 || strcmp(kind, "execs") == 0) in_processes(words);
  if (strcmp(kind, "namesakes") == 0) ended = namesakes();
  if (strcmp(kind, "becomes") == 0) becomes_another(words);
  if (strcmp(kind, "hang") == 0) hang();
  if (strcmp(kind, "namesakes") != 0) whole();
  printf("%ld %ld\n", number, ended);
  return 0;
}
