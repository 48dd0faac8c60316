#!/usr/bin/env python3
# descry heap alloc: the lines of a running Ruby and Python that made the objects which are alive, exactly, while other objects come, go and take
# their addresses; again and again; as JSON, as stacks, of a sample; the program's answers stay the same, and it runs on.
# serial
import collections
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import shutil
import atexit

from checks import *

DESCRY = os.environ["DESCRY"]
TMP = tempfile.mkdtemp(prefix="descry-heap-alloc-")
atexit.register(shutil.rmtree, TMP, True)
running = []

# Every request is a word on standard input; the answer is a line.
RUBY = r"""
require 'objspace'
class Foo; end
class Bar
  def initialize
    @values = [1, 2, 3, 4, 5]
  end
end
Point = Struct.new(:x, :y)
$keep = []
$sums = 0
def leak(rounds)
  rounds.times do
    100.times { |i|
      $keep << Foo.new
      s = "string %d with a text of its own" % i
      $sums += s.size
    }
    $keep << Bar.new
    $keep << Point.new(1, 2)
    [3.0e300 * rounds, {}, "x" * 100, Object.new].each { |x| x.hash }
  end
end
def churn(n)
  n.times { Object.new }
end
$stdout.sync = true
puts "ready"
while (line = $stdin.gets)
  what, n = line.split
  case what
  when "leak" then leak(n.to_i)
  when "churn" then churn(n.to_i)
  when "drop" then $keep.clear; GC.start
  when "total" then puts GC.stat(:total_allocated_objects)
  end
  puts "#{what} #{$sums}" unless what == "total"
end
exit 7
"""
PYTHON = r"""
import gc, sys
class Foo: pass
class Bar:
    def __init__(self):
        self.values = [1, 2, 3, 4, 5]
keep = []
sums = 0
def leak(rounds):
    global sums
    for i in range(rounds):
        for k in range(100):
            keep.append(Foo())
            s = "string %d with a text of its own" % k
            sums += len(s)
        keep.append(Bar())
        keep.append((i, rounds))
        [float(i) * 3, {}, "x" * 100, object()].sort(key=str)
def churn(n):
    for i in range(n):
        Foo()
print("ready", flush=True)
while True:
    line = sys.stdin.readline()
    if not line:
        break
    what, n = line.split()
    if what == "leak": leak(int(n))
    elif what == "churn": churn(int(n))
    elif what == "drop":
        keep.clear()
        gc.collect()
    print(what, sums, flush=True)
sys.exit(7)
"""


@atexit.register
def end_all():
    for p in running:
        if p.poll() is None:
            p.kill()
        p.wait()


def line_of(program, text):
    return 1 + next(i for i, line in enumerate(program.splitlines()) if text in line)


