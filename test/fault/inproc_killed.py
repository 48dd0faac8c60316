#!/usr/bin/env python3
# The in-process tracer killed by SIGKILL at random instants, attached again and again, healed: a program that computes,
# sleeps, takes signals, loads libraries, forks and unwinds all the while (tracee/torture.c) notices nothing, and nothing
# of descry stays in it, no descriptor either. DESCRY_TORTURE=N: so many kills, and a tally; 20 if not given.
# serial
import random

import live

from live import *

TORTURE = os.path.join(BUILD, "test", "tracee_torture")
PROGRAM = "pid$target::work_?:entry, pid$target::work_?:return { @[probefunc, probename] = count(); }"
READING = PROGRAM + " pid$target::work_?:entry { @bytes = max(*(uint8_t *)copyin(arg1, 1)); }"
KILLS = int(os.environ.get("DESCRY_TORTURE", "20"))


def mappings(pid):
    return [line for line in open("/proc/%d/maps" % pid) if "/memfd:descry-" in line]


# descry's descriptors: the torture itself has no memory file and no socket. And the page that names the sockets.
def strays(pid):
    links = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            links.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except OSError:
            pass
    pages = [line for line in open("/proc/%d/maps" % pid) if re.match("4.ffffff0000-", line)]
    return [x for x in links if x.startswith(("/memfd:", "socket:"))] + pages


def spans(pid):
    """What is mapped, without libraries, which the program itself opens and closes, and the page that the kernel gives to whoever
    comes by anybody's uprobe."""
    return {line.split()[0]: line.rstrip() for line in open("/proc/%d/maps" % pid) if ".so" not in line and "[uprobes]" not in line}


def size(pid):
    def once():
        ends = [span.split("-") for span in spans(pid)]
        return sum(int(hi, 16) - int(lo, 16) for lo, hi in ends)
    return min(once() for _ in range(20))


def as_much(t):
    if not wait("as much is mapped as before: %d, %d" % (t.size, size(t.pid)), lambda: size(t.pid) == t.size):
        now = spans(t.pid)
        print("gone:", *[t.spans[k] for k in t.spans if k not in now], "new:", *[now[k] for k in now if k not in t.spans], sep="\n")


def begin():
    """Waits until all its threads have allocated their memory. With one heap for all of them, it does not grow any more."""
    t = subprocess.Popen([TORTURE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, MALLOC_ARENA_MAX="1"))
    atexit.register(t.kill)
    t.places = [int(a, 16) for a in t.stdout.readline().split()[2:]]
    t.size = -1
    while t.size != size(t.pid):
        t.size = size(t.pid)
        time.sleep(0.3)
    t.spans = spans(t.pid)
    return t


def text(t):
    with open("/proc/%d/mem" % t.pid, "rb") as f:
        out = []
        for a in t.places:
            f.seek(a)
            out.append(f.read(16))
        return out


def end(t, interrupted=0):
    t.send_signal(signal.SIGTERM)
    out, err = t.communicate(timeout=30)
    m = re.search(rb"checksum (\w+) errors (\d+) interrupted (\d+)", out)
    check(t.returncode == 0 and m and m.group(2) == b"0" and not err, "the program was harmed", t.returncode, out, err)
    check(m and int(m.group(3)) <= interrupted, "calls were interrupted", out)
    return m and m.group(1)


def wait(what, good, secs=30):
    limit = time.monotonic() + secs
    while not good() and time.monotonic() < limit:
        time.sleep(0.002)
    return check(good(), what)


r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())
want = end(begin())

