#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names of functions of Go programs without symbols."""

import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import LONG, check, check_equal, main, require_root, scenario  # noqa: E402
from hits_support import hits_seen  # noqa: E402

GO = [go for go in os.environ.get("USDT_GO", "go:/usr/lib/go-1.19/bin/go").split(":") if shutil.which(go)][:2]

STRIPPED_GO = """package main
import "fmt"
type host struct{ id int }
//go:noinline
func work(n int) int { return n * 2 }
//go:noinline
func (h *host) give(n int) int { return h.id + n }
//go:noinline
func key[K comparable, V any](m map[K]V, k K) V { return m[k] }
func main() {
	h := &host{3}
	sum := 0
	for i := 0; i < 5; i++ { sum += work(i); sum += h.give(i); sum += key(map[string]int{"k": i}, "k") }
	fmt.Println(sum)
}
"""


def damaged_tables(program, generator):
    """The program with bytes of its table of functions changed."""
    sections = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    line = next(line for line in sections.splitlines() if "gopclntab" in line)
    offset, size = (int(word, 16) for word in line.split("gopclntab")[1].split()[2:4])
    whole = program.read_bytes()
    for _ in range(200 if LONG else 25):
        changed = bytearray(whole)
        for _ in range(generator.choice((1, 2, 8))):
            at = offset + (generator.randrange(72) if generator.random() < 0.7 else generator.randrange(size))
            changed[at] = generator.choice((0, 0xff, generator.randrange(256)))
        yield bytes(changed)


@scenario
def functions_of_a_go_program_without_symbols_have_the_names_of_its_runtime(run):
    require_root()
    for go in GO:
        directory = run.dir / f"go{GO.index(go)}"
        directory.mkdir()
        (directory / "main.go").write_text(STRIPPED_GO)
        (directory / "go.mod").write_text("module work\ngo 1.18\n")
        environment = {**os.environ, "GOCACHE": str(run.dir / "cache"), "HOME": str(run.dir), "GOFLAGS": "-mod=mod"}
        for mode in ("exe", "pie"):
            program = directory / mode
            made = subprocess.run([go, "build", f"-buildmode={mode}", "-ldflags=-s -w", "-o", str(program), "."], cwd=directory,
                                  env=environment, capture_output=True, text=True)
            check(made.returncode == 0, made.stderr)
            seen, notices = hits_seen(run, program, ["main.work", "main.(*host).give", "main.key*"])
            check_equal(sum(hits for name, hits in seen.items() if "work" in name), 5, f"{go} {mode} {seen} {notices}")
            check_equal(sum(seen.values()), 15, f"{go} {mode} {seen} {notices}")
            result = run.trace(f"uprobe:{program}:main.nothing", command=[str(program)])
            check("exports no function" not in result.stderr, result.stderr)
        hurt = directory / "hurt"
        for changed in damaged_tables(directory / "exe", random.Random(1)):
            hurt.write_bytes(changed)
            listed = subprocess.run([run.tool.parent / "usdt-list", f"uprobe:{hurt}:main.*"], capture_output=True, timeout=20)
            check(listed.returncode in (0, 1, 2), f"{go}: exit {listed.returncode}")


if __name__ == "__main__":
    main()
