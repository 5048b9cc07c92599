#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what a shared library exports with the public headers, both ways, and the whole public surface with the list of
it in docs/results/api.txt, so that a review sees what changes. nm(1) reads the library.

Usage: exports.py LIBRARY BUILD_DIR SOURCE_DIR [--write]     BUILD_DIR has the archives it was linked from; --write: writes
                                                             that list
"""

import difflib
import pathlib
import re
import subprocess
import sys

LIST = "docs/results/api.txt"
# What the C++ library spells out, as people write it.
SPELLINGS = [("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"),
             ("std::basic_string_view<char, std::char_traits<char> >", "std::string_view"), ("usdt::v1::", "usdt::"),
             ("std::chrono::duration<long, std::ratio<1l, 1000l> >", "std::chrono::milliseconds")]
ALLOCATOR = ", std::allocator<"


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


def without_allocators(symbol):
    """std::vector<T, std::allocator<T> > as std::vector<T>."""
    while ALLOCATOR in symbol:
        start = symbol.index(ALLOCATOR)
        end, depth = start + len(ALLOCATOR), 1
        while depth > 0:
            depth += {"<": 1, ">": -1}.get(symbol[end], 0)
            end += 1
        symbol = symbol[:start] + symbol[end:].lstrip(" ")
    return symbol


def signature_of(symbol):
    for long, short in SPELLINGS:
        symbol = symbol.replace(long, short)
    return without_allocators(symbol).replace("> >", ">>")


def surface(library, source):
    """Lines of the list: what users of each language can name."""
    names_of_cpp = sorted({signature_of(symbol) for symbol in defined_symbols(library, "TWVBDRi", "-D") if name_of(symbol)})
    header = re.sub(r"/\*.*?\*/", "", (source / "bindings/c/include/usdt/usdtc.h").read_text(), flags=re.DOTALL)
    names_of_c = sorted(set(re.findall(r"\b(usdtc_\w+)\(", header)))
    package = re.search(r"__all__ = \[(.*?)\]", (source / "bindings/python/usdt/__init__.py").read_text(), re.DOTALL)[1]
    module = re.search(r"module\.exports = \{(.*?)\}", (source / "bindings/node/index.js").read_text(), re.DOTALL)[1]
    bpf = (source / "bpf/include/usdt/bpf/usdt.bpf.h").read_text()
    return ["The public surface, made by tests/consumer/exports.py --write. A change of it is a change for users.",
            "", "== C++: libusdt", *names_of_cpp, "", "== C: libusdt-c", *names_of_c,
            "", "== Python: usdt", *sorted(re.findall(r"\w+", package)), "", "== JavaScript: usdt", *sorted(re.findall(r"\w+", module)),
            "", "== BPF: usdt/bpf/usdt.bpf.h", *sorted(set(re.findall(r"^(?:static|SEC)?.*?\b(bpf_usdt_\w+|usdt_\w+)\(", bpf, re.MULTILINE)))]


def is_built_by(library, compiler):
    comment = subprocess.run(["readelf", "-p", ".comment", library], check=True, capture_output=True, text=True).stdout
    return re.search(compiler, comment) is not None


def check_list(library, source, write):
    """How the surface differs from the list, which is of GCC 12: compilers differ in which special members they inline."""
    now = surface(library, source)
    file = source / LIST
    if write:
        file.write_text("\n".join(now) + "\n")
    written = file.read_text().splitlines() if file.exists() else []
    if not is_built_by(library, r"GCC: \([^)]*\) 12\."):
        now, written = ([line for line in lines if not re.match(r"usdt::(\w+)::~?\1\(", line)] for lines in (now, written))
    return [line for line in difflib.unified_diff(written, now, LIST, "what is built", lineterm="", n=0)]


def main():
    library, build, source = (pathlib.Path(argument) for argument in sys.argv[1:4])
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
    changes = check_list(library, source, "--write" in sys.argv[4:])
    if changes:
        print("\n".join([*changes, f"the public surface is not that of {LIST}: exports.py --write writes it"]))
    return 1 if mistakes or changes or len(exported) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
