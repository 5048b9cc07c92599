#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What arguments lead to: members, elements, texts. members.cpp says each value itself, by the expression for it."""

import collections
import pathlib
import platform
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import attach_at_once, check, check_equal, main, require_file, require_program, require_root, scenario, with_long  # noqa: E402
from said import compare, output_of, quiet, said_by  # noqa: E402

attach_at_once()

C_COMPILERS = ["gcc", "clang"]
CPP_COMPILERS = ["g++", "clang++"]
LEVELS = with_long(["-O0", "-O1", "-O2", "-O3", "-Os"], ["-O0", "-O2"])
METHOD = "net::Server::handle"


def build(run, compiler, level, flags=("-g",)):
    require_root()
    language = ["-std=c++17"] if compiler in CPP_COMPILERS else ["-x", "c"]
    name = f"members-{compiler}{level}{''.join(flags)}".replace("+", "p").replace("=", "-")
    return run.build(name, [], [level, "-w", *flags, *language, str(HERE / "resolve/members.cpp")], compiler)


@scenario
def what_arguments_lead_to_is_what_the_program_says_whatever_compiler_made_it(run):
    table = {}
    for compiler in C_COMPILERS + CPP_COMPILERS:
        for level in LEVELS:
            program = build(run, compiler, level)
            unreadable = collections.Counter()
            compare(run, program, "uprobe", "by_pointer", "by_pointer", unreadable)
            compare(run, program, "uprobe", "by_value", "by_value", unreadable)
            compare(run, program, "uretprobe", "result", "result", unreadable)
            compare(run, program, "uprobe", "returned_on_top", "returned_on_top", unreadable)
            compare(run, program, "uprobe", "nothing_returned", "nothing_returned", unreadable)
            if platform.machine() == "x86_64":
                compare(run, program, "uprobe", "as_microsoft", "as_microsoft", unreadable)
                compare(run, program, "uretprobe", "as_microsoft", "microsofts_end", unreadable)
            if compiler in CPP_COMPILERS:
                compare(run, program, "uprobe", METHOD, "handle", unreadable)
                compare(run, program, "uprobe", "referred", "referred", unreadable)
                compare(run, program, "uprobe", "behind_unused", "behind_unused", unreadable)
                compare(run, program, "uprobe", "of_several", "of_several", unreadable)
            for reason in unreadable:
                check("by_pointer" not in reason and "result" not in reason, f"{compiler} {level}: {reason}")
            table[compiler, level] = unreadable
    print("values that could not be read, all others were right:")
    for (compiler, level), unreadable in table.items():
        print(f"  {compiler:8} {level} {sum(unreadable.values()):3}", "; ".join(sorted(unreadable)))


@scenario
def a_member_that_two_base_classes_have_is_neither(run):
    program = build(run, "g++", "-O1")
    refused = run.trace(f"uprobe:{program}:of_several", "--print", "both.kind", command=quiet(program))
    refused.check_code(2)
    check("'kind' is a member of several base classes" in refused.stderr, refused.stderr)
    shown = run.trace(f"uprobe:{program}:of_several", "--print", "both, *own", command=quiet(program))
    check_equal(shown.events[1]["args"], [{"Left::kind": 1, "left": 2, "Right::kind": 3, "right": 4},
                                          {"Left::kind": 1, "left": 2, "Right::kind": 3, "right": 70, "kind": 5}],
                "as objects, in which each has a name of its own")


@scenario
def programs_of_32_bits_and_dwarf_4_are_followed_too(run):
    for flags in (("-g", "-m32"), ("-gdwarf-4",), ("-g", "-fdebug-types-section")):
        for compiler in ("gcc", "g++"):
            unreadable = collections.Counter()
            program = build(run, compiler, "-O1", flags)
            compare(run, program, "uprobe", "by_pointer", "by_pointer", unreadable)
            check_equal(dict(unreadable), {}, f"{compiler} {flags}")


