#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The recipes about Ruby: what they tell is what its own TracePoint counts."""

import json
import subprocess

from recipes import Recipe
from harness import Skip, check, check_equal, main, require_program, scenario

# Programs as their users have them: they do not watch themselves.
CALLS = """\
class Tree
  def grow(n)
    n.times { |i| leaf(i) }
  end
  def leaf(n)
    n + 1
  end
  def self.plant(n)
    new.grow(n)
  end
end
def walk(n)
  Tree.plant(n)
end
20.times { |n| walk(n) }
"""
RAISES = """\
30.times do |n|
  begin
    raise KeyError, "gone" if n % 3 == 0
    Integer("x") if n % 5 == 0
    n / (n % 2)
  rescue StandardError
  end
end
"""
# The judge: the same program once more, under a TracePoint that counts.
JUDGE = """\
require "json"
seen = Hash.new(0)
TracePoint.new(EVENT) { |event| seen[KEY] += 1 if event.path.end_with?("app.rb") }.enable { load "./app.rb" }
puts JSON.generate(seen)
"""


def counted_by_ruby(run, event, key):
    judge = JUDGE.replace("EVENT", event).replace("KEY", key)
    return json.loads(subprocess.run(["ruby3.1", "-e", judge], cwd=run.dir, capture_output=True, text=True, check=True, timeout=60).stdout)


def require_probes():
    require_program("ruby3.1")
    libraries = subprocess.run(["ldd", "/usr/bin/ruby3.1"], capture_output=True, text=True).stdout
    library = next((word for word in libraries.split() if "libruby" in word and "/" in word), "/usr/bin/ruby3.1")
    if "method__entry" not in subprocess.run(["readelf", "-nW", library], capture_output=True, text=True).stdout:
        raise Skip(f"{library} has no probes")


@scenario
def calls_of_ruby_methods_are_those_trace_point_counts(run):
    require_probes()
    (run.dir / "app.rb").write_text(CALLS)
    result = Recipe(run, "Which Ruby methods are called most?").start().finish()
    counts = counted_by_ruby(run, ":call", "event.method_id")
    ours = {key[1]: count for key, count in result.counts().items() if key[0] in ("Tree", "Object", "#<Class:Tree>")}
    check_equal({name: ours.get(name) for name in counts}, counts, "calls by method")
    check_equal(counts, {"walk": 20, "plant": 20, "grow": 20, "leaf": 190}, "its own counts")


@scenario
def exceptions_are_those_trace_point_sees(run):
    require_probes()
    (run.dir / "app.rb").write_text(RAISES)
    result = Recipe(run, "Which exceptions does a Ruby program raise, and where?").start().finish()
    raised = counted_by_ruby(run, ":raise", '"#{event.raised_exception.class}:#{event.lineno}"')
    ours = {f"{name}:{line}": count for (name, file, line), count in result.counts().items() if file.endswith("app.rb")}
    check_equal(ours, raised, "exceptions by class and line")
    check_equal(len(raised), 3, "kinds of exceptions")


if __name__ == "__main__":
    main()
