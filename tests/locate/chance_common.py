# SPDX-License-Identifier: BSD-2-Clause
"""What programs by chance in Rust and in Go (chance_rust.py, chance_go.py) have in common: functions fnN that use some of what
they are given, called with values that are expressions in `i`, the number of the call."""

import random

FUNCTIONS = 40
PARAMETERS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8)


class Type:
    """`name` of it in the language; `make(rng)`: an expression; `use(text)`: statements that use each value in it; `note(text)`:
    statements that log it, where the language does not know how by itself."""

    def __init__(self, name, make, use, note=None):
        self.name, self.make, self.use, self.note = name, make, use, note


class Program:
    """A language has `parameter()`, `scalar()`, `wide()`, `escape(name)` and, of the number of the call, `odd`: a condition."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.items, self.calls, self.types = [], [], []

    def signature(self):
        """Types of parameters, and of the result, which may be none."""
        kinds = [self.parameter() for _ in range(self.rng.choice(PARAMETERS))]
        return kinds, self.rng.choice((None, self.scalar(), self.scalar(), self.wide(), self.rng.choice(self.types)))

    def statements(self, kind, name):
        """What a function does with a parameter."""
        how = self.rng.choice(("none", "all", "all", "all", "some", "escape"))
        if how == "none":
            return []
        if how == "escape":
            return [self.escape(name)]
        uses = kind.use(name)
        return self.rng.sample(uses, (len(uses) + 1) // 2) if how == "some" else uses

    def body(self, kinds):
        """All it does, as lines."""
        lines = [line for n, kind in enumerate(kinds) for line in self.statements(kind, f"p{n}")]
        self.rng.shuffle(lines)
        if self.rng.random() < 0.2:
            half = len(lines) // 2
            lines = [f"if {self.odd} {{ sink(1); {' '.join(lines[:half])} }} else {{ sink(2); {' '.join(lines[half:])} }};"]
        if self.rng.random() < 0.4 or not lines:  # calls of what has no effect are left out
            lines.insert(self.rng.randrange(len(lines) + 1), "sink(37);")
        return lines
