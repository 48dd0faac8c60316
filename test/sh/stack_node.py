#!/usr/bin/env python3
# descry stack shows the JavaScript functions that Node.js executes, equal to what V8 itself says of a thread that then waits: interpreted,
# of baseline code, optimized with others inlined, built into V8, in a worker thread, and in a core. Of busy threads, stopped at random
# instructions, each caller's line must call the function in front of it. NODES: programs to compare instead of the installed one; SAMPLES:
# random stops.
# timeout: 600
import atexit
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time

from checks import *

DESCRY = os.environ["DESCRY"]
SAMPLES = int(os.environ.get("SAMPLES", "8"))
TMP = tempfile.mkdtemp(prefix="descry-stack-node-")
atexit.register(shutil.rmtree, TMP, True)

# A thread prints its place and waits, below closures, a constructor, a getter, recursion and functions of V8 that call back. Strings are
# of one byte and of two bytes a character, lines end in all ways.
PROGRAM = """
Error.stackTraceLimit = 100;
Error.prepareStackTrace = (e, sites) => sites.map((s) => [s.getFunctionName(), s.getScriptNameOrSourceURL(), s.getLineNumber()]);
const { Worker, isMainThread } = require('worker_threads');
const { writeSync } = require('fs');
const cell = new Int32Array(new SharedArrayBuffer(4));
function park() {
    const o = {};
    Error.captureStackTrace(o); writeSync(1, JSON.stringify(o.stack) + '\\n'); Atomics.wait(cell, 0, 0);
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
function maps() { return new Map([[1, 2]]).forEach(() => spreads()); }
if (isMainThread)
    new Worker(__filename).on('online', () => setTimeout(maps, 300));
else
    maps();
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
# Flags of V8 for each kind of code; a version has some of them. The number: the least number of frames in made code.
MODES = ([[], 0], [["--jitless"], 0], [["--always-sparkplug"], 10], [["--always-opt"], 10], [["--always-turbofan"], 1],
         [["--maglev", "--always-sparkplug"], 1], [["--interpreted-frames-native-stack"], 0])


def nodes():
    if "NODES" in os.environ:
        return os.environ["NODES"].split()
    node = shutil.which("node") or shutil.which("nodejs")
    if not node:
        skip("Node.js is not installed: tools/install-deps --test installs it")
    return [node]


def accepts(node, flags):
    p = subprocess.run([node, *flags, "-e", "0"], stdin=subprocess.DEVNULL, capture_output=True)
    return p.returncode == 0


def descry(*args):
    p = subprocess.run([DESCRY, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    # a core lacks the mappings of io_uring, and descry reports this
    wrong = [line for line in p.stderr.splitlines() if line and "anon_inode:" not in line]
    check(p.returncode == 0 and not wrong, "exit", p.returncode, args, p.stderr)
    return p.stdout


def threads(text):
    return re.split(r"^  thread \d+[^\n]*\n", text, flags=re.M)[1:]


def frames_of(block):
    """The frames of JavaScript among the native ones, which have an offset."""
    lines = re.findall(r"^ +([^`\s]+)`(.+?)(?::(\d+))?$", block, re.M)
    return [(name, file, int(line or 0)) for file, name, line in lines if not re.search(r"\+0x[0-9a-f]+$", name)]


def shown(said):
    """As descry shows a frame that V8 has said. A name that was computed, as that of [symbol](), is in the function's object only."""
    name, file, line = said
    name = None if name and name.startswith("[") else name
    file = file or "[v8]"
    return (name or "<anonymous>", file if file.startswith("node:") else os.path.basename(file), line or 0)


def parked(text):
    """The threads that wait in park(), without V8's own function in which they do."""
    found = [frames_of(b) for b in threads(text)]
    return sorted(f[1:] for f in found if f and f[0][0] == "wait" and ("park", "truth.js") == f[1][:2])


def wait_until_asleep(pid, n):
    """Until so many threads wait in the call that park() makes."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        text = descry("stack", "-p", str(pid))
        if len(parked(text)) == n:
            return text
        time.sleep(0.05)
    raise SystemExit("FAILED: not in time: %d threads wait\n%s" % (n, text))


def compare_core(name, pid, theirs):
    subprocess.run(["gcore", "-o", TMP + "/core", str(pid)], stdin=subprocess.DEVNULL, capture_output=True)
    ours = parked(descry("stack", TMP + "/core.%d" % pid))
    os.unlink(TMP + "/core.%d" % pid)
    check(ours == theirs, name, "a core's frames", "\n ours", ours)


def compare_waiting(node, flags, made, with_core):
    name = "%s %s" % (node, " ".join(flags))
    p = subprocess.Popen([node, *flags, TMP + "/truth.js"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        theirs = sorted([shown(f) for f in json.loads(p.stdout.readline())] for _ in range(2))
        ours = parked(wait_until_asleep(p.pid, 2))
        for a, b in zip(theirs, ours):
            check(a == b, name, "unlike\n theirs %s\n ours   %s" % ([f for f in a if f not in b] or a, [f for f in b if f not in a] or b))
        native = descry("stack", "-n", "-p", str(p.pid))
        compiled = len(re.findall(r"^ +(?:0x[0-9a-f]+|\[jit\].*)$", native, re.M))
        check(compiled >= made, name, "compiled code", compiled, native)
        print("%s: %d frames, %d of compiled code" % (name, sum(map(len, ours)), compiled))
        if with_core and shutil.which("gcore"):
            compare_core(name, p.pid, theirs)
    finally:
        p.kill()
        p.wait()


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


def compare_busy(node, flags):
    name = "%s %s, busy" % (node, " ".join(flags))
    p, wrong, lines = subprocess.Popen([node, *flags, TMP + "/busy.js"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE), [], 0
    try:
        check(p.stdout.readline() == b"ready\n", name, "is ready")
        for _ in range(SAMPLES):
            time.sleep(random.random() * 0.02)
            block = threads(descry("stack", "-p", str(p.pid)))[0]
            why = fault(block)
            wrong += ["%s\n%s" % (why, block)] if why else []
            lines += any(f[2] for f in frames_of(block)[:1])
        print("%s: %d of %d stacks can be, %d with the innermost line" % (name, SAMPLES - len(wrong), SAMPLES, lines))
        check(not wrong, name, "\n".join(wrong[:3]))
    finally:
        p.kill()
        p.wait()


def main():
    with open(TMP + "/truth.js", "w", encoding="utf-8", newline="") as f:
        f.write(PROGRAM[1:])
    with open(TMP + "/busy.js", "w", encoding="utf-8") as f:
        f.write(BUSY[1:])
    for node in nodes():
        for flags, made in MODES:
            if accepts(node, flags):
                compare_waiting(node, flags, made, not flags)
        compare_busy(node, [])
        compare_busy(node, ["--no-opt", "--no-enable-lazy-source-positions"] + ["--no-maglev"] * accepts(node, ["--no-maglev"]))


main()
done()
