# SPDX-License-Identifier: BSD-2-Clause
"""Programs by chance, in Go, as those of chance.py: functions fnN are called with values by chance, which the program works
out a second time and logs before each call.

A value is an expression in `i`, the number of the call.
"""

from chance_common import FUNCTIONS, Program as Common, Type

INTEGERS = ("int8", "int16", "int32", "int64", "int", "uint8", "uint16", "uint32", "uint64", "uint", "uintptr")
HEAD = """
package main

import ("fmt"; "os"; "strconv"; "strings"; "unsafe")

type Item struct { number uint32 }
var items = [4]Item{{1}, {2}, {3}, {4}}
var numbers = [8]uint32{1, 20, 300, 4000, 50000, 600000, 7000000, 80000000}
var texts = [4]string{"alpha", "b", "gamma ray", "delta!"}
var sum uint64
var now uint64
var kept interface{}
//go:noinline
func sink(v uint64) { sum += v }
//go:noinline
func next(i, k uint64) uint64 { h := (i+3)*40503 + k*2654435761; return h ^ h>>5 ^ h<<11 }
func mix(i, k uint64) uint64 { h := (i+1)*2654435761 + k*40503; return h ^ h>>7 ^ h<<13 }
//go:noinline
func dirty() { var junk [320]uint64; for n := range junk { junk[n] = 0x6a6b6c6d5a5b5c5d + uint64(n)*65793 }; sink(junk[sum&63]) }
func one(b bool) uint64 { if b { return 1 }; return 0 }
func list(to *strings.Builder, v []uint32) { to.WriteString("["); for n, each := range v { if n > 0 { to.WriteString(",") }; fmt.Fprint(to, each) }; to.WriteString("]") }
var _ = unsafe.Pointer(nil)
"""


def written(text):
    return [f"fmt.Fprint(to, {text});"]


