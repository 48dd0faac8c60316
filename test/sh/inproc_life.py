#!/usr/bin/env python3
# A process that is traced from inside forks, executes, starts threads, catches signals and dies. Its output is
# unchanged in every case, and nothing is left in it.
# serial
from live import *

INSIDE = os.path.join(BUILD, "test", "tracee_inside")
WORK = "pid$target:a.out:work:entry { @[pid == $target] = count(); }"


def inproc(d, args, *more, **kw):
    return descry("-q", "-x", "engine=inproc", *more, "-n", d, c="%s %s" % (INSIDE, args), **kw)


def counts(r):
    return {" ".join(line.split()[:-1]): int(line.split()[-1]) for line in r.lines() if re.search(r" \d+$", line)}


r = inproc(WORK, "fork 500")
check("\n1\n" in "\n" + r.out and counts(r) == {"1": 1000}, "a forked child is not traced", r)
r = inproc(WORK, "fork 500", "-x", "follow")
check(counts(r) == {"1": 1000, "0": 500}, "a forked child is followed", r)
r = inproc(WORK, "exec 500")
check(counts(r) == {"1": 1500}, "an executed program is traced again", r)
r = inproc("pid$target:a.out::entry { @ = count(); } pid$target:a.out::return { @r = count(); } pid$target:libc.so.6::entry { @l = count(); }", "threads 2000")
check("0 wrong" in r.out, "threads, handlers, longjmp, dlopen", r)
n = [int(line) for line in r.out.split() if line.isdigit()]
check(len(n) >= 3 and n[1] > 160000, "and everything was counted", r)
r = inproc("pid$target:a.out:text:entry { @[copyinstr(arg0)] = count(); }", "faults 200")
check("200 faults" in r.out and counts(r)["good"] == 200, "the program's own handler works beside ours", r)

r = descry("-x", "engine=inproc", "-n", "pid$target:a.out:branches:return { @ = count(); }", c="%s mix 30" % INSIDE, rc=1)
check("cannot be enabled in-process: a branch leads into the bytes" in r.err, "what cannot be patched is said", r)

# its own fault ends it as it would have
p = sh("%s die 1" % INSIDE)
r = inproc("pid$target:a.out:text:entry { trace(copyinstr(arg0)); } ERROR { trace(\"bad\"); }", "die 1")
check(p.returncode in (-11, 139) and "bad" in r.out, "it dies of SIGSEGV", p, r)

# the command's end is reported; with -q it is not
permitted = descry("-q", "-x", "engine=kernel", "-n", "BEGIN { exit(0); }").rc == 0
for engine in ["inproc"] + ["kernel"] * permitted:
    for command, how in ("sh -c 'exit 3'", "exited with status 3"), ("true", "has exited"), ("sh -c 'kill -SEGV $$'", "terminated by SIGSEGV"):
        r = descry("-x", "engine=" + engine, "-n", "pid$target:libc.so.6:getpid:entry { @ = count(); }", c=command)
        check(re.search(r"^descry: pid \d+ %s$" % how, r.err, re.M), "how it ended", engine, command, r)
        r = descry("-q", "-x", "engine=" + engine, "-n", "pid$target:libc.so.6:getpid:entry { @ = count(); }", c=command)
        check(how not in r.err, "not with -q", r)

# the kernel does not notice that a place (behind endbr64) holds descry's jump: its uprobe there would end the program
if permitted:
    proc = subprocess.Popen([INSIDE, "threads", "6000000"], stdout=subprocess.PIPE)
    time.sleep(0.1)
    s = start("-q", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { @ = count(); }", "-p", str(proc.pid))
    limit = time.monotonic() + 60
    while "descry-island" not in open("/proc/%d/maps" % proc.pid).read() and time.monotonic() < limit and proc.poll() is None:
        time.sleep(0.01)
    time.sleep(0.1)
    r = descry("-q", "-x", "engine=kernel", "-n", "pid$target:a.out:work:4 { @ = count(); } tick-50ms { exit(0); }", "-p", str(proc.pid), rc=1)
    check("traced from inside" in r.err or proc.poll() is not None, "a uprobe where we have patched", r)
    r = descry("-q", "-x", "engine=kernel", "-n", "pid$target:a.out:work:entry { @ = count(); } tick-50ms { exit(0); }", "-p", str(proc.pid))
    check(r.rc == 0, "in front of it, at endbr64, it may be", r)
    s[1].send_signal(signal.SIGINT)
    check(finish(s).rc == 0, "traced")
    out = proc.communicate()[0].decode()
    check("0 wrong" in out and proc.returncode == 0, "it lives", out, proc.returncode)

# attach, detach, attach: same process, nothing left
proc = subprocess.Popen([INSIDE, "threads", "6000000"], stdout=subprocess.PIPE)
time.sleep(0.2)
for i in range(5):
    if proc.poll() is not None:
        break
    r = finish(start("-q", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { @ = count(); n++; } tick-50ms /n >= 10/ { exit(0); }", "-p", str(proc.pid)))
    if proc.poll() is None: # else it may have ended before it was attached to
        check(r.rc == 0, "attached", r)
        check("/memfd:descry" not in open("/proc/%d/maps" % proc.pid).read(), "no mapping is left")
        check(re.search(r"[1-9]\d+", r.out), "it counted", r)
out = proc.communicate()[0].decode()
check("0 wrong" in out and proc.returncode == 0, "right to the end", out, proc.returncode)
done()
