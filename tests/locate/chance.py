# SPDX-License-Identifier: BSD-2-Clause
"""Programs by chance, in C and C++, whose functions are called with values by chance and which log those themselves.

Each function fnN has one to three callers. Before a call the program writes a line of JSON to the file that is its
argument: {"function": "fnN", "args": [...], "return": ...}. It works the values out a second time for that, so that what
is passed stays as the compiler likes it. In between, the stack is filled with other numbers.
"""

import random

from chance_types import (ENUMS, HEAD, HELPERS, INTEGERS, POINTERS, Array, Complex, Integer, Pointer, Real, Record, Reference,
                          String, Text, Vector)

FUNCTIONS = 40
#: What a class of C++ declares: whether it is passed by reference, and whether anybody reads it at the end, differs.
SPECIALS = (
    "MAKE ~NAME() { }", "MAKE ~NAME() { sink = sink + 1; }", "MAKE ~NAME() { escape(this); }", "MAKE ~NAME() { sink = sink + (unsigned long long)m0; }",
    "MAKE NAME(const NAME &o) : COPY { }", "MAKE NAME(const NAME &o) : COPY { } ~NAME() { sink = sink + 1; }", "MAKE NAME(const NAME &) = default;",
    "MAKE NAME(NAME &&o) : COPY { } ~NAME() { }", "MAKE NAME(NAME &&) = default;", "MAKE ~NAME() = default;", "MAKE virtual ~NAME() { }", "MAKE virtual int call() { return 1; }",
    "MAKE NAME(const NAME &) = delete; NAME(NAME &&) = default;", "MAKE")
CONSTRAINED = (
    "MAKE constexpr ~NAME() requires (sizeof(V) > 64) { escape(this); } ~NAME() = default;",
    "MAKE constexpr ~NAME() requires (sizeof(V) < 64) { escape(this); } ~NAME() = default;",
    "MAKE NAME(const NAME &o) requires (sizeof(V) > 64) : COPY { } NAME(const NAME &) = default;",
    "MAKE NAME(const NAME &o) requires (sizeof(V) < 64) : COPY { } NAME(const NAME &) = default;",
    "MAKE NAME(const NAME &) requires (sizeof(V) > 64) = delete; NAME(const NAME &) = default;")


def is_copyable(special):
    return "delete" not in special and "&&" not in special


