#!/usr/bin/env python3
# The name of a function of Python or a method of Ruby as the only key of an aggregation, whose entry the agent knows without the text: as
# many calls for each name as the program itself made, and as an aggregation with a second key has. Functions that are
# made and dropped again and again use addresses again; there are more names than the agent remembers; some are not ASCII, or long;
# the aggregation is printed meanwhile, so that names get other entries; one method is called by many threads. A code object has an address
# that cannot be read in place of its name for some calls: the process lives on, and only these calls are not counted.
# serial
from live import *

PYTHON = r"""
import ctypes, json, sys, threading

calls = {}


def define(name):
    space = {}
    exec("def %s(n): return n + 1" % name, space)
    return space[name]


def call(name, f, n):
    calls[name] = calls.get(name, 0) + n
    for i in range(n):
        f(i)


for i in range(1000):
    # dropped at once: the next one has its address
    name = "made_%d" % (i % 7)
    call(name, define(name), 3)
kept = {name: define(name) for name in ["kept_%d" % i for i in range(200)] + ["größe", "x" * 300, "eightchr", "eightchr2"]}
for round in range(20):
    for name in kept:
        call(name, kept[name], 5)
lost = define("lost")
call("lost", lost, 100)
place = id(lost.__code__)
while ctypes.c_uint64.from_address(place).value != id(lost.__name__):
    place += 8
for address in (4096, (1 << 63) - 8):
    ctypes.c_uint64.from_address(place).value = address
    lost(1), lost(2)
    ctypes.c_uint64.from_address(place).value = id(lost.__name__)
    call("lost", lost, 100)
together = define("together")
threads = [threading.Thread(target=lambda: [together(i) for i in range(5000)]) for _ in range(4)]
calls["together"] = 20000
for t in threads:
    t.start()
for t in threads:
    t.join()
calls["x" * 256] = calls.pop("x" * 300)
with open(sys.argv[1], "w") as f:
    json.dump(calls, f)
"""
RUBY = r"""
require "json"
$calls = Hash.new(0)
def call(name, n)
  $calls[name] += n
  n.times { yield }
end
800.times do |i|
  # dropped at once
  name = "made_#{i % 7}"
  c = Class.new
  c.class_eval("def #{name}() 1 end")
  o = c.new
  call(name, 3) { o.send(name) }
end
class Kept; end
names = (0...200).map { |i| "kept_#{i}" } + ["größe", "x" * 300, "eightchr", "eightchr2", "[]=", "set="]
names.each do |n|
  Kept.class_eval(n.end_with?("=") ? "def #{n}(*a) 1 end" : "def #{n}() 1 end")
end
class Kept
  define_method(:block) { 1 }
end
names << "block"
o = Kept.new
30.times { |i| GC.compact if i == 15; names.each { |n| call(n, 5) { o.send(n) } } }
def together() 1 end
(0...4).map { Thread.new { 5000.times { together } } }.each(&:join)
$calls["together"] = 20000
$calls["x" * 256] = $calls.delete("x" * 300)
File.write(ARGV[0], JSON.dump($calls))
"""
CLAUSES = """%s { @alone[copyinstr(arg1)] = count(); @two[copyinstr(arg1), 1] = count(); @sum[copyinstr(arg1)] = sum(2); }
tick-50ms { @ticks = count(); printa("%%@d", @alone); }
END { printa("%%@d", @alone); }"""
ONLY = """%s { @alone[copyinstr(arg1)] = count(); }
tick-50ms { printa("%%s=%%@d\\n", @alone); }
END { printa("%%s=%%@d\\n", @alone); }"""


def compare(alone, calls, *what):
    # Python has the text of a name that is not ASCII only where something has asked for it
    wrong = {k: (n, alone.get(k)) for k, n in calls.items() if alone.get(k) != n and k != "größe"}
    check(not wrong and len(calls) > 210, *what, "the program's own counts", wrong)


for probe, interpreter, program, ending, routine in (("python$target:::function-entry", "/usr/bin/python3", PYTHON, "py", "d_agg_python"),
                                                     ("ruby$target:::method-entry", "/usr/bin/ruby", RUBY, "rb", "d_agg_ruby")):
    text = descry("-e", "-d", "ir", "-x", "engine=inproc", "-n", probe + " { @[copyinstr(arg1)] = count(); }", c=interpreter + " --version").out
    check(routine + "(" in text, interpreter, "the agent is asked first", text[-2000:])
    path, truth = "%s/app.%s" % (TMP, ending), "%s/truth.%s" % (TMP, ending)
    with open(path, "w", encoding="utf-8") as f:
        f.write(program)
    inside = python_from_inside(interpreter) if ending == "py" else "inproc"
    for engine in (inside, "kernel"):
        r = descry("--json", "-x", "engine=" + engine, "-n", CLAUSES % probe, c="%s %s %s" % (interpreter, path, truth))
        check(r.rc == 0 and os.path.exists(truth), interpreter, engine, "exit", r)
        with open(truth, encoding="utf-8") as f:
            calls = json.load(f)
        os.unlink(truth)
        alone, two = r.aggs("alone"), {k[0]: n for k, n in r.aggs("two").items()}
        compare(alone, calls, interpreter, engine)
        check(alone == two and r.aggs("sum") == {k: 2 * n for k, n in alone.items()}, interpreter, engine, "with a second key, and sums")
        check("drop" not in r.err, interpreter, engine, r.err)
    # Nothing else: most firings end in the thunk's shortcut. (--json counts each probe's firings, too.)
    r = descry("-q", "-x", "engine=" + inside, "-n", ONLY % probe, c="%s %s %s" % (interpreter, path, truth))
    check(r.rc == 0 and "drop" not in r.err and os.path.exists(truth), interpreter, "alone", r)
    with open(truth, encoding="utf-8") as f:
        compare({k: int(n) for k, n in re.findall(r"^(.+)=(\d+)$", r.out, re.M)}, json.load(f), interpreter, "alone")
    os.unlink(truth)
done()
