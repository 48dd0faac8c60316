#!/usr/bin/env python3
# Provider proc from inside a process: the patched process prints the same as the kernel engine for the same program
# restricted to the process. The program's own output is unchanged. Killed tracers leave nothing.
# serial
import random
from live import *

EVENTS = os.path.join(BUILD, "test", "tracee_events")
same = [
    ("threads 5", "proc:::create HERE { @c = count(); } proc:::lwp-create HERE { @[execname, args[0]->pr_lwpid != tid, args[1]->pr_pid == pid, args[1]->pr_ppid == ppid, arg0 != 0] = count(); }"),
    ("threads 5", "proc:::lwp-create HERE { @[args[1]->pr_fname, args[1]->pr_psargs, args[1]->pr_nlwp > 1, args[1]->pr_uid, args[1]->pr_egid, args[1]->pr_wstat] = count(); }"),
    ("threads 5", "proc:::start HERE { @s = count(); } proc:::lwp-start HERE { @[tid != pid, execname, uid, curpsinfo->pr_nlwp > 1, curlwpsinfo->pr_lwpid == tid] = count(); }"),
    ("threads 5", "proc:::lwp-start HERE { self->born = 1; } proc:::lwp-exit HERE { @[self->born, execname, curlwpsinfo->pr_lwpid == tid] = count(); }"),
    ("threads 3", "proc:::exit HERE { printf(\"%d %s %d %d\\n\", args[0], execname, tid == pid, curpsinfo->pr_wstat); }"),
    ("children 4", "proc:::create HERE { printf(\"%s %s %d %d %d %d\\n\", execname, args[0]->pr_fname, args[0]->pr_pid != pid, args[0]->pr_ppid == pid, args[0]->pr_nlwp, args[0]->pr_uid); }"),
    ("children 4", "proc:::lwp-create HERE { @[args[0]->pr_lwpid == args[1]->pr_pid, args[1]->pr_psargs] = count(); }"),
    ("signals 4", "proc:::signal-send /pid == $target && args[2] == 10/ { @[args[2], args[1]->pr_pid == pid, args[0]->pr_lwpid == tid, args[1]->pr_fname, args[1]->pr_psargs, args[1]->pr_uid, args[1]->pr_nlwp] = count(); }"),
    ("kill 2", "proc:::signal-send /pid == $target && args[2] == 9/ { @[args[1]->pr_pid != pid, args[0]->pr_lwpid == args[1]->pr_pid, args[1]->pr_fname, args[1]->pr_psargs, args[1]->pr_ppid == pid, args[1]->pr_nlwp, args[1]->pr_uid] = count(); }"),
    ("group 3", "proc:::lwp-exit HERE { @[execname, tid == pid, curpsinfo->pr_wstat] = count(); } proc:::exit HERE { @e[args[0]] = count(); }"),
    ("crash 3", "proc:::lwp-exit HERE { @[execname, tid == pid, curpsinfo->pr_wstat & 127] = count(); } proc:::exit HERE { @e[args[0] > 1] = count(); }"),
    ("alone", "proc:::lwp-exit HERE { @[execname, tid == pid] = count(); } proc:::exit HERE { @e[args[0]] = count(); }"),
    ("exec 1", "proc:::exec HERE { printf(\"exec %s %s\\n\", execname, args[0]); } proc:::exec-failure HERE { printf(\"failure %d\\n\", args[0]); } proc:::exec-success HERE { trace(1); }"),
    ("exec 3", "proc:::exec HERE { self->path = args[0]; @x[args[0]] = count(); } proc:::exec-success HERE { @s[execname, basename(self->path), pid == tid, curpsinfo->pr_psargs, ppid == curpsinfo->pr_ppid] = count(); } proc:::exec-failure HERE { @f[args[0]] = count(); }"),
]
for args, d in same:
    d = d.replace("HERE", "/pid == $target/")
    want = sh("%s %s" % (EVENTS, args)).stdout
    out = {}
    for engine in "kernel", "inproc":
        to = os.path.join(TMP, "out-" + engine)
        for _ in range(9):
            if os.path.exists(to):
                os.unlink(to)
            r = descry("-q", "-x", "engine=" + engine, "-o", to, "-n", d, c="%s %s" % (EVENTS, args))
            if "too new for its unwind tables" not in open(to).read(): # they come a moment after the process does
                break
        check(want == r.out, "the program's own output", r)
        with open(to) as f:
            out[engine] = sorted(f.read().splitlines()), re.sub(r"pid \d+|process \d+", "X", r.err)
    check(out["kernel"][0] == out["inproc"][0], "engines differ:", d, "\nkernel: %s\ninproc: %s" % (out["kernel"], out["inproc"]))

r = descry("-q", "-x", "engine=inproc", "-n", "proc:::lwp-create { @[ustack()] = count(); } proc:::lwp-exit /tid != pid/ { @e[ustack()] = count(); }", c=EVENTS + " threads 300")
check("`clone" in r.out and re.search(r"`start_thread\+0x\w+\n +\S+`clone", r.out), "stacks", r) # clone3() has no table where it makes the call

# The first firing is in a child on its parent's memory, and the parent waits for it: the slot is the parent's, under
# its name.
d = "pid$target:libc.so.6:execve:entry { @c[\"execve\"] = count(); } pid$target:libc.so.6:posix_spawn:return { @[tid == $target, pid == $target] = count(); }"
r = descry("-q", "-x", "engine=inproc", "-n", d, c=EVENTS + " spawn 20")
check(re.search(r"^ +execve +20$", r.out, re.M) and re.search(r"^ +1 +1 +20$", r.out, re.M), "a vfork child before its parent", r)

