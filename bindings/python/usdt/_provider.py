# SPDX-License-Identifier: BSD-2-Clause
"""Probes of this process, by libusdt-provider as <usdt/provider.h> declares it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import inspect
import itertools
import operator
import os
import re
import struct
import warnings
from contextvars import ContextVar
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint, c_uint16, c_uint64, c_void_p
from types import TracebackType
from typing import Any, Callable, Iterator, Sequence, TypeVar

from ._errors import Error, InvalidArgument, NotSupported
from ._library import c_string, load

SONAME = "libusdt-provider.so.1"
_CLOSE_FILES = 1
Function = TypeVar("Function", bound=Callable[..., Any])


@functools.lru_cache(maxsize=None)
def provider_library() -> ctypes.CDLL:
    """Loaded when it is first needed."""
    loaded = load(SONAME, "USDT_PROVIDER_LIBRARY")
    for name, taken in {"usdtp_provider_create": (c_char_p, c_uint, POINTER(c_void_p)),
                        "usdtp_probe_add": (c_void_p, c_char_p, c_char_p, POINTER(c_void_p)),
                        "usdtp_provider_publish": (c_void_p,),
                        "usdtp_fire": (c_void_p, c_void_p, c_size_t)}.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = c_int, taken
    for name in ("usdtp_probe_retire", "usdtp_provider_retire"):
        function = getattr(loaded, name)
        function.restype, function.argtypes = None, (c_void_p,)
    return loaded


# --- values as a probe declares them ----------------------------------------------------------------------------------

_WIDTHS = {f"{sign}{width}": (sign == "i", width) for sign in "iu" for width in (8, 16, 32, 64)}
_TYPE_OF = {int: "i64", float: "f64", bool: "bool", str: "str", bytes: "bytes"}


def _integer(is_signed: bool, width: int) -> Callable[[Any], tuple[int]]:
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)

    def convert(value: Any) -> tuple[int]:
        number = operator.index(value)
        if not low <= number <= high:
            raise OverflowError(f"{number} is no {'i' if is_signed else 'u'}{width}")
        return (number & 0xFFFF_FFFF_FFFF_FFFF,)

    return convert


def _bytes_of(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    # bytes(3) would be three zeroes
    return value.encode(errors="surrogateescape") if isinstance(value, str) else bytes(memoryview(value))


def _sized(value: Any) -> tuple[bytes | None, int]:
    raw = _bytes_of(value)
    return raw, len(raw or b"")


# By declared type: the fields it takes in what is fired, 8 bytes each, and the values for them.
_CONVERSIONS: dict[str, tuple[Sequence[Any], Callable[[Any], Sequence[Any]]]] = {
    **{name: ((c_uint64,), _integer(*width)) for name, width in _WIDTHS.items()},
    "bool": ((c_uint64,), lambda value: (1 if value else 0,)),
    "f64": ((c_double,), lambda value: (float(value),)),
    "f32": ((c_uint64,), lambda value: struct.unpack("<I", struct.pack("<f", value))),
    "ptr": ((c_uint64,), lambda value: _integer(False, 64)(0 if value is None else value)),
    "str": ((c_char_p,), lambda value: (_bytes_of(value),)),
    "text": ((c_char_p, c_uint64), _sized),
    "bytes": ((c_char_p, c_uint64), _sized),
}


def _declaration(arguments: str, types: dict[str, Any]) -> str:
    """`arguments` as they are, or made of keywords: sql=str, rows="u32"."""
    if not types:
        return arguments
    if arguments:
        raise TypeError("arguments are declared by a text or by keywords, not by both")
    unknown = [name for name, kind in types.items() if kind not in _TYPE_OF and not isinstance(kind, str)]
    if unknown:
        raise TypeError(f"{unknown[0]}: its type is none of int, float, bool, str, bytes and names like 'u32'")
    return ", ".join(f"{_TYPE_OF.get(kind, kind)} {name}" for name, kind in types.items())


class Probe:
    """A probe of this process. Calling it fires it; while nobody traces it, that is one look at a counter. With the wrong
    number of arguments that is a TypeError, traced or not. A value that does not fit its declared type fires nothing: it
    is counted in `unfit` and warned of once, since tracing is not to change what a program does."""

    __slots__ = ("name", "arguments", "unfit", "_handle", "_semaphore", "_conversions", "_values", "_fields")

    def __init__(self, name: str, arguments: str, handle: int | None) -> None:
        self.name = name  #: "db:query"
        self.arguments = arguments  #: as they were declared
        self.unfit = 0
        self._handle = handle
        # Its first member is the counter of tracers, which the kernel writes.
        self._semaphore = c_uint16.from_address(handle) if handle else c_uint16(0)
        kinds = [argument.split()[0] for argument in arguments.split(",") if argument.strip()]
        conversions = [_CONVERSIONS.get(kind, ((), lambda value: ())) for kind in kinds]
        self._conversions = [convert for _, convert in conversions]
        fields = [field for taken, _ in conversions for field in taken]
        self._fields = len(fields)
        self._values = type("Values", (ctypes.Structure,), {"_fields_": [(f"v{i}", kind) for i, kind in enumerate(fields)]})

    @property
    def enabled(self) -> bool:
        """Whether somebody traces it: a guard for work that only a tracer wants."""
        return self._semaphore.value != 0

    def __call__(self, *values: Any) -> None:
        if len(values) != len(self._conversions):
            raise TypeError(f"{self.name} takes {len(self._conversions)} arguments, not {len(values)}")
        if self._semaphore.value:
            self.fire(values)

    def fire(self, values: Sequence[Any]) -> None:
        """Fires it whether or not it is traced; there have to be as many values as arguments."""
        try:
            filled = self._values(*[field for convert, value in zip(self._conversions, values) for field in convert(value)])
        except Exception as error:  # whatever a value's own conversion raises
            self.unfit += 1
            if self.unfit == 1:
                with contextlib.suppress(RuntimeWarning):  # which it is where warnings are errors (-W error)
                    warnings.warn(f"{self.name}({self.arguments}) was not fired: {error}", RuntimeWarning, stacklevel=3)
            return
        if self._handle:
            provider_library().usdtp_fire(self._handle, ctypes.byref(filled), self._fields)

    def __repr__(self) -> str:
        return f"<usdt.Probe {self.name}({self.arguments})>"


# --- providers --------------------------------------------------------------------------------------------------------


class Provider:
    """Probes of this process under one provider name, which every tool sees by the process's number.

        provider = usdt.Provider("shop")
        sold = provider.probe("sold", item=str, price=float)
        sold("lamp", 49.9)

    Where the library is not installed, or the system does not let programs make code, nothing is ever traced and nothing
    else changes; `error` says why. With `required` that raises. Threads may share it; children of fork() have its probes."""

    def __init__(self, name: str, *, required: bool = False, keep_files: bool = True) -> None:
        """`name`: letters, digits, '_', '-', '.'. `keep_files`: bpftrace and bcc find probes by their descriptors; without
        them usdt-list and usdt-trace still do."""
        self.name = name
        self.error: OSError | None = None  #: why there are no probes; None: there are
        self._required = required
        self._handle: c_void_p | None = None
        self._batches = 0
        self._pairs: dict[str, _Pair] = {}
        try:
            handle = c_void_p()
            self._check(provider_library().usdtp_provider_create(c_string(name), 0 if keep_files else _CLOSE_FILES,
                                                                 ctypes.byref(handle)), name)
            self._handle = handle
        except InvalidArgument:
            raise
        except OSError as error:
            self._miss(error)

    def probe(self, name: str, arguments: str = "", /, **types: Any) -> Probe:
        """Makes a probe, which tools see from now on. Its arguments are declared by a text, "str sql, u32 rows, i64
        took:duration[us]" (i8 to i64, u8 to u64, bool, f32, f64, ptr, str, text, bytes), or by keywords: sql=str, rows=int.
        `text` and `bytes` have lengths and may have NULs; a `str` ends at its first. Raises InvalidArgument: a bad name or
        declaration, more than 12 arguments (text and bytes are two each), a name that is taken."""
        declared = _declaration(arguments, types)
        probe = c_void_p()
        if self._handle is not None:
            number = provider_library().usdtp_probe_add(self._handle, c_string(name), c_string(declared), ctypes.byref(probe))
            try:
                self._check(number, f"{self.name}:{name}({declared})")
                if not self._batches:
                    self._publish()
            except InvalidArgument:
                raise
            except OSError as error:
                self._miss(error)
        return Probe(f"{self.name}:{name}", declared, probe.value)

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Tools see the probes that are made within it when it ends: many are cheaper together, in one file."""
        self._batches += 1
        try:
            yield
        finally:
            self._batches -= 1
            if not self._batches and self._handle is not None:
                try:
                    self._publish()
                except OSError as error:
                    self._miss(error)

    def span(self, name: str = "") -> Span:
        """A stretch of time with a beginning and an end: a decorator of functions and coroutines, or a context manager.
        Its probes are NAME__begin (u64 span, u64 parent) and NAME__end (u64 span, u64 parent, bool failed); `span` is unique
        in the process, `parent` the span around it, in its thread or asyncio task; 0: none. Without a name, which only a
        decorator may do, it is that of the function."""
        return Span(self, self._pair(name) if name else None)

    def close(self) -> None:
        """Ends all probes: firing them does nothing from now on. Not while another thread makes one."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            provider_library().usdtp_provider_retire(handle)

    def __enter__(self) -> Provider:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pair(self, name: str) -> _Pair:
        pair = self._pairs.get(name)
        if pair is None:
            with self.batch():
                pair = _Pair(self.probe(f"{name}__begin", "u64 span, u64 parent"),
                             self.probe(f"{name}__end", "u64 span, u64 parent, bool failed"))
            self._pairs[name] = pair
        return pair

    def _publish(self) -> None:
        self._check(provider_library().usdtp_provider_publish(self._handle), self.name)

    @staticmethod
    def _check(result: int, what: str) -> None:
        if result == 0:
            return
        number = -result
        if number in (errno.EINVAL, errno.E2BIG, errno.EEXIST):
            reason = {errno.E2BIG: "more than 12 arguments", errno.EEXIST: "there is such a probe"}
            raise InvalidArgument(number, f"{what}: {reason.get(number, 'no name, or no declaration of arguments')}")
        raise Error(number, f"{what}: {os.strerror(number)}")

    def _miss(self, error: OSError) -> None:
        self.error = error
        if self._required:
            raise NotSupported(error.errno or errno.ENOSYS, str(error)) from error


# --- spans ------------------------------------------------------------------------------------------------------------

_numbers = itertools.count(1)
_current: ContextVar[int] = ContextVar("usdt_span", default=0)


class _Pair:
    """The probes at the two ends of spans of one name."""

    def __init__(self, begin: Probe, end: Probe) -> None:
        self.begin, self.end = begin, end
        self.began, self.ended = begin._semaphore, end._semaphore

    def enter(self) -> tuple[int, int]:
        number, parent = next(_numbers), _current.get()
        _current.set(number)
        self.begin.fire((number, parent))
        return number, parent

    def leave(self, span: tuple[int, int], failed: bool) -> None:
        # Not by a token, which only the context that made it takes: generators may end in another one.
        _current.set(span[1])
        self.end.fire((*span, failed))


class Span:
    """What Provider.span() gives. As a context manager it is one span at a time; as a decorator it is for every call."""

    __slots__ = ("_provider", "_pair", "_entered", "_span")

    def __init__(self, provider: Provider, pair: _Pair | None) -> None:
        self._provider, self._pair = provider, pair
        self._entered = False
        self._span: tuple[int, int] | None = None

    @property
    def enabled(self) -> bool:
        """Whether somebody traces one of its ends."""
        return self._pair is not None and bool(self._pair.began.value or self._pair.ended.value)

    def __enter__(self) -> Span:
        pair = self._pair
        if pair is None or self._entered:
            raise TypeError("a span without a name is for functions" if pair is None else "one span at a time: ask for another")
        self._entered = True
        self._span = pair.enter() if pair.began.value or pair.ended.value else None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._entered = False
        if self._span is not None and self._pair is not None:
            self._pair.leave(self._span, kind is not None)

    def __call__(self, function: Function) -> Function:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__qualname__} is a generator, which ends whenever its caller likes: "
                            "use a span as a context manager within it")
        pair = self._pair or self._provider._pair(_probe_name(function))
        wrap = _around_coroutine if inspect.iscoroutinefunction(function) else _around
        return wrap(function, pair)


def _probe_name(function: Callable[..., Any]) -> str:
    """"Cart.checkout"; what names of probes may not have becomes '_'."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", function.__qualname__.replace("<locals>.", ""))[:119]


def _around(function: Any, pair: _Pair) -> Any:
    began, ended, enter, leave = pair.began, pair.ended, pair.enter, pair.leave

    @functools.wraps(function)
    def traced(*arguments: Any, **keywords: Any) -> Any:
        if not (began.value or ended.value):
            return function(*arguments, **keywords)
        span, failed = enter(), True
        try:
            result = function(*arguments, **keywords)
            failed = False
            return result
        finally:
            leave(span, failed)

    return traced


def _around_coroutine(function: Any, pair: _Pair) -> Any:
    began, ended, enter, leave = pair.began, pair.ended, pair.enter, pair.leave

    @functools.wraps(function)
    async def traced(*arguments: Any, **keywords: Any) -> Any:
        if not (began.value or ended.value):
            return await function(*arguments, **keywords)
        span, failed = enter(), True
        try:
            result = await function(*arguments, **keywords)
            failed = False
            return result
        finally:
            leave(span, failed)

    return traced
