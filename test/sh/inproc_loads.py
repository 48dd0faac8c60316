#!/usr/bin/env python3
# Libraries that a process loads and drops while it is traced from inside: their probes fire from the first call on, at whatever
# address the library is, as often as in the kernel's engine; the program's output is its own, and nothing is left in it.
# serial
import random

from live import *

SOURCE = os.path.abspath("test/tracee/kinds.c")
KINDS = os.path.join(BUILD, "test", "tracee_kinds")
r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())
if not shutil.which("cc"):
    skip("no C compiler")
os.chdir(TMP)
open("reload.c", "w").write("""
static volatile unsigned long n;
__attribute__((constructor)) static void made(void) { n = n * 3 + 1; }
__attribute__((noinline)) unsigned long inner(unsigned long x) { return (x ^ x >> 7) * 31 + 5; }
unsigned long reload(unsigned long x) { return inner(x) + x; }
""")
check(sh("cc -O1 -g -fPIC -shared -o libreload.so reload.c").returncode == 0, "the library")
LIB = TMP + "/libreload.so"
os.environ["LD_LIBRARY_PATH"] = TMP
FUNCS = "pid$target:libreload.so:reload:entry,pid$target:libreload.so:inner:entry,pid$target:libreload.so:made:entry { @[probefunc, probename] = count(); } "
PROGRAM = FUNCS + "pid$target:libreload.so:reload:return,pid$target:libreload.so:inner:return { @[probefunc, probename] = count(); }"
COMMAND = shlex.join([KINDS, "reload", "60", LIB])
want = sh(COMMAND).stdout
counts = {("inner", "entry"): 3000, ("inner", "return"): 3000, ("made", "entry"): 60, ("reload", "entry"): 3000, ("reload", "return"): 3000}


def table(r):
    return {tuple(line.split()[:-1]): int(line.split()[-1]) for line in r.out.splitlines() if re.match(r"  \w+ +\w+ +\d+$", line)}


def inside(program, *more, **kw):
    return descry("-q", "-x", "engine=inproc", *more, "-n", program, **kw)


# from its start: every call, the constructor's of the first load too
r = inside(PROGRAM, c=COMMAND)
check(r.rc == 0 and want in r.out and table(r) == counts, "every call of sixty loads", r)
k = descry("-q", "-x", "engine=kernel", "-n", PROGRAM, c=COMMAND)
if k.rc == 0:
    check(table(k) == table(r), "as the kernel counts", k, r)
r = inside(FUNCS + "pid$target:libreload.so:inner:entry { @s[ustack(2)] = count(); self->in = arg0; } "
           "pid$target:libreload.so:inner:return /self->in != arg1/ { @c = count(); self->in = 0; }", c=COMMAND)
check(r.rc == 0 and want in r.out and "libreload.so`reload" in r.out and "\n  3000\n" in re.sub(r" +(\d+)\n", r"  \1\n", r.out), "stacks, variables", r)
r = descry("-x", "engine=inproc", "-x", "report", "-n", FUNCS, c=shlex.join([KINDS, "plain", "3"]))
check(r.rc == 0 and "patched jump, when its file is loaded" in r.out + r.err, "what never came is said", r)

# in the middle of it, again and again; the same with a tracer that is killed
for rounds in 400, 3000:
    t = subprocess.Popen([KINDS, "reload", str(rounds), LIB], stdout=subprocess.PIPE)
    n = tries = 0
    while t.poll() is None and tries < 12:
        tries += 1
        s = start("-q", "-x", "engine=inproc", "-n", PROGRAM + " tick-%dms { exit(0); }" % random.choice((30, 120)), "-p", str(t.pid))
        if tries % 3 == 0:
            time.sleep(random.random() * 0.3)
            s[1].kill()
            s[1].communicate()
            continue
        r = finish(s, 30)
        check(r.rc == 0 or t.poll() is not None, "attached", r)
        n += sum(table(r).values())
    left = lambda: [line for line in open("/proc/%d/maps" % t.pid) if "/memfd:descry" in line]
    limit = time.monotonic() + 30
    try:
        while left() and time.monotonic() < limit:
            time.sleep(0.05)
        check(not left(), "left in it", left())
    except OSError:
        pass
    out = t.communicate(timeout=120)[0].decode()
    check(t.returncode == 0 and out == sh(shlex.join([KINDS, "reload", str(rounds), LIB])).stdout, "its output", out, t.returncode)
    if n > 1000:
        break
check(n > 1000, "calls seen in the middle", n)

# where the dynamic linker does not report libraries, mappings are polled: the first calls are missed. (musl keeps its
# libraries.)
if shutil.which("musl-gcc") and sh("musl-gcc -w -O2 -pthread -o musl %s && musl-gcc -O1 -fPIC -shared -o libmusl.so reload.c" % SOURCE).returncode == 0:
    command = shlex.join([TMP + "/musl", "reload", "300", TMP + "/libmusl.so"])
    r = inside("pid$target:libmusl.so:reload:entry { @[probefunc, probename] = count(); }", c=command)
    check(r.rc == 0 and sh(command).stdout in r.out and 5000 < sum(table(r).values()) <= 15000, "musl", r)
done()
