#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of processes (--ustack). GDB's backtrace at the same hits judges."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import stacks  # noqa: E402
from puppet import HERE, Puppet, build  # noqa: E402
from harness import Tracing, check, check_equal, main, require_m32, require_root, require_x86_64, scenario, wait_line, wait_until  # noqa: E402

# sys/sdt.h is among the 64-bit headers, and good for both.
M32 = ["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]


def traced(run, program, at, rounds, *options):
    result = run.trace([f"{at}:stacks:leaf*"], *options, command=[program, str(rounds)])
    result.check_code(0)
    return result.events


def compare(run, name, compiler, flags, rounds=25, shared=False, options=("--ustack",)):
    """Every stack is GDB's, frame by frame up to main(), and, but for libc without frame pointers, goes on to the end."""
    require_root()
    program, at = stacks.build(run, name, compiler, flags, shared)
    expected = stacks.by_gdb(run, program, [str(rounds)], ["-probe-stap|stacks:leaf" + str(i) for i in range(stacks.WIDTH)])
    events = traced(run, program, at, rounds, *options)
    check_equal(len(events), rounds, "hits")
    check_equal(len(expected), rounds, "stops of GDB")
    for number, (event, theirs) in enumerate(zip(events, expected)):
        ours = stacks.as_gdb(event["ustack"])
        check_equal(ours, theirs, f"{compiler} {' '.join(flags)}: stack of hit {number}")
        if "fp" in options[-1]:
            continue
        check("ustack_end" not in event, f"the stack of hit {number} ends early: {event.get('ustack_end')}\n{event['ustack']}")
        check_equal(event["ustack"][-1].get("function"), "_start", "the outermost function")
    inlined = sum(frame.get("inline", False) for event in events for frame in event["ustack"])
    print(f"{compiler} {' '.join(flags)}: {rounds} stacks as GDB has them, {inlined} inlined frames")
    return events


@scenario
def stacks_of_programs_with_frame_pointers_follow_them(run):
    compare(run, "kept", "gcc", ["-O1", "-fno-omit-frame-pointer"], options=("--ustack", "fp,64"))
    compare(run, "plain", "gcc", ["-O0"], options=("--ustack", "fp,64"))


@scenario
def stacks_need_no_frame_pointers_gcc(run):
    for level in ("-O0", "-O1", "-O2", "-O3"):
        compare(run, f"gcc{level}", "gcc", [level, "-fomit-frame-pointer"])


@scenario
def stacks_need_no_frame_pointers_clang(run):
    for level in ("-O0", "-O1", "-O2", "-O3"):
        compare(run, f"clang{level}", "clang", [level, "-fomit-frame-pointer"])


@scenario
def stacks_of_cpp_programs_have_their_names(run):
    compare(run, "gpp", "g++", ["-O2", "-fomit-frame-pointer"])
    compare(run, "clangpp", "clang++", ["-O2", "-fomit-frame-pointer"])


@scenario
def stacks_go_through_shared_libraries(run):
    compare(run, "shared", "gcc", ["-O2", "-fomit-frame-pointer"], shared=True)


@scenario
def who_threw_is_on_the_stack(run):
    """As README.md has it: from within libstdc++, which keeps no frame pointers, to the program's functions."""
    require_root()
    program = run.build("thrower", ["thrower.cpp"], ["-g", "-O1", "-fomit-frame-pointer"], "g++")
    events = run.trace("libstdcxx:throw", "--ustack", command=[program, "1", "/dev/null"]).events
    check_equal(len(events), 3, "exceptions")
    for event, thrown in zip(events, ("int", "(anonymous namespace)::Custom", "std::runtime_error")):
        names = [frame.get("function") for frame in event["ustack"]]
        at = names.index("__cxa_throw")
        check(at <= 1, f"innermost functions: {names}")
        check(f"throw_one<{thrown}>" in names[at + 1] and names[at + 2] == "main", f"who threw: {names}")


@scenario
def stacks_of_static_programs(run):
    compare(run, "static", "gcc", ["-O2", "-static", "-fomit-frame-pointer"])


@scenario
def stacks_by_other_kinds_of_debug_information(run):
    no_eh_frame = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
    compare(run, "debug_frame", "gcc", ["-O2", "-fomit-frame-pointer", *no_eh_frame])
    compare(run, "split", "gcc", ["-O2", "-fomit-frame-pointer", "-gsplit-dwarf", "-gdwarf-5"])
    compare(run, "dwarf4", "clang", ["-Os", "-fomit-frame-pointer", "-gdwarf-4"])
    compare(run, "lto", "gcc", ["-O3", "-fomit-frame-pointer", "-flto"])


@scenario
def a_separate_debug_file_has_the_lines(run):
    require_root()
    program, _ = stacks.build(run, "stripped", "gcc", ["-O2", "-fomit-frame-pointer"])
    for argv in (["--only-keep-debug", program, f"{program}.debug"], ["--strip-all", program],
                 [f"--add-gnu-debuglink={program}.debug", program]):
        subprocess.run(["objcopy", *argv], check=True, cwd=run.dir)
    expected = stacks.by_gdb(run, program, ["10"], ["-probe-stap|stacks:leaf" + str(i) for i in range(stacks.WIDTH)])
    events = traced(run, program, program, 10, "--ustack")
    check_equal([stacks.as_gdb(event["ustack"]) for event in events], expected, "stacks")
    (run.dir / "stripped.debug").unlink()
    events = traced(run, program, program, 10, "--ustack")
    lost = [frame.get("error") for event in events for frame in event["ustack"] if frame["module"] == str(program)]
    check_equal(set(lost), {"no symbol has this address"}, "names without the debug file")
    check("ustack_end" not in events[0], "unwinding needs no debug file")


@scenario
def stacks_go_through_signal_handlers_threads_and_the_c_library(run):
    require_root()
    program = run.build("interrupted", [HERE / "stack/interrupted.c"], ["-g", "-O2", "-fomit-frame-pointer", "-pthread"])
    expected = stacks.by_gdb(run, program, [], ["-probe-stap|interrupted:hit"])
    events = run.trace(f"{program}:interrupted:hit", "--ustack", command=[program]).events
    check_equal(len(events), len(expected), "hits")
    for number, (event, theirs) in enumerate(zip(events, expected)):
        ours = [frame[0] for frame in stacks.as_gdb(event["ustack"])]
        names = [frame[0] for frame in theirs]
        own = {"hit", "handler", "interrupted", "compare", "in_thread", "main"}
        ours_own = [name for name in ours if name in own]
        if number == 1:  # on the stack of the handler
            check_equal(ours_own, ["hit", "handler"], "what is on the handler's own stack")
            check("another stack" in event["ustack_end"], event["ustack_end"])
            continue
        check_equal(ours_own, [name for name in names if name in own], f"hit {number}")
        check_equal("<signal handler called>" in ours, "handler" in ours, f"hit {number}: the signal's frame")
        check("ustack_end" not in event, f"hit {number}: {event.get('ustack_end')} {ours}")


@scenario
def stacks_of_32_bit_programs(run):
    require_m32()
    for compiler in ("gcc", "clang"):
        compare(run, f"m32{compiler}", compiler, ["-O2", *M32, "-fomit-frame-pointer"])
    compare(run, "m32fp", "gcc", ["-O0", *M32], options=("--ustack", "fp,64"))


def is_in_order(ours, theirs):
    """Whether our frames are theirs, one behind the other, where nothing says that some may be missing between."""
    at, gap = 0, False
    for frame in ours:
        if "address" not in frame:
            gap = True
            continue
        name = stacks.without_parameters(frame.get("function", "?"))
        places = [i for i in range(at, len(theirs)) if theirs[i][0] == name and (gap or i == at)]
        if not places:
            return False
        at, gap = places[0] + 1, False
        if name == "main":
            return True
    return True


@scenario
def a_chain_of_what_are_no_frame_pointers_says_so(run):
    """Nothing is left out without a sign, and the direct caller is right."""
    require_root()
    places = ["-probe-stap|stacks:leaf" + str(i) for i in range(stacks.WIDTH)]
    for compiler, level in (("gcc", "-O2"), ("clang", "-O1"), ("gcc", "-O0")):
        program, _ = stacks.build(run, f"none{compiler}{level}", compiler, [level, "-fomit-frame-pointer"])
        expected = stacks.by_gdb(run, program, ["25"], places)
        events = traced(run, program, program, 25, "--ustack=fp")
        check_equal(len(events), 25, "hits")
        for event, theirs in zip(events, expected):
            ours = event["ustack"]
            check(is_in_order(ours, theirs), f"{compiler} {level}: {stacks.as_gdb(ours)} in {theirs}")
            check_equal(stacks.as_gdb(ours)[:2], theirs[:2], f"{compiler} {level}: function and caller")
            check("ustack_end" in event, "it ends before the outermost function, and does not say so")


@scenario
def the_caller_is_known_at_a_functions_first_instruction(run):
    require_root()
    for flags in (["-O2", "-fomit-frame-pointer"], ["-O1", "-fno-omit-frame-pointer"], ["-O0"]):
        program, _ = stacks.build(run, "entry" + "".join(flags), "gcc", flags)
        expected = stacks.by_gdb(run, program, ["40"], ["*f6_0", "*f3_0"])
        for method in ("dwarf", "fp"):
            result = run.trace([f"uprobe:{program}:f6_0", f"uprobe:{program}:f3_0"], "--ustack", method,
                               command=[program, "40"])
            check_equal(len(result.events), len(expected), "hits")
            for event, theirs in zip(result.events, expected):
                ours = stacks.as_gdb(event["ustack"])
                check_equal(ours[:2], theirs[:2], f"{method} {flags}: function and caller")
                if method == "dwarf" or "-O2" not in flags:
                    check_equal(ours, theirs, f"{method} {flags}: the whole stack")


@scenario
def at_a_return_the_caller_comes_first(run):
    require_root()
    for flags in (["-O2", "-fomit-frame-pointer"], ["-O1", "-fno-omit-frame-pointer"], ["-O0"]):
        program, _ = stacks.build(run, f"returns{flags[0]}", "gcc", flags)
        expected = stacks.by_gdb(run, program, ["10"], ["*f6_0"])
        # On a RET instruction the function has not returned.
        for option, first in (("--no-ret-probes", 1), ("--ret-probes", 0)):
            events = run.trace(f"uretprobe:{program}:f6_0", option, "--ustack", command=[program, "10"]).events
            check_equal(len(events), len(expected), f"{option}: hits")
            for event, theirs in zip(events, expected):
                shown = stacks.as_gdb(event["ustack"])
                check_equal((shown[0][0], shown[1 - first:]), (theirs[first][0], theirs[1:]), f"{flags} {option}: the stack")


def moved(run, program, place):
    """Bytes from the function's first instruction to the breakpoint."""
    listed = subprocess.run([run.tool.with_name("usdt-list"), "-f", "json", f"uprobe:{program}:{place}"],
                            capture_output=True, check=True)
    return json.loads(listed.stdout)["site"].get("moved", 0)


@scenario
def return_probes_on_the_way_hide_no_caller(run):
    """They put their own address in the place of the callers'."""
    require_root()
    program, _ = stacks.build(run, "nested", "gcc", ["-O2", "-fomit-frame-pointer"])
    places = [f"f{layer}_{number}" for layer in range(1, stacks.LAYERS) for number in range(2)]
    expected = stacks.by_gdb(run, program, ["8"], [f"*(char*){place}+{moved(run, program, place)}" for place in places])
    result = run.trace([f"ucall:{program}:{place}" for place in places], "--ustack", command=[program, "8"])
    events = sorted(result.events, key=lambda event: event["ts"])
    check_equal(len(events), len(expected), "calls")
    for event, theirs in zip(events, expected):
        check_equal(stacks.as_gdb(event["ustack"]), theirs, "stack at the entry of a call")


@scenario
def stacks_resolve_when_the_process_has_long_ended(run):
    """The tool is stopped while the program runs: nothing of it is left when its events are read."""
    require_root()
    program, _ = stacks.build(run, "gone", "gcc", ["-O2", "-fomit-frame-pointer"])
    expected = stacks.by_gdb(run, program, ["5"], ["-probe-stap|stacks:leaf" + str(i) for i in range(stacks.WIDTH)])
    tracing = run.trace_start(f"{program}:stacks:leaf*", "--ustack", "-M", "5")
    wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached")
    tracing.signal(signal.SIGSTOP)
    subprocess.run([program, "5"], check=True, stdout=subprocess.DEVNULL)
    tracing.signal(signal.SIGCONT)
    events = tracing.finish().events
    check_equal([stacks.as_gdb(event["ustack"]) for event in events], expected, "stacks")


@scenario
def stacks_resolve_when_the_file_is_deleted(run):
    require_root()
    program = build(run)
    puppet = Puppet(run, program)
    tracing = run.trace_start(f"{program}:puppet:beat", "-p", str(puppet.pid), "--ustack")
    wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached")
    program.unlink()
    puppet.order("fire:3")
    puppet.send("exit:0")
    events = tracing.finish().events
    check_equal(len(events), 3, "hits")
    for event in events:
        names = [frame.get("function") for frame in event["ustack"]]
        check(names[0] == "beat" and "main" in names, f"stack of a deleted program: {names}")
        check_equal(event["ustack"][0]["module"], str(program), "its path")


def jit(run, options, prepare=lambda pid: None, mode="map"):
    """Names on the stack of a hit below code that the program made, and its frame that is of no file."""
    require_root()
    require_x86_64()
    program = run.build("jit", [HERE / "stack/jit.c"], ["-O2", "-fomit-frame-pointer"])
    process = run.start(program, "2", mode, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    pid = int(wait_line(process))
    perf_map = pathlib.Path(f"/tmp/perf-{pid}.map")
    try:
        prepare(perf_map)
        tracing = run.trace_start(f"{program}:jit:hit", "-p", str(pid), "--ustack", *options)
        wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached")
        process.stdin.write(b"\n\n")
        events = tracing.finish().events
    finally:
        perf_map.unlink(missing_ok=True)
    check_equal(len(events), 2, "hits")
    for event in events:
        names = [frame.get("function", frame.get("error")) for frame in event["ustack"]]
        check_equal([name for name in names if name in ("hit", "caller", "main")], ["hit", "caller", "main"], "in order")
    return events[-1]["ustack"]


@scenario
def code_without_a_file_is_named_by_its_perf_map(run):
    frames = jit(run, [])
    check_equal(frames[1]["function"], "LazyCompile:made it.js:3", "the function that was made")
    check_equal(frames[1]["offset"], 6, "behind its call")
    check("frame pointer" in frames[2]["error"], f"how its caller was found is said: {frames[2]}")


@scenario
def a_perf_map_nobody_can_trust_is_not_read(run):
    def link(perf_map):
        os.symlink("/etc/passwd", perf_map)

    def of_another(perf_map):
        perf_map.write_text("0 ffffffffffffffff evil\n")
        os.chown(perf_map, 65534, 65534)

    def endless(perf_map):
        with open(perf_map, "w", encoding="utf-8") as file:
            file.truncate(1 << 40)

    def nonsense(perf_map):
        perf_map.write_bytes(bytes(range(256)) * 4096 + b"\nffffffffffffffff 2 a\n0 0 b\n12 \n 1 1 1\n-1 5 c\n")

    for prepare, why in ((link, "no regular file"), (os.mkfifo, "no regular file"), (of_another, "another user's"),
                         (endless, "larger than"), (nonsense, "in no file")):
        frames = jit(run, [], prepare, "none")
        check(why in frames[1]["error"], f"{prepare.__name__}: {frames[1]}")


@scenario
def a_process_that_maps_as_much_as_it_may_is_read_in_time(run):
    """60,000 executable mappings, names that look like lines of /proc/PID/maps among them."""
    require_root()
    program = run.build("many_maps", [HERE / "stack/many_maps.c"], ["-O1"])
    odd = run.dir / "odd\n7f0000000000-7fffffffffff r-xp 00000000 00:00 1 name"
    odd.write_bytes(program.read_bytes())
    started = time.monotonic()
    events = run.trace(f"{program}:many:hit", "--ustack", command=[program, odd, "60000"]).events
    check_equal(len(events), 3, "hits")
    for event in events:
        names = [frame.get("function") for frame in event["ustack"]]
        check(names[:2] == ["hit", "main"] and "ustack_end" not in event, f"{event['ustack']}")
    took = time.monotonic() - started
    check(took < 20, f"it took {took:.0f} s")


@scenario
def a_process_with_thousands_of_files_leaves_the_tracer_time_for_other_work(run):
    """Each of its stacks has an address that is in no mapping: perhaps it has mapped something since it was looked at."""
    require_root()
    require_x86_64()
    program = run.build("many_files", [HERE / "stack/many_files.c"], ["-O1", "-fno-omit-frame-pointer"])
    files = run.dir / "files"
    files.mkdir()
    head = program.read_bytes()[:64]  # begins like a program
    for n in range(15000):
        (files / str(n)).write_bytes(head)
    traced = run.start(program, files, 15000, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    check_equal(wait_line(traced), "ready", "what the program says")
    tracing = Tracing(run.tool_argv(["uprobe:libc.so.6:getppid"], ["--ustack", "-p", traced.pid], output="json"), run.dir)
    run.adopt(tracing.process)
    wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached", 60)
    traced.stdin.write(b"go\n")
    wait_until(lambda: tracing.stdout().count('"type":"event"') == 300, "the stacks of 300 hits are there", 60)
    tracing.signal(signal.SIGINT)
    for event in tracing.finish().events:
        check(event["ustack"][0]["function"].endswith("getppid"), f"{event['ustack']}")


@scenario
def deep_stacks_end_where_it_is_said(run):
    require_root()
    program = run.build("deep", [HERE / "stack/deep.c"], ["-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"])
    narrow, wide = run.trace(f"{program}:deep:bottom", "--ustack=512", command=[program, "2000"]).events
    check_equal([frame["function"] for frame in narrow["ustack"]][:300], ["narrow"] * 300, "recursion")
    check(narrow["ustack_end"] in ("as many frames as were asked for", "the recorded copy of the stack ends here"),
          narrow["ustack_end"])
    names = [frame.get("function") for frame in wide["ustack"]]
    check(names[0] == "narrow" and set(names[1:]) == {"wide"}, f"{names}")
    check(14 < len(names) < 23, f"16 to 20 KiB hold not {len(names)} frames of a kilobyte")
    check_equal(wide["ustack_end"], "the recorded copy of the stack ends here", "the end")
    _, wide = run.trace(f"{program}:deep:bottom", "--ustack=512", "--ustack-size=64", command=[program, "2000"]).events
    check(60 < len(wide["ustack"]) < 70, f"64 KiB hold not {len(wide['ustack'])} frames of a kilobyte")
    narrow, wide = run.trace(f"{program}:deep:bottom", "--ustack", "fp,127", command=[program, "2000"]).events
    check("ustack_end" in narrow and "ustack_end" in wide, "the ends by frame pointers")


@scenario
def a_stack_of_20_frames_costs_what_is_printed(run):
    """By each method, the traced program's time for a hit."""
    require_root()
    program = run.build("cost", [HERE / "stack/deep.c"], ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"])

    def nanoseconds(*options):
        log = run.dir / "ns"
        result = run.trace(f"{program}:deep:bottom", "--ring-size", "512", *options,
                           command=["sh", "-c", f"exec {program} 18 3000 > {log}"])
        result.check_accounted(3000, lost=0)
        for event in result.events[:1]:
            check("ustack" not in event or len(event["ustack"]) >= 20, f"{event}")
        return int(log.read_text())

    plain, by_fp, by_dwarf = (min(nanoseconds(*options) for _ in range(2))
                              for options in ((), ("--ustack=fp",), ("--ustack=dwarf",)))
    fp, dwarf = by_fp - plain, by_dwarf - plain
    print(f"a hit {plain} ns; with 20 frames by frame pointers {fp} ns more, by unwind information {dwarf} ns more: "
          f"{dwarf / max(fp, 1):.1f} times as much")
    check(0 < by_fp < 100_000 and by_dwarf < 200_000, "costs of a hit that cannot be")


@scenario
def hits_in_the_kernel_show_who_asked(run):
    """A system call's stack goes on in the process, to its main()."""
    require_root()
    program, _ = stacks.build(run, "calls", "gcc", ["-O2", "-fomit-frame-pointer", "-static"])
    result = run.trace("raw_tp:sys_enter", "--ustack", "--kstack", command=[program, "1"])
    check("main" in {frame.get("function") for event in result.events for frame in event["ustack"]},
          f"no system call is main()'s: {result.events[-1]['ustack']}")
    with_both = [event for event in result.events if event["kstack"] and event["ustack"]]
    check(len(with_both) > len(result.events) // 2, f"{len(with_both)} of {len(result.events)} events have both stacks")


STUB = """#include <stdlib.h>
#include <usdt/probe.h>
__attribute__((noinline)) void inner(int i) { USDT_PROBE_STUB(stubs, hit, i); __asm__ volatile(""); }
__attribute__((noinline)) void middle(int i) { inner(i); __asm__ volatile(""); }
__attribute__((noinline)) void outer(int i) { middle(i); __asm__ volatile(""); }
int main(int argc, char** argv) { for (int i = 0; i < atoi(argv[1]); ++i) outer(i); return argc == 0; }
"""


@scenario
def a_stub_has_its_caller_behind_it(run):
    """No unwind information describes the stubs of <usdt/probe.h>: a return address is all they have on the stack."""
    require_root()
    source = run.dir / "stub.c"
    source.write_text(STUB)
    include = HERE.parents[1] / "provider" / "include"
    for name, flags in (("without", ["-O2", "-fomit-frame-pointer"]), ("with", ["-O1", "-fno-omit-frame-pointer"])):
        program = run.build(f"stub-{name}", [source], [*flags, "-g", f"-I{include}"])
        for option in ("--ustack", "--ustack=fp") if name == "with" else ("--ustack",):
            result = run.trace([f"{program}:stubs:hit"], option, command=[program, "3"])
            check_equal(len(result.events), 3, "hits")
            for event in result.events:
                functions = [frame.get("function") for frame in event["ustack"]][1:5]
                check_equal(functions, ["inner", "middle", "outer", "main"], f"{name} frame pointers, {option}: {event['ustack']}")


@scenario
def text_has_a_frame_a_line(run):
    require_root()
    program, _ = stacks.build(run, "text", "clang", ["-O2", "-fomit-frame-pointer"])
    done = subprocess.run([run.tool, f"{program}:stacks:leaf*", "--ustack", "--", program, "1"], capture_output=True,
                          text=True, check=True)
    frames = [line for line in done.stdout.splitlines() if line.startswith("    ")]
    check(any(re.fullmatch(r"    f6_\d\+0x[0-9a-f]+ at \S*inner\.c:\d+ \(\S*text\)", line) or
              re.fullmatch(r"    f6_\d \(inlined\) at \S*inner\.c:\d+ \(\S*text\)", line) for line in frames[:1]),
          f"first frame: {frames}")
    check(frames[-1].startswith("    _start+0x"), f"last frame: {frames}")


@scenario
def what_is_no_stack_option_is_refused(run):
    require_root()
    for value in ("0", "513", "fp,128", "fp,", "dwarf,0", "frames", "20,fp", "fp 3"):
        done = subprocess.run([run.tool, f"--ustack={value}", "a:b:c"], capture_output=True, text=True, check=False)
        check_equal(done.returncode, 2, f"--ustack={value}")
        check("--ustack" in done.stderr, done.stderr)
    for value in ("0", "3", "6", "68", "x"):
        done = subprocess.run([run.tool, f"--ustack-size={value}", "a:b:c"], capture_output=True, text=True, check=False)
        check(done.returncode == 2 and "--ustack-size" in done.stderr, f"--ustack-size={value}: {done.stderr}")
    done = subprocess.run([run.tool, "--ustack", "--count", "a:b:c"], capture_output=True, text=True, check=False)
    check(done.returncode == 2 and "--count shows no events" in done.stderr, done.stderr)


@scenario
def a_program_that_ended_has_names_of_all_that_it_had_mapped(run):
    """Its first hits in the kernel are those of the dynamic linker, which has mapped nothing else by then."""
    require_root()
    (run.dir / "naps.c").write_text("""
        #include <unistd.h>
        __attribute__((noinline)) void naps(void) { usleep(10000); }
        int main(void) { for (int n = 0; n < 5; n++) naps(); return 0; }""")
    program = run.build("naps", [run.dir / "naps.c"], ["-O0", "-g"])
    for _ in range(6):
        result = run.trace("raw_tp:sched_switch", "--ustack", command=[program])
        stacks = [[frame.get("function") for frame in event["ustack"]] for event in result.events]
        stacks = [stack for stack in stacks if "main" in stack]
        check(len(stacks) >= 5, f"{len(stacks)} switches in main()")
        check(all(None not in stack for stack in stacks), f"{[stack for stack in stacks if None in stack]}")


if __name__ == "__main__":
    main()
