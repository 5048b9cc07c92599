#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Presets asked of the distribution's programs: their numbers are what the programs did. Each question of each preset is
asked by a scenario, here or in presets_servers_test.py; the last one looks whether that is so."""

import json
import os
import pathlib
import pty
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, main, require_file, require_program, require_root, scenario  # noqa: E402
from presets_support import answers, asked, questions_asked  # noqa: E402

PYTHON = "/usr/bin/python3.11"
PROGRAM = """
import gc
gc.disable()
def callee(n): return n + 1
for n in range(300): callee(n)
for _ in range(7): gc.collect(1)
import colorsys
"""


@asked("python.gc,imports,calls,slow-calls,lines,audit")
@scenario
def python_is_asked_for_collections_imports_calls_lines_and_audit_events(run):
    require_file(PYTHON)
    program = run.dir / "program.py"
    program.write_text(PROGRAM)
    got = answers(run, "python.gc,imports,calls,slow-calls,lines,audit", [PYTHON, "-S", program.name])
    check_equal(got.rows("gc")[1]["count"], 7, "collections of generation 1")
    check(["colorsys"] in got.args("imports"), f"imports: {got.args('imports')}")
    check_equal([count for (name, _, line), count in got.counts("calls").items() if (name, line) == ("callee", 4)], [300], "calls")
    turns = [count for (file, line), count in got.counts("lines").items() if str(program).startswith(file) and line == 5]
    check(turns and turns[0] >= 300, f"turns of a loop: {turns}")
    check(got.spans("slow-calls") > 0, "no slow calls")
    check(["cpython.run_file"] in got.args("audit"), "audit events")
    check("each call of a Python function is a hit" in got.said, got.said)


SCRIPT = """<?php
function f($n) { if ($n % 3 == 0) throw new RuntimeException("no"); return $n; }
for ($i = 0; $i < 30; $i++) { try { f($i); } catch (Exception $e) {} }
"""


@asked("php.requests,exceptions,functions,slow-functions,files")
@scenario
def php_is_asked_for_requests_exceptions_functions_and_files(run):
    require_program("php8.2")
    program = run.dir / "program.php"
    program.write_text(SCRIPT)
    command = ["php8.2", program.name]
    got = answers(run, "php", command)
    check_equal(got.counts("exceptions"), {"RuntimeException": 10}, "exceptions")
    check_equal(got.spans("requests"), 1, "requests")
    silent = answers(run, "php.functions", command)
    check_equal(silent.counts("functions"), {}, "functions without the variable")
    check("its probes fire only if it was started with USE_ZEND_DTRACE=1 in its environment, and the command is not" in silent.said, silent.said)
    got = answers(run, "php.functions,slow-functions,files", command, {"USE_ZEND_DTRACE": "1"})
    check_equal([count for (_, _, name, _), count in got.counts("functions").items() if name == "f"], [30], "calls of f")
    check(got.spans("slow-functions") > 0, "no slow functions")
    check_equal([args[0] for args in got.args("files")], [str(program)], "files")


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


@asked("ruby.exceptions,allocations,strings,requires,marking,sweeping,methods,c-methods")
@scenario
def ruby_is_asked_for_exceptions_allocations_files_collections_and_methods(run):
    require_program("ruby3.1")
    program = run.dir / "program.rb"
    program.write_text(RUBY)
    got = answers(run, "ruby.exceptions,allocations,strings,requires,marking,sweeping,methods,c-methods", ["ruby3.1", program.name])
    file = program.name
    check_equal(got.counts("exceptions")[("ArgumentError", file, 3)], 12, "exceptions")
    check_equal(got.counts("allocations")[("Shop", file, 2)], 50, "objects")
    check_equal(got.counts("methods")[("Object", "work", file)], 40, "methods within a TracePoint")
    check("its probes fire only if the program has a TracePoint" in got.said, got.said)
    check_equal(got.counts("c-methods")[("String", "swapcase")], 500, "methods in C")
    check(got.spans("marking") > 0 and got.spans("sweeping") > 0, "collections")
    check(any("set" in str(args) for args in got.args("requires")), "required files")
    check(got.rows("strings"), "strings")


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
    check_equal(sum(row["count"] for row in got.objects("places", "table")[-1]["rows"]), 9, "exceptions by stack")
    check_equal(got.spans("unwinding"), 9, "exceptions that were caught")


LIBC = """#include <netdb.h>
#include <stdlib.h>
int main(void) {
  for (int i = 0; i < 20; i++) getenv("PRESETS_TEST");
  for (int i = 0; i < 30; i++) free(malloc(70000 + i));
  struct addrinfo* found;
  return getaddrinfo("127.0.0.1", 0, 0, &found);
}
"""


@asked("libc.hosts,environment,allocations,allocation-times,allocating")
@scenario
def the_c_library_is_asked_for_hosts_variables_and_allocations(run):
    (run.dir / "libc.c").write_text(LIBC)
    program = run.build("libc", [run.dir / "libc.c"], ["-O0", "-fno-builtin"])
    got = answers(run, "libc.hosts,environment,allocations,allocation-times,allocating", [program])
    check_equal(got.counts("environment")["PRESETS_TEST"], 20, "variables")
    check_equal([args[:2] for args in got.args("hosts")], [["127.0.0.1", 0]], "names of hosts")
    buckets = got.objects("allocations", "table")[-1]["rows"][0]["buckets"]
    check_equal([each["count"] for each in buckets if each["first"] == 65536], [30], "allocations of 64 KiB and more")
    check(got.spans("allocation-times") >= 30, "times of allocations")
    check(sum(row["sum"] for row in got.objects("allocating", "table")[-1]["rows"]) >= 30 * 70000, "bytes")


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
    got = answers(run, "bash", options=["-p", shell.pid], work=type_lines)
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


@asked("openssl.handshakes,sizes,written")
@scenario
def openssl_is_asked_for_handshakes_and_what_is_written(run):
    require_file(PYTHON)
    require_program("openssl")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
                    "-subj", "/CN=localhost"], cwd=run.dir, check=True, capture_output=True)
    (run.dir / "tls.py").write_text(TLS)
    got = answers(run, "openssl.handshakes,sizes,written", [PYTHON, "tls.py"])
    check_equal(got.spans("handshakes"), 2, "handshakes of both ends")
    check_equal([bytes.fromhex(args[0]) for args in got.args("written")], [b"GET /secret HTTP/1.1"] * 10, "what was written")
    check_equal([row["sum"] for row in got.rows("sizes").values()], [200], "bytes that were written")


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


@asked("hotspot.gc,safepoints,threads,classes,monitors,allocations,methods")
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
    got = answers(run, "hotspot.classes,monitors,allocations,methods", flags)
    check_equal(got.counts("methods").get(("Shop", "work")), 50000, f"methods {list(got.counts('methods').items())[:5]}")
    check_equal(got.counts("allocations").get("Shop"), 20000, "objects")
    check(got.spans("monitors") >= 1, "contended monitors")
    check(any("Shop" in str(args) for args in got.args("classes")), "classes")


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
