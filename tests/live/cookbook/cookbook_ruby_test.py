#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The recipes about Ruby: what they tell is what its own TracePoint counts."""

import json
import subprocess

from recipes import Recipe
from harness import Skip, check, check_equal, main, require_program, scenario

CALLS = """\
require "json"
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
counts = Hash.new(0)
TracePoint.new(:call) { |call| counts[call.method_id] += 1 }.enable do
  20.times { |n| walk(n) }
end
puts JSON.generate([counts])
"""


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
    [counts] = json.loads(result.program_said()[-1])
    ours = {key[1]: count for key, count in result.counts().items() if key[0] in ("Tree", "Object", "#<Class:Tree>")}
    check_equal({name: ours.get(name) for name in counts}, counts, "calls by method")
    check_equal((counts["leaf"], counts["grow"], counts["walk"], counts["plant"]), (190, 20, 20, 20), "its own counts")


RAISES = """\
require "json"
raised = Hash.new(0)
TracePoint.new(:raise) { |event| raised["#{event.raised_exception.class}:#{event.lineno}"] += 1 }.enable do
  30.times do |n|
    begin
      raise KeyError, "gone" if n % 3 == 0
      Integer("x") if n % 5 == 0
      n / (n % 2)
    rescue StandardError
    end
  end
end
puts JSON.generate([raised])
"""


@scenario
def exceptions_are_those_trace_point_sees(run):
    require_probes()
    (run.dir / "app.rb").write_text(RAISES)
    result = Recipe(run, "Which exceptions does a Ruby program raise, and where?").start().finish()
    [raised] = json.loads(result.program_said()[-1])
    ours = {f"{name}:{line}": count for (name, file, line), count in result.counts().items() if file.endswith("app.rb")}
    check_equal(ours, raised, "exceptions by class and line")
    check_equal(len(raised), 3, "kinds of exceptions")


if __name__ == "__main__":
    main()
