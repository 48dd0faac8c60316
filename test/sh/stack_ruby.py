#!/usr/bin/env python3
# descry stack shows the Ruby functions that threads execute. Threads that wait somewhere in a random program: equal to what
# Thread#backtrace_locations says of them, class names to what the classes say of their methods. Threads that run: at every instruction
# the stack is one of those that TracePoint has met. RUBIES: the interpreters to compare, instead of Debian's.
import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from at_signal import *
from checks import *

SAMPLES = int(os.environ.get("SAMPLES", "40"))
ROUNDS = int(os.environ.get("ROUNDS", "4"))
RUBIES = os.environ.get("RUBIES", "/usr/bin/ruby").split()
TMP = tempfile.mkdtemp(prefix="descry-stack-ruby-")
atexit.register(shutil.rmtree, TMP, True)

# What both programs run: methods of classes, modules and single objects, blocks, lambdas, exceptions, C functions in between, fibers.
# step() is called all over.
WORK = r"""# frozen_string_literal: true
module Shop
  class Order
    def initialize(n)
      @lines = Array.new(n) { |i| (i * 7919) % 101 }
    end

    def each_line
      step
      @lines.each { |l| yield l }
    end

    def total
      sum = 0
      each_line do |l|
        step
        sum += price(l)
      end
      sum
    end

    def price(l)
      [l, 3].map { |x| x * 2 }.inject do |a, b|
        step
        a + b
      end
    end

    def self.find(n)
      step
      new(n)
    end

    class << self
      def cheapest(n)
        [3, 2, 1].sort_by { |k|
          step
          find(k + n).total
        }.first
      end
    end

    define_method(:checked) do |n|
      step
      n > 0 ? checked(n - 1) : total
    end

    def <=>(other)
      step
      total <=> other.total
    end
    include Comparable
  end

  module Mixed
    def mixed(n)
      step
      n.zero? ? yield : mixed(n - 1) { yield }
    end
  end
end

class Basket
  include Shop::Mixed

  def fill
    mixed(2) { Shop::Order.find(3).checked(2) }
  end

  def failing(n)
    raise ArgumentError, "none" if n.zero?
    failing(n - 1)
  ensure
    step
  end

  def rescued
    failing(3)
  rescue ArgumentError => e
    step
    e.message.gsub(/n/) { |m| step; m.upcase }
  end

  def method_missing(name, *args)
    step
    args.size
  end

  def respond_to_missing?(*)
    true
  end

  def thrown
    catch(:done) do
      10.times { |i| i == 2 ? throw(:done, i) : step }
    end
  end

  def long_code(n)
    a = 0
#{60.times.map { |i| "    a += n * #{i} if a < n\n" }.join}    step
    a
  end

  def numbers
    e = Enumerator.new do |y|
      3.times { |i| step; y << i }
    end
    e.next + e.next
  end
end

def plain(n)
  single = Object.new
  def single.alone
    step
    [1, 2].each_with_index.map { |x, i| step; x + i }
  end
  single.alone
  adder = ->(x) { step; x + n }
  [1, 2, 3].map(&adder)
  eval("step\nstep", binding, "evaluated", 10)
  anonymous.new.inside
end

def anonymous
  @anonymous ||= Class.new { def inside; step; end }
end

def work
  Shop::Order.cheapest(2)
  basket = Basket.new
  basket.fill
  basket.rescued
  basket.unknown(1, 2)
  basket.thrown
  basket.long_code(3)
  basket.numbers
  Shop::Order.find(2) < Shop::Order.find(3)
  plain(2)
end
"""
# Each thread waits after a random number of steps, with each round in another place. Then the truth is written.
PARKED = r"""
require 'json'
SEED, OUT = ARGV[0].to_i, ARGV[1]
srand(SEED)
$waiting = Queue.new
STEPS = {}

def step
  return unless (left = STEPS[Thread.current])
  STEPS[Thread.current] = left - 1
  if left.zero?
    $waiting << Thread.current
    sleep
  end
end

def qualified
  found = Hash.new { |h, k| h[k] = [] }
  ObjectSpace.each_object(Module) do |m|
    next unless m.name
    own = m.instance_methods(false) + m.private_instance_methods(false)
    own.each { |n| note(found, m.instance_method(n), m.name + "#") }
    m.singleton_methods(false).each { |n| note(found, m.method(n), m.name + ".") }
  end
  found
end

def note(found, method, prefix)
  file, line = method.source_location
  found[method.original_name.to_s] << [file, line, prefix] if file
end

def full(found, l)
  of = found[l.base_label].select { |file, line, _| l.path == "evaluated" || file == l.path && line <= l.lineno }.max_by { |m| m[1] }
  of ? l.label.sub(/#{Regexp.escape(l.base_label)}\z/) { of[2] + l.base_label } : l.label
end

def report(threads)
  found = qualified
  said = threads.map { |t| [t == Thread.main ? "main" : t.name, t.backtrace_locations.map { |l| [l.path, full(found, l), l.lineno] }] }
  File.write(OUT, JSON.dump(said.to_h))
  puts "ready"
  $stdout.flush
end

Thread.new do
  Thread.current.name = "reporter"
  threads = Array.new(5) { $waiting.pop }
  sleep 0.001 until threads.all? { |t| t.status == "sleep" }
  report(threads)
  sleep
end

4.times do |i|
  Thread.new do
    Thread.current.name = "worker#{i}"
    STEPS[Thread.current] = rand(400)
    loop { work }
  end
end
STEPS[Thread.current] = rand(400)
loop { work }
"""
# Runs work() once while TracePoint sees it, then for ever.
BUSY = r"""
require 'json'
OUT = ARGV[1]
def step
  1 + 1
end
ALL = {}
trace = TracePoint.new(:line, :call, :return, :b_call, :b_return, :c_call, :c_return, :raise) do |t|
  stack = caller_locations(0).drop_while { |l| l.path == __FILE__ && l.label.start_with?("block in <main>") && l.lineno > __LINE__ - 2 && l.lineno < __LINE__ + 9 }
  stack = stack.map { |l| [l.path, l.label, l.lineno] }
  ALL[stack] = true
  ALL[[[t.path, t.callee_id.to_s, t.lineno]] + stack] = true if t.event == :c_call
end

rounds = 0
threads = Array.new(2) do
  Thread.new do
    loop do
      work
      rounds += 1
    end
  end
end
trace.enable
sleep 0.01 until rounds > 8
trace.disable
File.write(OUT, JSON.dump(ALL.keys))
puts "ready"
$stdout.flush
threads.each(&:join)
"""


