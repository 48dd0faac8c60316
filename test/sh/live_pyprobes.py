#!/usr/bin/env python3
# python$target:::function-entry and function-return fire for each call of a function and each time that a generator goes on, as often as
# sys.setprofile() says in the same program: of a command, of a process that runs already, of one that has a profiler of its own; with the
# function's file, name and line. PYTHONS: other interpreters than Debian's.
# serial
from live import *

PYTHONS = os.environ.get("PYTHONS", "/usr/bin/python3").split()
PROGRAM = r"""
import functools, json, sys, threading


def leaf(n):
    return n + 1


def recursive(n):
    return recursive(n - 1) + leaf(n) if n else 0


def generator(n):
    for i in range(n):
        yield leaf(i)


def delegating(n):
    yield from generator(n)
    yield from generator(n)


async def waits(n):
    return leaf(n)


async def awaits(n):
    return [await waits(i) for i in range(n)]


def fails(n):
    if not n:
        raise ValueError(n)
    try:
        fails(n - 1)
    finally:
        leaf(n)


class Shop(object):
    def __init__(self):
        self.items = [x * 2 for x in range(5)]

    def __lt__(self, other):
        return leaf(1) < leaf(2)

    @property
    def best(self):
        return max(self.items, key=lambda x: -x)

    @staticmethod
    def reduced():
        return functools.reduce(lambda a, b: a + b, range(6))


def each():
    class Inner(Shop):
        pass

    recursive(9)
    list(delegating(7))
    try:
        awaits(3).send(None)
    except StopIteration:
        pass
    try:
        fails(4)
    except ValueError:
        pass
    sorted([Shop(), Inner(), Shop()])
    return Shop().best + Shop.reduced() + eval("leaf(1)")


def work():
    # the code of a function changes after some calls
    for i in range(40):
        each()


def everything():
    work()
    t = threading.Thread(target=work)
    t.start()
    t.join()


def counted():
    calls = {}

    def count(frame, event, arg):
        code = frame.f_code
        if code.co_filename == __file__ and event in ("call", "return"):
            key = "%s %s %d" % (event, code.co_name, code.co_firstlineno)
            calls[key] = calls.get(key, 0) + 1

    threading.setprofile(count)
    sys.setprofile(count)
    everything()
    sys.setprofile(None)
    threading.setprofile(None)
    return calls


how = sys.argv[1]
if how == "truth":
    print(json.dumps(counted()))
else:
    if how == "waits":
        print("ready", flush=True)
        sys.stdin.readline()
    if how == "profiled":
        counted()
    else:
        everything()
"""
APP = os.path.join(TMP, "shop.py")
with open(APP, "w") as f:
    f.write(PROGRAM)
COUNT = """
python$target:::function-entry /copyinstr(arg0) == "%s"/ { @["call", copyinstr(arg1), arg2] = count(); @n["call", copyinstr(arg1)] = count(); }
python$target:::function-return /copyinstr(arg0) == "%s"/ { @n["return", copyinstr(arg1)] = count(); }
""" % (APP, APP)


def truth(python):
    said = json.loads(subprocess.run([python, APP, "truth"], capture_output=True, text=True, check=True).stdout)
    calls, totals = {}, {}
    for key, n in said.items():
        event, name, line = key.split()
        if event == "call":
            calls[event, name, int(line)] = n
        totals[event, name] = totals.get((event, name), 0) + n
    return calls, totals


def judge(name, r, want):
    calls, totals = want
    # what runs around the measured part
    around = {k for k in r.aggs() if k not in calls and k[1] in ("<module>", "counted", "everything", "count", "Shop")}
    got = {k: v for k, v in r.aggs().items() if k not in around}
    both = {k: v for k, v in r.aggs("n").items() if k in totals}
    check(got == calls, name, "calls", {k: (got.get(k), calls.get(k)) for k in got.keys() | calls.keys() if got.get(k) != calls.get(k)}, r)
    check(both == totals, name, "calls and returns", {k: (both.get(k), totals[k]) for k in totals if both.get(k) != totals[k]})
    print("%s: %d calls of %d functions" % (name, sum(got.values()), len(got)))


def has_probes(python):
    r = finish(start("-l", "-n", "python$target:::function-entry", c=python + " -c 0"))
    return "function-entry" in r.out


for python in PYTHONS:
    if not shutil.which(python) or not has_probes(python):
        skip("there is no %s with probes of its own" % python)
for python in PYTHONS:
    want = truth(python)
    for engine in ("kernel", python_from_inside(python)):
        options = ("-q", "--json", "-x", "engine=" + engine)
        name = "%s, %s" % (python, engine)
        judge(name + ", -c", descry(*options, "-n", COUNT, c="%s %s run" % (python, APP)), want)
        judge(name + ", profiled", descry(*options, "-n", COUNT, c="%s %s profiled" % (python, APP)), want)
        p = subprocess.Popen([python, APP, "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        p.stdout.readline()
        d = tracing(*options, "-n", COUNT, "-p", str(p.pid))
        p.stdin.write(b"go\n")
        p.stdin.close()
        p.wait()
        judge(name + ", -p", finish(d), want)
# one after the other, as the scripts of the DTraceToolkit show it
FLOW = """
python$target:::function-entry /basename(copyinstr(arg0)) == "shop.py"/ { self->depth++; @deepest = max(self->depth); }
python$target:::function-return /basename(copyinstr(arg0)) == "shop.py"/ { self->depth--; @last = min(self->depth); }
"""
r = descry("-q", "--json", "-n", FLOW, c="%s %s run" % (PYTHONS[0], APP))
deepest, last = [row["value"] for row in r.json() if row["type"] == "aggregation"]
check(deepest > 10 and last == 0, "every function that begins returns", deepest, last, r)
done()
