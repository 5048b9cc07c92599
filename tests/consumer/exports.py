#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what a shared library exports with the public headers, both ways. nm(1) reads the library.

Usage: exports.py LIBRARY BUILD_DIR SOURCE_DIR     BUILD_DIR has the archives it was linked from
"""

import pathlib
import re
import subprocess
import sys


def defined_symbols(file, kinds, *options):
    """Demangled names of what `file` defines for others, of the kinds nm has letters for; without versions and ABI tags."""
    listing = subprocess.run(["nm", "-C", "--defined-only", *options, file], check=True, capture_output=True, text=True)
    for line in listing.stdout.splitlines():
        found = re.match(r"[0-9a-f]+ (\w) (.*)", line)
        if found and found[1] in kinds:
            yield re.sub(r"\[abi:\w+\]|@@.*", "", found[2])


def name_of(symbol):
    """`Class::function` or `function` of the inline namespace; None for what is not declared by its name in a header."""
    found = re.match(r"usdt::v1::((?:[A-Z]\w*::)?(?:~?\w+|operator=))(?:\(|$)", symbol)
    return found[1] if found else None


def declared(name, headers):
    """Whether a public header has the class, or the function."""
    class_name, _, function = name.rpartition("::")
    if class_name:
        return re.search(rf"^(class|struct) {class_name}\b[^;]*{{", headers, re.MULTILINE) is not None
    return re.search(rf"\b{function}\(", headers) is not None


def main():
    library, build, source = (pathlib.Path(argument) for argument in sys.argv[1:])
    headers = "\n".join(re.sub(r"//.*", "", path.read_text()) for path in (source / "sdk/include").rglob("*.hpp"))
    mistakes = []
    exported = set()
    for symbol in defined_symbols(library, "TWVBDRuvi", "-D"):
        name = name_of(symbol)
        if name is None or not declared(name, headers):
            mistakes.append(f"exported, but in no public header: {symbol}")
        exported.add(name)
    for archive in sorted(build.rglob("libusdt_*.a")):
        # What is inline or constant is in the headers themselves.
        for name in {name_of(symbol) for symbol in defined_symbols(archive, "T", "-g")} - exported - {None}:
            if declared(name, headers):
                mistakes.append(f"in a public header, but not exported (sdk/usdt.map): {name}")
    print("\n".join(sorted(mistakes)) or f"{len(exported)} names, each in a public header")
    return 1 if mistakes or len(exported) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
