#!/usr/bin/env python3
# A traced process that attacks its tracer. Root traces, the process is another user's, and a third user has one that is not
# concerned. tracee/hostile.c describes each attack. This test checks that the attacks fail: root runs none of its code, none of
# root's memory is written or read by it, descry does not end early, reports nothing twice, and does not touch other processes.
# serial
import array
import select
import struct
import threading
from live import *

HOSTILE, HEIR = (os.path.join(BUILD, "test", "tracee_" + name) for name in ("hostile", "heir"))
TARGET_UID, VICTIM_UID = 60001, 60002
OUTPUT_MAX, KEPT = 64 << 20, 4 << 20 # bytes
SECS = 20
if os.geteuid() != 0 or not shutil.which("setpriv"):
    skip("not root: cannot run a process as another user")
os.chmod(TMP, 0o755)
shutil.copy(HOSTILE, TMP)
HOSTILE = os.path.join(TMP, "tracee_hostile")
os.chmod(HOSTILE, 0o755)


def as_user(uid, *argv, **more):
    return subprocess.Popen(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--inh-caps=-all", "--"] + list(argv),
                            cwd="/", **more)


def maps(pid):
    """[(lo, hi, permissions, offset, name)]"""
    rows = []
    for line in open("/proc/%d/maps" % pid):
        f = line.split(None, 5)
        lo, hi = (int(a, 16) for a in f[0].split("-"))
        rows.append((lo, hi, f[1], int(f[2], 16), f[5].strip() if len(f) > 5 else ""))
    return rows


def is_shared(name):
    return name.startswith("/memfd:descry-") or name.startswith("/memfd:") and "descry" in name


def read_at(pid, at, n):
    with open("/proc/%d/mem" % pid, "rb", 0) as f:
        f.seek(at)
        return f.read(n)


def own_ranges(pid):
    """Returns the places of the tracer's own code, data, heap and stacks, without its shared memory."""
    return [(lo, hi) for lo, hi, perm, _, name in maps(pid) if not is_shared(name) and not 0x400000000000 <= lo < 0x500000000000
            and name != "[vsyscall]" and perm[0] == "r"]


targets = []


