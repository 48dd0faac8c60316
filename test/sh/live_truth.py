#!/usr/bin/env python3
# descry's numbers beside independent ones: strace, the clock, getrusage, the traced program's counters.
# serial
from live import *

# counts of every system call, as strace counts them (it sees the exec, descry starts behind it)
if shutil.which("strace"):
    for command in "cat /etc/passwd", "ls -l /etc", LIVE + " syscalls 300":
        text = sh("strace -f -c -o %s/strace %s; cat %s/strace" % (TMP, command, TMP)).stdout
        want = {m[1]: int(m[0]) for m in re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ )? *(\w+)$", text, re.M)}
        want.pop("execve", None), want.pop("total", None)
        got = descry("--json", "-n", 'syscall:::entry /pid == $target/ { @[probefunc] = count(); }', c=command).aggs()
        exits = got.pop("exit_group", 0)
        check(exits == 1 and got and got == want, "strace -c", command, {k: (got.get(k), want.get(k)) for k in set(got) | set(want)
                                                                   if got.get(k) != want.get(k)})

# errors by errno, as strace -c counts them
r = descry("--json", "-n", "syscall:::return /pid == $target && errno/ { @ = count(); }", c=LIVE + " syscalls 300")
n = numbers(r.out)
check(n["enoent"] + n["ebadf"] <= r.aggs().get((), 0) <= n["enoent"] + n["ebadf"] + 3, "failures", r.aggs(), n)

# vtimestamp is time on CPU: two programs share a CPU, each sees its own half
def on_cpu_0():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


other = subprocess.Popen([LIVE, "spin", "600"], preexec_fn=on_cpu_0, stdout=subprocess.DEVNULL)
r = descry("--json", "-n", "pid$target::spin_begin:entry { self->v = vtimestamp; self->t = timestamp; } "
           "pid$target::spin_end:entry { @v = sum(vtimestamp - self->v); @t = sum(timestamp - self->t); @cpu = sum(arg0); }",
           c=LIVE + " spin 300", preexec_fn=on_cpu_0)
other.wait()
n = numbers(r.out)
near(r.aggs("v").get((), 0), n["cpu"], 0.1, "vtimestamp against CLOCK_THREAD_CPUTIME_ID")
near(r.aggs("t").get((), 0), n["wall"], 0.1, "timestamp against CLOCK_MONOTONIC")
check(r.aggs("cpu").get(()) == n["cpu"], "the argument is the argument")
check(n["wall"] > n["cpu"] * 1.3, "the CPU was shared", n)

# profile-997 ticks 997 times a second on each CPU; CPUs are kept busy, because some virtual machines have no timers
# on idle ones
busy = [subprocess.Popen([LIVE, "spin", "2500"], preexec_fn=lambda: os.sched_setaffinity(0, {n}), stdout=subprocess.DEVNULL)
        for n in os.sched_getaffinity(0)]
r = descry("--json", "-n", "profile-997 { @[cpu] = count(); } profile-97 { @low = count(); } tick-100ms { @tick = count(); } "
           "BEGIN { b = timestamp; } tick-1500ms { @e = max(timestamp - b); exit(0); }")
secs = r.aggs("e").get((), 0) / 1e9
a = r.aggs()
check(set(a) == set(os.sched_getaffinity(0)), "every CPU samples", a)
for cpu_id, n in a.items():
    near(n, 997 * secs, 0.05, "profile-997 on CPU %s" % cpu_id)
near(r.aggs("low").get((), 0), 97 * secs * len(a), 0.05, "profile-97")
check(13 <= r.aggs("tick").get((), 0) <= 16, "tick-100ms is on one CPU", r.aggs("tick"))
for b in busy:
    b.kill()
    b.wait()

# output of all CPUs in the order of time, nothing lost
r = descry("-q", "-n", 'syscall::getppid:entry /pid == $target/ { printf("%d %d\\n", timestamp, cpu); }', c=LIVE + " threads 5000")
rows = [tuple(map(int, m)) for m in re.findall(r"^(\d{6,}) (\d+)$", r.out, re.M)]
check(len(rows) == numbers(r.out)["getppid"] == 20000, "every event printed", len(rows), r.err)
check([t for t, c in rows] == sorted(t for t, c in rows), "in the order of time")
check(len({c for t, c in rows}) > 1 or len(os.sched_getaffinity(0)) == 1, "from several CPUs")

# aggregations of four threads at once: none lost
a = descry("--json", "-n", "syscall::getppid:entry /pid == $target/ { @[tid] = count(); @s = sum(1); @a = avg(5); @m = max(tid); n++; }",
           c=LIVE + " threads 20000")
check(sorted(a.aggs().values()) == [20000] * 4 and a.aggs("s")[()] == 80000 and a.aggs("a")[()] == 5, "threads count", a.aggs())
check(a.aggs("m")[()] == max(a.aggs()), "max")

# associative arrays and thread variables hold the assigned values
r = descry("--json", "-n", "syscall::getppid:entry /pid == $target/ { x[tid]++; self->n++; @[tid] = max(x[tid] == self->n ? x[tid] : -1); }",
           c=LIVE + " threads 3000")
check(sorted(r.aggs().values()) == [3000] * 4, "x[tid] and self->n", r.aggs())

# walltimestamp, pid, execname, cwd, uid
r = descry("-q", "-n", 'BEGIN { printf("%d\\n", walltimestamp / 1000000000); exit(0); }')
check(abs(int(r.out) - time.time()) < 3, "walltimestamp", r)
r = descry("-q", "-n", 'syscall::getppid:entry /pid == $target/ { printf("%d %s %s %d %d %s|", pid, execname, cwd, uid, ppid, '
           'curpsinfo->pr_psargs); exit(0); }', c=LIVE + " syscalls 1", cwd="/usr")
m = re.search(r"(\d+) tracee_live /usr 0 (\d+) (\S+) syscalls 1\|", r.out)
check(m and m.group(3) == LIVE, "built-in variables", r)
r = descry("-q", "-n", 'syscall::read:entry /pid == $target && fds[arg0].fi_name == "passwd"/ { printf("%s %s %s|", '
            'fds[arg0].fi_pathname, fds[arg0].fi_name, fds[arg0].fi_fs); }', c="cat /etc/passwd")
check(re.search(r"/etc/passwd passwd \w+\|", r.out), "fds[]", r)
done()
