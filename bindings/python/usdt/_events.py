# SPDX-License-Identifier: BSD-2-Clause
"""Events as plain Python values."""

from __future__ import annotations

import collections
import ctypes
import dataclasses
from ctypes import c_void_p
from typing import Any, Callable, NamedTuple, Union

from . import _library
from ._library import library, text
from ._points import Arg, arg_of

_SIGNED, _UNSIGNED, _FLOAT, _TEXT, _BYTES, _UNREADABLE = 1, 2, 3, 4, 5, 6
_TRUNCATED, _NULL = 1, 2


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """A value that could not be had, and why. It is false."""

    reason: str

    def __bool__(self) -> bool:
        return False


class TruncatedText(str):
    """Text that is longer than the trace's string_size: its beginning."""


class TruncatedBytes(bytes):
    """The same of text that is not UTF-8."""


class EnumValue(int):
    """The value of an enum that has a name."""

    label: str

    def __new__(cls, number: int, label: str) -> EnumValue:
        value = super().__new__(cls, number)
        value.label = label
        return value

    def __repr__(self) -> str:
        return f"<{self.label}: {int(self)}>"


#: None is a null pointer where there should be text.
Value = Union[int, float, bool, str, bytes, None, Unreadable]


class Event(NamedTuple):
    """One hit: what was passed, where and when."""

    probe: str  #: the full name, which means exactly this probe
    provider: str
    name: str
    args: tuple[Value, ...]
    time: int  #: CLOCK_MONOTONIC, ns: that of time.monotonic_ns()
    pid: int
    tid: int
    comm: str  #: the thread's name
    cpu: int
    file: str | None  #: None: of the kernel
    result: Value | None = None  #: the return value, where the point has one
    values: dict[str, Value] = {}  #: what else was asked for (Tracer's `values`), by its text
    names: tuple[str | None, ...] = ()  #: of the arguments, where they are known
    duration: int = 0  #: of calls ("ucall:", "fsession:"): from entry to return, ns
    address: int = 0  #: of the site, in the process
    user_cookie: int = 0
    wall_time: int = 0  #: the time of day, ns since 1970: that of time.time_ns()
    weight: float = 1.0  #: how many hits it stands for: one, unless the Tracer was given `sample` or `max_overhead`

    def arg(self, name: str) -> Value:
        """The argument, or other value, of that name. KeyError: this event has none."""
        if name in self.names:
            return self.args[self.names.index(name)]
        return self.values[name]


class _Shape:
    """What all events of a site have in common."""

    def __init__(self, event: int, info: _library.EventInfo) -> None:
        self.probe, self.provider = text(info.full_name) or "", text(info.provider) or ""
        self.name, self.file = text(info.name) or "", text(info.file)
        self.all = [_arg_of_event(event, n) for n in range(info.arg_count)]
        self.plain = [n for n, arg in enumerate(self.all) if not (arg.result or arg.derived or arg.hidden)]
        self.results = [n for n, arg in enumerate(self.all) if arg.result and not arg.derived]
        self.derived = [n for n, arg in enumerate(self.all) if arg.derived and not arg.hidden]
        self.names = tuple(self.all[n].name for n in self.plain)
        self.booleans = {n for n, arg in enumerate(self.all) if arg.kind == "boolean"}


def _arg_of_event(event: int, n: int) -> Arg:
    raw = _library.Arg()
    _library.call("usdtc_event_arg", event, n, ctypes.byref(raw))
    return arg_of(raw)


class Reader:
    """Turns events of one plan into values; keeps what they have in common."""

    def __init__(self) -> None:
        self._shapes: dict[int, _Shape] = {}
        self._info = _library.EventInfo()
        self._value = _library.Value()
        loaded = library()
        self._read: Callable[..., int] = loaded.usdtc_event_read
        self._get: Callable[..., int] = loaded.usdtc_event_value
        self._info_at, self._value_at = ctypes.byref(self._info), ctypes.byref(self._value)

    def event(self, handle: int) -> Event:
        info = self._info
        self._read(handle, self._info_at, None)
        shape = self._shapes.get(info.site)
        if shape is None:
            shape = self._shapes[info.site] = _Shape(handle, info)
        results = [self._value_of(handle, n, shape) for n in shape.results]
        derived = {shape.all[n].name or f"arg{n}": self._value_of(handle, n, shape) for n in shape.derived}
        return Event(shape.probe, shape.provider, shape.name,
                     tuple([self._value_of(handle, n, shape) for n in shape.plain]), info.time, info.pid, info.tid,
                     info.comm.bytes().decode(errors="backslashreplace"), info.cpu, shape.file,
                     results[0] if results else None, derived, shape.names, info.duration, info.address,
                     info.user_cookie, info.wall_time, info.weight)

    def take(self, left: collections.deque[Event], function: str, *arguments: Any) -> list[Event]:
        """The events of the batch that `function` makes. They count as delivered: where an exception comes between, as
        KeyboardInterrupt may at any moment, they are in `left`, for whoever asks next."""
        batch = c_void_p()
        try:
            _library.call(function, *arguments, ctypes.byref(batch))
            return self._events_of(batch)
        except BaseException:
            left.extend(self._events_of(batch))
            raise
        finally:
            library().usdtc_batch_free(batch)

    def _events_of(self, batch: c_void_p) -> list[Event]:
        event_at = library().usdtc_batch_event
        return [self.event(event_at(batch, n)) for n in range(library().usdtc_batch_count(batch))]

    def _value_of(self, handle: int, n: int, shape: _Shape) -> Value:
        self._get(handle, n, self._value_at, None)
        return value_of(self._value, n in shape.booleans)


def value_of(value: Any, boolean: bool = False) -> Value:
    """What a usdtc_value has."""
    kind = value.kind
    if kind == _SIGNED or kind == _UNSIGNED:
        number = value.i if kind == _SIGNED else value.u
        if value.enumerator.length:
            return EnumValue(number, value.enumerator.bytes().decode(errors="backslashreplace"))
        return bool(number) if boolean else number
    if kind == _FLOAT:
        return value.f
    if value.flags & _NULL:
        return None
    raw = value.text.bytes()
    cut = value.flags & _TRUNCATED
    if kind == _TEXT:
        return TruncatedText(raw.decode()) if cut else raw.decode()
    if kind == _BYTES:
        return TruncatedBytes(raw) if cut else raw
    return Unreadable(raw.decode(errors="backslashreplace") if kind == _UNREADABLE else f"value of kind {kind}")
