#!/usr/bin/env python3
# descry heap on a live Node.js: as many objects and bytes of each class as V8's own snapshot of the same process has, and the bytes that
# v8.getHeapStatistics() counts; references, paths and retained memory of objects that the test knows; the service that leaks of mdb_v8's
# ::findjsobjects, found by the suspects; the same from its core; a program that runs on while it is read, and one that is killed.
# NODES: programs to read instead of the installed one; N: orders.
# timeout: 600
import atexit
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

from checks import *
from node_code import nodes

DESCRY = os.environ["DESCRY"]
N = int(os.environ.get("N", "20000"))
TMP = tempfile.mkdtemp(prefix="descry-heap-v8-")
atexit.register(shutil.rmtree, TMP, True)
running = []

# It is quiet when it says its sums. The snapshot is written when all questions were asked.
PROGRAM = r"""
const v8 = require('v8'), fs = require('fs');
const { EventEmitter } = require('events');
class Customer { constructor(i) { this.id = i; this.name = 'customer ' + i; this.tags = [i, {}]; } }
class Order extends Customer { constructor(i) { super(i); this.total = i * 1.5; this.customer = new Customer(i); } }
class Line { #hidden = {}; constructor(i) { this.n = i; } }
function Old(i) { this.i = i; this['x' + i % 7] = i; }
class Holder { constructor() { this.orders = []; this.index = new Map(); this.weak = new WeakMap(); this.ref = null; } }
class Wide { constructor() { FIELDS } }
class Dictionary { constructor(i) { for (let k = 0; k < 300; k++) this['key' + k] = new Line(k); delete this.key5; } }
class Value {}
const bus = new EventEmitter();
bus.setMaxListeners(0);
global.holder = new Holder();
function listen(kept) { return function onData() { return kept; }; }
for (let i = 0; i < +process.argv[2]; i++) {
    const o = new Order(i);
    holder.orders.push(o);
    if (i % 10 == 0) holder.index.set('k' + i, new Line(i));
    if (i % 10 == 1) holder.weak.set(o, new Value());
    if (i % 10 == 2) bus.on('data', listen(new Old(i)));
}
holder.ref = new WeakRef(bus);
global.bus = bus;
global.wide = Array.from({ length: 100 }, () => new Wide());
global.dictionaries = Array.from({ length: 10 }, (_, i) => new Dictionary(i));
global.bare = Array.from({ length: 50 }, (_, i) => Object.assign(Object.create(null), { i }));
global.buffers = Array.from({ length: 20 }, () => Buffer.alloc(100000));
global.tagged = Array.from({ length: 30 }, () => ({ [Symbol.toStringTag]: 'Labelled' }));
global.anonymous = Array.from({ length: 40 }, () => new (class { })());
global.long = [...'abcdefgh'].map((c) => BigInt('0x' + c.repeat(60).replace(/[gh]/g, '1')));
process.on('SIGUSR2', () => { v8.writeHeapSnapshot(process.argv[3]); process.exit(0); });
setInterval(() => {}, 1e9);
gc(); gc();
setTimeout(() => { gc(); gc(); setTimeout(() => fs.writeSync(1, 'ready ' + v8.getHeapStatistics().used_heap_size + '\n'), 500); }, 300);
""".replace("FIELDS", " ".join("this.field%d = new Line(%d);" % (i, i) for i in range(40)))
# Each request leaves a listener, which keeps the request's session.
SERVICE = r"""
const { EventEmitter } = require('events');
const fs = require('fs');
class Session { constructor(id) { this.id = id; this.headers = { host: 'h' + id }; this.body = 'x'.repeat(100) + id; this.tags = new Array(30).fill(id); } }
class Registry extends EventEmitter {}
class Service {
    constructor() { this.registry = new Registry(); this.registry.setMaxListeners(0); this.served = 0; }
    handle(id) {
        const session = new Session(id);
        this.registry.on('shutdown', function onShutdown() { session.closed = true; });
        this.served++;
    }
}
const service = new Service();
for (let i = 0; i < 20000; i++)
    service.handle(i);
global.service = service;
setInterval(() => {}, 1e9);
setTimeout(() => { gc(); setTimeout(() => fs.writeSync(1, 'ready 0\n'), 200); }, 200);
"""
# It says nothing more, and makes and drops objects.
BUSY = r"""
class Short { constructor(i) { this.i = i; this.text = 'text ' + i; this.more = { i }; } }
let all = [], turns = 0;
(function turn() {
    for (let i = 0; i < 20000; i++)
        all[i % 5000] = new Short(i);
    if (!turns++)
        require('fs').writeSync(1, 'ready 0\n');
    setImmediate(turn);
})();
"""


