#!/usr/bin/env python3
# The one-liners about the whole system, in a performance engineer's form, each beside independent numbers.
# serial
from live import *

# programs under names that no other process on the machine uses
for name in "sh", "ls", "cat", "dd", "sleep":
    shutil.copy(shutil.which(name), TMP + "/live" + name)
os.environ["PATH"] = TMP + ":" + os.environ["PATH"]
LS = 'livesh -c "for i in 1 2 3 4; do livels -l /etc >/dev/null; done; livecat /etc/passwd >/dev/null; exit 0"'
SYSCALLS = LIVE + " syscalls 200"

# 1 new processes with arguments
r = descry("-n", 'proc:::exec-success { printf("%d %s\\n", pid, curpsinfo->pr_psargs); }', c=LS)
check(len(re.findall(r"exec-success \d+ livels -l /etc$", r.out, re.M)) == 4, "four ls", r)
check(re.search(r"exec-success \d+ livecat /etc/passwd$", r.out, re.M), "cat", r)
check(r.out.startswith("CPU     ID                    FUNCTION:NAME\n"), "header", r)

# 2 files opened, by process: the same as strace sees
want = set(re.findall(r'openat\([^"]*"([^"]*)"', sh("strace -e trace=openat livecat /etc/passwd /nonexistent/x").stderr))
r = descry("-n", 'syscall::openat:entry { printf("%s %s", execname, copyinstr(arg1)); }', c="livecat /etc/passwd /nonexistent/x")
got = set(re.findall(r"openat:entry livecat (.*)$", r.out, re.M))
check(want and got == want, "openat", got ^ want)

# 3 syscalls by program
r = descry("--json", "-n", "syscall:::entry { @[execname] = count(); }", c=LS)
check(r.aggs().get("livels", 0) > 300 and r.aggs().get("livecat", 0) > 20, "syscalls by program", r)
r = descry("-n", "syscall:::entry { @[execname] = count(); }", c=LS)
check("livels" in [k[0] for k, v in r.table()] and sorted(v for k, v in r.table()) == [v for k, v in r.table()], "sorted", r)

# 4 syscalls by name for one program
r = descry("--json", "-n", 'syscall:::entry /execname == "tracee_live"/ { @[probefunc] = count(); }', c=SYSCALLS)
a = r.aggs()
check(a.get("getppid") == 200 and a.get("getuid") == 100 and a.get("open") == 40, "by name", a)

# 5 failed syscalls with errno
r = descry("--json", "-n", "syscall:::return /errno/ { @[execname, probefunc, errno] = count(); }", c=SYSCALLS)
a = r.aggs()
check(a.get(("tracee_live", "open", 2)) == 40 and a.get(("tracee_live", "close", 9)) == 20, "errno", a)

# 6 read sizes
r = descry("--json", "-n", "syscall::read:return /arg0 > 0/ { @[execname] = quantize(arg0); }", c=SYSCALLS)
d = {b["min"]: b["count"] for b in r.aggs().get("tracee_live", [])}
check(all(d.get(1 << k, 0) >= 20 for k in range(10)), "read sizes", d)

# 7 read latency
r = descry("--json", "-n", 'syscall::read:entry { self->ts = timestamp; } syscall::read:return /self->ts/ '
           '{ @["ns"] = quantize(timestamp - self->ts); self->ts = 0; }', c=SYSCALLS)
check(total(r.aggs().get("ns", [])) >= 200, "read latency", r)

# 8 CPU time in each syscall: no more than the time it took
r = descry("--json", "-n", "syscall:::entry { self->v = vtimestamp; } syscall:::return /self->v/ "
           "{ @[probefunc] = sum(vtimestamp - self->v); self->v = 0; }", c=SYSCALLS)
a = r.aggs()
check(0 < a.get("getppid", 0) < 200 * 50000 and all(v >= 0 for v in a.values()), "vtimestamp", a)

# 9 disk I/O size, 10 disk latency
dd = "livedd if=/dev/zero of=%s/dd bs=64k count=20 oflag=direct status=none" % BUILD
r = descry("--json", "-n", "io:::start { @[execname] = quantize(args[0]->b_bcount); }", c=dd)
d = {b["min"]: b["count"] for b in r.aggs().get("livedd", [])}
if sh(dd).returncode:
    print("note: no O_DIRECT in", BUILD)
