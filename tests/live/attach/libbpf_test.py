#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs written for libbpf's USDT interface, on this library: compiled against our header in libbpf's name, and
compiled with libbpf's own and attached as they are. The judge is what the traced program says it passed."""

import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # finds the harness  # noqa: E402
from harness import (Skip, check, check_equal, main, require_file, require_m32, require_program, require_root,  # noqa: E402
                     require_x86_64, scenario, wait_line, with_long)

SOURCES = puppet.HERE / "attach/libbpf"
BPF = puppet.HERE.parent.parent / "bpf" / "include" / "usdt" / "bpf"
# sys/sdt.h is an architecture's header on Debian although it is the same for all; found last, it serves -m32 too.
M32 = ["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]
USER_COOKIE = 77
EINVAL, ENOENT = -22, -2
HIT_ARGS = 24  # as in hits.h


def compile_bpf(run, name, source, flags, machine="x86"):
    require_program("clang", "gcc")
    triple = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True).stdout.strip()
    out = run.dir / f"{name}.bpf.o"
    argv = ["clang", "-target", "bpf", "-mcpu=v3", f"-D__TARGET_ARCH_{machine}", "-g", "-O2", "-Wall", "-Werror", *flags,
            "-idirafter", f"/usr/include/{triple}", "-c", str(SOURCES / source), "-o", str(out)]
    built = subprocess.run(argv, capture_output=True, text=True)
    check(built.returncode == 0, f"{' '.join(argv)}\n{built.stderr}")
    return out


def on_our_header(run, *flags, machine="x86"):
    return compile_bpf(run, f"ours-{machine}", "hits.bpf.c", [f"-I{BPF / 'compat'}", *flags], machine)


def with_libbpfs_header(run, *flags):
    require_file("/usr/include/bpf/usdt.bpf.h")
    has_size = "bpf_usdt_arg_size" in pathlib.Path("/usr/include/bpf/usdt.bpf.h").read_text()
    return compile_bpf(run, "theirs", "hits.bpf.c", [*flags, *([] if has_size else ["-DWITHOUT_ARG_SIZE"])])


# --- the traced programs --------------------------------------------------------------------------------------------


def many_specs(run, sites, flags=()):
    """A program with `sites` sites of one probe, no two with the same arguments; its log is a line for each."""
    probes = "".join(f"  DTRACE_PROBE3(many, hit, {n}, base + {n}, table[{n}]);\n" for n in range(sites))
    source = run.dir / "many.c"
    source.write_text(f"""
#include <stdio.h>
#include <sys/sdt.h>
int table[{sites}];
__attribute__((noipa)) static void pass(long base, const int* table) {{
{probes}}}
int main(void) {{
  for (int n = 0; n < {sites}; n++) table[n] = -7 * n;
  const long base = -(1l << 8 * sizeof(long) / 2);
  pass(base, table);
  for (int n = 0; n < {sites}; n++) printf("[%d, %ld, %d]\\n", n, base + n, table[n]);
}}
""")
    return run.build("many", [source], ["-O2", *flags])


def twenty(run):
    require_x86_64()
    return run.build("twenty", [SOURCES / "twenty.c"], ["-O2", "-no-pie"])


# --- attaching ------------------------------------------------------------------------------------------------------


class Attached:
    """attach-hits, waiting for hits."""

    def __init__(self, run, *words):
        require_root()
        tool = pathlib.Path(run.tool).parent / "attach-hits"
        check(tool.exists(), f"{tool} is not built")
        self.process = run.start(tool, *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 bufsize=0)

    def wait_attached(self):
        self.said = wait_line(self.process)
        check(self.said.startswith("attached"), self.said)
        return self

    def links(self):
        """The kernel's own word for what the process holds: the types of its BPF links."""
        kinds = []
        for info in pathlib.Path(f"/proc/{self.process.pid}/fdinfo").iterdir():
            kinds += re.findall(r"^link_type:\t(\w+)", info.read_text(), re.MULTILINE)
        return kinds

    def hits(self):
        out, err = self.process.communicate(timeout=110)
        check_equal(self.process.returncode, 0, f"exit code of attach-hits\n{err.decode()}")
        return [json.loads(line) for line in out.decode().splitlines()]

    def refusal(self):
        _, err = self.process.communicate(timeout=110)
        check_equal(self.process.returncode, 1, f"exit code of attach-hits\n{err.decode()}")
        return err.decode().strip()


