#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Values of enums by name, in questions and as keys of tables."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import said  # noqa: E402
from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import Skip, attach_at_once, check, check_equal, main, require_program, require_root, scenario  # noqa: E402

attach_at_once()

SOURCE = """
namespace net {
enum class State : short { idle, busy = 3, gone = -1 };
enum Old { RED = 1, GREEN = 2, BLUE = 4 };
}
enum flags { READ = 1, WRITE = 2, EXEC = 4 };
enum big : unsigned long { TOP = 0xffffffffffffffffUL, ONE = 1 };
struct Peer { net::State state; int busy; };
extern "C" __attribute__((noinline)) void take(net::State state, net::Old color, flags mode, const Peer* peer, big large, int number) {
  __asm__ volatile("" : : "r"(&state), "r"(&color), "r"(&mode), "r"(peer), "r"(&large), "r"(number) : "memory");
}
int main() {
  const Peer gone{net::State::gone, 3}, idle{net::State::idle, 0};
  take(net::State::busy, net::GREEN, static_cast<flags>(READ | EXEC), &gone, TOP, 0);
  take(net::State::gone, net::RED, WRITE, &idle, ONE, 1);
  take(static_cast<net::State>(7), net::BLUE, EXEC, &idle, ONE, 2);
}
"""

# Each question with the numbers of the calls for which it holds.
QUESTIONS = [
    ("state == busy", [0]),
    ("state == State::busy || state == net::State::gone", [0, 1]),
    ("state != net::State::busy", [1, 2]),
    ("state in {idle, gone}", [1]),
    ("state < State::idle", [1]),
    ("color == net::GREEN", [0]),
    ("color == Old::BLUE", [2]),
    ("mode & EXEC", [0, 2]),
    ("mode == (READ | EXEC)", [0]),
    ("peer->state == gone && peer->busy == 3", [0]),
    ("peer->state == idle && state == gone", [1]),
    ("large == TOP", [0]),
    ("large > ONE", [0]),
]


def build(run, compiler="g++", level="-O1"):
    require_root()
    source = run.dir / "enums.cpp"
    source.write_text(SOURCE)
    return run.build(f"enums-{compiler}{level}".replace("+", "p"), [], ["-g", level, "-std=c++17", str(source)], compiler)


@scenario
def hits_are_asked_about_by_the_names_of_enums(run):
    for compiler, level in (("g++", "-O1"), ("clang++", "-O0")):
        program = build(run, compiler, level)
        for asked, wanted in QUESTIONS:
            result = run.trace(f"uprobe:{program}:take", "--where", asked, "--print", "number", command=[program])
            result.check_code(0)
            check_equal([event["args"][0] for event in result.events], wanted, f"{compiler} {level} {asked}")


@scenario
def a_recording_is_asked_by_the_same_names(run):
    program, file = build(run), run.dir / "enums.rec"
    subprocess.run([run.tool, f"uprobe:{program}:take", "--record", file, "--", program], check=True, capture_output=True)
    for asked, wanted in QUESTIONS:
        if "peer->" in asked:
            continue
        done = subprocess.run([run.tool, "--replay", file, "--where", asked, "--print", "number"], capture_output=True,
                              text=True)
        check_equal([line.split("number=")[1] for line in done.stdout.splitlines()], [str(n) for n in wanted],
                    f"{asked}: {done.stderr}")


@scenario
def keys_are_shown_by_their_names(run):
    program = build(run)
    done = subprocess.run([run.tool, f"uprobe:{program}:take", "--by", "state, peer->state, mode", "--", program],
                          capture_output=True, text=True)
    rows = sorted(" ".join(line.split()) for line in done.stdout.splitlines()[1:])
    check_equal(rows, ["1 7 idle EXEC", "1 busy gone 5", "1 gone idle WRITE"], done.stdout + done.stderr)


@scenario
def names_that_an_enum_does_not_have_are_refused_with_those_it_has(run):
    program = build(run)
    for asked, answer in [
        ("state == bussy", "state is net::State, which has no value 'bussy'; did you mean busy?"),
        ("color == PURPLE", "color is net::Old, which has no value 'PURPLE'; it has RED, GREEN, BLUE"),
        ("peer->state == Flags::gone", "peer->state is net::State, which has no value 'Flags::gone'"),
        ("number == busy", "busy: there is no such argument"),
    ]:
        result = run.trace(f"uprobe:{program}:take", "--where", asked, command=[program])
        check_equal(result.code, 2, asked)
        check(answer in result.stderr, f"{asked}: {result.stderr}")


@scenario
def enums_of_rust_are_named_the_same_way(run):
    require_root()
    require_program("rustc")
    program = run.dir / "enums-rust"
    subprocess.run(["rustc", "-g", "-A", "warnings", "-C", "opt-level=1", "-o", program, HERE / "values.rs"], check=True,
                   cwd=run.dir)
    for asked, wanted in [("request->state == State::Busy", 2), ("request->state == Idle", 1)]:
        result = run.trace(f"uprobe:{program}:values::members", "--where", asked, command=said.quiet(program))
        result.check_code(0)
        check_equal(len(result.events), wanted, asked)


@scenario
def enums_of_the_kernel_are_named_the_same_way(run):
    require_root()
    listed = subprocess.run([run.tool.with_name("usdt-list"), "raw_tp:hrtimer_start"], capture_output=True, text=True)
    if "enum hrtimer_mode mode" not in listed.stdout:
        raise Skip("this kernel's hrtimer_start has no such argument")
    result = run.trace("raw_tp:hrtimer_start", "--where", "mode == HRTIMER_MODE_NO_SUCH_MODE", command=["true"])
    check_equal(result.code, 2, result.stderr)
    check("mode is enum hrtimer_mode, which has no value 'HRTIMER_MODE_NO_SUCH_MODE'" in result.stderr, result.stderr)
    for asked, holds in [("mode & HRTIMER_MODE_REL", lambda mode: mode & 1), ("!(mode & HRTIMER_MODE_REL)", lambda mode: not mode & 1)]:
        result = run.trace("raw_tp:hrtimer_start", "--where", asked, "--print", "mode", command=["sleep", "0.01"])
        result.check_code(0)
        check(all(holds(event["args"][0]) for event in result.events), f"{asked}: {result.describe()}")


if __name__ == "__main__":
    main()