# followed children report themselves
d = "proc:::start,proc:::lwp-start,proc:::exit,proc:::lwp-exit /pid != $target/ { @[probename, tid == pid, ppid == $target, execname, curpsinfo->pr_ppid == $target] = count(); }"
r = descry("-q", "-x", "engine=inproc", "-x", "follow", "-n", d, c=EVENTS + " children 6")
for name in "start", "lwp-start", "exit", "lwp-exit":
    check(re.search(r"^ +%s +1 +1 +tracee_events +1 +6$" % name, r.out, re.M), name, r)
r = descry("-q", "-x", "engine=inproc", "-x", "follow", "-n", "proc:::exit /pid != $target/ { @[args[0], curpsinfo->pr_wstat] = count(); }", c=EVENTS + " kill 3")
check(re.search(r"^ +2 +9 +3$", r.out, re.M), "killed children", r)

# events that are not visible from inside are left out, or refused when no others are traced
r = descry("-x", "engine=inproc", "-n", "proc::: { @[probename] = count(); }", c=EVENTS + " threads 2")
check("signal-handle not enabled" in r.err and re.search(r"^ +lwp-start +2$", r.out, re.M), "all of proc", r)
r = descry("-x", "engine=inproc", "-n", "proc:::signal-handle { @ = count(); }", c=EVENTS + " threads 2", rc=1)
check("cannot fire in the in-process engine" in r.err, "signal-handle", r)

# a running process; and tracers that are killed, at any time
every = "proc:::create,proc:::start,proc:::lwp-create,proc:::lwp-start,proc:::exit,proc:::lwp-exit,proc:::exec,proc:::exec-success,proc:::exec-failure,proc:::signal-send "
p = subprocess.Popen([EVENTS, "storm", "4000"], stdout=subprocess.PIPE, text=True)
random.seed(7)
for i in range(12):
    if p.poll() is not None:
        break
    argv = ["-q", "-x", "engine=inproc", *(["-x", "follow"] if i % 4 == 3 else []), "-p", str(p.pid), "-n", every + "{ @[probename] = count(); } tick-400ms { exit(0); }"]
    if i % 3 == 2:
        t = subprocess.Popen([DESCRY, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.random() * 0.15)
        t.kill()
        t.wait()
    else:
        r = finish(start(*argv))
        if p.poll() is None:
            check(r.rc == 0 and "lwp-start" in r.out and "lwp-create" in r.out, "a running process", r)
out = p.communicate()[0]
check(out == "0 wrong, 8000 caught\n" and p.returncode == 0, "it lives", out, p.returncode)
r = descry("-q", "-x", "engine=inproc", "-n", every + "{ @[probename] = count(); }", c=EVENTS + " storm 200")
check("0 wrong, 400 caught" in r.out, "its output", r)
for name, n in ("create", 100), ("lwp-start", 1602), ("lwp-exit", 1603), ("signal-send", 400), ("exit", 1):
    check(re.search(r"^ +%s +%d$" % (name, n), r.out, re.M), name, n, r)

# without glibc's way to identify threads: static, and another C library
for cc in ["cc", "-static"], ["musl-gcc"]:
    prog = os.path.join(TMP, "events-" + cc[0])
    if not shutil.which(cc[0]) or sh("%s -O1 -pthread -o %s test/tracee/events.c" % (" ".join(cc), prog)).returncode:
        print(" ".join(cc) + " makes no program here: not tried")
        continue
    for args, counts in (("threads 5", {"lwp-create": 5, "lwp-start": 5, "lwp-exit": 6, "exit": 1}), ("signals 3", {"signal-send": 15, "exit": 1, "lwp-exit": 1}),
                         ("children 3", {"create": 9, "lwp-create": 9, "exit": 1, "lwp-exit": 1}),
                         ("exec 3", {"exec": 5, "exec-failure": 3, "exec-success": 2, "exit": 1, "lwp-exit": 1})):
        r = descry("-q", "-x", "engine=inproc", "-n", every + "{ @[probename] = count(); }", c="%s %s" % (prog, args))
        check(sh("%s %s" % (prog, args)).stdout.strip() in r.out, "its output", cc, args, r)
        got = {k[0]: v for k, v in r.table() if k[0]}
        check(got == counts, cc, args, got, counts)

# an ordinary user, when the kernel refuses
if shutil.which("setpriv"):
    os.chmod(TMP, 0o755)
    for f in DESCRY, EVENTS:
        shutil.copy(f, TMP)
        os.chmod(os.path.join(TMP, os.path.basename(f)), 0o755)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    env = dict(os.environ, XDG_CACHE_HOME=os.path.join(TMP, "none"), HOME=TMP)
    mine = [os.path.join(TMP, os.path.basename(DESCRY))]
    r = subprocess.run(nobody + mine + ["-n", "proc:::lwp-create { @c = count(); } proc:::signal-send { @s[args[2]] = count(); }", "-c", os.path.join(TMP, "tracee_events") + " signals 3"],
                       capture_output=True, text=True, env=env, cwd="/", timeout=60)
    check(r.returncode == 0 and "other processes are not traced" in r.stderr and re.search(r"^ +10 +15$", r.stdout, re.M), "an ordinary user", r)
    r = subprocess.run(nobody + mine + ["-q", "-x", "engine=inproc", "-n", "proc:::lwp-create { @c = count(); }", "-c", os.path.join(TMP, "tracee_events") + " threads 30"],
                       capture_output=True, text=True, env=env, cwd="/", timeout=60)
    check(r.returncode == 0 and re.search(r"^ +30$", r.stdout, re.M), "threads, of an ordinary user", r)
done()