@scenario
def questions_take_a_dot_behind_a_pointer_and_what_is_before_it(run):
    program = build(run, "gcc", "-O1")
    said = said_by(output_of(program))["by_pointer"]
    asked = ["req.next.next.peer.port", "count[-1]", "req.next->chosen[-1].port", "str(words[-1])"]
    wanted = collections.Counter(tuple(call[each].strip('"') for each in asked) for call in said)
    last = int(said[-1]["req.id"])
    result = run.trace(f"uprobe:{program}:by_pointer", "--by", ", ".join(asked), command=quiet(program))
    table = next(record for record in result.records if record["type"] == "table")
    check_equal({tuple(map(str, row["key"])): row["count"] for row in table["rows"]}, dict(wanted), "as keys")
    for question in (f"req.id == {last}", f"req.id == {last} && count[-1] == {said[0]['count[-1]']}"):
        filtered = run.trace(f"uprobe:{program}:by_pointer", "--where", question, command=quiet(program))
        check_equal(len(filtered.events), 1, question)


@scenario
def every_carrier_reads_the_same(run):
    program = build(run, "gcc", "-O1")
    for carrier in ("per-link", "table", "ip-hash"):
        said = said_by(output_of(program))["by_pointer"]
        few = ["req->next->next->peer.port", "req->small", "p->odder"]
        result = run.trace(f"uprobe:{program}:by_pointer", "--print", ", ".join(few), "--carrier", carrier,
                           command=quiet(program))
        result.check_code(0)
        for event, call in zip(result.events, said):
            check_equal([str(value) for value in event["args"]], [call[each] for each in few], carrier)


@scenario
def memory_behind_arguments_is_read_by_types_of_c_where_no_others_are_known(run):
    source = run.dir / "untyped.c"
    source.write_text("""
        #include <sys/sdt.h>
        struct item { long number; const char* name; void* self; short less; unsigned char byte; double real; char within[8]; };
        int main(void) {
          struct item item = {-5, "first", &item, -7, 200, 2.5, "within"};
          DTRACE_PROBE1(untyped, item, &item);
          DTRACE_PROBE1(untyped, item, 0);
          return 0;
        }""")
    for flags in ((), ("-m32", "-idirafter", "/usr/include/x86_64-linux-gnu")):
        word, real = (4, 16) if flags else (8, 32)
        small = 3 * word
        asked = {"*(long *)arg0": -5, "str(((char **)arg0)[1])": "first", "str(((const char **)arg0)[1])": "first",
                 "*((volatile int const *)arg0)": -5, "*((char **)arg0)[1]": ord("f"),
                 "((unsigned long int *)arg0)[0]": 2 ** (8 * word) - 5, "*((long **)arg0)[2]": -5,
                 f"((short *)arg0)[{small // 2}]": -7, f"((u16 *)arg0)[{small // 2}]": 2**16 - 7,
                 f"((uint8_t *)arg0)[{small + 2}]": 200, f"((signed char *)arg0)[{small + 2}]": 200 - 256,
                 f"((double *)arg0)[{real // 8}]": 2.5, f"str(&((char *)arg0)[{real // 8 * 8 + 8}])": "within"}
        program = run.build(f"untyped{len(flags)}", [source], ["-O1", *flags])
        probe = f"usdt:{program}:untyped:item"
        result = run.trace(probe, "--print", ", ".join(asked), command=quiet(program))
        result.check_code(0)
        shown = [dict(zip(asked, event["args"])) for event in result.events]
        check_equal(shown[0], asked, f"values {flags}")
        check_equal({value.get("error", "") != "" for value in shown[1].values()}, {True}, f"behind a null pointer: {shown[1]}")
        counted = run.trace(probe, "--by", f"str(((char **)arg0)[1]), *(long *)arg0, {list(asked)[-1]}", command=quiet(program))
        table = next(record for record in counted.records if record["type"] == "table")
        check_equal(table["rows"], [{"key": ["first", -5, "within"], "count": 1}], "as keys")
        check_equal(counted.summary["undecided"], 1, "the one that has no keys")
    refused = run.trace(probe, "--print", "((struct item *)arg0)->number", command=quiet(program))
    refused.check_code(2)
    check("no types are known here but C's own" in refused.stderr, refused.stderr)


