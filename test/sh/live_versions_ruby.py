#!/usr/bin/env python3
# Each version of Ruby that tools/install-runtimes has got: the frames of a waiting thread are those of Thread#backtrace_locations, sampled
# callers call what they are shown to call in both engines, the heap has as many objects as ObjectSpace counts; method-entry and method-return
# fire as often as a TracePoint says, with class, name, file and line; heap alloc knows the line that makes objects, and sees all of them;
# gc-mark-begin and gc-mark-end count as GC.count does, line and raise as a TracePoint does.
# VERSIONS="2.7": only these.
import glob

import ruby_calls
import ruby_lines
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
class Foo; end
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
def once(n)
  n.times { work }
  n
end
def make(n)
  n.times { $kept << Foo.new }
  n
end
def varied(n)
  n.times { |i| $kept << [i.to_s, { i => 2.5e300 * i }, Kept.new(i), :"s#{i}".to_proc, 1..i, (1 << 70) + i, /a#{i}/, Class.new, -> { i }] }
  n
end
def collect(n)
  before = GC.count
  GC.enable
  n.times { GC.start; GC.start(full_mark: false, immediate_sweep: false) }
  Array.new(20000 * n) { |i| "x#{i}" }
  GC.disable
  GC.start
  GC.count - before
end
class Trouble < StandardError; end
def once_each
  begin; raise Trouble; rescue Trouble; end
  begin; 1 / 0; rescue ZeroDivisionError; end
  begin; Integer("x"); rescue ArgumentError; end
  begin
    nil.nothing
  rescue NoMethodError
  end
  begin; [1].fetch(7); rescue IndexError; end
  o = Trouble.new
  def o.own() end
  begin; raise o; rescue Trouble; end
  begin
    [2, 1].sort_by do |i|
      raise Class.new(Trouble) if i == 1
    end
  rescue Trouble
  end
  loop { raise StopIteration }
  begin
    begin
      raise "first"
    ensure
      raise Trouble
    end
  rescue Trouble
  end
  catch(:done) { throw :done }
  begin; eval("1 +"); rescue SyntaxError; end
end
def trouble(n)
  seen = Hash.new(0)
  trace = TracePoint.new(:raise) { |t| seen[[t.raised_exception.class.name, File.basename(t.path), t.lineno]] += 1 }
  trace.enable
  n.times { once_each }
  trace.disable
  seen.map { |k, count| [*k, count] }
end
def total(n)
  GC.stat(:total_allocated_objects)
end
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
FOO = 1 + next(i for i, line in enumerate(PROGRAM.splitlines()) if "Foo.new" in line)
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


# A description by names selects by the same numbers in both engines.
SELECTED = """
ruby$target:Order:leaf:method-entry { @["entry"] = count(); }
ruby$target:Order:leaf:method-return { @["return"] = count(); }
ruby$target:Ord*:sa*:method-entry { @["save"] = count(); }
"""


def calls(p, name):
    """Calls and returns of the programs of live_rbprobes.py."""
    ruby = os.path.join(RUNTIMES, name)
    for file, text in (("shop.rb", ruby_calls.PROGRAM), ("libraries.rb", ruby_calls.LIBRARIES)):
        app = file_of(file, text)
        want = ruby_calls.truth(ruby, app)
        for engine in ("kernel", "inproc"):
            traced = kill_at_end(subprocess.Popen([ruby, app, "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            traced.stdout.readline()
            d = tracing("-q", "--json", "-x", "engine=" + engine, "-x", "aggsize=8m", "-n", ruby_calls.COUNT, "-p", str(traced.pid))
            traced.stdin.write(b"go\n")
            traced.stdin.close()
            p.check(traced.wait() == 0, "the traced program ends well", engine)
            r = finish(d)
            ruby_calls.judge("%s, %s, %s" % (name, file, engine), r, want, leaves=name == "ruby3.3")
            if file == "shop.rb":
                ruby_calls.judge_lines("%s, %s" % (name, engine), r, app, text)
                leaves = {k[1:3]: n for k, n in r.aggs().items() if k[2] in ("first", "frozen?") and k[0] == "call"}
                p.check(name == "ruby2.7" or leaves == {("Array", "first"): 36, ("Kernel", "frozen?"): 36}, engine, "calls without frames", leaves)
    for engine in ("kernel", "inproc"):
        _, r = p.traced(engine, SELECTED, "once", 7)
        p.check(r and r.aggs() == {"entry": 84, "return": 84, "save": 112}, engine, "selected by names", r and r.aggs())


def allocated(p):
    p.recorded(FOO, "Foo")
    d = kill_at_end(subprocess.Popen([DESCRY, "heap", "alloc", "--json", "-p", p.pid], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    p.check(d.stderr.readline() == "descry heap: recording\n", "heap alloc has begun")
    first = p.ask("total", 0)
    p.ask("varied", 200)
    last = p.ask("total", 0)
    d.send_signal(signal.SIGINT)
    head = json.loads(d.communicate()[0].splitlines()[0])
    # between the beginning and the first answer, and behind the second, are a few of the requests themselves
    p.check(last - first > 2000 and 0 <= head["recorded"] - (last - first) < 200, "all objects are recorded", head, last - first)


# An interpreter with the libraries of another release, which a command starts without the launcher.
DIRECT = r"""
#include <stdlib.h>
void ruby_sysinit(int *, char ***);
void ruby_init_stack(void *);
void ruby_init(void);
void *ruby_options(int, char **);
int ruby_run_node(void *);
int main(int argc, char **argv)
{
	void *here;

	setenv("RUBYLIB", RUBYLIB, 1);
	setenv("RUBYOPT", "--disable-gems", 1);
	ruby_sysinit(&argc, &argv);
	ruby_init_stack(&here);
	ruby_init();
	return ruby_run_node(ruby_options(argc, argv));
}
"""


def direct(name):
    root = os.path.join(os.path.dirname(os.path.realpath(RUNTIMES)), {"ruby3.3": "trixie"}[name])
    lib = os.path.join(root, "usr/lib/x86_64-linux-gnu")
    ruby = os.path.join(TMP, "direct-" + name)
    path = ":".join([*glob.glob(root + "/usr/lib/ruby/[0-9]*"), *glob.glob(lib + "/ruby/[0-9]*")])
    subprocess.run(["cc", "-o", ruby, file_of("direct.c", DIRECT), '-DRUBYLIB="%s"' % path, "-Wl,--dynamic-linker=%s/lib64/ld-linux-x86-64.so.2" % root,
                    "-Wl,--disable-new-dtags,-rpath," + lib, "-Wl,--unresolved-symbols=ignore-in-shared-libs", *glob.glob(lib + "/libruby-*.so.?.?")],
                   check=True)
    return ruby


def lines(p, name):
    """Each line of a program that descry starts, as a TracePoint counts them."""
    r = descry("-n", "ruby$target:::line { @ = count(); }", "-p", p.pid, rc=1)
    if name == "ruby2.7":
        p.check("descry does not know where this version's lines begin" in r.err, "lines are refused", r)
        return
    p.check("descry sets the flag in a Ruby that it starts (-c)" in r.err, "lines of a Ruby that runs are refused", r)
    if not shutil.which("cc"):
        print("%s: no compiler, lines of a command are not seen" % name)
        return
    ruby, app = direct(name), file_of("lines.rb", ruby_lines.PROGRAM)
    ruby_lines.counted(ruby, app, "plain")
    ruby_lines.counted(ruby, app, "own")


COLLECTIONS = """
ruby$target:::gc-mark-begin { @["begin"] = count(); }
ruby$target:::gc-mark-end { @["end"] = count(); }
ruby$target:::gc-begin { @["old begin"] = count(); }
ruby$target:::gc-end { @["old end"] = count(); }
"""


def collections(p):
    """As many as GC.count says, also those that the collector makes of its own accord, in steps."""
    for engine in ("kernel", "inproc"):
        n, r = p.traced(engine, COLLECTIONS, "collect", 10)
        p.check(n and n > 20 and r and set(r.aggs().values()) == {n} and len(r.aggs()) == 4, engine, "collections", n, r and r.aggs())


RAISED = """
ruby$target:::raise { @[copyinstr(arg0), basename(copyinstr(arg1)), arg2] = count(); }
"""


def raised(p):
    """Class, file and line of each exception. A class without a name is "<unknown>", or what Ruby says for it."""
    for engine in ("kernel", "inproc"):
        said, r = p.traced(engine, RAISED, "trouble", 5)
        want = {(name or "<unknown>", file, line): n for name, file, line, n in said or ()}
        got = {}
        for k, n in r.aggs().items() if r else ():
            k = (re.sub("#<Class:.*", "<unknown>", k[0]), *k[1:])
            got[k] = got.get(k, 0) + n
        p.check(got == want and sum(want.values()) >= 50, engine, "exceptions", {k: (got.get(k), want.get(k)) for k in {*got, *want} if got.get(k) != want.get(k)}, r)


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
    calls(p, name)
    collections(p)
    raised(p)
    lines(p, name)
    allocated(p)
    print("%s: %d frames, %s samples" % (name, frames, samples))


each_version("ruby", version)
