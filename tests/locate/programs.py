# SPDX-License-Identifier: BSD-2-Clause
"""C and C++ programs whose functions are called with values that are known beforehand.

A program is its sources and, by the name of each function, its calls: for each the source line and the value of each
parameter. A value is an integer (of the type's bytes, not extended), {"symbol": NAME} for the address of a variable, or
{"bytes": [[offset, size, integer], ...]} for the members of a struct.
"""

import random

SCALARS = {  # name: bytes with 64-bit longs, with 32-bit ones
    "char": (1, 1), "signed char": (1, 1), "unsigned char": (1, 1), "short": (2, 2), "unsigned short": (2, 2),
    "int": (4, 4), "unsigned": (4, 4), "long": (8, 4), "unsigned long": (8, 4), "long long": (8, 8),
    "unsigned long long": (8, 8), "_Bool": (1, 1), "enum color": (4, 4), "char *": (8, 4), "const char *": (8, 4),
    "void *": (8, 4), "struct item *": (8, 4), "callback": (8, 4), "float": (4, 4), "double": (8, 8),
}
POINTERS = ("char *", "const char *", "void *", "struct item *", "callback")
FLOATS = ("float", "double")
INLINE = "static inline __attribute__((always_inline)) "
COLORS = {"RED": 0, "GREEN": 200, "BLUE": -3}

CPP_HEAD = "typedef bool _Bool;"
HEAD = """extern "C" void use(unsigned long long);
extern "C" void escape(void *);
enum color { RED, GREEN = 200, BLUE = -3 };
struct item { int number; };
typedef int (*callback)(int);
"""
HELPERS = """volatile unsigned long long sink;
void use(unsigned long long value) { sink += value; }
void escape(void *address) { *(volatile char *)address; }
"""