def passed_by(program):
    """Runs a traced program; what it says it passed, by hits."""
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=30)
    check_equal(done.returncode, 0, "exit code of the traced program")
    return [json.loads(line) for line in done.stdout.splitlines()]


def trace(run, bpf_object, program, probe, function="on_hit", options=()):
    """(what the program passed, what was recorded, the process that attached)"""
    attached = Attached(run, "usdt", bpf_object, function, f"usdt:{program}:{probe}", *options).wait_attached()
    links = attached.links()
    passed = passed_by(program)
    return passed, attached.hits(), links, attached.said


def check_hit(hit, values, unreadable=()):
    """`values` are those of the program; of those numbered in `unreadable` there is an error."""
    count = len(values)
    errors = [EINVAL if n in unreadable or values[n] is None else 0 for n in range(count)]
    seen = [0 if errors[n] else values[n] for n in range(count)]
    check_equal(hit["count"], count, "bpf_usdt_arg_cnt")
    check_equal(hit["errors"], errors + [ENOENT] * (HIT_ARGS - count), "answers of bpf_usdt_arg")
    check_equal(hit["values"], seen + [0] * (HIT_ARGS - count), "values of bpf_usdt_arg")
    check_equal(hit["cookie"], USER_COOKIE, "bpf_usdt_cookie")


def check_many(passed, hits):
    check_equal(len(hits), len(passed), "hits")
    for values, hit in zip(passed, hits):
        check_hit(hit, values)
        check_equal(hit["params"], values, "parameters of BPF_USDT")


# --- scenarios ------------------------------------------------------------------------------------------------------


@scenario
def a_program_for_libbpf_compiles_for_each_machine_with_and_without_vmlinux_h(run):
    for machine in ("x86", "arm64", "i386"):
        for flags in ([], ["-DWITH_VMLINUX"]):
            on_our_header(run, "-DWITH_SLEEPABLE", *flags, machine=machine)


@scenario
def a_skeleton_bpftool_makes_of_a_program_on_our_header_compiles_as_c_and_as_c_plus_plus(run):
    require_program("bpftool")
    require_file("/usr/include/bpf/libbpf.h")
    written_anew = run.dir / "anew.bpf.c"
    written_anew.write_text('#include <usdt/bpf/usdt.bpf.h>\nUSDT_PROG(on_hit, int a) { return 0; }\n'
                            'char LICENSE[] SEC("license") = "GPL";\n')
    for bpf_object in (on_our_header(run), compile_bpf(run, "anew", written_anew, [f"-I{BPF.parent.parent}"])):
        header = subprocess.run(["bpftool", "gen", "skeleton", str(bpf_object), "name", "hits"], capture_output=True,
                                text=True, check=True).stdout
        (run.dir / "hits.skel.h").write_text(header)
        for compiler, language in (("gcc", "c"), ("g++", "c++")):
            source = run.dir / f"skeleton.{language}"
            source.write_text('#include "hits.skel.h"\n'
                              "int main(void) { struct hits* made = hits__open(); return made ? 0 : 1; }\n")
            built = subprocess.run([compiler, "-x", language, str(source), "-o", str(run.dir / "skeleton"), "-lbpf"],
                                   capture_output=True, text=True)
            check(built.returncode == 0, f"{bpf_object.name} as {language}:\n{built.stderr[:2000]}")
            check_equal(subprocess.run([str(run.dir / "skeleton")]).returncode, 0, "exit code of what opens it")


@scenario
def three_hundred_specs_of_one_probe_are_attached_by_one_link_whoever_s_header(run):
    program = many_specs(run, 300)
    for bpf_object in (on_our_header(run), with_libbpfs_header(run)):
        passed, hits, links, _ = trace(run, bpf_object, program, "many:hit", options=("table", ))
        check_equal(len(passed), 300, "lines of the program's log")
        check_many(passed, hits)
        if "uprobe_multi" not in links:
            raise Skip(f"this kernel has no uprobe_multi: {len(links)} links")
        check_equal(links, ["uprobe_multi"], "links")


# How many specs libbpf's header has room for, and more than that. It attaches each site until there is no room, and the kernel
# takes 45 ms or more to let go of each.
TOO_MANY = with_long((256, 300), (16, 20))


