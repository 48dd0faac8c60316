#!/usr/bin/env python3
# Programs that are executed, traced from inside from their first instruction: chains, threads, children of vfork(2) and
# posix_spawn(3), what privileged programs keep, tracers that are killed meanwhile.
# serial
# timeout: 600
import random
from live import *

EXECS = os.path.join(BUILD, "test", "tracee_execs")
MARK = "pid$target:tracee_execs:execs_mark:entry { @ = count(); @n[arg0] = count(); }"

preload, waits, go = (os.path.join(TMP, name) for name in ("preload", "waits", "go"))
for path in preload, waits, go:
    os.mkfifo(path)


def counts(text):
    return {int(a): int(b) for a, b in re.findall(r"^ +(\d+) +(\d+)$", text, re.M)}


def proc_has(program, file, text):
    """The file in /proc of the process with this command line: does a line match?"""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid) as f:
                if f.read() != "\0".join(program) + "\0":
                    continue
            with open("/proc/%s/%s" % (pid, file)) as f:
                return re.search(text, f.read(), re.M)
        except OSError:
            pass
    return None


def writes(path, text=b""):
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError: # nobody reads yet
        return False
    os.write(fd, text)
    os.close(fd)
    return True


def until(s, *conditions):
    end = time.monotonic() + 20
    for c in conditions:
        while not c() and s[1].poll() is None and time.monotonic() < end:
            time.sleep(0.002)


# every program of a chain, by every way
for args, n in ("chain 20", 21), ("thread 10", 11), ("race 10", 11), ("leader 40", 41), ("fail 30", 2):
    want = sh("%s %s" % (EXECS, args)).stdout
    r = descry("-q", "-x", "engine=inproc", "-n", MARK, c="%s %s" % (EXECS, args))
    check(want.strip() in r.out and "probes were off" not in r.err, "the program's own output", args, r)
    total = sum(counts(r.out).values())
    check(re.search(r"^ +%d$" % n, r.out, re.M) and total == n, args, total, r)

# children in their parent's memory, which are followed; and not
for args in "spawn 12", "vfork 12":
    for follow, n in (['-x', 'follow'], 13), ([], 1):
        r = descry("-q", "-x", "engine=inproc", *follow, "-n", MARK, c="%s %s" % (EXECS, args))
        check("12 good" in r.out and sum(counts(r.out).values()) == n, args, follow, r)

# shells and their commands, as the kernel engine traces them
script = os.path.join(TMP, "script")
with open(script, "w") as f:
    f.write("""for i in 1 2 3 4 5; do /bin/echo $i; done | cat
(for i in 6 7; do /bin/echo $i; done; true)
exec env sh -c 'echo last; exec env echo end'
""")
d = "pid$target:libc.so.6:write:entry { @[execname] = sum(arg2); }"
for follow in ["-x", "follow"], []:
    out = {e: descry("-q", "-x", "engine=" + e, *follow, "-n", d, c="bash " + script) for e in ("kernel", "inproc")}
    check(out["kernel"].lines() == out["inproc"].lines() and "echo" in out["inproc"].out, "engines differ", follow, out["kernel"], out["inproc"])

# system calls of executed programs
d = "syscall::write:entry /pid == $target/ { @[execname] = count(); }"
r = descry("-q", "-x", "engine=inproc", "-n", d, c="env env env echo x")
check(re.search(r"^ +echo +1$", r.out, re.M), "system calls", r)

# a running process
SH = "sh", "-c", "read x <%s; exec env env sh -c 'echo a; echo b'" % go
p = subprocess.Popen(SH, stdout=subprocess.PIPE, text=True)
while not proc_has(SH, "syscall", r"^257 ") and p.poll() is None:
    time.sleep(0.002)
s = start("-q", "-x", "engine=inproc", "-p", str(p.pid), "-n", "pid$target:libc.so.6:write:entry { @[execname, arg2] = count(); }")
until(s, lambda: proc_has(SH, "maps", "/memfd:descry"), lambda: writes(go, b"\n"))
r = finish(s)
writes(go, b"\n") # it may wait still
check(p.communicate()[0] == "a\nb\n" and re.search(r"^ +sh +2 +2$", r.out, re.M), "a running process", r)