class Program(Common):
    odd = "now & 1 == 1"

    def __init__(self, seed):
        super().__init__(seed)
        for number in range(10):
            self.types.append(self.struct(number))
        for number in range(FUNCTIONS):
            self.function(number)

    def source(self):
        calls = "\n".join(f"    {call}" for call in self.calls)
        return (f"{HEAD}\n" + "\n".join(self.items) + "\nfunc main() {\n  rounds, _ := strconv.Atoi(os.Args[2])\n  to := &strings.Builder{}\n"
                f"  for n := 0; n < rounds; n++ {{ i := uint64(n); now = i\n{calls}\n  }}\n  os.WriteFile(os.Args[1], []byte(to.String()), 0644)\n}}\n")

    # --- types ---

    def integer(self):
        name = self.rng.choice(INTEGERS)

        def make(rng):
            form = rng.choice(("mix(i, {k})", "next(i, {k})", "next(i, {k})", "i * {k}", "i"))
            return f"{name}({form.format(k=rng.randrange(1000))})"
        return Type(name, make, lambda text: [f"sink(uint64({text}));"], written)

    def scalar(self):
        roll = self.rng.random()
        if roll < 0.6:
            return self.integer()
        if roll < 0.72:
            return Type("bool", lambda rng: f"(next(i, {rng.randrange(99)}) & 1 == 1)", lambda text: [f"sink(one({text}));"],
                        lambda text: written(f"one({text})"))
        if roll < 0.86:
            name = self.rng.choice(("float32", "float64"))
            return Type(name, lambda rng: f"({name}(next(i, {rng.randrange(99)}) & 255) - 99) / 8", lambda text: [f"sink(uint64(int64({text})));"], written)
        return Type("*Item", lambda rng: f"&items[next(i, {rng.randrange(99)}) & 3]", lambda text: [f"sink(uint64({text}.number));"],
                    lambda text: written(f"uint64(uintptr(unsafe.Pointer({text})))"))

    def wide(self):
        if self.rng.random() < 0.6:
            return Type("string", lambda rng: f"texts[next(i, {rng.randrange(99)}) & 3]", lambda text: [f"sink(uint64(len({text})));"],
                        lambda text: [f'fmt.Fprintf(to, "%q", {text});'])
        return Type("[]uint32", lambda rng: f"numbers[:next(i, {rng.randrange(99)}) & 7]", lambda text: [f"for _, each := range {text} {{ sink(uint64(each)) }};"],
                    lambda text: [f"list(to, {text});"])

    def member(self):
        roll = self.rng.random()
        if roll < 0.14:
            inner, count = self.integer(), self.rng.choice((1, 2, 3, 4))

            def note(text):
                each = " fmt.Fprint(to, \",\"); ".join(" ".join(inner.note(f"{text}[{n}]")) for n in range(count))
                return [f'to.WriteString("["); {each} to.WriteString("]");']
            return Type(f"[{count}]{inner.name}", lambda rng: f"[{count}]{inner.name}{{" + ", ".join(inner.make(rng) for _ in range(count)) + "}",
                        lambda text: [use for n in range(count) for use in inner.use(f"{text}[{n}]")], note)
        if roll < 0.24 and self.types:
            return self.rng.choice(self.types)
        return self.wide() if roll < 0.4 else self.scalar()

    def struct(self, number):
        members = [self.member() for _ in range(self.rng.choice((1, 1, 2, 2, 3, 3, 4, 5)))]
        name = f"S{number}"
        fields = "; ".join(f"m{n} {each.name}" for n, each in enumerate(members))
        noted = ' to.WriteString(","); '.join(f'to.WriteString("\\"m{n}\\":"); ' + " ".join(each.note(f"s.m{n}")) for n, each in enumerate(members))
        self.items.append(f"type {name} struct {{ {fields} }}\nfunc (s {name}) note(to *strings.Builder) {{ to.WriteString(\"{{\"); {noted} to.WriteString(\"}}\") }}")
        return Type(name, lambda rng: f"{name}{{" + ", ".join(each.make(rng) for each in members) + "}",
                    lambda text: [use for n, each in enumerate(members) for use in each.use(f"{text}.m{n}")], lambda text: [f"{text}.note(to);"])

    def parameter(self):
        roll = self.rng.random()
        return self.scalar() if roll < 0.5 else self.wide() if roll < 0.7 else self.rng.choice(self.types) if roll < 0.92 else self.member()

    # --- functions ---

    def escape(self, name):
        return f"kept = {name};" if self.rng.random() < 0.5 else f"kept = &{name};"

    def function(self, number):
        form = self.rng.choice(("plain", "plain", "plain", "any", "method", "value", "pointer", "interface"))
        kinds, result = self.signature()
        lines = self.body(kinds)
        returned = result.make(self.rng) if result else ""
        lines += [f"i := now; _ = i; return {returned}"] if result else []
        parameters = ", ".join(f"p{n} {kind.name}" for n, kind in enumerate(kinds))
        shown = f" {result.name}" if result else ""
        name = f"fn{number}"
        receiver = {"method": f"(h *Host{number}) ", "interface": f"(h *Host{number}) ", "value": f"(h Host{number}) "}.get(form, "")
        if receiver:
            self.items.append(f"type Host{number} struct {{ id uint32 }}; var host{number} = Host{number}{{{number}}}")
        self.items.append(("" if form == "any" else "//go:noinline\n") + f"func {receiver}{name}({parameters}){shown} {{ {' '.join(lines)} }}")
        where = f"host{number}.{name}" if receiver else name
        own = [] if not receiver else ["fmt.Fprint(to, uint64(uintptr(unsafe.Pointer(&host%d))));" % number] if form != "value" else \
            ['fmt.Fprint(to, "{\\"id\\":%d}");' % number]
        if form == "interface":
            self.items.append(f"type Face{number} interface {{ {name}({parameters}){shown} }}; var face{number} Face{number} = &host{number}")
            where = f"face{number}.{name}"
        if form == "pointer":
            self.items.append(f"var at{number} = {name}")
            where = f"at{number}"
        for site in range(self.rng.choice((1, 1, 2, 3))):
            self.call(number, where, site, kinds, own, result, returned)

    def call(self, number, where, site, kinds, own, result, returned):
        texts = [kind.make(self.rng) for kind in kinds]
        logged = own + [f"{{ v := {text}; {' '.join(kind.note('v'))} }};" for kind, text in zip(kinds, texts)]
        kept = f'to.WriteString(",\\"return\\":"); {{ v := {returned}; {" ".join(result.note("v"))} }};' if result else ""
        separated = ' to.WriteString(","); '.join(logged)
        self.items.append(f"//go:noinline\nfunc log{number}_{site}(i uint64, to *strings.Builder) {{ "
                          f'to.WriteString("{{\\"function\\":\\"fn{number}\\",\\"args\\":["); {separated} to.WriteString("]"); {kept} to.WriteString("}}\\n") }}')
        call = f"{where}({', '.join(texts)})"
        if result and self.rng.random() < 0.5:
            call = f"r := {call}; _ = r; {' '.join(result.use('r'))}"
        self.items.append(f"//go:noinline\nfunc call{number}_{site}(i uint64) {{ {call}; {self.rng.choice(('', 'sink(4)'))} }}")
        self.calls.append(f"log{number}_{site}(i, to); dirty(); call{number}_{site}(i)")
