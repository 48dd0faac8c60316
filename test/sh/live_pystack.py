#!/usr/bin/env python3
# ustack() and descry profile have the functions and lines of Python programs, walked in the kernel and in the process: of a process that runs, of a command from
# its start, of one that has ended when its stacks are printed, in text, JSON and pictures. PYTHONS: other interpreters than Debian's.
# serial
# timeout: 600
import itertools

from live import *

PYTHONS = os.environ.get("PYTHONS", "/usr/bin/python3").split()
# Calls in a fixed order, so that each stack can be checked: C functions call back in between. Code objects come and go in churn().
PROGRAM = """
import functools, sys, threading, time


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


def each():
    for i in range(4):
        yield Order().save(3)


def work():
    return functools.reduce(lambda a, b: b, each())


def churn(n):
    for i in range(n):
        scope = {}
        exec(compile("def short%d():\\n    return sum(range(50))\\nshort%d()\\n" % (i, i), "churn.py", "exec"), scope)


def main(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        work()
        churn(2)


if len(sys.argv) > 2:
    t = threading.Thread(target=main, args=(float(sys.argv[1]),))
    t.start()
main(float(sys.argv[1]))
"""
with open(TMP + "/app.py", "w") as f:
    f.write(PROGRAM)
# what may call what
CALLERS = {
    "leaf": {"key"}, "key": {"save"}, "save": {"save", "each"}, "each": {"work"}, "<lambda>": {"work"}, "work": {"main"},
    "churn": {"main"}, "main": {"<module>", "run"}, "short": {"<module>"},
}


def short(name):
    name = name.rsplit(".", 1)[-1]
    return re.sub(r"^short\d+$", "short", name)


def stacks(text):
    """Stacks of printed aggregations: ([frames], count)."""
    for m in re.finditer(r"((?:^ +\S.*\n)+?)^ +(\d+)$", text, re.M):
        yield [line.strip() for line in m.group(1).splitlines()], int(m.group(2))


def judge(name, all_stacks, r):
    """Counts samples: those in the program's functions, wrong ones, those without a name."""
    seen, wrong, unknown = 0, [], 0
    for frames, n in all_stacks:
        if "[python]" in frames:
            unknown += n
            continue
        names = [short(re.match(r"(?:\S+`)?(.*?)(?::\d+)?$", f).group(1)) for f in frames if re.match(r"(app|churn|threading)\.py`", f)]
        if not names:
            continue
        seen += n
        for callee, caller in zip(names, names[1:]):
            if callee in CALLERS and caller not in CALLERS[callee]:
                wrong.append((callee, caller, frames))
        # a run of the loop that has no frame yet, or none any more, is the innermost
        first = next(i for i, f in enumerate(frames) if re.match(r"\w+\.py`", f))
        if any("EvalFrame" in f for f in frames[first:]):
            wrong.append(("the loop is still there", frames))
    print("%s: %d samples, %d wrong, %d without a name" % (name, seen, len(wrong), unknown))
    check(seen > 10, name, "has samples", seen, r)
    check(not wrong, name, "calls as the program makes them", wrong[:3])
    check(unknown <= seen * 0.05 + 3, name, "names", unknown, "of", seen)  # a busy machine has few samples
    return seen


# until there are enough, on a machine as busy as it may be
ENOUGH = "profile-997 /pid == $target/ { @[ustack()] = count(); n++; } profile-997 /n >= 300/ { exit(0); } tick-60s { exit(0); }"
STACKS = "profile-997 /pid == $target/ { @[ustack()] = count(); } "
# Another user's process is not read in a run that does not name it.
os.chmod(TMP, 0o755)
p = subprocess.Popen(["/usr/bin/python3", TMP + "/app.py", "600"], user=65534, group=65534, extra_groups=[])
EVERY = "profile-997 /pid == %d/ { @[ustack()] = count(); } tick-1s { exit(0); }" % p.pid
r = descry("-q", "-x", "engine=kernel", "-n", EVERY)
check("EvalFrame" in r.out and "app.py" not in r.out, "a stranger's process is not read", r.out[:2000])
r = descry("-q", "-x", "engine=kernel", "-p", str(p.pid), "-n", EVERY)
check("app.py`leaf" in r.out, "a named one is", r.out[:2000])
p.kill()
p.wait()
for python, engine in itertools.product(PYTHONS, ("kernel", "inproc")):
    options = ("-q", "-x", "engine=" + engine, "-x", "aggsize=16m")
    name = "%s, %s" % (python, engine)
    p = subprocess.Popen([python, TMP + "/app.py", "600", "threads"])
    r = descry(*options, "-p", str(p.pid), "-n", "pid$target::PyObject_GetIter:entry { @[ustack()] = count(); n++; } tick-97hz /n >= 20000/ { exit(0); } tick-60s { exit(0); }")
    judge(name + ", function", stacks(r.out), r)
    r = descry(*options, "-p", str(p.pid), "-n", ENOUGH)
    judge(name + ", -p", stacks(r.out), r)
    check(re.search(r"app\.py`leaf:(6|7|8|9|10)$", r.out, re.M), "leaf's lines", r.out[:2000])
    p.kill()
    p.wait()
    # it has ended when the stacks are printed; on a busy machine, a second has few samples
    for seconds in (1, 4, 16):
        r = descry(*options, "-n", STACKS, c="%s %s/app.py %d" % (python, TMP, seconds))
        if sum(n for frames, n in stacks(r.out) if "app.py`main" in str(frames)) > 200:
            break
    judge(name + ", -c", stacks(r.out), r)
for python in PYTHONS:
    r = descry("profile", "--folded", "-q", c="%s %s/app.py 1" % (python, TMP))
    folded = [line.rsplit(" ", 1)[0].split(";") for line in r.out.splitlines()]
    check(sum("leaf" in s and s.index("leaf") > s.index("work") for s in folded) > 3, python, "folded", r.out[:2000])
done()
