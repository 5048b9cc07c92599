#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Python package: lists and traces a real interpreter, and compares with what its program says it did.

Usage: python_test.py CLASS      USDT_LIBRARY names libusdt-c.so; exit code 77: skipped
"""

import asyncio
import collections
import contextlib
import ctypes
import gc
import json
import os
import pathlib
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
import warnings
import weakref

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bindings/python"
sys.path.insert(0, str(PACKAGE))

import usdt  # noqa: E402

PYTHON = "/usr/bin/python3.11"  # whose probes Debian compiles in

# Waits for a word, calls its functions, and logs their returns by the interpreter's own profiler, in order.
CALLS = """\
import json, sys
log = []
def leaf(n):
    return n
def branch(n):
    return leaf(n) + leaf(n + 1)
def deep(n):
    return n and deep(n - 1)
def note(frame, event, argument):
    if event == "return" and frame.f_code.co_filename == __file__:
        log.append([frame.f_code.co_name, frame.f_lineno])
print("ready", flush=True)
for line in sys.stdin:
    log.clear()
    sys.setprofile(note)
    for i in range(int(line)):
        branch(i)
        deep(i % 5)
    sys.setprofile(None)
    print(json.dumps(log), flush=True)
"""


# A C program whose function takes a struct; each byte it reads is a call.
STRUCTS = """\
#include <unistd.h>
enum color { red = 1, green = 2 };
struct peer { int port; enum color color; const char* name; };
struct request { struct peer* peer; long id; };
__attribute__((noipa)) int handle(struct request* request, enum color color) { return (int)request->id + color; }
int main(void) {
  struct peer peer = {80, green, "pear"};
  struct request request = {&peer, 40};
  char byte;
  if (write(1, "ready\\n", 6) != 6) return 1;
  for (; read(0, &byte, 1) == 1; ++request.id) handle(&request, red);
  return 0;
}
"""

# Traces a process until somebody presses Ctrl-C.
WAITS = """\
import sys, usdt
try:
    with usdt.Tracer("python:function__return", pids=int(sys.argv[1])) as tracer:
        print("ready", flush=True)
        for event in tracer:
            pass
except KeyboardInterrupt:
    print("interrupted", tracer.counts().lost)
"""


# Takes the answers about a process until its standard input ends, whoever presses Ctrl-C meanwhile.
ASKS = """\
import json, signal, sys, threading, usdt
seen, interrupts, looking = [], 0, False

def interrupt(*_):
    global looking
    if looking:
        looking = False
        raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupt)
answers = usdt.ask("python:function__return", pids=int(sys.argv[1]), print="str(arg0), str(arg1), arg2")
threading.Thread(target=lambda: (sys.stdin.read(), answers.stop())).start()
print("ready", flush=True)
while not answers.over:
    try:
        looking = True
        for answer in answers:
            seen.append(answer)
        looking = False
    except KeyboardInterrupt:
        interrupts += 1
