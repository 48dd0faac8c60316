#!/usr/bin/env python3
# Targets of every kind traced from inside, from their start and in the middle: odd executables, small stacks, filters and limits,
# name spaces, threads that come and go, libraries loaded again, programs executed. The target's output is the same as untraced.
# descry refuses targets that it cannot trace, with the reason, and leaves nothing in them.
# serial
# timeout: 600
from live import *

KINDS = os.path.join(BUILD, "test", "tracee_kinds")
SOURCE = os.path.abspath("test/tracee/kinds.c")
PROGRAM = ("pid$target:a.out:work:entry,pid$target:a.out:text:entry { @[probefunc] = count(); @s = max(strlen(copyinstr(arg0))); @u[ustack(5)] = count(); } "
           "pid$target:a.out:text:return { @r = count(); } ERROR { @e = count(); }")
r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())
os.chdir(TMP)


def untraced(argv):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=200)
    return p.returncode, p.stdout.decode()


def fires(text):
    return sum(int(n) for n in re.findall(r"^  (?:work|text) +(\d+)$", text, re.M))


def from_start(argv, d=PROGRAM, least=100, rc=0):
    want = untraced(argv)
    out = os.path.join(TMP, "out")
    if os.path.exists(out):
        os.unlink(out)
    r = finish(start("-q", "-x", "engine=inproc", "-o", out, "-n", d, c=shlex.join(argv)))
    text = open(out).read() if os.path.exists(out) else ""
    check(r.rc == rc and r.out == want[1], "from its start", argv, want, r)
    check(fires(text) >= least, "firings", argv, fires(text), r)
    return fires(text), r


def in_the_middle(argv, d=PROGRAM, least=100, refused=None, prefix=[], pid_of=None, by=[], env=None):
    """Traced a while and let go, or refused: with nothing left in it, and the end it has untraced. A slow machine: longer."""
    for more in 1, 4, 16:
        run = argv[:2] + [str(int(argv[2]) * more)] + argv[3:]
        r = once_in_the_middle(run, d, least, refused, prefix, pid_of, by, env, more)
        if r:
            return r


