#!/usr/bin/env python3
# Each version of Ruby that tools/install-runtimes has got: the frames of a waiting thread are those of Thread#backtrace_locations, sampled
# callers call what they are shown to call in both engines, the heap has as many objects as ObjectSpace counts; method-entry and heap alloc
# are refused with the reason. VERSIONS="2.7": only these.
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
class Kept
  def initialize(i)
    @number = i
    @name = "kept number #{i} with a name that has memory of its own"
    @tags = [i, i + 1, i + 2, i + 3]
  end
end
Point = Struct.new(:x, :y)
$kept = Array.new(3000) { |i| Kept.new(i) } + Array.new(700) { |i| Point.new(i * 1e300, i) }
$table = {}
500.times { |i| $table["k#{i}"] = { a: i, b: "v#{i}" } }
$until = 0
def busy
  while true
    $until > 0 ? work : sleep(0.01)
  end
end
def objects(n)
  GC.start
  found = {}
  [Kept, Point].each do |c|
    all = ObjectSpace.each_object(c).to_a
    found[c.name] = [all.size, all.map { |o| ObjectSpace.memsize_of(o) }.sum]
  end
  found
end
WAITS = Thread.new { Order.find }
BUSY = Thread.new { busy }
def stacks(n)
  sleep 0.01 until WAITS.status == "sleep"
  WAITS.backtrace_locations.map { |l| [File.basename(l.path), l.label, l.lineno] }
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
# what may call what; a frame of C has the line of its caller
CALLERS = {"leaf": {"key"}, "key": {"save"}, "save": {"save", "each"}, "each": {"work"}, "work": {"busy", "each"}}


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


# What a version does not have, and what descry says about it.
REASONS = {
    "ruby2.7": "fires only while a TracePoint is enabled, too: descry does not know where this version's methods begin",
    "ruby3.3": "its file has no such probe, and descry does not know where this version's methods begin",
}


def refused(p, version):
    r = descry("-p", p.pid, "-n", "ruby$target:::method-entry { } tick-100ms { exit(0); }", rc=0 if version == "ruby2.7" else 1)
    p.check(REASONS[version] in r.err, "method-entry", r)
    r = descry("heap", "alloc", "-p", p.pid, rc=1)
    p.check("descry does not know where this version makes objects" in r.err, "heap alloc is refused", r)
    r = descry("list", "ruby", "-p", p.pid)
    p.check("method-entry" in r.out, "descry list ruby", r)


def heap(p):
    rows = {r["class"]: (r["objects"], r["bytes"]) for r in p.heap("--histogram") if "class" in r}
    for name, (n, size) in p.ask("objects", 0).items():
        p.check(rows.get(name, (0, 0)) == (n, size), "objects of", name, rows.get(name), "not", (n, size))


def version(name):
    p = Program(name, APP)
    listed = descry("list", "-p", p.pid).out
    p.check("runs ruby (%s." % name[4:] in listed, "descry list", listed)
    frames = waiting(p)
    samples = [sampled(p, engine) for engine in ("kernel", "inproc")]
    heap(p)
    refused(p, name)
    print("%s: %d frames, %s samples" % (name, frames, samples))


each_version("ruby", version)
