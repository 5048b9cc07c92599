// SPDX-License-Identifier: BSD-2-Clause
// A program that looks like OpenJDK, and says without end what it has compiled and thrown away, each time another
// method. Code of its own calls sched_yield(). argv: how often.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>

int sched_yield(void);

unsigned long gHotSpotVMStructs;
static volatile int over;

static void* say(void* of) {
  const unsigned long first = (unsigned long)of << 40;
  char name[24];

  for (unsigned long n = 0; !over; n++) {
    const int length = snprintf(name, sizeof(name), "%lx", first + n);

    STAP_PROBE8(hotspot, compiled__method__load, "Fake", 4, name, length, "()V", 3, n << 8, 256);
    STAP_PROBE6(hotspot, compiled__method__unload, "Gone", 4, name, length, "()V", 3);
  }
  return NULL;
}

int main(int argc, char** argv) {
  static const unsigned char calls_its_argument[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  const int times = argc > 1 ? atoi(argv[1]) : 1;
  pthread_t threads[2];
  void* code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (code == MAP_FAILED) return 77;
  memcpy(code, calls_its_argument, sizeof(calls_its_argument));
  puts("ready");
  fflush(stdout);
  if (getchar() == EOF) return 1;
  for (unsigned long n = 0; n < 2; n++) pthread_create(&threads[n], NULL, say, (void*)(n + 1));
  for (int n = 0; n < times; n++) {
    ((int (*)(int (*)(void)))code)(sched_yield);
    usleep(10000);
  }
  over = 1;
  for (int n = 0; n < 2; n++) pthread_join(threads[n], NULL);
  return 0;
}
