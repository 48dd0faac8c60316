#!/usr/bin/env python3
# timeout: 5400
# serial
# descry heap alloc, and SIGKILL of it at a random instant: while it starts, while it records, after ^C while it makes its answer, and while it
# lets the program go. Programs of Ruby and Python (all objects, and samples), Java (with the library) and Node.js answer as they would without
# descry, their code becomes their own again, descry's memory and descriptors go, they are recorded again, and end with their own exit code.
# DESCRY_TORTURE=N: so many kills, and a tally; 28 if not given.
import random

import checks

from heap_kept import *

KILLS = int(os.environ.get("DESCRY_TORTURE", "28"))
ROUND = min(25, max(1, KILLS // len(LANGUAGES)))  # kills of one process
LIMIT = 120  # seconds, far more than anything here takes
LARGE = 30000  # objects of a request that is under way when descry is killed
INSTANTS = ("start", "recording", "answer", "end")
WAYS = {"kept.rb": ((), ("--sample", "8")), "kept.py": ((), ("--sample", "8")), "Kept.java": (("--sample", "4096"),), "kept.js": ((),)}
# Of those that keep the last object of each request: the line, and the class, as descry shows them. All objects are recorded.
KEPT = {"kept.rb": "$keep[n % 100] = Foo.new(n, [])", "kept.py": "keep[n % 100] = Foo(n, [])"}


def own_code(pid):
    """The code of each file that is mapped, as it is in the memory. Without the zeroes at its end: a detach that is killed may leave its own
    system call there, which nothing executes (doc/spaces.md)."""
    code = {}
    with open("/proc/%d/maps" % pid) as f, open("/proc/%d/mem" % pid, "rb") as memory:
        for line in f:
            m = re.match(r"(\w+)-(\w+) r-xp (\w+) \S+ [1-9]\d* +(/.*)", line)
            if m and "memfd:" not in line:
                memory.seek(int(m[1], 16))
                code[m[1], m[4]] = memory.read(int(m[2], 16) - int(m[1], 16)).rstrip(b"\0")
    return code


def strays(pid):
    """Descry's memory, but for the library that a JVM keeps, and descriptors; whether it is stopped or traced; processes that stay."""
    with open("/proc/%d/maps" % pid) as f:
        found = [line.rstrip() for line in f if "/memfd:descry" in line and "/memfd:descry-java" not in line]
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            found += [x for x in [os.readlink("/proc/%d/fd/%s" % (pid, fd))] if x.startswith("/memfd:")]
        except OSError:
            pass
    with open("/proc/%d/status" % pid) as f:
        found += [line.rstrip() for line in f if re.match(r"TracerPid:\s+[1-9]|State:\s+[tT]", line)]
    return found + descendants(pid)


class Kept(Program):
    def __init__(self, name, argv):
        super().__init__(name, argv)
        for _ in range(3):  # libraries that it loads at its first turns
            self.work()
        self.turn = 0
        self.code = own_code(self.p.pid)

    def work(self, n=None):
        self.n = n or self.n + 7
        self.p.stdin.write("%d\n" % self.n)
        self.p.stdin.flush()
        self.answer()

    def begin_work(self):
        self.turn += 1
        self.n = LARGE + self.turn % 100
        self.p.stdin.write("%d\n" % self.n)
        self.p.stdin.flush()

    def is_whole(self, *what):
        limit = time.monotonic() + LIMIT
        while time.monotonic() < limit:
            bad = strays(self.p.pid)
            if not bad:
                now = own_code(self.p.pid)
                bad = [(k, self.code[k], now.get(k)) for k in self.code if not now.get(k, b"").startswith(self.code[k])]
            if not bad:
                return True
            time.sleep(0.01)
        bad = [(k, [(hex(i), a, b) for i, (a, b) in enumerate(zip(x, y or b"")) if a != b][:10]) for k, x, y in bad] if type(bad[0]) is tuple else bad
        return check(False, self.name, *what, "is not as it was", bad)


class Alloc:
    def __init__(self, p, *args):
        self.what = p.name, *args
        self.d = kill_at_end(subprocess.Popen([DESCRY, "heap", "alloc", "--json", "-n", "1000", "-p", str(p.p.pid), *args], stdin=subprocess.DEVNULL,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        self.begun = time.monotonic()

    def records(self):
        line = self.d.stderr.readline()
        check(line == "descry heap: recording\n", *self.what, "does not record:", line)
        return time.monotonic() - self.begun

    def answers(self):
        """Ends it. Returns the first line of the answer, and how long that took."""
        begun = time.monotonic()
        self.d.send_signal(signal.SIGINT)
        return self.d.stdout.readline(), time.monotonic() - begun

    def ends(self, first):
        begun = time.monotonic()
        out, err = self.d.stdout.read(), self.d.stderr.read()
        self.d.wait(LIMIT)
        check(self.d.returncode == 0 and not err, *self.what, "exit", self.d.returncode, err)
        rows = [json.loads(line) for line in (first + out).splitlines()]
        return rows, time.monotonic() - begun


def works(p, *args):
    """It is recorded from begin to end. Returns how long the parts take."""
    a = Alloc(p, *args)
    start = a.records()
    for n in range(2000, 2050):
        p.work(n)
    first, answer = a.answers()
    rows, end = a.ends(first)
    if p.name in KEPT and not args:
        line = next(i for i, text in enumerate(p.text.splitlines(), 1) if KEPT[p.name] in text)
        found = [r["count"] for r in rows[1:] if r.get("line") == line and r["class"] == "Foo"]
        check(found == [50], p.name, "what is recorded", found, rows[:3])
    else:
        check(len(rows) > 1, p.name, args, "what is recorded", rows)
    check(p.is_whole(args, "after a whole recording"))
    return dict(zip(INSTANTS, (start, 0.1, answer, end)))


def kill(p, way, instant, took):
    """Kills a recorder. Returns whether it was still there."""
    a = Alloc(p, *way)
    if instant != "start":
        a.records()
    if instant in ("answer", "end"):
        p.work()
        if instant == "answer":
            a.d.send_signal(signal.SIGINT)
        else:
            a.answers()
    p.begin_work()
    time.sleep(random.random() * took[instant])
    there = a.d.poll() is None
    a.d.kill()
    a.d.communicate()
    p.answer(way, instant)
    return there


random.seed(int(os.environ.get("DESCRY_SEED", "0")) or time.time_ns())
tally, took, p = {}, {}, None
for i in range(KILLS):
    turn, k = divmod(i, ROUND)
    name, argv, text = LANGUAGES[turn % len(LANGUAGES)]
    if not k:
        p = Kept(name, argv)
        p.text = text
        for way in WAYS[name]:
            took[name, way] = works(p, *way)
    instant, way = INSTANTS[i % len(INSTANTS)], WAYS[name][i // len(INSTANTS) % len(WAYS[name])]
    there = kill(p, way, instant, took[name, way])
    kills = tally.setdefault(name, dict.fromkeys(INSTANTS, 0) | {"too late": 0})
    kills[instant if there else "too late"] += 1
    if not p.is_whole(i, way, instant):
        break
    p.work()
    if k == ROUND - 1 or i == KILLS - 1:
        works(p)
        p.end()
    if checks.failures > 20:
        break
if "DESCRY_TORTURE" in os.environ:
    for name, kills in tally.items():
        print("%s: %d kills: %s" % (name, sum(kills.values()), ", ".join("%d %s" % (n, w) for w, n in kills.items())))
    print("%d failures" % checks.failures)
done()
