#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Presets about libraries, asked of programs that use them: their numbers are what the programs did."""

import ctypes
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, main, require_program, scenario  # noqa: E402
from presets_support import answers, asked  # noqa: E402

LIBC = """#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long waited[3];
static int begun;
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static void* hold(void* of) {
  long* mine = of;
  __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
  long began = now();
  pthread_mutex_lock(&mutex);
  *mine = now() - began;
  usleep(50000);
  pthread_mutex_unlock(&mutex);
  return of;
}
static void* kept[20];
static void forget(void) {
  for (int i = 0; i < 7; i++) kept[i] = malloc(1000);
  for (int i = 7; i < 11; i++) kept[i] = calloc(3, 100);
  for (int i = 11; i < 13; i++) kept[i] = realloc(0, 500);
  kept[13] = aligned_alloc(64, 640);
  for (int i = 14; i < 17; i++) kept[i] = realloc(malloc(10), 2000);
}
static void clean(void) {
  for (int i = 0; i < 50; i++) { free(malloc(i)); free(calloc(i, 10)); free(realloc(0, 10)); free(realloc(malloc(10), 100000)); free(aligned_alloc(64, 64)); }
}
int main(void) {
  clean(); forget(); clean();
  pthread_t threads[3];
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, hold, &waited[i]);
  while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) < 3) usleep(1000);
  usleep(20000);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  FILE* told = fopen("waited", "w");
  for (int i = 0; i < 3; i++) fprintf(told, "%ld\\n", waited[i]);
  fclose(told);
  for (int i = 0; i < 20; i++) getenv("PRESETS_TEST");
  for (int i = 0; i < 30; i++) free(malloc(70000 + i));
  struct addrinfo* found;
  return getaddrinfo("127.0.0.1", 0, 0, &found);
}
"""


@asked("libc.hosts,environment,threads,locks,allocations,allocation-times,allocating")
@scenario
def the_c_library_is_asked_for_hosts_variables_threads_locks_and_allocations(run):
    (run.dir / "libc.c").write_text(LIBC)
    program = run.build("libc", [run.dir / "libc.c"], ["-O0", "-fno-builtin"])
    got = answers(run, "libc.hosts,environment,threads,locks,allocations,allocation-times,allocating", [program])
    check_equal(got.counts("environment")["PRESETS_TEST"], 20, "variables")
    check_equal([args[:2] for args in got.args("hosts")], [["127.0.0.1", 0]], "names of hosts")
    buckets = got.objects("allocations", "table")[-1]["rows"][0]["buckets"]
    check_equal([each["count"] for each in buckets if each["first"] == 65536], [30], "allocations of 64 KiB and more")
    check(got.spans("allocation-times") >= 30, "times of allocations")
    check(sum(row["sum"] for row in got.objects("allocating", "table")[-1]["rows"]) >= 30 * 70000, "bytes")
    made = got.objects("threads", "event")
    address = hold_address(program)
    check_equal([int(str(event["args"][0]), 0) & 0xfff for event in made], [address & 0xfff] * 3, "functions of threads")
    check(all("main" in str(event["ustack"]) for event in made), f"who makes them: {made}")
    waits = [event["duration_ns"] for each in got.objects("locks", "slowest") for event in each["events"]]
    told = sorted((int(line) for line in (run.dir / "waited").read_text().split()), reverse=True)
    check(told[0] >= 60e6, f"waits for a mutex that each of three has for 50 ms: {told}")
    for ours, theirs in zip(waits, told):  # whose clock is read before and after the call, with hits between
        check(theirs - 40e6 < ours <= theirs, f"waits for a mutex: {waits[:4]}, of which the threads tell {told}")


def hold_address(program):
    return int(subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.split(" t hold")[0].split()[-1], 16)


@asked("libc.leaks,realloc-leaks")
@scenario
def what_is_not_freed_is_told_with_its_size_and_by_whom(run):
    (run.dir / "libc.c").write_text(LIBC)
    program = run.build("libc", [run.dir / "libc.c"], ["-O0", "-g", "-fno-builtin"])
    got = answers(run, "memleak", [program])

    def forgotten(question):
        """The room in what forget() made, by what it called."""
        sizes = {}
        for event in [each for found in got.objects(question, "in_flight") for each in found["events"]]:
            if "forget" in str(event["ustack"]):
                sizes.setdefault(event["probe"].split(":")[-1], []).append(event["args"][1])
            check("clean" not in str(event["ustack"]), f"freed: {event}")
            check("main" in str(event["ustack"]) or "forget" not in str(event["ustack"]), f"the whole stack: {event}")
        return {name: sorted(of) for name, of in sizes.items()}

    libc = ctypes.CDLL("libc.so.6")
    libc.malloc.restype, libc.malloc_usable_size.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

    def room(size):
        return libc.malloc_usable_size(libc.malloc(size))
    check_equal(forgotten("leaks"), {"malloc": [room(500)] * 2 + [room(1000)] * 7, "calloc": [room(300)] * 4, "aligned_alloc": [room(640)]}, "malloc()")
    check_equal(forgotten("realloc-leaks"), {"realloc": [room(500)] * 2 + [room(2000)] * 3}, "realloc()")


