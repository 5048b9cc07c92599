# SPDX-License-Identifier: BSD-2-Clause
"""The outcome of a run: on the terminal, and as the table of docs/kernel-lab.md."""

import collections
import pathlib

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "kernel-lab.md"
BEGIN, END = "<!-- ./run vm writes from here -->", "<!-- to here -->"


def table(results):
    """Markdown; `results`: kernel's name -> {row: Cell}. A row named `TABLE: ROW` is in a table of its own."""
    tables = collections.defaultdict(dict)
    for row in (row for cells in results.values() for row in cells):
        name, _, short = row.rpartition(": ")
        tables[name][row] = short
    parts = []
    for name, rows in sorted(tables.items(), key=lambda each: each[0] != ""):
        lines = [[name, *results], ["---"] * (len(results) + 1)]
        for row, short in rows.items():
            lines.append([short, *[cells[row].text if row in cells else "–" for cells in results.values()]])
        parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
    return "\n\n".join(parts + _skipped(results))


def _skipped(results):
    """Why tests were skipped, and how many on which kernel."""
    reasons = collections.defaultdict(list)
    for kernel, cells in results.items():
        for cell in cells.values():
            for reason, count in cell.reasons.items():
                reasons[reason].append(f"{count} on {kernel}")
    return ["Skipped:\n\n" + "\n".join(f"- {reason}: {', '.join(reasons[reason])}" for reason in sorted(reasons))] \
        if reasons else []


def write(results):
    """Puts the table into the page."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(results)}\n\n{END}{after}")


def failures(results):
    """kernel, row, text of each."""
    return [(kernel, row, cell.failure) for kernel, cells in results.items() for row, cell in cells.items()
            if cell.failure]
