# SPDX-License-Identifier: BSD-2-Clause
"""The trace and span that threads of this process work for, as OpenTelemetry's programs publish them for tracers (OTEP 4947
and 4719), by libusdt-provider."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
import threading
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint
from types import TracebackType
from typing import Iterable, Mapping

from ._errors import Error, InvalidArgument
from ._provider import provider_library

_MOST_KEYS = 256


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL | None:
    """None: it is not installed, and nothing is published."""
    try:
        loaded = provider_library()
    except OSError:
        return None
    loaded.usdtp_context_set.restype, loaded.usdtp_context_set.argtypes = None, (c_char_p, c_char_p, c_uint)
    loaded.usdtp_context_clear.restype, loaded.usdtp_context_clear.argtypes = None, ()
    loaded.usdtp_context_add.restype, loaded.usdtp_context_add.argtypes = c_int, (c_uint, c_char_p, c_size_t)
    loaded.usdtp_context_publish.restype = c_int
    loaded.usdtp_context_publish.argtypes = (c_char_p, POINTER(c_char_p), c_size_t)
    return loaded


class _Published:
    """What is true of all threads. A child of fork() has no page of its own until it publishes one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.service: str | None = None
        self.keys: list[str] = []

    def add(self, service: str | None, keys: Iterable[str]) -> None:
        with self.lock:
            wanted = list(dict.fromkeys([*self.keys, *keys]))
            if len(wanted) > _MOST_KEYS:
                raise InvalidArgument(errno.EINVAL, f"{len(wanted)} names of attributes, of at most {_MOST_KEYS}")
            self.service, self.keys = service if service is not None else self.service, wanted
            self._publish()

    def again(self) -> None:
        """In a child, where nobody else has the lock."""
        self.lock = threading.Lock()
        if self.service is not None or self.keys:
            self._publish()

    def _publish(self) -> None:
        library = _library()
        if library is None:
            return
        names = (c_char_p * len(self.keys))(*[key.encode() for key in self.keys])
        result = library.usdtp_context_publish(None if self.service is None else self.service.encode(), names, len(self.keys))
        if result != 0:
            raise Error(-result, f"the process's context: {os.strerror(-result)}")


_published = _Published()
os.register_at_fork(after_in_child=_published.again)
_thread = threading.local()


def publish_trace_context(service: str | None = None, keys: Iterable[str] = ()) -> None:
    """Says once what is true of all threads, without which other readers leave their contexts alone: the service's name, and
    what attributes of trace_context() are called. Again: names are added, and none is taken away."""
    _published.add(service, keys)


def _identifier(value: int | str | bytes, size: int, what: str) -> bytes:
    try:
        raw = value.to_bytes(size, "big") if isinstance(value, int) else bytes.fromhex(value) if isinstance(value, str) else bytes(value)
    except (OverflowError, ValueError):
        raw = b""
    if len(raw) != size:
        raise InvalidArgument(errno.EINVAL, f"{what} {value!r}: no number of {size} bytes, nor {2 * size} hexadecimal digits")
    return raw


class trace_context:  # noqa: N801 - it is used as a function is
    """The thread works for this span within it; what is around it comes back at its end:

        with usdt.trace_context(span.context.trace_id, span.context.span_id, attributes={"http.route": "/cart"}):
            ...

    Identifiers are numbers, as OpenTelemetry's for Python are, hexadecimal digits or bytes. Attributes are those that
    publish_trace_context() has named, at most 255 bytes each and 612 together with two more for each. A thread has one
    context, whatever tasks run in it: where an event loop runs this raises, since another task could be taken for this one.
    Where the library is not installed nothing is published, and nothing else changes."""

    def __init__(self, trace_id: int | str | bytes, span_id: int | str | bytes, *, sampled: bool = True,
                 attributes: Mapping[str, str] | None = None) -> None:
        self._trace = _identifier(trace_id, 16, "trace_id")
        self._span = _identifier(span_id, 8, "span_id")
        self._flags = 1 if sampled else 0
        self._attributes = []
        for key, text in (attributes or {}).items():
            if key not in _published.keys:
                raise InvalidArgument(errno.EINVAL, f"{key!r} is no attribute that publish_trace_context() has named")
            self._attributes.append((_published.keys.index(key), text.encode(errors="surrogateescape")))
        if any(len(text) > 255 for _, text in self._attributes) or sum(2 + len(text) for _, text in self._attributes) > 612:
            raise InvalidArgument(errno.EINVAL, "an attribute of more than 255 bytes, or more than 612 in all")

    def _set(self) -> None:
        library = _library()
        if library is None:
            return
        library.usdtp_context_set(self._trace, self._span, self._flags)
        for key, text in self._attributes:
            library.usdtp_context_add(key, text, len(text))

    def __enter__(self) -> trace_context:
        events = sys.modules.get("asyncio.events")  # without which none runs
        if events is not None and events._get_running_loop() is not None:
            raise RuntimeError("a thread that runs an event loop works for whatever task is next, and has no trace context")
        if not hasattr(_thread, "around"):
            _thread.around = []
        _thread.around.append(self)
        self._set()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _thread.around.pop()
        library = _library()
        if _thread.around:
            _thread.around[-1]._set()
        elif library is not None:
            library.usdtp_context_clear()
