# SPDX-License-Identifier: BSD-2-Clause
"""Programs whose threads publish what they work for (context_writer.c, context_first_thread.c): how they are built, and what
a tracer showed of their hits against their own logs; here and in guests of tests/vm."""

import collections
import pathlib
import subprocess

from harness import check, check_equal

ROOM = pathlib.Path(__file__).resolve().parent
OPENED = '-DLIBRARY="./libcontext.so"'
DESCRIPTORS = "-mtls-dialect=gnu2"  # of x86; arm64 has no other way for libraries
FORMS = {  # name: (flags of the program, of the library with the variable)
    "program": (["-DVARIABLE_IN_PROGRAM", "-rdynamic"], None),
    "program that does not export it": (["-DVARIABLE_IN_PROGRAM", "-no-pie"], None),
    "static program": (["-DVARIABLE_IN_PROGRAM", "-static"], None),
    "static program that is moved": (["-DVARIABLE_IN_PROGRAM", "-static-pie", "-fPIE", "-Wl,--export-dynamic-symbol=otel_thread_ctx_v1"], None),
    "library": ([], []),
    "library with descriptors": ([], [DESCRIPTORS]),
    "library, initial exec": ([], ["-ftls-model=initial-exec"]),
    "opened library": ([OPENED], ["-DLARGE=30000"]),
    "opened library with descriptors": ([OPENED], [DESCRIPTORS, "-DLARGE=30000"]),
    "opened library near the thread pointer": ([OPENED], [DESCRIPTORS]),
}

CHANGING = "the thread was changing it"
# Why it may be that nothing is known: the process was not looked at, or its first thread has not waited.
EARLY = "it was not known yet where this process has it"
LATE = "the kernel did not have the thread's pointer yet"


def is_opened(form):
    """Whether the program opens the library when it is told so."""
    return OPENED in FORMS[form][0]


def build(directory, form, compiler=("gcc", "-idirafter", "/usr/include/x86_64-linux-gnu")):
    """Makes `writer`, and its library where it has one. `compiler`: with the flags of a machine."""
    program, library = FORMS[form]
    if "gcc" not in compiler:
        library = library and [flag for flag in library if flag != DESCRIPTORS]
    links = ["-ldl"]
    if library is not None:
        subprocess.run([*compiler, "-O2", "-shared", "-fPIC", *library, "-o", "libcontext.so", ROOM / "context_library.c"], cwd=directory, check=True)
        links += [] if OPENED in program else ["-L.", "-lcontext", "-Wl,-rpath,."]
    subprocess.run([*compiler, "-O2", "-g", "-pthread", *program, "-o", "writer", ROOM / "context_writer.c", *links], cwd=directory, check=True)
    return directory / "writer"


def build_first_thread(directory, form, compiler=("gcc",)):
    """Makes `first`, which has the variable itself."""
    subprocess.run([*compiler, "-O2", *FORMS[form][0], "-o", "first", ROOM / "context_first_thread.c"], cwd=directory, check=True)
    return directory / "first"


Published = collections.namedtuple("Published", "shown waits")  # what a tracer has to show; how often the thread had waited


def _read(log):
    """(number of the hit, Published) of one thread, in order; lines of one word are none."""
    with open(log, encoding="ascii") as lines:
        for n, _, waits, *ids in (line.split() for line in lines if " " in line):
            error = {"error": CHANGING}
            shown = {"none": ("", ""), "changing": (error, error)}.get(ids[0]) or tuple(ids)
            yield int(n), Published(shown, int(waits))


class Log:
    """What the threads of a writer say they had published, in the order in which each of them had hits."""

    def __init__(self, file):
        self.file = file
        self.threads = {}

    def at(self, n, thread):
        """What is told of a thread's hit; None: nothing. Each is asked for once, in the order of their numbers."""
        if thread not in self.threads:
            self.threads[thread] = _read(f"{self.file}.{thread}")
        lines = self.threads[thread]
        return next((published for number, published in lines if number == n), None)


def check_hits(events, log, hits, unknown=0):
    """Each is what its thread had published; at most `unknown` came before it was known where the process has them."""
    wrong, early = [], 0
    log = Log(log)
    for event in events:
        n, thread, *shown = event["args"]
        published = log.at(n, thread)
        if shown[0] == {"error": EARLY}:
            early += 1
        elif published is None or tuple(shown) != published.shown:
            wrong.append((event["args"], published))
    check_equal(wrong[:3], [], f"{len(wrong)} wrong of {len(events)}")
    check(early <= unknown, f"{early} hits before it was known, of {unknown}")
    check_equal(len(events), hits, "hits")


def check_first_thread(events, log, knows_at_once, errors=(EARLY,)):
    """Each hit is what the thread had published, or one of the errors that say that this is not known. Once there was a hit in
    a process that was looked at, two waits later all are known. Before the thread has waited at all there are some that are
    known, or, where the kernel alone has its pointer, and late, some that say so. Returns how many these are."""
    check("misleads" in log.read_text().split(), "no program had a place that was the variable's before")
    told = dict(_read(log))
    counts = collections.Counter()
    last, known_after = 0, None
    for event in events:
        n, _, *shown = event["args"]
        error = shown[0].get("error") if isinstance(shown[0], dict) and shown[0] != {"error": CHANGING} else None
        waits = told[n].waits
        known_after = None if waits < last else known_after  # the program was executed again
        last = waits
        if error != EARLY and known_after is None:
            known_after = waits + 2
        check(error in errors or tuple(shown) == told[n].shown, f"hit {n}: shown {shown}, published {told[n]}")
        check(error is None or known_after is None or waits < known_after, f"hit {n}, after the thread has waited: {shown}")
        counts[error if waits == 0 else "waited"] += 1
    check_equal(len(events), len(told), "hits")
    counted = counts[None if knows_at_once else LATE]
    check(counted > 0, f"hits before the thread has waited: {counts}")
    return counted
