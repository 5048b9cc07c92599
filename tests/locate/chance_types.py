# SPDX-License-Identifier: BSD-2-Clause
"""Types by chance, for the programs of chance.py: how each is declared, what makes a value of it, how it is logged.

A value's text is an expression of C in `i`, the number of the call; nothing else changes it, so that a program which
works it out twice has the same value twice.
"""

INTEGERS = {  # name: bits with 64-bit longs, with 32-bit ones; signed
    "char": (8, 8, True), "signed char": (8, 8, True), "unsigned char": (8, 8, False), "short": (16, 16, True),
    "unsigned short": (16, 16, False), "int": (32, 32, True), "unsigned": (32, 32, False), "long": (64, 32, True),
    "unsigned long": (64, 32, False), "long long": (64, 64, True), "unsigned long long": (64, 64, False)}
POINTERS = ("void *", "int *", "struct item *", "const struct item *", "callback")
ENUMS = {"enum color": ("RED", "GREEN", "BLUE"), "enum small": ("NONE", "SOME", "ALL")}

HEAD = """
#include <stdio.h>
#include <stdint.h>
EXTERN void use(unsigned long long);
EXTERN void escape(const volatile void *);
EXTERN unsigned long next(int, int);
EXTERN void dirty(void);
EXTERN void integer(__INTEGER__);
EXTERN void natural(unsigned __INTEGER__);
enum color { RED, GREEN = 200, BLUE = -3 };
enum __attribute__((packed)) small { NONE, SOME = 5, ALL = 130 };
struct item { int number; };
typedef int (*callback)(int);
extern struct item items[8];
EXTERN FILE *report;
extern volatile long table[16];
extern const char *const texts[8];
extern volatile unsigned long long sink;
static inline unsigned long mix(int i, int k) { unsigned long h = (unsigned long)(i + 1) * 2654435761u + (unsigned long)k * 40503u; return h ^ h >> 7 ^ h << 13; }
"""
HELPERS = """
#include <stdio.h>
#include <string.h>
struct item { int number; };
struct item items[8] = { { 1 }, { 2 }, { 3 }, { 4 }, { 5 }, { 6 }, { 7 }, { 8 } };
FILE *report;
volatile long table[16] = { 11, -22, 33, -44, 0x1234567855667788, 66, -1, 0, 99, 256, 65536, -70000, 0x41424344, 5, 6, 7 };
const char *const texts[8] = { "alpha", "beta", "gamma", "d", "epsilon text", "zeta", "eta", "theta!" };
volatile unsigned long long sink;
void use(unsigned long long value) { sink += value; }
void escape(const volatile void *address) { sink += *(const volatile char *)address; }
unsigned long next(int i, int k) { unsigned long h = (unsigned long)(i + 3) * 40503u + (unsigned long)k * 2654435761u; return h ^ h >> 5 ^ h << 11; }
/* What is left on the stack by others. */
void dirty(void) { volatile unsigned long junk[320]; for (int i = 0; i < 320; i++) junk[i] = 0x6a6b6c6d5a5b5c5dul + (unsigned long)i * 65793; sink += junk[sink & 63]; }
void integer(__INTEGER__ value) {
  char digits[48]; int at = 47; digits[at] = 0;
  int negative = value < 0;
  do { int digit = (int)(value % 10); digits[--at] = (char)('0' + (digit < 0 ? -digit : digit)); value /= 10; } while (value != 0);
  fprintf(report, "%s%s", negative ? "-" : "", digits + at);
}
void natural(unsigned __INTEGER__ value) {
  char digits[48]; int at = 47; digits[at] = 0;
  do { digits[--at] = (char)('0' + (int)(value % 10)); value /= 10; } while (value != 0);
  fprintf(report, "%s", digits + at);
}
"""


class Scalar:
    """A type that is one word or name of C."""

    def __init__(self, name):
        self.name = name

    def declare(self, what):
        return f"{self.name} {what}"


class Integer(Scalar):
    """Numbers, truth values, characters, enums."""

    @property
    def is_bool(self):
        return self.name in ("_Bool", "bool")

    def value(self, rng):
        k = rng.randrange(1000)
        if self.is_bool:
            return rng.choice((f"(next(i, {k}) & 1)", f"(i & 1)", f"(mix(i, {k}) & 1)", f"(table[(i + {k}) & 15] > 0)", f"(i % 3 == 0)",
                               f"({k} > 500)", f"((next(i, {k}) & 6) != 0)"))
        if self.name in ENUMS:
            names = ENUMS[self.name]
            return rng.choice((names[k % 3], f"(next(i, {k}) & 1 ? {names[0]} : {names[k % 3]})",
                               f"(i % 3 == 0 ? {names[0]} : i % 3 == 1 ? {names[1]} : {names[2]})"))
        form = rng.choice(("mix(i, {k})", "mix(i, {k})", "next(i, {k})", "table[(i + {k}) & 15]", "i * {k} - 7", "{k}", "i"))
        wide = "128" in self.name and rng.random() < 0.7
        text = form.format(k=k)
        if wide:
            return f"(({self.name})({text}) << 64 | next(i, {k + 1}))"
        return f"({self.name})({text})"

    def log(self, text):
        if "128" in self.name:
            return f"{'natural' if 'unsigned' in self.name else 'integer'}(({self.name})({text}));"
        return f'fprintf(report, "%lld", (long long)({text}));' if "unsigned long" not in self.name else \
            f'fprintf(report, "%llu", (unsigned long long)({text}));'

    def uses(self, text):
        return [f"use((unsigned long long)({text}));"]

    def change(self, text):
        if self.is_bool:
            return f"{text} = !{text};"
        return f"{text} = ({self.name})({text} * 3 + 1);" if self.name not in ENUMS else f"{text} = {ENUMS[self.name][1]};"