class Target:
    """A hostile process, and the tracer that root has put on it."""

    def __init__(self, attack, d=None, *options, owned="/nonexistent/file", uid=TARGET_UID, program=HOSTILE):
        targets.append(self)
        self.text, self.tracer, self.out, self.written = "", None, b"", 0
        self.proc = (as_user(uid, program, attack, owned, stdin=subprocess.PIPE, stdout=subprocess.PIPE) if uid else
                     subprocess.Popen([program, attack, owned], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        self.wait("ready")
        if d:
            self.trace(["-q", "-x", "engine=inproc", *options, "-n", d, "-p", str(self.proc.pid)])

    def trace(self, options):
        self.err = tempfile.TemporaryFile(dir=TMP)
        self.tracer = subprocess.Popen([DESCRY, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.err)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.wait("attached")

    def read(self):
        """Reads the tracer's output: its beginning, and its length."""
        while True:
            more = os.read(self.tracer.stdout.fileno(), 1 << 16)
            if not more:
                break
            self.written += len(more)
            self.out += more if len(self.out) < KEPT else b""
            if self.written > OUTPUT_MAX:
                self.tracer.kill()

    def wait(self, word, secs=SECS, flags=0):
        """Waits until the process has printed it."""
        end = time.monotonic() + secs
        while not re.search(word, self.text, flags) and time.monotonic() < end:
            if select.select([self.proc.stdout], [], [], 0.05)[0]:
                more = os.read(self.proc.stdout.fileno(), 65536).decode()
                self.text += more
                if not more:
                    break
        return check(re.search(word, self.text, flags), "the hostile process did not come to %r" % word, self.text[-500:], self.errors())

    def attack(self, witness=0, victim=0, rounds=1000):
        """Begins, and waits until so many rounds, a power of 10, are over."""
        self.proc.stdin.write(b"%x %d\n" % (witness, victim))
        self.proc.stdin.flush()
        self.wait(r"rounds %d\n" % rounds)

    def errors(self):
        if not self.tracer:
            return ""
        self.err.seek(0)
        return self.err.read(3000).decode(errors="replace")

    def ticks(self, n):
        """Waits until the tracer's own clauses have run so often during the attack."""
        end = time.monotonic() + SECS
        while self.written < n and time.monotonic() < end and self.tracer.poll() is None:
            time.sleep(0.01)
        check(self.written >= n, "the tracer's clauses do not run", self.errors())

    def end_tracer(self, how=signal.SIGINT):
        if self.tracer.poll() is None:
            self.tracer.send_signal(how)
        try:
            rc = self.tracer.wait(SECS)
        except subprocess.TimeoutExpired:
            self.tracer.kill()
            self.tracer.wait()
            rc = "it did not end"
        self.reader.join()
        return rc

    def end(self):
        """The report of the attack."""
        self.proc.stdin.close()
        if self.proc.poll() is None:
            self.wait("end 0|forged")
        try:
            self.proc.wait(SECS)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        while select.select([self.proc.stdout], [], [], 0)[0]: # what it said when it was gone already
            more = os.read(self.proc.stdout.fileno(), 65536).decode()
            self.text += more
            if not more:
                break
        return numbers(self.text)


def alone(what, fn, *args):
    """One attack; the next ones are made also when it ends in an exception: the tracer or the process has died."""
    try:
        fn(*args)
    except (OSError, AttributeError, StopIteration) as e:
        check(False, "%s: %r" % (what, e))
    for t in targets:
        for p in t.proc, t.tracer:
            if p and p.poll() is None:
                p.kill()
                p.wait()
    targets.clear()


def slack(pid):
    """Returns an unused address behind the tracer's own variables, which is 0 until an attack writes there."""
    exe = os.readlink("/proc/%d/exe" % pid)
    rows = maps(pid)
    for i, (lo, hi, perm, _, name) in enumerate(rows):
        if name == exe and perm.startswith("rw"):
            end = rows[i + 1][1] if rows[i + 1][0] == hi and not rows[i + 1][4] and rows[i + 1][2].startswith("rw") else hi
            if not any(read_at(pid, end - 512, 512)):
                return end - 512
    return 0


TICK = 'tick-1ms { printf("t\\n"); }'


def code(owned):
    """Returns the memory with the code that the tracer runs."""
    t = Target("code", 'BEGIN { n = 1; a[n] = 2; } tick-1ms { a[n]++; @[a[n], n] = count(); printf("t\\n"); } pid$target:a.out:work:entry { @w = count(); } '
               'END { printa(@); }', owned=owned)
    t.attack(rounds=10)
    t.ticks(100)
    rc = t.end_tracer()
    said = t.end()
    check(rc == 0 and not os.path.exists(owned), "root runs what the process has written: exit %s" % rc, t.errors())
    check(said.get("opened") == 0 and said.get("written") == 0, "code was opened or written", said)


for i in range(3):
    alone("code", code, os.path.join(TMP, "owned%d" % i))

# Clauses that use all that the tracer's clauses write to.
BUSY = ('BEGIN { g = 1; s = "hello"; a["x", 1] = 5; t[3] = "abc"; self->x = 3; self->y = t[3]; } '
        'tick-1ms { a[s, g]++; t[g] = strjoin(t[3], s); self->y = t[g]; self->x++; g = (g + 1) % 64; @c[s, g] = count(); @q = quantize(g); '
        '@m[t[g]] = max(self->x); @u[ustack(3)] = count(); } '
        'pid$target:a.out:work:entry { @w[pid, arg0] = count(); } END { printa(@c); printa(@q); a[s, g] = 0; t[g] = 0; self->y = 0; } ')


def words(attack):
    """Descriptors and words: where the tracer's clauses write."""
    t = Target(attack, BUSY + TICK)
    at = slack(t.tracer.pid)
    check(at, "no unused memory of the tracer's was found")
    t.attack(witness=at)
    t.ticks(400)
    spoiled = t.tracer.poll() is None and any(read_at(t.tracer.pid, at, 512))
    rc = t.end_tracer()
    said = t.end()
    check(rc == 0, "%s: descry ended with %s" % (attack, rc), t.errors())
    check(not spoiled, "%s: the tracer's own memory was written" % attack)
    check(not said.get("facts"), "%s: descriptors were written" % attack, said)


for attack in "maps", "words", "scribble":
    alone(attack, words, attack)


def stuck():
    """Threads that claim to be in a probe for ever do not delay the tracer, one after the other, when it reads aggregations."""
    t = Target("stuck", 'tick-10ms { @ = count(); printa(@); clear(@); printf("t\\n"); } pid$target:a.out:work:entry { @w = count(); }')
    t.attack(rounds=10)
    t.ticks(600)
    rc = t.end_tracer()
    t.end()
    check(rc == 0, "stuck: descry ended with %s" % rc, t.errors())


alone("stuck", stuck)


def rings(attack):
    """descry prints no record twice, and no record that was not written."""
    t = Target(attack, 'pid$target:a.out:work:entry { printf("%d %s\\n", arg0, "said"); } tick-1ms { }')
    t.attack(rounds=10000)
    rc = t.end_tracer()
    t.end()
    lines = re.findall(r"^(\d+) said$", t.out.decode(errors="replace"), re.M)
    check(rc == 0, "%s: descry ended with %s" % (attack, rc), t.errors())
    if attack == "records": # what it writes there itself may be told, too
        check(t.written < OUTPUT_MAX / 2, "records: %d bytes" % t.written)
        return
    few = [line for line in lines if int(line) < 100]
    check(len(set(few)) > 90 and len(few) <= len(set(few)) + 1, "%s: %d lines for 100 firings, %d bytes in all" % (attack, len(few), t.written))
    check(t.written < 1 << 20, "%s: %d bytes" % (attack, t.written))


for attack in "tail", "head", "records":
    alone(attack, rings, attack)


def claim():
    """Records of clauses that only the tracer runs: descry prints nothing and does nothing for them."""
    t = Target("claim", 'tick-1h { printf("forged\\n"); exit(3); } BEGIN, END { printf("own\\n"); } pid$target:a.out:work:entry { printf("work\\n"); }')
    t.attack(rounds=10000)
    check(t.tracer.poll() is None, "exit() was done for the process", t.errors())
    rc = t.end_tracer()
    t.end()
    lines = set(t.out.decode().split("\n"))
    check(rc == 0 and "work" in lines and "forged" not in lines and t.out.count(b"own") == 2, "claim: descry ended with %s" % rc, t.out[:500], t.errors())
    check("drop" in t.errors(), "what was left out is not said", t.errors())


alone("claim", claim)


def actions():
    """system() and freopen() with arguments that the process could choose are refused, for a stranger's process."""
    t = Target("none")
    for d, good in (
        ('pid$target:a.out:work:entry { system("true"); }', False),
        ('pid$target:a.out:work:entry { freopen("/dev/null"); }', False),
        ('BEGIN { s = "x"; } tick-1ms { system("echo %s", s); } pid$target:a.out:work:entry { @ = count(); }', False),
        ('BEGIN { system("echo %s", "ran"); exit(0); } pid$target:a.out:work:entry { @ = count(); }', False),
        ('BEGIN { system("echo ran"); exit(0); } pid$target:a.out:work:entry { @ = count(); }', True),
    ):
        r = descry("-q", "-w", "-x", "engine=inproc", "-n", d, "-p", str(t.proc.pid), rc=0 if good else 1)
        check(good == ("ran" in r.out) and good == ("could choose the command of system()" not in r.err), "system() and freopen()", r)
    t.proc.kill()
    t.proc.wait()


def contained(*setting):
    """A process of root's with fewer rights than root: it cannot use system()."""
    own = subprocess.Popen([*setting, HOSTILE, "none"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    own.stdout.readline()
    r = descry("-q", "-w", "-x", "engine=inproc", "-n", 'BEGIN { system("echo %s", "ran"); exit(0); } pid$target:a.out:work:entry { }', "-p", str(own.pid), rc=1)
    check("ran" not in r.out and "could choose the command of system()" in r.err, " ".join(setting), r)
    r = subprocess.run([DESCRY, "-x", "report", "-n", "BEGIN { exit(0); } pid$target:a.out:work:entry { @ = count(); }", "-p", str(own.pid)],
                       capture_output=True, timeout=60)
    check(b"engine inproc" not in r.stderr, "traced from inside unasked: " + " ".join(setting), r)
    own.kill()
    own.wait()


alone("actions", actions)
alone("empty capabilities", contained, "setpriv", "--bounding-set=-all", "--inh-caps=-all", "--")
alone("mount name space", contained, "unshare", "--mount", "--")


# --- privileges that change ---
def children(pid):
    return [int(p) for p in open("/proc/%d/task/%d/children" % (pid, pid)).read().split()]


def inside(t):
    return any(is_shared(name) for _, _, _, _, name in maps(t.proc.pid))


def caps():
    """A forked child shares the process's memory. A program with capabilities that the process executes then must not share it."""
    if not shutil.which("setcap"):
        return print("setcap is not here: programs with capabilities are not tested")
    program = os.path.join(TMP, "with_caps")
    shutil.copy(HOSTILE, program)
    if sh("setcap cap_net_raw+ep " + program).returncode:
        return print("files here cannot have capabilities")
    t = Target("caps", "pid$target:libc.so.6:getpid:entry { @ = count(); } " + TICK, owned=program)
    t.proc.stdin.write(b"0 0\n")
    t.proc.stdin.flush()
    t.wait("ready.*ready", flags=re.S)
    written = t.written
    while t.written < written + 400 and not inside(t) and t.tracer.poll() is None: # 200 rounds of the tracer's
        time.sleep(0.001)
    shares = inside(t)
    t.end_tracer()
    check("not traced together" in t.errors() and not shares, "a program with capabilities shares memory with one that has none: %s" % shares, t.errors())


alone("caps", caps)


def privileged():
    """With privileges, descry runs system() for no records: a process may give up its rights, write records and end before descry sees it."""
    own = subprocess.Popen([HOSTILE, "none"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    own.stdout.readline()
    for d, good in (
        ('pid$target:a.out:work:entry { system("true"); }', False),
        ('pid$target:a.out:work:return { freopen("/dev/null"); }', False),
        ('syscall::read:entry { system("true"); }', False),
        ('profile-97 { system("true"); }', False),
        ('BEGIN { s = "x"; } tick-1ms { system("echo %s", s); } pid$target:a.out:work:entry { @ = count(); }', False),
        ('BEGIN { system("echo ran"); exit(0); } pid$target:a.out:work:entry { @ = count(); }', True),
    ):
        r = descry("-q", "-w", "-x", "engine=inproc", "-n", d, "-p", str(own.pid), rc=0 if good else 1)
        check(good == ("ran" in r.out) and good == ("root or with capabilities" not in r.err) and (good or "engine=kernel" in r.err), "root's descry, root's process", r)
    own.kill()
    own.wait()
    # without -x engine=inproc, descry does not trace it from inside
    r = subprocess.run([DESCRY, "-q", "-w", "-n", 'pid$target:a.out:work:entry { system("echo ran"); exit(0); }', "-c", MIX], capture_output=True, timeout=60)
    check((r.returncode == 0 and b"ran" in r.stdout) or (r.returncode == 1 and b"in-process" not in r.stderr), "the kernel engine does it", r.stdout, r.stderr)


MIX = os.path.join(BUILD, "test", "tracee_inside") + " mix 300"
alone("privileged", privileged)


def told_by(uid, name):
    """A file that system() of this user's descry writes to."""
    path = os.path.join(TMP, name)
    with open(path, "w"):
        os.chown(path, uid, uid)
    return path


def until(what):
    end = time.monotonic() + SECS
    while not what() and time.monotonic() < end:
        time.sleep(0.001)
    return what()


def say(t, line=b"\n"):
    t.proc.stdin.write(line)
    t.proc.stdin.flush()


def text_of(path):
    with open(path) as f:
        return f.read()


def changes(attack, mine):
    """Processes of an ordinary user's, who traces them: one gives up rights, or what tells the tracer that it is attached. system() is
    not for its records from then on, nor for those of another one, which it could write."""
    told = told_by(TARGET_UID, "told-" + attack)
    ts = [Target(attack)] + ([Target("limit")] if not mine else [])
    d = ", ".join("pid%d:a.out:work:entry" % t.proc.pid for t in ts) + ' { system("echo %%d >>%s", arg0); } ' % told + TICK
    first, last = ts[0], ts[-1]
    first.err = tempfile.TemporaryFile(dir=TMP)
    program = os.path.join(TMP, "descry-user")
    shutil.copy(DESCRY, program)
    os.chmod(program, 0o755)
    argv = [program, "-q", "-w", "-x", "engine=inproc", "-n", d] + [w for t in ts for w in ("-p", str(t.proc.pid))]
    first.tracer = as_user(TARGET_UID, *argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=first.err,
                           env=dict(os.environ, HOME=TMP, XDG_CACHE_HOME=os.path.join(TMP, "none")))
    first.reader = threading.Thread(target=first.read, daemon=True)
    first.reader.start()
    for t in ts:
        t.wait("attached")
        say(t, b"0 0\n")
    check(until(lambda: text_of(told).count("1\n") == len(ts)), "system() is done for one's own processes", text_of(told), first.errors())
    say(first)
    first.wait("changed")
    first.ticks(first.written + 400) # 200 rounds of the tracer's
    if last is not first:
        say(last, b"\n\n")
    say(first)
    for t in ts:
        t.wait("fired")
    first.ticks(first.written + 400)
    rc = first.end_tracer()
    check(rc == 0 and "2" not in text_of(told), "system() was done for a process that had changed: exit %s" % rc, text_of(told), first.errors())
    check("no longer runs system() and freopen()" in first.errors(), "what is not done any more is not said", first.errors())
    for t in ts:
        t.proc.stdin.close()


scope = "/proc/sys/kernel/yama/ptrace_scope"
if os.path.exists(scope) and text_of(scope).strip() != "0":
    print("Yama lets no ordinary user trace running processes here: what they give up is not tested")
else:
    alone("limit", changes, "limit", True)
    alone("unmap", changes, "unmap", False)


# --- a child of root's daemon, which is another user's by now (tracee/heir.c). It has none of its parent's memory, unless children are
# followed: then that of its parent's threads ---
FOLLOW = "-x", "follow"


def heir(attack, d, *options, line=b"0 0\n"):
    """(descry's exit, the parent's output, the tracer's output)"""
    t = Target(attack, d, *options, uid=0, program=HEIR)
    say(t, line)
    t.wait("steering")
    t.ticks(t.written + 2000)
    rc = t.end_tracer()
    said = t.end()
    check(rc == 0 and t.proc.returncode == 0, "%s: the parent ended with %s, descry with %s" % (attack, t.proc.returncode, rc), said, t.errors())
    check(said.get("shares") == ("follow" in options), "%s: does a child have its parent's memory?" % attack, said, options)
    return said, t.out.decode(errors="replace")


ENTRY = "pid$target:a.out:work:entry "
# These have private memory where children are followed: nothing of another variable is in them.
OWN = "a thread's variable", "a thread's variable, copied"
ADDRESSES = (
    ("a variable", "uint64_t p; ", "/!p/ { p = arg0; }", "copyinstr(p)"),
    ("an associative array", "uint64_t a[int]; ", "/!a[1]/ { a[1] = arg0; }", "copyinstr(a[1])"),
    ("a thread's variable", "self uint64_t p; ", "/!self->p/ { self->p = arg0; }", "copyinstr(self->p)"),
    ("a thread's variable, copied", "self uint64_t p; self uint64_t q; ", "/!self->p/ { self->p = arg0; } " + ENTRY + "{ self->q = self->p; }", "copyinstr(self->q)"),
    ("a variable by a thread's", "uint64_t p; self uint64_t q; ", "/!p/ { p = arg0; } " + ENTRY + "{ self->q = p; }", "copyinstr(self->q)"),
    ("an array by two of a thread's", "uint64_t a[int]; self uint64_t q; self uint64_t r; ", "/!a[1]/ { a[1] = arg0; } " + ENTRY + "{ self->r = self->q; self->q = a[1]; }",
     "copyinstr(self->r)"),
    ("a variable by a thread's text", "uint64_t p; self string t; ", "/!p/ { p = arg0; } " + ENTRY + "{ self->t = lltostr(p); }", "copyinstr(strtoll(self->t))"),
    ("curpsinfo", "", "{ }", "curpsinfo->pr_psargs"),
    ("curthread", "", "{ }", "stringof(copyinstr((uint64_t)curthread->mm->arg_start))"),
)


def choose(what, types, first, read):
    """The child chooses no address at which its parent's memory is read."""
    _, out = heir("choose", types + "pid$target:a.out:work:entry %s pid$target:a.out:work:return { printf(\"read %%s\\n\", %s); } ERROR { } " % (first, read) + TICK)
    check("read secret" not in out, "%s: a child chose what descry reads of its parent" % what)
    check(re.search("read (harmless|.*heir)", out), "%s: nothing is read" % what, out[:500])


def overwrite():
    """The child chooses no address at which its parent's memory is written."""
    said, _ = heir("choose", 'uint64_t p; pid$target:a.out:work:entry /!p/ { p = arg0; } pid$target:a.out:work:return /p/ { this->b = (char *)alloca(8); '
                   'bcopy("harmles", this->b, 8); copyout(this->b, p, 8); } ERROR { } ' + TICK, "-w")
    check(said.get("spoiled") == 0, "a child chose what descry writes to its parent", said)


def follow_choose(what, types, first, read):
    """Where children are followed they have variables in common: no address is taken from those. Stand-ins are each process's own, and so
    are threads' variables that take nothing from others."""
    d = types + "pid$target:a.out:work:entry %s pid$target:a.out:work:return { printf(\"read %%s\\n\", %s); } ERROR { } " % (first, read) + TICK
    if first == "{ }" or what in OWN:
        _, out = heir("choose", d, *FOLLOW)
        check("read secret" not in out, "%s, followed: a child chose what descry reads of its parent" % what)
        return check(re.search("read (harmless|.*heir)", out), "%s: nothing is read" % what, out[:500])
    t = Target("choose", uid=0, program=HEIR)
    r = descry("-q", "-x", "engine=inproc", *FOLLOW, "-n", d, "-p", str(t.proc.pid), rc=1)
    check("could choose addresses" in r.err and not inside(t), "%s: it is followed" % what, r)
    return None


def aside():
    """What reads the kernel's memory reads nothing of the process, where it could be led."""
    said, out = heir("choose", "pid$target:a.out:work:entry { printf(\"read %s\\n\", stringof((char *)arg0)); } ERROR { printf(\"no\\n\"); } " + TICK, *FOLLOW)
    check("no\n" in out and "read" not in out, "bpf_probe_read_kernel() reads the process's memory", out[:300], said)


def together_choose(what, types, first, read):
    """Nor from variables that processes have in common because they are named together: one of them may give up rights. Their
    stand-ins are each process's own."""
    d = types + "pid%d:a.out:work:entry %s pid%d:a.out:work:return { printf(\"read %%s\\n\", %s); } pid%d:a.out:work:entry { } ERROR { } " + TICK
    giver, taker = Target("give", uid=0, program=HEIR), Target("take", uid=0, program=HEIR)
    first = first.replace("pid$target", "pid%d" % giver.proc.pid)
    d = d % (giver.proc.pid, first, giver.proc.pid, read, taker.proc.pid)
    argv = ["-q", "-x", "engine=inproc", "-n", d, "-p", str(giver.proc.pid), "-p", str(taker.proc.pid)]
    if first != "{ }" and what not in OWN:
        r = descry(*argv, rc=1)
        return check("could choose addresses" in r.err and not inside(giver), "%s: they are traced together" % what, r)
    giver.trace(argv)
    taker.wait("attached")
    say(giver, b"0 0\n")
    said = giver.wait("at .*\n")
    say(taker, (said.group(0) if said else "at 0\n").encode())
    taker.wait("steering")
    giver.ticks(giver.written + 2000)
    rc = giver.end_tracer()
    giver.end()
    check(rc == 0 and "shares 1" in taker.text, "%s: the processes are not traced together: %s" % (what, rc), taker.text, giver.errors())
    out = giver.out.decode(errors="replace")
    check("read secret" not in out, "%s: a process named together with another chose what descry reads of that one" % what)
    check(re.search("read (harmless|.*heir)", out), "%s: nothing is read" % what, out[:500])


for row in ADDRESSES:
    alone("choose", choose, *row)
    alone("choose, followed", follow_choose, *row)
    alone("choose, together", together_choose, *row)
alone("overwrite", overwrite)
alone("aside", aside)


def steer(*options):
    """The child chooses none of the addresses that its parent writes to."""
    said, _ = heir("steer", 'pid$target:a.out:work:entry { @[arg0 & 63, pid] = count(); @q = quantize(arg0); @c = count(); '
                   '@m[arg0 & 7] = max(arg0); } ' + TICK, *options)
    check(said.get("spoiled") == 0, "a child chose what its parent writes to", said)


def interrupt(*options):
    """The child clears the mark that a probe is firing, and signals come: no second probe runs over the first."""
    said, _ = heir("interrupt", 'pid$target:a.out:work:entry { @[ustack(8), arg0 & 7] = count(); @s[strjoin(execname, "x")] = count(); } ' + TICK, *options)
    check(said.get("signals", 0) > 100, "the parent was not interrupted", said)


def aim(*options):
    """The child puts another process's number in place of its parent's: that process gets no signal, and its memory is not read."""
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        check(until(lambda: any(name == "[heap]" for *_, name in maps(stranger.pid))), "the stranger does not begin")
        at = next(lo for lo, *_, name in maps(stranger.pid) if name == "[heap]")
        said, out = heir("aim", 'pid$target:a.out:work:entry { @ = count(); raise(SIGUSR1); } '
                         'pid$target:a.out:work:entry { printf("read %d\\n", *(uint64_t *)copyin(arg0, 8)); } ERROR { } ' + TICK, "-w", *options,
                         line=b"%x %d\n" % (at, stranger.pid))
        check(stranger.poll() is None, "a stranger was sent a signal: %s" % stranger.poll(), said)
        check("read" not in out, "a stranger's memory was read", said)
        check(said.get("signals", 0) > 100, "raise() does not reach the process itself", said)
    finally:
        stranger.kill()
        stranger.wait()


for follow in (), FOLLOW:
    alone("steer", steer, *follow)
    alone("interrupt", interrupt, *follow)
    alone("aim", aim, *follow)


def execs():
    """It waits until descry has checked it, and executes a setuid program before it is stopped: descry changes nothing in that program."""
    program = os.path.join(TMP, "setuid")
    shutil.copy(HOSTILE, program)
    os.chmod(program, 0o4755)
    t = Target("execs", owned=program)
    t.wait("forged")
    t.err = tempfile.TemporaryFile(dir=TMP)
    t.tracer = subprocess.Popen([DESCRY, "-q", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { @ = count(); }", "-p", str(t.proc.pid)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=t.err)
    end = time.monotonic() + SECS
    while not children(t.tracer.pid) and t.tracer.poll() is None and time.monotonic() < end: # the watchdog begins behind the first look
        time.sleep(0.001)
    t.proc.stdin.write(b"\n")
    t.proc.stdin.flush()
    t.wait("ready.*ready", flags=re.S)
    check(os.stat("/proc/%d/status" % t.proc.pid).st_uid == 0, "the program is not setuid here")
    while t.tracer.poll() is None and not inside(t) and time.monotonic() < end:
        pass
    shares = inside(t)
    t.tracer.send_signal(signal.SIGINT)
    rc = t.tracer.wait(SECS)
    check(not shares and rc == 1 and "not traced together" in t.errors(), "memory was put into a setuid program: %s" % shares, t.errors())


alone("execs", execs)


# --- strangers ---
class Watch(threading.Thread):
    """Watches all the time whether a process is being traced."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.looks, self.tracers, self.over = pid, 0, set(), False
        self.start()

    def run(self):
        while not self.over:
            with open("/proc/%d/status" % self.pid) as f:
                self.tracers.add(re.search(r"TracerPid:\t(\d+)", f.read()).group(1))
            self.looks += 1

    def end(self):
        self.over = True
        self.join()
        return self.looks, self.tracers - {"0"}


def words_of_shared(pid):
    """(address, 64-bit words) of each range of the tracer's memory files that has pages."""
    for lo, hi, _, offset, name in maps(pid):
        if not name.startswith("/memfd:descry-"):
            continue
        fd = os.open("/proc/%d/map_files/%x-%x" % (pid, lo, hi), os.O_RDONLY)
        at, end = offset, offset + hi - lo
        while at < end:
            try:
                at = os.lseek(fd, at, os.SEEK_DATA)
            except OSError:
                break
            stop = min(os.lseek(fd, at, os.SEEK_HOLE), end)
            for part in range(at, stop, 1 << 20):
                words = array.array("Q")
                words.frombytes(os.pread(fd, min(stop - part, 1 << 20), part))
                yield "%s+0x%x" % (name, part), words
            at = stop
        os.close(fd)


victim = as_user(VICTIM_UID, "sleep", "1000")
while open("/proc/%d/comm" % victim.pid).read() != "sleep\n" or not re.search(r"clock_nanosleep|hrtimer", open("/proc/%d/wchan" % victim.pid).read()):
    time.sleep(0.01)
before = maps(victim.pid)
text = next((lo, hi) for lo, hi, perm, _, name in before if "x" in perm and name.endswith("sleep"))
victims_code = read_at(victim.pid, text[0], text[1] - text[0])
victims_arguments = int(open("/proc/%d/stat" % victim.pid).read().rsplit(")", 1)[1].split()[45])


def unharmed(what, watch):
    looks, tracers = watch.end()
    check(not tracers, "%s: the stranger was traced by %s" % (what, ", ".join(tracers)))
    check(looks > 100, "%s: the stranger was looked at only %d times" % (what, looks))
    check(victim.poll() is None and maps(victim.pid) == before and read_at(victim.pid, text[0], len(victims_code)) == victims_code,
          "%s: the stranger was changed" % what)


def stranger(how):
    """Numbers of a process that is not the attacker's, in everything that asks, or lists processes; also after the tracer's death."""
    watch = Watch(victim.pid)
    t = Target("stranger", 'proc:::exec { @e = count(); } proc:::signal-send { @s[args[1]->pr_fname] = count(); } '
               'pid$target:a.out:work:entry { @ = count(); } ' + TICK)
    watchdogs = children(t.tracer.pid)
    t.attack(victim=victim.pid, rounds=100)
    t.ticks(400)
    check(not any(victims_arguments in words for _, words in words_of_shared(t.tracer.pid)), "the process is told where a stranger's arguments lie")
    rc = t.end_tracer(how)
    check(rc == (0 if how == signal.SIGINT else -how), "stranger: descry ended with %s" % rc, t.errors())
    end = time.monotonic() + SECS
    while any(os.path.exists("/proc/%d" % p) for p in watchdogs) and time.monotonic() < end:
        time.sleep(0.01)
    for p in watchdogs:
        if not check(not os.path.exists("/proc/%d" % p), "the watchdog goes on for ever"):
            os.kill(p, signal.SIGKILL)
    left = [name for *_, name in maps(t.proc.pid) if is_shared(name)]
    check(not left, "stranger: left in it", how.name, left)
    t.end()
    unharmed("stranger, " + how.name, watch)


for how in signal.SIGINT, signal.SIGKILL:
    alone("stranger", stranger, how)


def adopted():
    """The tracer and its watchdog, named as children that the process has forked, are not taken for any: the watchdog keeps its memory,
    and heals the process when the tracer is killed."""
    watch = Watch(victim.pid)
    t = Target("adopt", "pid$target:a.out:work:entry { @ = count(); } " + TICK)
    watchdogs = children(t.tracer.pid)
    t.attack(victim=victim.pid, rounds=100)
    t.ticks(400)
    check(len(watchdogs) == 1 and any(is_shared(name) for *_, name in maps(watchdogs[0])), "adopted: the watchdog's memory was taken out", watchdogs)
    t.end_tracer(signal.SIGKILL)
    end = time.monotonic() + SECS
    while inside(t) and time.monotonic() < end:
        time.sleep(0.01)
    check(not inside(t), "adopted: nobody heals the process")
    t.end()
    unharmed("adopted", watch)


alone("adopted", adopted)


def heal():
    """`descry heal` of a process that has forged all of the area."""
    watch = Watch(victim.pid)
    t = Target("forge")
    t.proc.stdin.write(b"0 %d\n" % victim.pid)
    t.proc.stdin.flush()
    t.wait("forged")
    of_it = os.path.join(TMP, "healer")
    healer = subprocess.Popen(["python3", "-c", "import resource, subprocess, sys; rc = subprocess.call(sys.argv[2:]); "
                               "open(sys.argv[1], 'w').write('%d' % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(rc)",
                               of_it, DESCRY, "heal", str(t.proc.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    healer.objects = None
    r = finish((["descry", "heal", str(t.proc.pid)], healer, time.monotonic()), SECS)
    check(r.rc in (0, 1) and "descry itself" not in r.err, "a forged log", r)
    memory = int(open(of_it).read()) << 10
    check(memory < 60 << 20, "a log of 600,000 records, no stub of which is there, took %d MB" % (memory >> 20))
    check(t.proc.poll() is None, "the forger has died of it", t.proc.poll())
    t.end()
    unharmed("heal", watch)


alone("heal", heal)
victim.kill()
victim.wait()


# --- memory that the process can read, or let the tracer read ---
def told():
    """Words of the shared memory that are addresses of the tracer's."""
    t = Target("none", BUSY + TICK)
    t.attack(rounds=10)
    t.ticks(100)
    ranges, found = own_ranges(t.tracer.pid), set()
    for where, words in words_of_shared(t.tracer.pid):
        for w in set(words):
            if w > 1 << 32 and any(a <= w < b for a, b in ranges):
                found.add("%s+0x%x: 0x%x" % (where, 8 * words.index(w), w))
    check(not found, "addresses of the tracer's stand in memory that the process reads:", *sorted(found)[:5])
    check(t.end_tracer() == 0, "descry ended", t.errors())
    t.end()


alone("told", told)
VARS = 'struct vars { uint64_t mark; uint64_t p; uint64_t v; }; struct vars w; BEGIN { w.mark = 0x4d41524b00007ea1; } '


def peek():
    """A clause of the tracer's that reads at an address that the process can change."""
    t = Target("peek", VARS + "tick-1ms { w.v = *(uint64_t *)copyin(w.p, 8); } ERROR { } " + TICK)
    ranges, exe = own_ranges(t.tracer.pid), os.readlink("/proc/%d/exe" % t.tracer.pid)
    at = next(lo for lo, hi, perm, _, name in maps(t.tracer.pid) if name == exe)
    secret = struct.unpack("<Q", read_at(t.tracer.pid, at, 8))[0]
    t.attack(witness=at, rounds=10)
    t.ticks(400)
    rc = t.end_tracer()
    t.end()
    seen = [int(v, 16) for v in re.findall(r"^seen ([0-9a-f]+)", t.text, re.M)]
    check(rc == 0, "peek: descry ended with %s" % rc, t.errors())
    check(secret not in seen, "the tracer's memory is read for the process")
    check(not [v for v in seen if any(a <= v < b for a, b in ranges)], "the tracer's addresses are read for the process", ["%x" % v for v in seen])


def poke():
    """And one that writes there."""
    t = Target("peek", VARS + "tick-1ms { this->b = (uint64_t *)alloca(8); *this->b = 0x1111111111111111; copyout(this->b, w.p, 8); } ERROR { } " + TICK, "-w")
    at = slack(t.tracer.pid)
    t.attack(witness=at, rounds=10)
    t.ticks(400)
    spoiled = t.tracer.poll() is None and any(read_at(t.tracer.pid, at, 512))
    rc = t.end_tracer()
    t.end()
    check(rc == 0 and not spoiled, "copyout() where the process says: descry ended with %s, its memory is %s" % (rc, "written" if spoiled else "as it was"), t.errors())


alone("peek", peek)
alone("poke", poke)
done()