# attached and detached in a loop
t = begin()
clean = text(t)
LOOPS = max(4, KILLS // 10)
for i in range(LOOPS):
    s = start("-q", "-x", "engine=inproc", "-p", str(t.pid), "-n", PROGRAM + " tick-200ms { exit(0); }")
    r = finish(s, 30)
    check(r.rc == 0, "attached", r)
    check(len([1 for _, n in r.table() if n > 100]) == 16, "every function counted, on both sides", r)
    check(text(t) == clean and not mappings(t.pid) and not strays(t.pid), "all is as it was", mappings(t.pid), strays(t.pid))
as_much(t)
check(end(t) == want, "the checksum")

# killed; the watchdog restores
t = begin()
mapped = opened = detaching = 0
took = []
for i in range(KILLS):
    s = start("-q", "-x", "engine=inproc", "-p", str(t.pid), "-n", READING if i % 2 else PROGRAM)
    if i % 3 == 0: # just while it attaches
        limit = time.monotonic() + 5
        while not strays(t.pid) and not mappings(t.pid) and s[1].poll() is None and time.monotonic() < limit:
            pass
        time.sleep(random.random() * 0.003)
    elif i % 3 == 1:
        time.sleep(random.random() * 0.6)
    else: # while it detaches
        limit = time.monotonic() + 5
        while text(t) == clean and s[1].poll() is None and time.monotonic() < limit:
            time.sleep(0.001)
        s[1].send_signal(signal.SIGINT)
        time.sleep(random.random() * 0.03)
        detaching += 1
    s[1].kill()
    begun = time.monotonic()
    s[1].communicate()
    opened += bool(strays(t.pid))
    mapped += bool(mappings(t.pid))
    if not wait("the watchdog restores all, after kill %d" % i,
                lambda: text(t) == clean and not mappings(t.pid) and not strays(t.pid)):
        print(mappings(t.pid), strays(t.pid), sh(DESCRY + " heal %d" % t.pid), mappings(t.pid), strays(t.pid))
    took.append(time.monotonic() - begun)
    if not check(t.poll() is None, "the program lives", i, t.poll()):
        break
as_much(t)
check(mapped * 5 > KILLS, "kills while it was attached", mapped, KILLS)
check(sorted(took)[len(took) // 2] < 1, "restored soon", took)
s = start("-q", "-x", "engine=inproc", "-p", str(t.pid), "-n", PROGRAM + " tick-200ms { exit(0); }")
r = finish(s, 30)
check(r.rc == 0 and len(r.table()) == 16, "a later attach works", r)
check(end(t, KILLS) == want, "the checksum")

if "DESCRY_TORTURE" in os.environ:
    print("%d attached and detached, %d killed: %d with mappings of ours, %d with descriptors of ours, %d while detaching; restored in "
          "%.1f ms (median), %.0f ms at most; %d failures" % (LOOPS, KILLS, mapped, opened, detaching, sorted(took)[len(took) // 2] * 1e3,
                                                            max(took) * 1e3, live.failures))

# several at once, killed or not, in libraries that come and go: each leaves the others' data alone
LIBZ = "pid$target:libz::entry, pid$target:libz::return { @[probefunc, probename] = count(); }"
LIBC = "pid$target:libc.so.6::return { @[probefunc] = count(); }"
t = begin()
for i in range(max(3, KILLS // 20)):
    several = []
    for d in random.choices([LIBZ, LIBZ, LIBC, PROGRAM, "profile-997 { @[ustack(3)] = count(); }"], k=3):
        several.append(start("-q", "-x", "engine=inproc", "-p", str(t.pid), "-n", d + " tick-%dms { exit(0); }" % random.choice((5, 50, 200))))
        time.sleep(random.random() * 0.05)
    for s in several:
        if random.random() < 0.4:
            time.sleep(random.random() * 0.2)
            s[1].kill()
    for s in several:
        s[1].communicate()
    if not check(t.poll() is None, "the program lives", i, t.poll()):
        break
wait("all restored", lambda: not mappings(t.pid) and not strays(t.pid))
end(t, KILLS)

# the watchdog killed too: descry heal
t = begin()
s = start("-q", "-x", "engine=inproc", "-p", str(t.pid), "-n", PROGRAM)
wait("patched", lambda: text(t) != clean)
watch = [p for p in os.listdir("/proc") if p.isdigit() and os.path.exists("/proc/%s/comm" % p) and
         open("/proc/%s/comm" % p).read() == "descry-watch\n" and
         " %d " % s[1].pid in open("/proc/%s/stat" % p).read().rsplit(")", 1)[1][:20]]
check(len(watch) == 1, "one watchdog", watch)
r = sh(DESCRY + " heal %d" % t.pid)
check(r.returncode == 1 and "alive" in r.stderr and text(t) != clean, "heal refuses while the tracer lives", r)
for p in watch:
    os.kill(int(p), signal.SIGTERM)  # which it does not hear
    os.kill(int(p), signal.SIGKILL)
s[1].kill()
s[1].communicate()
time.sleep(0.1)
check(text(t) != clean and mappings(t.pid), "nobody restored it")
r = sh(DESCRY + " heal %d" % t.pid)
check(r.returncode == 0 and re.search(r"\b[1-9][0-9]* sites restored", r.stdout), "healed", r)
check(text(t) == clean and not mappings(t.pid), "all is as it was", mappings(t.pid))
r = sh(DESCRY + " heal --all")
check(str(t.pid) not in r.stdout + r.stderr, "nothing to heal", r)
check(end(t, 1) == want, "the checksum")
done()
