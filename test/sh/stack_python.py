#!/usr/bin/env python3
# descry stack shows the Python functions that threads execute, equal to the output of faulthandler at the same instruction. The subjects
# are a process that is stopped at random moments, and its core. PYTHONS: the interpreters to compare, instead of Debian's.
import atexit
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile

import real_python
from at_signal import *
from checks import *

SAMPLES = int(os.environ.get("SAMPLES", "40"))
PYTHONS = os.environ.get("PYTHONS", "/usr/bin/python3").split()
TMP = tempfile.mkdtemp(prefix="descry-stack-python-")
atexit.register(shutil.rmtree, TMP, True)

# Runs on every version: functions called by Python and by C code, generators, exceptions, closures, coroutines.
PROGRAM = r"""# -*- coding: utf-8 -*-
import faulthandler, functools, json, os, re, signal, sys, threading
faulthandler.register(signal.SIGUSR1, file=open(sys.argv[1], "w"), all_threads=False, chain=False)


class Order(object):
    def __init__(self, n):
        self.lines = [(i * 7919) % 101 for i in range(n)]

    def key(self, x):
        return sum(divmod(x, 7))

    def total(self):
        return sum(x for x in self.each()
                   if x)

    def each(self):
        for x in sorted(self.lines, key=self.key):
            yield x


def fib(n):
    return n if n < 2 else fib(n - 1) + \
        fib(n - 2)


def raises(n):
    try:
        if not n:
            raise KeyError(n)
        raises(n - 1)
    finally:
        len(str(n))


def caught():
    try:
        raises(5)
    except KeyError:
        return re.sub("(a)(b)", lambda m: m.group(2) + m.group(1), "ab" * 20)


class Encoder(json.JSONEncoder):
    def default(self, o):
        return {"total": o.total(), "name": u"B\u00e4r \u4e16"}


def switch(n):
    return list(map(lambda i: functools.reduce(lambda a, b: a * b % 97, range(1, i + 2)), range(n)))


def chain(n):
    # more than a frame for each line
    return chain(n - 1) if n else [fib(9), caught(), switch(12), json.dumps([Order(20)] * 2, cls=Encoder)]


def main():
    while True:
        chain(6)


for _ in range(2):
    t = threading.Thread(target=main)
    t.daemon = True
    t.start()
print("ready")
sys.stdout.flush()
main()
"""
ASYNC = r"""
import asyncio, faulthandler, signal, sys
faulthandler.register(signal.SIGUSR1, file=open(sys.argv[1], "w"), all_threads=False, chain=False)


async def leaf(n):
    await asyncio.sleep(0)
    return sum(range(n))


async def middle(n):
    return sum([await leaf(i) for i in range(n)])


def main():
    while True:
        loop.run_until_complete(middle(30))


loop = asyncio.new_event_loop()
print("ready", flush=True)
main()
"""


def frames_of(text):
    return [(m[0], m[1].rsplit(".", 1)[-1], int(m[2])) for m in re.findall(r"^ +(\S+\.py|<[^`]*>)`(.*):(\d+)$", text, re.M)]


def said_by_python(text):
    return [(os.path.basename(m[0]), m[2], int(m[1])) for m in re.findall(r'File "(.*)", line (\d+) in (.*)', text)]


def start(python, program, out):
    p = subprocess.Popen([python, os.path.join(TMP, program), out], stdout=subprocess.PIPE)
    check(p.stdout.readline() == b"ready\n", python, program, "is ready")
    return p


def compare(python, program, samples):
    name = "%s %s" % (python, program)
    out = os.path.join(TMP, "said")
    p, unlike, crashes, done = start(python, program, out), [], 0, 0
    try:
        while done < samples and crashes <= samples:
            tids = sorted(int(t) for t in os.listdir("/proc/%d/task" % p.pid))
            tid = random.choice(tids)
            got = sample(p.pid, out, tid)
            if got == ():
                continue
            if not got:  # faulthandler of 3.12 and 3.13 crashes now and then, with or without descry
                crashes += 1
                p.wait()
                p = start(python, program, out)
                continue
            text, said = got
            ours, theirs = frames_of(threads(text)[tid]) if tid in threads(text) else None, said_by_python(said)
            done += 1
            if ours != theirs:
                unlike.append("ours  %s\n theirs %s\n%s" % (ours, theirs, text))
        print("%s: %d of %d equal%s" % (name, done - len(unlike), done, ", %d crashes of faulthandler" % crashes if crashes else ""))
        check(done == samples and not unlike, name, "unlike", "\n".join(unlike[:3]))
        check(not crashes or "PYTHONS" in os.environ, name, "has crashed")
    finally:
        p.kill()
        p.wait()


def compare_core(python):
    """A core has the same frames as its process."""
    p = start(python, "program.py", os.path.join(TMP, "said"))
    try:
        stopped(p.pid)
        live = stack("-p", str(p.pid))
        subprocess.run(["gcore", "-o", os.path.join(TMP, "core"), str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True)
        dead = stack(os.path.join(TMP, "core.%d" % p.pid))
        live_frames, dead_frames = ({tid: frames_of(rest) for tid, rest in threads(t).items()} for t in (live, dead))
        check(any(live_frames.values()) and live_frames == dead_frames, python, "a core's frames", live, dead)
        loop = "_PyEval_EvalFrameDefault"
        native = stack("-n", "-p", str(p.pid))
        # a thread that has just entered the loop has one frame of it, in which no function of Python runs yet
        check(live.count(loop) <= len(threads(live)) < native.count(loop), python, "-n shows the loop", live, native)
    finally:
        p.kill()
        p.wait()


for name, text in {"program.py": PROGRAM, "coroutines.py": ASYNC, **real_python.PROGRAMS}.items():
    with open(os.path.join(TMP, name), "w", encoding="utf-8") as f:
        f.write(text)
for python in PYTHONS:
    compare(python, "program.py", SAMPLES)
    compare(python, "coroutines.py", SAMPLES)
    for program in real_python.PROGRAMS:
        compare(python, program, SAMPLES // 2)
    compare_core(python)
done()
