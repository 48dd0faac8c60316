#!/usr/bin/env python3
# Descriptions that select functions by names decide once for each function of Python and method of Ruby, by a number of it: as many firings as
# the program made such calls. Functions and classes that are made and dropped again and again use addresses again; there are more functions
# than the program remembers; several descriptions select among the same functions; a class of Ruby gets its name after its first calls, and
# its collector moves methods; several threads call.
# serial
from live import *

PYTHON = r"""
import collections, json, sys, threading

calls = collections.Counter()


def define(name, file):
    space = {}
    calls["%s <module>" % file] += 1
    exec(compile("def %s(n): return n + 1" % name, file, "exec"), space)
    return space[name]


def call(name, file, f, n):
    calls["%s %s" % (file, name)] += n
    for i in range(n):
        f(i)


for i in range(3000):
    name, file = "made_%d" % (i % 7), "/x/part%d.py" % (i % 3)
    call(name, file, define(name, file), 3)  # dropped at once: the next one has its address
kept = {}
for i in range(6000):
    name, file = "kept_%d" % (i % 1000), "/x/part%d.py" % (i % 6)
    kept[i] = name, file, define(name, file)
for round in range(3):
    for name, file, f in kept.values():
        call(name, file, f, 2)
together = define("kept_4000", "/x/part1.py")
threads = [threading.Thread(target=lambda: [together(i) for i in range(5000)]) for _ in range(4)]
calls["/x/part1.py kept_4000"] += 20000
for t in threads:
    t.start()
for t in threads:
    t.join()
with open(sys.argv[1], "w") as f:
    json.dump(calls, f)
"""
RUBY = r"""
require "json"
$calls = Hash.new(0)
def call(owner, name, n)
  $calls["#{owner} #{name}"] += n
  n.times { yield }
end
1500.times do |i|
  name = "made_#{i % 7}"
  c = Class.new
  c.class_eval("def #{name}() 1 end")
  Object.const_set("Made#{i % 3}", c)
  o = c.new
  call("Made#{i % 3}", name, 3) { o.send(name) }
  Object.send(:remove_const, "Made#{i % 3}")
end
late = Class.new { def made_3() 1 end }
o = late.new
call("nothing", "made_3", 9) { o.made_3 }
MadeLate = late
call("MadeLate", "made_3", 9) { o.made_3 }
class Kept; end
class KeptToo; end
all = [Kept, KeptToo].flat_map do |c|
  (0...2500).map { |i| c.class_eval("def kept_#{i}() 1 end"); [c.name, "kept_#{i}", c.new] }
end
4.times { |i| GC.compact if i == 2; all.each { |c, n, o| call(c, n, 2) { o.send(n) } } }
k = Kept.new
$calls["Kept kept_1"] += 2000
(0...4).map { Thread.new { 500.times { k.kept_1 } } }.each(&:join)
File.write(ARGV[0], JSON.dump($calls))
"""
LANGUAGES = (
    ("python", "function-entry", "/usr/bin/python3 -S", PYTHON, "py", "d_id_python",
     (("part1.py", "made_3"), ("*art2*", "*de_5"), ("", "kept_1*"), ("part3*", "*_99"), ("part1.py", "kept_4000"), ("part4.py", ""), ("none*", "*"))),
    ("ruby", "method-entry", "/usr/bin/ruby --disable-gems", RUBY, "rb", "d_id_ruby",
     (("Made1", "made_3"), ("Made*", "*_3"), ("MadeLate", ""), ("Kept", "kept_1*"), ("*Too", "*_99"), ("", "kept_77"), ("None*", "*"))),
)


def selects(pattern, text):
    """The project's own patterns: one * at the beginning, one at the end."""
    word = pattern.strip("*")
    return word in text if pattern[:1] == pattern[-1:] == "*" else text.startswith(word) if pattern.endswith("*") \
        else text.endswith(word) if pattern.startswith("*") else not pattern or text == pattern


for language, probe, interpreter, program, ending, routine, patterns in LANGUAGES:
    if not os.path.exists(interpreter.split()[0]):
        skip("no " + interpreter.split()[0])
    path, truth = "%s/app.%s" % (TMP, ending), "%s/truth.%s" % (TMP, ending)
    with open(path, "w", encoding="utf-8") as f:
        f.write(program)
    clauses = "".join("%s$target:%s:%s:%s { @[%d] = count(); }\n" % (language, mod, func, probe, i) for i, (mod, func) in enumerate(patterns))
    text = descry("-e", "-d", "ir", "-x", "engine=inproc", "-n", clauses, c=interpreter + " --version").out
    check(routine + "(" in text, language, "the number is asked for", text[-2000:])
    for engine in ("inproc", "kernel"):
        if engine == "inproc" and language == "python":
            engine = python_from_inside("/usr/bin/python3")
        r = descry("--json", "-x", "engine=" + engine, "-n", clauses, c="%s %s %s" % (interpreter, path, truth))
        check(os.path.exists(truth) and "fault" not in r.err and "drop" not in r.err, language, engine, r)
        with open(truth, encoding="utf-8") as f:
            calls = {tuple(k.rsplit("/", 1)[-1].split()): n for k, n in json.load(f).items()}
        os.unlink(truth)
        for i, (mod, func) in enumerate(patterns):
            want = sum(n for (m, f), n in calls.items() if selects(mod, m) and selects(func, f))
            check(r.aggs().get(i, 0) == want, language, engine, (mod, func), "counted", r.aggs().get(i, 0), "expected", want)
done()