def frames_of(text):
    return [[m[0], m[1], int(m[2])] for m in re.findall(r"^ +([^ `]+\.rb|<internal:[^`]*>|evaluated|\?)`(.*):(\d+)$", text, re.M)]


def thread_name(pid, tid):
    if tid == pid:
        return "main"
    with open("/proc/%d/task/%d/comm" % (pid, tid)) as f:
        return f.read().strip()


def start(ruby, program, seed, out):
    p = subprocess.Popen([ruby, os.path.join(TMP, program), str(seed), out], stdout=subprocess.PIPE)
    check(p.stdout.readline() == b"ready\n", ruby, program, "is ready")
    with open(out) as f:
        return p, json.load(f)


def stop(p):
    p.kill()
    p.wait()


def short(frames):
    """File names as descry prints them."""
    return [[os.path.basename(path or "?"), name, line or 0] for path, name, line in frames]


def unqualified(name):
    return re.sub(r"(^|^block .*in |^rescue in |^ensure in )[A-Z]\w*(::\w+)*[#.]", r"\1", name)


def is_like(ours, theirs, c_names):
    """C functions: Ruby gives the method's name only. The test queries their classes later."""
    if ours[0::2] != theirs[0::2]:
        return False
    if ours[1] == theirs[1]:
        return True
    c_names.add(ours[1])
    return unqualified(ours[1]) == theirs[1]


def compare_parked(ruby, seed, c_names):
    p, said = start(ruby, "parked.rb", seed, os.path.join(TMP, "said"))
    try:
        text = stack("-p", str(p.pid))
        ours = {thread_name(p.pid, tid): frames_of(rest) for tid, rest in threads(text).items()}
        for name, frames in said.items():
            theirs = short(frames)
            got = ours.get(name, [])
            same = len(got) == len(theirs) and all(is_like(a, b, c_names) for a, b in zip(got, theirs))
            check(same, ruby, "seed", seed, name, "\n ours  ", got, "\n theirs", theirs)
        check("rb_vm_exec" not in text, ruby, "the loop's own frames are not shown", text)
        return sum(len(f) for f in said.values())
    finally:
        stop(p)


