# SPDX-License-Identifier: BSD-2-Clause
"""From the argument texts of real probes to a program that fires every one of them with known values.

What an operand means comes from the corpus' reference decode, and how wide it is in an attach cookie from the table in
usdt/bpf/cookie.h; nothing here comes from the code under test.
"""

import json
import os
import pathlib

import sitegen
from harness import Skip

COOKIE_BITS, COOKIE_ARGS = 58, 7


def _reference():
    directory = os.environ.get("USDT_CORPUS", pathlib.Path(__file__).resolve().parents[3] / "shared" / "corpus")
    path = pathlib.Path(directory) / "decode-dev.jsonl"
    if not path.exists():
        raise Skip("no corpus of real probes (set USDT_CORPUS)")
    return [json.loads(line) for line in path.read_text().splitlines()]


def shapes(i386):
    """The distinct argument texts of the machine, decoded."""
    return [row for row in _reference() if row["arch"] == ("i386" if i386 else "amd64")]


def can_be_generated(row):
    """Whether every operand is registers, constants, and memory by registers and symbols."""
    return all(_is_plain(arg) for arg in row["decoded"])


def _is_plain(arg):
    if arg["kind"] == "reg":
        return arg["class"] == "gpr"
    if arg["kind"] == "const":
        return True
    symbolic = arg["symbol"] is not None
    return arg["segment"] is None and arg["reloc"] in (None, "GOTOFF") and (arg["base"] is not None or symbolic)


def symbols(rows):
    """The global variables the operands name."""
    return sorted({arg["symbol"] for row in rows for arg in row["decoded"] if arg.get("symbol")})


def _signed_fits(number, bits):
    return -(1 << bits - 1) <= number < 1 << bits - 1


def _cookie_width(arg):
    """Bits of one argument in a packed cookie of x86, by the table of cookie.h; None: there is no form. The linker
    decides how far symbols are from the global offset table: less than 2^17 bytes here."""
    if "reg-pair" in arg["needs"]:
        return None
    if arg["kind"] == "reg":
        return 14 if arg["shift"] == 8 or arg["float"] else 8
    if arg["kind"] == "const":
        bits = arg["typed"] & (1 << 8 * arg["size"]) - 1
        number = bits - (1 << 8 * arg["size"]) if bits >> 8 * arg["size"] - 1 else bits
        return 17 if _signed_fits(number, 10) else 42 if _signed_fits(number, 32) else None
    if arg["index"] is not None:
        return 32 if _signed_fits(arg["disp"], 12) and not arg["float"] else None
    if arg["symbol"]:
        return 42 if arg["pcrel"] else 28
    if arg["float"]:
        return 32 if _signed_fits(arg["disp"], 18) else None
    return 19 if _signed_fits(arg["disp"], 10) else 28 if _signed_fits(arg["disp"], 18) else None


def fits_cookie(row, site_bits):
    widths = [_cookie_width(arg) for arg in row["decoded"]]
    return len(widths) <= COOKIE_ARGS and None not in widths and sum(widths) + site_bits <= COOKIE_BITS


def _registers_for(row, memory, i386):
    """Bases point into the buffer, each elsewhere; index registers and upper halves of pairs are small."""
    chosen = {}
    for number, name in enumerate(sitegen.registers(i386)):
        for arg in row["decoded"]:
            if arg["kind"] == "mem" and arg["index"] == name:
                chosen[name] = 0x18 + 8 * number
            elif arg["kind"] == "mem" and arg["base"] == name and name not in chosen:
                chosen[name] = sitegen.GOT if arg["reloc"] else memory.address + 0x2000 + number * 0x2100 + 0x18
            elif arg.get("pair_high") == name and name not in chosen:
                chosen[name] = 0x01020304 + number
    return chosen


def _expectation(arg, values, memory):
    signed, size = arg["signed"] and not arg["float"], arg["size"]
    if arg["kind"] == "const":
        return sitegen.log_value(arg["typed"], size, signed)
    if arg["kind"] == "reg":
        high = values[arg["pair_high"]] << 32 if arg.get("pair_high") else 0
        return sitegen.log_value(high | values[arg["canon"]] >> arg["shift"], size, signed, arg["float"])
    if arg["symbol"]:
        held = sitegen.symbol_bytes(arg["symbol"])[arg["disp"]:arg["disp"] + size]
        return sitegen.log_value(int.from_bytes(held, "little"), size, signed, arg["float"])
    index = values[arg["index"]] * arg["scale"] if arg["index"] else 0
    address = values[arg["base"]] + index + arg["disp"]
    return sitegen.log_value(memory.read(address, size), size, signed, arg["float"])


def sites(rows, i386):
    """A site for each text; provider `short` where it fits a cookie beside the number of its site, else `long`."""
    memory = sitegen.Memory(i386)
    site_bits = (len(rows) - 1).bit_length()
    made = []
    for number, row in enumerate(rows):
        registers = _registers_for(row, memory, i386)
        values = {**sitegen.default_values(i386), **registers}
        expect = tuple(_expectation(arg, values, memory) for arg in row["decoded"])
        provider = "short" if fits_cookie(row, site_bits) else "long"
        made.append(sitegen.Site(provider, f"s{number}", row["args"], expect, registers))
    return made