class Program:
    """`half`: the compiler has _Float16."""

    def __init__(self, seed, cpp=False, bits32=False, constrained=False, half=False):
        self.rng = random.Random(seed)
        self.cpp, self.bits32 = cpp, bits32
        self.specials = SPECIALS + CONSTRAINED * 2 if constrained else SPECIALS
        self.reals = ["float", "double", "float", "double", "long double"] + ["_Float16"] * (half and not cpp)
        self.records, self.bodies, self.calls = [], [], []
        self.objects = [self.record() for _ in range(12)]
        for number in range(FUNCTIONS):
            self.function(number)

    def source(self):
        wide = "long long" if self.bits32 else "__int128"
        extern = 'extern "C"' if self.cpp else "extern"
        head = HEAD.replace("EXTERN", extern).replace("__INTEGER__", wide)
        if self.cpp:
            head = "#include <string>\n#include <vector>\n" + head.replace("extern const char *const texts", 'extern "C" const char *const texts')
        bodies = "\n".join(self.bodies).replace("__INTEGER__", wide)
        main = "\n".join(f"    {call}" for call in self.calls)
        records = "\n".join(f"{each.definition()}\n{each.logger()}" for each in self.records).replace("__INTEGER__", wide)
        return (f"{head}\n{records}\nvolatile int now;\n{bodies}\nint main(int argc, char **argv) {{\n"
                f'  report = fopen(argv[1], "w"); int rounds = 8; for (int c = 0; argc > 2 && argv[2][c]; c++) rounds = (c ? rounds * 10 : 0) + argv[2][c] - 48;\n'
                f"  for (int i = 0; i < rounds; i++) {{ now = i;\n{main}\n  }}\n  fclose(report);\n  return 0;\n}}\n")

    def helpers(self):
        return HELPERS.replace("__INTEGER__", "long long" if self.bits32 else "__int128")

    # --- types ---

    def scalar(self, member=False):
        roll = self.rng.random()
        if roll < 0.5:
            return Integer(self.rng.choice(list(INTEGERS)))
        if roll < 0.6:
            return Integer("bool" if self.cpp else "_Bool")
        if roll < 0.67:
            return Integer(self.rng.choice(list(ENUMS)))
        if roll < 0.76:
            return Real(self.rng.choice(self.reals))
        if roll < 0.79 and not self.bits32:
            return Integer(self.rng.choice(("__int128", "unsigned __int128")))
        if roll < 0.81 and not self.cpp:
            return Complex(self.rng.choice(("float", "double")))
        if roll < 0.9:
            return Text()
        return Pointer(self.rng.choice(POINTERS))

    def member(self, name, depth, is_class):
        roll = self.rng.random()
        if roll < 0.12 and not is_class:
            base = self.rng.choice([each for each in INTEGERS if "long" not in each])
            return name, Integer(base), self.rng.randrange(1, INTEGERS[base][0])
        if roll < 0.24 and not is_class:
            element = Integer("char") if self.rng.random() < 0.5 else Integer(self.rng.choice(list(INTEGERS)))
            return name, Array(element, self.rng.choice((2, 3, 4, 5, 8))), None
        if roll < 0.32 and depth < 2:
            return name, self.record(depth + 1, True), None
        return name, self.scalar(True), None

    def record(self, depth=0, copied=False):
        specials = [each for each in self.specials if not copied or is_copyable(each)]
        special = self.rng.choice(specials) if self.cpp and self.rng.random() < 0.6 else ""
        bases = [each for each in self.records if special and each.is_class and is_copyable(each.special)]
        base = self.rng.choice(bases) if bases and "m0" not in special and self.rng.random() < 0.25 else None
        keyword = "union" if not special and self.rng.random() < 0.08 else "struct"
        count = self.rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 6))
        number = len(self.records) + 100 * depth + 1000 * self.rng.randrange(1000)
        members = [self.member(f"m{i}" + (f"_{number}" if base else ""), depth, bool(special)) for i in range(count)]
        if "m0" in special:
            members[0] = (members[0][0], Integer("int"), None)
        if keyword == "union":
            members = [("m0", Integer("unsigned long long"), None), ("m1", Integer("unsigned short"), None), ("m2", Array(Integer("unsigned char"), 8), None)]
        attribute = "" if special else self.rng.choice(("",) * 7 + ("__attribute__((packed))", "__attribute__((packed))", "__attribute__((aligned(16)))"))
        if any(isinstance(kind, Record) and kind.is_class for _, kind, _ in members):
            attribute = ""
        record = Record(f"S{number}", keyword, members, attribute, self.cpp, special, base)
        self.records.append(record)
        return record

    def parameter(self):
        roll = self.rng.random()
        if roll < 0.58:
            return self.scalar()
        if self.cpp and roll < 0.66:
            const = self.rng.random() < 0.6
            return Reference(Integer(self.rng.choice(list(INTEGERS))), const)
        if self.cpp and roll < 0.72:
            return self.rng.choice((String, Vector))()
        return self.rng.choice(self.objects)

    # --- functions ---

    def statements(self, kind, name):
        """What a function does with a parameter."""
        how = self.rng.choice(("none", "all", "all", "all", "some", "some", "escape", "changed", "sink"))
        uses = kind.uses(name)
        if how == "none":
            return []
        if how == "escape" and not isinstance(kind, Reference):
            return [f"escape((const void *)&{name});"]
        if how == "changed":
            return [kind.change(name) + " " + " ".join(uses)]
        if how == "some":
            uses = self.rng.sample(uses, (len(uses) + 1) // 2)
        if how == "sink":
            uses = [use.replace("use(", "sink = sink + (") for use in uses]
        return uses

    def body(self, kinds):
        lines = [line for i, kind in enumerate(kinds) for line in self.statements(kind, f"p{i}")]
        self.rng.shuffle(lines)
        roll = self.rng.random()
        if roll < 0.15 and lines:
            half = len(lines) // 2
            lines = [f"if (now & 1) {{ use(1); {' '.join(lines[:half])} }} else {{ use(2); {' '.join(lines[half:])} }}"]
        elif roll < 0.25:
            lines = [f"for (int n = now & 1; n < 2; n++) {{ {' '.join(lines)} use(n); }}"]
        if self.rng.random() < 0.15:
            align = self.rng.choice((32, 64))
            lines.insert(0, f"__attribute__((aligned({align}))) volatile char room[{align}]; escape((const void *)room);")
        if self.rng.random() < 0.06:
            lines.insert(0, "escape(__builtin_alloca((now & 63) + 16));")
        if self.rng.random() < 0.4:
            lines.insert(self.rng.randrange(len(lines) + 1), "use(37);")
        return lines + ['__asm__ volatile("");']  # calls of what has no effect are left out

    def function(self, number):
        form = self.rng.choice(("external", "external", "static", "static", "inline", "inline", "plain inline", "variadic", "address", "method"))
        if form == "method" and not self.cpp:
            form = "static"
        kinds = [self.parameter() for _ in range(self.rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8)))]
        if form == "variadic" and not kinds:
            kinds = [Integer("int")]
        result = self.rng.choice((None, self.scalar(), self.scalar(), self.rng.choice(self.objects)))
        if isinstance(result, (Complex, Reference)):
            result = None
        lines = self.body(kinds)
        returned = ""
        if result:
            lines.append("{ int i = now; return " + result.value(self.rng) + "; }")
            returned = lines[-1][len("{ int i = now; return "):-len("; }")]
        prefix = {"static": "static __attribute__((noinline)) ", "inline": "static inline __attribute__((always_inline)) ", "plain inline": "static ",
                  "address": "static __attribute__((noinline)) "}.get(form, "__attribute__((noinline)) ")
        parameters = ", ".join(kind.declare(f"p{i}") for i, kind in enumerate(kinds)) + (", ..." if form == "variadic" else "")
        name = f"fn{number}"
        spelt = (result.declare("") if result else "void").strip()
        if form == "method":
            self.bodies.append(f"struct Host{number} {{ int id; {spelt} {name}({parameters}); }} host{number}; __attribute__((noinline)) {spelt} "
                               f"Host{number}::{name}({parameters}) {{ {' '.join(lines)} }}")
        else:
            self.bodies.append(f"{prefix}{spelt} {name}({parameters or ('' if self.cpp else 'void')}) {{ {' '.join(lines)} }}")
        where = f"host{number}.{name}" if form == "method" else name
        if form == "address":
            self.bodies.append(f"{spelt} (*volatile at_{name})({', '.join(kind.declare('') for kind in kinds) or ('' if self.cpp else 'void')}) = {name};")
            where = f"at_{name}"
        for site in range(self.rng.choice((1, 1, 2, 3))):
            self.call(name, where, site, kinds, form, result, returned)

    def call(self, name, where, site, kinds, form, result, returned):
        texts, locals_ = [], []
        for n, kind in enumerate(kinds):
            text = kind.value(self.rng)
            if isinstance(kind, Reference) and not kind.const or isinstance(kind, Record) and not kind.is_class and self.rng.random() < 0.5:
                declared = kind.to.declare(f"l{n}") if isinstance(kind, Reference) else kind.declare(f"l{n}")
                locals_.append(f"{declared} = {text};")
                texts.append((f"l{n}", text))
            else:
                texts.append((text, text))
        passed = ", ".join([text for text, _ in texts] + (["1", "2.5"] if form == "variadic" else []))
        call = f"{where}({passed});"
        if result and self.rng.random() < 0.5 and not isinstance(result, Record):
            call = f"{result.declare('r')} = {call} {' '.join(result.uses('r'))}"
        logged = 'fprintf(report, ",");'.join(kind.log(text) for kind, (_, text) in zip(kinds, texts))
        if form == "method":
            logged = f'fprintf(report, "%lu", (unsigned long)(uintptr_t)&host{name[2:]});' + ('fprintf(report, ",");' if kinds else "") + logged
        kept = f'fprintf(report, ",\\"return\\":"); {result.log(returned)}' if result else ""
        self.bodies.append(f"static __attribute__((noinline)) void log{name[2:]}_{site}(int i) {{ fprintf(report, \"{{\\\"function\\\":\\\"{name}\\\",\\\"args\\\":[\"); {logged} "
                           f'fprintf(report, "]"); {kept} fprintf(report, "}}\\n"); }}')
        before = self.rng.choice(("", "use(3);"))
        self.bodies.append(f"__attribute__((noinline)) void call{name[2:]}_{site}(int i) {{ {before} {' '.join(locals_)} {call} {self.rng.choice(('', 'use(4);'))} }}")
        self.calls.append(f"log{name[2:]}_{site}(i); dirty(); call{name[2:]}_{site}(i);")
