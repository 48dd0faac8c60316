#!/usr/bin/env python3
# descry heap on a live Ruby of a million objects: every count equal to ObjectSpace.count_objects and each_object, sizes to
# ObjectSpace.memsize_of; references, paths and retained memory of objects that the test knows; the same from its core; a program that runs
# on while it is read, and one that is killed.
import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

from checks import *

DESCRY = os.environ["DESCRY"]
RUBY = "/usr/bin/ruby"
TMP = tempfile.mkdtemp(prefix="descry-heap-ruby-")
atexit.register(shutil.rmtree, TMP, True)
running = []

# It counts until nothing that it calls is new, so that the last count makes no object. each_object makes one Hash at each call, and so
# the counts of three calls show what the next one would be.
PROGRAM = r"""
require 'objspace'
require 'json'
class Order
  def initialize(i)
    @id = i
    @name = "order number #{i} with a name that has memory of its own"
    @tags = [i, i + 1, i + 2, i + 3]
  end
end
Point = Struct.new(:x, :y)
Wide = Struct.new(:a, :b, :c, :d, :e)
module Deep; class Keeper; def initialize(held); @held = held; end; end; end
N = ARGV[0].to_i
$orders = Array.new(N) { |i| Order.new(i) }
$points = Array.new(N / 2) { |i| Point.new(i * 1e300, i) }
$wide = Array.new(100) { |i| Wide.new("a", "b", "c", "d", i) }
$table = {}
(N / 10).times { |i| $table["k#{i}"] = { a: i, b: "v#{i}" } }
$floats = Array.new(ARGV[2].to_i) { |i| i * 1e300 }
$same = Array.new(400) { |i| "the same text #{i % 2}" + (i % 2 == 0 ? "" : "y" * 100) }
$big = (1..100).map { |i| 2**(i * 20) }
$procs = Array.new(100) { |i| proc { $orders[i] } }
def $big.single; end
Deep::KEEPER = Deep::Keeper.new(Array.new(1000) { |i| "kept #{i} " + "x" * 1000 })
$held = Array.new(3) { |k| Hash.new }
$sizes = Hash.new
SIZED = [Order, Point, Wide, Float, Symbol]
READY = "ready\n"
trap("USR1") do
  say = ->(h) { h.map { |k, v| [k.name || k.inspect, v] }.to_h }
  File.write(ARGV[1], JSON.dump("types" => $types, "classes" => $held.map(&say), "sizes" => say.($sizes)))
  exit!(0)
end
$types = {}
$index = 0
$pause = 0.001
$word = ""
def count
  h = $held[$index]
  h.each_key { |k| h[k] = 0 }
  ObjectSpace.each_object do |o|
    next if Class === o && o.singleton_class?
    h[o.class] = (h[o.class] || 0) + 1
  end
  $index = ($index + 1) % 3
end
GC.start
GC.disable
SIZED.each { |c| $sizes[c] = ObjectSpace.memsize_of_all(c) }
count
3.times do |i|
  count
  if i == 2
    $word = READY
    $pause = 100000
  end
  ObjectSpace.count_objects($types)
  $stdout.syswrite($word)
  ObjectSpace.count_objects($types)
  sleep $pause
end
"""


@atexit.register
def end_all():
    for p in running:
        p.kill()
        p.wait()