class Real(Scalar):
    def value(self, rng):
        k = rng.randrange(1000)
        return rng.choice((f"({self.name})((int)(mix(i, {k}) & 255) - 99) / 8", f"({self.name})(i + {k % 50}) / 4", f"({self.name}){k / 8}"))

    def log(self, text):
        return f'fprintf(report, "%.17Lg", (long double)({text}));'

    def uses(self, text):
        return [f"use((unsigned long long)(long long)({text}));"]

    def change(self, text):
        return f"{text} = {text} * 2 + 1;"


class Complex(Scalar):
    def declare(self, what):
        return f"_Complex {self.name} {what}"

    def value(self, rng):
        k = rng.randrange(1000)
        return f"(({self.name})((int)(mix(i, {k}) & 255)) + ({self.name}){k % 7} * 1.0i)"

    def log(self, text):
        return f'fprintf(report, "{{\\"complex\\":[%.17Lg,%.17Lg]}}", (long double)__real__({text}), (long double)__imag__({text}));'

    def uses(self, text):
        return [f"use((unsigned long long)(long long)__real__({text}));"]

    def change(self, text):
        return f"{text} = {text} + 1;"


class Pointer(Scalar):
    def value(self, rng):
        k = rng.randrange(1000)
        return f"({self.name})" + rng.choice((f"(uintptr_t)mix(i, {k})", f"&items[(i + {k}) & 7]", f"&items[{k & 7}]", f"(uintptr_t)next(i, {k})"))

    def log(self, text):
        return f'fprintf(report, "%lu", (unsigned long)(uintptr_t)({text}));'

    def uses(self, text):
        return [f"use((unsigned long long)(uintptr_t)({text}));"]

    def change(self, text):
        return f"{text} = ({self.name})((uintptr_t){text} + 64);"


class Text(Pointer):
    def __init__(self):
        super().__init__("const char *")

    def value(self, rng):
        k = rng.randrange(1000)
        return rng.choice((f"texts[(i + {k}) & 7]", f"texts[{k & 7}]"))

    def log(self, text):
        return f'fprintf(report, "{{\\"text\\":\\"%s\\",\\"at\\":%lu}}", {text}, (unsigned long)(uintptr_t){text});'

    def change(self, text):
        return f"{text} = texts[3];"


class Reference:
    """Of C++; to a number it is shown as what it refers to."""

    def __init__(self, to, const):
        self.to, self.const = to, const

    def declare(self, what):
        return f"{'const ' if self.const else ''}{self.to.declare('&' + what)}"

    def value(self, rng):
        return self.to.value(rng)

    def log(self, text):
        return self.to.log(text)

    def uses(self, text):
        return self.to.uses(text)

    def change(self, text):
        return "" if self.const else self.to.change(text)


class Array:
    """A member; of characters it is a text."""

    def __init__(self, element, count):
        self.element, self.count = element, count
        self.is_text = isinstance(element, Integer) and element.name == "char"

    def declare(self, what):
        return self.element.declare(f"{what}[{self.count}]")

    def value(self, rng):
        if self.is_text:
            letters = [f"(char)('a' + (int)(mix(i, {rng.randrange(99)}) & 15))" for _ in range(self.count)]
            if rng.random() < 0.7:
                letters[rng.randrange(self.count)] = "0"
            return f"{{ {', '.join(letters)} }}"
        return f"{{ {', '.join(self.element.value(rng) for _ in range(self.count))} }}"

    def log(self, text):
        if self.is_text:
            return f'fprintf(report, "\\"%.{self.count}s\\"", {text});'
        separated = [self.element.log(f"{text}[{n}]") for n in range(self.count)]
        return 'fprintf(report, "[");' + 'fprintf(report, ",");'.join(separated) + 'fprintf(report, "]");'

    def uses(self, text):
        return [use for n in range(self.count) for use in self.element.uses(f"{text}[{n}]")]

    def change(self, text):
        return self.element.change(f"{text}[0]")


