# SPDX-License-Identifier: BSD-2-Clause
"""Tracing, for loops and for asyncio."""

from __future__ import annotations

import asyncio
import collections
import ctypes
import dataclasses
import math
import os
import threading
import weakref
from ctypes import c_void_p
from typing import Any, AsyncIterator, Callable, Iterable, Iterator

from . import _library
from ._events import Event, Reader
from ._counts import Counts, read_ledger
from ._library import Handle, c_string, call, each_of, library, made, numbers_of, text, texts_of, words_of
from ._points import Notice, Selection, Words, notices_of
from ._tables import Row, Table, question_of, rows_of

_TEXTS = {"described": 1, "typed": 2, "likely": 4}
_OPEN, _UNSAFE_NOP5 = 1, 2
_COUNT_ONLY, _DESCENDANTS, _WAIT_FOR_PAGES, _NEVER_WAIT = 1, 2, 4, 8


@dataclasses.dataclass(frozen=True)
class Overhead:
    """What `max_overhead` comes to. Times are in seconds."""

    allowed: float  #: the option
    caused: float  #: what hits cost, as a share of what the processes did besides, in the mean
    looked_at: float  #: the share of what they did in which hits were looked at; 1: always
    windows: int  #: how often the sites were attached
    of_hit: float  #: what one costs, in the mean
    looked_for: float  #: time in which hits were looked at
    lasted: float  #: of all
    of_processors: bool  #: shares are of processor time; else of one processor's, all the time
    clocked: bool  #: how long programs run was measured; else it is a rule of thumb
    trouble: str | None  #: why the sites could not be attached again; None: they could


