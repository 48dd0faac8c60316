#!/usr/bin/env python3
# Each version of Ruby that tools/install-runtimes has got: the frames of a waiting thread are those of Thread#backtrace_locations, sampled
# callers call what they are shown to call in both engines, method-entry counts as a TracePoint does, the heap has as many objects as
# ObjectSpace counts, and heap alloc knows the lines of live objects. VERSIONS="2.7": only these.
from runtime_versions import *

PROGRAM = r"""
require 'json'
require 'objspace'
QUEUE = Queue.new
class Order
  def key(x)
    leaf(20) * x
  end
  def leaf(n)
    x = 0
    n.times { |i| x += i * i }
    x
  end
  def save(n)
    return save(n - 1) if n > 0
    [3, 1, 2].sort_by { |x| key(x) }
  end
  def held(n)
    return held(n - 1) if n > 0
    [3].map do |x|
      QUEUE.pop
    end
  end
  def self.find
    new.held(2)
  end
end
def each
  4.times { yield Order.new.save(3) }
end
def work
  each { |x| x }
end
def raises(n)
  raise KeyError, "none" if n == 0
  raises(n - 1)
end
def calls(n)
  n.times do
    work
    begin
      raises(3)
    rescue KeyError
    end
  end
  n
end
class Kept
  def initialize(i)
    @number = i
    @name = "kept number #{i} with a name that has memory of its own"
    @tags = [i, i + 1, i + 2, i + 3]
  end
end
Point = Struct.new(:x, :y)
class Foo; end
$kept = Array.new(3000) { |i| Kept.new(i) } + Array.new(700) { |i| Point.new(i * 1e300, i) }
$table = {}
500.times { |i| $table["k#{i}"] = { a: i, b: "v#{i}" } }
$more = []
$until = 0
def busy
  while true
    $until > 0 ? work : sleep(0.01)
  end
end
def counted(n)
  counts = Hash.new(0)
  trace = TracePoint.new(:call) { |t| counts[t.method_id] += 1 if t.path == __FILE__ }
  trace.enable { calls(n) }
  counts
end
def objects(n)
  GC.start
  found = {}
  [Kept, Point, Foo].each do |c|
    all = ObjectSpace.each_object(c).to_a
    found[c.name] = [all.size, all.map { |o| ObjectSpace.memsize_of(o) }.sum]
  end
  found
end
def make(n)
  n.times do
    $more << Foo.new
  end
  n
end
WAITS = Thread.new { Order.find }
BUSY = Thread.new { busy }
def stacks(n)
  sleep 0.01 until WAITS.status == "sleep"
  WAITS.backtrace_locations.map { |l| [File.basename(l.path), l.label, l.lineno] }
end
def collect(n)
  n.times { GC.start }
  n
end
GC.start
GC.disable
$stdout.sync = true
puts "ready"
while (line = $stdin.gets)
  what, n = line.split
  n = n.to_i
  answer = what == "busy" ? ($until = n) : send(what, n)
  puts JSON.dump(answer)
end
exit!(0)
"""
APP = file_of("app.rb", PROGRAM)
LINES = PROGRAM.splitlines()
FOO = 1 + LINES.index("    $more << Foo.new")
# what may call what; a frame of C has the line of its caller
CALLERS = {"leaf": {"key"}, "key": {"save"}, "save": {"save", "each"}, "each": {"work"}, "work": {"busy"}}


def frames_of(lines):
    """(file, function, line) of the Ruby frames."""
    return [[m[1], m[2], int(m[3] or 0)] for m in (re.match(r"(\S+\.rb|<internal:\w+>)`(.+?)(?::(\d+))?$", line) for line in lines) if m]


def plain(label):
    """A function's name without its class, and without the words for blocks."""
    return re.split(r"[#.]", label.split(" in ")[-1])[-1]


def waiting(p):
    theirs = p.ask("stacks", 0)
    ours = [f for f in map(frames_of, p.stacks().values()) if any("held" in x[1] for x in f)]
    simple = [[[f[0], re.sub(r"[\w:]+[#.](?=\w+$)", "", f[1]), f[2]] for f in frames] for frames in ours]
    p.check(simple == [theirs], "frames of a waiting thread\n theirs %s\n ours   %s" % (theirs, ours))
    p.check(ours and any(f[1].endswith("Order#held") for f in ours[0]) and any(f[1] == "Order.find" for f in ours[0]), "classes", ours)
    return len(theirs)


def sampled(p, engine):
    p.ask("busy", 1)
    seen, wrong, unnamed = 0, [], 0
    for lines, n in p.sampled(engine, 150):
        frames = [f for f in frames_of(lines) if re.search(r"\b(Order|Object)[#.]", f[1])]
        names = [plain(f[1]) for f in frames]
        if "busy" not in names and "[ruby]" not in lines:
            continue
        seen += n
        if "[ruby]" in lines:
            unnamed += n
            continue
        own = [name for name in names if name in CALLERS or name == "busy"]
        # a block and its function are neighbours
        bad = [(callee, caller) for callee, caller in zip(own, own[1:]) if callee in CALLERS and caller not in CALLERS[callee] | {callee}]
        if bad:
            wrong.append((bad, lines))
    p.ask("busy", 0)
    p.check(seen > 50 and not wrong and unnamed * 10 < seen, engine, "samples %d, without names %d, wrong:" % (seen, unnamed), wrong[:2])
    return seen


def entries(p, engine, want):
    program = 'ruby$target:::method-entry /basename(copyinstr(arg2)) == "app.rb"/ { @[copyinstr(arg1)] = count(); }'
    _, r = p.traced(engine, program, "calls", 20)
    if not r:
        return
    got = {k: v for k, v in r.aggs().items() if k in want}
    p.check(got == want, engine, "method-entry", {k: (got.get(k), want[k]) for k in want if got.get(k) != want[k]}, r)


def heap(p):
    rows = {r["class"]: (r["objects"], r["bytes"]) for r in p.heap("--histogram") if "class" in r}
    for name, (n, size) in p.ask("objects", 0).items():
        p.check(rows.get(name, (0, 0)) == (n, size), "objects of", name, rows.get(name), "not", (n, size))


def version(name):
    p = Program(name, APP)
    listed = descry("list", "-p", p.pid).out
    frames = waiting(p)
    samples = [sampled(p, engine) for engine in ("kernel", "inproc")]
    heap(p)
    want = p.ask("counted", 20)
    for engine in ("kernel", "auto"):
        entries(p, engine, want)
    p.recorded(FOO, "Foo")
    print("%s: %d frames, %s samples, %d calls" % (name, frames, samples, sum(want.values())), listed.count("ruby"))


each_version("ruby", version)
