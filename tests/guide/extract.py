#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the code blocks of a page into files, with the page's own line numbers, and prints their names separated by `;`.

Usage: extract.py PAGE DIRECTORY     ```cpp blocks: PAGE_N.cpp; ```c blocks: the name in the page's usdt_add_bpf()
"""

import pathlib
import re
import sys


def main():
    page, directory = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    text = page.read_text()
    bpf = re.search(r"usdt_add_bpf\(\w+ (\S+\.bpf\.c)\)", text)
    written = []
    for number, block in enumerate(re.finditer(r"^```(cpp|c)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
        name = bpf[1] if block[1] == "c" else f"{page.stem}_{number}.cpp"
        code = f'#line {text[: block.start(2)].count(chr(10)) + 1} "{page}"\n{block[2]}'
        path = directory / name
        if not path.exists() or path.read_text() != code:  # or everything would be compiled again
            path.write_text(code)
        written.append(str(path))
    print(";".join(written))


if __name__ == "__main__":
    main()
