#!/usr/bin/env python3
# descry heap on a live Python: as many objects of each type as gc.get_objects() has, each with the size of sys.getsizeof(); references, paths
# and retained memory of objects that the test knows; the same from its core; a program that runs on while it is read, and one that is killed.
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
PYTHON = "/usr/bin/python3"
TMP = tempfile.mkdtemp(prefix="descry-heap-python-")
atexit.register(shutil.rmtree, TMP, True)
running = []

PROGRAM = r"""
import collections, gc, json, os, signal, sys
N = int(sys.argv[1])

class Order:
    def __init__(self, i):
        self.id = i
        self.name = "order number %d" % i
        self.tags = [i, i + 1, i + 2]

class Slotted:
    __slots__ = ("a", "b")
    def __init__(self, i):
        self.a = (i, str(i))
        self.b = {i: i}

class Listed(list):
    pass

class Named(str):
    pass

class Keeper:
    def __init__(self, held):
        self.held = held

orders = [Order(i) for i in range(N)]
slotted = [Slotted(i) for i in range(N // 4)]
sets = [set(range(i % 40)) for i in range(1000)]
frozen = [frozenset([i]) for i in range(100)]
listed = [Listed([i, [i]]) for i in range(100)]
same = ["the same text %d" % (i % 2) for i in range(400)]
named = [Named("n%d" % i) for i in range(100)]
table = {"k%d" % i: (i, i * 1.5, [i]) for i in range(N // 4)}
def keep():
    return Keeper(["kept %d " % i + "x" * 1000 for i in range(1000)])
keeper = keep()
def outer():
    kept = [1, 2]
    return lambda: kept
functions = [outer() for i in range(100)]
# Types that measure themselves by what descry does not know.
UNKNOWN = {"generator", "deque", "OrderedDict", "BufferedReader", "BufferedWriter", "BufferedRandom", "frame", "StringIO", "BytesIO"}

def answer(*ignored):
    objects = gc.get_objects()
    own = {id(o) for o in (objects, sys._getframe())}
    tell = [(id(o), type(o).__name__, sys.getsizeof(o)) for o in objects if id(o) not in own and type(o).__name__ not in UNKNOWN]
    with open(sys.argv[2], "w") as f:
        json.dump({"tracked": len(objects), "objects": tell}, f)
    os._exit(0)

signal.signal(signal.SIGUSR1, answer)
gc.collect()
gc.disable()
os.write(1, b"ready\n")
while True:
    signal.pause()
"""


@atexit.register
def end_all():
    for p in running:
        p.kill()
        p.wait()


def start(program, *args):
    p = subprocess.Popen([PYTHON, "-S", "-c", program, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
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
    p = subprocess.run([DESCRY, "heap", "--json", "-n", "10000000", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == 0, "exit", p.returncode, p.args, p.stdout[-500:], p.stderr[-500:])
    return [json.loads(line) for line in p.stdout.splitlines()]


def tracked(rows):
    return int(re.search(r"collector has (\d+) objects", " ".join(rows[0]["remarks"]))[1])


def compare(p, where, answers, each):
    rows = heap(*where)
    classes = {r["class"]: r for r in heap("--histogram", *where)}
    objects = {int(r["address"], 16): r for r in heap("--find", "size >= 0", *where) if "address" in r} if each else None
    if not os.path.exists(answers):
        os.kill(p.pid, signal.SIGUSR1)
        p.wait()
        running.remove(p)
    with open(answers) as f:
        own = json.load(f)
    if not check(rows and rows[0]["source"] == "python", rows[:1]):
        return
    # what the answer itself makes: a frame, a list, functions of json are there before
    check(0 <= own["tracked"] - tracked(rows) <= 40, "tracked", tracked(rows), own["tracked"])
    counts, sizes = {}, {}
    for _, name, size in own["objects"]:
        counts[name] = counts.get(name, 0) + 1
        sizes[name] = sizes.get(name, 0) + size
    for name in "Order", "Slotted", "set", "Listed", "Keeper", "function":
        check(classes[name]["objects"] == counts[name], name, classes[name], counts[name])
        check(classes[name]["bytes"] == sizes[name], name, classes[name], sizes[name])
    check(rows[0]["unreachable"] * 100 < rows[0]["objects"], "not reachable", rows[0])
    if each:
        missing = [o for o in own["objects"] if o[0] not in objects]
        check(len(missing) <= 40, "missing", missing[:50])
        differ = [(o, objects[o[0]]) for o in own["objects"] if o[0] in objects and objects[o[0]]["size"] != o[2]]
        check(not differ, "sizes differ", differ[:10])


def ask(p):
    """Questions whose answers are known."""
    where = ("-p", str(p.pid))
    keeper = [r for r in heap("--find", 'class == "Keeper"', *where) if r.get("class") == "Keeper"]
    if not check(len(keeper) == 1, keeper):
        return
    refs = heap("--refs", keeper[0]["address"], *where)
    check(refs[0]["retained"] >= 1000 * 1000, refs[0])
    check(any(r.get("field") == "held" and r["class"] == "list" for r in refs[1:]), refs)
    same = [r for r in heap("--duplicates", *where) if r.get("head", "").startswith("the same text ")]
    check([(r["class"], r["objects"], r["length"]) for r in same] == [("str", 200, 15)] * 2, same)
    paths = heap("--paths", "Slotted", *where)
    check(any(r.get("field") == "slotted" for r in paths), paths)


if not os.path.exists(PYTHON):
    skip("no Debian python3")
version = subprocess.run([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True).stdout.strip()
if version != "3.11":
    skip("python %s is not the version whose heap the test knows" % version)

answers = os.path.join(TMP, "big.json")
p = start(PROGRAM, "50000", answers)
forked = heap("--fork", "-p", str(p.pid))[0]
unasked = heap("-p", str(p.pid))[0]
check(forked["forked"] and not unasked["forked"], "by --fork alone", forked, unasked)
check(all(forked[k] == unasked[k] for k in ("objects", "bytes", "references", "reachable")), "the same", forked, unasked)
compare(p, ("-p", str(p.pid)), answers, False)

answers = os.path.join(TMP, "small.json")
p = start(PROGRAM, "2000", answers)
ask(p)
if shutil.which("gcore"):
    core = os.path.join(TMP, "core")
    r = subprocess.run(["gcore", "-o", core, str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True)
    if r.returncode == 0:
        check(tracked(heap("%s.%d" % (core, p.pid))) == tracked(heap("-p", str(p.pid))), "core and process differ")
compare(p, ("-p", str(p.pid)), answers, True)

# A program that makes and drops objects all the while is read, and goes on.
p = start("import os\nos.write(1, b'ready\\n')\nwhile True: a = [[str(i), {i: float(i)}] for i in range(1000)]")
for _ in range(3):
    rows = heap("-p", str(p.pid))
    check(rows and rows[0]["objects"] > 1000, rows[:1])
check(p.poll() is None, "the program has ended", p.poll())
end(p)

# A program that is killed while it is read: an answer or one message.
for _ in range(3):
    p = start(PROGRAM, "2000", os.path.join(TMP, "none"))
    d = subprocess.Popen([DESCRY, "heap", "-p", str(p.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end(p)
    out, err = d.communicate()
    check(d.returncode in (0, 1), "exit", d.returncode, out, err)
    check(d.returncode == 0 or err.strip(), "no message")
done()
