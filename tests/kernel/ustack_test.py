#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of processes (--ustack). GDB's backtrace at the same hits judges."""

import stacks  # finds the harness
from harness import check, check_equal, main, require_m32, require_root, scenario

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
def stacks_of_static_programs(run):
    compare(run, "static", "gcc", ["-O2", "-static", "-fomit-frame-pointer"])


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
    program, _ = stacks.build(run, "returns", "gcc", ["-O2", "-fomit-frame-pointer"])
    expected = stacks.by_gdb(run, program, ["10"], ["*f6_0"])
    events = run.trace(f"uretprobe:{program}:f6_0", "--ustack", command=[program, "10"]).events
    check_equal(len(events), len(expected), "hits")
    for event, theirs in zip(events, expected):
        check_equal(stacks.as_gdb(event["ustack"]), theirs[1:], "the stack without the function that returned")


if __name__ == "__main__":
    main()
