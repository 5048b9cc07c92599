#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Flame graphs, as a person sees them in a browser: as wide as the traced program says, with search, zoom, keys and
comparison, in both themes, without the network."""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from browser import Page  # noqa: E402
from harness import AT_ONCE, check, check_equal, main, require_root, scenario  # noqa: E402

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
__attribute__((noipa)) int leaf(int n) { DTRACE_PROBE1(flame, hit, n); return n + 1; }
__attribute__((noipa)) int left(int n) { return leaf(n) + 1; }
__attribute__((noipa)) int right(int n) { return leaf(n) + leaf(n + 1); }
__attribute__((noipa)) int evil(int n) { return leaf(n) + 2; }
int main(int argc, char **argv) {
  int times = atoi(argv[1]), sum = 0;
  for (int i = 0; i < times; i++) sum += left(i) + right(i) + (i % 4 == 0 ? evil(i) : 0);
  printf("left %d\nright %d\nevil %d\n", times, 2 * times, (times + 3) / 4);
  return argc == 0 ? sum : 0;
}
"""

EVIL = "evil</script><script>alert(1)</script>"  # a name that a symbol may have


def build(run):
    require_root()
    (run.dir / "flame.c").write_text(PROGRAM)
    program = run.build("flame", [run.dir / "flame.c"], ["-O0"])  # all functions keep frame pointers
    subprocess.run(["objcopy", f"--redefine-sym=evil={EVIL}", program], check=True)
    return program


def trace(run, program, file, times, *words):
    """Hits by the function around the leaf, as the program says them."""
    done = subprocess.run([run.tool, f"usdt:{program}:flame:hit", *words, *AT_ONCE, "--export", f"flame={file}", "--", program, str(times)],
                          capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    said = dict(line.split() for line in done.stdout.splitlines() if line.split()[0] in ("left", "right", "evil"))
    return {name: int(count) for name, count in said.items()}


# Where a frame is drawn, in pixels of the page.
BOX = """(name => {
  const box = flame.drawn.find(b => b.node.name.startsWith(name)), edge = document.getElementById('graph').getBoundingClientRect();
  return box ? {x: edge.left + box.x + box.width / 2, y: edge.top + (box.node.depth + 0.5) * flame.rowHeight, width: box.width,
                total: box.node.total} : null;
})(%r)"""


def totals(page):
    return {name: (page.value(BOX % name) or {}).get("total") for name in ("left", "right", "evil")}


@scenario
def frames_are_as_wide_as_the_program_says(run):
    program = build(run)
    for number, words in enumerate((["--by", "ustack"], ["--ustack"])):
        file = run.dir / f"graph{number}.html"
        said = trace(run, program, file, 40, *words)
        page = Page(file)
        check_equal(totals(page), said, f"hits by function, {words}")
        check_equal(page.value("flame.root.total"), sum(said.values()), "all")
        whole = page.value("document.getElementById('graph').clientWidth")
        check(abs(page.value(BOX % "right")["width"] - whole * said["right"] / sum(said.values())) < 1, "its width")
        page.close()


@scenario
def search_zoom_hover_and_keys_work(run):
    program = build(run)
    file = run.dir / "graph.html"
    said = trace(run, program, file, 40, "--by", "ustack")
    page = Page(file)
    page.press("/")
    page.type("^right")
    check(page.value("document.getElementById('where').textContent").startswith(f"1 frames match: {said['right']} hits"),
          "what search finds")
    page.press("Escape")
    check_equal(page.value("flame.matches"), None, "no search any more")
    place = page.value(BOX % "right")
    page.mouse("mouseMoved", place["x"], place["y"])
    check(page.value("document.getElementById('tip').textContent").startswith("right: 80 hits"), "the tip")
    page.click(place["x"], place["y"])
    check(abs(page.value(BOX % "right")["width"] - page.value("document.getElementById('graph').clientWidth")) < 1, "zoomed")
    check_equal(page.value(BOX % "left"), None, "what is beside it is away")
    page.press("Escape")
    check(page.value(BOX % "left") is not None, "all of it again")
    for key in ("ArrowDown", "ArrowDown"):
        page.press(key)
    check_equal(page.value("flame.chosen.depth"), 2, "two frames down")
    page.press("Enter")
    check_equal(page.value("flame.zoomed === flame.chosen && flame.zoomed !== flame.root"), True, "zoomed by a key")
    page.close()


@scenario
def another_graph_is_compared(run):
    program = build(run)
    before, after = run.dir / "before.html", run.dir / "after.html"
    trace(run, program, before, 10, "--by", "ustack")
    trace(run, program, after, 40, "--by", "ustack")
    folded = run.dir / "before.folded"
    subprocess.run([run.tool, f"usdt:{program}:flame:hit", "--by", "ustack", "--export", f"folded={folded}", "--", program, "10"],
                   capture_output=True, check=True, timeout=60)
    for other in (before, folded):
        page = Page(after)
        page.value(f"compareWith(read({json.dumps(other.read_text())}))")
        check_equal(page.value("flame.drawn.find(b => b.node.name === 'right').node.before"), 20, "hits before")
        check_equal(page.value("flame.before"), 33, "all hits before")
        page.close()


@scenario
def a_recording_gives_what_the_trace_gave(run):
    program = build(run)
    recording, live, again = run.dir / "out.usdtrec", run.dir / "live.folded", run.dir / "again.folded"
    subprocess.run([run.tool, f"usdt:{program}:flame:hit", "--ustack", "--record", recording, "--export", f"folded={live}",
                    "--", program, "40"], capture_output=True, check=True, timeout=60)
    for words in ([], ["--by", "ustack"]):
        subprocess.run([run.tool, "--replay", recording, *words, "--export", f"folded={again}"], capture_output=True, check=True,
                       timeout=60)
        check_equal(again.read_text(), live.read_text(), f"stacks, {words}")
    check_equal(sum(int(line.rpartition(" ")[2]) for line in live.read_text().splitlines()), 130, "hits")


@scenario
def both_themes_and_all_widths_show_it(run):
    program = build(run)
    file = run.dir / "graph.html"
    trace(run, program, file, 40, "--by", "ustack")
    for dark in (False, True):
        for width in (800, 1600):
            page = Page(file, width=width, dark=dark)
            check_equal(page.value("document.documentElement.dataset.theme"), "dark" if dark else "light", "the theme")
            check(page.value("document.documentElement.scrollWidth") <= width, "nothing is beside the window")
            light = page.value("getComputedStyle(document.body).backgroundColor")
            check_equal(light == "rgb(255, 255, 255)", not dark, light)
            page.picture(run.dir / f"graph-{width}-{'dark' if dark else 'light'}.png")
            page.close()


@scenario
def names_of_others_stay_text(run):
    program = build(run)
    file = run.dir / "graph.html"
    trace(run, program, file, 40, "--by", "ustack")
    check_equal(file.read_text().count("<script"), 2, "scripts of the page")
    page = Page(file)
    check("evil</script>" in page.value("flame.drawn.map(b => b.node.name).join(' ')"), "it has that name")
    page.close()


if __name__ == "__main__":
    main()
