/* SPDX-License-Identifier: BSD-2-Clause */
/* A host whose plugin takes libusdt-provider with it: `program LIBRARY` fires a probe from four threads, as if it were
 * traced, while the library is closed and opened again, and its probes retired. Ends with 0 if nothing became of it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <usdt/provider.h>

enum { THREADS = 4, ROUNDS = 50 };

static int (*fire)(const usdtp_probe*, const uint64_t*, size_t);
static usdtp_probe* probe;
static int stop;
static unsigned long fired;

static void* fire_on(void* unused) {
  (void)unused;
  const uint64_t values[] = {1, 2};
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    if (fire(__atomic_load_n(&probe, __ATOMIC_ACQUIRE), values, 2) != 0) abort();
    __atomic_fetch_add(&fired, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void* opened(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return handle;
}

/* A published probe that is as if somebody traced it. */
static usdtp_probe* added(void* library, usdtp_provider** provider) {
  __typeof__(&usdtp_provider_create) create =
      (__typeof__(&usdtp_provider_create))dlsym(library, "usdtp_provider_create");
  __typeof__(&usdtp_probe_add) add = (__typeof__(&usdtp_probe_add))dlsym(library, "usdtp_probe_add");
  __typeof__(&usdtp_provider_publish) publish =
      (__typeof__(&usdtp_provider_publish))dlsym(library, "usdtp_provider_publish");
  usdtp_probe* made = NULL;
  if (create("unloaded", 0, provider) != 0 || add(*provider, "tick", "u64 a, u64 b", &made) != 0 ||
      publish(*provider) != 0)
    exit(2);
  __atomic_store_n(&made->semaphore, 1, __ATOMIC_RELAXED);
  return made;
}

int main(int argc, char** argv) {
  pthread_t threads[THREADS];
  usdtp_provider* provider = NULL;
  if (argc != 2) return 2;
  void* library = opened(argv[1]);
  fire = (__typeof__(fire))dlsym(library, "usdtp_fire");
  probe = added(library, &provider);
  for (int i = 0; i < THREADS; ++i)
    if (pthread_create(&threads[i], NULL, fire_on, NULL) != 0) return 3;
  for (int round = 0; round < ROUNDS; ++round) {
    dlclose(library); /* they are in its code */
    usleep(500);
    library = opened(argv[1]);
    if ((__typeof__(fire))dlsym(library, "usdtp_fire") != fire) return 4; /* it never went */
    __typeof__(&usdtp_provider_retire) retire =
        (__typeof__(&usdtp_provider_retire))dlsym(library, "usdtp_provider_retire");
    usdtp_provider* old = provider;
    __atomic_store_n(&probe, added(library, &provider), __ATOMIC_RELEASE);
    retire(old); /* whose probe some are firing */
  }
  dlclose(library);
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  return __atomic_load_n(&fired, __ATOMIC_RELAXED) > THREADS ? 0 : 5;
}
