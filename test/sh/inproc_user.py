#!/usr/bin/env python3
# The in-process engine as an ordinary user: no capability, no new privileges. The kernel engine's refusal names what
# works.
# serial
from live import *

if os.geteuid() != 0 or not shutil.which("setpriv"):
    skip("not root: cannot become another user")
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
mine, inside = for_anybody(os.path.join(BUILD, "test", "tracee_inside"))
env = dict(os.environ, XDG_CACHE_HOME=os.path.join(TMP, "none"), HOME=TMP)


def run(*args):
    return subprocess.run(NOBODY + [mine] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd="/", timeout=60)


r = run("-q", "-n", 'pid$target:a.out:text:entry { @[copyinstr(arg0), ustack(1)] = count(); } pid$target:a.out:work:return { @w = count(); }', "-c", inside + " mix 300")
check(r.returncode == 0 and b"twenty-five bytes of text" in r.stdout and b"tracee_inside`text+0x" in r.stdout, "own command", r)
r = run("-q", "-n", "syscall:::entry { @ = count(); } tick-1s { exit(0); }")
check(r.returncode == 1 and b"CAP_BPF" in r.stderr and b"of your own processes (-p, -c) work" in r.stderr, "kernel refused", r)
r = run("-q", "-n", "io:::start { @ = count(); }", "-c", inside + " mix 300")
check(r.returncode == 1 and b"CAP_BPF" in r.stderr, "only the kernel has these", r)
# when the kernel refuses, the probes available from inside are used, and this is reported
r = run("-n", "syscall::write:entry { @ = sum(arg2); }", "-c", "dd if=/dev/zero of=/dev/null bs=100 count=70 status=none")
check(r.returncode == 0 and re.search(rb"^ +7000$", r.stdout, re.M) and b"other processes are not traced" in r.stderr, "system calls from inside", r)
r = run("-q", "-n", "profile-997 { @[ufunc(arg1)] = count(); }", "-c", inside + " mix 20000000")
check(r.returncode == 0 and b"tracee_inside`" in r.stdout, "samples from inside", r)
r = run("profile", "-q", "--folded", "-c", inside + " mix 20000000")
check(r.returncode == 0 and b"tracee_inside;_start;" in r.stdout, "descry profile from inside", r)
other = subprocess.Popen([os.path.join(BUILD, "test", "tracee_inside"), "late", "1000"], stdout=subprocess.DEVNULL)
r = run("-q", "-n", "pid$target:a.out:work:entry { @ = count(); }", "-p", str(other.pid))
check(r.returncode == 1 and b"denied" in r.stderr, "somebody else's process", r)
other.wait()

# The other way round: root and a process of that user, which shares memory with descry only on request.
program = 'pid$target:a.out:work:entry { @ = count(); } tick-100ms { exit(0); }'
theirs = subprocess.Popen(NOBODY + [inside, "mix", "2000000000"], stdout=subprocess.DEVNULL, env=env, cwd="/")
while not open(f"/proc/{theirs.pid}/comm").read().startswith("tracee_inside"):
    time.sleep(0.01)
r = subprocess.run([DESCRY, "-x", "engine=inproc", "-x", "report", "-n", program, "-p", str(theirs.pid)], capture_output=True, timeout=60)
check(r.returncode == 0 and b"engine inproc" in r.stderr, "a stranger's process from inside, as asked", r)
r = subprocess.run([DESCRY, "-x", "report", "-n", program, "-p", str(theirs.pid)], capture_output=True, timeout=60)
if r.returncode == 0:
    check(b"engine kernel" in r.stderr, "a stranger's process by the kernel engine", r)
else:
    check(b"descry traces another user's process from inside only with -x engine=inproc" in r.stderr, "nothing else unasked", r)
theirs.kill()
theirs.wait()
done()
