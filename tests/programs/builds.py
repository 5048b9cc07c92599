# SPDX-License-Identifier: BSD-2-Clause
"""How the generated programs are built: by which compiler, linked how, for which of the two x86 machines."""

import emitgen
import formgen
from harness import require_m32, require_x86_64

COMPILERS = {"gcc": ("gcc", False), "clang": ("clang", False), "gxx": ("g++", True), "clangxx": ("clang++", True)}
LINKS = {"pie": ["-fPIE", "-pie"], "nopie": ["-fno-pie", "-no-pie"], "static": ["-fno-pie", "-static"],
         "staticpie": ["-fPIE", "-static-pie"], "shared": ["-fPIC"],
         # Thread-local variables by a register and an offset in the library's block, or from the thread pointer; and the
         # first of these rewritten by the linker of a program.
         "sharedld": ["-fPIC", "-ftls-model=local-dynamic"], "sharedie": ["-fPIC", "-ftls-model=initial-exec"],
         "pield": ["-fPIC", "-ftls-model=local-dynamic", "-pie"]}
# sys/sdt.h is an architecture's header on Debian although it is the same for all; found last, it serves -m32 too.
M32 = ["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]


def build(run, name, cross=None):
    """Builds the named combination; returns (program, file that holds the probes). `cross`: clang's flags for another
    machine than these."""
    compiler_key, level, link, *bits = name.split("-")
    compiler, cpp = COMPILERS[compiler_key]
    machine = cross or (M32 if bits else [])
    if cross or not run.starts_programs:
        pass
    elif bits:
        require_m32()
    else:
        require_x86_64()
    source = run.dir / ("emitter.cpp" if cpp else "emitter.c")
    # i386 code that looks up its thread-local block keeps two registers more.
    spare = 12 if not bits else 2 if link.endswith("ld") else 3
    source.write_text(emitgen.program(seed=name, cpp=cpp, address_registers=spare))
    flags = [f"-{level}", "-pthread", *LINKS[link], *machine]
    entry = run.build("main.o", ["truth_main.c"], [f"-{level}", "-fPIC", "-c", *machine], compiler if cross else "gcc")
    if not link.startswith("shared"):
        program = run.build("emitter", [source, entry], flags, compiler)
        return program, program
    library = run.build("libemitter.so", [source], [*flags, "-shared"], compiler)
    program = run.build("emitter", [entry, library], [*flags, f"-Wl,-rpath,{run.dir}"], compiler)
    return program, library


def build_forms(run, i386, flags):
    """The program of hand-made notes."""
    first, second = run.dir / "forms.c", run.dir / "forms_second.c"
    first.write_text(formgen.program(i386))
    second.write_text(formgen.SECOND_UNIT)
    return run.build("forms", [first, second], ["-O1", *flags])