class Program:
    def __init__(self, interpreter, program):
        self.path = os.path.join(TMP, "app." + os.path.basename(interpreter))
        with open(self.path, "w") as f:
            f.write(program)
        self.p = subprocess.Popen([interpreter, self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(self.p)
        check(self.p.stdout.readline() == "ready\n", "the program did not start")

    def ask(self, what, n=0):
        self.p.stdin.write("%s %d\n" % (what, n))
        self.p.stdin.flush()
        return self.p.stdout.readline().strip()

    def end(self):
        self.p.stdin.close()
        return self.p.wait(timeout=60)


class Alloc:
    """A recording. Its BEGIN clause says when it has begun."""
    def __init__(self, program, *args):
        self.d = subprocess.Popen([DESCRY, "heap", "alloc", "-n", "100000", "-p", str(program.p.pid), *args], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(self.d)
        check(self.d.stderr.readline() == "descry heap: recording\n", "the recording did not begin")

    def settle(self):
        """Waits until the recorder has read what the program has written: it takes no processor time then."""
        def used():
            with open("/proc/%d/stat" % self.d.pid) as f:
                fields = f.read().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12]), fields[0]
        still, last = 0, None
        while still < 3 and self.d.poll() is None:
            time.sleep(0.05)
            now = used()
            still = still + 1 if now == last and now[1] == "S" else 0
            last = now

    def end(self):
        self.d.send_signal(signal.SIGINT)
        out, err = self.d.communicate(timeout=120)
        check(self.d.returncode == 0 and not err, "exit", self.d.returncode, err[-1000:], out[-500:])
        return out


def rows(text):
    """{(line, class): count} of memprof's form."""
    found = {}
    for line in text.splitlines():
        m = re.match(r" *(\d+) (\S+):(\d+):(.+)$", line)
        if m:
            found[int(m[3]), m[4]] = found.get((int(m[3]), m[4]), 0) + int(m[1])
    return found


def json_rows(text):
    lines = [json.loads(line) for line in text.splitlines()]
    return lines[0], {(r.get("line"), r["class"]): r["count"] for r in lines[1:]}


def expect(found, expected, what):
    wrong = {k: (found.get(k), n) for k, n in expected.items() if found.get(k) != n}
    check(not wrong, what, "found and expected differ:", wrong, found)


def session(interpreter, program, foo, classes):
    if not os.path.exists(interpreter):
        skip("there is no " + interpreter)
    name = os.path.basename(interpreter)
    p = Program(interpreter, program)
    foo = line_of(program, foo)
    # what was made before the recording has no line, and its addresses are used again
    p.ask("leak", 100)
    p.ask("drop")
    a = Alloc(p)
    for _ in range(16):  # the buffers hold what each makes, however late the recorder runs
        before = p.ask("leak", 95)
        a.settle()
    text = a.end()
    expected = {(line_of(program, text), c): 1520 for text, c in classes.items()}
    expect(rows(text), {**expected, (foo, "Foo"): 152000}, name)
    check(text.splitlines()[0] == " 152000 %s:%d:Foo" % (p.path, foo), name, "memprof's form", text.splitlines()[:1])
    counts = [int(line.split()[0]) for line in text.splitlines()]
    check(counts == sorted(counts, reverse=True), name, "sorted by count")
    # objects that are gone do not count; their addresses have other lines now
    a = Alloc(p, "--json")
    p.ask("leak", 100)
    p.ask("drop")
    p.ask("churn", 20000)
    p.ask("leak", 10)
    head, found = json_rows(a.end())
    expect(found, {(foo, "Foo"): 1000}, name + ", after objects have gone")
    check(head["sample"] == 1 and head["lost"] == 0 and head["recorded"] > 30000 and head["objects"] == sum(found.values()), name, head)
    # a sample
    p.ask("drop")
    a = Alloc(p, "--json", "--sample", "16")
    for _ in range(10):
        p.ask("leak", 100)
        a.settle()
    head, found = json_rows(a.end())
    n = found.get((foo, "Foo"), 0)
    check(abs(n - 100000) < 6000 and head["sample"] == 16, name, "a sample of 16", n, head)
    # stacks
    p.ask("drop")
    page = os.path.join(TMP, name + ".folded")
    a = Alloc(p, "-o", page)
    p.ask("leak", 10)
    a.end()
    with open(page) as f:
        folded = f.read()
    wanted = ";%s:%d:" % (os.path.basename(p.path), foo)
    lines = [line for line in folded.splitlines() if ";Foo " in line and wanted in line]
    check(lines and "leak" in lines[0], name, "stacks", folded[:2000])
    # several answers, each with what was alive then
    p.ask("drop")
    a = Alloc(p, "--every", "0.5", "--json")
    p.ask("leak", 10)
    heads = 0
    while heads < 3:
        heads += '"type":"alloc",' in a.d.stdout.readline()
    out = a.end()
    check(out.rstrip().endswith("}"), name, "--every", out[-300:])
    # --for ends it by itself
    r = subprocess.run([DESCRY, "heap", "alloc", "--for", "0.3", "-p", str(p.p.pid)], capture_output=True, text=True, timeout=120)
    check(r.returncode == 0 and r.stderr == "descry heap: recording\n", name, "--for", r)
    after = p.ask("leak", 1)
    check(before.startswith("leak ") and after.startswith("leak "), name, "answers", before, after)
    # it ends while it is recorded
    a = Alloc(p)
    status = p.end()
    out, err = a.d.communicate(timeout=120)
    check(status == 7, name, "the program's exit code", status)
    check(a.d.returncode == 1 and "has ended, and its heap with it" in err, name, "a process that ends", a.d.returncode, err)


def total():
    """Each object of Ruby passes a probe: their number is the collector's own."""
    p = Program("/usr/bin/ruby", RUBY)
    p.ask("total")
    a = Alloc(p, "--json")
    first = int(p.ask("total"))
    for _ in range(4):
        p.ask("leak", 75)
        a.settle()
    last = int(p.ask("total"))
    head, _ = json_rows(a.end())
    # between the beginning and the first answer, and behind the second, are a few of the requests themselves
    check(0 <= head["recorded"] - (last - first) < 200, "all objects of Ruby are recorded", head, last - first)
    p.end()


def kills():
    """A recorder that is killed, at any instant, leaves a program that answers as before, and that can be recorded again."""
    p = Program("/usr/bin/ruby", RUBY)
    for i in range(15):
        a = Alloc(p)
        p.p.stdin.write("leak %d\n" % (1 + i * 20))
        p.p.stdin.flush()
        time.sleep(i * 0.003)
        a.d.kill()
        a.d.wait()
        check(p.p.stdout.readline().startswith("leak "), "an answer after a kill", i)
    p.ask("drop")
    a = Alloc(p)
    p.ask("leak", 10)
    expect(rows(a.end()), {(line_of(RUBY, "Foo.new"), "Foo"): 1000}, "after kills")
    check(p.end() == 7, "the exit code after kills")


def wrong(args, message):
    r = subprocess.run([DESCRY, "heap", *args], capture_output=True, text=True, timeout=60)
    check(r.returncode in (1, 2) and message in r.stderr, args, r.returncode, r.stderr)


session("/usr/bin/ruby", RUBY, "Foo.new", {"@values = [1": "Array", "Bar.new": "Bar", "Point.new": "Point"})
session("/usr/bin/python3", PYTHON, "keep.append(Foo())", {"self.values = [1": "list", "keep.append(Bar())": "Bar", "keep.append((i": "tuple"})
total()
kills()
wrong(["alloc"], "whose objects? -p PID")
wrong(["alloc", "-p", "1", "x"], "is of a process")
wrong(["--sample", "3", "-p", "1"], "belong to descry heap alloc")
wrong(["alloc", "-o", "x.png", "-p", "1"], "the name ends in none of")
other = subprocess.Popen(["/bin/sleep", "600"])
running.append(other)
wrong(["alloc", "-p", str(other.pid)], "it runs none of them")
done()