TYPED = {"ssl": """#include <stddef.h>
int SSL_write(void* s, const void* buf, int num) { return *(const volatile char*)buf ? num : -1; }
int SSL_write_ex(void* s, const void* buf, size_t num, size_t* written) { *written = num; return 1; }
""", "sqlite3": "int sqlite3_prepare_v2(void* db, const char* zSql, int nByte, void** ppStmt, const char** pzTail) { return 0; }"}


USES = """#include <stddef.h>
int SSL_write(void*, const void*, int), SSL_write_ex(void*, const void*, size_t, size_t*);
int sqlite3_prepare_v2(void*, const char*, int, void**, const char**);
int main(void) {
  size_t written;
  for (int n = 0; n < 3; n++) SSL_write(0, "tea", 3);
  SSL_write_ex(0, "coffee", 6, &written);
  for (int n = 0; n < 4; n++) sqlite3_prepare_v2(0, "select 1", -1, 0, 0);
}
"""


@scenario
def types_that_presets_say_give_way_to_those_of_debug_information(run):
    """Libraries have none in the distribution, and some whose debug packages are installed."""
    sonames = {"ssl": "libssl.so.3", "sqlite3": "libsqlite3.so.0"}
    (run.dir / "uses.c").write_text(USES)
    for flags in (["-g0"], ["-g"]):
        for name, code in TYPED.items():
            (run.dir / f"{name}.c").write_text(code)
            run.build(sonames[name], [run.dir / f"{name}.c"], ["-O1", *flags, "-shared", "-fPIC", f"-Wl,-soname,{sonames[name]}"])
        program = run.build("uses", [run.dir / "uses.c"], ["-O0", "-Wl,-rpath,$ORIGIN"], libs=[str(run.dir / each) for each in sonames.values()])
        got = answers(run, "openssl.sizes,written", [program])
        check_equal([bytes.fromhex(args[0]) for args in got.args("written")], [b"tea"] * 3 + [b"coffee"], f"{flags}: what is written")
        check_equal(sorted(row["sum"] for row in got.rows("sizes").values()), [6, 9], f"{flags}: bytes")
        check_equal(answers(run, "sqlite.prepared", [program]).counts("prepared"), {"select 1": 4}, f"{flags}: statements")
        check_equal("debug information knows the types of SSL_write" in got.said, flags == ["-g"], got.said)


@asked("sqlite.prepared,steps")
@scenario
def sqlite_is_asked_for_statements(run):
    require_program("sqlite3")
    got = answers(run, "sqlite", ["sqlite3", ":memory:", "create table a(b); insert into a values (1), (2); select b from a;"])
    check_equal(got.counts("prepared").get("select b from a;"), 1, f"statements {got.counts('prepared')}")
    check(got.spans("steps") >= 5, "steps")


SAMPLED = """#include <sys/sdt.h>
static char memory[400];
__attribute__((noinline)) static void take(int n) { DTRACE_PROBE3(otel_memory, alloc, &memory[n], (long)(n < 100 ? 64 : 4096), 524288L); }
int main(void) {
  for (int n = 0; n < 300; n++) { take(n); if (n % 3) DTRACE_PROBE1(otel_memory, free, &memory[n]); }
  return 0;
}
"""


@asked("otel-memory.allocating,sizes,lifetimes,live")
@scenario
def allocators_that_take_samples_are_asked_for_who_allocates_and_what_is_live(run):
    (run.dir / "sampled.c").write_text(SAMPLED)
    program = run.build("sampled", [run.dir / "sampled.c"], ["-O1", "-fno-omit-frame-pointer"])
    got = answers(run, "otel-memory.allocating,sizes,lifetimes,live", [program])
    check_equal([row["sum"] for row in got.objects("allocating", "table")[-1]["rows"] if "take" in str(row)], [300 * 524288], "bytes by stack")
    buckets = got.objects("sizes", "table")[-1]["rows"][0]["buckets"]
    check_equal({each["first"]: each["count"] for each in buckets if each["count"]}, {64: 100, 4096: 200}, "sizes")
    check_equal(got.spans("lifetimes"), 200, "what was freed")
    live = [event["args"][0] for each in got.objects("live", "in_flight") for event in each["events"]]
    check_equal([address - live[0] for address in live], list(range(0, 300, 3)), "what was not freed, the oldest first")


if __name__ == "__main__":
    main()
