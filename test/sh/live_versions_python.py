#!/usr/bin/env python3
# Each version of Python that tools/install-runtimes has got: the frames of a waiting thread are those of sys._current_frames(), sampled
# callers call what they are shown to call in both engines, function-entry and function-return count as sys.setprofile() does, also while
# that is on, the heap has as many objects as gc.get_objects(). What a version lacks is refused with the reason. VERSIONS="3.9 3.13": only
# these.
from runtime_versions import *

PROGRAM = r"""# -*- coding: utf-8 -*-
from __future__ import print_function
import functools, gc, json, os, sys, threading, time
lock = threading.Lock()
lock.acquire()
until = [0]


def leaf(n):
    x = 0
    for i in range(n):
        x += i * i
    return x


def key(x):
    return leaf(20) * x


class Order(object):
    def save(self, n):
        if n:
            return self.save(n - 1)
        return sorted(range(8), key=key)

    def held(self, n):
        if n:
            return self.held(n - 1)
        return sorted([3], key=lambda x:
                      wait(x))


def wait(x):
    with lock:
        return x


def each():
    for i in range(4):
        yield Order().save(3)


def held():
    yield Order().held(2)


def work():
    return functools.reduce(lambda a, b: b, each())


def holds():
    for x in map(str,
                 held()):
        pass


def raises(n):
    if n == 0:
        raise KeyError(n)
    raises(n - 1)


def endless(n):
    endless(n)


def too_deep(n):
    try:
        endless(n)
    except RuntimeError:  # RecursionError: the last function never began
        return n


def calls(n):
    for i in range(n):
        work()
        try:
            raises(3)
        except KeyError:
            pass


def busy():
    while True:
        if not until[0]:
            time.sleep(0.01)
            continue
        work()


class Kept(object):
    def __init__(self, i):
        self.number = i
        self.tags = [i, str(i)]


class Slotted(object):
    __slots__ = ("a", "b")

    def __init__(self, i):
        self.a = (i, str(i))
        self.b = {i: i}


class More(object):
    pass


more = []
kept = [Kept(i) for i in range(3000)] + [Slotted(i) for i in range(700)] + [set([i]) for i in range(300)]


def make(n):
    for i in range(n):
        more.append(More())
    return n


def frames(thread):
    f, found = sys._current_frames()[thread.ident], []
    while f:
        code = f.f_code
        found.append([os.path.basename(code.co_filename), getattr(code, "co_qualname", code.co_name), f.f_lineno])
        f = f.f_back
    return found


def counted(n):
    counts = {}

    def count(frame, event, arg):
        code = frame.f_code
        if code.co_filename == __file__ and event in ("call", "return"):
            counts[event + " " + code.co_name] = counts.get(event + " " + code.co_name, 0) + 1
    sys.setprofile(count)
    calls(n)
    sys.setprofile(None)
    return counts


def objects(n):
    gc.collect()
    found = {}
    for o in gc.get_objects():
        name = type(o).__name__
        if name in ("Kept", "Slotted", "set", "function"):
            n = found.get(name, (0, 0))
            found[name] = (n[0] + 1, n[1] + sys.getsizeof(o))
    return found


ANSWERS = {}


threads = [threading.Thread(target=f) for f in (holds, busy)]
for t in threads:
    t.daemon = True
    t.start()


def stacks(n):
    while [f[1] for f in frames(threads[0])][0] != "wait":
        time.sleep(0.01)
    return frames(threads[0])


ANSWERS.update(counted=counted, calls=calls, make=make, objects=objects, too_deep=too_deep, stacks=stacks)


def run():
    gc.disable()
    print("ready")
    sys.stdout.flush()
    while True:
        words = sys.stdin.readline().split()
        if not words:
            os._exit(0)
        what, n = words[0], int(words[1])
        if what == "busy":
            until[0] = n
            answer = n
        else:
            answer = ANSWERS[what](n)
        print(json.dumps(answer))
        sys.stdout.flush()


if __name__ == "__main__":
    run()
"""
APP = file_of("app.py", PROGRAM)
CALLERS = {"leaf": {"key"}, "key": {"save"}, "save": {"save", "each"}, "each": {"work"}, "<lambda>": {"work"}, "work": {"busy"}}

KEPT = 1 + PROGRAM.splitlines().index("        more.append(More())")


def frames_of(lines):
    """(file, function, line) of the Python frames."""
    return [[m[1], m[2], int(m[3] or 0)] for m in (re.match(r"(\S+\.py)`(\S+?)(?::(\d+))?$", line) for line in lines) if m]


def waiting(p):
    theirs = p.ask("stacks", 0)
    ours = [f for f in map(frames_of, p.stacks().values()) if any(x[1].endswith("held") for x in f)]
    qualified = theirs != [[f[0], f[1].rsplit(".", 1)[-1], f[2]] for f in theirs]
    if not qualified:  # before 3.11 a code object has no qualified name
        ours = [[[f[0], f[1].rsplit(".", 1)[-1], f[2]] for f in frames] for frames in ours]
    p.check(ours == [theirs], "frames of a waiting thread\n theirs %s\n ours   %s" % (theirs, ours))
    return len(theirs)


