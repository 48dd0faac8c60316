#!/usr/bin/env python3
# Names of other systems: modules and functions, system calls, members and variables of their kernels. Names without
# an equivalent are reported, and left out with -Z.
# serial
# covers: zdefs -Z
from live import *

# system calls: the table names calls that exist, under names that do not
table = re.findall(r"^FOREIGN\((\w+), (\w+), \"", open("src/probe/foreign_probes.def").read(), re.M)
ours = set(re.findall(r"^SYSCALL\(\d+, (\w+),", open("src/probe/syscalls.def").read(), re.M))
check(len(table) > 60 and not [t for t in table if t[1] not in ours], "calls that exist", [t for t in table if t[1] not in ours])
check(not [t for t in table if t[0] in ours] and len({t[0] for t in table}) == len(table), "names of others only", [t for t in table if t[0] in ours])
r = descry("-l", "-n", ",".join("syscall::%s:entry" % t[0] for t in table))
check([line.split()[3] for line in r.lines()[1:]] == [t[1] for t in table], "each means its call", r)
r = descry("-l", "-v", "-n", "syscall::execve:entry")
check("elsewhere exec (illumos, without the environment), exece (illumos)" in r.out, "-l -v shows them", r)

# a probe that two names mean fires once
r = descry("-q", "-n", "syscall::exec:return, syscall::exece:return /execname == \"true\"/ { @[probefunc] = count(); } syscall::rexit:entry /execname == \"true\"/ { @r[arg0] = count(); }",
           c="sh -c '/bin/true; /bin/true'")
check([line.split() for line in r.lines()] == [["execve", "2"], ["0", "2"]], "exece, rexit", r)
for d in "syscall:genunix:read:entry", "io:unix::start", "io:genunix:bdev_strategy:start", "proc:mach_kernel:proc_exit:exit", "sched:kernel:resume:on-cpu":
    check(len(descry("-l", "-n", d).lines()) == 2, d)
check(len(descry("-l", "-n", "syscall:nosuch:read:entry", rc=1).lines()) == 1, "other modules stay unknown")

# members of kthread_t and proc_t, from task_struct; variables
PROGRAM = """syscall::getppid:entry /pid == $target/ {
    printf("%d %d %d %s|%s|", curthread->t_procp->p_pidp->pid_id, curthread->t_procp->p_ppid, curthread->t_procp->p_lwpcnt, curthread->t_procp->p_user.u_comm, curthread->t_procp->p_user.u_psargs);
    printf("%s|%d|%d|", curthread->t_procp->p_user.u_cdir->v_path, `_pagesize, curthread->t_pri == curlwpsinfo->pr_pri);
    printf("%s|%d|%d\\n", stringof(`utsname.nodename), ((kthread_t *)curthread)->t_tid == tid, (int)(boolean_t)B_TRUE); exit(0); }"""
r = descry("-q", "-n", PROGRAM, c=LIVE + " syscalls 3")
m = re.search(r"^(\d+) (\d+) 1 tracee_live\|(.*)\|(.*)\|4096\|1\|(.*)\|1\|1$", r.out, re.M)
check(m and m.group(3) == LIVE + " syscalls 3" and m.group(4) == os.getcwd() and m.group(5) == os.uname().nodename, "members", r)
r = descry("-q", "-n", "BEGIN { trace(curthread->t_nosuch); }", rc=1)
check("t_nosuch is not a member of struct task_struct" in r.err, "an unknown member", r)
r = descry("-q", "-n", "BEGIN { trace(curthread->t_cpu->cpu_id == cpu); trace(curthread->t_cpu->cpu_disp->disp_nrunnable >= 0); exit(0); }")
check(r.out.strip() == "11", "run queue", r)

# interrupts and timers
r = descry("-q", "-n", "sdt:::callout-start { self->t = timestamp; } sdt:::callout-end /self->t/ { @ = count(); self->t = 0; } sdt:::interrupt-start, sdt:::interrupt-complete { @i[stringof(args[0]->name)] = count(); } tick-1s { exit(0); }")
check(any(n > 0 for n in map(int, re.findall(r"(?m)^ +(\d+)$", r.out))), "timers fire", r)

# addresses and ports in formats, flags of mmap() that Linux does not have
r = descry("-q", "-n", 'BEGIN { @["192.0.2.1", (uint16_t)65123] = count(); printa("%-12I|%P|%@d\\n", @); printf("%I %d\\n", "::1", MAP_TEXT | MAP_INITDATA | MAP_ALIGN); exit(0); }')
check(r.lines() == ["192.0.2.1   |65123|1", "::1 0"], "%I, %P", r)

