#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debug files from a server: what a stripped program's functions are is told by the file that a server has of its build.

The client is elfutils' own; the server here answers its one request, GET /buildid/ID/debuginfo.
"""

import contextlib
import ctypes
import http.server
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import Skip, check, check_equal, main, require_root, scenario, wait_until  # noqa: E402

SOURCE = """
#include <stdio.h>
struct request { int id; const char *path; };
static inline __attribute__((always_inline)) int inlined(struct request *r, int by) { return r->id * by; }
__attribute__((noipa)) static int handle(struct request *r, int by) {
  int result = inlined(r, by);
  printf("%d %s %d -> %d\\n", r->id, r->path, by, result);
  return result;
}
int main(void) {
  struct request r = {7, "/index"};
  for (int i = 0; i < 5; i++) { r.id += i; handle(&r, i * 3); }
}
"""


def require_client():
    try:
        ctypes.CDLL("libdebuginfod.so.1")
    except OSError as error:
        raise Skip("no libdebuginfod") from error


def require_cancelling_client():
    """0.192 asks whether to go on only once a server has answered."""
    require_client()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        if "libdebuginfod-0.192" in maps.read():
            raise Skip("libdebuginfod 0.192 waits for a silent server, whatever it is told")


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def build(run, name="program", by=3):
    """A stripped program, and its debug file under another roof."""
    source = run.dir / f"{name}.c"
    source.write_text(SOURCE.replace("i * 3", f"i * {by}"))
    whole = run.build(f"{name}.whole", [source], ["-O2", "-g", "-Wl,--build-id"])
    stripped, debug = run.dir / name, run.dir / f"{name}.of-server"
    shutil.copy(whole, stripped)
    subprocess.run(["objcopy", "--only-keep-debug", whole, debug], check=True)
    subprocess.run(["strip", "--strip-all", stripped], check=True)
    return whole, stripped, debug


@contextlib.contextmanager
def server(run, files, silent_about=None):
    """What a server has, by build id; the environment of a client; what the server was asked for. Of one build it says nothing, for ever."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            match = re.fullmatch(r"/buildid/(\w+)/debuginfo", self.path)
            if match and match[1] == silent_about:
                stopped.wait()
                return None
            if not match or match[1] not in files:
                return self.send_error(404)
            data = files[match[1]].read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            return None

        def log_message(self, *_):
            pass

    stopped = threading.Event()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        cache = run.dir / f"cache{serving.server_port}"
        yield {**os.environ, "DEBUGINFOD_URLS": f"http://127.0.0.1:{serving.server_port}",
               "DEBUGINFOD_CACHE_PATH": str(cache)}, asked
        stopped.set()
        serving.shutdown()


def listed(run, environment, *words):
    argv = [run.tool.with_name("usdt-list"), "-v", *words]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=60, stdin=subprocess.DEVNULL)
    return done.stdout, done.stderr


@scenario
def functions_of_a_stripped_program_are_as_if_it_had_not_been_stripped(run):
    require_client()
    whole, stripped, debug = build(run)
    with server(run, {build_id(whole): debug}) as (environment, asked):
        names = ["handle", "inlined", "*"]
        for name in names:
            expected, _ = listed(run, environment, f"uprobe:{whole}:{name}")
            check("handle" in expected or "inlined" in expected, f"the program's own debug information:\n{expected}")
            check_equal(asked, [], "requests of a program with debug information")
        for name in names:
            expected, _ = listed(run, environment, f"uprobe:{whole}:{name}")
            shown, said = listed(run, environment, "--debuginfod", f"uprobe:{stripped}:{name}")
            check_equal(shown.replace(f"uprobe:{stripped}:", f"uprobe:{whole}:"), expected, f"{name}, told by a server {said}")
        check_equal(asked, [f"/buildid/{build_id(whole)}/debuginfo"], "requests: what was fetched is kept")


@scenario
def values_are_those_that_the_program_passed(run):
    require_root()
    require_client()
    whole, stripped, debug = build(run)
    log = run.dir / "said"
    with server(run, {build_id(whole): debug}) as (environment, _):
        result = run.trace(f"ucall:{stripped}:handle", "--debuginfod", "--print", "r->id, str(r->path), by, retval",
                           command=["sh", "-c", f"exec {stripped} > {log}"], env=environment)
    result.check_code(0)
    told = [re.fullmatch(r"(\d+) (\S+) (\d+) -> (\d+)", line).groups() for line in log.read_text().splitlines()]
    shown = [tuple(str(each) for each in event["args"]) for event in result.events]
    check_equal(len(told), 5, "calls")
    check_equal(shown, told, "values")


