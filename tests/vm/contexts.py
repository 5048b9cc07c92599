# SPDX-License-Identifier: BSD-2-Clause
"""The trace and span that threads work for (docs/trace-context.md), in a guest: what usdt-trace shows of each hit is what the
thread says it had published."""

import pathlib
import sys
import tempfile

from checks import Cell, cross_flags, libraries

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "live/event"))
import context_program  # finds the harness as checks.py has found it
import harness

THREADS = 4
FIRST, HITS = 10, 500  # of each thread: again and again until some are known, and then
TRIES = 60
ROUNDS, MILLISECONDS = 4, 400
STATIC = "static program"
# Where guests have a dynamic linker, too: the variable is in the program, or in a library whose block is at one distance for
# all threads, or finds room there when it comes, or has a place of its own for each.
FORMS = {"arm64": ["program", "library", "opened library near the thread pointer", "opened library"]}
PRINTED = "--print 'arg0, arg1, trace_id, span_id' --format json"
# What the tool has to say where a kernel has nothing of it.
NO_BTF, OLD = "needs CONFIG_DEBUG_INFO_BTF", "need Linux 5.12"


class Programs:
    """The writers of one architecture."""

    def __init__(self, arch):
        self._scratch = tempfile.TemporaryDirectory(prefix="usdt-contexts-")
        self.arch = arch
        if arch == "arm64":
            self.compiler = ["clang", *cross_flags(arch)]
        else:
            self.compiler = ["gcc", *(["-m32"] if arch == "i386" else []), "-idirafter", "/usr/include/x86_64-linux-gnu"]
        self.writers = {form: self._files(form, context_program.build) for form in [STATIC, *FORMS.get(arch, [])]}
        self.first = {form: self._files(form, context_program.build_first_thread)
                      for form in (STATIC, "program") if form in self.writers}

    def _files(self, form, build):
        directory = pathlib.Path(tempfile.mkdtemp(dir=self._scratch.name))
        build(directory, form, self.compiler)
        home = f"lab/{directory.name}"
        needed = {} if form == STATIC else libraries(self.arch, self.arch)
        return home, {f"{home}/{path.name}": path for path in directory.iterdir()} | needed

    def checks(self, bin_dir, kernel):
        own = [Writer(bin_dir, kernel, form, *files) for form, files in self.writers.items()]
        own += [FirstThread(bin_dir, kernel, form, *files) for form, files in self.first.items()]
        if kernel.arch == "arm64":
            own.append(FirstThread(bin_dir, kernel, STATIC, *self.first[STATIC], registers=False))
        return own

    def close(self):
        self._scratch.cleanup()


class _Traced:
    """A program, traced; what was seen is compared here with its own log."""

    def __init__(self, bin_dir, kernel, name, home, files, command):
        self.kernel, self.name = kernel, f"contexts: {name}"
        self.base = self.name.replace(": ", ".").replace(",", "").replace(" ", "-")
        self.files = {"lab/usdt-trace": bin_dir / "usdt-trace", **files}
        self.steps = [(240, f"cd /{home}; {command(f'/out/{self.base}')}")]

    def judge(self, outcomes, out, rows):
        try:
            texts = [(out / f"{self.base}.{kind}").read_text() for kind in ("json", "err")]
            result = harness.Result(outcomes[0].status, *texts)
            words = self._refused(result, rows) or self._judged(result, out / f"{self.base}.log")
        except (harness.Failure, OSError) as failure:
            return {self.name: Cell("FAIL", f"{failure}\n{outcomes[0].output[-600:]}")}
        return {self.name: Cell(f"{words} ({outcomes[0].seconds:.0f} s)")}

    def _refused(self, result, rows):
        """Nothing; or that the tool says why this kernel has none."""
        has_btf = rows.get("features: kernel_btf", Cell("")).text != "no"
        why = NO_BTF if not has_btf else OLD if self.kernel.version == "5.10" else ""
        if why:
            harness.check(result.code not in (0, None) and why in result.stderr, f"no refusal '{why}'\n{result.describe()}")
            return f"refused, {why}"
        result.check_code(0)
        return ""


class Writer(_Traced):
    """Threads, traced by their process; a library that is opened comes while they are."""

    def __init__(self, bin_dir, kernel, form, home, files):
        self.opens = context_program.is_opened(form)
        super().__init__(bin_dir, kernel, form, home, files, lambda out: self._command(home, out))

    @staticmethod
    def _command(home, out):
        said = "until [ $(grep -c {} said) = {} ]; do sleep 0.1; done"
        known = f"grep -q '\"[0-9a-f]\\{{32\\}}\"' {out}.json"
        steps = ["mkfifo orders", f"./writer {THREADS} {out}.log <orders >said & writer=$!", "exec 3>orders",
                 said.format("ready", 1),
                 f"usdt-trace 'usdt:/{home}/writer:writer:*' -p $writer {PRINTED} >{out}.json 2>{out}.err & tool=$!",
                 f"until grep -q '^attached' {out}.err || ! kill -0 $tool; do sleep 0.2; done",
                 f"tries=0; while kill -0 $tool && [ $tries -lt {TRIES} ] && ! {known}; do tries=$((tries + 1))",
                 f"echo {FIRST} >&3", said.format("done", "$tries"), "sleep 0.3; done",
                 f"echo {HITS} >&3", said.format("done", "$((tries + 1))"),
                 "kill -INT $tool", "wait $tool; status=$?", "kill $writer", "exit $status"]
        return "; ".join(steps)

    def _judged(self, result, log):
        logged = sum(len(log.with_name(f"{log.name}.{thread}").read_text().splitlines()) for thread in range(THREADS))
        context_program.check_hits(result.events, log, logged, logged - THREADS * HITS if self.opens else 0)
        return f"{logged} hits"


class FirstThread(_Traced):
    """A first thread, from its beginning. On arm64 the kernel has its pointer late, unless the C library registers an area by
    rseq(2)."""

    def __init__(self, bin_dir, kernel, form, home, files, registers=True):
        self.registers = registers
        self.late = kernel.arch == "arm64"
        name = f"first thread of a {form}" + ("" if registers else ", without rseq")
        tunables = "" if registers else "env GLIBC_TUNABLES=glibc.pthread.rseq=0 "
        super().__init__(bin_dir, kernel, name, home, files, lambda out: (
            f"usdt-trace 'usdt:/{home}/first:writer:*' {PRINTED} -- {tunables}/{home}/first {out}.log {ROUNDS} {MILLISECONDS} "
            f">{out}.json 2>{out}.err"))

    def _judged(self, result, log):
        errors = [context_program.EARLY, *([context_program.LATE] if self.late else [])]
        counted = context_program.check_first_thread(result.events, log, self.registers, errors)
        return f"{len(result.events)} hits, {counted} {'' if self.registers else 'un'}known before it waited"