# names without an equivalent
r = descry("-n", "vfs:::read { }", rc=1)
check("provider vfs is FreeBSD's" in r.err, "vfs", r)
r = descry("-n", "fsinfo:::remove { }", rc=1)
check("the call names a path and no open file: syscall::unlink*:" in r.err, "fsinfo by path", r)
r = descry("-n", "vminfo:::zfod { @ = count(); } BEGIN { exit(0); }", rc=1)
check("cannot be enabled: the kernel counts this without a tracepoint" in r.err, "unavailable", r)
r = descry("-q", "-Z", "-n", "vfs:::read, io:nfs::start { @ = count(); } vminfo:::zfod { @ = count(); } BEGIN { printf(\"lives\\n\"); exit(0); }")
check(r.out.split()[0] == "lives" and r.err.count("warning: ") == 3 and "vminfo:vmlinux::zfod is left out: " in r.err and "vfs:::read is left out: " in r.err, "with -Z", r)
# events that Linux does not have: the probe never fires
r = descry("-q", "-n", "vminfo:::pgrec, sysinfo:::ufsiget { @ = count(); } BEGIN { printf(\"lives\\n\"); exit(0); }")
check(r.out.split()[0] == "lives" and r.err.count("warning: ") == 2 and "vminfo:vmlinux::pgrec never fires: Linux takes no page back" in r.err, "never", r)

# operations on open files
with open(TMP + "/file", "w") as f:
    f.write("x" * 12345)
WORK = """import os, fcntl, mmap
f = os.open("%s/file", os.O_RDWR)
while os.read(f, 5000): pass
os.write(f, b"yy"); os.pwrite(f, b"zzz", 3); os.lseek(f, 0, 0); os.fsync(f); os.ftruncate(f, 8192); os.fchmod(f, 0o600); fcntl.lockf(f, fcntl.LOCK_EX)
m = mmap.mmap(f, 8192); m.close(); fcntl.fcntl(f, fcntl.F_GETFD); os.close(f); os.listdir("%s")""" % (TMP, TMP)
r = descry("--json", "-n", 'fsinfo::: /pid == $target && args[0]->fi_pathname == $$1/ { @n[probename] = count(); @b[probename] = sum(args[1]); @s[probename] = sum(arg1); }'
           'fsinfo:::readdir /pid == $target && args[0]->fi_pathname == $$2/ { @d[args[1] > 0 ? "some" : "end", args[0]->fi_name, args[0]->fi_fs != ""] = count(); }', TMP + "/file", TMP,
           c="%s -c %s" % (sys.executable, shlex.quote(WORK)))
n, b = r.aggs("n"), r.aggs("b")
check({k: n.get(k) for k in ("open", "read", "write", "seek", "fsync", "space", "setattr", "frlock", "close")} ==
      {"open": 1, "read": 4, "write": 2, "seek": 1, "fsync": 1, "space": 1, "setattr": 1, "frlock": 1, "close": 2}, "fsinfo: mmap closes a descriptor of its own", n)
check(b.get("read") == 12345 and b.get("write") == 5 and b.get("map") == 8192 and r.aggs("s") == b, "fsinfo: bytes", b)
check(r.aggs("d").get(("some", os.path.basename(TMP), 1)) == 1 and r.aggs("d").get(("end", os.path.basename(TMP), 1)) == 1, "fsinfo: readdir", r.aggs("d"))

# counters by their older names, functions of other systems
for there, here in ("mib:::udpInDatagrams", "udpHCInDatagrams"), ("mib:ip::ipInReceives", None), ("mib:::ipInReceives", "ipIfStatsHCInReceives"), ("sysinfo:unix:idle_enter:idlethread", "idlethread"):
    lines = descry("-l", "-n", there, rc=0 if here else 1).lines()[1:]
    check([line.split()[-1] for line in lines] == ([here] if here else []), there, lines)

# CPUs, memory, load, zones
r = descry("-q", "-n", "BEGIN { printf(\"%d|%d|%s|%s|%d|%d|%d|%s|%d\\n\", curcpu->cpu_id == cpu, curcpu->cpu_info.pi_state == P_ONLINE, stringof(curcpu->cpu_info.pi_processor_type), "
           "curcpu->cpu_info.pi_fputypes, curcpu->cpu_info.pi_clock, `freemem, `availrmem, zonename, curpsinfo->pr_zoneid); "
           "printf(\"%d|%d|%d|%d|%d\\n\", `k_anoninfo.ani_max, `k_anoninfo.ani_max - `k_anoninfo.ani_phys_resv == `k_anoninfo.ani_free, `hp_avenrun[0] >> 5, `avenrun[0], `physinstalled); exit(0); }")
v = [line.split("|") for line in r.lines()]
info = {line.split(":")[0]: int(line.split()[1]) for line in open("/proc/meminfo")}
check(len(v) == 2 and v[0][:3] == ["1", "1", os.uname().machine] and v[0][7:] == ["global", "0"], "CPU, zone", r)
clocks = [round(float(x)) for x in re.findall(r"(?m)^cpu MHz\s*: (\S+)", open("/proc/cpuinfo").read())]
check(not clocks or os.path.exists("/sys/devices/system/cpu/cpu0/cpufreq") or int(v[0][4]) in clocks, "clock", r, clocks)
total = info["MemTotal"] // 4
check(0 < int(v[0][5]) <= total and abs(int(v[0][5]) - info["MemFree"] // 4) < total // 2 and 0 < int(v[0][6]) <= total and int(v[1][4]) == total, "memory", r, info)
check(int(v[1][0]) == info["SwapTotal"] // 4 and v[1][1] == "1" and v[1][2] == v[1][3], "swap, load", r)
done()
