# SPDX-License-Identifier: BSD-2-Clause
# Runs functions of Ruby in each way there is, up to a place that a tracer looks at, and writes down what caller_locations
# says there.
#
# Usage: walkers.rb FILE ROUNDS WAY...
#
# WAY is `nested` (random ways within each other), `threads`, `waiting` (without the interpreter's lock), `ended` (threads
# whose function has ended), `forked`, `deep`, or `changing` (code that is made anew at each round). Each place appends a
# line to FILE: the thread, and the functions from the innermost on, [label, path, line]. It begins once a line came on
# stdin, and ends once another one did.

require "fiber"
require "json"

RECORD = File.open(ARGV[0], "a")
RECORD.sync = true
LOCK = Mutex.new
STEP_DEPTH = 12

def own_view(locations)
  locations.map { |each| [each.label, each.path, each.lineno] }
end

def write_down(view)
  LOCK.synchronize { RECORD.write(JSON.generate([Thread.current.native_thread_id, view]) + "\n") }
end

# The place: what calls it is compared.
def place
  view = own_view(caller_locations(1))
  Process.ppid
  write_down(view)
end

def waiting_place
  view = own_view(caller_locations(1))
  RECORD.flock(File::LOCK_SH)
  write_down(view)
end

class Ways
  WAYS = []

  def self.method_added(name)
    WAYS << name if name.start_with?("by_")
  end

  def initialize(seed, place)
    @random = Random.new(seed)
    @place = place
  end

  def step(depth)
    return send(@place) if depth == 0
    send(WAYS[@random.rand(WAYS.size)], depth - 1)
    depth
  end

  def by_call(depth)
    step(depth)
  end

  def by_lines(depth)
    step(
      depth +
      0
    )
  end

  def by_keywords(depth, *rest, key: depth, **others)
    step(key)
  end

  def by_each(depth)
    [depth].each { |each| step(each) }
  end

  def by_map_within_each(depth)
    [1].each do
      [depth].map do |each|
        step(each)
      end
    end
  end

  def by_sort_by(depth)
    once = true
    [3, 1, 2].sort_by do |each|
      step(depth) if once
      once = false
      each
    end
  end

  def by_comparison(depth)
    ways = self
    made = Struct.new(:number) { define_method(:<=>) { |other| ways.step(depth); number <=> other.number } }
    [made.new(2), made.new(1)].sort
  end

  def by_inject(depth)
    (1..2).inject(0) { |sum, each| sum + (each == 2 ? step(depth) : 0) }
  end

  def by_hash(depth)
    { depth => 1 }.each_pair { |key, _| step(key) }
  end

  def by_default(depth)
    Hash.new { |_, key| step(key) }[depth]
  end

  def by_text(depth)
    "abc".gsub(/b/) { step(depth).to_s }
  end

  def by_to_s(depth)
    ways = self
    made = Class.new { define_method(:to_s) { ways.step(depth); "" } }.new
    "#{made}"
  end

  def by_times(depth)
    1.times { step(depth) }
  end

  def by_loop(depth)
    loop do
      step(depth)
      break
    end
  end

  def by_tap(depth)
    tap { step(depth) }
  end

  def by_yield(depth)
    yields(depth) { |each| step(each) }
  end

  def yields(depth)
    yield depth
  end

  def by_given_block(depth)
    given(depth) { |each| step(each) }
  end

  def given(depth, &block)
    block.call(depth)
  end

  def by_proc(depth)
    proc { step(depth) }.call
  end

  def by_lambda(depth)
    ->(each) { step(each) }.(depth)
  end

  def by_symbol(depth)
    [self].each(&:again) if (@depth = depth)
  end

  def again
    step(@depth)
  end

  def by_method_object(depth)
    [depth].each(&method(:step))
  end

  def by_send(depth)
    public_send(:step, depth)
  end

  def by_missing(depth)
    anything_else(depth)
  end

  def method_missing(name, *arguments)
    name == :anything_else ? step(*arguments) : super
  end

  def respond_to_missing?(*)
    false
  end

  def by_super(depth)
    ways = self
    base = Class.new { define_method(:run) { ways.step(depth) } }
    Class.new(base) { def run = super }.new.run
  end

  def by_initialize(depth)
    ways = self
    Class.new { define_method(:initialize) { ways.step(depth) } }.new
  end

  def by_singleton(depth)
    Ways.singly(self, depth)
  end

  def self.singly(ways, depth)
    ways.step(depth)
  end

  def by_rescue(depth)
    raise ArgumentError, "thrown"
  rescue ArgumentError
    step(depth)
  end

  def by_ensure(depth)
    [1].each { return }
  ensure
    step(depth)
  end

  def by_ensure_of_failure(depth)
    begin
      begin
        Integer("none")
      ensure
        step(depth)
      end
    rescue ArgumentError
      nil
    end
  end

  def by_retry(depth)
    tries = 0
    begin
      tries += 1
      raise "again" if tries == 1
      step(depth)
    rescue RuntimeError
      retry
    end
  end

  def by_throw(depth)
    catch(:done) do
      step(depth)
      throw :done
    end
  end

  def by_unwound_frames(depth)
    fails = ->(levels) { levels == 0 ? raise(IOError) : fails.(levels - 1) }
    begin
      fails.(5)
    rescue IOError
      step(depth)
    end
  end

  def by_eval(depth)
    eval("\n\nstep(\n depth)", binding, "made.rb", 7)
  end

  def by_instance_eval(depth)
    instance_eval { step(depth) }
  end

  def by_class_body(depth)
    ways = self
    Class.new { ways.step(depth) }
  end

  def by_named_class_body(depth)
    $ways, $depth = self, depth
    eval("class Made\n  $ways.step($depth)\nend")
  end

  def by_fiber(depth)
    Fiber.new { step(depth) }.resume
  end

  def by_fiber_in_two_turns(depth)
    fiber = Fiber.new do
      Fiber.yield
      step(depth)
    end
    2.times { fiber.resume }
  end

  def by_enumerator(depth)
    Enumerator.new { |numbers| numbers << step(depth) }.next
  end

  def by_enumerator_within(depth)
    Enumerator.new { |numbers| numbers << step(depth) }.each { |each| each }
  end

  def by_lazy(depth)
    (1..3).lazy.map { |each| each == 1 ? step(depth) : each }.first(1)
  end

  def by_curry(depth)
    ->(_, each) { step(each) }.curry[1][depth]
  end

  def by_file(depth)
    $ways, $depth = self, depth
    load(LOADED)
  end

  def by_trap(depth)
    before = trap("USR2") { @waits = false }
    @waits = true
    Process.kill("USR2", Process.pid) if Thread.current == Thread.main
    step(depth)
    trap("USR2", before)
  end

  def by_module_function(depth)
    Functions.run(self, depth)
  end

  def by_größe_中(tiefe)
    step(tiefe)
  end

  def by_deep_blocks(depth)
    [1].each { [1].each { [1].each_with_index { |_, _| step(depth) } } }
  end