class Record:
    """A struct, union or class. `members`: name, type, bits or None."""

    def __init__(self, name, keyword, members, attribute="", cpp=False, special="", base=None):
        self.name, self.keyword, self.members, self.attribute, self.cpp = name, keyword, members, attribute, cpp
        self.special, self.base = special, base
        self.is_class = bool(special)

    def spelt(self):
        return self.name if self.cpp else f"{self.keyword} {self.name}"

    def declare(self, what):
        return f"{self.spelt()} {what}"

    def definition(self):
        body = " ".join(f"{kind.declare(name)}{f' : {bits}' if bits else ''};" for name, kind, bits in self.members)
        base = f" : {self.base.name}" if self.base else ""
        special = self.special.replace("NAME", self.name)
        if self.is_class:
            parameters = ", ".join(kind.declare(f"a{name}") for name, kind, _ in self.members)
            inits = ", ".join(f"{name}(a{name})" for name, _, _ in self.members)
            if self.base:
                parameters = f"const {self.base.name} &ab{', ' if parameters else ''}{parameters}"
                inits = f"{self.base.name}(ab), {inits}"
            constructor = f"{self.name}({parameters}) : {inits} {{}}"
            special = special.replace("MAKE", constructor).replace("COPY", ", ".join(([f"{self.base.name}(o)"] if self.base else []) + [f"{name}(o.{name})" for name, _, _ in self.members]))
        template = "template <class V = int> " if "requires" in special else ""
        name = f"{self.name}_t" if template else self.name
        text = f"{self.keyword} {self.attribute} {name}{base} {{ {body} {special.replace(self.name, name) if template else special} }};"
        return f"{template}{text}" + (f" typedef {name}<int> {self.name};" if template else "")

    def value(self, rng, nested=False):
        first = self.members[:1] if self.keyword == "union" else self.members
        texts = [kind.value(rng, True) if isinstance(kind, Record) else kind.value(rng) for _, kind, _ in first]
        if self.is_class:
            if self.base:
                texts.insert(0, self.base.value(rng))
            return f"{self.name}({', '.join(texts)})"
        braces = f"{{ {', '.join(texts)} }}"
        if nested and not self.cpp:
            return braces
        return f"{self.name}{braces}" if self.cpp else f"({self.spelt()}){braces}"

    def logger(self):
        """A function that logs one."""
        parts, lines = self.members, []
        if self.base:
            lines.append(f"base_{self.base.name}(p);")
        for number, (name, kind, _) in enumerate(parts):
            comma = "," if number or self.base else ""
            lines.append(f'fprintf(report, "{comma}\\"{name}\\":"); {kind.log(f"p->{name}")}')
        body = " ".join(lines)
        return (f"static __attribute__((noinline)) void base_{self.name}(const {self.spelt()} *p) {{ {body} }}\n"
                f"static __attribute__((noinline)) void log_{self.name}(const {self.spelt()} *p) "
                f'{{ fprintf(report, "{{"); base_{self.name}(p); fprintf(report, "}}"); }}')

    def log(self, text):
        if self.is_class:
            return f"{{ const {self.name} &one = {text}; log_{self.name}(&one); }}"
        return f"{{ {self.declare('copy')} = {text}; log_{self.name}(&copy); }}"

    def uses(self, text):
        base = self.base.uses(text) if self.base else []
        first = self.members[:1] if self.keyword == "union" else self.members
        return base + [use for name, kind, _ in first for use in kind.uses(f"{text}.{name}")]

    def change(self, text):
        name, kind, _ = self.members[0]
        return kind.change(f"{text}.{name}")


class String:
    """std::string."""

    def declare(self, what):
        return f"std::string {what}"

    def value(self, rng):
        k = rng.randrange(1000)
        return rng.choice((f"std::string(texts[(i + {k}) & 7])", f"(std::string(\"number \") + std::to_string(i * {k}))"))

    def log(self, text):
        return f'fprintf(report, "\\"%s\\"", ({text}).c_str());'

    def uses(self, text):
        return [f"use({text}.size());", f"use((unsigned long long){text}[0]);"]

    def change(self, text):
        return f"{text} += 'x';"


class Vector:
    """std::vector<long>."""

    def declare(self, what):
        return f"std::vector<long> {what}"

    def value(self, rng):
        k = rng.randrange(1000)
        return rng.choice((f"std::vector<long>{{ i, {k}, i + {k} }}", f"std::vector<long>((unsigned long)(i & 3), {k})"))

    def log(self, text):
        return f'{{ const auto &v = {text}; fprintf(report, "["); for (unsigned long n = 0; n < v.size(); n++) ' \
               f'fprintf(report, "%s%ld", n ? "," : "", v[n]); fprintf(report, "]"); }}'

    def uses(self, text):
        return [f"use({text}.size());"]

    def change(self, text):
        return f"{text}.push_back(5);"
