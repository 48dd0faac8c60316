#!/usr/bin/env python3
# The memory that traced processes and descry share, filled by a process of another user (tracee/hostile.c, attack "fill"): the file has
# a size that nobody exceeds, and what a process has filled is given back when it has ended, while others are still traced.
# serial
import resource
from live import *

HOSTILE, UID, SECS = os.path.join(BUILD, "test", "tracee_hostile"), 60001, 60
MEMORY = os.sysconf("SC_PHYS_PAGES") * resource.getpagesize()
if os.geteuid() != 0 or not shutil.which("setpriv"):
    skip("not root: cannot run a process as another user")
os.chmod(TMP, 0o755)
shutil.copy(HOSTILE, TMP)
HOSTILE = os.path.join(TMP, "tracee_hostile")
os.chmod(HOSTILE, 0o755)


def until(what):
    end = time.monotonic() + SECS
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


def begin(attack, uid=UID):
    argv = [HOSTILE, attack]
    if uid:
        argv = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--inh-caps=-all", "--"] + argv
    p = subprocess.Popen(argv, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    wait(p, "ready")
    return p


def wait(p, line):
    while True:
        got = p.stdout.readline().decode()
        if not check(got, "the process ends before it says %r" % line):
            return
        if got.strip() == line:
            return


def say(p):
    p.stdin.write(b"0 0\n")
    p.stdin.flush()


def end(*processes):
    for p in processes:
        if p.poll() is None:
            p.kill()
        p.wait()


def trace(d, *ps, options=()):
    """The tracer of these processes, and the shared file as it has it mapped."""
    argv = [DESCRY, "-x", "engine=inproc", *options, "-n", d] + [w for p in ps for w in ("-p", str(p.pid))]
    t = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for p in ps:
        wait(p, "attached")
    with open("/proc/%d/maps" % t.pid) as f:
        at = re.search(r"^(\S+) .*/memfd:descry-shared", f.read(), re.M)
    return t, "/proc/%d/map_files/%s" % (t.pid, at.group(1))


def stop(t):
    t.send_signal(signal.SIGINT)
    err = t.communicate(timeout=SECS)[1].decode(errors="replace")
    check(t.returncode == 0, "descry ended with %s" % t.returncode, err)
    return err


def held(file):
    st = os.stat(file)
    return st.st_blocks * 512, st.st_size


COUNT = "pid%d:a.out:work:entry { @[arg0] = count(); }"
# so many tables that all threads' would not fit into a quarter of any machine's memory, and those of some do
MANY = "pid%d:a.out:work:entry { " + " ".join("@a%d[strjoin(execname, \"x\")] = count();" % i for i in range(1 + MEMORY // (64 << 30))) + " }"

# By default: a quarter of the machine's memory where the process is another user's.
p = begin("none")
t, file = trace(MANY % p.pid, p, options=("-x", "aggsize=16m", "-x", "bufsize=1m"))
size = held(file)[1]
err = stop(t)
check(size <= MEMORY / 4, "another user's process can fill %d MB of %d" % (size >> 20, MEMORY >> 20))
check("because of sharedsize" in err, "what is reduced is not said", err)
end(p)

# What is asked for, filled without end.
p = begin("fill")
t, file = trace(COUNT % p.pid, p, options=("-x", "sharedsize=96m"))
say(p)
wait(p, "rounds 10")
had, size = held(file)
check(80 << 20 < had <= size <= 96 << 20, "%d bytes of %d are filled, with sharedsize=96m" % (had, size))
stop(t)
end(p)

# Two processes that share it; one fills all, and ends.
p, other = begin("fill"), begin("none")
t, file = trace(COUNT % p.pid + COUNT % other.pid, p, other, options=("-x", "sharedsize=256m"))
say(p)
say(other)
wait(p, "rounds 10")
had = held(file)[0]
check(had > 160 << 20, "the process fills %d MB only" % (had >> 20))
end(p)
check(until(lambda: held(file)[0] < 64 << 20), "%d MB of %d stay when the process that wrote them has ended" % (held(file)[0] >> 20, had >> 20))
check(other.poll() is None, "the other process has ended too")
stop(t)
end(other)

# Too little for any thread.
p = begin("none")
r = descry("-q", "-x", "engine=inproc", "-x", "sharedsize=1m", "-n", COUNT % p.pid, "-p", str(p.pid), rc=1)
check("sharedsize" in r.err and "engine=kernel" in r.err, "it is not said why", r)
end(p)
done()