# attempts that fail, and programs that are slow to start, cost the program nothing but a moment
fifo = os.path.join(TMP, "fifo")
os.mkfifo(fifo)
for args, follow, want in ("waits", [], "0 interrupted"), ("stuck", [], "in time"), ("slow " + fifo, ["-x", "follow"], "in time"):
    r = descry("-q", "-x", "engine=inproc", *follow, "-n", MARK, c="%s %s" % (EXECS, args))
    check(want in r.out and r.rc == 0, args, r)

# A program that the tracer has let go on because it was slow to start is traced when it has; so is one whose call of execve(2) the
# tracer came too late to.
CAT = "cat", waits
reads = "pid$target:libc.so.6:read:entry { @[execname] = count(); }"
traced_cat = lambda: proc_has(CAT, "maps", "/memfd:descry")
s = start("-q", "-x", "engine=inproc", "-x", "follow", "-n", reads, c="sh -c 'LD_PRELOAD=%s cat %s; :'" % (preload, waits))
until(s, lambda: proc_has(CAT, "status", r"^TracerPid:\s+0"), lambda: writes(preload), traced_cat, lambda: writes(waits))
r = finish(s)
check(any(k == ("cat",) for k, n in r.table()), "slow to start", r)
SH = "sh", "-c", "read x <%s; cat %s; :" % (go, waits)
s = start("-q", "-x", "engine=inproc", "-x", "follow", "-n", reads, c=shlex.join(SH))
until(s, lambda: proc_has(SH, "maps", "/memfd:descry"), lambda: proc_has(SH, "syscall", r"^257 "))
s[1].send_signal(signal.SIGSTOP)
until(s, lambda: writes(go, b"\n"), lambda: proc_has(CAT, "syscall", r"^257 "))
s[1].send_signal(signal.SIGCONT)
until(s, traced_cat, lambda: writes(waits))
r = finish(s)
check(any(k == ("cat",) for k, n in r.table()), "the tracer was late", r)

# a library that comes while an attempt is followed is looked at soon after it has failed
lib = os.path.join(TMP, "libreload.so")
with open(os.path.join(TMP, "reload.c"), "w") as f:
    f.write("unsigned long reload(unsigned long x) { return (x ^ x >> 7) * 31 + 5; }")
if shutil.which("cc") and sh("cc -O1 -fPIC -shared -o %s %s/reload.c" % (lib, TMP)).returncode == 0:
    os.environ["LD_LIBRARY_PATH"] = TMP
    for i in range(3):
        r = descry("-q", "-x", "engine=inproc", "-n", "pid$target:libreload.so:reload:entry { @ = count(); }", c="%s loads %s" % (EXECS, lib))
        m = re.search(r"^ +(\d+)$", r.out, re.M)
        check("called" in r.out and m and 100 < int(m[1]) <= 200, "a library that came meanwhile", r)
    del os.environ["LD_LIBRARY_PATH"]

# a process that claims a thread's number in another name space is not taken for the thread
r = descry("-q", "-x", "engine=inproc", "-x", "follow", "-n", "pid$target:libc.so.6:write:entry { @[execname] = count(); }", c="unshare --pid --fork --kill-child sh -c 'sh -c \"echo a; true\"; /bin/echo b; true'")
if "unshare" not in r.err:
    check(re.search(r"^ +sh +1$", r.out, re.M) and re.search(r"^ +echo +1$", r.out, re.M), "another pid name space", r)

