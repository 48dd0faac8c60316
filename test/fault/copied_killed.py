#!/usr/bin/env python3
# descry leaks --fork killed by SIGKILL at random instants, while it copies a process by clone(2): a program that computes, sleeps, takes signals,
# forks and waits all the while (tracee/torture.c) notices nothing, and no copy of it stays, neither alive nor as a zombie.
# DESCRY_TORTURE=N: so many kills, and a tally; 20 if not given.
# serial
import random

import live

from live import *

TORTURE = os.path.join(BUILD, "test", "tracee_torture")
PID_MAX = int(open("/proc/sys/kernel/pid_max").read())
KILLS = int(os.environ.get("DESCRY_TORTURE", "20"))
NAME = "tracee_torture"[:15]


def copies(pid):
    """Processes that were made without a signal for their end, as nothing else makes them here, and copies that lost their parent."""
    found = []
    # a copy lives for some milliseconds, so nothing is read of processes that are older than the program
    for p in os.listdir("/proc"):
        if not p.isdigit() or int(p) < pid < PID_MAX // 2:
            continue
        try:
            with open("/proc/%s/stat" % p) as f:
                name, fields = f.read().split("(", 1)[1].rsplit(")", 1)
        except (OSError, IndexError):
            continue
        fields = fields.split()
        if name == NAME and int(p) != pid and (fields[35] == "0" or fields[1] != str(pid)):
            found.append((p, fields[0], fields[1]))
    return found


def begin():
    t = subprocess.Popen([TORTURE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    atexit.register(t.kill)
    t.stdout.readline()
    return t


def end(t, interrupted=0):
    t.send_signal(signal.SIGTERM)
    out, err = t.communicate(timeout=60)
    m = re.search(rb"checksum (\w+) errors (\d+) interrupted (\d+)", out)
    check(t.returncode == 0 and m and m.group(2) == b"0" and not err, "the program was harmed", t.returncode, out, err)
    check(m and int(m.group(3)) <= interrupted, "calls were interrupted", out)
    return m and m.group(1)


def leaks(pid):
    return subprocess.Popen([DESCRY, "leaks", "--fork", "--json", "-p", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def gone(t, what):
    limit = time.monotonic() + 30
    while copies(t.pid) and time.monotonic() < limit:
        time.sleep(0.01)
    check(not copies(t.pid), "a copy stays", what, copies(t.pid))


want = end(begin())
t = begin()
took, forked = [], 0
for i in range(max(5, KILLS // 20)):
    begun = time.monotonic()
    p = leaks(t.pid)
    out, err = p.communicate(timeout=60)
    took.append(time.monotonic() - begun)
    if check(p.returncode == 0, "looks", out, err):
        forked += '"forked":true' in out
    gone(t, "afterwards")
if not forked and not live.failures:
    skip("it could not be copied: " + out)
check(end(t) == want, "the checksum")

t = begin()
met = 0
for i in range(KILLS):
    p = leaks(t.pid)
    if i % 2:
        time.sleep(random.random() * sorted(took)[len(took) // 2])
    else: # while there is a copy
        limit = time.monotonic() + 5
        while not copies(t.pid) and p.poll() is None and time.monotonic() < limit:
            pass
        if i % 4:
            time.sleep(random.random() * 0.01)
    met += bool(copies(t.pid))
    p.kill()
    p.communicate()
    gone(t, i)
    if not check(t.poll() is None, "the program lives", i, t.poll()):
        break
p = leaks(t.pid)
out, err = p.communicate(timeout=60)
check(p.returncode == 0, "looks again", out, err)
gone(t, "at the end")
check(len([x for x in open("/proc/%d/status" % t.pid) if x.startswith("TracerPid:\t0")]) == 1, "it is not traced")
check(end(t, KILLS) == want, "the checksum")
check(met, "no kill met a copy")
if "DESCRY_TORTURE" in os.environ:
    print("%d looks, %d by a copy; %d killed, %d of these while there was a copy; %d failures" % (len(took), forked, KILLS, met, live.failures))
done()