@scenario
def a_step_that_cannot_be_taken_is_named(run):
    source = run.dir / "steps.c"
    source.write_text("""
        struct node { int number; struct node* next; };
        __attribute__((noinline)) void visit(struct node* node) { __asm__ volatile("" : : "r"(node) : "memory"); }
        int main(void) {
          struct node last = {1, 0}, wild = {2, (struct node*)0x10000}, first = {3, &last};
          visit(&first);
          visit(&last);
          visit(&wild);
          visit(0);
          return 0;
        }""")
    program = run.build("steps", [source], ["-g", "-O1"])
    result = run.trace(f"uprobe:{program}:visit", "--print", "node->next->number, node->number", command=quiet(program))
    result.check_code(0)
    values = [event["args"] for event in result.events]
    check_equal(values[0], [1, 3], "both can be read")
    check_equal(values[1], [{"error": "node->next is null"}, 1], "a null pointer")
    check_equal(values[2], [{"error": "node->next->number: memory could not be read (EFAULT: unmapped or paged out)"}, 2],
                "a wild pointer")
    check_equal(values[3], [{"error": "node is null"}] * 2, "the argument itself")


@scenario
def structs_are_shown_with_their_members(run):
    program = build(run, "g++", "-O0")
    result = run.trace(f"uprobe:{program}:by_pointer", "--print", "req->peer, *p, req->headers[1], req->grid",
                       command=quiet(program))
    check_equal(result.events[0]["args"][0], {"port": 8080, "state": 3, "load": 0.25}, "a struct")
    check_equal(result.events[0]["args"][1]["odder"], -98765432101, "a packed one")
    check_equal(result.events[0]["args"][2]["name"], "ends", "a text in it")
    check_equal(result.events[0]["args"][3][1], {"error": "array of 12 bytes"}, "an array in an array, too deep")
    deeper = run.trace(f"uprobe:{program}:by_pointer", "--print", "req->grid", "--depth", "2", command=quiet(program))
    check_equal(deeper.events[2]["args"], [[[0, 0, 0], [0, 0, 62]]], "deeper")
    by_itself = run.trace(f"uprobe:{program}:by_value", command=quiet(program))
    check_equal(by_itself.events[1]["args"][0], {"first": 1, "second": -2}, "an argument, unasked")
    text = subprocess.run(run.tool_argv(f"uprobe:{program}:by_pointer", ["--print", "req->peer"], quiet(program), "text"),
                          capture_output=True, text=True)
    check("req->peer={port=8080 state=BUSY load=0.25}" in text.stdout, text.stdout)


@scenario
def of_a_large_struct_as_much_is_shown_as_a_verifier_takes(run):
    require_root()
    members = ", ".join(f"m{i}" for i in range(200))
    source = run.dir / "large.c"
    source.write_text(f"""
        struct large {{ long {members}; }};
        __attribute__((noinline)) void take(struct large *all) {{ asm volatile("" : : "r"(all) : "memory"); }}
        int main(void) {{
          static struct large all;
          for (int i = 0; i < 200; i++) (&all.m0)[i] = 1000 + i;
          take(&all);
        }}""")
    program = run.build("large", [], ["-g", "-O1", str(source)])
    result = run.trace(f"uprobe:{program}:take", "--print", "*all", command=[program])
    result.check_code(0)
    shown = result.events[0]["args"][0]
    left_out = shown.pop("...")["error"]
    check(len(shown) > 40, result.describe())
    check_equal(shown, {f"m{i}": 1000 + i for i in range(len(shown))}, "members")
    check_equal(left_out, f"{200 - len(shown)} more", "left out")


@scenario
def several_large_structs_of_a_function_are_shown_at_once(run):
    require_root()
    members = ", ".join(f"m{i}" for i in range(48))
    source = run.dir / "several.c"
    source.write_text(f"""
        struct large {{ long {members}; }};
        __attribute__((noinline)) void take(struct large *a, struct large *b, struct large *c)
        {{ asm volatile("" : : "r"(a), "r"(b), "r"(c) : "memory"); }}
        int main(void) {{
          static struct large all[3];
          for (int n = 0; n < 3; n++) for (int i = 0; i < 48; i++) (&all[n].m0)[i] = 1000 * n + i;
          take(&all[0], &all[1], &all[2]);
        }}""")
    program = run.build("several", [], ["-g", "-O1", str(source)])
    result = run.trace(f"uprobe:{program}:take", "--print", "*a, *b, *c", command=[program])
    result.check_code(0)
    for number, shown in enumerate(result.events[0]["args"]):
        check_equal(shown, {f"m{i}": 1000 * number + i for i in range(48)}, f"struct {number}")


