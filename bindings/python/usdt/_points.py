# SPDX-License-Identifier: BSD-2-Clause
"""What is there to trace."""

from __future__ import annotations

import builtins
import ctypes
import dataclasses
import os
from ctypes import c_void_p
from typing import Any, Iterable

from . import _library
from ._library import Handle, c_string, call, library, made, numbers_of, text, texts_of, words_of

Words = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

_KINDS = {1: "probe", 2: "function", 3: "kernel"}
_TYPE_KINDS = {1: "integer", 2: "float", 3: "boolean", 4: "enum", 5: "pointer", 6: "text", 7: "struct", 8: "array"}
_SIGNED, _RESULT, _DERIVED, _HIDDEN = 1, 2, 4, 8
_HAS_SEMAPHORE, _INLINED = 1, 2


@dataclasses.dataclass(frozen=True)
class Arg:
    """An argument as its point types it."""

    kind: str  #: "integer", "float", "boolean", "enum", "pointer", "text", "struct", "array"
    bytes: int  #: its size; 0: not known
    signed: bool
    name: str | None  #: None: not known
    type: str | None  #: as C, "const char *"; None: not known
    meaning: str | None  #: what its number stands for, "errno"
    unit: str | None  #: "us"
    source: str | None  #: the text of the note it was read from, "-4@%eax"
    refused: str | None  #: why no value of it can be had; None: one can
    result: bool = False  #: not an argument but the return value
    derived: bool = False  #: not passed itself, but what an argument leads to
    hidden: bool = False  #: read for another one's sake

    @property
    def type_name(self) -> str:
        """"i32", "u64", "f64"."""
        letter = "f" if self.kind == "float" else "i" if self.signed else "u"
        return f"{letter}{8 * self.bytes}"


@dataclasses.dataclass(frozen=True)
class Point:
    """One place where a program can run: a site of a probe, a function, a tracepoint of the kernel."""

    kind: str  #: "probe", "function", "kernel"
    full_name: str  #: as a pattern it means exactly this probe or function
    provider: str  #: of functions the prefix: "uprobe", "fentry"
    name: str
    args: tuple[Arg, ...]
    file: str | None  #: None: of the kernel
    machine: str
    pc: int | None
    offset: int | None  #: in the file
    semaphore: int | None  #: the address of its counter of tracers
    has_semaphore: bool
    inlined: bool
    args_text: str | None  #: the arguments as the note has them
    instruction: str | None  #: what the site is made of: "nop", "nop,nop5"
    source_file: str | None
    source_line: int | None
    refused: str | None  #: why no program can run there; None: one can

    @property
    def signature(self) -> str:
        """"(i32, u64)"."""
        return f"({', '.join(arg.type_name for arg in self.args)})"


@dataclasses.dataclass(frozen=True)
class Notice:
    """Something beside the result of a search, a plan or a trace."""

    kind: str  #: "unreadable", "skipped", "refused", "file_changed", "recorded", "session"
    message: str

    _KINDS = {1: "unreadable", 2: "skipped", 3: "refused", 4: "file_changed", 5: "recorded", 6: "session"}


def arg_of(raw: _library.Arg) -> Arg:
    return Arg(kind=_TYPE_KINDS.get(raw.kind, "unknown"), bytes=raw.bytes, signed=bool(raw.flags & _SIGNED),
               name=text(raw.name), type=text(raw.type), meaning=text(raw.meaning), unit=text(raw.unit),
               source=text(raw.source), refused=text(raw.refused), result=bool(raw.flags & _RESULT),
               derived=bool(raw.flags & _DERIVED), hidden=bool(raw.flags & _HIDDEN))


def _point_of(raw: _library.Point, args: tuple[Arg, ...]) -> Point:
    return Point(kind=_KINDS.get(raw.kind, "unknown"), full_name=text(raw.full_name) or "", args=args,
                 provider=text(raw.provider) or "", name=text(raw.name) or "", file=text(raw.file),
                 machine=text(raw.machine) or "", pc=raw.pc or None,
                 offset=None if raw.offset == _library.NONE else raw.offset, semaphore=raw.semaphore or None,
                 has_semaphore=bool(raw.flags & _HAS_SEMAPHORE), inlined=bool(raw.flags & _INLINED),
                 args_text=text(raw.args_text), instruction=text(raw.instruction), source_file=text(raw.source_file),
                 source_line=raw.source_line or None, refused=text(raw.refused))


def notices_of(function: str, handle: c_void_p | Handle) -> builtins.list[Notice]:
    """All of a selection, plan or tracer."""
    out = []
    raw = _library.Notice()
    while getattr(library(), function)(handle, len(out), ctypes.byref(raw), None) == 0:
        out.append(Notice(Notice._KINDS.get(raw.kind, "unknown"), text(raw.message) or ""))
    return out


class Selection:
    """Points that patterns mean."""

    def __init__(self, patterns: Any = (), *, targets: Any = (), pids: Any = (), program: Any = None) -> None:
        words, places, numbers = words_of(patterns), words_of(targets), _library.each_of(pids)
        search = _library.Search(patterns=texts_of(words), pattern_count=len(words), targets=texts_of(places),
                                 target_count=len(places), pids=numbers_of(numbers), pid_count=len(numbers),
                                 program=None if program is None else c_string(program))
        self.handle = made("usdtc_select", "usdtc_selection_free", ctypes.byref(search))

    def __enter__(self) -> Selection:
        return self

    def __exit__(self, *_: object) -> None:
        self.handle.free()

    def points(self) -> builtins.list[Point]:
        return [self._point(n) for n in range(library().usdtc_selection_count(self.handle))]

    def _point(self, n: int) -> Point:
        raw, args = _library.Point(), []
        call("usdtc_selection_point", self.handle, n, ctypes.byref(raw))
        for i in range(raw.arg_count):
            arg = _library.Arg()
            call("usdtc_selection_arg", self.handle, n, i, ctypes.byref(arg))
            args.append(arg_of(arg))
        return _point_of(raw, tuple(args))


def list(targets: Words = (), *, patterns: str | Iterable[str] = (), pids: int | Iterable[int] = (),
         program: str | os.PathLike[str] | None = None) -> builtins.list[Point]:
    """The probes of files, processes or a program, one Point for each place; with `patterns` those they mean, which may
    be functions, too ("uprobe:./server:handle*", "fentry:vfs_*").

    `targets` are paths, globs, directories, sonames or names of programs; without any, and without `pids` and
    `program`, the files of all running processes. Wants no privilege but to read the files. Raises NotFound where a
    target, a process or what a pattern means is not there; a file without probes is an empty list."""
    with Selection(patterns, targets=targets, pids=pids, program=program) as selection:
        return selection.points()