# another C library, and none: they run on, untraced, and this is reported; their own probes fire where threads can be
# identified
for cc in ["cc", "-static"], ["musl-gcc"]:
    prog = os.path.join(TMP, "execs-" + cc[0])
    if not shutil.which(cc[0]) or sh("%s -O1 -pthread -o %s test/tracee/execs.c" % (" ".join(cc), prog)).returncode:
        print(" ".join(cc) + " makes no program here: not tried")
        continue
    for args in "chain 5", "thread 5", "vfork 5":
        want = sh("%s %s" % (prog, args)).stdout.strip()
        r = descry("-q", "-x", "engine=inproc", "-n", MARK.replace("tracee_execs", os.path.basename(prog)), c="%s %s" % (prog, args))
        check(want in r.out and r.rc == 0 and sum(counts(r.out).values()) == (1 if "vfork" in args else 6), cc, args, r)
    r = descry("-x", "engine=inproc", "-n", "pid$target:libc.so.6:write:entry { @ = count(); }", c="sh -c 'exec %s end'" % prog)
    check(r.rc == 0 and re.search(r"^0$", r.out, re.M) and "its threads cannot be distinguished" in r.err, "another C library", cc, r)

# tracers that are killed at any time: the program gets to its end
random.seed(11)
for i in range(40):
    args = ("chain 60", "race 30", "thread 30", "spawn 20", "vfork 20")[i % 5]
    p = subprocess.Popen([EXECS, *args.split()], stdout=subprocess.PIPE, text=True)
    t = subprocess.Popen([DESCRY, "-q", "-x", "engine=inproc", *(["-x", "follow"] if i % 2 else []), "-p", str(p.pid), "-n", MARK.replace("entry {", "entry,pid$target:libc.so.6:execve:entry {")],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(random.random() * 0.25)
    t.kill()
    t.wait()
    out = p.communicate(timeout=60)[0]
    want = "0\n" * 20 + "20 good\n" if i % 5 > 2 else "0\n"
    check(p.returncode == 0 and sorted(out.split()) == sorted(want.split()), "it lives", args, out, p.returncode)

# An ordinary user's tracer takes no privilege from executed programs.
if shutil.which("setpriv"):
    os.chmod(TMP, 0o755)
    for f in DESCRY, EXECS:
        shutil.copy(f, TMP)
        os.chmod(os.path.join(TMP, os.path.basename(f)), 0o755)
    suid = os.path.join(TMP, "suid")
    shutil.copy(EXECS, suid)
    os.chmod(suid, 0o4755)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    env = dict(os.environ, XDG_CACHE_HOME=os.path.join(TMP, "none"), HOME=TMP)
    mine, execs = os.path.join(TMP, os.path.basename(DESCRY)), os.path.join(TMP, "tracee_execs")
    bad = os.path.join(TMP, "bad")
    with open(bad, "wb") as f:
        f.write(b"\x7fELF and nothing else")
    os.chmod(bad, 0o755)
    for run in execs + " run " + suid, execs + " run " + bad + " " + suid, "sh -c 'exec %s end'" % suid, execs + " run " + execs:
        want = subprocess.run(nobody + shlex.split(run), capture_output=True, text=True, env=env, cwd="/").stdout
        r = subprocess.run(nobody + [mine, "-x", "engine=inproc", "-n", "pid$target:libc.so.6:write:entry { @[execname] = count(); }", "-c", run],
                           capture_output=True, text=True, env=env, cwd="/", timeout=60)
        check(want and r.returncode == 0 and r.stdout.startswith(want), "privileges", run, want, r)
        check(("tracee_execs" in r.stdout) == (not suid in run), "an ordinary user's own program is followed", run, r)
    os.chmod(fifo, 0o777)
    r = subprocess.run(nobody + [mine, "-q", "-x", "engine=inproc", "-n", "pid$target:tracee_execs:execs_mark:entry { @ = count(); }", "-c", execs + " run " + fifo],
                       capture_output=True, text=True, env=env, cwd="/", timeout=60)
    check(re.search(r"^ +1$", r.stdout, re.M), "a path that is no program", r)
    if subprocess.run(nobody + [suid, "end"], capture_output=True, text=True, cwd="/").stdout != "0\n":
        print("this file system gives no privileges: only tried that nothing changes")
done()
