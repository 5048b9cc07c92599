# SPDX-License-Identifier: BSD-2-Clause
"""Runs Python's functions in each way there is, up to a place that a tracer looks at, and writes down the interpreter's own
view of the stack there.

Usage: walkers.py FILE ROUNDS WAY...

WAY is `nested` (random ways within each other), `threads`, `waiting` (without the interpreter's lock), `forked`, `deep`, or
`changing` (code that is made anew at each round). Each place appends a line to FILE: the thread, and the functions from the
innermost on, [qualified name, file, line]. It begins once a line came on stdin, and ends
once another one did."""

import asyncio
import functools
import json
import os
import random
import sys
import threading
import time

RECORD = open(sys.argv[1], "a", buffering=1)
LOCK = threading.Lock()
KEPT = []  # code that would be freed before its name can be read
STEP_DEPTH = 12


def own_view(frame):
    view = []
    while frame:
        view.append([frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return view


def write_down(view):
    with LOCK:
        RECORD.write(json.dumps([threading.get_native_id(), view]) + "\n")


def place():
    """The place: what calls it is compared."""
    view = own_view(sys._getframe(1))
    os.getppid()
    write_down(view)


def waiting_place():
    view = own_view(sys._getframe(1))
    time.sleep(0.001)
    write_down(view)


class Ways:
    """Each calls step() in another way."""

    def __init__(self, seed, end):
        self.random = random.Random(seed)
        self.end = end

    def step(self, depth):
        if depth == 0:
            return self.end()
        way = self.random.choice([name for name in dir(Ways) if name.startswith("by_")])
        getattr(self, way)(depth - 1)
        return depth

    def by_call(self, depth):
        self.step(depth)

    def by_keywords(self, depth, *args, **kwargs):
        self.step(
            depth=depth,
        )

    def by_generator(self, depth):
        def numbers():
            for i in range(2):
                if i == 1:
                    self.step(depth)
                yield i

        for _ in numbers():
            pass

    def by_delegated_generator(self, depth):
        def inner():
            yield 1
            yield self.step(depth)

        def outer():
            yield from inner()

        list(outer())

    def by_key_of_sorted(self, depth):
        once = iter([True])
        sorted([3, 1, 2], key=lambda number: (next(once, False) and self.step(depth), number)[1])

    def by_map(self, depth):
        list(map(self.step, [depth]))

    def by_partial(self, depth):
        functools.partial(self.step, depth)()

    def by_comprehension(self, depth):
        [self.step(each) for each in [depth]]

    def by_generator_expression(self, depth):
        any(self.step(each) and False for each in [depth])

    def by_handler(self, depth):
        try:
            raise ValueError(depth)
        except ValueError:
            self.step(depth)

    def by_finally(self, depth):
        try:
            try:
                {}["none"]
            finally:
                self.step(depth)
        except KeyError:
            pass

    def by_unwound_frames(self, depth):
        def fails(levels):
            if levels == 0:
                raise OSError
            fails(levels - 1)

        try:
            fails(5)
        except OSError as error:
            assert error.__traceback__.tb_next
            self.step(depth)

    def by_init(self, depth):
        step = self.step

        class Made:
            def __init__(self):
                step(depth)

        Made()

    def by_attribute(self, depth):
        step = self.step

        class Asked:
            def __getattr__(self, name):
                return step(depth)

            @property
            def known(self):
                return step(depth)

        Asked().anything if depth % 2 else Asked().known

    def by_destructor(self, depth):
        step = self.step

        class Gone:
            def __del__(self):
                step(depth)

        gone = Gone()
        del gone

    def by_context(self, depth):
        step = self.step

        class Within:
            def __enter__(self):
                return self

            def __exit__(self, *why):
                step(depth)

        with Within():
            pass

    def by_coroutine(self, depth):
        async def inner():
            self.step(depth)

        async def outer():
            await inner()

        coroutine = outer()
        try:
            coroutine.send(None)
        except StopIteration:
            pass

    def by_text(self, depth):
        KEPT.append(compile("\n" * 20 + "step(\n depth)", "<made>", "exec"))
        exec(KEPT[-1], {"step": self.step, "depth": depth})

    def by_decorator(self, depth):
        def twice(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args)

            return wrapper

        twice(twice(self.step))(depth)

    def by_cache(self, depth):
        functools.lru_cache(self.step)(depth)

    def by_odd_name(self, depth):
        def größe_中(tiefe):
            self.step(tiefe)

        größe_中(depth)


def nested(rounds, end=place):
    for seed in range(rounds):
        Ways(seed, end).step(seed % STEP_DEPTH)


def threads(rounds, end=place):
    started = [threading.Thread(target=nested, args=(rounds // 4, end)) for _ in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def waiting(rounds):
    """Threads wait without the lock, which another one holds all the time."""
    over = threading.Event()

    def busy():
        while not over.is_set():
            sum(range(1000))

    others = threading.Thread(target=busy)
    others.start()
    threads(rounds, waiting_place)
    over.set()
    others.join()


def forked(rounds):
    child = os.fork()
    if child == 0:
        nested(rounds)
        time.sleep(2)
        os._exit(0)
    os.waitpid(child, 0)


def deep(rounds):
    def down(levels):
        return down(levels - 1) + 1 if levels else place() or 0

    for i in range(rounds):
        down(200 + i)


def changing(rounds):
    """Code objects are freed and made anew, in the same memory."""
    for i in range(rounds):
        names = {"place": place}
        exec("\n" * (i % 7) + f"def made_{i % 10}():\n  place()", names)
        names[f"made_{i % 10}"]()
        del names


async def unused():
    await asyncio.sleep(0)


print("ready", flush=True)
sys.stdin.readline()
for way in sys.argv[3:]:
    globals()[way](int(sys.argv[2]))
print("done", flush=True)
sys.stdin.readline()
