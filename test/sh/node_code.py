"""Shared by the tests of JavaScript's frames: programs for Node.js, and what can be said of their stacks."""
import glob
import os
import re
import shutil
import subprocess

from checks import skip

# park() notes the thread's place, below closures, a constructor, a getter, recursion, functions of V8 that call back, and functions with names
# that are not in the source, of which two have the same source. Strings are of one byte and of two bytes a character, lines end in all ways.
# program() fills in the words in capitals.
PROGRAM = """
Error.stackTraceLimit = 100;
Error.prepareStackTrace = (e, sites) => sites.map((s) => [s.getFunctionName(), s.getScriptNameOrSourceURL(), s.getLineNumber()]);
const { Worker, isMainThread } = require('worker_threads');
USES
function park() {
    const o = {};
    Error.captureStackTrace(o); SAYS;
}
function leaf(f, n) {
    return f(n);
}
function middle(f, n) {
    const r = leaf(f, n) + 1;
    return r;
}
function outer(f, n) {
    let s = 0;
    for (let i = 0; i < n; i++)
        s += middle(f, i);
    return s;
}
const many = [(n) => n, (n) => n * 2, (n) => n * 3, (n) => n * 4, (n) => n * 5];
for (let i = 0; i < 4000; i++)
    for (const f of many)
        outer(f, 5);
class Order {
    constructor(n) { this.n = n; if (n == 7) this.total; }
    save(k) { if (k == 0) outer(park, 1); else this.save(k - 1); }
    get total() {
        return this.save(2);
    }
}
function sorts() { [3, 1, 2].sort((a, b) => { new Order(7); return a - b; }); }
const größe = () => { sorts(); };
function replaces() { 'abc'.replace(/b/, () => { größe(); return 'x'; }); }\r\nfunction parses() {\r
    JSON.parse('{"a":1}', function reviver(k, v) { replaces(); return v; });
}\rfunction applies() { Reflect.apply(parses, null, []); }
function evals() { (0, eval)('/*€*/\\nparses();\\n//# sourceURL=evaluated.js'); }
function *generates() { yield (applies(), 1); }
function spreads() { return [...generates()]; }
const take = Symbol('take'), long = Symbol('a description of more than thirty-two characters');
class Queue {
    [take]() { return this[long]; }
    get [long]() { return Queue['a method of ' + many.length](); }
    static ['a method of ' + many.length]() { return spreads(); }
    member = waits(this);
}
function waits(queue) { return queue[take](); }
function called(name, f) {
    return Object.defineProperty(() => f(), 'name', { value: name });
}
const inner = called('inner', () => new Queue()), outermost = called('called by the ' + 'outer', inner);
class Other { constructor() { outermost(); } static name = 'a class that says so'; }
function maps() { return new Map([[1, 2]]).forEach(() => new Other()); }
BEGINS
"""
BUSY = """
let sink = 0;
function leaf(i) {
    return i * 31 + 7;
}
function middle(i) {
    return leaf(i)
        ^ leaf(i + 1);
}
function busyLoop() {
    for (let k = 0; k < 1e5; k++)
        sink += middle(k);
}
function fib(n) {
    return n < 2 ? n : fib(n - 1)
        + fib(n - 2);
}
function busyFib() {
    sink += fib(18);
}
function busySort() {
    const a = [];
    for (let i = 0; i < 3000; i++)
        a.push((i * 7919) % 3001);
    a.sort((x, y) => x - y);
    sink += a.map((x) => leaf(x)).reduce((x, y) => x + y, 0);
}
function busyText() {
    let s = '';
    for (let i = 0; i < 2000; i++)
        s += String(i) + ',';
    sink += JSON.parse(JSON.stringify(s.split(','))).length;
    sink += s.replace(/[0-9]+/g, (m) => m + m).length;
}
function run() {
    for (let i = 0;; i++) {
        busyLoop();
        busyFib();
        busySort();
        busyText();
        if (i == 0)
            console.log('ready');
    }
}
run();
"""


def program(uses, says, begins):
    """The program: what park() needs and does when it knows its place, and how the main thread and a worker begin."""
    return PROGRAM[1:].replace("USES", uses).replace("SAYS", says).replace("BEGINS", begins)


def nodes():
    """The programs to look at: those of $NODES; else the installed one, and those of tools/install-nodes."""
    if "NODES" in os.environ:
        return os.environ["NODES"].split()
    node = shutil.which("node") or shutil.which("nodejs")
    found = sorted(glob.glob(os.environ.get("BUILD", "build") + "/nodes/*/node_modules/node/bin/node"))
    if not node and not found:
        skip("Node.js is not installed: tools/install-deps --test installs it")
    if not found:
        print("only the installed Node.js: tools/install-nodes gets 18, 20, 22 and 24")
    return ([node] if node else []) + found


def accepts(node, flags):
    p = subprocess.run([node, *flags, "-e", "0"], stdin=subprocess.DEVNULL, capture_output=True)
    return p.returncode == 0


def frames_of(block):
    """The frames of JavaScript among the native ones, which have an offset."""
    lines = re.findall(r"^ +([^`\s]+)`(.+?)(?::(\d+))?$", block, re.M)
    return [(name, file, int(line or 0)) for file, name, line in lines if not re.search(r"\+0x[0-9a-f]+$", name)]


def shown(said):
    """As descry shows a frame that V8 has said."""
    name, file, line = said
    file = file or "[v8]"
    return (name or "<anonymous>", file if file.startswith("node:") else os.path.basename(file), line or 0)


def fault(block):
    """Why a busy thread's stack cannot be."""
    frames, source = frames_of(block), BUSY.split("\n")[1:]
    own = re.findall(r"^function (\w+)", BUSY, re.M)
    if "__libc_start_main" not in block or "stack ends" in block:
        return "not walked to its end"
    if not any(f[0] == "run" for f in frames):
        return "run is missing"
    for inner, outer in zip(frames, frames[1:]):
        if inner[0] in own and outer[0] in own and outer[2] and inner[0] + "(" not in source[outer[2] - 1]:
            return "%s does not call %s" % (outer, inner)
    for name, _, line in frames:
        first = next((i for i, text in enumerate(source) if text.startswith("function %s(" % name)), None)
        if line and first is not None and not first < line <= first + source[first:].index("}") + 1:
            return "%s is not in line %d" % (name, line)
    return None