@scenario
def bytes_are_numbers_and_only_arrays_of_char_are_texts(run):
    """A NUL among bytes ends nothing."""
    source = run.dir / "bytes.c"
    source.write_text("""
        #include <stdint.h>
        typedef unsigned char octet;
        struct frame {
          unsigned char mac[6]; uint8_t raw[5]; signed char deltas[4]; octet key[3]; _Bool seen[2]; const volatile unsigned char fixed[3];
          char name[8]; const char again[4]; unsigned char grid[2][3];
        };
        __attribute__((noinline)) void send(struct frame* frame, struct frame copy) {
          __asm__ volatile("" : : "r"(frame), "r"(&copy) : "memory");
        }
        int main(void) {
          struct frame frame = {{2, 0, 94, 16, 0, 255}, {0, 65, 66, 0, 1}, {-1, 0, 65, -128}, {65, 66, 0}, {1, 0}, {0, 7, 0},
                                "eth0", "abc", {{1, 0, 2}, {0, 65, 0}}};
          send(&frame, frame);
          return 0;
        }""")
    wanted = {"mac": [2, 0, 94, 16, 0, 255], "raw": [0, 65, 66, 0, 1], "deltas": [-1, 0, 65, -128], "key": [65, 66, 0],
              "seen": [True, False], "fixed": [0, 7, 0], "name": "eth0", "again": "abc", "grid": [[1, 0, 2], [0, 65, 0]]}
    for compiler in C_COMPILERS + CPP_COMPILERS:
        language = ["-x", "c++", "-D_Bool=bool"] if compiler in CPP_COMPILERS else []
        program = run.build(f"bytes-{compiler}".replace("+", "p"), [], ["-g", "-O0", *language, str(source)], compiler)
        paths = [f"{root}{name}" for root in ("frame->", "copy.") for name in wanted]
        result = run.trace(f"uprobe:{program}:send", "--print", ", ".join(paths), "--depth", "2", command=[str(program)])
        result.check_code(0)
        check_equal(result.events[0]["args"], list(wanted.values()) * 2, compiler)
        whole = run.trace(f"uprobe:{program}:send", "--print", "*frame", "--depth", "3", command=[str(program)])
        check_equal(whole.events[0]["args"][0], wanted, f"{compiler}: the whole struct")


@scenario
def bytes_of_rust_are_numbers_too(run):
    require_root()
    require_program("rustc")
    source = run.dir / "bytes.rs"
    source.write_text("""
        pub struct Frame { pub mac: [u8; 6], pub deltas: [i8; 3], pub letters: [char; 2] }
        #[inline(never)]
        pub fn send(frame: &Frame) -> u8 { std::hint::black_box(frame).mac[0] }
        fn main() {
            let frame = Frame { mac: [2, 0, 94, 16, 0, 255], deltas: [-1, 0, 65], letters: ['A', 'B'] };
            std::process::exit((send(&frame) - 2).into());
        }""")
    program = run.dir / "bytes-rust"
    subprocess.run(["rustc", "-g", "-C", "opt-level=1", "-o", program, source], check=True, cwd=run.dir)
    result = run.trace(f"uprobe:{program}:bytes::send", "--print", "frame->mac, frame->deltas, frame->letters[1]",
                       command=[str(program)])
    result.check_code(0)
    check_equal(result.events[0]["args"], [[2, 0, 94, 16, 0, 255], [-1, 0, 65], 66], "bytes")