else:
    check(d.get(65536, 0) == 20, "I/O size", d)
    r = descry("--json", "-n", "io:::start { s[args[0]->b_edev, args[0]->b_blkno] = timestamp; } "
               "io:::done /s[args[0]->b_edev, args[0]->b_blkno]/ { @ = quantize(timestamp - s[args[0]->b_edev, args[0]->b_blkno]); "
               "s[args[0]->b_edev, args[0]->b_blkno] = 0; }", c=dd)
    check(total(r.aggs().get((), [])) >= 20 and all(1000 < b["max"] for b in r.aggs()[()]), "I/O latency", r)
sh("rm -f %s/dd" % BUILD)

# a request that fails: a loop device on a file for which its file system has too little room
mounted = TMP + "/small"
os.mkdir(mounted)
if sh("mount -t tmpfs -o size=256k none %s" % mounted).returncode == 0:
    sh("truncate -s 4M %s/image" % mounted)
    loop = sh("losetup -f --show %s/image" % mounted).stdout.strip()
    if loop:
        r = descry("-q", "-n", 'io:::start, io:::done /args[1]->dev_pathname == $$1/ { @[probename, args[0]->b_error, (args[0]->b_flags & B_ERROR) != 0, '
                   'args[0]->b_bcount, (int64_t)arg0 < 0] = count(); } END { printa("%s %d %d %d %d %@d\\n", @); }', loop,
                   c="livedd if=/dev/zero of=%s bs=64k count=20 oflag=direct status=none" % loop)
        rows = [line.split() for line in r.lines() if line]
        check(sorted(rows) == [["done", "0", "0", "65536", "1", "4"], ["done", "28", "1", "65536", "1", "1"], ["start", "0", "0", "65536", "1", "5"]], "b_error", r)
        sh("losetup -d " + loop)
    else:
        print("note: no loop devices: b_error not tested")
    sh("umount " + mounted)

