# SPDX-License-Identifier: BSD-2-Clause
"""libusdt-c, as <usdt/usdtc.h> declares it. Private to the package."""

from __future__ import annotations

import ctypes
import functools
import os
import weakref
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Iterable, Sequence

from ._errors import error_of_kind

SONAME = "libusdt-c.so.0"
NONE = 2**64 - 1


class Text(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t)]

    def bytes(self) -> bytes:
        return ctypes.string_at(self.data, self.length) if self.length else b""


class _Sized(ctypes.Structure):
    """A struct that begins with its size, which the library looks at."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(type(self)), **fields)
        for name, value in fields.items():
            if isinstance(value, int) and getattr(self, name) != value:  # ctypes keeps the lower bits: another number
                raise OverflowError(f"{name}: {value} is out of range")


class Search(_Sized):
    _fields_ = [("size", c_size_t), ("patterns", POINTER(c_char_p)), ("pattern_count", c_size_t),
                ("targets", POINTER(c_char_p)), ("target_count", c_size_t), ("pids", POINTER(c_int32)),
                ("pid_count", c_size_t), ("program", c_char_p), ("stop", c_void_p)]


class Point(_Sized):
    _fields_ = [("size", c_size_t), ("kind", c_uint32), ("flags", c_uint32), ("full_name", c_char_p),
                ("file", c_char_p), ("machine", c_char_p), ("provider", c_char_p), ("name", c_char_p), ("pc", c_uint64),
                ("offset", c_uint64), ("semaphore", c_uint64), ("args_text", c_char_p), ("instruction", c_char_p),
                ("source_file", c_char_p), ("source_line", c_uint32), ("arg_count", c_uint32), ("refused", c_char_p)]


class Arg(_Sized):
    _fields_ = [("size", c_size_t), ("kind", c_uint32), ("bytes", c_uint32), ("flags", c_uint32), ("part_of", c_int32),
                ("name", c_char_p), ("type", c_char_p), ("meaning", c_char_p), ("unit", c_char_p), ("source", c_char_p),
                ("refused", c_char_p)]


class Notice(_Sized):
    _fields_ = [("size", c_size_t), ("kind", c_uint32), ("probe", c_uint32), ("message", c_char_p)]


class Table(_Sized):
    _fields_ = [("size", c_size_t), ("by", c_char_p), ("value", c_char_p), ("histogram", c_char_p), ("flags", c_uint32),
                ("max_rows", c_uint32), ("histogram_detail", c_uint32), ("digits", c_uint32), ("first", c_int64),
                ("to", c_int64), ("step", c_int64)]


class Wide(ctypes.Structure):
    _fields_ = [("low", c_uint64), ("high", c_int64)]

    def __int__(self) -> int:
        return (self.high << 64) + self.low


class Row(_Sized):
    _fields_ = [("size", c_size_t), ("count", c_uint64), ("sum", Wide), ("minimum", Wide), ("maximum", Wide),
                ("key_count", c_uint32), ("range_count", c_uint32), ("flags", c_uint32), ("reserved", c_uint32),
                ("real_sum", c_double), ("real_minimum", c_double), ("real_maximum", c_double), ("distinct", c_uint64)]


class Range(_Sized):
    _fields_ = [("size", c_size_t), ("first", Wide), ("last", Wide), ("count", c_uint64), ("flags", c_uint32),
                ("reserved", c_uint32), ("real_first", c_double), ("real_end", c_double)]


class ReplayOptions(_Sized):
    _fields_ = [("size", c_size_t), ("where", c_char_p), ("table", POINTER(Table))]


class RecordingInfo(_Sized):
    _fields_ = [("size", c_size_t), ("made_by", c_char_p), ("kernel", c_char_p), ("machine", c_char_p),
                ("cut", c_char_p)]


class PlanOptions(_Sized):
    _fields_ = [("size", c_size_t), ("pids", POINTER(c_int32)), ("pid_count", c_size_t), ("user_cookie", c_uint64),
                ("texts", c_uint32), ("flags", c_uint32), ("text_args", POINTER(c_char_p)),
                ("text_arg_count", c_size_t), ("values", POINTER(c_char_p)), ("value_count", c_size_t),
                ("stop", c_void_p), ("where", c_char_p), ("table", POINTER(Table))]


class TraceOptions(_Sized):
    _fields_ = [("size", c_size_t), ("flags", c_uint32), ("string_size", c_uint32), ("ring_bytes", c_uint32),
                ("max_open_calls", c_uint32), ("family", POINTER(c_int32)), ("family_count", c_size_t),
                ("sample", c_uint32), ("max_rate", c_uint32), ("max_overhead", c_double)]


class CountInfo(_Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("words", c_char_p), ("role", c_uint32),
                ("reserved", c_uint32)]


class Overhead(_Sized):
    _fields_ = [("size", c_size_t), ("flags", c_uint32), ("reserved", c_uint32), ("allowed", c_double),
                ("caused", c_double), ("looked_at", c_double), ("windows", c_uint64), ("of_hit", c_uint64),
                ("looked_for", c_uint64), ("lasted", c_uint64), ("trouble", c_char_p)]


class EventInfo(_Sized):
    _fields_ = [("size", c_size_t), ("kind", c_uint32), ("probe", c_uint32), ("site", c_uint32),
                ("arg_count", c_uint32), ("time", c_uint64), ("duration", c_uint64), ("pid", c_uint32),
                ("tid", c_uint32), ("cpu", c_uint32), ("reserved", c_uint32), ("address", c_uint64),
                ("user_cookie", c_uint64), ("comm", Text), ("full_name", c_char_p), ("file", c_char_p),
                ("provider", c_char_p), ("name", c_char_p), ("wall_time", c_uint64), ("weight", c_double)]


class _Number(ctypes.Union):
    _fields_ = [("i", c_int64), ("u", c_uint64), ("f", c_double)]


class Value(_Sized):
    _anonymous_ = ("number",)
    _fields_ = [("size", c_size_t), ("kind", c_uint32), ("flags", c_uint32), ("number", _Number), ("text", Text),
                ("enumerator", Text)]


class Option(_Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("value_name", c_char_p), ("group", c_char_p),
                ("description", c_char_p), ("flags", c_uint32), ("reserved", c_uint32)]


class Sink(_Sized):
    _fields_ = [("size", c_size_t), ("format", c_char_p), ("on_text", c_void_p), ("user", c_void_p), ("file", c_char_p),
                ("flags", c_uint32), ("reserved", c_uint32), ("on_event", c_void_p), ("max_kept", c_uint64), ("listen", c_char_p)]


HANDLE_OUT = POINTER(c_void_p)
_ERROR = POINTER(c_void_p)

# Functions that can fail: what comes before the error.
_FALLIBLE = {
    "usdtc_select": (POINTER(Search), HANDLE_OUT),
    "usdtc_selection_point": (c_void_p, c_size_t, POINTER(Point)),
    "usdtc_selection_arg": (c_void_p, c_size_t, c_size_t, POINTER(Arg)),
    "usdtc_selection_notice": (c_void_p, c_size_t, POINTER(Notice)),
    "usdtc_plan_make": (c_void_p, POINTER(PlanOptions), HANDLE_OUT),
    "usdtc_plan_notice": (c_void_p, c_size_t, POINTER(Notice)),
    "usdtc_check_privilege": (),
    "usdtc_tracer_start": (c_void_p, POINTER(TraceOptions), HANDLE_OUT),
    "usdtc_tracer_take": (c_void_p, c_int, c_size_t, HANDLE_OUT),
    "usdtc_tracer_fd": (c_void_p, POINTER(c_int)),
    "usdtc_tracer_notice": (c_void_p, c_size_t, POINTER(Notice)),
    "usdtc_tracer_ledger": (c_void_p, HANDLE_OUT),
    "usdtc_tracer_rows": (c_void_p, HANDLE_OUT),
    "usdtc_tracer_record": (c_void_p, c_char_p),
    "usdtc_tracer_record_end": (c_void_p,),
    "usdtc_rows_row": (c_void_p, c_size_t, POINTER(Row)),
    "usdtc_rows_key": (c_void_p, c_size_t, c_size_t, POINTER(Value)),
    "usdtc_rows_range": (c_void_p, c_size_t, c_size_t, POINTER(Range)),
    "usdtc_recording_open": (c_char_p, POINTER(ReplayOptions), HANDLE_OUT),
    "usdtc_recording_read": (c_void_p, POINTER(RecordingInfo)),
    "usdtc_recording_take": (c_void_p, c_size_t, HANDLE_OUT),
    "usdtc_recording_rows": (c_void_p, HANDLE_OUT),
    "usdtc_recording_ledger": (c_void_p, HANDLE_OUT),
    "usdtc_option_describe": (c_size_t, POINTER(Option)),
    "usdtc_question_add": (c_void_p, c_char_p),
    "usdtc_question_set": (c_void_p, c_char_p, c_char_p),
    "usdtc_session_ask": (c_void_p, c_void_p, c_char_p, POINTER(POINTER(Sink)), c_size_t),
    "usdtc_session_begin": (c_void_p,),
    "usdtc_session_step": (c_void_p, c_int, POINTER(c_int)),
    "usdtc_session_finish": (c_void_p,),
    "usdtc_session_fd": (c_void_p, POINTER(c_int)),
    "usdtc_session_text": (c_void_p, c_uint64, POINTER(Text)),
    "usdtc_session_notice": (c_void_p, c_size_t, POINTER(Notice)),
    "usdtc_count_describe": (c_size_t, POINTER(CountInfo)),
    "usdtc_ledger_overhead": (c_void_p, POINTER(Overhead)),
    "usdtc_ledger_values": (c_void_p, c_size_t, POINTER(c_uint64), c_size_t),
    "usdtc_event_read": (c_void_p, POINTER(EventInfo)),
    "usdtc_event_arg": (c_void_p, c_size_t, POINTER(Arg)),
    "usdtc_event_value": (c_void_p, c_size_t, POINTER(Value)),
}
# The others: what they return, and what they take.
_PLAIN = {
    "usdtc_question_new": (c_void_p,),
    "usdtc_question_free": (None, c_void_p),
    "usdtc_session_new": (c_void_p,),
    "usdtc_session_stop": (None, c_void_p),
    "usdtc_session_free": (None, c_void_p),
    "usdtc_version": (c_char_p,),
    "usdtc_error_kind": (c_uint32, c_void_p),
    "usdtc_error_message": (c_char_p, c_void_p),
    "usdtc_error_os_error": (c_int, c_void_p),
    "usdtc_error_column": (c_int64, c_void_p),
    "usdtc_error_log": (c_char_p, c_void_p),
    "usdtc_error_free": (None, c_void_p),
    "usdtc_selection_count": (c_size_t, c_void_p),
    "usdtc_selection_free": (None, c_void_p),
    "usdtc_plan_probe_count": (c_size_t, c_void_p),
    "usdtc_plan_site_count": (c_size_t, c_void_p),
    "usdtc_plan_probe_name": (c_char_p, c_void_p, c_size_t),
    "usdtc_plan_free": (None, c_void_p),
    "usdtc_tracer_wake": (None, c_void_p),
    "usdtc_tracer_detach": (None, c_void_p),
    "usdtc_tracer_discard": (None, c_void_p),
    "usdtc_tracer_attachment": (c_char_p, c_void_p),
    "usdtc_tracer_free": (None, c_void_p),
    "usdtc_ledger_free": (None, c_void_p),
    "usdtc_batch_count": (c_size_t, c_void_p),
    "usdtc_batch_event": (c_void_p, c_void_p, c_size_t),
    "usdtc_batch_free": (None, c_void_p),
    "usdtc_rows_count": (c_size_t, c_void_p),
    "usdtc_rows_key_name": (c_char_p, c_void_p, c_size_t),
    "usdtc_rows_free": (None, c_void_p),
    "usdtc_recording_plan": (c_void_p, c_void_p),
    "usdtc_recording_free": (None, c_void_p),
}


def load(soname: str, variable: str) -> ctypes.CDLL:
    """By the path in `variable`, else the one that a wheel has, else as the dynamic loader finds it."""
    in_wheel = os.path.join(os.path.dirname(__file__), "native.libs", soname)
    try:
        return ctypes.CDLL(os.environ.get(variable) or (in_wheel if os.path.exists(in_wheel) else soname))
    except OSError as error:
        raise OSError(f"{error}; where it is not installed, {variable} says where it is") from None


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """Loaded when it is first needed."""
    loaded = load(SONAME, "USDT_LIBRARY")
    for name, taken in _FALLIBLE.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = c_int, [*taken, _ERROR]
    for name, (returned, *taken) in _PLAIN.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = returned, taken
    return loaded


def call(name: str, *arguments: Any) -> None:
    """Calls a function that can fail; raises what it says."""
    error = c_void_p()
    result = getattr(library(), name)(*arguments, ctypes.byref(error))
    if result != 0:
        raise _taken(-result, error)


def _taken(number: int, error: c_void_p) -> Exception:
    loaded = library()
    try:
        column = loaded.usdtc_error_column(error)
        return error_of_kind(loaded.usdtc_error_kind(error), number, text(loaded.usdtc_error_message(error)) or "",
                             os_error=loaded.usdtc_error_os_error(error), column=None if column < 0 else column,
                             log=text(loaded.usdtc_error_log(error)) or "")
    finally:
        loaded.usdtc_error_free(error)


class Handle:
    """A handle that the library makes. It is freed with the last reference to it, or before by free(), once. Who frees it
    is known before it is there: an interrupt comes as soon as the library returns, and nobody has the handle by then."""

    def __init__(self, free: str) -> None:
        self._as_parameter_ = c_void_p()  # what ctypes passes in its place
        self.free = weakref.finalize(self, getattr(library(), free), self._as_parameter_)
        self.free.atexit = False  # at the interpreter's end other threads may be within

    def place(self) -> Any:
        """Where the library writes it."""
        return ctypes.byref(self._as_parameter_)


def made(name: str, free: str, *arguments: Any) -> Handle:
    """A handle that `name` makes, which is its last argument, and `free` frees."""
    handle = Handle(free)
    call(name, *arguments, handle.place())
    return handle


def text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="backslashreplace")


def c_string(word: str | os.PathLike[str] | bytes) -> bytes:
    """C would take what is before a NUL for all of it: another name, another question. ValueError: there is one."""
    raw = os.fsencode(word)
    if b"\0" in raw:
        raise ValueError(f"{word!r} has a null character")
    return raw


def texts_of(words: Sequence[str]) -> Any:
    """An array of C strings; NULL for none."""
    return (c_char_p * len(words))(*(c_string(word) for word in words)) if words else None


def numbers_of(numbers: Sequence[int]) -> Any:
    if not numbers:
        return None
    all_of_them = (c_int32 * len(numbers))(*numbers)
    if list(all_of_them) != list(numbers):  # ctypes keeps the lower bits: another process
        raise OverflowError(f"{numbers}: no process has such a number")
    return all_of_them


def each_of(one_or_more: Any) -> tuple[Any, ...]:
    """A single word or number is a list of one."""
    if one_or_more is None:
        return ()
    if isinstance(one_or_more, (str, int, os.PathLike)):
        return (one_or_more,)
    return tuple(one_or_more)


def words_of(one_or_more: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None) -> tuple[str, ...]:
    return tuple(os.fspath(word) for word in each_of(one_or_more))