CLASSES = {
    "plain": "long a, b;",
    "with_functions": "long a, b; long sum() const { return a + b; } operator long() { return a; }",
    "with_constructor": "long a, b; with_constructor(long a, long b) : a(a), b(b) {} template <class T> explicit with_constructor(T&) {}",
    "all_defaulted": "long a, b; all_defaulted(long a, long b) : a(a), b(b) {} all_defaulted(const all_defaulted&) = default;"
                     " all_defaulted& operator=(const all_defaulted&) = default; ~all_defaulted() = default;",
    "own_copy": "long a, b; own_copy(long a, long b) : a(a), b(b) {} own_copy(const own_copy& o) : a(o.a), b(o.b) {}",
    "own_destructor": "long a, b; own_destructor(long a, long b) : a(a), b(b) {} ~own_destructor() { a = 0; }",
    "moved_only": "long a, b; moved_only(long a, long b) : a(a), b(b) {} moved_only(const moved_only&) = delete;"
                  " moved_only(moved_only&&) = default;",
    "derived": "derived(long a, long b) : with_constructor(a, b) {}",
    "derived_from_own": "derived_from_own(long a, long b) : own_copy(a, b) {}",
    "with_virtual": "long a, b; with_virtual(long a, long b) : a(a), b(b) {} virtual long f() { return a; }",
    "copy_with_default": "long a, b; copy_with_default(long a, long b) : a(a), b(b) {}"
                         " copy_with_default(const copy_with_default& o, int = 0) : a(o.a), b(o.b) {}",
}
BASES = {"derived": "with_constructor", "derived_from_own": "own_copy"}


@scenario
def objects_of_classes_are_where_the_abi_puts_them(run):
    lines = []
    for name, body in CLASSES.items():
        base = f": public {BASES[name]}" if name in BASES else ""
        lines.append(f"struct {name} {base} {{ {body} }};")
        lines.append(f"__attribute__((noinline)) void take_{name}({name} object, long tail)"
                     f" {{ __asm__ volatile(\"\" : : \"r\"(&object), \"r\"(tail) : \"memory\"); }}")
    calls = "".join(f"take_{name}({name}{{{n} + 100, {n} + 200}}, {n} + 300);" for n, name in enumerate(CLASSES))
    source = run.dir / "classes.cpp"
    source.write_text("\n".join(lines) + f"\nint main() {{ {calls} }}\n")
    for compiler in CPP_COMPILERS:
        for flags in (["-gdwarf-5", "-O0"], ["-gdwarf-5", "-O1"], ["-gdwarf-4", "-O0"], ["-gdwarf-4", "-O2"]):
            program = run.build(f"classes-{compiler}{''.join(flags)}".replace("+", "p"), [source], flags, compiler)
            result = run.trace(f"uprobe:{program}:take_*", "--print", "object.a, object.b, tail", command=[str(program)])
            result.check_code(0)
            check_equal(len(result.events), len(CLASSES), "calls")
            unreadable = []
            for n, (name, event) in enumerate(zip(CLASSES, result.events)):
                for value, base in zip(event["args"], (100, 200, 300)):
                    if isinstance(value, dict):
                        unreadable.append(name)
                    else:
                        check_equal(value, n + base, f"{compiler} {flags} {name}")
            print(f"  {compiler:8} {' '.join(flags)}: not told: {sorted(set(unreadable))}")


@scenario
def structs_of_the_kernel_are_followed_the_same_way(run):
    require_root()
    require_file("/sys/kernel/btf/vmlinux")
    result = run.trace("raw_tp:sched_process_exec", "--print",
                       "p->comm, p->tgid, str(bprm->filename), str(bprm->file->f_path.dentry->d_name.name), old_pid",
                       command=["/bin/sh", "-c", "exec /bin/true"])
    result.check_code(0)
    names = {}
    for event in result.events:
        comm, tgid, path, file, old = event["args"]
        check_equal(comm, event["comm"], "the thread's name")
        check_equal(tgid, old, "the process, which has one thread")
        names[comm] = (path, file)
    check_equal(names["true"][0], "/bin/true", "what it was told to run")
    check_equal(names["true"][1], pathlib.Path("/bin/true").resolve().name, "the file that it is")


