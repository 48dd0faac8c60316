#!/usr/bin/env python3
# Probes of proc where BPF is not permitted: bpf(2) refused by a filter of system calls, and as an ordinary user. They
# come from the kernel's process connector and are compared with the real events. Losses are counted.
# serial
import ctypes
import struct
from live import *

libc = ctypes.CDLL(None, use_errno=True)
for_anybody()


def no_bpf():
    """bpf(2) is EPERM from here on: seccomp, which stays over exec."""
    code = b"".join(struct.pack("HBBI", *i) for i in ((0x20, 0, 0, 0), (0x15, 0, 1, 321), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)))
    buf = ctypes.create_string_buffer(code)
    prog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(buf)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, prog, 0, 0) == 0


def nobody():
    no_bpf()
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


probe = finish(start("-qn", "proc:::lwp-exit { exit(0); } tick-100ms { exit(0); }", preexec_fn=no_bpf))
if probe.rc and "process connector" in probe.err:
    skip(probe.err.strip())
check(probe.rc == 0, "without bpf(2)", probe)

# the contents of the messages
r = finish(start("-n", "proc::: { @ = count(); } tick-50ms { exit(0); }", preexec_fn=no_bpf))
check(r.rc == 0 and "probes of proc come from the process connector" in r.err, "it is said", r)
check("proc:vmlinux::signal-send not enabled" in r.err and "proc:vmlinux::exec-failure not enabled" in r.err, "what cannot be", r)
r = finish(start("-n", "proc:::signal-send { @ = count(); }", preexec_fn=no_bpf))
check(r.rc == 1 and "not permitted" in r.err and "connector" not in r.err, "nothing to enable", r)
r = finish(start("-n", "syscall:::entry,proc:::create { @ = count(); }", preexec_fn=no_bpf))
check(r.rc == 1 and "not permitted" in r.err, "other providers want the kernel", r)
r = finish(start("-qn", "BEGIN { trace(1 + 1); exit(3); }", preexec_fn=no_bpf))
check(r.rc == 1 and "not permitted" in r.err, "BEGIN alone may ask for the kernel's memory", r)

# names, arguments, results: of processes that are gone when it is printed
for who, name in (no_bpf, "root"), (nobody, "an ordinary user"):
    r = finish(start("-qn", """
        proc:::create /args[0]->pr_ppid == $target/ { @created[args[0]->pr_fname] = count(); }
        proc:::start /ppid == $target/ { self->started = timestamp; @started = count(); }
        proc:::exec-success /ppid == $target/ { @execed[execname, self->started != 0] = count(); }
        proc:::exit /ppid == $target/ { @ended[execname, args[0], curpsinfo->pr_wstat, uid == %d] = count(); }
        proc:::exit /pid == $target/ { @last[execname] = count(); }
        proc:::lwp-exit /ppid == $target/ { @lwps = count(); }""" % (0 if who is no_bpf else 65534),
        c="sh -c 'sleep 0.5; for i in 1 2 3; do sleep 0.0$i; sh -c \"exit 7\"; sh -c \"kill -9 \\$\\$\"; done; sleep 0.2; exit 0'", preexec_fn=who))
    rows = {k: v for k, v in r.table()}
    single = [int(x) for x in re.findall(r"(?m)^ +(\d+)$", r.out)]
    check(r.rc == 0, name, r)
    check((("sh",), 11) in r.table() and (("sh",), 1) in r.table(), name + ": created, and the end of the command itself", r)
    # On a busy machine a process may have ended before it is examined. Then it has no name, never a wrong one. The
    # way it ended is always known.
    execed = {k[0]: v for k, v in rows.items() if len(k) == 2}
    gone = execed.get("<gone>", 0)
    check(sum(execed.values()) == 11 and all(k[1] == "1" for k in rows if len(k) == 2), name + ": execed, each with what it began with", r)
    check(5 - gone <= execed.get("sleep", 0) <= 5 and 6 - gone <= execed.get("sh", 0) <= 6, name + ": names", r)
    ended = {}
    for k, v in rows.items():
        if len(k) == 4:
            check(k[0] in (("sleep", "<gone>") if k[2] == "0" else ("sh", "<gone>")), name + ": name", k)
            ended[k[1:]] = ended.get(k[1:], 0) + v
    check(ended == {("1", "0", "1"): 5, ("1", "1792", "1"): 3, ("2", "9", "1"): 3}, name + ": exit codes and signals", ended, r)
    check(single.count(11) >= 2, name + ": started, threads", r)

# arguments are read from the process itself
r = finish(start("-qn", 'proc:::exec-success /execname == "sleep"/ { printf("[%s] %d %d\\n", curpsinfo->pr_psargs, pid == tid, curpsinfo->pr_ppid == $target); }',
                 c="sh -c 'sleep 0.4; sleep 1.201; sleep 1.202'", preexec_fn=no_bpf))
check("[sleep 1.201] 1 1\n[sleep 1.202] 1 1\n" in r.out, "pr_psargs", r)

# threads: a process ends with its last thread, whichever it is
with open(os.path.join(TMP, "threads.py"), "w") as f:
    f.write("import threading, time\ntime.sleep(0.4)\nt = [threading.Thread(target=time.sleep, args=(0.05,)) for i in range(20)]\n[x.start() for x in t]\n[x.join() for x in t]\n")
r = finish(start("-qn", "proc:::lwp-create /pid == $target/ { @c = count(); } proc:::lwp-exit /pid == $target/ { @l = count(); } proc:::exit /pid == $target/ { @e = count(); } "
                 'END { printa("%@d ", @c); printa("%@d ", @l); printa("%@d", @e); }', c="python3 " + TMP + "/threads.py", preexec_fn=no_bpf))
check(r.out.split() == ["20", "21", "1"], "threads and their process", r)

# an overrun is counted: nothing is read while it is stopped
s = start("-x", "droptags", "-x", "bufsize=64k", "-n", "proc:::create { @ = count(); } tick-20s { exit(0); }", preexec_fn=nobody)
ready(s)
s[1].send_signal(signal.SIGSTOP)
for i in range(1000):
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
s[1].send_signal(signal.SIGCONT)
time.sleep(1.5)
s[1].send_signal(signal.SIGINT)
r = finish(s)
lost = sum(int(n) for n in re.findall(r"\[DTRACEDROP_EVENTS\] (\d+) process event drops?", r.err))
seen = sum(int(x) for x in re.findall(r"(?m)^ +(\d+)$", r.out))
check(lost > 500 and lost + 3 * seen >= 3000 * 0.98, "lost %d, seen %d of 1000 created" % (lost, seen), r)
done()
