#!/usr/bin/env python3
# descry heap on quiet processes of more than a million objects: Python, as many objects and bytes of each class as gc.get_objects() and
# sys.getsizeof() have; Node.js, as many as V8's own snapshot has, and as the program has made. heap_ruby.py and heap_java.py do the same.
# timeout: 600
import array
import json
import re
import signal

from live import *
from node_code import nodes

PYTHON = "/usr/bin/python3"
# What it counts with is there before: the second count is of the objects that are there at "ready", but for those that a call makes.
PYTHON_PROGRAM = r"""
import gc, json, os, signal, sys
class Order:
    def __init__(self, i):
        self.id = i
        self.tags = [i, i + 1]
        self.name = "order number %d" % i
class Slotted:
    __slots__ = ("a", "b")
    def __init__(self, i):
        self.a = {i}
        self.b = Listed([i])
class Listed(list):
    pass
class Bare:
    pass
N = int(sys.argv[1])
orders = [Order(i) for i in range(N)]
slotted = [Slotted(i) for i in range(N)]
bare = [Bare() for i in range(N)]
def count():
    counts, sizes = {}, {}
    for o in gc.get_objects():
        name = type(o).__name__
        counts[name] = counts.get(name, 0) + 1
        sizes[name] = sizes.get(name, 0) + sys.getsizeof(o)
    return counts, sizes
gc.collect()
gc.disable()
count()
said = json.dumps(count())
with open(sys.argv[2], "w") as f:
    f.write(said)
os.write(1, b"ready\n")
while True:
    signal.pause()
"""
NODE_PROGRAM = r"""
const v8 = require('v8'), fs = require('fs');
class Line { constructor(i) { this.n = i; } }
class Customer { constructor(i) { this.id = i; this.line = new Line(i); } }
class Order extends Customer { constructor(i) { super(i); this.total = i * 1.5 + 0.25; this.customer = new Customer(i); this.seen = new Set([i]); } }
global.orders = [];
for (let i = 0; i < +process.argv[2]; i++) orders.push(new Order(i));
process.on('SIGUSR2', () => { v8.writeHeapSnapshot(process.argv[3]); process.exit(0); });
setInterval(() => {}, 1e9);
gc(); gc();
setTimeout(() => { gc(); gc(); setTimeout(() => fs.writeSync(1, 'ready ' + v8.getHeapStatistics().used_heap_size + '\n'), 500); }, 300);
"""


def heap(p, *args):
    r = subprocess.run([DESCRY, "heap", "--json", "-n", "100000", *args, "-p", str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(r.returncode == 0, r.stdout[-300:], r.stderr)
    return [json.loads(line) for line in r.stdout.splitlines()]


def histogram(p):
    return {r["class"]: (r["objects"], r["bytes"]) for r in heap(p, "--histogram") if "class" in r}


def start(*args):
    p = kill_at_end(subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True))
    line = p.stdout.readline()
    check(line.startswith("ready"), "the program did not start", args[0], line)
    return p, line


def python():
    n, answers = 250000, os.path.join(TMP, "python.json")
    p, _ = start(PYTHON, "-S", "-c", PYTHON_PROGRAM, str(n), answers)
    rows = histogram(p)
    with open(answers) as f:
        counts, sizes = json.load(f)
    check(sum(counts.values()) > 1000000, "a million objects", sum(counts.values()))
    for name in "Order", "Slotted", "Bare", "Listed", "set":
        check(rows.get(name) == (counts[name], sizes[name]), name, rows.get(name), counts[name], sizes[name])
    check(rows["Order"][0] == rows["Bare"][0] == n, rows["Order"])
    # the collector's own number: the list of the objects, its iterator and frames come and go
    tracked = int(re.search(r"collector has (\d+) objects", " ".join(heap(p)[0]["remarks"]))[1])
    check(abs(tracked - sum(counts.values())) <= 20, "tracked", tracked, sum(counts.values()))
    p.kill()


def numbers(path):
    """The nodes of a snapshot as an array, and its names, without the tree of its JSON."""
    with open(path) as f:
        text = f.read()
    meta = json.JSONDecoder().raw_decode(text, text.index(":") + 1)[0]["meta"]
    begin = text.index('"nodes":[') + 9
    values = array.array("Q", map(int, text[begin:text.index("]", begin)].split(",")))
    return meta, values, json.JSONDecoder().raw_decode(text, text.index('"strings":[') + 10)[0]


def node(program):
    n, answers = 150000, os.path.join(TMP, "own.heapsnapshot")
    path = os.path.join(TMP, "million.js")
    with open(path, "w") as f:
        f.write(NODE_PROGRAM)
    p, line = start(program, "--expose-gc", path, str(n), answers)
    used = int(line.split()[1])
    rows = histogram(p)
    check(sum(r[0] for r in rows.values()) > 1000000, program, "a million objects", sum(r[0] for r in rows.values()))
    os.kill(p.pid, signal.SIGUSR2)
    p.wait()
    meta, values, strings = numbers(answers)
    width = len(meta["node_fields"])
    kind, name, size = (meta["node_fields"].index(k) for k in ("type", "name", "self_size"))
    own = {}
    for i in range(0, len(values), width):
        if meta["node_types"][0][values[i + kind]] == "object":
            row = own.get(values[i + name], (0, 0))
            own[values[i + name]] = (row[0] + 1, row[1] + values[i + size])
    own = {strings[k]: row for k, row in own.items()}
    # Order's prototype is made like a Customer
    for c, made in ("Order", n), ("Customer", n + 1), ("Line", 2 * n):
        check(rows.get(c) == own.get(c) and rows[c][0] == made, program, c, rows.get(c), own.get(c))
    check(rows["Set"][0] >= n and abs(rows["Set"][0] - own["Set"][0]) <= 20, program, rows["Set"], own["Set"])
    total = sum(r[1] for c, r in rows.items() if c != "system / JSArrayBufferData")
    check(abs(total - used) <= used * 0.02, program, "bytes", total, used)


if os.path.exists(PYTHON) and "3.11" in subprocess.run([PYTHON, "-V"], capture_output=True, text=True).stdout:
    python()
for program in nodes():
    node(program)
done()
