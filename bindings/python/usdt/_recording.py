# SPDX-License-Identifier: BSD-2-Clause
"""Recordings of `usdt-trace --record` and of Tracer(record=...), read again."""

from __future__ import annotations

import collections
import ctypes
import os
import threading
from typing import Iterator

from . import _library
from ._events import Event, Reader
from ._library import Handle, c_string, library, made, text
from ._points import Notice, notices_of
from ._tables import Row, Table, question_of, rows_of
from ._counts import Counts, read_ledger
from ._tracer import Use, probes_of


class Recording:
    """Events of a trace that was recorded, on any machine; wants no privilege. One thread at a time.

        with usdt.Recording("pg.rec", where="arg1 > 1000") as recording:
            for event in recording:
                print(event.wall_time, event.args)
    """

    def __init__(self, path: str | os.PathLike[str], *, where: str | None = None, table: Table | None = None) -> None:
        """`where`: only events for which it holds, as if the kernel had been asked. `table`: rows() instead of events."""
        options = _library.ReplayOptions(**question_of(where, table))
        self._handle = made("usdtc_recording_open", "usdtc_recording_free", c_string(path), ctypes.byref(options))
        self._in_use = threading.RLock()  # an interrupt right after it was taken may leave it so: its thread goes on
        self._table = table
        self._reader = Reader()
        self._rows: list[Row] | None = None
        self._left: collections.deque[Event] = collections.deque()  # of iterations that ended early

    def close(self) -> None:
        """Events that were taken stay."""
        if self._handle.free.alive:
            with self._use():
                self._handle.free()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _use(self) -> Use:
        return Use(self._in_use, self._open, "recording")

    def _open(self) -> Handle:
        if not self._handle.free.alive:
            raise ValueError("the recording is closed")
        return self._handle

    def take(self, limit: int = 0) -> list[Event]:
        """The next events, at most `limit` (0: all that are left). Empty: there are no more."""
        with self._use() as handle:
            if self._left:
                return [self._left.popleft() for _ in range(min(limit or len(self._left), len(self._left)))]
            return self._reader.take(self._left, "usdtc_recording_take", handle, limit)

    def __iter__(self) -> Iterator[Event]:
        while True:
            if not self._left:
                self._left.extend(self.take(1024))
            if not self._left:
                return
            yield self._left.popleft()

    def rows(self) -> list[Row]:
        """Those of `table`, over all events of the file."""
        if self._rows is None:
            with self._use() as handle:
                self._rows = rows_of(made("usdtc_recording_rows", "usdtc_rows_free", handle), self._table or Table())
        return self._rows

    def counts(self) -> Counts:
        """What became of all hits when it was recorded. Raises NotFound where the file ends before any account."""
        return self._accounts()[0]

    def counts_by_probe(self) -> dict[str, Counts]:
        """The same of each, by its full name."""
        return self._accounts()[1]

    def _accounts(self) -> tuple[Counts, dict[str, Counts]]:
        probes = self.probes
        with self._use() as handle:
            return read_ledger(made("usdtc_recording_ledger", "usdtc_ledger_free", handle), probes)

    @property
    def probes(self) -> list[str]:
        """Full names of what was traced."""
        with self._use() as handle:
            return probes_of(library().usdtc_recording_plan(handle))

    def notices(self) -> list[Notice]:
        """What was said when it was recorded."""
        with self._use() as handle:
            return notices_of("usdtc_plan_notice", library().usdtc_recording_plan(handle))

    def _info(self, field: str) -> str | None:
        info = _library.RecordingInfo()
        with self._use() as handle:
            _library.call("usdtc_recording_read", handle, ctypes.byref(info))
            return text(getattr(info, field))

    @property
    def made_by(self) -> str:
        """"usdt-trace 1.0.0"."""
        return self._info("made_by") or ""

    @property
    def kernel(self) -> str:
        """The release of the kernel there."""
        return self._info("kernel") or ""

    @property
    def machine(self) -> str:
        """"x86_64"."""
        return self._info("machine") or ""

    @property
    def cut(self) -> str | None:
        """Where the file ends before its end, and why; None: it is whole, as far as it was read."""
        return self._info("cut")
