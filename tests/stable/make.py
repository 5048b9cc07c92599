#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes what later versions must read: recordings and question files of this version, with the answers that it gives.

Usage: make.py VERSION --tool usdt-trace    (as root, once, when a version is released: docs/development.md)

The directory VERSION gets NAME.rec, NAME.json: what `--replay NAME.rec -f json` prints, and for each file of questions
NAME.QUESTIONS.toml what it answers about NAME.rec. They are made of what is here: shop.cpp, and questions/. Whatever
the format of recordings has, and whatever can be asked, has to be in them.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

PROBES = "usdt:{at}/shop:shop:*"
SELL = "ucall:{at}/shop:sell"
RECORDINGS = {
    "events": [PROBES, "--print", "shop:odd=arg0, arg1, str(arg2), uid, ppid", "--print", "shop:end=arg0, hex(arg1), comm",
               "--where", "pid != 1", "--", "{at}/shop", "12"],
    "functions": [SELL, "uretprobe:{at}/shop:wrap", "--ustack=12", "--print", "ucall:{at}/shop:sell=order->state, order->to->city, items, "
                  "discount, gift, retval, ustack", "--", "{at}/shop", "8"],
    "contexts": ["usdt:{at}/shop:shop:paid", "--trace-context", "--", "{at}/shop", "9"],
    "attributes": ["usdt:{at}/shop:shop:paid", "--trace-attributes", "--", "{at}/shop", "12", "{at}/liblate.so"],
    "frames": ["usdt:{at}/shop:shop:paid", "--ustack=fp,6", "--print", "cents", "--", "{at}/shop", "4"],
    "spans": ["usdt:{at}/shop:shop:begin ~~ shop:end", "--pair-by", "arg0", "--", "{at}/shop", "10"],
    "i386": ["usdt:{at}/shop32:shop:*", "--", "{at}/shop32", "6"],
    "kernel": ["raw_tp:sys_enter", "--kstack=6", "--print", "id, kstack", "--max-events", "20", "--", "{at}/shop", "2"],
    "followed": ["late:hit", "usdt:{at}/shop:shop:paid", "--string-size", "20", "--", "sh", "-c",
                 "{at}/shop 40 {at}/liblate.so & sleep 0.5; cp {at}/liblate.so {at}/new; mv {at}/new {at}/liblate.so; wait"],
    "longer": ["late:own", "shop:paid", "--hold-exec", "--", "{at}/later"],  # it is told to run shop, which has texts
    "sampled": [PROBES, "--sample", "1/2", "--max-rate", "1000/s", "--last", "30s", "--string-size", "16",
                "--", "{at}/shop", "60"],
}
# Of all definitions that the format has.
TAGS = {int(tag) for tag in re.findall(r"^  \w+ = (\d+),", (ROOT / "sdk/src/record/definition_tags.hpp").read_text(), re.M)}


def build(at):
    flags = ["-std=c++20", "-O1", "-g", f"-I{ROOT}/provider/include", shutil.copy(HERE / "shop.cpp", at)]
    late = ROOT / "tests/live/later_library.c"
    for argv in (["g++", *flags, "-o", at / "shop"], ["g++", "-m32", "-idirafter", "/usr/include/x86_64-linux-gnu", *flags, "-o", at / "shop32"],
                 ["gcc", "-shared", "-fPIC", "-O1", late, "-o", at / "liblate.so"],
                 ["gcc", "-O1", ROOT / "tests/live/later.c", "-o", at / "later"],
                 ["gcc", "-shared", "-fPIC", "-O1", HERE / "plain_uname.c", "-o", at / "plain_uname.so"]):
        subprocess.run(argv, check=True)


def definitions(recording):
    """The tags of all definitions of a recording."""
    found, data, at = set(), recording.read_bytes(), 16
    while at + 40 <= len(data):
        kind, packing, size, unpacked = data[at + 4], data[at + 5], *struct.unpack_from("<II", data, at + 8)
        content = data[at + 40:at + 40 + size]
        if packing == 1:
            content = subprocess.run(["zstd", "-dcq"], input=content, stdout=subprocess.PIPE, check=True).stdout
        at += 40 + size
        place = 0
        while kind == 1 and place < unpacked:
            found.add(content[place])
            length = shift = 0
            while True:
                place += 1
                length |= (content[place] & 127) << shift
                shift += 7
                if content[place] < 128:
                    break
            place += 1 + length
    return found


def answer(tool, recording, *words):
    done = subprocess.run([tool, "--replay", recording, "-f", "json", *words], capture_output=True, text=True, errors="surrogateescape")
    if done.returncode > 1:
        sys.exit(f"{recording.name} {words}: {done.returncode}\n{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version")
    parser.add_argument("--tool", required=True, type=lambda word: pathlib.Path(shutil.which(word)).resolve())
    options = parser.parse_args()
    out = HERE / options.version
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    at = pathlib.Path("/tmp/stable")  # it is in the recordings
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir()
    build(at)
    for name, words in RECORDINGS.items():
        done = subprocess.run([options.tool, "--record", out / f"{name}.rec", *(word.format(at=at) for word in words)],
                              input=f"run 2 {at}/shop\n", capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": at / "plain_uname.so"})
        print(f"{name}: {done.stderr.splitlines()[-1]}")
        if done.returncode != 0:
            sys.exit(done.stderr)
    shutil.rmtree(at)
    missing = TAGS - set().union(*(definitions(file) for file in out.glob("*.rec")))
    (out / "cut.rec").write_bytes((out / "events.rec").read_bytes()[:-60])
    for file in sorted((HERE / "questions").glob("*.toml")):
        shutil.copy(file, out / file.name)
    for file in sorted(out.iterdir()):
        if file.suffix == ".rec":
            file.with_suffix(".json").write_text(answer(options.tool, file), errors="surrogateescape")
        elif file.suffix == ".toml":
            recording = out / (file.name.split(".")[0] + ".rec")
            file.with_suffix(".json").write_text(answer(options.tool, recording, "--script", file), errors="surrogateescape")
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(out.iterdir())]
    (out / "SHA256SUMS").write_text("".join(sums))
    print("tags of definitions that no recording has:", sorted(missing) or "none")


if __name__ == "__main__":
    main()