end

module Functions
  module_function

  def run(ways, depth)
    ways.step(depth)
  end
end

LOADED = ARGV[0] + ".rb"
File.write(LOADED, "# loaded\n\n$ways.step(\n  $depth\n)\n")

def nested(rounds, place = :place)
  rounds.times { |seed| Ways.new(seed, place).step(seed % STEP_DEPTH) }
end

# Ways that share something run in one thread alone.
def threads(rounds, place = :place)
  Ways::WAYS.reject! { |name| %i[by_file by_named_class_body by_trap].include?(name) }
  4.times.map { Thread.new { nested(rounds / 4, place) } }.each(&:join)
end

# Threads wait without the lock, which another one has all the time.
def waiting(rounds)
  over = false
  other = Thread.new { nil until over }
  threads(rounds, :waiting_place)
  over = true
  other.join
end

# Native threads are kept for a while, and what they ran is freed.
def ended(rounds)
  rounds.times do
    Thread.new { 100.times { Object.new } }.join
    GC.start
    place
  end
end

def forked(rounds)
  Process.wait(fork do
    nested(rounds)
    sleep(2)
    exit!
  end)
end

def down(levels)
  levels > 0 ? down(levels - 1) + 1 : place || 0
end

def deep(rounds)
  rounds.times { |round| down(200 + round) }
end

# Code is freed and made anew, in the same memory.
def changing(rounds)
  rounds.times do |round|
    eval("\n" * (round % 7) + "->(){\n  place\n}", binding, "made_#{round % 10}.rb").call
    GC.start if round % 3 == 0
  end
end

# What was evaluated or loaded would be freed before its name can be read.
GC.disable
puts "ready"
$stdout.flush
$stdin.gets
ARGV[2..].each { |way| send(way, ARGV[1].to_i) }
puts "done"
$stdout.flush
$stdin.gets
