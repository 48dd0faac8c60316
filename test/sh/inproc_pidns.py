#!/usr/bin/env python3
# A process of another pid namespace, traced in-process: pid and tid are the tracer's numbers, and stacks have names. A child that
# the tracer has not looked at yet has the numbers 0, never those of another process.
from live import *

if os.geteuid() or sh("unshare --pid --fork true").returncode:
    skip("this needs root and pid namespaces")
r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())

# Two threads call getppid() until the file GO is there; the first makes the file READY when both run.
LOOP = """import os, threading, time
def loop():
    while not os.path.exists('%s'):
        os.getppid()
        time.sleep(0.002)
t = threading.Thread(target=loop)
t.start()
open('%s', 'w').close()
loop()
t.join()
"""
D = "pid$target:libc.so.6:getppid:entry { @p[pid, tid] = count(); @s[pid, ustack(3)] = count(); @k[pid, execname] = count(); }"


def program(name):
    go, ready = os.path.join(TMP, name + ".go"), os.path.join(TMP, name + ".ready")
    path = os.path.join(TMP, name + ".py")
    with open(path, "w") as f:
        f.write(LOOP % (go, ready))
    return path, go, ready


def until(what, secs=60):
    end = time.monotonic() + secs
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.005)
    return None


def named(r):
    """Is the function the first frame of the stacks? Those of a process whose number is not known have no names."""
    return all("getppid" in (json.loads(stack)[0]["function"] or "") for pid, stack in r.aggs("s") if pid)


# attached while it runs
path, go, ready_file = program("attached")
outer = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", sys.executable, path])
atexit.register(outer.kill)
check(until(lambda: os.path.exists(ready_file)), "the program runs")
inner = [p for p in descendants(outer.pid)][0]
s = tracing("-q", "--json", "-x", "engine=inproc", "-n", D + " tick-100ms /++n > 3/ { exit(0); }", "-p", str(inner))
r = finish(s)
with open(go, "w"):
    pass
outer.wait()
pids, tids = ({str(k[i]) for k in r.aggs("p")} for i in (0, 1))
check(r.rc == 0 and pids == {str(inner)}, "attached: pid", inner, r)
check(str(inner) in tids and len(tids) == 2, "attached: the first thread's tid", inner, r)
check(named(r), "attached: names", r)

# a child that is followed: it forks into the name space while it is traced
path, go, ready_file = program("followed")
fork = os.path.join(TMP, "fork.py")
with open(fork, "w") as f:
    f.write("""import ctypes, os
libc = ctypes.CDLL(None)
assert libc.unshare(0x20000000) == 0
pid = os.fork()
if not pid:
    exec(open('%s').read())
    os._exit(0)
open('%s', 'w').write(str(pid))
os.waitpid(pid, 0)
""" % (path, ready_file + ".pid"))
out = os.path.join(TMP, "followed.out")
seen = " pid$target:libc.so.6:getppid:entry /!seen[pid]/ { seen[pid] = 1; @seen[pid] = count(); printf(\"pid %d\\n\", pid); }"
s = start("-q", "--json", "-o", out, "-x", "engine=inproc", "-x", "follow", "-n", D + seen, c="%s %s" % (sys.executable, fork))
child = until(lambda: os.path.exists(ready_file + ".pid") and open(ready_file + ".pid").read())
check(child and until(lambda: "pid " + child in open(out).read()), "followed: the tracer has looked at the child", child)
with open(go, "w"):
    pass
r = finish(s)
r.out = open(out).read()
pids, tids = ({str(k[i]) for k in r.aggs("p")} for i in (0, 1))
check(r.rc == 0 and pids <= {"0", child} and child in pids, "followed: pid", child, r)
check(not pids & {"1"} and child in tids and "1" not in tids, "followed: no number of another process", r)
check(named(r), "followed: names", r)
unnamed = any(not pid for pid, stack in r.aggs("s"))
check(("of another pid namespace" in r.err) == unnamed, "followed: addresses without names are reported", r)
done()
