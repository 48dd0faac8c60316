#!/usr/bin/env python3
# Root traces another user's process from inside, on a machine whose /proc hides processes (hidepid=2): the tracer does not
# report a third user's process to the traced process, but those of its own user.
from live import *

if os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare"):
    skip("not root: cannot run a process as another user")
if len(sys.argv) == 1:
    # in a mount name space of its own: an instance of /proc of its own, too (Linux 5.8)
    if tuple(int(n) for n in os.uname().release.split(".")[:2]) < (5, 8):
        skip("before Linux 5.8 all mounts of /proc are one")
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, os.path.abspath(__file__), "inside"])


def as_user(uid, *argv, **more):
    return subprocess.Popen(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--inh-caps=-all", "--"] + list(argv),
                            cwd="/", **more)


HOSTILE = os.path.join(TMP, "tracee_hostile")
ROUNDS = 10


def told(uid):
    """Returns true when a process of user 60001 learns of one of user `uid`."""
    victim = as_user(uid, "sleep", "1000")
    asker = as_user(60001, HOSTILE, "ask", "/nonexistent/file", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said = asker.stdout.readline()
    err = tempfile.TemporaryFile("w+", dir=TMP)
    tracer = subprocess.Popen([DESCRY, "-q", "-x", "engine=inproc", "-n", "proc:::signal-send { @ = count(); } pid$target:a.out:work:entry { @w = count(); }",
                               "-p", str(asker.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
    while said and "attached" not in said:
        said = asker.stdout.readline()
    asker.stdin.write("0 %d\n" % victim.pid)
    asker.stdin.flush()
    while said and "rounds %d\n" % ROUNDS not in said:
        said = asker.stdout.readline()
    tracer.send_signal(signal.SIGINT)
    rc = tracer.wait(30)
    asker.stdin.close()
    text = asker.stdout.read()
    asker.wait()
    victim.kill()
    victim.wait()
    err.seek(0)
    check(said and rc == 0 and asker.returncode == 0, "asked", said, rc, asker.returncode, text, err.read())
    return "seen" in text


os.chmod(TMP, 0o755)
shutil.copy(os.path.join(BUILD, "test", "tracee_hostile"), TMP)
os.chmod(HOSTILE, 0o755)
check(told(60002) and told(60001), "/proc shows all processes: all are told of")
if subprocess.run(["mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"], stderr=subprocess.DEVNULL).returncode:
    skip("/proc cannot be mounted here")
check(not told(60002), "/proc hides the others' processes: one was told of")
check(told(60001), "its user's own are told of")
done()
