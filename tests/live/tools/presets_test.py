#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Presets asked of the distribution's programs: their numbers are what the programs did. Each question of each preset is
asked by a scenario, here or in presets_servers_test.py; the last one looks whether that is so."""

import ctypes
import json
import os
import pathlib
import pty
import re
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import Skip, check, check_equal, free_port, main, require_file, require_program, require_root, scenario, wait_line, wait_until  # noqa: E402
from presets_support import answers, asked, check_ready, questions_asked  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
PYTHON = "/usr/bin/python3.11"
PROGRAM = """
import gc
gc.disable()
def callee(n): return n + 1
for n in range(300): callee(n)
for _ in range(7): gc.collect(1)
import colorsys
"""


@asked("python.gc,imports,calls,slow-calls,flow,stat,lines,audit")
@scenario
def python_is_asked_for_collections_imports_calls_lines_and_audit_events(run):
    require_file(PYTHON)
    program = run.dir / "program.py"
    program.write_text(PROGRAM)
    got = answers(run, "python.gc,imports,calls,slow-calls,flow,stat,lines,audit", [PYTHON, "-S", program.name])
    check_equal(got.rows("gc")[1]["count"], 7, "collections of generation 1")
    check("colorsys" in [args[0] for args in got.args("imports")], f"imports: {got.args('imports')}")
    alone = answers(run, "python.calls", [PYTHON, "-S", program.name])  # what traces no lines has all calls, too
    for each in (got, alone):
        check_equal([count for (name, _), count in each.counts("calls").items() if name == "callee"], [300], "calls")
    turns = [count for (file, line), count in got.counts("lines").items() if str(program).startswith(file) and line == 5]
    check(turns and turns[0] >= 300, f"turns of a loop: {turns}")
    check(got.spans("slow-calls") > 0, "no slow calls")
    check(["cpython.run_file"] in got.args("audit"), "audit events")
    flow = got.args("flow")
    check_equal([(name, function) for name, function, _, line in flow if function == "callee"],
                [("function__entry", "callee"), ("function__return", "callee")] * 300, "calls and returns")
    each = got.counts("stat")
    check_equal(each["function__return"], sum(1 for args in flow if args[0] == "function__return"), "calls")
    check_equal(each["gc__start"], sum(got.counts("gc").values()), "collections")
    check("each call of a Python function is a hit" in got.said, got.said)


SCRIPT = """<?php
for ($i = 0; $i < 3; $i++) echo $nope;
trigger_error("too hot", E_USER_WARNING);
function f($n) { if ($n % 3 == 0) throw new RuntimeException("no"); return $n; }
for ($i = 0; $i < 30; $i++) { try { f($i); } catch (Exception $e) {} }
include __DIR__ . "/shelf.php";
"""


@asked("php.requests,exceptions,errors,functions,slow-functions,files,flow,stat")
@scenario
def php_is_asked_for_requests_exceptions_errors_functions_and_files(run):
    require_program("php8.2")
    program = run.dir / "program.php"
    program.write_text(SCRIPT)
    shelf = run.dir / "shelf.php"
    shelf.write_text("<?php return 3;")
    command = ["php8.2", program.name]
    got = answers(run, "php", command)
    check_equal(got.counts("exceptions"), {"RuntimeException": 10}, "exceptions")
    check_equal(got.spans("requests"), 1, "requests")
    file = str(program)
    check_equal(got.args("errors"), [[2, file, 2, "Undefined variable $nope"]] * 3 + [[512, file, 3, "too hot"]], "errors")
    silent = answers(run, "phpcalls", command)
    check_equal(silent.counts("functions"), {}, "functions without the variable")
    check("its probes fire only if it was started with USE_ZEND_DTRACE=1 in its environment, and the command is not" in silent.said, silent.said)
    got = answers(run, "php.functions,slow-functions,files,flow,stat", command, {"USE_ZEND_DTRACE": "1"})
    called = {(name, path): count for (_, _, name, path), count in got.counts("functions").items()}
    check_equal({of: called.get(of) for of in (("f", file), ("main", file), ("main", str(shelf)))}, {("f", file): 30, ("main", file): 1, ("main", str(shelf)): 1},
                f"calls by whole paths: {called}")
    check(got.spans("slow-functions") > 0, "no slow functions")
    flow = [(args[0], args[3]) for args in got.args("flow")]
    check_equal([flow.count((name, "f")) for name in ("function__entry", "function__return")], [30, 30], "calls and returns of f")
    check_equal(got.counts("stat"), {"function__entry": sum(1 for name, _ in flow if name == "function__entry"), "exception__thrown": 10,
                                     "request__startup": 1, "compile__file__entry": 2}, "how many of each")
    check_equal(sorted(args[0] for args in got.args("files")), [str(program), str(shelf)], "files")


RUBY = """class Shop; def initialize(n); @n = n; end; end
50.times { |n| Shop.new(n) }
12.times { begin; raise ArgumentError, "no"; rescue ArgumentError; end }
require "set"
GC.start
def work(n); n; end
def traced; TracePoint.new(:call, :return) {}.enable { 40.times { |n| work(n) } }; end
traced
500.times { "text".swapcase }
"""


@asked("ruby.exceptions,allocations,strings,requires,marking,sweeping,methods,c-methods,flow,stat")
@scenario
def ruby_is_asked_for_exceptions_allocations_files_collections_and_methods(run):
    require_program("ruby3.1")
    program = run.dir / "program.rb"
    program.write_text(RUBY)
    got = answers(run, "ruby.exceptions,allocations,strings,requires,marking,sweeping,methods,c-methods,flow,stat", ["ruby3.1", program])
    file = str(program)
    check_equal(got.counts("exceptions")[("ArgumentError", file, 3)], 12, "exceptions")
    check_equal(got.counts("allocations")[("Shop", file, 2)], 50, "objects")
    check_equal(got.counts("methods")[("Object", "work", file)], 40, "methods within a TracePoint")
    check("its probes fire only if the program has a TracePoint" in got.said, got.said)
    check_equal(got.counts("c-methods")[("String", "swapcase")], 500, "methods in C")
    check(got.spans("marking") > 0 and got.spans("sweeping") > 0, "collections")
    check(any("set" in str(args) for args in got.args("requires")), "required files")
    check(got.rows("strings"), "strings")
    flow = [(args[0], args[2]) for args in got.args("flow")]
    check_equal([flow.count((name, "work")) for name in ("method__entry", "method__return")], [40, 40], "calls and returns of a method")
    each = got.counts("stat")
    check_equal((each["raise"], each["cmethod__entry"]), (sum(got.counts("exceptions").values()), sum(1 for name, _ in flow if name == "cmethod__entry")), "how many of each")


THROWS = """#include <stdexcept>
int main() { for (int i = 0; i < 9; i++) try { if (i % 3) throw std::runtime_error("x"); throw i; } catch (...) {} }
"""


@asked("libstdc++.thrown,places,unwinding")
@scenario
def exceptions_of_cpp_are_told_by_type_and_time(run):
    (run.dir / "throws.cpp").write_text(THROWS)
    program = run.build("throws", [run.dir / "throws.cpp"], compiler="g++")
    got = answers(run, "libstdc++.thrown,places,unwinding", [program])
    check_equal(got.counts("thrown"), {"St13runtime_error": 6, "i": 3}, "exceptions by type")
    places = got.objects("places", "table")[-1]["rows"]
    check_equal(sum(row["count"] for row in places if "main" in str(row["key"])), 9, f"exceptions by stack: {places}")
    check_equal(got.spans("unwinding"), 9, "exceptions that were caught")


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


WAITS = """#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
static long long now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
__attribute__((noinline)) void naps(void) { usleep(50000); }
__attribute__((noinline)) void dozes(void) { usleep(5000); }
int main(void) {
  long long off = now(CLOCK_PROCESS_CPUTIME_ID) - now(CLOCK_MONOTONIC);
  for (int n = 0; n < 7; n++) naps();
  for (int n = 0; n < 20; n++) dozes();
  for (volatile long n = 0; n < 300000000; n++) {}
  off += now(CLOCK_MONOTONIC) - now(CLOCK_PROCESS_CPUTIME_ID);
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  FILE* said = fopen("said", "w");
  fprintf(said, "%lld %ld", off, used.ru_nivcsw);
  return fclose(said);
}
"""


@asked("offcpu.waits,time,preferred")
@scenario
def where_threads_wait_and_how_long_is_told_by_stack(run):
    """All that it is off its processor is what the program finds by two clocks."""
    require_root()
    listed = subprocess.run([run.tool.with_name("usdt-list"), "raw_tp:sched_exit_tp"], capture_output=True, text=True)
    if "sched_exit_tp" not in listed.stdout:
        raise Skip("this kernel has no sched_exit_tp")
    (run.dir / "waits.c").write_text(WAITS)
    program = run.build("waits", [run.dir / "waits.c"], ["-O1", "-g"])
    got = answers(run, "offcpu.waits,time,preferred", [program])
    off, preferred = map(int, (run.dir / "said").read_text().split())

    def rows(question, function):
        return [row for row in got.objects(question, "table")[-1]["rows"] if isinstance(row["key"][1], list) and any(frame.get("function", "").startswith(function) for frame in row["key"][1])]
    for function, count, least in (("naps", 7, 50e6), ("dozes", 20, 5e6)):
        waits = rows("waits", function)
        check_equal(sum(row["count"] for row in waits), count, f"waits in {function}()")
        check(sum(row["sum"] for row in waits) >= count * least, f"how long: {waits}")
        check(all("nanosleep" in str(row["key"][2]) for row in waits), f"where in the kernel: {waits}")
    told = sum(row["sum"] for row in rows("time", "main"))
    check(0.95 * off < told < 1.05 * off, f"off for {off} ns, and told {told}")
    counted = sum(row["count"] for row in got.objects("preferred", "table")[-1]["rows"])
    check(abs(counted - preferred) <= 5 + preferred // 20, f"{preferred} times preempted, and told {counted}")


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


@asked("sqlite.prepared,steps")
@scenario
def sqlite_is_asked_for_statements(run):
    require_program("sqlite3")
    got = answers(run, "sqlite", ["sqlite3", ":memory:", "create table a(b); insert into a values (1), (2); select b from a;"])
    check_equal(got.counts("prepared").get("select b from a;"), 1, f"statements {got.counts('prepared')}")
    check(got.spans("steps") >= 5, "steps")


@asked("bash.lines")
@scenario
def bash_is_asked_for_lines_that_people_type(run):
    require_root()
    leader, follower = pty.openpty()
    shell = run.adopt(subprocess.Popen(["/bin/bash", "--norc", "-i"], stdin=follower, stdout=follower, stderr=follower,
                                       start_new_session=True, env={**os.environ, "PS1": "ready> ", "HISTFILE": "/dev/null"}))
    os.close(follower)
    shown = b""

    def until(text):
        nonlocal shown
        while text not in shown:
            shown += os.read(leader, 4096)

    def type_lines():
        for n in range(5):
            os.write(leader, f"echo line-$(( {n} * 2 ))\n".encode())
            until(f"line-{2 * n}\r".encode())
    until(b"ready> ")
    got = answers(run, "bashreadline", options=["-p", shell.pid], work=type_lines)
    check_equal([args[0] for args in got.args("lines")], [f"echo line-$(( {n} * 2 ))" for n in range(5)], "lines")


TLS = """
import socket, ssl, threading
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); server.load_cert_chain("cert.pem", "key.pem")
client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); client.check_hostname = False; client.verify_mode = ssl.CERT_NONE
ours, theirs = socket.socketpair()
def serve():
    with server.wrap_socket(theirs, server_side=True) as tls:
        while tls.recv(4096): pass
