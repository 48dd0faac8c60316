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
from node_code import *

DESCRY = os.environ["DESCRY"]
SAMPLES = int(os.environ.get("SAMPLES", "8"))
TMP = tempfile.mkdtemp(prefix="descry-stack-node-")
atexit.register(shutil.rmtree, TMP, True)

PROGRAM = program(
    "const { writeSync } = require('fs');\nconst cell = new Int32Array(new SharedArrayBuffer(4));",
    "writeSync(1, JSON.stringify(o.stack) + '\\n'); Atomics.wait(cell, 0, 0)",
    "if (isMainThread) new Worker(__filename).on('online', () => setTimeout(maps, 300)); else maps();")
# Flags of V8 for each kind of code; a version has some of them. The number: the least number of frames in made code.
MODES = ([[], 0], [["--jitless"], 0], [["--always-sparkplug"], 10], [["--always-opt"], 10], [["--always-turbofan"], 1],
         [["--maglev", "--always-sparkplug"], 1], [["--interpreted-frames-native-stack"], 0])


def descry(*args):
    p = subprocess.run([DESCRY, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    # a core lacks the mappings of io_uring, and descry reports this
    wrong = [line for line in p.stderr.splitlines() if line and "anon_inode:" not in line]
    check(p.returncode == 0 and not wrong, "exit", p.returncode, args, p.stderr)
    return p.stdout


def threads(text):
    return re.split(r"^  thread \d+[^\n]*\n", text, flags=re.M)[1:]


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
        f.write(PROGRAM)
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