@scenario
def libbpf_itself_refuses_more_specs_than_its_header_has_room_for(run):
    room, specs = TOO_MANY
    program = many_specs(run, specs)
    bpf_object = with_libbpfs_header(run, f"-DBPF_USDT_MAX_SPEC_CNT={room}")
    attached = Attached(run, "libbpf", bpf_object, "on_hit", program, "many", "hit")
    check_equal(attached.refusal(), "libbpf: E2BIG", "libbpf's answer")


@scenario
def where_libbpf_attaches_its_object_it_records_the_same(run):
    program = many_specs(run, 50)
    bpf_object = with_libbpfs_header(run)
    attached = Attached(run, "libbpf", bpf_object, "on_hit", program, "many", "hit").wait_attached()
    passed = passed_by(program)
    theirs = attached.hits()
    check_many(passed, theirs)
    _, ours, _, _ = trace(run, bpf_object, program, "many:hit")
    check_equal(ours, theirs, "hits")


@scenario
def twenty_arguments_are_read_by_a_program_on_our_header(run):
    passed, hits, _, _ = trace(run, on_our_header(run), twenty(run), "twenty:hit")
    check_equal(len(hits), 1, "hits")
    check_hit(hits[0], passed[0])
    check_equal(hits[0]["sizes"][:20], [4, 8, 1, 1, 8, 8, 8, 4, 2, 8, 0, 2, 4, 4, 8, 8, 1, 4, 8, 8], "sizes")
    check_equal(hits[0]["sizes"][20:], [ENOENT] * (HIT_ARGS - 20), "sizes of arguments there are not")


@scenario
def twelve_of_twenty_arguments_are_read_by_an_object_with_libbpf_s_header(run):
    header = pathlib.Path("/usr/include/bpf/usdt.bpf.h")
    require_file(header)
    no_form = set() if "BPF_USDT_ARG_SIB" in header.read_text() else {6, 9}
    passed, hits, _, _ = trace(run, with_libbpfs_header(run), twenty(run), "twenty:hit")
    check_equal(len(hits), 1, "hits")
    check_hit(hits[0], passed[0][:12], no_form)


@scenario
def an_object_with_the_header_of_libbpf_1_7_gets_index_registers_where_it_has_them(run):
    bpf_object = compile_bpf(run, "indexed", "indexed.bpf.c", [])
    passed, hits, _, _ = trace(run, bpf_object, twenty(run), "twenty:hit")
    constant, register, memory, indexed, unknown = 0, 1, 2, 3, 127
    check_equal(len(hits), 1, "hits")
    check_equal(hits[0]["errors"][:12], [constant, register, register, register, memory, unknown, indexed, memory, memory,
                                         indexed, unknown, register], "types")
    check_equal(hits[0]["sizes"][:12], [4, 8, 1, 1, 8, 8, 8, 4, 2, 8, 0, 2], "sizes")
    for n in (6, 9):
        check_equal(hits[0]["values"][n], passed[0][n], f"value of argument {n}, which is indexed")
    check_equal([hits[0]["count"], hits[0]["cookie"]], [12, USER_COOKIE], "number of arguments, and user cookie")


@scenario
def an_indexed_symbol_of_a_program_that_is_not_position_independent_is_read_whoever_s_header(run):
    require_x86_64()
    source = run.dir / "symbol.c"
    source.write_text("""
#define SDT_USE_VARIADIC 1
#include <stdio.h>
#include <sys/sdt.h>
long nums[] = {11, -22, 33};
int main(void) {
  __asm__ volatile(STAP_PROBE_ASM(indexed, symbol, -8@nums(%%rax,%%rax) -8@-8+nums(%%rax,%%rax,1))
                   : : "a"(4l) : "memory");
  printf("[%ld, %ld]\\n", nums[1], nums[0]);
}
""")
    program = run.build("symbol", [source], ["-O1", "-no-pie", "-std=gnu99"])
    passed, hits, _, _ = trace(run, on_our_header(run), program, "indexed:symbol")
    check_equal(len(hits), 1, "hits")
    check_hit(hits[0], passed[0])
    _, hits, _, _ = trace(run, compile_bpf(run, "indexed", "indexed.bpf.c", []), program, "indexed:symbol")
    check_equal([hits[0]["errors"][:2], hits[0]["values"][:2]], [[3, 3], passed[0]], "types and values")


@scenario
def each_carrier_serves_a_program_on_our_header(run):
    program, bpf_object = many_specs(run, 5), on_our_header(run)
    for carrier in ("table", "cookie", "per-link", "ip-hash"):
        passed, hits, _, said = trace(run, bpf_object, program, "many:hit", options=(carrier, ))
        check(carrier in said, f"{carrier} asked for: {said}")
        check_many(passed, hits)