thread = threading.Thread(target=serve); thread.start()
with client.wrap_socket(ours) as tls:
    for n in range(10): tls.write(b"GET /secret HTTP/1.1")
    ours = tls.unwrap()
thread.join()
"""


TLS_SERVER = """
import socket, ssl, time
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("cert.pem", "key.pem")
listener = socket.create_server(("127.0.0.1", 0)); print(listener.getsockname()[1], flush=True)
with context.wrap_socket(listener.accept()[0], server_side=True) as tls:
    for n in range(10): tls.write(b"tea %d\\n" % n); time.sleep(0.05)
    tls.unwrap()
"""


# The client does not wait: where the server, who is slow, has not taken what came before, it hands over the same once more.
TLS_WITHOUT_WAITING = """
import pathlib, select, socket, ssl, threading, time
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); server.load_cert_chain("cert.pem", "key.pem")
client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); client.check_hostname = False; client.verify_mode = ssl.CERT_NONE
ours, theirs = socket.socketpair()
def serve():
    with server.wrap_socket(theirs, server_side=True, suppress_ragged_eofs=True) as tls:
        while tls.recv(4096): time.sleep(0.001)
thread = threading.Thread(target=serve); thread.start()
again = shaken = 0
ours.setblocking(False)
with client.wrap_socket(ours, do_handshake_on_connect=False) as tls:
    while True:
        try:
            shaken += 1; tls.do_handshake(); break
        except ssl.SSLWantReadError:
            select.select([tls], [], [])
    for n in range(50):
        while True:
            try:
                tls.write(bytes(16000)); break
            except ssl.SSLWantWriteError:
                again += 1; select.select([], [tls], [])
