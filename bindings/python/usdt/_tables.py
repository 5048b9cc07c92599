# SPDX-License-Identifier: BSD-2-Clause
"""Tables: hits put together in rows."""

from __future__ import annotations

import ctypes
import dataclasses
from decimal import Decimal
from typing import Any, NamedTuple

from . import _library
from ._events import Value, value_of
from ._library import Handle, c_string, call, library

_EXTREMES, _REALS = 1, 2
_REAL = 1


class Range(NamedTuple):
    """Numbers from `first` to `last`, both of them, and how many hits had one; of floats those below `last`, which is
    itself in the next range. (Of negative ones in ranges of powers of 2 it is the other way round, and where both are the
    same it is that alone.)"""

    first: int | float
    last: int | float
    count: int


@dataclasses.dataclass(frozen=True)
class Row:
    """Hits with the same keys."""

    keys: tuple[Value, ...]
    count: int  #: with `sample` or `max_overhead` of the Tracer estimated, as are sum and ranges
    sum: int | float | None  #: of the values, exact, of floats rounded once; None: the table has none
    minimum: int | float | None  #: None: no extremes were asked for
    maximum: int | float | None
    ranges: tuple[Range, ...]  #: of the histogram: those that are not empty, in order

    @property
    def average(self) -> float | None:
        return None if self.sum is None else self.sum / self.count


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows instead of events: the kernel adds hits up whose keys are equal (docs/tables.md).

        with usdt.Tracer("db:query", table=usdt.Table(by="comm, str(sql)", value="duration")) as tracer:
            time.sleep(10)
            for row in tracer.rows():
                print(row.keys, row.count, row.average)
    """

    by: str | None = None  #: expressions with commas between them: "comm, arg0 % 16"; None: one row for all hits
    value: str | None = None  #: a number of which rows have the sum
    extremes: bool = False  #: and the smallest and the largest (Linux 5.12, arm64 5.18)
    histogram: str | None = None  #: a number of which rows have how many were in each range
    detail: int = 0  #: ranges from one power of 2 to the next are divided in 2**detail, at most 2**4
    #: ranges of equal width: from, to, step; of floats also as decimal numbers: (0.5, 2, 0.05)
    linear: tuple[int | float | Decimal | str, int | float | Decimal | str, int | float | Decimal | str] | None = None
    max_rows: int = 4096  #: there is room for so many at least; Counts.table_full are the hits beyond

    def _wanted(self) -> _library.Table:
        (first, to, step), digits = _decimal(self.linear or (0, 0, 0))
        if self.linear and step == 0:
            raise ValueError("linear: ranges of the width 0")
        return _library.Table(by=_encoded(self.by), value=_encoded(self.value), histogram=_encoded(self.histogram),
                              flags=_REALS | (_EXTREMES if self.extremes else 0), max_rows=self.max_rows,
                              histogram_detail=self.detail, digits=digits, first=first, to=to, step=step)


def _decimal(bounds: tuple[Any, Any, Any]) -> tuple[list[int], int]:
    """Integers, and how many of their digits are behind the decimal point: 0.5, 2, 0.05 is 50, 200, 5 and 2."""
    numbers = [Decimal(str(bound)) for bound in bounds]
    if not all(number.is_finite() for number in numbers):
        raise ValueError(f"linear: {bounds} are not numbers")
    digits = max(0, *(-int(number.normalize().as_tuple().exponent) for number in numbers))
    whole = [int(number.scaleb(digits)) for number in numbers] if digits <= 18 else []
    if not whole or any(abs(number) >= 2**63 for number in whole):
        raise ValueError(f"linear: {bounds} have more digits than there is room for")
    return whole, digits


def _encoded(words: str | None) -> bytes | None:
    return None if words is None else c_string(words.encode())


def question_of(where: str | None, table: Table | None) -> dict[str, Any]:
    """Fields of options that ask one."""
    return {"where": _encoded(where), "table": None if table is None else ctypes.pointer(table._wanted())}


def rows_of(rows: Handle, table: Table) -> list[Row]:
    """All of them; frees the handle."""
    try:
        return [_row_of(rows, n, table) for n in range(library().usdtc_rows_count(rows))]
    finally:
        rows.free()


def _row_of(rows: Handle, n: int, table: Table) -> Row:
    row, key, found = _library.Row(), _library.Value(), _library.Range()
    call("usdtc_rows_row", rows, n, ctypes.byref(row))
    keys, ranges = [], []
    for number in range(row.key_count):
        call("usdtc_rows_key", rows, n, number, ctypes.byref(key))
        keys.append(value_of(key))
    for number in range(row.range_count):
        call("usdtc_rows_range", rows, n, number, ctypes.byref(found))
        first, last = (found.real_first, found.real_end) if found.flags & _REAL else (int(found.first), int(found.last))
        ranges.append(Range(first, last, found.count))
    if row.flags & _REAL:
        total, minimum, maximum = row.real_sum, row.real_minimum, row.real_maximum
    else:
        total, minimum, maximum = int(row.sum), int(row.minimum), int(row.maximum)
    return Row(tuple(keys), row.count, None if table.value is None else total, minimum if table.extremes else None,
               maximum if table.extremes else None, tuple(ranges))
