#!/usr/bin/env python3
# Programs that filter their system calls (seccomp(2)), traced from inside: filters that end them at anything unexpected, before an
# attach, after it, in one thread, in a child. They print and end as they do untraced, and each call is counted; or descry
# prints the reason.
# serial
from live import *

T = os.path.join(BUILD, "test", "tracee_seccomp")
N = 3000
ALL = ("pid$target:a.out:work:entry { @n[execname] = count(); @t = min(timestamp); @u[ustack(5)] = count(); @s[copyinstr(arg0)] = count(); "
       "@i[pid == tid] = count(); @f[probefunc] = count(); } ERROR { @e = count(); } tick-5ms { printf(\"on\\n\"); }")
r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())
HERE = os.getcwd()
os.chdir(TMP)
ROOT = os.geteuid() == 0
descry_kernel = finish(start("-q", "-x", "engine=kernel", "-n", "BEGIN { exit(0); }")).rc == 0


def untraced(argv):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return p.returncode, p.stdout


def left_in(pid):
    """Returns descry's mappings in it."""
    try:
        return [line for line in open("/proc/%d/maps" % pid) if "/memfd:descry" in line]
    except OSError:
        return []


def counts(r, name):
    return r.aggs(name)


def check_all(r, n, what, names=None):
    names = names or ["tracee_seccomp"]
    check(r.rc == 0, what, "exit code", r)
    got = r.aggs("n")
    check(set(got) == set(names) and sum(got.values()) == n, what, "calls by name", n, got, r)
    # the tables of a process come a moment after it does
    whole = [k for k in r.aggs("u") if "too new for its unwind tables" not in k]
    check(sum(r.aggs("u").values()) == n and whole and all(len(json.loads(k)) >= 3 for k in whole), what, "stacks", n, r)
    # in a handler for SIGSEGV, where it is blocked, memory is not read without a system call
    faults = sum(r.aggs("e").values()) if "handler" in what else 0
    check(r.aggs("s") == {"some text": n - faults}, what, "text", r)
    check(sum(r.aggs("i").values()) == n - faults, what, "ids", n, r)
    check(not re.search("skipped|dropped", r.err), what, "drops", r)


def wait_for(what, condition, secs=30):
    end = time.monotonic() + secs
    while not condition():
        if time.monotonic() > end:
            check(False, "waited for", what)
            return False
        time.sleep(0.01)
    return True


def with_command(when, how, n, *options):
    """descry starts it: the filter comes after the attach."""
    want = untraced([T, when, how, str(N)])
    names = ["tracee_seccomp", "another"] if when == "name" else None
    r = finish(start("-q", "--json", "-x", "engine=inproc", *options, "-n", ALL, c="%s %s %s %d" % (T, when, how, N)))
    check(want[1].decode() == "".join(line + "\n" for line in r.out.splitlines() if not line.startswith("{")), when, how, "its output", want, r)
    check_all(r, n, "-c %s %s %s" % (when, how, " ".join(options)), names)


class Running:
    """It runs, and waits at a gate."""

    def __init__(self, when, how, prefix=(), program=T):
        self.when, self.how = when, how
        self.want = untraced([program, when, how, str(N)])
        self.gate = os.path.join(TMP, "gate")
        self.open(0)
        os.chmod(self.gate, 0o644)
        self.p = subprocess.Popen(list(prefix) + [program, when, how, str(N), self.gate], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self.p.pid
        atexit.register(self.p.kill)
        name = os.path.basename(program)[:15]
        wait_for("its program", lambda: self.p.poll() is not None or open("/proc/%d/comm" % self.pid).read().strip() == name)
        if when not in ("after", "thread", "tsync", "child"):
            self.filtered()
        else:
            wait_for("its gate", lambda: self.p.poll() is not None or self.gate in open("/proc/%d/maps" % self.pid).read())

    def open(self, value):
        with open(self.gate, "r+b" if value else "wb") as f:
            f.write(bytes([value]))

    def filtered(self):
        wait_for("its filter", lambda: self.p.poll() is not None or re.search(r"^Seccomp:\s+[12]", open("/proc/%d/status" % self.pid).read(), re.M))

    def traced(self, started, out):
        """Its text is patched, and probes fire, since ticks do."""
        over = lambda: self.p.poll() is not None or started[1].poll() is not None
        wait_for("the attach", lambda: over() or (os.path.exists(out) and "on" in open(out).read()))

    def end(self, *what):
        """It ends as it does untraced."""
        out, err = self.p.communicate(timeout=60)
        check((self.p.returncode, out) == self.want, self.when, self.how, "ends as untraced", self.want, self.p.returncode, out, err, *what)


def patched(pid):
    """Is its function work() not as in its file?"""
    try:
        maps = open("/proc/%d/maps" % pid).read()
        first = next(line.split() for line in maps.splitlines() if "tracee_seccomp" in line)
        with open("/proc/%d/mem" % pid, "rb") as f:
            f.seek(int(first[0].split("-")[0], 16) + WORK)
            return f.read(len(BYTES)) != BYTES
    except (OSError, StopIteration):
        return False


def output():
    out = os.path.join(TMP, "out")
    if os.path.exists(out):
        os.unlink(out)
    return out


def with_pid(when, how, n, *options, engine="inproc"):
    run = Running(when, how)
    out = output()
    s = start("-q", "--json", *(["-x", "engine=" + engine] if engine else []), "-x", "report", "-o", out, *options, "-n", ALL, "-p", str(run.pid))
    run.traced(s, out)
    run.open(1)
    run.end()
    r = finish(s)
    r.out = open(out).read()
    check_all(r, n, "-p %s %s %s" % (when, how, " ".join(options)), ["tracee_seccomp", "another"] if when == "name" else None)
    return r


def refused(run, *args, why="seccomp", prefix=()):
    argv = list(prefix) + list(args) + ["-p", str(run.pid)]
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, cwd="/")
    check(p.returncode == 1 and why in p.stderr and not left_in(run.pid), "refused, with the reason", argv, p)
    run.open(2)
    run.end(p)