thread.join()
pathlib.Path("again").write_text(f"{again} {shaken}")
"""


# SSL_write() may write less than it is handed (SSL_MODE_ENABLE_PARTIAL_WRITE), and says how much.
TLS_IN_PARTS = """
import ctypes, pathlib, socket, ssl, threading
of = ctypes.CDLL("libssl.so.3")
for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"): getattr(of, name).restype = ctypes.c_void_p
made = lambda function, *args: ctypes.c_void_p(function(*args))
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); server.load_cert_chain("cert.pem", "key.pem")
ours, theirs = socket.socketpair()
def serve():
    with server.wrap_socket(theirs, server_side=True, suppress_ragged_eofs=True) as tls:
        while tls.recv(4096): pass
thread = threading.Thread(target=serve); thread.start()
context = made(of.SSL_CTX_new, made(of.TLS_client_method))
of.SSL_CTX_ctrl(context, 33, ctypes.c_long(1), None)
tls = made(of.SSL_new, context)
of.SSL_set_fd(tls, ours.fileno()); assert of.SSL_connect(tls) == 1
written, rest = [], bytes(range(250)) * 400
while rest:
    written.append(of.SSL_write(tls, rest, len(rest))); rest = rest[written[-1]:]
of.SSL_shutdown(tls); ours.close(); thread.join()
pathlib.Path("written").write_text(" ".join(map(str, written)))
"""


def make_certificate(run):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
                    "-subj", "/CN=localhost"], cwd=run.dir, check=True, capture_output=True)


@asked("openssl.handshakes,sizes,written,received,calls")
@scenario
def openssl_is_asked_for_handshakes_and_what_is_written_and_read(run):
    require_file(PYTHON)
    require_program("openssl")
    make_certificate(run)
    (run.dir / "tls.py").write_text(TLS)
    got = answers(run, "openssl.handshakes,sizes,written", [PYTHON, "tls.py"])
    check_equal(got.spans("handshakes"), 2, "handshakes of both ends")
    check_equal([bytes.fromhex(args[0]) for args in got.args("written")], [b"GET /secret HTTP/1.1"] * 10, "what was written")
    check_equal([row["sum"] for row in got.rows("sizes").values()], [200], "bytes that were written")
    # The program openssl reads by SSL_read() what a server of Python says.
    (run.dir / "says.py").write_text(TLS_SERVER)
    server = run.start(PYTHON, "says.py", stdout=subprocess.PIPE, bufsize=0, cwd=run.dir)
    got = answers(run, "openssl.received,written,calls", ["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{wait_line(server)}"])
    check_equal(b"".join(bytes.fromhex(args[0]) for args in got.args("received")), b"".join(b"tea %d\n" % n for n in range(10)), "what was read")
    calls = got.rows("calls")
    check_equal({name: row["count"] for name, row in calls.items()}, {"SSL_read": got.objects("received", "summary")[-1]["hits"],
                                                                     "SSL_write": got.objects("written", "summary")[-1]["hits"]}, "calls")
    check("'sslsniff' is asked by gnutls.sent,received, openssl.written,received: name one" in refused(run, "sslsniff"), "a name of two")


@asked("openssl.handshakes,sizes,written")
@scenario
def bytes_that_are_handed_over_again_since_the_peer_took_none_are_written_once(run):
    require_file(PYTHON)
    require_program("openssl")
    make_certificate(run)
    (run.dir / "tls.py").write_text(TLS_WITHOUT_WAITING)
    got = answers(run, "openssl.handshakes,sizes,written", [PYTHON, "tls.py"])
    again, shaken = map(int, (run.dir / "again").read_text().split())
    check(again > 0, "the peer took all at once")
    check(shaken > 1, "the handshake was done at once")
    check_equal(got.spans("handshakes"), 2, "handshakes, of both ends")
    check_equal([(row["count"], row["sum"]) for row in got.rows("sizes").values()], [(50, 50 * 16000)], "bytes that were written")
    check_equal(len(got.args("written")), 50, "what was written")


@asked("openssl.sizes,written")
@scenario
def what_is_written_in_parts_is_counted_by_what_was_written(run):
    require_file(PYTHON)
    require_program("openssl")
    make_certificate(run)
    (run.dir / "tls.py").write_text(TLS_IN_PARTS)
    got = answers(run, "openssl.sizes,written", [PYTHON, "tls.py"])
    written = list(map(int, (run.dir / "written").read_text().split()))
    check(len(written) > 1, f"all was written at once: {written}")
    check_equal([(row["count"], row["sum"]) for row in got.rows("sizes").values()], [(len(written), 100000)], "bytes that were written")
    check_equal([len(bytes.fromhex(args[0])) for args in got.args("written")], [min(each, 400) for each in written], "what was written")


def refused(run, preset):
    return subprocess.run([run.tool, "--preset", preset], capture_output=True, text=True).stderr


@asked("gnutls.handshakes,sizes,sent,received")
@scenario
def gnutls_is_asked_for_handshakes_and_what_is_sent_and_received(run):
    require_program("gnutls-serv", "gnutls-cli", "openssl")
    make_certificate(run)
    port = free_port()
    server = run.start("gnutls-serv", "--echo", "--quiet", "--port", port, "--x509certfile", "cert.pem", "--x509keyfile", "key.pem",
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=run.dir)
    wait_until(lambda: f":{port:04X} " in pathlib.Path("/proc/net/tcp").read_text(), "the server")
    check_ready(run, server.pid, "gnutls")
    client = "for n in 1 2 3 4 5; do echo tea-$n; sleep 0.05; done | gnutls-cli --insecure --logfile /dev/null -p {} 127.0.0.1"

    def work():
        subprocess.run(["bash", "-c", client.format(port)], cwd=run.dir, check=True, stdout=subprocess.DEVNULL)
    got = answers(run, "gnutls.handshakes,sizes,sent,received", options=["-p", server.pid], work=work)
    lines = b"".join(b"tea-%d\n" % n for n in range(1, 6))
    check_equal(got.counts("handshakes"), {0: 1}, "handshakes")
    for question in ("sent", "received"):
        check_equal(b"".join(bytes.fromhex(args[0]) for args in got.args(question)), lines, question)
    check_equal([row["sum"] for row in got.rows("sizes").values()], [len(lines)], "bytes that were sent")


# GnuTLS says -28 where it would have to wait.
GNUTLS_WITHOUT_WAITING = """
import ctypes, pathlib, select, socket, ssl, threading, time
of = ctypes.CDLL("libgnutls.so.30"); of.gnutls_record_send.restype = ctypes.c_ssize_t
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); server.load_cert_chain("cert.pem", "key.pem")
ours, theirs = socket.socketpair(); ours.setblocking(False)
def serve():
    with server.wrap_socket(theirs, server_side=True, suppress_ragged_eofs=True) as tls:
        while tls.recv(4096): time.sleep(0.001)