@scenario
def a_sleepable_usdt_program_runs(run):
    program = many_specs(run, 5)
    for bpf_object in (on_our_header(run, "-DWITH_SLEEPABLE"), with_libbpfs_header(run, "-DWITH_SLEEPABLE")):
        passed, hits, _, _ = trace(run, bpf_object, program, "many:hit", "on_hit_sleepable")
        check_many(passed, hits)


@scenario
def a_32_bit_program_is_traced_by_both_kinds_of_object(run):
    require_x86_64()
    require_m32()
    program = many_specs(run, 5, M32)
    for bpf_object in (on_our_header(run), with_libbpfs_header(run)):
        passed, hits, _, _ = trace(run, bpf_object, program, "many:hit")
        check_many(passed, hits)


@scenario
def both_kinds_of_object_are_attached_by_perf_events_too(run):
    program = many_specs(run, 3)
    for bpf_object in (on_our_header(run), with_libbpfs_header(run)):
        passed, hits, links, _ = trace(run, bpf_object, program, "many:hit", options=("table", "perf_uprobe"))
        check_many(passed, hits)
        check("uprobe_multi" not in links, f"links: {links}")


@scenario
def an_object_with_libbpf_s_header_refuses_other_carriers_by_name(run):
    program, bpf_object = many_specs(run, 3), with_libbpfs_header(run)
    for carrier in ("cookie", "per-link", "ip-hash"):
        said = Attached(run, "usdt", bpf_object, "on_hit", f"usdt:{program}:many:hit", carrier).refusal()
        check(said.startswith(f"carrier {carrier}: ") and "libbpf" in said and "compat" in said, said)


def refusal_of_object_with(run, declarations):
    """What is said of a program that only has these declarations beside it."""
    program = many_specs(run, 3)
    source = run.dir / "bare.bpf.c"
    source.write_text(f"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
{declarations}
SEC("usdt") int on_hit(void *ctx) {{ return 0; }}
char LICENSE[] SEC("license") = "GPL";
""")
    bpf_object = compile_bpf(run, "bare", source, [f"-I{BPF.parent.parent}"])
    return Attached(run, "usdt", bpf_object, "on_hit", f"usdt:{program}:many:hit").refusal()


LIBBPF_TABLE_OF_NUMBERS = """
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 256);
  __type(key, int);
  __type(value, __u64);
} __bpf_usdt_specs SEC(".maps");
"""


@scenario
def an_object_without_any_spec_table_is_refused_with_the_header_it_needs(run):
    said = refusal_of_object_with(run, "")
    check("no spec table" in said and "usdt/bpf/usdt.bpf.h" in said, said)


@scenario
def an_object_whose_libbpf_table_holds_something_else_is_refused(run):
    said = refusal_of_object_with(run, LIBBPF_TABLE_OF_NUMBERS)
    check("no struct __bpf_usdt_spec" in said, said)


@scenario
def an_object_with_both_tables_is_refused(run):
    said = refusal_of_object_with(run, "#include <usdt/bpf/usdt.bpf.h>" + LIBBPF_TABLE_OF_NUMBERS)
    check("two spec tables" in said, said)


@scenario
def libbpf_attaches_to_probes_that_were_made_at_run_time(run):
    """By the path of the process's descriptor; twelve arguments, six of them on the stack of x86-64."""
    require_x86_64()
    require_root()
    log = run.dir / "said"
    program = run.start(run.tool.parent / "runtime-probes", "values", 6, log, stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, bufsize=0)
    files = pathlib.Path(f"/proc/{int(wait_line(program))}/fd")
    [file] = [fd for fd in files.iterdir() if str(fd.readlink()).startswith("/memfd:usdt-typed")]
    attached = Attached(run, "libbpf", with_libbpfs_header(run), "on_hit", file, "typed", "twelve").wait_attached()
    program.stdin.write(b"\n")
    check_equal(program.wait(30), 0, "the program")
    passed = [json.loads(line.split(" ", 1)[1]) for line in log.read_text().splitlines() if line.startswith("twelve")]
    hits = attached.hits()
    check_equal(len(hits), len(passed), "hits")
    for hit, values in zip(hits, passed):
        check_equal(([value % 2**64 for value in hit["values"][:12]], hit["count"]), (values, 12), "values")


if __name__ == "__main__":
    main()
