# SPDX-License-Identifier: BSD-2-Clause
"""The outcome of a run: on the terminal, and as the tables of docs/results/kernels.md."""

import collections
import pathlib
import textwrap

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "results" / "kernels.md"
BEGIN, END = "<!-- ./run vm writes from here -->", "<!-- to here -->"
WIDTH = 120  # as of all documents


def table(results):
    """Markdown; `results`: kernel's name -> {row: Cell}. A row named `TABLE: ROW` is in a table of its own."""
    tables = collections.defaultdict(dict)
    for row in (row for cells in results.values() for row in cells):
        name, _, short = row.rpartition(": ")
        tables[name][row] = short
    parts = [_table(name, rows, results) for name, rows in sorted(tables.items(), key=lambda each: each[0] != "")]
    return "\n\n".join(parts + _skipped(results))


def _table(name, rows, results):
    """One table with a column for each kernel, or, where that is too wide, a list with an item for each row."""
    lines = [[name, *results], ["---"] * (len(results) + 1)]
    for row, short in rows.items():
        lines.append([short, *[cells[row].text if row in cells else "–" for cells in results.values()]])
    texts = ["| " + " | ".join(line) + " |" for line in lines]
    if max(map(len, texts)) <= WIDTH:
        return "\n".join(texts)
    return "\n".join([f"**{name or 'programs'}**\n", *[_item(row, short, results) for row, short in rows.items()]])


def _item(row, short, results):
    """What kernels say of one row, those that say the same together."""
    kernels = collections.defaultdict(list)
    for kernel, cells in results.items():
        if row in cells:
            kernels[cells[row].text].append(kernel)
    return _wrapped(f"{short}: " + "; ".join(f"{text} on {', '.join(each)}" for text, each in kernels.items()))


def _wrapped(text):
    return textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False)


def _skipped(results):
    """Why tests were skipped, and how many on which kernel."""
    reasons = collections.defaultdict(list)
    for kernel, cells in results.items():
        for cell in cells.values():
            for reason, count in cell.reasons.items():
                reasons[reason].append(f"{count} on {kernel}")
    return ["Skipped:\n\n" + "\n".join(_wrapped(f"{reason}: {', '.join(reasons[reason])}") for reason in sorted(reasons))] \
        if reasons else []


def write(results):
    """Puts the tables into the page."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(results)}\n\n{END}{after}")


def failures(results):
    """kernel, row, text of each."""
    return [(kernel, row, cell.failure) for kernel, cells in results.items() for row, cell in cells.items()
            if cell.failure]