@atexit.register
def end_all():
    for p in running:
        p.kill()
        p.wait()


def start(node, program, *args):
    """The process, and the number that it says."""
    path = os.path.join(TMP, "%d.js" % len(os.listdir(TMP)))
    with open(path, "w") as f:
        f.write(program)
    p = subprocess.Popen([node, "--expose-gc", path, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    running.append(p)
    line = p.stdout.readline()
    if not line.startswith("ready "):
        check(False, "the program did not start", node, line)
        done()
    return p, int(line.split()[1])


def end(p):
    p.kill()
    p.wait()
    running.remove(p)


def heap(*args):
    p = subprocess.run([DESCRY, "heap", "--json", "-n", "10000000", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == 0, "exit", p.returncode, p.args, p.stdout[-500:], p.stderr[-500:])
    return [json.loads(line) for line in p.stdout.splitlines()]


def histogram(*where):
    return {r["class"]: (r["objects"], r["bytes"]) for r in heap("--histogram", *where) if "class" in r}


def snapshot(path):
    """Objects and bytes by class: of objects, of closures by the name of their function, and of other things by their kind."""
    with open(path) as f:
        s = json.load(f)
    fields = s["snapshot"]["meta"]["node_fields"]
    kinds = s["snapshot"]["meta"]["node_types"][0]
    kind, name, size = (fields.index(k) for k in ("type", "name", "self_size"))
    rows, nodes_, strings = collections.defaultdict(lambda: (0, 0)), s["nodes"], s["strings"]
    for i in range(0, len(nodes_), len(fields)):
        k, text = kinds[nodes_[i + kind]], strings[nodes_[i + name]]
        row = {"object": text, "closure": "(closure %s)" % text if text else "(closure)", "regexp": "RegExp"}.get(k, "(%s)" % k)
        rows[row] = (rows[row][0] + 1, rows[row][1] + nodes_[i + size])
    return rows


# Classes of the program: exactly equal. The snapshot's own work adds to the others.
OWN = ("Customer", "Order", "Line", "Old", "Holder", "Wide", "Dictionary", "Value", "Labelled", "Buffer", "Map", "WeakMap", "EventEmitter",
       "(closure onData)", "BuiltinModule")
LIKE = ("Object", "Array", "system / Context", "ArrayBuffer", "(concatenated string)", "(string)", "(number)", "Set", "RegExp", "Promise", "(bigint)")


def compare(node, found, used, own):
    """With V8's snapshot, and with the bytes that V8 has counted."""
    differ = {k: (found.get(k), own.get(k)) for k in OWN if found.get(k) != own.get(k) and k not in ("Map", "WeakMap", "Buffer")}
    check(not differ, node, "classes differ", differ)
    check(found["Order"][0] == N and found["(closure onData)"][0] == N // 10 and found["Labelled"][0] >= 30, node, found["Order"])
    for k in LIKE + ("Map", "WeakMap", "Buffer"):
        a, b = found.get(k, (0, 0))[0], own.get(k, (0, 0))[0]
        check(abs(a - b) <= max(20, b // 20), node, k, a, b)
    outside = found["system / JSArrayBufferData"]
    check(outside[1] >= 20 * 100000, node, outside)
    total = sum(size for _, size in found.values()) - outside[1]
    print("%s: %d objects, %d bytes; V8 counts %d" % (node, sum(n for n, _ in found.values()), total, used))
    check(abs(total - used) <= used * 0.02, node, "bytes", total, used)


def one(where, expression):
    rows = [r for r in heap("--find", expression, *where) if "address" in r]
    return rows[0]["address"] if check(len(rows) == 1, expression, rows) else "0"


def references(where, address):
    return {r["field"]: r["class"] for r in heap("--refs", address, *where)[1:] if r["type"] == "reference" and r.get("field")}


def ask(node, where):
    """Questions whose answers are known."""
    rows = heap(*where)
    if not check(rows and rows[0]["source"] == "v8", node, rows[:1]):
        return
    check(rows[0]["unreachable"] * 100 < rows[0]["objects"], node, "not reachable", rows[0])
    holder = references(where, one(where, 'class == "Holder"'))
    check(holder.get("orders") == "Array" and holder.get("index") == "Map" and holder.get("ref") == "WeakRef", node, holder)
    wide = references(where, next(r["address"] for r in heap("--find", 'class == "Wide"', *where) if "address" in r))
    check(all(wide.get("field%d" % i) == "Line" for i in range(40)), node, wide)
    retained = next(r for r in heap("--refs", one(where, 'class == "Holder"'), *where) if "retained" in r)["retained"]
    check(retained > N * 300, node, retained)
    # A handle of the running code may hold the object that was made last.
    texts = {name: subprocess.run([DESCRY, "heap", "-n", "1000", "--paths", name, *where], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True).stdout for name in ("Old", "Value", "Line")}
    check(re.search(r"bus: .*EventEmitter.*_events.*data: Array.*\(closure onData\).*context: system / Context.*kept: Old", texts["Old"], re.S),
          node, texts["Old"])
    check(re.search(r"orders: Array.*Order.*<value in a WeakMap>: Value \((%d|%d)\)" % (N // 10, N // 10 - 1), texts["Value"], re.S), node, texts["Value"])
    check(re.search(r"Dictionary \(10\).*key\d+: Line", texts["Line"], re.S), node, texts["Line"][:6000])
    dictionary = references(where, next(r["address"] for r in heap("--find", 'class == "Dictionary"', *where) if "address" in r))
    check({k for k, v in dictionary.items() if v == "Line"} == {"key%d" % i for i in range(300) if i != 5}, node, dictionary)


def leaks(node):
    """The suspects name the class whose objects pile up and who holds them."""
    p, _ = start(node, SERVICE)
    rows = histogram("-p", str(p.pid))
    check(rows.get("Session", (0, 0))[0] == 20000 and rows.get("(closure onShutdown)", (0, 0))[0] == 20000, node, rows.get("Session"))
    text = subprocess.run([DESCRY, "heap", "-p", str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    check(re.search(r"which holds (2000\d|1999\d) objects; the most are", text), node, text)
    check(re.search(r"Service -> registry: Registry -> _events: Object -> .*shutdown: Array -> elements: \(array\)", text), node, text)
    text = subprocess.run([DESCRY, "heap", "--paths", "Session", "-p", str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    check(re.search(r"\(closure onShutdown\) \(\d{5}\).*context: system / Context.*session: Session \(\d{5}\)", text, re.S), node, text)
    counts = [r for r in heap("--counts", "-p", str(p.pid)) if r.get("class") == "Session"]
    check(counts and counts[0]["count"] == 20000, node, counts)
    end(p)


def core(node, p, found):
    if not shutil.which("gcore"):
        return
    path = os.path.join(TMP, "core")
    r = subprocess.run(["gcore", "-o", path, str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True)
    path += ".%d" % p.pid
    if r.returncode == 0:
        there = histogram(path)
        differ = {k: (found.get(k), there.get(k)) for k in {*found, *there} if k in OWN and found.get(k) != there.get(k)}
        check(not differ and len(there) > len(found) - 20, node, "core and process differ", differ)
        os.unlink(path)


def quiet(node):
    answers = os.path.join(TMP, "own.heapsnapshot")
    p, used = start(node, PROGRAM, str(N), answers)
    where = ("-p", str(p.pid))
    found = histogram(*where)
    ask(node, where)
    core(node, p, found)
    os.kill(p.pid, signal.SIGUSR2)
    p.wait()
    running.remove(p)
    compare(node, found, used, snapshot(answers))
    os.unlink(answers)


def changing(node):
    """A program that makes and drops objects all the while is read, and goes on; one that is killed gives an answer or one message."""
    p, _ = start(node, BUSY)
    short = []
    for _ in range(8):
        rows = heap("-p", str(p.pid))
        check(rows and rows[0]["objects"] > 20000, node, rows[:1])
        short.append(histogram("-p", str(p.pid)).get("Short", (0, 0))[0])
    # While the collector is at work, objects are missing.
    check(max(short) >= 1000, node, short)
    check(p.poll() is None, node, "the program has ended", p.poll())
    end(p)
    for _ in range(3):
        p, _ = start(node, BUSY)
        d = subprocess.Popen([DESCRY, "heap", "-p", str(p.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end(p)
        out, err = d.communicate()
        check(d.returncode in (0, 1), node, "exit", d.returncode, out, err)
        check(d.returncode == 0 or err.strip(), node, "no message")


for n in nodes():
    quiet(n)
    leaks(n)
    changing(n)
done()