seen += answers
print(json.dumps([interrupts, seen]))
"""


class Interrupted(Exception):
    """What a handler of signals raises, as that of SIGINT does."""


class Interrupts:
    """A signal that raises Interrupted after so many seconds, if end() was not called before."""

    def __init__(self, after):
        self.after = after

    def raised(self, *_):
        raise Interrupted

    def end(self):
        signal.setitimer(signal.ITIMER_REAL, 0)

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self.raised)
        signal.setitimer(signal.ITIMER_REAL, self.after)
        return self

    def __exit__(self, *_):
        self.end()
        signal.signal(signal.SIGALRM, self.before)


class Child:
    """A Python program that does rounds of calls when it is told to, and says what it did."""

    def __init__(self, directory):
        if not os.path.exists(PYTHON):
            raise unittest.SkipTest(f"{PYTHON} is not installed")
        self.script = pathlib.Path(directory) / "calls.py"
        self.script.write_text(CALLS)
        self.process = subprocess.Popen([PYTHON, "-I", "-S", str(self.script)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def do(self, rounds):
        """What it logged: [name, line] of each return."""
        self.process.stdin.write(f"{rounds}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def returns(self, events):
        """The same of what was traced; the profiler is a function of the script, too."""
        return [list(event.args[1:]) for event in events if event.args[0] == str(self.script) and event.args[1] != "note"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Pure(unittest.TestCase):
    """What wants no privilege."""

    def setUp(self):
        if not os.path.exists(PYTHON):
            self.skipTest(f"{PYTHON} is not installed")

    def test_lists_the_probes_that_readelf_sees(self):
        notes = subprocess.run(["readelf", "-nW", PYTHON], check=True, capture_output=True, text=True).stdout
        expected = sorted(re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: 0x([0-9a-f]+),", notes))
        listed = sorted((point.provider, point.name, f"{point.pc:016x}") for point in usdt.list(PYTHON))
        self.assertEqual(listed, expected)
        self.assertGreater(len(listed), 5)

    def test_no_text_ends_at_a_null_character(self):
        for search in (lambda: usdt.list(PYTHON + "\0x"), lambda: usdt.list(PYTHON, patterns="python:*\0x"),
                       lambda: usdt.list(program=PYTHON + "\0x"), lambda: usdt.Recording("/x\0y"),
                       lambda: usdt.Recording(PYTHON, where="arg0 > 1\0 && arg1 > 2"),
                       lambda: usdt.Tracer("python:*", targets=PYTHON, table=usdt.Table(by="pid\0, tid")).start()):
            with self.assertRaisesRegex(ValueError, "null character"):
                search()

    def test_a_question_says_what_is_wrong_with_it(self):
        for wrong, error, words in [({"wehre": "arg0 > 1"}, usdt.NotFound, "did you mean where"),
                                    ({"max_events": "many"}, usdt.InvalidArgument, "max-events: 'many'"),
                                    ({"where": "arg0 >"}, usdt.SyntaxFault, "where"),
                                    ({"by": "comm", "max_events": 3}, usdt.InvalidArgument, "no events"),
                                    ({"export": {"xml": "/x"}}, usdt.InvalidArgument, "is no format"),
                                    ({"export": {"json": "/no/such/directory/x"}}, usdt.NotFound, "/no/such/directory")]:
            with self.assertRaisesRegex(error, words):
                usdt.ask("python:*", **wrong)
        with self.assertRaises(usdt.NotFound), usdt.ask(replay="/no/such/recording") as answers:
            list(answers)
        with self.assertRaisesRegex(ValueError, "null character"):
            usdt.ask("python:*", where="arg0 > 1\0 && arg1 > 2")

    def test_options_are_those_of_usdt_trace(self):
        options = usdt.options()
        self.assertTrue({"where", "by", "latency", "max_events", "record", "replay", "print"} <= options.keys())
        self.assertTrue(all(options.values()))

    def test_types_arguments_as_their_notes_say(self):
        (point,) = usdt.list(PYTHON, patterns="python:function__return")
        self.assertEqual(point.signature, "(u64, u64, i32)")
        self.assertEqual((point.kind, point.machine, point.has_semaphore), ("probe", os.uname().machine, True))
        self.assertEqual([arg.source for arg in point.args], point.args_text.split())
        self.assertTrue(point.args[2].signed and point.args[2].bytes == 4 and not point.args[2].refused)

    def test_what_is_listed_means_exactly_itself(self):
        for point in usdt.list(PYTHON):
            (again,) = usdt.list(patterns=point.full_name)
            self.assertEqual(again, point)

    def test_lists_functions_that_are_asked_for(self):
        points = usdt.list(patterns=f"uprobe:{PYTHON}:Py_GetVer*")
        self.assertEqual({(point.kind, point.provider, point.name) for point in points},
                         {("function", "uprobe", "Py_GetVersion")})

    def test_lists_what_a_process_has_mapped(self):
        with tempfile.TemporaryDirectory() as directory:
            child = Child(directory)
            names = {point.name for point in usdt.list(pids=child.pid, patterns="python:*")}
            child.close()
        self.assertIn("function__return", names)

    def test_a_file_without_probes_is_an_empty_list(self):
        self.assertEqual(usdt.list("/bin/true"), [])

    def test_raises_what_is_wrong(self):
        with self.assertRaises(usdt.NotFound) as caught:
            usdt.list("/no/such/file")
        self.assertIn("/no/such/file", str(caught.exception))
        with self.assertRaises(usdt.NotSupported) as caught:
            usdt.list(PYTHON, patterns="apm:request ~~ apm:response")
        self.assertIn("is a span", str(caught.exception))
        with self.assertRaises(usdt.SyntaxFault) as caught:
            usdt.list(PYTHON, patterns="nonsense")
        self.assertIsNotNone(caught.exception.column)
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaises(usdt.NotFound):
            usdt.Tracer("python:no_such", targets=PYTHON).start()
        with self.assertRaises(ValueError):
            usdt.Tracer("python:line", texts="handwritten")
        with self.assertRaises(ValueError):
            usdt.Tracer("python:line").take(0)

    def test_says_which_privilege_is_missing(self):
        code = ("import os, usdt\nif os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
                "try: usdt.check_privilege()\nexcept PermissionError as error: print(type(error).__name__, error)")
        with tempfile.TemporaryDirectory() as directory:
            # Where everybody may read it, wherever the project is.
            os.chmod(directory, 0o755)
            subprocess.run(["cp", "-rL", PACKAGE / "usdt", os.environ["USDT_LIBRARY"], directory], check=True)
            library = pathlib.Path(directory) / pathlib.Path(os.environ["USDT_LIBRARY"]).name
            said = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, cwd="/",
                                  env={"PYTHONPATH": directory, "USDT_LIBRARY": str(library)})
        self.assertRegex(said.stdout, "NoPermission .*CAP_", said.stderr)

    def test_numbers_of_hits_are_those_of_the_library(self):
        words = usdt.Counts.words()
        self.assertLessEqual({"hits", "delivered", "lost", "ring_full", "held_back", "missed", "undecided"}, set(words))
        self.assertTrue(all(words.values()), words)
        self.assertEqual(usdt.Counts().numbers(), dict.fromkeys(words, 0))
        self.assertEqual(usdt.Counts(hits=2).hits, 2)
        self.assertNotEqual(usdt.Counts(hits=2), usdt.Counts())
        self.assertEqual(pickle.loads(pickle.dumps(usdt.Counts(missed=None))), usdt.Counts(missed=None))
        with self.assertRaisesRegex(AttributeError, "no such number"):
            usdt.Counts().hit
        types = (ROOT / "bindings/node/index.d.ts").read_text()
        listed = re.findall(r"^  (\w+): number", re.search(r"interface Counts {(.*?)^}", types, re.S | re.M)[1], re.M)
        self.assertCountEqual(listed, [re.sub("_(.)", lambda letter: letter[1].upper(), name) for name in words])

    def test_is_installed_by_pip(self):
        pip = [PYTHON, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0:
            self.skipTest("pip is not installed")
        if subprocess.run([PYTHON, "-c", "import setuptools, wheel"], capture_output=True).returncode != 0:
            self.skipTest("setuptools and wheel are not installed")
        with tempfile.TemporaryDirectory() as directory:
            source, target = pathlib.Path(directory) / "source", pathlib.Path(directory) / "target"
            subprocess.run(["cp", "-r", PACKAGE, source], check=True)
            done = subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target",
                                   target, source], capture_output=True, text=True, env={**os.environ, "HOME": directory})
            self.assertEqual(done.returncode, 0, done.stderr)
            said = subprocess.run([PYTHON, "-c", "import usdt; print(usdt.__file__, usdt.version())"], text=True,
                                  capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(target)}).stdout
            self.assertTrue(said.startswith(str(target)), said)
            self.assertTrue((target / "usdt/py.typed").exists())


class Live(unittest.TestCase):
    """Traces a real interpreter."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root (attaching uprobes)")
        if not os.path.exists(PYTHON):
            self.skipTest(f"{PYTHON} is not installed")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.child = Child(directory.name)
        self.addCleanup(self.child.close)

    def tracer(self, **options):
        return usdt.Tracer("python:function__return", pids=self.child.pid, **options)

    def assert_all_delivered(self, tracer, count):
        counts = tracer.counts()
        self.assertEqual((counts.hits, counts.delivered, counts.lost, counts.discarded), (count, count, 0, 0))
        self.assertEqual(list(tracer.counts_by_probe().values())[0].hits, count)

    def test_events_are_what_the_program_says_it_did(self):
        with self.tracer() as tracer:
            said = self.child.do(300)
            tracer.stop()
            events = list(tracer)
        self.assertEqual(self.child.returns(events), said)
        self.assertGreater(len(said), 1000)
        self.assert_all_delivered(tracer, len(events))
        self.assertEqual({(event.pid, event.tid, event.provider, event.name) for event in events},
                         {(self.child.pid, self.child.pid, "python", "function__return")})
        self.assertEqual({event.probe for event in events}, set(tracer.probes))
        times = [event.time for event in events]
        self.assertEqual(times, sorted(times))
        self.assertEqual(tracer.notices(), [])

    def test_answers_come_until_another_thread_stops_them(self):
        answers = usdt.ask("python:function__return", pids=self.child.pid, print="str(arg1), arg2")
        seen = []
        def play():
            self.child.do(50)
            while len(seen) < 100:
                time.sleep(0.01)
            answers.stop()
        thread = threading.Thread(target=play)
        thread.start()
        for answer in answers:
            seen.append(answer)
        thread.join()
        self.assertEqual({answer["type"] for answer in seen[:-1]}, {"event"})
        self.assertEqual((seen[-1]["type"], seen[-1]["events"]), ("summary", len(seen) - 1))
        self.assertTrue(any("attached" in notice.message for notice in answers.notices()))
        self.assertTrue(answers.over)
        answers.close()
        self.assertEqual(list(answers), [])

    def test_answers_that_nobody_wants_any_more_leave_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "calls.rec")
            with usdt.ask("python:function__return", pids=self.child.pid, record=file) as answers:
                self.child.do(50)
                first = next(answers)
            self.assertEqual(first["type"], "event")
            with self.assertRaises(ValueError):
                answers.fileno()
            with usdt.ask("python:function__return", replay=file, by="comm") as again:
                table, summary = again
            self.assertEqual([row["count"] for row in table["rows"]], [summary["hits"]])
            self.assertGreater(summary["hits"], 100)

    def test_answers_are_for_one_thread_at_a_time(self):
        with usdt.ask("python:function__return", pids=self.child.pid) as answers:
            enough = threading.Event()
            def play():
                while not enough.is_set():
                    with contextlib.suppress(RuntimeError):
                        answers.take()
            waiting = threading.Thread(target=play)
            waiting.start()
            try:
                for use in (answers.fileno, answers.notices):
                    for _ in range(1000):
                        try:
                            use()
                        except RuntimeError as error:
                            self.assertIn("another thread is using the answers", str(error))
                            break
                        time.sleep(0.001)
                    else:
                        self.fail(f"two threads used the answers: {use}")
            finally:
                enough.set()
                waiting.join()

    def test_a_child_of_fork_leaves_answers_to_its_parent(self):
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "calls.json")
            with usdt.ask("python:function__return", pids=self.child.pid, export={"json": file}) as answers:
                self.child.do(20)
                seen = [next(answers)]
                forked = os.fork()
                if forked == 0:
                    try:
                        with self.assertRaises(usdt.InvalidArgument):
                            answers.close()  # says whose it is
                        del answers
                        os._exit(0)
                    finally:
                        os._exit(1)
                self.assertEqual(os.waitpid(forked, 0)[1], 0)
                self.child.do(20)
                answers.stop()
                seen += answers
            with open(file, encoding="utf-8") as exported:
                self.assertEqual([json.loads(line) for line in exported], seen)
            self.assertEqual((seen[-1]["events"], seen[-1]["hits"]), (len(seen) - 1, len(seen) - 1))

    def test_metrics_are_served_while_answers_come(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with usdt.ask("python:function__return", pids=self.child.pid, by="str(arg1)", listen=port) as answers:
            self.child.do(20)
            for _ in range(500):
                answers.take()
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
                    lines = page.read().decode().splitlines()
                hits = sum(int(line.rpartition(" ")[2]) for line in lines if line.startswith("usdt_row_hits_total{"))
                if hits:
                    break
                time.sleep(0.01)
            with self.assertRaisesRegex(usdt.Error, "Address already in use"):
                usdt.ask("python:function__return", pids=self.child.pid, listen=port)
            answers.stop()
            summary = list(answers)[-1]
        self.assertEqual(hits, summary["hits"], "those of the page")
        self.assertGreaterEqual(hits, 20)

    def test_a_collector_that_is_away_holds_nobody_up(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        answers = usdt.ask("python:function__return", pids=self.child.pid, export={"otlp": f"http://127.0.0.1:{port}"})
        self.child.do(20)
        seen = [next(answers) for _ in range(10)]
        answers.stop()
        with self.assertRaisesRegex(usdt.Error, "events were not taken: Connection refused"):
            seen += answers
        self.assertEqual({answer["type"] for answer in seen}, {"event"})

    def test_ctrl_c_loses_no_answers(self):
        asking = subprocess.Popen([sys.executable, "-B", "-c", ASKS, str(self.child.pid)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        self.assertEqual(asking.stdout.readline(), "ready\n")
        said = []
        for rounds in range(40):
            said += self.child.do(rounds)
            for _ in range(5):
                asking.send_signal(signal.SIGINT)
                time.sleep(0.003)
        said += self.child.do(100)
        out, _ = asking.communicate(timeout=60)
        interrupts, seen = json.loads(out)
        self.assertEqual(asking.returncode, 0)
        self.assertGreater(interrupts, 20)
        *events, summary = seen
        shown = [event["args"] for event in events]
        self.assertEqual([args[1:] for args in shown if args[0] == str(self.child.script) and args[1] != "note"], said)
        self.assertEqual((summary["type"], summary["events"], summary["hits"]), ("summary", len(events), len(events)))

    def test_another_thread_stops_a_loop_that_waits(self):
        events = []
        with self.tracer() as tracer:
            said = []
            def play():
                said.extend(self.child.do(10))
                tracer.stop()
            other = threading.Thread(target=play)
            other.start()
            for event in tracer:
                events.append(event)
            other.join()
        self.assertEqual(self.child.returns(events), said)
        self.assert_all_delivered(tracer, len(events))

    def test_asyncio_gets_events_among_other_tasks(self):
        async def trace():
            events, ticks = [], 0
            async def tick():
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0.01)
            async with self.tracer() as tracer:
                ticking = asyncio.create_task(tick())
                async def play():
                    said = []
                    for _ in range(5):
                        said += await asyncio.to_thread(self.child.do, 20)
                        await asyncio.sleep(0.02)
                    tracer.stop()
                    return said
                playing = asyncio.create_task(play())
                async for event in tracer:
                    events.append(event)
                said = await playing
                ticking.cancel()
            return tracer, events, said, ticks
        tracer, events, said, ticks = asyncio.run(asyncio.wait_for(trace(), 60))
        self.assertEqual(self.child.returns(events), said)
        self.assertGreater(ticks, 5)
        self.assert_all_delivered(tracer, len(events))

    def test_a_task_that_is_cancelled_leaves_the_loop_as_it_was(self):
        async def trace():
            async with self.tracer() as tracer:
                async def consume():
                    async for _ in tracer:
                        pass
                consuming = asyncio.create_task(consume())
                await asyncio.sleep(0.05)
                consuming.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await consuming
                self.assertFalse(asyncio.get_running_loop().remove_reader(tracer.fileno()))
        asyncio.run(asyncio.wait_for(trace(), 60))

    def test_a_child_of_fork_leaves_tracer_and_recording_to_its_parent(self):
        path = self.child.script.parent / "forked.rec"
        with self.tracer(record=path) as tracer:
            said = self.child.do(20)
            forked = os.fork()
            if forked == 0:
                try:
                    with self.assertRaises(usdt.InvalidArgument):
                        tracer.take(0)
                    with self.assertRaises(usdt.InvalidArgument):
                        tracer.close()  # says that the recording is its parent's
                    os._exit(0)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitpid(forked, 0)[1], 0)
            said += self.child.do(20)
            tracer.stop()
            events = list(tracer)
        self.assertEqual(self.child.returns(events), said)
        self.assert_all_delivered(tracer, len(events))
        with usdt.Recording(path) as recording:
            self.assertEqual((list(recording), recording.cut), (events, None))

    def test_a_loop_that_ends_early_leaves_the_rest_to_the_next(self):
        path = self.child.script.parent / "early.rec"
        with self.tracer(record=path) as tracer:
            said = self.child.do(30)
            events = [next(iter(tracer)) for _ in range(3)]
            self.assertEqual(tracer.counts().delivered, 3)
            events += tracer.take(0, 2)
            for event in tracer:
                events.append(event)
                break
            events += tracer.take(0)
            self.assertEqual(self.child.returns(events), said)
            self.child.do(30)
            next(iter(tracer))
        counts = tracer.counts()
        self.assertEqual((counts.delivered, counts.hits), (len(events) + 1, counts.delivered + counts.discarded))
        self.assertEqual(tracer.counts_by_probe()[tracer.probes[0]], counts)
        with usdt.Recording(path) as recording:
            again = [next(iter(recording)) for _ in range(3)] + recording.take(2)
            self.assertEqual((again + list(recording))[:len(events)], events)

    def test_a_start_that_is_cancelled_leaves_nothing_attached(self):
        async def cancelled():
            tracer = self.tracer()
            starting = asyncio.create_task(tracer.__aenter__())
            await asyncio.sleep(0)
            starting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await starting
            for _ in range(200):
                if tracer.attachment:
                    break
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.2)
            with self.assertRaises(ValueError):
                tracer.take(0)
        asyncio.run(asyncio.wait_for(cancelled(), 60))

    def test_an_interrupted_start_leaves_nothing_attached(self):
        with self.tracer():
            pass  # what is loaded once is there
        before = len(os.listdir("/proc/self/fd"))
        interrupts = 0
        for milliseconds in range(2, 120, 6):
            try:
                with Interrupts(milliseconds / 1000) as interrupt:
                    self.tracer().start().close()
                    interrupt.end()
            except Interrupted:
                interrupts += 1
            gc.collect()
            self.assertLess(len(os.listdir("/proc/self/fd")), before + 5, f"after {milliseconds} ms")
        self.assertGreater(interrupts, 0)

    def test_an_interrupted_search_leaves_no_file_open(self):
        """The library is within its one call when the signal comes, and Python raises as soon as that returns."""
        def search():
            return usdt.list(patterns="uprobe:*:malloc", pids=self.child.pid)
        self.assertNotEqual(search(), [])
        before, interrupts = len(os.listdir("/proc/self/fd")), 0
        for _ in range(10):
            try:
                with Interrupts(0.002) as interrupt:
                    search()
                    interrupt.end()
            except Interrupted:
                interrupts += 1
            gc.collect()
        self.assertGreater(interrupts, 5)
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before)

    def test_an_interrupted_loop_loses_no_events(self):
        path = self.child.script.parent / "interrupted.rec"
        with self.tracer(record=path) as tracer:
            self.child.do(2000)
            seen, interrupts = self.interrupted(tracer, tracer.stop)
        counts = tracer.counts()
        # One that was handed out and not yet looked at each time, and no more.
        self.assertLessEqual(counts.delivered - seen, interrupts)
        self.assertEqual(counts.delivered, counts.hits)
        with usdt.Recording(path) as recording:
            seen, interrupts = self.interrupted(recording)
        self.assertLessEqual(counts.delivered - seen, interrupts)

    def interrupted(self, events, stop=lambda: None):
        """How many events there were in a loop that was begun anew after each interrupt, and how many of those."""
        seen = interrupts = 0
        stop()
        while True:
            try:
                with Interrupts(0.005) as interrupt:
                    for _ in events:
                        seen += 1
                    interrupt.end()
                self.assertGreater(interrupts, 2)
                return seen, interrupts
            except Interrupted:
                interrupts += 1

    def test_a_tracer_that_nobody_refers_to_is_detached(self):
        tracer = self.tracer().start()
        gone = weakref.ref(tracer)
        before = len(os.listdir("/proc/self/fd"))
        del tracer
        gc.collect()
        self.assertIsNone(gone())
        self.assertLess(len(os.listdir("/proc/self/fd")), before - 5)

    def test_what_nobody_took_is_accounted_for(self):
        with self.tracer() as tracer:
            said = self.child.do(50)
            first = tracer.take(1, limit=7)
            self.assertEqual(self.child.returns(first), said[:len(self.child.returns(first))])
        counts = tracer.counts()
        self.assertEqual((counts.delivered, counts.lost), (len(first), counts.discarded))
        self.assertEqual(counts.hits, counts.delivered + counts.discarded)
        self.assertGreater(counts.discarded, 100)

    def test_counts_without_events(self):
        with self.tracer(count_only=True) as tracer:
            said = self.child.do(50)
            self.assertEqual(tracer.take(0), [])
        self.assertGreaterEqual(tracer.counts().hits, len(said))

    def own(self):
        """The question whether a hit is of the child's script."""
        return f'str(arg0) == "{self.child.script}" && str(arg1) != "note"'

    def assert_rows(self, rows, said):
        """Rows by function over the lines of its returns, with a range of numbers for each four lines."""
        lines = {}
        for name, line in said:
            lines.setdefault(name, []).append(line)
        self.assertEqual({row.keys: (row.count, row.sum, row.minimum, row.maximum) for row in rows},
                         {(name,): (len(all), sum(all), min(all), max(all)) for name, all in lines.items()})
        for row in rows:
            self.assertEqual(row.average, row.sum / row.count)
            counted = [(range.first // 4, range.count) for range in row.ranges]
            self.assertEqual(counted, sorted(collections.Counter(line // 4 for line in lines[row.keys[0]]).items()))
            self.assertEqual({range.last - range.first for range in row.ranges}, {3})

    BY_FUNCTION = usdt.Table(by="str(arg1)", value="arg2", extremes=True, histogram="arg2", linear=(0, 400, 4))

    def test_the_kernel_fills_a_table(self):
        with self.tracer(where=self.own(), table=self.BY_FUNCTION) as tracer:
            said = self.child.do(200)
            self.assertEqual(tracer.take(0), [])
            self.assert_rows(tracer.rows(), said)
        self.assert_rows(tracer.rows(), said)  # it outlives the trace
        counts = tracer.counts()
        self.assertEqual((counts.delivered, counts.hits - counts.rejected, counts.lost), (len(said), len(said), 0))
        self.assertGreater(counts.rejected, 0)

    def test_guards_leave_out_what_they_count(self):
        with self.tracer(sample=5) as tracer:
            said = self.child.do(200)
            tracer.stop()
            events = list(tracer)
        counts = tracer.counts()
        self.assertEqual({event.weight for event in events}, {5})
        self.assertGreaterEqual(counts.hits, len(said))
        self.assertEqual((counts.hits, counts.lost), (counts.delivered + counts.not_sampled, 0))
        self.assertEqual(counts.delivered, len(events))
        self.assertGreater(counts.not_sampled, counts.delivered)
        with self.tracer(max_rate=10) as tracer:
            self.child.do(200)
        counts = tracer.counts()
        self.assertEqual(counts.hits, counts.discarded + counts.held_back)
        self.assertGreater(counts.held_back, 0)
        self.assertIsNone(tracer.overhead())
        with self.tracer(max_overhead=0.1) as tracer:
            self.child.do(10)
            self.assertEqual(tracer.overhead().allowed, 0.1)
        overhead = tracer.overhead()
        self.assertGreater(overhead.of_hit, 0)
        self.assertTrue(overhead.of_processors and 0 < overhead.looked_at <= 1 and overhead.windows >= 1)
        with self.assertRaises(usdt.InvalidArgument):
            self.tracer(max_overhead=0.1, sample=2).start()
        with self.assertRaises(ValueError):
            self.tracer(sample=2**32 + 1)

    def test_a_question_is_asked_in_the_kernel(self):
        with self.tracer(where=self.own() + ' && str(arg1) == "leaf"') as tracer:
            said = self.child.do(20)
            tracer.stop()
            events = list(tracer)
        self.assertEqual([list(event.args[1:]) for event in events], [each for each in said if each[0] == "leaf"])
        with self.assertRaises(usdt.SyntaxFault):
            self.tracer(where="arg0 ==").start()
        with self.assertRaises(usdt.InvalidArgument):
            self.tracer(table=usdt.Table()).start()

    def test_a_recording_has_the_events_that_were_taken(self):
        path = self.child.script.parent / "calls.rec"
        with self.tracer(record=path) as tracer:
            said = self.child.do(100)
            tracer.stop()
            events = list(tracer)
        with usdt.Recording(path) as recording:
            self.assertEqual(list(recording), events)
            self.assertEqual(recording.counts(), tracer.counts())
            self.assertEqual(recording.probes, tracer.probes)
            self.assertEqual((recording.kernel, recording.cut), (os.uname().release, None))
        with self.assertRaises(ValueError):
            recording.take()
        recording.close()
        self.assertEqual(self.child.returns(events), said)
        self.assertLess(abs(events[-1].wall_time - time.time_ns()), 60e9)
        with usdt.Recording(path, where=self.own(), table=self.BY_FUNCTION) as recording:
            self.assert_rows(recording.rows(), said)
        with self.assertRaises(usdt.NotFound):
            usdt.Recording("/no/such/file")
        with self.assertRaises(OSError):  # where the file cannot be written, the tracer does not start
            self.tracer(record="/no/such/directory/file").start()

    def test_a_recording_is_for_one_thread_at_a_time(self):
        path = self.child.script.parent / "threads.rec"
        with self.tracer(record=path) as tracer:
            self.child.do(1000)
            tracer.stop()
            events = sum(1 for _ in tracer)
        recording = usdt.Recording(path)
        taken, refused = [], []
        def take():
            while not taken or taken[-1]:
                try:
                    taken.append(len(recording.take(100)))
                except RuntimeError as error:
                    refused.append(str(error))
        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(100):
            try:
                recording.counts()
            except (RuntimeError, usdt.NotFound) as error:
                refused.append(str(error))
        for thread in threads:
            thread.join()
        recording.close()
        self.assertEqual(sum(taken), events)
        self.assertTrue(any("another thread" in why for why in refused), refused[:3])

    def test_numbers_that_no_process_has_are_refused(self):
        for pid in (self.child.pid + 2**32, -2**32 + self.child.pid):
            with self.assertRaises(OverflowError):
                usdt.list(pids=pid)
            with self.assertRaises(OverflowError):
                usdt.Tracer("python:function__return", pids=pid).start()
        for option in ("string_size", "ring_bytes", "max_open_calls", "user_cookie"):
            with self.assertRaisesRegex(OverflowError, option):
                self.tracer(**{option: 2**64 + 4096}).start()
        with self.assertRaisesRegex(OverflowError, "max_rows"):
            self.tracer(table=usdt.Table(by="pid", max_rows=2**32 + 1)).start()

    def test_usdt_trace_and_the_package_read_each_others_recordings(self):
        tool = os.environ.get("USDT_TRACE")
        if not tool:
            self.skipTest("usdt-trace is not built")
        ours, its = self.child.script.parent / "ours.rec", self.child.script.parent / "its.rec"
        pattern = "python:function__return"
        tracing = subprocess.Popen([tool, pattern, "-p", str(self.child.pid), "--print", "str(arg0), str(arg1), arg2", "--record", its],
                                   stderr=subprocess.PIPE, text=True)
        while "attached" not in (line := tracing.stderr.readline()):
            self.assertNotEqual(line, "", "usdt-trace ended")
        with self.tracer(record=ours) as tracer:
            said = self.child.do(30)
            tracer.stop()
            list(tracer)
        tracing.send_signal(signal.SIGINT)
        self.assertEqual(tracing.wait(30), 0, tracing.stderr.read())
        tracing.stderr.close()
        with usdt.Recording(its) as recording:
            self.assertEqual(self.child.returns(recording), said)
            self.assertTrue(recording.made_by.startswith("usdt-trace "), recording.made_by)
        replay = subprocess.run([tool, "--replay", ours, "--print", "str(arg0), str(arg1), arg2", "--format", "json"], check=True,
                                capture_output=True, text=True)
        shown = [event["args"] for event in map(json.loads, replay.stdout.splitlines()) if event["type"] == "event"]
        self.assertEqual([args[1:] for args in shown if args[0] == str(self.child.script) and args[1] != "note"], said)

    def test_texts_are_cut_where_they_are_told_to(self):
        with self.tracer(string_size=8, texts=None, text_args=["arg0", "arg1"]) as tracer:
            self.child.do(1)
            tracer.stop()
            events = [event for event in tracer if str(self.child.script).startswith(event.args[0])]
        self.assertTrue(events)
        for event in events:
            self.assertIsInstance(event.args[0], usdt.TruncatedText)
            self.assertEqual(event.args[0], str(self.child.script)[:8])
            self.assertNotIsInstance(event.args[1], usdt.TruncatedText)

    def test_pointers_stay_numbers_unless_asked(self):
        with self.tracer(texts=None) as tracer:
            said = self.child.do(3)
            tracer.stop()
            events = list(tracer)
        self.assertGreaterEqual(len(events), len(said))
        self.assertTrue(all(isinstance(value, int) for event in events for value in event.args))

    def test_calls_of_functions_have_results_and_durations(self):
        program = "import os\nprint('ready', flush=True)\ninput()\nprint([os.getppid() for _ in range(4)], flush=True)"
        process = subprocess.Popen([PYTHON, "-I", "-S", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        process.stdout.readline()
        with usdt.Tracer("ucall:libc.so.6:getppid", pids=process.pid) as tracer:
            said, _ = process.communicate("go\n")
            tracer.stop()
            events = list(tracer)
        self.assertEqual([event.result for event in events], json.loads(said))
        self.assertEqual(len(events), 4)
        self.assertTrue(all(0 < event.duration < 10**10 for event in events))

    def test_members_and_enums_are_values(self):
        if subprocess.run(["gcc", "--version"], capture_output=True).returncode != 0:
            self.skipTest("gcc is not installed")
        program = self.child.script.parent / "structs"
        subprocess.run(["gcc", "-g", "-O1", "-x", "c", "-", "-o", program], input=STRUCTS, text=True, check=True)
        process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        wanted = ["request->peer->port", "request->peer->name", "request->peer->color"]
        with usdt.Tracer(f"ucall:{program}:handle", pids=process.pid, values=wanted) as tracer:
            process.communicate("xy")
            tracer.stop()
            first, second = list(tracer)
        self.assertEqual((first.result, second.result), (41, 42))
        self.assertEqual(first.values, dict(zip(wanted, (80, "pear", 2))))
        self.assertEqual((first.arg("color").label, first.arg("request->peer->color").label), ("red", "green"))
        with self.assertRaises(KeyError):
            first.arg("no such")

    def test_ctrl_c_ends_a_loop_that_waits(self):
        process = subprocess.Popen([sys.executable, "-B", "-c", WAITS, str(self.child.pid)], stdout=subprocess.PIPE,
                                   text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        self.assertEqual((said, process.returncode), ("interrupted 0\n", 0))

    def test_one_thread_at_a_time(self):
        with self.tracer() as tracer:
            waiting = threading.Thread(target=tracer.take)
            waiting.start()
            try:
                for _ in range(1000):
                    try:
                        tracer.take(0)
                    except RuntimeError as error:
                        self.assertIn("another thread", str(error))
                        break
                else:
                    self.fail("two threads took events")
            finally:
                tracer.wake()
                waiting.join()


# Spans with a log of their own: [name, depth] of each beginning, [name, failed] of each end.
SPANS = """\
import json, sys, time, timeit, usdt
provider = usdt.Provider("spans", required=True)
calls = int(sys.argv[1])
begins, ends, depth = [], [], 0

def logged(function):
    def call(*arguments):
        global depth
        name = function.__name__
        depth += 1
        begins.append([name, depth])
        failed = True
        try:
            function(*arguments)
            failed = False
        finally:
            depth -= 1
            ends.append([name, failed])
    call.__qualname__ = function.__qualname__
    return call

@provider.span()
@logged
def leaf(n):
    if n % 10 == 3:
        raise KeyError(n)

@provider.span("branching")
@logged
def branch(n):
    for i in range(n % 4):
        try:
            leaf(n + i)
        except KeyError:
            pass
    if n % 3 == 0 and len(begins) < calls:
        branch(n + 1)

@provider.span()
def empty(): pass
def plain(): pass
last = provider.span("last")
count = 20000
costs = [min(timeit.repeat(function, number=count, repeat=5)) / count * 1e9 for function in (plain, empty)]
print("ready", flush=True)
sys.stdin.readline()
n = 0
while len(begins) < calls:
    n += 1
    branch(n)
with last:
    pass
print(json.dumps({"begins": begins, "ends": ends, "costs": costs}), flush=True)
"""

# Each task knows where it is; probe `at` says so right behind the beginning of a span.
TASKS = """\
import asyncio, sys, usdt
provider = usdt.Provider("tasks", required=True)
at = provider.probe("at", task="i32", depth="i32")

@provider.span()
async def down(task, depth):
    at(task, depth)
    await asyncio.sleep(0.0001 * (task % 7))
    if depth < 4:
        await down(task, depth + 1)
        with provider.span("within"):
            at(task, depth + 1)
            await asyncio.sleep(0)
        await asyncio.gather(down(task, 4), down(task, 4)) if depth == 3 else None

provider.span("within")  # from here on tools see its probes

async def main():
    await asyncio.gather(*(down(task, 1) for task in range(50)))

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


def spans_of(events):
    """[name, depth] of beginnings, by what they say of their parents; [name, failed] of ends; each span ends once."""
    depths, open_spans, begins, ends = {0: 0}, {}, [], []
    for event in events:
        name, _, end = event.name.rpartition("__")
        span, parent = event.args[:2]
        if end == "begin":
            depths[span] = depths[parent] + 1
            open_spans[span] = name
            begins.append([name, depths[span]])
        else:
            assert open_spans.pop(span) == name, event
            ends.append([name, event.args[2]])
    assert not open_spans, open_spans
    return begins, ends


class WithProvider(unittest.TestCase):
    """Starts Python programs that have probes of their own."""

    def setUp(self):
        if "USDT_PROVIDER_LIBRARY" not in os.environ:
            self.skipTest("libusdt-provider is not built")

    def start(self, code, *arguments):
        process = subprocess.Popen([sys.executable, "-B", "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process


class Provider(WithProvider):
    """What wants no privilege."""

    def test_its_probes_are_listed_with_names_and_types(self):
        with usdt.Provider("pytest", required=True) as provider:
            provider.probe("typed", "u8 small, i16 short, f32 half, f64 whole, bool yes, str word")
            provider.probe("by_keywords", item=str, price=float, count=int)
            listed = {point.name: point for point in usdt.list(pids=os.getpid(), patterns="pytest:*")}
            self.assertEqual(listed["typed"].signature, "(u8, i16, f32, f64, u8, u64)")
            self.assertEqual([arg.name for arg in listed["typed"].args], ["small", "short", "half", "whole", "yes", "word"])
            self.assertEqual([(arg.name, arg.kind) for arg in listed["by_keywords"].args],
                             [("item", "text"), ("price", "float"), ("count", "integer")])
        left = [point.name for point in usdt.list(pids=os.getpid()) if point.provider == "pytest"]
        self.assertEqual(left, [])

    def test_refuses_what_cannot_be_a_probe(self):
        with usdt.Provider("pytest2", required=True) as provider:
            provider.probe("twice")
            for name, arguments in (("twice", ""), ("no space", ""), ("bad", "float32 x"), ("many", ", ".join(
                    f"i32 a{i}" for i in range(13)))):
                with self.assertRaises(usdt.InvalidArgument):
                    provider.probe(name, arguments)
            with self.assertRaises(TypeError):
                provider.probe("both", "i32 x", y=int)
            with self.assertRaises(TypeError):
                provider.probe("odd", x=list)
        with self.assertRaises(usdt.InvalidArgument):
            usdt.Provider("no name:")
        with usdt.Provider("pytest5", required=True) as provider:
            for make in (lambda: usdt.Provider("a\0b"), lambda: provider.probe("a\0b"),
                         lambda: provider.probe("a", "i32 n\0")):
                with self.assertRaisesRegex(ValueError, "null character"):
                    make()

    def test_a_thread_works_for_the_innermost_trace(self):
        pointer = ctypes.c_void_p.in_dll(ctypes.CDLL(os.environ["USDT_PROVIDER_LIBRARY"]), "otel_thread_ctx_v1")
        record = lambda: ctypes.string_at(pointer.value, 64) if pointer.value else None
        usdt.publish_trace_context("pytest", ["http.route"])
        usdt.publish_trace_context(keys=["user.id", "http.route"])
        head = lambda trace, span, size: trace.to_bytes(16, "big") + span.to_bytes(8, "big") + bytes([1, 1]) + size.to_bytes(2, "little")
        self.assertIsNone(record())
        with usdt.trace_context(0x4bf92f, "00f067aa0ba902b7", attributes={"user.id": "\u00e4", "http.route": "/c"}):
            first = record()
            self.assertEqual(first[:36], head(0x4bf92f, 0xf067aa0ba902b7, 8) + b"\1\2\xc3\xa4\0\2/c")
            with self.assertRaises(KeyError), usdt.trace_context(bytes(15) + b"\2", 3, sampled=False):
                self.assertEqual(record()[:28], head(2, 3, 0)[:25] + bytes(3))
                raise KeyError
            self.assertEqual(record()[:36], first[:36])
        self.assertIsNone(record())
        for wrong in ({"trace_id": 1 << 128}, {"trace_id": "4bf9"}, {"span_id": b"1234567"}, {"attributes": {"unnamed": "x"}},
                      {"attributes": {"user.id": "x" * 256}}):
            with self.assertRaises(usdt.InvalidArgument):
                usdt.trace_context(**{"trace_id": 1, "span_id": 1, **wrong})
        async def task():
            with usdt.trace_context(1, 1):
                self.fail("another task is next")
        with self.assertRaises(RuntimeError):
            asyncio.run(task())

    def test_calls_untraced_do_what_they_do_traced(self):
        with usdt.Provider("pytest3", required=True) as provider:
            probe = provider.probe("two", a=int, b=str)
            self.assertFalse(probe.enabled)
            self.assertIsNone(probe(1, "x"))
            with self.assertRaises(TypeError):
                probe(1)
            @provider.span()
            def add(a, b=2):
                """Adds."""
                return a + b
            self.assertEqual((add(1), add(1, b=5), add.__name__, add.__doc__), (3, 6, "add", "Adds."))
            with self.assertRaises(TypeError):
                @provider.span()
                def numbers():
                    yield 1
            span = provider.span("one")
            with span, self.assertRaises(TypeError), span:
                pass
        probe(1, "after the end")

    def test_without_the_library_a_program_runs_as_before(self):
        code = ("import usdt\np = usdt.Provider('gone')\nq = p.probe('x', a=int)\nq(1)\n@p.span()\ndef f(): return 7\n"
                "print(f(), q.enabled, 'USDT_PROVIDER_LIBRARY' in str(p.error))")
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True,
                              env={"PYTHONPATH": str(PACKAGE), "USDT_PROVIDER_LIBRARY": "/no/such/library.so"})
        self.assertEqual(done.stdout, "7 False True\n", done.stderr)


class ProviderLive(WithProvider):
    """Traces those programs, and this one."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root (attaching uprobes)")

    def test_values_arrive_as_they_were_passed(self):
        with usdt.Provider("pylive", required=True) as provider:
            probe = provider.probe("values", "i8 a, u64 b, f32 c, f64 d, bool e, str f, text g")
            passed = [(-128, 2**64 - 1, 1.5, -0.1, True, "word", "t\xe4xt"), (127, 0, 0.25, 1e300, False, "", "x" * 50),
                      (0, 1, -2.0, 0.0, True, None, "last")]
            with usdt.Tracer("pylive:values", pids=os.getpid(), texts=["described"]) as tracer:
                self.assertTrue(probe.enabled)
                for values in passed:
                    probe(*values)
                with self.assertWarns(RuntimeWarning):
                    probe(128, 0, 0, 0, 0, "", "")
                probe("no number", 0, 0, 0, 0, "", "")
                for no_text in (3, 10**12, [65, 66]):  # bytes(3) are three zeroes
                    probe(1, 0, 0, 0, 0, no_text, "")
                    probe(1, 0, 0, 0, 0, "", no_text)
                self.assertEqual(probe.unfit, 8)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # tracing is not to end the program either
                    probe.unfit = 0
                    probe(128, 0, 0, 0, 0, "", "")
                    probe(129, 0, 0, 0, 0, "", "")
                tracer.stop()
                seen = [event.args for event in tracer]
            self.assertEqual(probe.unfit, 2)
        self.assertEqual([args[:7] for args in seen], passed)
        self.assertEqual([args[7] for args in seen], [len(values[6].encode()) for values in passed])

    def test_hits_have_the_trace_that_their_thread_works_for(self):
        usdt.publish_trace_context("pytest", ["http.route"])
        with usdt.Provider("pycontext", required=True) as provider:
            probe = provider.probe("works", n=int)
            with usdt.ask("pycontext:works", pids=os.getpid(), print='n, trace_id, span_id, trace_attribute("http.route")',
                          max_events=3) as answers:
                probe(0)
                for n in (1, 2):
                    with usdt.trace_context(n, n + 1, attributes={"http.route": f"/{n}"}):
                        probe(n)
                seen = [answer["args"] for answer in answers if answer["type"] == "event"]
        self.assertEqual(seen, [[0, "", "", ""], *([n, f"{n:032x}", f"{n + 1:016x}", f"/{n}"] for n in (1, 2))])

    def test_tables_have_floats(self):
        prices = [0.25 * n for n in range(-8, 12)]
        table = usdt.Table(by="key", value="price", extremes=True, histogram="price", linear=(-1, 2, 0.5))
        with usdt.Provider("pyreals", required=True) as provider:
            probe = provider.probe("sold", "f64 price, f32 key")
            with usdt.Tracer("pyreals:sold", pids=os.getpid(), table=table) as tracer:
                for price in prices:
                    probe(price, 1.5)
                probe(0.5, float("nan"))
            for linear in ((0, 1, 0), (0, 1, float("nan")), (0, 1, 1e-300)):
                with self.assertRaises(ValueError):
                    usdt.Tracer("pyreals:sold", pids=os.getpid(),
                                table=usdt.Table(histogram="price", linear=linear)).start()
        first, second = tracer.rows()
        self.assertEqual((first.keys, first.count, first.sum), ((1.5,), len(prices), sum(prices)))
        self.assertEqual((first.minimum, first.maximum, first.average), (-2.0, 2.75, sum(prices) / len(prices)))
        bounds = [-float("inf"), -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, float("inf")]
        self.assertEqual([range[:2] for range in first.ranges], list(zip(bounds, bounds[1:])))
        self.assertEqual([range.count for range in first.ranges],
                         [sum(low <= price < high for price in prices) for low, high in zip(bounds, bounds[1:])])
        self.assertEqual((str(second.keys), second.count), ("(nan,)", 1))

    def test_spans_are_what_the_program_says_they_were(self):
        calls = 100_000 if os.environ.get("USDT_LONG") == "1" else 10_000
        process = self.start(SPANS, str(calls))
        with usdt.Tracer("spans:*", pids=process.pid, texts=None) as tracer:
            events = []
            said = []
            def play():
                said.append(json.loads(process.communicate("go\n")[0]))
                tracer.stop()
            playing = threading.Thread(target=play)
            playing.start()
            events.extend(tracer)
            playing.join()
        counts, (log,) = tracer.counts(), said
        self.assertEqual((counts.lost, counts.discarded, counts.hits), (0, 0, len(events)))
        names = {"branch": "branching", "leaf": "leaf"}
        begins, ends = spans_of(events)
        self.assertEqual(begins.pop(), ["last", 1])
        self.assertEqual(ends.pop(), ["last", False])
        self.assertEqual(begins, [[names[name], depth] for name, depth in log["begins"]])
        self.assertEqual(ends, [[names[name], failed] for name, failed in log["ends"]])
        self.assertGreaterEqual(len(begins), calls)
        plain, decorated = log["costs"]
        print(f"{len(begins)} decorated calls traced; untraced, a decorated empty function costs {decorated:.0f} ns, "
              f"a plain one {plain:.0f} ns")
        self.assertLess(decorated - plain, 20000)

    def test_spans_of_concurrent_tasks_nest_within_their_own(self):
        process = self.start(TASKS)
        with usdt.Tracer("tasks:*", pids=process.pid, texts=None) as tracer:
            process.communicate("go\n")
            tracer.stop()
            events = list(tracer)
        self.assertEqual((process.returncode, tracer.counts().lost), (0, 0))
        places, parents, ended = {}, {}, set()
        for i, event in enumerate(events):
            if event.name.endswith("__begin"):
                self.assertEqual(events[i + 1].name, "at")
                places[event.args[0]] = events[i + 1].args
                parents[event.args[0]] = event.args[1]
            elif event.name.endswith("__end"):
                self.assertNotIn(event.args[0], ended)
                ended.add(event.args[0])
        self.assertEqual(ended, set(places))
        self.assertEqual(len(places), 50 * (4 + 3 + 2))
        for span, (task, depth) in places.items():
            self.assertEqual(places.get(parents[span], (task, 0)), (task, depth - 1), f"parent of span {span}")


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    for test, reason in outcome.skipped:
        print(f"SKIP {test}: {reason}")
    all_skipped = outcome.testsRun > 0 and len(outcome.skipped) == outcome.testsRun
    sys.exit(1 if not outcome.wasSuccessful() or outcome.testsRun == 0 else 77 if all_skipped else 0)