@scenario
def nobody_is_asked_without_the_option(run):
    whole, stripped, debug = build(run)
    with server(run, {build_id(whole): debug}) as (environment, asked):
        shown, _ = listed(run, environment, f"uprobe:{stripped}:handle")
        check_equal((shown, asked), ("", []), "functions, and requests")


@scenario
def a_file_of_another_build_is_refused(run):
    require_client()
    whole, stripped, _ = build(run)
    _, _, other = build(run, "other", by=4)
    with server(run, {build_id(whole): other}) as (environment, _):
        shown, said = listed(run, environment, "--debuginfod", f"uprobe:{stripped}:main+0x0", f"uprobe:{stripped}:handle")
        check_equal(shown, "", "functions")
        check("not of build" in said, f"why not: {said}")


@scenario
def what_was_fetched_and_others_may_have_changed_is_refused(run):
    require_client()
    whole, stripped, debug = build(run)
    with server(run, {build_id(whole): debug}) as (environment, _):
        shown, _ = listed(run, environment, "--debuginfod", f"uprobe:{stripped}:handle")
        check("handle" in shown, "the function, by what was fetched")
        kept = next((run.dir / environment["DEBUGINFOD_CACHE_PATH"]).glob("*/debuginfo"))
        kept.chmod(0o666)
        shown, said = listed(run, environment, "--debuginfod", f"uprobe:{stripped}:handle")
        check_equal(shown, "", "functions")
        check("can be written to by others" in said, f"why not: {said}")


@scenario
def what_no_server_has_is_said_with_the_servers(run):
    require_client()
    _, stripped, _ = build(run)
    with server(run, {}) as (environment, asked):
        shown, said = listed(run, environment, "--debuginfod", f"uprobe:{stripped}:handle")
        check_equal((shown, len(asked)), ("", 1), "functions, and requests")
        check(environment["DEBUGINFOD_URLS"] in said, f"who was asked: {said}")
    environment["DEBUGINFOD_URLS"] = "http://127.0.0.1:1"
    environment["DEBUGINFOD_CACHE_PATH"] = str(run.dir / "another cache")
    shown, said = listed(run, environment, "--debuginfod", f"uprobe:{stripped}:handle")
    check_equal(shown, "", "functions where no server is")
    check("127.0.0.1:1" in said, f"who was asked: {said}")


@scenario
def a_signal_ends_waiting_for_a_server(run):
    require_root()
    require_client()
    whole, stripped, _ = build(run)
    with server(run, {}, silent_about=build_id(whole)) as (environment, asked):
        tracing = subprocess.Popen([run.tool, "--debuginfod", f"uprobe:{stripped}:handle"], env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        run.adopt(tracing)
        wait_until(lambda: asked, "a request")
        begin = time.monotonic()
        tracing.send_signal(signal.SIGINT)
        tracing.communicate(timeout=20)
        check(time.monotonic() - begin < 3, f"{time.monotonic() - begin:.1f} s after the signal")


@scenario
def a_signal_ends_waiting_for_names_of_stacks(run):
    require_root()
    require_cancelling_client()
    source = run.dir / "caller.c"
    source.write_text("#include <unistd.h>\nint main(void) { while (getppid() != 1) usleep(10000); }\n")
    whole = run.build("caller", [source], ["-O2", "-Wl,--build-id"])
    subprocess.run(["strip", "--strip-all", whole], check=True)
    caller = run.start(whole)
    wait_until(lambda: "/libc.so" in open(f"/proc/{caller.pid}/maps", encoding="utf-8").read(), "the program runs")
    for seconds, end in (30, signal.SIGINT), (30, signal.SIGTERM), (2, None):
        with server(run, {}, silent_about=build_id(whole)) as (environment, asked):
            tracing = run.trace_start("uprobe:libc.so.6:getppid", "--debuginfod", "--ustack", "--duration", seconds, "-p", caller.pid,
                                      env=environment)
            wait_until(lambda: f"/buildid/{build_id(whole)}/debuginfo" in asked, "a request")
            begin = time.monotonic()
            if end:
                tracing.signal(end)
            result = tracing.finish(20)
            took = time.monotonic() - begin - (0 if end else seconds)
            check(took < 1.5, f"{took:.1f} s after {end or 'the end of its time'}")
            result.check_code(0)
            check(result.events, "the event whose stack was asked for is shown")
            check(result.events[0]["ustack"][0].get("function", "").endswith("getppid"), f"what is on this machine has names: {result.events[0]}")


if __name__ == "__main__":
    main()