class Tracer:
    """Traces probes, functions and points of the kernel. As a context manager it attaches on entry and detaches on exit;
    iterating over it, with `for` or `async for`, gives events until stop() is called.

        with usdt.Tracer("orders:received", pids=4711) as tracer:
            for event in tracer:
                print(event.name, event.args)

    One thread at a time; stop() is for any thread and for signal handlers. Children of fork() have no events of it: those
    are their parent's. Wants privilege: check_privilege()."""

    def __init__(self, patterns: str | Iterable[str], *, targets: Words = (), pids: int | Iterable[int] = (),
                 program: str | os.PathLike[str] | None = None, family: int | Iterable[int] = (),
                 descendants: bool = False, texts: str | Iterable[str] | None = "auto",
                 text_args: str | Iterable[str] = (), values: str | Iterable[str] = (), open_structs: bool = False,
                 where: str | None = None, table: Table | None = None, record: str | os.PathLike[str] | None = None,
                 string_size: int = 200, ring_bytes: int = 32 << 20, max_open_calls: int = 0,
                 count_only: bool = False, wait_for_pages: bool | None = None, allow_unsafe_nop5: bool = False,
                 user_cookie: int = 0, sample: int = 1, max_rate: int = 0, max_overhead: float = 0) -> None:
        """`patterns`: names with globs, "PROVIDER:NAME", "usdt:TARGET:PROVIDER:NAME", "uprobe:TARGET:FUNCTION",
        "fentry:FUNCTION" and so on; those without a target are looked for in `targets`, in what `pids` (or `family`) have
        mapped, in `program` and its libraries, else in the files of all running processes.

        `pids`: only hits of these processes. `family`: of these and of those they start. `descendants`: only of those
        that descend from this process.
        `texts`: which pointers are followed: "auto" for all that are known to be text or plainly look like it; any of
        "described", "typed", "likely"; None. `text_args`: those that are texts for certain, "arg0" or by name;
        "arg0,arg1": as long as the second says. `values`: members and what pointers point to, "req->peer.port".
        `where`: only hits for which it holds, which the kernel asks: 'rows > 10 && comm != "cat"'. `table`: rows() instead
        of events. `record`: events that are taken are written to this file as well (Recording reads it).
        `wait_for_pages`: whether the traced program waits for memory that is paged out; None: where `pids` are given.

        Guards (docs/guards.md), of which what is left out is counted: `sample`: of so many hits one is looked at, chosen
        by chance. `max_rate`: at most so many events a second; 0: any number. `max_overhead`: 0.05 makes what is traced
        at most 5 % slower; 0: no limit. With `sample` and `max_overhead` events have a weight, and rows are estimates."""
        self._patterns = words_of(patterns)
        self._pids, self._family = each_of(pids), each_of(family)
        self._search = {"targets": targets, "pids": (*self._pids, *self._family), "program": program}
        self._texts = self._bits_of(texts)
        self._text_args, self._values = words_of(text_args), words_of(values)
        self._plan_flags = (_OPEN if open_structs else 0) | (_UNSAFE_NOP5 if allow_unsafe_nop5 else 0)
        self._flags = (_COUNT_ONLY if count_only else 0) | (_DESCENDANTS if descendants else 0)
        if wait_for_pages is not None:
            self._flags |= _WAIT_FOR_PAGES if wait_for_pages else _NEVER_WAIT
        if not 0 < sample < 2**32 or not 0 <= max_rate < 2**32:  # what is smaller the library judges
            raise ValueError("sample: one in how many hits; max_rate: how many events a second")
        self._sizes = {"string_size": string_size, "ring_bytes": ring_bytes, "max_open_calls": max_open_calls,
                       "sample": sample, "max_rate": max_rate, "max_overhead": max_overhead}
        self._limited = max_overhead != 0
        self._overhead: Overhead | None = None
        self._user_cookie = user_cookie
        self._where, self._table, self._record = where, table, record
        self._rows: list[Row] = []
        self._left: collections.deque[Event] = collections.deque()  # of iterations that ended early: who asks next has them
        self._handle: c_void_p | None = None
        self._lock = threading.Lock()  # of the handle, against stop() in other threads
        self._in_use = threading.RLock()  # an interrupt right after it was taken may leave it so: its thread goes on
        self._stopping = self._detached = False
        self._probes: list[str] = []
        self._ledger: tuple[Counts, dict[str, Counts]] = (Counts(), {})
        self._notices: list[Notice] = []
        self._attachment = ""

    @staticmethod
    def _bits_of(texts: str | Iterable[str] | None) -> int:
        if texts == "auto":
            return sum(_TEXTS.values())
        unknown = [word for word in each_of(texts) if word not in _TEXTS]
        if unknown:
            raise ValueError(f"texts: {unknown[0]!r} is none of: auto, {', '.join(_TEXTS)}")
        return sum(_TEXTS[word] for word in set(each_of(texts)))

    # ---- beginning and end

    def start(self) -> Tracer:
        """Attaches; `with` does it, too."""
        if self._handle is not None:
            raise RuntimeError("the tracer is running")
        with Selection(self._patterns, **self._search) as selection:
            options = _library.PlanOptions(
                pids=numbers_of(self._pids), pid_count=len(self._pids), user_cookie=self._user_cookie, texts=self._texts,
                flags=self._plan_flags, text_args=texts_of(self._text_args), text_arg_count=len(self._text_args),
                values=texts_of(self._values), value_count=len(self._values), **question_of(self._where, self._table))
            plan = made("usdtc_plan_make", "usdtc_plan_free", selection.handle, ctypes.byref(options))
        handle = c_void_p()
        # Who forgets to close it leaves no breakpoints, nor does Ctrl-C, which comes once it is attached. Not at the
        # interpreter's end: other threads may be within.
        self._free = weakref.finalize(self, library().usdtc_tracer_free, handle)
        self._free.atexit = False
        try:
            wanted = _library.TraceOptions(flags=self._flags, family=numbers_of(self._family),
                                           family_count=len(self._family), **self._sizes)
            call("usdtc_tracer_start", plan, ctypes.byref(wanted), ctypes.byref(handle))
            self._probes = probes_of(plan)
            if self._record is not None:
                call("usdtc_tracer_record", handle, c_string(self._record))
            self._attachment = text(library().usdtc_tracer_attachment(handle)) or ""
        except BaseException:
            self._free()
            raise
        finally:
            plan.free()
        self._reader = Reader()
        self._stopping = self._detached = False
        self._handle = handle
        return self

    def stop(self) -> None:
        """Ends iterations once the events that were recorded before are out. From any thread."""
        self._stopping = True
        self.wake()

    def wake(self) -> None:
        """What waits for events returns. From any thread."""
        if self._handle is not None:
            # A signal handler may run while its own thread has the lock: then nothing waits.
            if self._lock.acquire(timeout=0.1):
                try:
                    if self._handle is not None:
                        library().usdtc_tracer_wake(self._handle)
                finally:
                    self._lock.release()

    def close(self) -> None:
        """Detaches; what nobody took counts as discarded. counts(), rows() and notices() stay. `with` does it, too. Raises
        what went wrong with `record`."""
        if self._handle is None:
            return
        with self._use() as handle:
            library().usdtc_tracer_discard(handle)
            self._ledger = self._read_ledger(handle, discards=True)
            self._left.clear()
            self._notices = notices_of("usdtc_tracer_notice", handle)
            self._overhead = self._read_overhead(handle)
            if self._table is not None:
                self._rows = self._read_rows(handle)
            with self._lock:
                self._handle = None
            try:
                if self._record is not None:
                    call("usdtc_tracer_record_end", handle)
            finally:
                self._free()

    def __enter__(self) -> Tracer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Tracer:
        starting = asyncio.get_running_loop().run_in_executor(None, self.start)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:  # a thread cannot be: what it has attached by then is detached
            starting.add_done_callback(lambda done: None if done.cancelled() or done.exception() else self.close())
            raise

    async def __aexit__(self, *_: object) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def _use(self) -> Use:
        return Use(self._in_use, self._running)

    def _running(self) -> c_void_p:
        if self._handle is None:
            raise ValueError("the tracer is not running: use it within `with`")
        return self._handle

    # ---- events

    def take(self, timeout: float | None = None, limit: int = 0) -> list[Event]:
        """The events that are there, at most `limit` (0: all); where there are none, waits `timeout` seconds (None: until
        there are some). Empty: time is up, a signal came, or wake() or stop() was called."""
        wait = -1 if timeout in (None, math.inf) else min(math.ceil(max(timeout, 0) * 1000), 2**31 - 1)
        with self._use() as handle:
            if self._left:
                return [self._left.popleft() for _ in range(min(limit or len(self._left), len(self._left)))]
            return self._reader.take(self._left, "usdtc_tracer_take", handle, wait, limit)

    def _fill(self, timeout: float | None, limit: int) -> bool:
        """Whether there are events to hand out."""
        if not self._left:
            self._left.extend(self.take(timeout, limit))
        return bool(self._left)

    def detach(self) -> None:
        """No hit from here on; events that were recorded can still be taken."""
        with self._use() as handle:
            library().usdtc_tracer_detach(handle)
            self._detached = True

    def _over(self, any_events: bool) -> bool:
        """After stop(): detaches, and is true when there is nothing more."""
        if not self._stopping:
            return False
        if self._detached:
            return not any_events
        self.detach()
        return False

    def __iter__(self) -> Iterator[Event]:
        while self._handle is not None:
            any_events = self._fill(0 if self._stopping else None, 4096)
            while self._left:
                yield self._left.popleft()
            if self._over(any_events):
                return

    async def __aiter__(self) -> AsyncIterator[Event]:
        while self._handle is not None:
            any_events = self._fill(0, 1024)
            while self._left:
                yield self._left.popleft()
            if self._over(any_events):
                return
            if any_events:
                await asyncio.sleep(0)  # others have their turn
            elif not self._stopping:
                await self._readable()

    async def _readable(self) -> None:
        """Until the descriptor is readable. It is watched only meanwhile: a loop whose body takes its time is not to be
        woken again and again."""
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        descriptor = self.fileno()
        loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(descriptor)

    def fileno(self) -> int:
        """A descriptor for select, poll and event loops: readable as long as take(0) has something."""
        descriptor = ctypes.c_int()
        with self._use() as handle:
            call("usdtc_tracer_fd", handle, ctypes.byref(descriptor))
        return descriptor.value

    # ---- tables

    def rows(self) -> list[Row]:
        """Those of `table` as they are now, in the order of their keys; exact once the trace is over."""
        if self._handle is None:
            return self._rows
        with self._use() as handle:
            return self._read_rows(handle)

    def _read_rows(self, handle: c_void_p) -> list[Row]:
        return rows_of(made("usdtc_tracer_rows", "usdtc_rows_free", handle), self._table or Table())

    # ---- accounts

    @property
    def probes(self) -> list[str]:
        """Full names of what is traced."""
        return list(self._probes)

    @property
    def attachment(self) -> str:
        """How it is attached, in words."""
        return self._attachment

    def counts(self) -> Counts:
        """Of all probes together; exact once the trace is over."""
        return self._accounts()[0]

    def counts_by_probe(self) -> dict[str, Counts]:
        """The same of each, by its full name."""
        return self._accounts()[1]

    def overhead(self) -> Overhead | None:
        """What `max_overhead` came to; None: none was given."""
        if self._handle is None:
            return self._overhead
        with self._use() as handle:
            return self._read_overhead(handle)

    def notices(self) -> list[Notice]:
        """Points that were not attached, and files that changed while they were traced."""
        if self._handle is None:
            return self._notices
        with self._use() as handle:
            return notices_of("usdtc_tracer_notice", handle)

    def _accounts(self) -> tuple[Counts, dict[str, Counts]]:
        if self._handle is None:
            return self._ledger
        with self._use() as handle:
            return self._read_ledger(handle)

    def _read_overhead(self, handle: c_void_p) -> Overhead | None:
        if not self._limited:
            return None
        raw = _library.Overhead()
        ledger = made("usdtc_tracer_ledger", "usdtc_ledger_free", handle)
        try:
            call("usdtc_ledger_overhead", ledger, ctypes.byref(raw))
            return Overhead(raw.allowed, raw.caused, raw.looked_at, raw.windows, raw.of_hit / 1e9, raw.looked_for / 1e9,
                            raw.lasted / 1e9, bool(raw.flags & 1), bool(raw.flags & 2), text(raw.trouble))
        finally:
            ledger.free()

    def _read_ledger(self, handle: c_void_p, discards: bool = False) -> tuple[Counts, dict[str, Counts]]:
        """Events that nobody was handed yet are not delivered; in the end they are discarded."""
        total, by_probe = read_ledger(made("usdtc_tracer_ledger", "usdtc_ledger_free", handle), self._probes)
        def corrected(counts: Counts, left: int) -> Counts:
            gone = left if discards else 0
            return counts.replaced(delivered=counts.delivered - left, discarded=counts.discarded + gone,
                                   lost=counts.lost + gone)
        for name, left in collections.Counter(event.probe for event in self._left).items():
            by_probe[name] = corrected(by_probe[name], left)
        return corrected(total, len(self._left)), by_probe


class Use:
    """The handle that `handle` gives, for one thread at a time. It is asked under the lock: another thread may have closed
    it just before."""

    def __init__(self, lock: threading.RLock, handle: Callable[[], c_void_p | Handle], what: str = "tracer") -> None:
        self._lock, self._handle, self._what = lock, handle, what

    def __enter__(self) -> c_void_p | Handle:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(f"another thread is using the {self._what}")
        try:
            return self._handle()
        except ValueError:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def probes_of(plan: c_void_p | Handle) -> list[str]:
    """Full names."""
    return [text(library().usdtc_plan_probe_name(plan, n)) or "" for n in range(library().usdtc_plan_probe_count(plan))]


def check_privilege() -> None:
    """Raises NoPermission, naming what this process lacks to trace."""
    call("usdtc_check_privilege")


def version() -> str:
    """Of libusdt-c."""
    return text(library().usdtc_version()) or ""