# paging of files and of programs: pages through the page cache, in the program that reads them
if open("/proc/self/mounts").read().find(" / ext4 ") >= 0:
    sh("cp %s %s/program" % (shutil.which("true"), BUILD))
    size = (os.path.getsize(BUILD + "/program") + 4095) // 4096
    r = descry("-q", "-n", "vminfo:::fspgin, vminfo:::fspgout, vminfo:::execpgin { @[probename, execname] = sum(arg0); } vminfo:::maj_fault { @[probename, execname] = sum(arg0); } "
               'END { printa("%s %s %@d\\n", @); }',
               c="sh -c 'livedd if=/dev/zero of={0}/paged bs=1M count=5 conv=fsync status=none; livedd if={0}/paged iflag=nocache count=0 status=none; livecat {0}/paged >/dev/null; "
               "sync {0}/program; livedd if={0}/program iflag=nocache count=0 status=none; {0}/program; rm -f {0}/paged {0}/program'".format(BUILD))
    v = {tuple(line.split()[:2]): int(line.split()[2]) for line in r.lines() if len(line.split()) == 3}
    check(v.get(("fspgout", "livedd")) == 1280 and 1280 <= v.get(("fspgin", "livecat"), 0) < 2000, "fspgin, fspgout", v)
    check(sum(n for (probe, name), n in v.items() if probe == "execpgin") >= size // 2 > 0 and v.get(("maj_fault", "program"), 0) >= 1, "execpgin, maj_fault", v, size)

# 11 kernel CPU sampling
r = descry("-n", "profile-997 /arg0/ { @[stack()] = count(); }", c=LIVE + " threads 300000")
check(re.search(r"^ {14}vmlinux`\w+\+0x[0-9a-f]+$", r.out, re.M), "kernel stacks", r)
check(not re.search(r"bpf_get_stack|perf_event_overflow|perf_swevent", r.out), "the tracer's own frames", r)
check("do_syscall_64" in r.out or "entry_SYSCALL" in r.out, "syscall frames", r)

# 12 user CPU sampling of one program
r = descry("--json", "-n", 'profile-997 /arg1 && execname == "tracee_live"/ { @[ustack(50)] = count(); } tick-10s { exit(0); }',
           c=LIVE + " spin 300")
hits = sum(v for k, v in r.aggs().items())
spin = sum(v for k, v in r.aggs().items() if "do_spin" in str(k) or "main" in str(k))
check(hits > 200 and spin > hits * 0.8, "user stacks name the function", hits, spin, str(r)[:2000])

# 13 threads on CPU
r = descry("--json", "-n", "profile-997 { @[execname, pid] = count(); }", c=LIVE + " spin 500")
got = sum(v for k, v in r.aggs().items() if k[0] == "tracee_live")
near(got, 997 * 0.5, 0.15, "samples on CPU")

# 14 run-queue latency
r = descry("--json", "-n", "sched:::wakeup { t[args[0]->pr_lwpid] = timestamp; } sched:::on-cpu /t[tid]/ "
           "{ @ = quantize(timestamp - t[tid]); t[tid] = 0; }", c=LS)
check(total(r.aggs().get((), [])) > 8, "run-queue latency", r)

# 15 off-CPU time with stacks
r = descry("--json", "-n", "sched:::off-cpu { self->t = timestamp; } sched:::on-cpu /self->t/ "
           "{ @[execname, ustack()] = sum(timestamp - self->t); self->t = 0; }", c="livesleep 0.5")
near(sum(v for k, v in r.aggs().items() if k[0] == "livesleep"), 500000000, 0.2, "off-CPU ns of sleep")
check(any(k[0] == "livesleep" and "nanosleep" in k[1] for k in r.aggs()), "the sleep's stack")

# 16 signals
r = descry("-n", 'proc:::signal-send { printf("%s(%d) -> %d signal %d", execname, pid, args[1]->pr_pid, args[2]); }',
           c='sh -c "sleep 5 & kill -USR1 $!; echo to $! from $$; wait"')
m = re.search(r"to (\d+) from (\d+)", r.out)
check(m and "sh(%s) -> %s signal 10" % (m.group(2), m.group(1)) in r.out, "signal", r)

# 17 forks and exits
r = descry("--json", "-n", 'proc:::create { @["create", execname] = count(); } proc:::exit { @["exit", execname] = count(); }', c=LS)
a = r.aggs()
check(a.get(("create", "livesh"), 0) >= 4 and a.get(("exit", "livels")) == 4, "forks and exits", a)

# 20 every tracepoint that fires in a second
r = descry("--json", "-n", "sdt:::  { @[probename] = count(); } tick-1s { exit(0); }")
a = r.aggs()
check(len(a) > 20 and a.get("sched_switch", 0) > 10 and a.get("sys_enter", 0) > 0, "tracepoints", a)

# 21 page faults: as getrusage counts them
r = descry("--json", "-n", "vminfo:::as_fault { @[execname] = count(); }", c=LIVE + " faults 2000")
got, want = r.aggs().get("tracee_live", 0), numbers(r.out)["faults"]
check(want <= got <= want + 300, "page faults", got, want)

# bytes and calls of one program, by its own count; forks and execs of a shell
d = "dd if=/dev/zero of=/dev/null bs=4096 count=500"
r = descry("--json", "-n", 'sysinfo:::sysread,sysinfo:::syswrite,sysinfo:::readch,sysinfo:::writech /pid == $target/ { @[probename] = sum(arg0); }', c=d)
a = r.aggs()
check(500 * 4096 <= a.get("readch", 0) < 500 * 4096 + 100000 and 500 * 4096 <= a.get("writech", 0) < 500 * 4096 + 1000, "bytes", a)
check(500 <= a.get("sysread", 0) < 520 and 500 <= a.get("syswrite", 0) < 520, "reads and writes", a)
r = descry("--json", "-n", 'sysinfo:::sysfork,sysinfo:::sysexec,sysinfo:::nthreads /progenyof($target)/ { @[probename] = count(); }', c=LS)
a = r.aggs()
check(a.get("sysfork", 0) >= 4 and a.get("sysexec", 0) >= 4 and a.get("nthreads", 0) >= a["sysfork"], "forks, execs", a)
r = descry("--json", "-n", 'sysinfo:::pswitch { @["all"] = count(); } sdt:::sched_switch { @["sdt"] = count(); } sysinfo:::inv_swtch,sysinfo:::idlethread { @[probename] = count(); } tick-1s { exit(0); }')
a = r.aggs()
check(abs(a["all"] - a["sdt"]) < 20 and a.get("inv_swtch", 0) + a.get("idlethread", 0) <= 2 * a["all"], "switches", a)

# 22 subsecond offset of CPU use
r = descry("-n", "profile-99 { @[walltimestamp / 1000000000, execname] = "
           "lquantize((timestamp % 1000000000) / 1000000, 0, 1000, 10); }", c=LIVE + " spin 300")
check(re.search(r"^ +1\d{9}  tracee_live", r.out, re.M), "seconds and names", r)
check(sum(map(int, re.findall(r"\| *@* +(\d+)", r.out[r.out.index("tracee_live"):]))) >= 20, "samples", r)
done()