def start(program, *args):
    path = os.path.join(TMP, "%d.rb" % len(os.listdir(TMP)))
    with open(path, "w") as f:
        f.write(program)
    p = subprocess.Popen([RUBY, path, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    running.append(p)
    if p.stdout.readline() != "ready\n":
        check(False, "the program did not start")
        done()
    return p


def end(p):
    p.kill()
    p.wait()
    running.remove(p)


def heap(*args):
    p = subprocess.run([DESCRY, "heap", "--json", "-n", "100000", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == 0, "exit", p.returncode, p.args, p.stdout[-500:], p.stderr[-500:])
    return [json.loads(line) for line in p.stdout.splitlines()]


def types(rows):
    remark = " ".join(rows[0]["remarks"])
    ret = {k: int(n) for k, n in re.findall(r"(FREE|T_\w+) (\d+)", remark)}
    ret["TOTAL"] = int(re.search(r"(\d+) slots", remark)[1])
    return ret


def next_counts(counts):
    """What a further each_object would count: the calls before it made the same objects each."""
    a, b, c = counts
    return {k: c[k] + (c[k] - b.get(k, 0)) for k in c if c[k] - b.get(k, 0) == b.get(k, 0) - a.get(k, 0)}


def compare(p, where, answers):
    rows = heap(*where)
    found = {r["class"]: r for r in heap("--histogram", *where)}
    if not os.path.exists(answers):
        os.kill(p.pid, signal.SIGUSR1)
        p.wait()
        running.remove(p)
    with open(answers) as f:
        own = json.load(f)
    if not check(len(rows) and rows[0]["source"] == "ruby", rows[:1]):
        return
    t = types(rows)
    check(t == own["types"], "types differ", {k: (t.get(k), own["types"].get(k)) for k in {*t, *own["types"]} if t.get(k) != own["types"].get(k)})
    expected = next_counts(own["classes"])
    check(len(expected) >= len(own["classes"][2]) - 2, "the program was not quiet", own["classes"])
    differ = {k: (found.get(k, {}).get("objects"), n) for k, n in expected.items() if found.get(k, {}).get("objects") != n}
    check(not differ, "classes differ", differ)
    differ = {k: (found.get(k, {}).get("bytes"), n) for k, n in own["sizes"].items() if found.get(k, {}).get("bytes") != n}
    check(not differ, "sizes differ", differ)
    check(rows[0]["reachable"] + rows[0]["unreachable"] + rows[0]["weakly_reachable"] == rows[0]["objects"], rows[0])
    # all that the program holds is reachable; some code that has run is not
    check(rows[0]["unreachable"] < 2000, "not reachable", rows[0])
    return found


def ask(p):
    """Questions whose answers are known."""
    where = ("-p", str(p.pid))
    keeper = [r for r in heap("--find", 'class == "Deep::Keeper"', *where) if r.get("class") == "Deep::Keeper"]
    if not check(len(keeper) == 1, keeper):
        return
    refs = heap("--refs", keeper[0]["address"], *where)
    check(refs[0]["retained"] >= 1000 * 1000, refs[0])
    check(any(r.get("field") == "@held" and r["class"] == "Array" for r in refs[1:]), refs)
    fields = {r["field"]: r["class"] for o in heap("--find", 'class == "Order"', *where)[:1] for r in heap("--refs", o["address"], *where)[1:]
              if r["type"] == "reference"}
    same = [r for r in heap("--duplicates", *where) if r.get("head", "").startswith("the same text ")]
    check(sorted(r["objects"] for r in same) == [200, 200] and {r["class"] for r in same} == {"String"}, same)
    check(sorted(r["length"] for r in same) == [15, 115], same)
    check(fields.get("@name") == "String" and fields.get("@tags") == "Array", fields)


if not os.path.exists(RUBY):
    skip("no Debian ruby")
version = subprocess.run([RUBY, "-e", "print RUBY_VERSION"], capture_output=True, text=True).stdout
if not version.startswith("3.1."):
    skip("ruby %s is not the version whose heap the test knows" % version)

answers = os.path.join(TMP, "big.json")
p = start(PROGRAM, "20000", answers, "900000")
found = compare(p, ("-p", str(p.pid)), answers)
check(found and sum(r["objects"] for r in found.values()) > 1000000, "a million objects")

answers = os.path.join(TMP, "small.json")
p = start(PROGRAM, "2000", answers, "0")
ask(p)
if shutil.which("gcore"):
    core = os.path.join(TMP, "core")
    r = subprocess.run(["gcore", "-o", core, str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True)
    if r.returncode == 0:
        check(types(heap("%s.%d" % (core, p.pid))) == types(heap("-p", str(p.pid))), "core and process differ")
        os.kill(p.pid, signal.SIGUSR1)
        p.wait()
        running.remove(p)
        compare(p, ("%s.%d" % (core, p.pid),), answers)

# A program that makes and drops objects all the while is read, and goes on.
p = start("$stdout.syswrite(\"ready\\n\")\nloop { $a = Array.new(1000) { |i| [i.to_s, { i => i.to_f }] } }", "")
for _ in range(3):
    rows = heap("-p", str(p.pid))
    check(rows and rows[0]["objects"] > 1000 and types(rows)["TOTAL"] > 10000, rows[:1])
check(p.poll() is None, "the program has ended", p.poll())
end(p)

# A program that is killed while it is read: an answer or one message.
for _ in range(3):
    p = start(PROGRAM, "2000", os.path.join(TMP, "none"), "0")
    d = subprocess.Popen([DESCRY, "heap", "-p", str(p.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end(p)
    out, err = d.communicate()
    check(d.returncode in (0, 1), "exit", d.returncode, out, err)
    check(d.returncode == 0 or err.strip(), "no message")
done()
