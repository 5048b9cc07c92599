#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The examples in Python and JavaScript: a shop with spans, and who watches it. What the one says it sold and the other saw of it
is the same.

Usage: shop_test.py python|node INTERPRETER    exit code 77: skipped
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORDERS = 90
FAILED = ORDERS // 9  # each ninth wants more than there is


def environment_of(language):
    """The package as the tree has it; the libraries are named by the caller's environment."""
    key, path = ("PYTHONPATH", ROOT / "bindings/python") if language == "python" else ("NODE_PATH", os.environ["USDT_NODE_MODULES"])
    return {**os.environ, key: str(path), "PYTHONDONTWRITEBYTECODE": "1"}


def main():
    language, interpreter = sys.argv[1:]
    if os.geteuid() != 0:
        print("SKIP needs root (attaching uprobes)")
        return 77
    ending = {"python": "py", "node": "js"}[language]
    options = {"text": True, "stdout": subprocess.PIPE, "env": environment_of(language)}
    shop = subprocess.Popen([interpreter, ROOT / f"examples/{language}/shop.{ending}", str(ORDERS)], stdin=subprocess.PIPE, **options)
    watch = None
    try:
        pid = re.match(r"pid (\d+)", shop.stdout.readline())[1]
        watch = subprocess.Popen([interpreter, ROOT / f"examples/{language}/watch.{ending}", pid, "shop"], **options)
        assert watch.stdout.readline() == "watching\n"
        said = shop.communicate("\n", timeout=60)[0]
        shown = watch.communicate(timeout=60)[0].splitlines()
    finally:
        for process in filter(None, (shop, watch)):
            process.kill()
            process.wait()
    assert said == f"{ORDERS - FAILED} orders sold, {FAILED} failed\n", said
    assert shown.pop() == f"{3 * ORDERS} spans, {2 * FAILED} failed; 0 hits lost"
    # An order, and within it its payment and its packing, of which one may fail both.
    line = r"{} \d+\.\d\d ms{}"
    whole = [line.format("order", ""), "  " + line.format("pay", ""), "  " + line.format("pack", "")]
    failed = [line.format("order", " failed"), "  " + line.format("pay", ""), "  " + line.format("pack", " failed")]
    groups = ["\n".join(shown[n:n + 3]) for n in range(0, len(shown), 3)]
    sold = sum(re.fullmatch("\n".join(whole), group) is not None for group in groups)
    lacking = sum(re.fullmatch("\n".join(failed), group) is not None for group in groups)
    assert (len(groups), sold, lacking) == (ORDERS, ORDERS - FAILED, FAILED), shown[:6]
    print(f"{ORDERS} orders of {language} at once, each seen with its parts; {FAILED} that failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
