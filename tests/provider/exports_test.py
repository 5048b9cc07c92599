#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""libusdt-provider.so as its users' linkers and loaders see it: what it exports is what its header declares.

Usage: exports_test.py LIBRARY SOURCE_DIR
"""

import pathlib
import re
import subprocess
import sys


def output_of(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def main():
    library, source = sys.argv[1], pathlib.Path(sys.argv[2])
    header = re.sub(r"/\*.*?\*/|^#.*?(?<!\\)$", "", (source / "provider/include/usdt/provider.h").read_text(), flags=re.S | re.M)
    declared = set(re.findall(r"\b(usdtp_\w+)\([^()]*\);", header))
    symbols = [line.split() for line in output_of("nm", "-D", "--defined-only", library).splitlines()]
    exported = {name.split("@")[0] for _, kind, name in symbols if kind == "T"}
    others = {name.split("@")[0] for _, kind, name in symbols if kind not in "TA"} - {"otel_thread_ctx_v1"}
    dynamic = output_of("readelf", "-dW", library)
    segments = output_of("readelf", "-lW", library)
    mistakes = [text for wrong, text in [
        (len(declared) < 9, f"only {declared} were found in the header"),
        (exported != declared, f"exported {sorted(exported)}, declared {sorted(declared)}"),
        (others, f"not functions: {sorted(others)}"),
        (" otel_thread_ctx_v1" not in output_of("readelf", "--dyn-syms", "-W", library), "no variable of threads"),
        ("Library soname: [libusdt-provider.so.1]" not in dynamic, "another soname"),
        (set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)) - {"libc.so.6", "ld-linux-x86-64.so.2"}, "needs more than libc"),
        ("NODELETE" not in dynamic, "could be unloaded while threads are in it"),
        (re.search(r"GNU_STACK.* RWE ", segments), "wants a stack that can be executed"),
        (not all(name.endswith("@@USDTP_1.0") for _, kind, name in symbols if kind == "T"), "symbols without a version"),
    ] if wrong]
    print("\n".join(mistakes) or f"{len(exported)} functions, each in the header\n{dynamic.count('NEEDED')} library needed")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