thread = threading.Thread(target=serve); thread.start()
session, credentials = ctypes.c_void_p(), ctypes.c_void_p()
of.gnutls_init(ctypes.byref(session), 2 | 8); of.gnutls_set_default_priority(session)
of.gnutls_certificate_allocate_credentials(ctypes.byref(credentials)); of.gnutls_credentials_set(session, 1, credentials)
of.gnutls_transport_set_int2(session, ours.fileno(), ours.fileno())
again = {"handshake": 0, "send": 0}
def insist(name, call):
    while (done := call()) == -28: again[name] += 1; select.select([ours] * (name == "handshake"), [ours] * (name == "send"), [], 0.1)
    assert done >= 0, done
insist("handshake", lambda: of.gnutls_handshake(session))
for n in range(50): insist("send", lambda: of.gnutls_record_send(session, bytes(16000), ctypes.c_size_t(16000)))
of.gnutls_bye(session, 1); ours.close(); thread.join()
pathlib.Path("again").write_text(f"{again['handshake']} {again['send']}")
"""


@asked("gnutls.handshakes,sizes,sent")
@scenario
def what_gnutls_is_asked_again_since_it_would_wait_counts_once(run):
    require_file(PYTHON)
    require_program("gnutls-cli", "openssl")
    make_certificate(run)
    (run.dir / "tls.py").write_text(GNUTLS_WITHOUT_WAITING)
    got = answers(run, "gnutls.handshakes,sizes,sent", [PYTHON, "tls.py"])
    check(all(int(count) > 0 for count in (run.dir / "again").read_text().split()), "it never had to wait")
    check_equal(got.named_counts("handshakes"), {"done": 1}, "handshakes")
    check_equal([(row["count"], row["sum"]) for row in got.rows("sizes").values()], [(50, 50 * 16000)], "bytes that were sent")
    check_equal([len(bytes.fromhex(args[0])) for args in got.args("sent")], [400] * 50, "what was sent")


JAVA = """
public class Shop {
  static int work(int n) { return n + 1; }
  static final Object lock = new Object();
  public static void main(String[] args) throws Exception {
    System.gc();
    for (int n = 0; n < 50000; n++) work(n);
    for (int n = 0; n < 20000; n++) args = new String[] {"" + new Shop()};
    Thread other = new Thread(() -> { for (int n = 0; n < 5; n++) synchronized (lock) { pause(20); } }, "till");
    other.start();
    for (int n = 0; n < 5; n++) { synchronized (lock) { pause(20); } }
    other.join();
  }
  static void pause(int ms) { try { Thread.sleep(ms); } catch (InterruptedException e) {} }
}
"""


@asked("hotspot.gc,safepoints,threads,classes,monitors,allocations,methods,stat")
@scenario
def java_is_asked_for_pauses_threads_classes_monitors_allocations_and_methods(run):
    require_program("java", "javac")
    (run.dir / "Shop.java").write_text(JAVA)
    subprocess.run(["javac", "Shop.java"], cwd=run.dir, check=True)
    command = ["java", "-Xint", "-Xmx64m", "Shop"]
    got = answers(run, "hotspot", command)
    check(got.spans("gc") >= 1 and got.spans("safepoints") >= 1, "collections and safepoints")
    check(any("till" in str(args) for args in got.args("threads")), f"threads {got.args('threads')}")
    silent = answers(run, "hotspot.methods", command)
    check("its probes fire only if it was started with -XX:+DTraceMethodProbes" in silent.said, silent.said)
    flags = ["java", "-Xint", "-Xmx64m", "-XX:+DTraceMonitorProbes", "-XX:+DTraceAllocProbes", "-XX:+DTraceMethodProbes", "Shop"]
    got = answers(run, "hotspot.threads,classes,monitors,allocations,methods,stat", flags)
    check_equal(got.counts("methods").get(("Shop", "work")), 50000, f"methods {list(got.counts('methods').items())[:5]}")
    check_equal(got.counts("allocations").get("Shop"), 20000, "objects")
    check(got.spans("monitors") >= 1, "contended monitors")
    check(any("Shop" in str(args) for args in got.args("classes")), "classes")
    each = got.counts("stat")
    check(each["method__entry"] >= 50000 and each["object__alloc"] >= 20000 and each["gc__begin"] >= 1, f"how many of each: {each}")
    check_equal(each["class__loaded"], len(got.args("classes")), "classes")
    started = sum(event["probe"].endswith(":thread__start") for event in got.objects("threads", "event"))
    check_equal(each["thread__start"], started, "threads that start")


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


OWN = """
[question.all]
title = "how many"
probes = ["shop:sold"]
count = true