def compare_core(ruby):
    """A core has the same frames as its process."""
    p, _ = start(ruby, "parked.rb", 1, os.path.join(TMP, "said"))
    try:
        os.kill(p.pid, signal.SIGSTOP)
        live = stack("-p", str(p.pid))
        subprocess.run(["gcore", "-o", os.path.join(TMP, "core"), str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True)
        dead = stack(os.path.join(TMP, "core.%d" % p.pid))
        live, dead = ({tid: frames_of(rest) for tid, rest in threads(t).items()} for t in (live, dead))
        check(any(live.values()) and live == dead, ruby, "a core's frames", live, dead)
    finally:
        stop(p)


# The places of the language's frames among the native ones.
PLACES = r"""
class Shelf
  def books
    [1].each { |x| [x].map { sleep } }
  end
end
puts "ready"
$stdout.flush
Shelf.new.books
"""


def compare_places(ruby):
    p = subprocess.Popen([ruby, os.path.join(TMP, "places.rb")], stdout=subprocess.PIPE)
    try:
        p.stdout.readline()
        deadline = time.monotonic() + 60
        text = ""
        while "Kernel#sleep" not in text and time.monotonic() < deadline:
            text = stack("-p", str(p.pid))
        order = ["`block (2 levels) in Shelf#books:4", "`Array#map:4", "`block in Shelf#books:4", "`rb_ary_each", "`Array#each:4"]
        order += ["`Shelf#books:4", "`<main>:9"]
        found = [text.find(name) for name in order]
        check(-1 not in found and found == sorted(found), ruby, "places", order, found, text)
        both = stack("-n", "-p", str(p.pid))
        check(both.count("\n") >= text.count("\n") + 3, ruby, "-n shows the loop", both)
    finally:
        stop(p)


def compare_busy(ruby):
    """The line of the innermost frame may be one on which no event is. TracePoint hides the methods of the
    interpreter's own that make lambdas and fibers."""
    p, said = start(ruby, "busy.rb", 0, os.path.join(TMP, "said"))
    met = {json.dumps([short(s)[0][:2], short(s)[1:]]) for s in said if s}
    done, unlike, depth = 0, {}, 0
    try:
        while done < SAMPLES:
            for tid, rest in threads(stack("-p", str(p.pid))).items():
                ours = [[f, unqualified(n), line] for f, n, line in frames_of(rest)]
                # or a thread is still in the block of the TracePoint
                if not ours or ours[-1][1] == "<main>" or any(f[1] == "block in <main>" for f in ours):
                    continue
                if ours[0][1] in ("lambda", "proc"):
                    del ours[0]
                done += 1
                depth += len(ours)
                if json.dumps([ours[0][:2], ours[1:]]) not in met:
                    unlike[json.dumps(ours)] = rest
        print("%s: %d running stacks, %.1f frames each, %d were not met" % (ruby, done, depth / done, len(unlike)))
        # TracePoint is not called where a thread waits for the interpreter's lock as a fiber is entered
        check(len(unlike) <= 2, ruby, "were not met:", "\n".join(unlike.values()))
    finally:
        stop(p)


def check_c_names(ruby, names):
    """Each class has the C method of the name that was shown."""
    ask = r"""
ARGV.each do |n|
  prefix = n[/\A(?:block .*in |rescue in |ensure in )/].to_s
  owner, kind, name = n[prefix.size..-1].match(/\A(.*?)([#.])(.*)\z/).captures
  m = Object.const_get(owner)
  m = m.singleton_class if kind == "."
  ok = m.instance_methods(false).include?(name.to_sym) || m.private_instance_methods(false).include?(name.to_sym)
  puts n unless ok
end
"""
    p = subprocess.run([ruby, "-rjson", "-e", ask, "--", *sorted(names)], capture_output=True, text=True)
    check(p.returncode == 0 and not p.stdout, ruby, "has no such methods:", p.stdout, p.stderr)


for ruby in RUBIES:
    if not shutil.which(ruby):
        skip("there is no " + ruby)
repeated = "".join("    a += n * %d if a < n\n" % i for i in range(60))
work = re.sub(r"#\{60\.times.*?\.join\}", lambda m: repeated, WORK, flags=re.S)
for name, text in (("parked.rb", work + PARKED), ("busy.rb", work + BUSY), ("places.rb", PLACES)):
    with open(os.path.join(TMP, name), "w", encoding="utf-8") as f:
        f.write(text)
for ruby in RUBIES:
    c_names = set()
    frames = sum(compare_parked(ruby, seed, c_names) for seed in range(ROUNDS))
    print("%s: %d frames of %d waiting threads compared" % (ruby, frames, 5 * ROUNDS))
    check_c_names(ruby, c_names)
    compare_busy(ruby)
    compare_core(ruby)
    compare_places(ruby)
done()