def sampled(p, engine):
    p.ask("busy", 1)
    seen, wrong, unnamed = 0, [], 0
    for lines, n in p.sampled(engine, 150):
        names = [f[1].rsplit(".", 1)[-1] for f in frames_of(lines) if f[0] == "app.py"]
        if not names or names[-1] != "busy" and "[python]" not in lines:
            continue
        seen += n
        unnamed += n if "[python]" in lines else 0
        first = next(i for i, line in enumerate(lines) if frames_of([line]))  # a run of the loop that has no frame yet is the innermost
        bad = [(callee, caller) for callee, caller in zip(names, names[1:]) if callee in CALLERS and caller not in CALLERS[callee]]
        if "[python]" not in lines and (bad or any("EvalFrame" in line for line in lines[first:])):
            wrong.append((bad, lines))
    p.ask("busy", 0)
    p.check(seen > 50 and not wrong and unnamed * 10 < seen, engine, "samples %d, without names %d, wrong:" % (seen, unnamed), wrong[:2])
    return seen


# Counts by functions of the program, which calls() makes.
ENTRIES = 'python$target:::function-entry /basename(copyinstr(arg0)) == "app.py"/ { @[strjoin("call ", copyinstr(arg1))] = count(); }'
RETURNS = ENTRIES + '\n' + ENTRIES.replace("entry", "return").replace("call ", "return ")
# What a version does not have, and what descry says about it.
REFUSED = {
    "python2.7": (["-n", ENTRIES], "its file has no such probe, and descry does not know this version's instructions"),
}
HEAPS = {"python3.9", "python3.13"}
ALLOCATIONS = {"python3.9", "python3.13"}
WITH_RETURNS = {"python3.13"}


# Nothing of these is known.
UNKNOWN = {"python3.14"}


def unknown(p, version):
    """All that asks for the interpreter's structures is refused with the reason, and native stacks stay."""
    structures = "the structures of Python %s." % version[6:]
    r = descry("list", "-p", p.pid)
    p.check(structures in r.out, "descry list", r)
    r = descry("stack", "-p", p.pid)
    p.check(structures in r.err and "`read" in r.out and not any(map(frames_of, p.stacks().values())), "stack", r)
    for args, words in ((["heap"], structures), (["heap", "alloc"], "descry does not know where this version makes objects"),
                        (["-n", ENTRIES], "descry does not know this version's instructions"),
                        (["-n", ENTRIES.replace("entry", "return")], "descry does not know this version's instructions")):
        r = descry(*args, "-p", p.pid, rc=1)
        p.check(words in r.err, "is refused:", args, r)
    for engine in ("kernel", "inproc"):
        p.ask("busy", 1)
        found = p.sampled(engine, 50)
        p.ask("busy", 0)
        named = [lines for lines, n in found if any(map(str.strip, lines)) and frames_of(lines)]
        p.check(found and not named, engine, "samples have native frames only", named[:1])


def entries(p, version):
    """The same calls with each engine, and then with the profiler of the language, which changes the code."""
    if version in REFUSED:
        args, words = REFUSED[version]
        r = descry("-p", p.pid, *args, rc=1)
        p.check(words in r.err, "is refused", r)
        return 0
    program = RETURNS if version in WITH_RETURNS else ENTRIES
    found = {engine: p.traced(engine, program, "calls", 20)[1] for engine in ("kernel", "auto")}
    for engine in found:
        r = p.traced(engine, program, "too_deep", 1)[1]
        endless = {k: n for k, n in r.aggs().items() if k.endswith(" endless")} if r else {}
        p.check(len(endless) == 1 + (version in WITH_RETURNS) and len(set(endless.values())) == 1, engine, "a function that never begins", endless, r)
    want = {k: n for k, n in p.ask("counted", 20).items() if version in WITH_RETURNS or k.startswith("call ")}
    for engine in ("kernel", "auto"):
        said, found[engine + ", profiled"] = p.traced(engine, program, "counted", 20)
        p.check(all(said.get(k) == n for k, n in want.items()), engine, "the profiler", said)
    for engine, r in found.items():
        got = {k: v for k, v in r.aggs().items() if k in want} if r else {}
        if engine.endswith("profiled") and version in WITH_RETURNS:  # 3.13 begins a function twice when it makes its monitored code
            got = {k: v - (k.startswith("call ") and v - want[k] == 1) for k, v in got.items()}
        p.check(got == want, engine, "functions", {k: (got.get(k), want[k]) for k in want if got.get(k) != want[k]}, r)
    return sum(want.values())


def heap(p):
    rows = {r["class"]: (r["objects"], r["bytes"]) for r in p.heap("--histogram") if "class" in r}
    for name, (n, size) in p.ask("objects", 0).items():
        p.check(rows.get(name) == (n, size), "objects of", name, rows.get(name), "not", (n, size))
    n, size = rows["int"]  # not all of them are the collector's
    p.check(24 * n < size < 32 * n, "int has one digit, or few", n, size)


def version(name):
    p = Program(name, APP)
    if name in UNKNOWN:
        unknown(p, name)
        return
    listed = descry("list", "-p", p.pid).out
    p.check("runs python (%s" % name[6:] in listed, "descry list", listed)
    frames = waiting(p)
    samples = [sampled(p, engine) for engine in ("kernel", "inproc")]
    if name in HEAPS:
        heap(p)
    else:
        r = descry("heap", "-p", p.pid, rc=1)
        p.check("the heap of Python %s is not known to descry" % name[6:] in r.err, "the heap is refused", r)
    if name in ALLOCATIONS:
        p.recorded(KEPT, "More")
    else:
        r = descry("heap", "alloc", "-p", p.pid, rc=1)
        p.check("descry does not know where this version makes objects" in r.err, "heap alloc is refused", r)
    calls = entries(p, name)
    print("%s: %d frames, %s samples, %d calls" % (name, frames, samples, calls))


each_version("python", version)