[question.each]
title = "one by one"
probes = ["shop:sold"]
fires-only-if = ["environment SHOP_PROBES=1"]
otherwise = "all"
on-request = true
"""
SHOP = """#include <stdio.h>
#include <sys/sdt.h>
int main(void) { for (int c, n = 0; (c = getchar()) != EOF;) { if (c != 's') continue; DTRACE_PROBE1(shop, sold, n); n++; puts(""); fflush(stdout); } }
"""


@scenario
def another_question_is_asked_of_processes_in_which_probes_never_fire(run):
    """One of two that fires is enough, and children may be started in another way: then it is asked as it is."""
    (run.dir / "presets").mkdir()
    (run.dir / "presets/shop.toml").write_text(OWN)
    (run.dir / "shop.c").write_text(SHOP)
    program = run.build("shop", [run.dir / "shop.c"])
    start = lambda **environment: run.start(program, env={"A": "b", **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)  # noqa: E731
    silent, other, loud = start(), start(), start(SHOP_PROBES="1")

    def sell(*shops):
        for shop in shops:
            shop.stdin.write(b"sss")
            for _ in range(3):
                shop.stdout.readline()
    never = answers(run, "shop.each", options=["-p", f"{silent.pid},{other.pid}"], work=lambda: sell(silent, other))
    check_equal(list(never.of), ["all"], "the question that is asked")
    check_equal(never.objects("all", "summary")[-1]["hits"], 6, "hits of both")
    check(f"each: its probes do not fire in process {silent.pid}, {other.pid}: only if it was started with SHOP_PROBES=1" in never.said and
          "each: 'all' is asked instead" in never.said, never.said)
    some = answers(run, "shop.each", options=["-p", f"{silent.pid},{loud.pid}"], work=lambda: sell(loud))
    check_equal(len(some.args("each")), 3, "hits of one")
    check(f"each: its probes do not fire in process {silent.pid}: only if" in some.said, some.said)
    children = answers(run, "shop.each", options=["-p", silent.pid, "--children"], work=lambda: sell(silent))
    check_equal(len(children.args("each")), 3, "hits of one whose children may fire")


STATES = """
[arguments]
"shop:moved" = "state:{-1=unknown, 0=idle, 0x2=busy}, took:duration[us], open:bool"

