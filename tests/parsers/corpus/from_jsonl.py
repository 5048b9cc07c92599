#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the golden pairs x86_64.txt, i386.txt, aarch64.txt from a decode reference: from_jsonl.py decode-dev.jsonl"""
import json
import pathlib
import sys

FILES = {"amd64": "x86_64.txt", "i386": "i386.txt", "arm64": "aarch64.txt"}


def describe(arg):
    letter = "f" if arg["float"] else "s" if arg["signed"] else "u"
    line = letter + str(arg["size"]) + " " + arg["kind"]
    if arg["kind"] == "const":
        return f"{line} {arg['value']}"
    if arg["kind"] == "reg":
        return f"{line} {arg['reg']}"
    fields = [
        ("base", arg["base_text"], None),
        ("index", arg["index_text"], None),
        ("scale", arg["scale"], 1),
        ("disp", arg["disp"], 0),
        ("symbol", arg["symbol"], None),
        ("reloc", arg["reloc"], None),
        ("segment", arg["segment"], None),
        ("extend", arg["extend"], None),
        ("amount", arg["amount"], 0),
        ("writeback", arg["writeback"], None),
    ]
    return line + "".join(f" {key}={value}" for key, value, default in fields if value != default)


def main(path):
    out = {arch: [] for arch in FILES}
    for line in pathlib.Path(path).read_text().splitlines():
        row = json.loads(line)
        if row["decoded"]:
            out[row["arch"]] += [row["args"], *("  " + describe(arg) for arg in row["decoded"])]
    for arch, lines in out.items():
        head = "# Real argument texts of Debian packages and what they mean; written by from_jsonl.py.\n"
        (pathlib.Path(__file__).parent / FILES[arch]).write_text(head + "\n".join(lines) + "\n")


main(sys.argv[1])
