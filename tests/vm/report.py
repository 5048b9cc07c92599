# SPDX-License-Identifier: BSD-2-Clause
"""The outcome of a run: on the terminal, and as the table of docs/kernel-lab.md."""

import pathlib

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "kernel-lab.md"
BEGIN, END = "<!-- ./run vm writes from here -->", "<!-- to here -->"


def table(results):
    """Markdown; `results`: kernel's name -> {row: Cell}."""
    rows = list(dict.fromkeys(row for cells in results.values() for row in cells))
    lines = [["", *results], ["---"] * (len(results) + 1)]
    for row in rows:
        lines.append([row, *[cells[row].text if row in cells else "–" for cells in results.values()]])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    reasons = sorted({f"{kernel}, {row}: {reason}" for kernel, cells in results.items() for row, cell in cells.items()
                      for reason in cell.reasons})
    if reasons:
        text += "\n\nSkipped:\n\n" + "\n".join(f"- {reason}" for reason in reasons)
    return text


def write(results):
    """Puts the table into the page."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(results)}\n\n{END}{after}")


def failures(results):
    """kernel, row, text of each."""
    return [(kernel, row, cell.failure) for kernel, cells in results.items() for row, cell in cells.items()
            if cell.failure]