@scenario
def what_is_not_there_is_refused_with_what_there_is(run):
    program = build(run, "gcc", "-O1")
    for asked, answer in [
        ("req->peeer", "struct request has no member 'peeer'; it has peer"),
        ("req->peer->port", "req->peer is no pointer but struct peer: write req->peer.port"),
        ("req->headers[3].name", "req->headers has 3 elements, the last one [2]"),
        ("count->x", "*count has no members: it is int"),
        ("req->id.x", "req->id has no members"),
        ("((struct nobody *)req)->x", "nobody"),
        ("rq->id", "no such argument"),
        ("sizeof(struct nobody)", "nobody"),
    ]:
        result = run.trace(f"uprobe:{program}:by_pointer", "--print", asked, command=quiet(program))
        check_equal(result.code, 2, f"{asked}: {result.stderr}")
        check(answer in result.stderr, f"{asked}: {result.stderr}")
    for asked in ("req->", "req-->id", "(req", "*", "req->id)", "req[x]", "arg0x", "((struct request *)", "a" * 3 + "." * 2):
        result = run.trace(f"uprobe:{program}:by_pointer", "--print", asked, command=quiet(program))
        check_equal(result.code, 2, f"{asked}: {result.stderr}")
        check("at column" in result.stderr, f"{asked}: {result.stderr}")


#: Each source file has structs of its own by the same names; the last file only declares them.
SAME_NAMES = {"first": """struct node { int id; int pad; long val; }; struct twin { int a; int b; }; struct same { int x, y; };
static struct node node = { 1, 0, 100 }; static struct twin twin = { 3, 4 }; static struct same same = { 5, 6 };
__attribute__((noinline)) long use_first(void *n, void *t) { __asm__ volatile("" : : "r"(n), "r"(t) : "memory"); return node.id; }
void run_first(void) { use_first(&node, &twin); } void *get_same(void) { return &same; }
""", "second": """struct node { long val; char name[8]; int id; }; struct twin { long both; }; struct same { int x, y; };
static struct node node = { 200, "bee", 2 }; static struct twin twin = { 7 }; struct same other = { 8, 9 };
__attribute__((noinline)) long use_second(void *n, void *t) { __asm__ volatile("" : : "r"(n), "r"(t) : "memory"); return node.id; }
void run_second(void) { use_second(&node, &twin); } void *get_node(void) { return &node; }
""", "third": """struct node; void run_first(void), run_second(void); void *get_node(void), *get_same(void);
__attribute__((noinline)) long use_third(void *n, void *s) { __asm__ volatile("" : : "r"(n), "r"(s) : "memory"); return n != 0; }
int main(void) { run_first(); run_second(); use_third(get_node(), get_same()); return 0; }
"""}


@scenario
def a_name_is_what_the_source_file_of_the_function_means_by_it(run):
    require_root()
    paths = []
    for name, text in SAME_NAMES.items():
        paths.append(run.dir / f"{name}.c")
        paths[-1].write_text(text)
    for compiler, order in (("gcc", paths), ("gcc", paths[::-1]), ("clang", paths)):
        for flags in (["-O0"], ["-O2", "-gdwarf-4"]):
            program = run.build(f"names-{compiler}{order[0].stem}{''.join(flags)}", order, ["-g", *flags], compiler)
            asked = "((struct node *)arg0)->id, sizeof(struct node), *(struct twin *)arg1"
            for function, wanted in (("use_first", [1, 16, {"a": 3, "b": 4}]), ("use_second", [2, 24, {"both": 7}])):
                (event,) = run.trace(f"uprobe:{program}:{function}", "--print", asked, command=quiet(program)).events
                check_equal(event["args"], wanted, f"{program.name}: {function}")
            for asked in ("((struct node *)arg0)->id", "sizeof(struct node)", "*(struct twin *)arg1"):
                refused = run.trace(f"uprobe:{program}:use_third", "--print", asked, command=quiet(program))
                refused.check_code(2)
                check("is one thing in some source files" in refused.stderr, refused.stderr)
            (event,) = run.trace(f"uprobe:{program}:use_third", "--print", "*(struct same *)arg1", command=quiet(program)).events
            check_equal(event["args"], [{"x": 5, "y": 6}], f"{program.name}: a struct that is the same in both files")


if __name__ == "__main__":
    main()