symbol = next(line.split() for line in sh("nm %s" % T).stdout.splitlines() if line.endswith(" T work"))
WORK = int(symbol[0], 16)
with open(T, "rb") as f: # the first segment that is executed is mapped where it lies in the file, as far as this program goes
    f.seek(WORK)
    BYTES = f.read(8)

# after the attach
for how in ("kill", "trap", "errno", "strict", "service"):
    with_command("before", how, N)
    with_command("after", how, 2 * N)
    with_command("thread", how, 2 * N)
    with_command("child", how, N)
    with_command("child", how, 2 * N, "-x", "follow")
    if how != "strict":
        with_command("tsync", how, 8 * N)
        with_command("inherit", how, N)
        with_command("inherit", how, 2 * N, "-x", "follow")
        with_command("handler", how, 2 * N)
        with_command("alt", how, 12 * N)
        with_command("name", how, 2 * N)

# a call that the filter permits is counted as before
r = descry("-q", "--json", "-x", "engine=inproc", "-n", "syscall::write:entry,syscall::write:return { @[probename] = count(); }", c="%s after kill 10" % T)
check(r.aggs() == {"entry": 1, "return": 1}, "system calls under a filter", r)
# impossible cases are reported
r = descry("-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { @ = max(vtimestamp); }", c="%s after kill 100000" % T)
check("vtimestamp" in r.err and "seccomp" in r.err, "vtimestamp under a filter", r)

if ROOT:
    # before the attach: chosen, and as the kernel's
    for how in ("kill", "trap", "errno", "strict", "service"):
        with_pid("before", how, N)
    for when, n in (("crash", N), ("handler", 2 * N), ("alt", 12 * N), ("name", 2 * N), ("inherit", N), ("thread", 2 * N), ("tsync", 8 * N), ("child", N)):
        with_pid(when, "kill", n)
    with_pid("inherit", "kill", 2 * N, "-x", "follow")
    if descry_kernel:
        for how in ("kill", "strict"):
            r = with_pid("before", how, N, engine=None)
            check('"engine":"kernel"' in r.out, "the kernel's engine is taken", r)
    # needs system calls
    for d in ("@ = max(vtimestamp);", "raise(10);", "copyout(\"x\", arg0, 1);"):
        refused(Running("before", "kill"), DESCRY, "-q", "-w", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { %s }" % d)
    # taken out while it is filtered: by the tracer, by its watchdog when it is killed
    for how in ("kill", "strict"):
        for when in ("before", "after"):
            for sig in (signal.SIGINT, signal.SIGKILL):
                run = Running(when, how)
                out = output()
                s = start("-q", "-x", "engine=inproc", "-o", out, "-n", ALL, "-p", str(run.pid))
                run.traced(s, out)
                run.open(1)
                if when == "after":
                    run.filtered()
                s[1].send_signal(sig)
                r = finish(s)
                wait_for("nothing left", lambda: run.p.poll() is not None or not left_in(run.pid))
                check(r.rc == (0 if sig == signal.SIGINT else -9), "it ends", r)
                run.open(2)
                run.end(r)

# as an ordinary user
if ROOT and shutil.which("setpriv"):
    os.chmod(TMP, 0o777)
    mine, theirs = shutil.copy(DESCRY, TMP), shutil.copy(T, TMP + "/tracee_seccomp")
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    for how in ("kill", "errno", "strict"):
        refused(Running("before", how, user, theirs), mine, "-q", "-x", "engine=inproc", "-n", ALL, prefix=user)
    # a filter that comes later: text is restored, the rest is reported, and root removes it
    run = Running("after", "kill", user, theirs)
    s = subprocess.Popen(user + [mine, "-q", "-x", "engine=inproc", "-o", output(), "-n", ALL, "-p", str(run.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
    run.traced((None, s), os.path.join(TMP, "out"))
    run.open(1)
    run.filtered()
    s.send_signal(signal.SIGINT)
    out, err = s.communicate(timeout=60)
    check(s.returncode == 1 and "seccomp" in err and "heal %d" % run.pid in err, "what is left is said", s.returncode, out, err)
    check(not patched(run.pid) and left_in(run.pid), "its text is as it was")
    p = subprocess.run(user + [mine, "heal", str(run.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
    check(p.returncode == 1 and "seccomp" in p.stderr, "heal as the user", p)
    p = subprocess.run([DESCRY, "heal", str(run.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(p.returncode == 0 and not left_in(run.pid), "heal as root", p)
    run.open(2)
    run.end()

# without a C library's copy of the thread's id: one thread works, a process with a filter is refused
SOURCE = "test/tracee/seccomp.c"
if sh("cc -w -O2 -static -pthread -o %s/tracee_seccomp_static %s" % (TMP, os.path.join(HERE, SOURCE))).returncode == 0:
    T = TMP + "/tracee_seccomp_static"
    r = descry("-q", "--json", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { @ = count(); }", c="%s after kill %d" % (T, N))
    check(r.aggs() == {(): 2 * N}, "a static program", r)
    if ROOT:
        refused(Running("before", "kill", program=T), DESCRY, "-q", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { @ = count(); }")
done()
