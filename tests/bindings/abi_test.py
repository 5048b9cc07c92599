#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The interface of libusdt-c as it is built: what it exports is what <usdt/usdtc.h> declares, and that header goes with
every compiler and with the headers of BPF programs. nm(1) and readelf(1) read the library.

Usage: abi_test.py LIBRARY
"""

import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "bindings/c/include/usdt/usdtc.h"
INCLUDES = [f"-I{ROOT / directory}" for directory in ("bindings/c/include", "provider/include", "bpf/include")]


def output_of(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def declared():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    return set(re.findall(r"\b(usdtc_\w+)\(", text))


def exported(library):
    """Names with their versions, of what is code or data."""
    listing = output_of("nm", "-D", "--defined-only", library)
    found = re.findall(r"^[0-9a-f]+ [^AU] (\S+)$", listing, re.MULTILINE)
    return {name.partition("@@")[0]: name.partition("@@")[2] for name in found}


def written_down():
    return set(re.findall(r"^\s+(usdtc_\w+);", (ROOT / "bindings/c/usdt-c.map").read_text(), re.MULTILINE))


def told_to_be_needed():
    """What docs/c-api.md says that it uses, as names of libraries."""
    text = " ".join((ROOT / "docs/c-api.md").read_text().split())
    sentence = re.search(r"The libraries that `libusdt` uses come from the distribution.*?: (.*?) \(`ldd", text)[1]
    names = set(re.findall(r"\blib[a-z]+", sentence))
    called = {"fmt": ["libfmt"], "Zydis": ["libZydis"] if platform.machine() == "x86_64" else [], "C++ runtime": ["libstdc++", "libgcc_s"]}
    return names | {name for word, of_it in called.items() if word in sentence for name in of_it}


def libraries(pattern, text):
    """Without what every C program has, and the sanitizers' own."""
    names = set(re.findall(pattern, text, re.MULTILINE))
    return {name for name in names if not re.fullmatch(r"lib(c|m|dl|pthread|rt|[a-z]+san)|ld-linux.*|linux-vdso", name)}


def wrong_needs(library):
    needed = libraries(r"NEEDED.*\[(.*?)\.so", output_of("readelf", "-dW", library))
    if any(name.startswith("libusdt") for name in needed):
        return []  # one of several, as the page says
    loaded = libraries(r"^\s*(\S+?)\.so", output_of("ldd", library))
    told = told_to_be_needed()
    return [f"{which}: {sorted(names)}" for which, names in (("needed, and docs/c-api.md does not say so", needed - told),
                                                             ("not loaded, as docs/c-api.md says", told - loaded)) if names]


def compiles(*argv, code):
    done = subprocess.run([*argv, "-fsyntax-only", *INCLUDES, "-"], input=code, text=True, capture_output=True)
    if done.returncode == 0 and not done.stderr:
        return True
    print(" ".join(argv), done.stderr, sep="\n")
    return False


def main():
    library = sys.argv[1]
    symbols = exported(library)
    mistakes = []
    if set(symbols) != declared():
        mistakes.append(f"exported and declared differ: {sorted(set(symbols) ^ declared())}")
    if written_down() != declared():
        mistakes.append(f"usdt-c.map and declared differ: {sorted(written_down() ^ declared())}")
    if set(symbols.values()) != {"USDT_C_0"}:
        mistakes.append(f"versions: {set(symbols.values())}")
    if "soname: [libusdt-c.so.0]" not in output_of("readelf", "-dW", library):
        mistakes.append("the soname is another one")
    mistakes += wrong_needs(library)
    strict = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow")
    alone = "#include <usdt/usdtc.h>\n"
    beside = alone + "#include <usdt/bpf/event.h>\n#include <usdt/bpf/constants.h>\n#include <usdt/probe.h>\n"
    for compiler in ("gcc", "clang"):
        if not compiles(compiler, "-std=c11", "-x", "c", *strict, code=alone):
            mistakes.append(f"{compiler} -std=c11")
        if not compiles(compiler, "-std=c++20", "-x", "c++", *strict, code=alone):
            mistakes.append(f"{compiler} -std=c++20")
        if not compiles(compiler, "-std=gnu11", "-x", "c", "-Wall", "-Werror", code=beside):
            mistakes.append(f"{compiler}, beside the headers shared with BPF programs")
    both = "#include <usdt/bpf/usdt.bpf.h>\n" + alone
    if not compiles("clang", "-target", "bpf", "-D__TARGET_ARCH_x86", "-I/usr/include/x86_64-linux-gnu", "-x", "c", "-O2",
                    "-Wall", code=both):
        mistakes.append("a BPF program that includes both")
    print("\n".join(mistakes) or f"{len(symbols)} functions, each declared and exported")
    return 1 if mistakes or len(symbols) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
