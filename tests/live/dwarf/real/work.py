# SPDX-License-Identifier: BSD-2-Clause
"""Something of everything that an interpreter and the C library do, the same each time."""

import json, re, datetime, locale, os, time, math, decimal, struct, collections


class A:
    __slots__ = ("x", "y")
    def __init__(self, x): self.x, self.y = x, [x] * 3
    def __lt__(self, other): return self.x < other.x
def work(n):
    items = sorted(A(i * 7919 % 101) for i in range(50))
    text = json.dumps({"a": [1, 2.5, None, True], "b": {"c": "d\u00e9" * n}, "n": [a.x for a in items]})
    back = json.loads(text)
    words = re.findall(r"(\w+)\s*:", text.replace('"', " "))
    when = datetime.datetime(2020, 1, 1 + n % 28).strftime("%A %d %B %Y")
    big = 3 ** (200 + n) % (10 ** 30 + n)
    s = f"{big:x} {math.sin(n):.6f} {n!r:>10} %s" % when
    b = s.encode("utf-16").decode("utf-16").upper().split()
    with open("/dev/null", "w") as f: f.write("".join(b))
    d = {str(i): (i, float(i) ** 0.5) for i in range(n)}
    d.pop("0", None); d.update(x=1)
    for name in sorted(os.listdir("/usr/share"))[:20]:
        try: os.stat("/usr/share/" + name)
        except OSError: pass
    try: int("zz" + s)
    except ValueError as e: str(e)
    try: {}["missing"]
    except KeyError: pass
    t = time.strftime("%Y", time.gmtime(n * 1e8))
    struct.unpack("<IQ", struct.pack("<IQ", n, big % 2**60))
    return sum(len(x) for x in words) + len(back) + len(b) + len({*b, *words, t})
print(sum(work(i) for i in range(1, 20)))