def once_in_the_middle(argv, d, least, refused, prefix, pid_of, by, env, more):
    command = argv
    want = untraced(by + argv)
    t = subprocess.Popen(by + prefix + argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    atexit.register(t.kill)
    time.sleep(0.15)
    pid = pid_of(t.pid) if pid_of else t.pid
    out = os.path.join(TMP, "out")
    if os.path.exists(out):
        os.unlink(out)
    argv = ["-q", "-x", "engine=inproc", "-o", out, "-n", d + " tick-%dms { exit(0); }" % (150 * more), "-p", str(pid)]
    if by:
        begun = time.monotonic()
        p = subprocess.run(by + [os.path.join(TMP, os.path.basename(DESCRY))] + argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        r = Run(by + argv, p.returncode, p.stdout.decode(), p.stderr.decode(), time.monotonic() - begun)
    else:
        r = finish(start(*argv, env=env))
    left = []
    try:
        left = [line for line in open("/proc/%d/maps" % pid) if "/memfd:descry" in line]
        left += [x for x in (os.readlink("/proc/%d/fd/%s" % (pid, f)) for f in os.listdir("/proc/%d/fd" % pid)) if x.startswith(("/memfd:", "socket:"))]
    except OSError:
        pass
    check(not left, "left in it", argv, left, r)
    ended = t.poll() is not None
    o, e = t.communicate(timeout=200)
    argv = command
    check((t.returncode, o.decode()) == want, "in the middle", argv, want, t.returncode, o, e, r)
    text = open(out).read() if os.path.exists(out) else ""
    too_early = r.rc and ended and not (refused and refused in r.err)  # it has ended before it was traced
    if more < 16 and (too_early or not refused and not r.rc and fires(text) < least):
        return None
    if refused:
        check(r.rc == 1 and refused in r.err, "refused, and why", argv, r)
    else:
        check(r.rc == 0 and fires(text) >= least, "firings", argv, fires(text), r)
    return r


# executables
builds = [("static", ["-static"], "cc"), ("static-pie", ["-static-pie"], "cc"), ("no-pie", ["-no-pie", "-fno-pie"], "cc"),
          ("cet", ["-fcf-protection=full", "-Wl,-z,ibt,-z,shstk"], "cc"), ("together", ["-Wl,-z,noseparate-code"], "cc"),
          ("lazy", ["-Wl,-z,lazy", "-fplt"], "cc"), ("O3", ["-O3", "-fomit-frame-pointer"], "cc"), ("O0", ["-O0"], "cc"), ("musl", [], "musl-gcc")]
for name, flags, cc in builds:
    if shutil.which(cc) and sh("%s -w -O2 -g -pthread %s -o %s %s -ldl" % (cc, " ".join(flags), name, SOURCE)).returncode == 0:
        from_start([TMP + "/" + name, "plain", "50"])
        from_start([TMP + "/" + name, "stacks", "20"])
        in_the_middle([TMP + "/" + name, "plain", "400"])
        if name in ("static", "musl"):
            from_start([TMP + "/" + name, "churn", "40"])
if shutil.which("strip") and shutil.which("cc"):
    sh("strip -o stripped %s" % KINDS)
    from_start([TMP + "/stripped", "stacks", "10"], "pid$target:libc.so.6::entry { @[\"work\"] = count(); } pid$target:libc.so.6::return { @r = count(); }")

# stacks
n, r = from_start([KINDS, "stacks", "40"])
check(n == 40 * (16 * 200 + 10 * 3) * 3, "every call of small stacks and handlers", n)
n, r = from_start([KINDS, "coroutines", "100"])
check(n == 4000 * 3, "every call of coroutines", n)
in_the_middle([KINDS, "stacks", "400"])
in_the_middle([KINDS, "coroutines", "500"])

# filters: process_vm_readv, mmap of executable memory, socketpair, recvmsg, rt_sigaction, rt_sigprocmask, membarrier, madvise. Root
# suspends them while it attaches; the programs of D live with them.
for args in ("310", "9 4", "53", "47", "13", "14", "324", "28"):
    in_the_middle([KINDS, "filter", "400"] + args.split(), refused=None if os.geteuid() == 0 else "seccomp")
# limits: none of descry's files fits, the first does, all do
for mb, why in (("8", "cannot map"), ("300", "cannot map"), ("40000", None)):
    in_the_middle([KINDS, "limit", "500", mb], refused=why)

# threads: more than there are slots; firings of the others are counted
want = 20 * 20 * 600 * 3
n, r = from_start([KINDS, "many", "20", "600"])
m = re.search(r"(\d+) firings skipped", r.err)
check(m and n < want, "threads without a slot are counted", n, want, r)
n, r = from_start([KINDS, "many", "20", "600"], "pid$target:a.out:work:entry { @[\"work\"] = count(); }")
skipped = sum(int(k) for k in re.findall(r"(\d+) firings skipped", r.err)) # said as it happens
check(skipped and n + skipped == want * 2 // 3, "firings and drops are all calls", n, want, r)
n, r = from_start([KINDS, "churn", "60"])
check(n == 60 * 20 * 5 * 3, "every call of short-lived threads", n)
in_the_middle([KINDS, "churn", "1500"])

# processes
n, r = from_start([KINDS, "spawn", "60"])
check(n >= 60 * 20 * 3, "spawning", n)
in_the_middle([KINDS, "spawn", "400"])
from_start([KINDS, "exec", "6"])
n, r = from_start([KINDS, "jit", "100"], least=5000)
in_the_middle([KINDS, "jit", "500"])

# a library that is unloaded and loaded again: its program is unchanged; the report when its probes are off
open("reload.c", "w").write("unsigned long reload(unsigned long x) { return (x ^ x >> 7) * 31 + 5; }\nunsigned long more(unsigned long x) { return reload(x) + x; }\n")
if shutil.which("cc") and sh("cc -O1 -g -fPIC -shared -o libreload.so reload.c").returncode == 0:
    in_the_middle([KINDS, "reload", "400", TMP + "/libreload.so"])
    in_the_middle([KINDS, "reload", "400", TMP + "/libreload.so"], env={"LD_LIBRARY_PATH": TMP}, d="pid$target:libreload.so::entry { @[\"work\"] = count(); } pid$target:libreload.so::return { @r = count(); }", least=0)

# name spaces, from outside
if os.geteuid() == 0 and sh("unshare -pfmn --mount-proc true").returncode == 0:
    def inner(pid):
        return int(open("/proc/%d/task/%d/children" % (pid, pid)).read().split()[0])
    in_the_middle([KINDS, "plain", "400"], prefix=["unshare", "-pfmn", "--mount-proc"], pid_of=inner)
    in_the_middle([KINDS, "stacks", "300"], prefix=["unshare", "-pfmn", "--mount-proc"], pid_of=inner)
    if sh("unshare -Ur true").returncode == 0:
        in_the_middle([KINDS, "plain", "400"], prefix=["unshare", "-Ur"])

# setuid: as an ordinary user
if os.geteuid() == 0 and shutil.which("setpriv"):
    os.chmod(TMP, 0o755)
    mine, su = shutil.copy(DESCRY, TMP), shutil.copy(KINDS, TMP)
    os.chmod(su, 0o4755)
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    os.chmod(TMP, 0o777)
    plain = shutil.copy(KINDS, TMP + "/plain")
    in_the_middle([plain, "filter", "400", "53"], refused="seccomp", by=user)
    t = subprocess.Popen(user + [su, "plain", "300"], stdout=subprocess.PIPE)
    time.sleep(0.2)
    p = subprocess.run(user + [mine, "-q", "-x", "engine=inproc", "-n", PROGRAM, "-p", str(t.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, cwd="/")
    check(p.returncode == 1 and p.stderr, "setuid is refused", p)
    check(t.communicate()[0].decode() == untraced([su, "plain", "300"])[1], "and untouched")

# two tracers at a time: the second finds other bytes, or another place, and both detach
t = subprocess.Popen([KINDS, "plain", "900"], stdout=subprocess.PIPE)
a = tracing("-q", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { @ = count(); }", "-p", str(t.pid))
b = finish(start("-q", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry,pid$target:a.out:text:entry { @[probefunc] = count(); @s = max(strlen(copyinstr(arg0))); } ERROR { } tick-200ms { exit(0); }", "-p", str(t.pid)))
while descendants(a[1].pid):  # system(3), by which tracing() sees the beginning, ignores SIGINT
    time.sleep(0.01)
a[1].send_signal(signal.SIGINT)
a = finish(a)
check(a.rc == 0 and re.search(r"[1-9]\d", a.out), "the first of two", a)
check(b.rc in (0, 1) and (b.rc == 0 or b.err), "the second of two", b)
check("/memfd:descry" not in open("/proc/%d/maps" % t.pid).read(), "both are gone")
check(t.communicate(timeout=60)[0].decode() == untraced([KINDS, "plain", "900"])[1] and t.returncode == 0, "traced twice")

# killed at every moment of an attach: an error that reports it, or an end; never a wait
for i in range(12):
    t = subprocess.Popen([KINDS, "many", "1000000", "20"], stdout=subprocess.DEVNULL)
    s = start("-q", "-x", "engine=inproc", "-n", PROGRAM, "-p", str(t.pid))
    time.sleep(0.03 * i)
    t.kill()
    t.wait()
    r = finish(s, 60)
    check(r.rc in (0, 1) and (r.rc == 0 or r.err), "it died while we attached", i, r)
done()
