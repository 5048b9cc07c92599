# SPDX-License-Identifier: BSD-2-Clause
"""What became of hits, by the library's table of numbers."""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_uint64
from typing import Any, Mapping

from . import _library
from ._library import Handle, call, text

_WHOLE_TRACE = ctypes.c_size_t(-1).value


@functools.lru_cache(maxsize=None)
def _described() -> dict[str, str]:
    """The words for each number, by its name, in the library's order."""
    words: dict[str, str] = {}
    info = _library.CountInfo()
    try:
        while True:
            call("usdtc_count_describe", len(words), ctypes.byref(info))
            words[text(info.name) or ""] = text(info.words) or ""
    except LookupError:
        return words


class Counts:
    """What became of hits, as numbers: `counts.hits`, `counts.delivered`, `counts.lost`, `counts.ring_full` and so on.
    Counts.words() has all their names, and says what they are. `missed` is None where the kernel does not count it.

    Once the trace is over, hits == delivered + lost + what was left out as asked: rejected, undecided, not_sampled,
    held_back. `lost` is the sum of its reasons: ring_full, calls_full, table_full, unfinished, abandoned, discarded,
    folded_full, not_written. Recordings of usdt-trace have also spans: + faster + paired + unmatched + unpaired."""

    __slots__ = ("_numbers",)

    def __init__(self, **numbers: int | None) -> None:
        object.__setattr__(self, "_numbers", numbers)

    @staticmethod
    def words() -> Mapping[str, str]:
        """What each number counts, by its name."""
        return dict(_described())

    def numbers(self) -> dict[str, int | None]:
        """All of them by name; those that nothing was counted for are 0."""
        return {name: self._numbers.get(name, 0) for name in _described()}

    def replaced(self, **numbers: int | None) -> Counts:
        """These, with some numbers instead."""
        return Counts(**{**self._numbers, **numbers})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in _described():
            raise AttributeError(f"{name}: there is no such number; there are {', '.join(_described())}")
        return self._numbers.get(name, 0)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: what was counted stays as it is")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_described()]

    def __eq__(self, other: object) -> bool:
        return self.numbers() == other.numbers() if isinstance(other, Counts) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.numbers().items()))

    def __repr__(self) -> str:
        return f"Counts({', '.join(f'{name}={number}' for name, number in self.numbers().items())})"

    def __getstate__(self) -> dict[str, int | None]:
        return self.numbers()

    def __setstate__(self, numbers: dict[str, int | None]) -> None:
        object.__setattr__(self, "_numbers", numbers)


def _counts_of(ledger: Handle, probe: int) -> Counts:
    names = _described()
    values = (c_uint64 * len(names))()
    call("usdtc_ledger_values", ledger, probe, values, len(names))
    return Counts(**{name: None if value == _library.NONE else value for name, value in zip(names, values)})


def read_ledger(ledger: Handle, probes: list[str]) -> tuple[Counts, dict[str, Counts]]:
    """Of all probes together, and of each; frees the handle."""
    try:
        return _counts_of(ledger, _WHOLE_TRACE), {name: _counts_of(ledger, n) for n, name in enumerate(probes)}
    finally:
        ledger.free()