[question.states]
probes = ["shop:moved"]
by = "state, open"
sum = "took as us"

[question.busy]
probes = ["shop:moved"]
where = "state == busy || state == unknown"
print = "state, took, took as twice:{80=eighty}"

[question.computed]
probes = ["shop:moved"]
by = "took / 10 % 2 as parity:{0=even, 1=odd}"
"""
MOVES = """#include <stdio.h>
#include <sys/sdt.h>
static const char *name_of(int state) { return state == -1 ? "unknown" : state == 0 ? "idle" : state == 2 ? "busy" : "5"; }
int main(void) {
  static const int states[] = {-1, 0, 2, 5};
  for (int n = 0; n < 100; n++) {
    int state = states[(n * n % 7 + n) % 4];
    long took = n % 10 * 10;
    DTRACE_PROBE3(shop, moved, state, took, (char)(n % 3 == 0));
    printf("%s %ld %d\\n", name_of(state), took, n % 3 == 0);
  }
  return 0;
}
"""


@scenario
def numbers_have_the_names_that_a_preset_gives_them_in_all_forms(run):
    """The program prints the names of its own."""
    require_root()
    (run.dir / "presets").mkdir()
    (run.dir / "presets/shop.toml").write_text(STATES)
    (run.dir / "moves.c").write_text(MOVES)
    program = run.build("moves", [run.dir / "moves.c"])
    told = [(name, int(took), is_open == "1") for name, took, is_open in
            map(str.split, subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines())]

    def number(name):
        return 5 if name == "5" else name

    def shown(*words):
        done = subprocess.run([run.tool, *map(str, words)], capture_output=True, text=True, timeout=60, cwd=run.dir,
                              env={**os.environ, "USDT_PRESETS": str(run.dir / "presets")})
        check_equal(done.returncode, 0, done.stderr)
        return [line for line in done.stdout.splitlines() if not re.fullmatch(r"(\w+|5) \d+ \d", line)]  # the program's own
    got = answers(run, "shop", [program])
    counts = {(name, is_open): sum(1 for each in told if each[::2] == (name, is_open)) for name, _, is_open in told}
    check_equal(got.named_counts("states"), {(number(name), int(is_open)): count for (name, is_open), count in counts.items()}, "JSON, a table")
    busy = [each for each in told if each[0] in ("busy", "unknown")]
    events = got.objects("busy", "event")
    check_equal([event["names"]["0"] for event in events], [name for name, _, _ in busy], "JSON, events")
    check_equal([event["names"].get("2") for event in events], ["eighty" if took == 80 else None for _, took, _ in busy], "JSON, a name of the list's own")
    odd = sum(took // 10 % 2 for _, took, _ in told)
    check_equal(got.named_counts("computed"), {"even": len(told) - odd, "odd": odd}, "a sum")
    table = sorted(f"{name},{str(is_open).lower()},{count},{sum(each[1] for each in told if each[::2] == (name, is_open))}"
                   for (name, is_open), count in counts.items())
    ask = ["--preset", "shop.states", "-f", "csv"]
    check_equal(shown(*ask, "--", program)[:1], ["state,open,count,sum(us)"], "CSV, columns")
    check_equal(sorted(shown(*ask, "--", program)[1:]), table, "CSV, a table")
    lines = shown("--preset", "shop.busy", "--", program)
    check_equal([re.search(r"state=(\w+) took=(\S+) twice=(\S+)$", line).groups() for line in lines],
                [(name, duration(took), "eighty" if took == 80 else str(took)) for name, took, _ in busy], "text")
    # A recording has the names that its numbers had.
    run_record(run, program)
    check_equal(sorted(shown("--replay", "moves.rec", "-f", "csv", "--by", "state, open", "--sum", "took as us")[1:]), table, "a replay")
    replayed = [json.loads(line) for line in shown("--replay", "moves.rec", "-f", "json", "--where", "state == busy")][:-1]
    check_equal([event["names"] for event in replayed], [{"0": "busy"}] * sum(1 for name, _, _ in told if name == "busy"), "a replay of some")


def duration(us):
    return f"{us}us" if us else "0ns"


def run_record(run, program):
    """Makes moves.rec of all that the program passes."""
    (run.dir / "presets/all.toml").write_text(STATES.split("[question")[0] + '[question.all]\nprobes = ["shop:moved"]\nrecord = "moves.rec"\n')
    subprocess.run([run.tool, "--preset", "all", "--", program], capture_output=True, check=True, cwd=run.dir,
                   env={**os.environ, "USDT_PRESETS": str(run.dir / "presets")})


LINES = """#include <stdlib.h>
#include <unistd.h>
static void nap(int us) { usleep(us); }
int main(void) { for (int n = 0; n < 7; n++) nap(100); for (int n = 0; n < 5; n++) nap(50000); return 0; }
"""


def lines_of_the_page():
    """{tool of bcc: the line that docs/presets.md has instead}, each as its words."""
    page = (ROOT / "docs/presets.md").read_text().split("## Tools of bcc and bpftrace")[1]
    found = re.findall(r"^[#$] (usdt-(?:[^#\n]|\\\n)*?) *# (\w+)$", page, re.M)
    return {tool: shlex.split(line.replace("\\\n", " ")) for line, tool in found}


@scenario
def lines_that_stand_for_tools_of_bcc_answer_what_these_do(run):
    require_root()
    (run.dir / "program.c").write_text(LINES)
    run.build("program", [run.dir / "program.c"], ["-O0", "-fno-omit-frame-pointer"])
    lines, left = lines_of_the_page(), set()

    def ask(tool, **how):
        left.discard(tool)
        name, *words = lines[tool]
        words[words.index("--") if "--" in words else len(words):0] = ["-f", "json"]
        return run.adopt(subprocess.Popen([run.tool.with_name(name), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=run.dir, **how))

    def answer(tool):
        out, said = ask(tool).communicate(timeout=60)
        check(out != "", f"{tool}: {said}")
        return [json.loads(line) for line in out.splitlines()]

    def rows(tool):
        return [each for each in answer(tool) if each["type"] == "table"][-1]["rows"]
    left.update(lines)
    check_equal(sum(probe["hits"] for probe in answer("funccount")[-1]["probes"]), 12, "funccount")
    check_equal(sum(each["count"] for each in rows("funclatency")[0]["buckets"] if each["first"] >= 33554432), 5, "funclatency")
    for tool in ("funcslower", "trace"):
        check_equal([each["args"] for each in answer(tool) if each["type"] == "event"], [[50000]] * 5, tool)
    check_equal({row["key"][0]: row["count"] for row in rows("argdist")}, {100: 7, 50000: 5}, "argdist")
    check_equal(sorted(row["count"] for row in rows("stackcount") if "nap" in str(row)), [5, 7], "stackcount")
    lines["tplist"] = [str(os.getpid()) if word == "4711" else word for word in lines["tplist"]]
    check(any(each.get("provider") == "libc" or "python" in str(each) for each in answer("tplist")), "tplist")
    check_equal(left, set(), "lines that were not run")


@scenario
def each_question_of_each_preset_is_asked_here(run):
    listed = subprocess.run([run.tool.with_name("usdt-list"), "--presets", "-f", "json"], capture_output=True, text=True, check=True,
                            env={**os.environ, "USDT_PRESETS": str(run.dir / "presets")})
    there = {}
    for each in map(json.loads, listed.stdout.splitlines()):
        there.setdefault(each["preset"], set()).add(each["question"])
    check_equal(questions_asked(), there, "questions that scenarios ask")


if __name__ == "__main__":
    main()