class Struct:
    def __init__(self, name, members, bits32, copied):
        self.name, self.members, self.copied = name, members, copied
        self.offsets, at, self.alignment = [], 0, 1
        for member in members:
            size = SCALARS[member][bits32]
            alignment = min(size, 4) if bits32 else size
            at = -(-at // alignment) * alignment
            self.offsets.append(at)
            at += size
            self.alignment = max(self.alignment, alignment)

    def declaration(self):
        members = " ".join(f"{member} m{i};" for i, member in enumerate(self.members))
        constructors = ""
        if self.copied:  # a class that is passed by reference
            parameters = ", ".join(f"{member} a{i}" for i, member in enumerate(self.members))
            inits = ", ".join(f"m{i}(a{i})" for i in range(len(self.members)))
            copies = ", ".join(f"m{i}(other.m{i})" for i in range(len(self.members)))
            constructors = f"{self.name}({parameters}) : {inits} {{}} {self.name}(const {self.name} &other) : {copies} {{}} "
        return f"struct {self.name} {{ {members} {constructors}}};"


class Program:
    def __init__(self, seed, language, bits32):
        self.random = random.Random(seed)
        self.cpp, self.bits32 = language == "c++", bits32
        self.lines, self.calls, self.results = [], {}, {}
        self.structs = [Struct(f"S{i}", self.random.choices(list(SCALARS), k=self.random.choice((1, 1, 2, 2, 3, 4, 6))),
                               bits32, self.cpp and i % 4 == 3) for i in range(12)]
        self.lines.append(CPP_HEAD if self.cpp else "")
        for line in HEAD.splitlines():
            self.lines.append(line if self.cpp else line.replace('extern "C" ', "extern "))
        self.lines += [struct.declaration() for struct in self.structs]
        self.lines.append("volatile int rounds = 3;")
        self.runs = []
        for number in range(80):
            self.function(number)
        self.lines.append("int main(void) { " + " ".join(f"{run}();" for run in self.runs) + " return 0; }")

    def source(self):
        return "\n".join(self.lines) + "\n"

    def spelt(self, kind):
        if isinstance(kind, Struct):
            return f"struct {kind.name}"
        return kind

    def scalar(self, kind):
        """A value: its C text, and its bytes as an integer."""
        size = SCALARS[kind][self.bits32]
        if kind == "enum color":
            name = self.random.choice(list(COLORS))
            return name, COLORS[name] & 0xffffffff
        if kind in FLOATS:
            import struct
            number = self.random.randrange(-1000, 1000) / 8
            return f"{number}", int.from_bytes(struct.pack("<f" if kind == "float" else "<d", number), "little")
        if kind == "_Bool":
            value = self.random.randrange(2)
            return str(value), value
        bits = self.random.getrandbits(8 * size)
        if kind in POINTERS:
            return f"({kind}){bits:#x}ull" if size == 8 else f"({kind}){bits:#x}u", bits
        return f"({self.spelt(kind)}){bits:#x}ull", bits

    def value(self, kind):
        """Its C text, with a variable it is loaded from where one is wanted, and what is expected."""
        if isinstance(kind, Struct):
            members = [self.scalar(member) for member in kind.members]
            expected = {"bytes": [[offset, SCALARS[member][self.bits32], bits]
                                  for offset, member, (_, bits) in zip(kind.offsets, kind.members, members)]}
            texts = ", ".join(text for text, _ in members)
            if self.cpp:
                return f"S{kind.name[1:]}{'(' if kind.copied else '{'}{texts}{')' if kind.copied else '}'}", expected
            return f"(struct {kind.name}){{{texts}}}", expected
        if kind.endswith("&"):
            name = f"object{len(self.lines)}"
            self.lines.append(f"struct item {name} = {{ {len(self.lines)} }};")
            return name, {"symbol": name}
        text, bits = self.scalar(kind)
        if self.random.random() < 0.7:
            name = f"v{len(self.lines)}"
            if kind == "callback" or "*" in kind:
                self.lines.append(f"{kind} volatile {name} = {text};")
            else:
                self.lines.append(f"volatile {self.spelt(kind)} {name} = {text};")
            text = name
        return text, bits

    def parameter_kinds(self):
        kinds = list(SCALARS) + self.structs[:6] + (["const struct item &", "struct item &"] * 2 if self.cpp else [])
        return [self.random.choice(kinds) for _ in range(self.random.choice((0, 1, 1, 2, 3, 4, 6, 8, 10)))]

    def uses(self, kind, name, address_taken):
        if address_taken and not (isinstance(kind, str) and kind.endswith("&")):
            return f"escape((void *)&{name});"
        if isinstance(kind, Struct):
            return " ".join(self.use_of(member, f"{name}.m{i}") for i, member in enumerate(kind.members))
        if kind.endswith("&"):
            return f"use({name}.number);"
        return self.use_of(kind, name)

    @staticmethod
    def use_of(kind, name):
        """A number below 0 is none that a floating one could be converted to without a sign."""
        through = "(unsigned long)" if kind in POINTERS else "(long long)" if kind in FLOATS else ""
        return f"use((unsigned long long){through}{name});"

    @staticmethod
    def swap(kinds):
        """Two parameters of one type take each other's values, for which no instruction is needed."""
        for i, kind in enumerate(kinds):
            if kind in kinds[:i] and isinstance(kind, str) and not kind.endswith("&"):
                j = kinds.index(kind)
                return [f"{{ {kind} p = p{i}; p{i} = p{j}; p{j} = p; }}"]
        return []

    @staticmethod
    def never_inline(number):
        return "static __attribute__((noinline)) " if number % 20 < 10 else "__attribute__((noinline)) "

    @staticmethod
    def branches(kinds, body):
        """Some of it is done under a condition, and the rest again and again: the copy's code is not in one piece."""
        numbers = [f"p{i}" for i, kind in enumerate(kinds) if kind in ("int", "unsigned", "long", "unsigned long", "short")]
        condition = " + ".join(["rounds", *numbers])
        half = len(body) // 2
        return [f"if (({condition}) & 1) {{ {' '.join(body[:half])} use(1); }} else {{ use(2); {' '.join(body[:half])} }}",
                f"for (int i = 0; i < rounds; i++) {{ {' '.join(body[half:])} use(i); }}"]

    def function(self, number):
        form = ("external", "static", "inline", "address", "changed", "unused", "variadic", "method", "inline changed",
                "inline branches")[number % 10]
        if form == "method" and not self.cpp:
            form = "static"
        name, kinds = f"fn{number}", self.parameter_kinds()
        if form == "variadic" and not kinds:
            kinds = ["int"]
        result = self.random.choice([kind for kind in SCALARS if kind not in FLOATS] + ["float", "void"])
        body = []
        for i, kind in enumerate(kinds):
            if form.endswith("changed") and kind in ("int", "unsigned", "long", "unsigned long", "short"):
                body.append(f"p{i} = p{i} * 3 + 1;")
            if not (form == "unused" and self.random.random() < 0.5):
                body.append(self.uses(kind, f"p{i}", form == "address" or self.random.random() < 0.1))
        if form.endswith("changed"):
            body[:0] = self.swap(kinds)
        else:
            self.random.shuffle(body)
        if form == "inline branches":
            body = self.branches(kinds, body)
        if result != "void":
            text, bits = self.scalar(result)
            self.lines.append(f"{self.spelt(result)} volatile r{number} = {text};")
            self.results[name] = bits
            body.append(f"return r{number};")
        parameters = ", ".join(f"{self.spelt(kind)} p{i}" for i, kind in enumerate(kinds))
        if form == "variadic":
            parameters += ", ..."
        prefix = {"inline": INLINE, "inline changed": INLINE, "inline branches": INLINE, "static": "static __attribute__((noinline)) ",
                  "unused": self.never_inline(number), "changed": self.never_inline(number)}.get(form, "__attribute__((noinline)) ")
        where = name
        if form == "method":
            self.lines.append(f"namespace net {{ struct Host{number} {{ int id; {self.spelt(result)} {name}({parameters}); }} "
                              f"host{number}; {self.spelt(result)} __attribute__((noinline)) Host{number}::{name}({parameters}) "
                              f"{{ use(id); {' '.join(body)} }} }}")
            where = f"net::host{number}.{name}"
        else:
            self.lines.append(f"{prefix}{self.spelt(result)} {name}({parameters or 'void'}) {{ {' '.join(body)} }}")
        self.calls[name] = []
        for _ in range(2 if form in ("inline", "inline changed", "inline branches", "static", "external") else 1):
            self.call(number, name, where, kinds, form, result)

    def call(self, number, name, where, kinds, form, result):
        values = [self.value(kind) for kind in kinds]
        texts = [text for text, _ in values] + (["1", "2.5"] if form == "variadic" else [])
        run = f"run{len(self.runs)}"
        used = "" if result == "void" or self.random.random() < 0.3 else "use((unsigned long long)(unsigned long)"
        self.lines.append(f"__attribute__((noinline)) void {run}(void) {{ use({1000 + len(self.runs)}); {used}{where}({', '.join(texts)})"
                          f"{')' if used else ''}; use({number}); }}")
        expected = [value for _, value in values]
        if form == "method":
            expected.insert(0, {"symbol": f"net::host{number}"})
        self.calls[name].append({"line": len(self.lines), "values": expected})
        self.runs.append(run)
