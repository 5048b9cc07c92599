# SPDX-License-Identifier: BSD-2-Clause
"""Questions as usdt-trace is asked them, and their answers."""

from __future__ import annotations

import collections
import ctypes
import json
import os
import threading
import weakref
from ctypes import c_void_p
from typing import Any, Iterable, Iterator, Mapping

from . import _library
from ._library import c_string, call, each_of, library
from ._points import Notice, notices_of
from ._tracer import Use

_STEP_MS = 50  # the library waits no longer
_KEEP = 1


class Answers:
    """The answers to a question, each a dict as docs/json.md describes it: iterating gives them as they come, until the
    question has all of them, and the last one is the account of all hits ("type": "summary").

        with usdt.ask("python:gc__start ~~ python:gc__done", latency=True, by="pid", duration=10) as answers:
            for answer in answers:
                print(answer)

    One thread at a time; stop() is for any thread and for signal handlers."""

    def __init__(self, points: tuple[str, ...], options: Mapping[str, Any], export: Mapping[str, Any], listen: str) -> None:
        # What has come and nobody was given yet, and how many bytes have come by then: one attribute, since an interrupt
        # may come before and behind any assignment, and never amid it.
        self._come: tuple[collections.deque[bytes], int] = (collections.deque(), 0)
        self._handle = c_void_p(library().usdtc_session_new())
        if not self._handle:
            raise MemoryError("usdt: no memory for a session")
        self._free = weakref.finalize(self, library().usdtc_session_free, self._handle)
        self._free.atexit = False  # other threads may be within
        self._lock = threading.Lock()  # of the handle, against stop() in other threads
        self._in_use = threading.RLock()  # an interrupt right after it was taken may leave it so: its thread goes on
        self._notices: list[Notice] = []
        try:
            self._ask(points, options, export, listen)
            call("usdtc_session_begin", self._handle)
        except BaseException:
            self._end()
            raise

    def _ask(self, points: tuple[str, ...], options: Mapping[str, Any], export: Mapping[str, Any], listen: str) -> None:
        sinks = [_library.Sink(format=b"json", flags=_KEEP)]
        sinks += [_library.Sink(format=name.encode(), file=c_string(file)) for name, file in export.items()]
        if listen:
            sinks.append(_library.Sink(listen=c_string(listen)))
        pointers = (ctypes.POINTER(_library.Sink) * len(sinks))(*(ctypes.pointer(sink) for sink in sinks))
        question = c_void_p(library().usdtc_question_new())
        try:
            for point in points:
                call("usdtc_question_add", question, c_string(point))
            for name, value in _settings(options):
                call("usdtc_question_set", question, name.encode(), None if value is None else c_string(value))
            call("usdtc_session_ask", self._handle, question, None, pointers, len(sinks))
        finally:
            library().usdtc_question_free(question)

    def _keep(self) -> None:
        """Takes what has come. The library keeps it until the next time: what interrupts Python's code loses none."""
        text = _library.Text()
        lines, so_far = self._come
        call("usdtc_session_text", self._handle, so_far, ctypes.byref(text))
        raw = text.bytes()
        self._come = (collections.deque([*lines, *raw.splitlines()]), so_far + len(raw))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        while not self._come[0]:
            if self.over:
                raise StopIteration
            self._step()
        lines = self._come[0]
        answer = json.loads(lines[0])
        del lines[0]  # no call, which an interrupt could come behind
        return answer

    def take(self) -> list[dict[str, Any]]:
        """The answers that are there, after a wait of at most 50 ms for the first one; for event loops, when fileno() is
        readable."""
        if not self._come[0] and not self.over:
            self._step()
        lines, so_far = self._come
        answers = [json.loads(line) for line in lines]
        self._come = (collections.deque(), so_far)
        return answers

    @property
    def over(self) -> bool:
        """Whether no more answers will come than are there."""
        return not self._handle

    def _step(self) -> None:
        with self._use() as handle:
            more = ctypes.c_int()
            call("usdtc_session_step", handle, _STEP_MS, ctypes.byref(more))
            self._keep()
            if not more.value:
                self._finish()

    def _finish(self) -> None:
        """May be interrupted and called again, as long as there is a handle."""
        with self._use() as handle:
            try:
                call("usdtc_session_finish", handle)
            finally:
                self._end()

    def _end(self) -> None:
        if self._handle:
            self._keep()
            self._notices = notices_of("usdtc_session_notice", self._handle)
            with self._lock:
                self._handle = c_void_p()
            self._free()

    def _use(self) -> Use:
        return Use(self._in_use, self._open, "answers")

    def _open(self) -> c_void_p:
        if not self._handle:
            raise ValueError("the question has been answered")
        return self._handle

    def stop(self) -> None:
        """Asks for the end: what has come by then, and the account, are still answers."""
        # A signal handler may run while its own thread has the lock: then it is about to end.
        if self._lock.acquire(timeout=0.1):
            try:
                if self._handle:
                    library().usdtc_session_stop(self._handle)
            finally:
                self._lock.release()

    def close(self) -> None:
        """Ends it; files of `export` and `record` get all that has come. `with` does it, too. Raises what could not be
        written to them."""
        if not self.over:
            self._finish()

    def fileno(self) -> int:
        """A descriptor for event loops, readable when take() has something to do."""
        descriptor = ctypes.c_int()
        with self._use() as handle:
            call("usdtc_session_fd", handle, ctypes.byref(descriptor))
        return descriptor.value

    def notices(self) -> list[Notice]:
        """What there was to say beside the answers: what was attached, what is followed or waited for."""
        if self.over:
            return list(self._notices)
        with self._use() as handle:
            return notices_of("usdtc_session_notice", handle)

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _settings(options: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Names of options, and their values as text."""
    for name, value in options.items():
        option = name.strip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            yield option, None
        elif isinstance(value, (str, int, float, os.PathLike)):
            yield option, str(os.fspath(value) if isinstance(value, os.PathLike) else value)
        else:
            for each in value:
                yield option, str(each)


def ask(*points: str, pids: int | Iterable[int] = (), export: Mapping[str, str | os.PathLike[str]] | None = None,
        listen: str | int = "", **options: Any) -> Answers:
    """Asks what usdt-trace is asked, by the same names: `usdt-trace 'python:gc__*' --by pid --latency` is
    usdt.ask("python:gc__*", by="pid", latency=True). `points` are names of probes, functions and points of the kernel, or
    spans, "A ~~ B". Options have "_" for "-"; flags are True; what may be given again and again is a list; options()
    describes all.

    `pids`: only hits of these processes. `export`: files that get all answers, too, by the form they are written in:
    {"json": "a.json", "csv": "a.csv", "text": "a.txt"}. `listen`: a port, or "ADDRESS:PORT", where metrics are served
    meanwhile, as /metrics. `record`: a file that events are recorded in; `replay`: the one they come
    out of, instead of running programs.

    Attaches before it returns, or waits for what is not there yet with wait=True. Raises SyntaxFault, InvalidArgument,
    NotFound, NoPermission and others."""
    numbers = each_of(pids)
    if numbers:
        options["pid"] = ",".join(str(int(number)) for number in numbers)
    return Answers(points, options, export or {}, str(listen))


def options() -> dict[str, str]:
    """What ask() takes, and what each option does, in the words of usdt-trace's help."""
    raw, found = _library.Option(), {}
    while library().usdtc_option_describe(len(found), ctypes.byref(raw), None) == 0:
        found[raw.name.decode().replace("-", "_")] = raw.description.decode()
    return found
