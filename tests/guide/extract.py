#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the C and C++ blocks of pages into files, with the pages' own line numbers, and prints their names separated by `;`.

Usage: extract.py DIRECTORY PAGE...

The files of a page are in a folder of DIRECTORY with the page's name. A ```cpp block becomes PAGE_N.cpp, a ```c block the BPF program of the page's usdt_add_bpf(), or PAGE_N.c where there is none; N
counts both. A block that is no whole source has a frame, frames/PAGE_N.cpp, .c or .bpf.c, in which it takes the place of the
comment "BLOCK", and the frame's name.
"""

import pathlib
import re
import sys

FRAMES = pathlib.Path(__file__).resolve().parent / "frames"
PLACE = re.compile(r"^ *(// BLOCK|/\* BLOCK \*/)\n", re.MULTILINE)


def frame_of(stem):
    """The name and the text of the source that a block becomes by its frame; None: there is none."""
    found = [path for suffix in (".cpp", ".c", ".bpf.c") if (path := FRAMES / f"{stem}{suffix}").exists()]
    return (found[0].name, found[0].read_text()) if found else None


def extract(page, directory):
    """The files of one page, each written if it is not there as it should be, or everything would be compiled again."""
    text = page.read_text()
    bpf = re.search(r"usdt_add_bpf\(\w+ (\S+\.bpf\.c)\)", text)
    directory.mkdir(parents=True, exist_ok=True)
    for number, block in enumerate(re.finditer(r"^```(cpp|c)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
        stem = f"{page.stem}_{number}"
        name = bpf[1] if bpf and block[1] == "c" else f"{stem}.{block[1]}"
        name, frame = frame_of(stem) or (name, "// BLOCK\n")
        line = text[: block.start(2)].count("\n") + 1
        code = PLACE.sub(lambda _: f'#line {line} "{page}"\n{block[2]}', frame)
        path = directory / name
        if not path.exists() or path.read_text() != code:
            path.write_text(code)
        yield str(path)


def main():
    directory, pages = pathlib.Path(sys.argv[1]), map(pathlib.Path, sys.argv[2:])
    print(";".join(path for page in pages for path in extract(page, directory / page.stem)))


if __name__ == "__main__":
    main()
