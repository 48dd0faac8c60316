# The in-process engine as an ordinary user: no capability, no new privileges; the kernel engine's refusal says what works.
# serial
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=test/sh exec python3 - <<'END'
from live import *

if os.geteuid() != 0 or not shutil.which("setpriv"):
    skip("not root: cannot become another user")
os.chmod(TMP, 0o755)
for f in DESCRY, os.path.join(BUILD, "test", "tracee_inside"):
    shutil.copy(f, TMP)
    os.chmod(os.path.join(TMP, os.path.basename(f)), 0o755)
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
mine, inside = os.path.join(TMP, os.path.basename(DESCRY)), os.path.join(TMP, "tracee_inside")
env = dict(os.environ, XDG_CACHE_HOME=os.path.join(TMP, "none"), HOME=TMP)


def run(*args):
    return subprocess.run(NOBODY + [mine] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd="/", timeout=60)


r = run("-q", "-n", 'pid$target:a.out:text:entry { @[copyinstr(arg0), ustack(1)] = count(); } pid$target:a.out:work:return { @w = count(); }', "-c", inside + " mix 300")
check(r.returncode == 0 and b"twenty-five bytes of text" in r.stdout and b"tracee_inside`text+0x" in r.stdout, "own command", r)
r = run("-q", "-n", "syscall:::entry { @ = count(); }", "-c", inside + " mix 300")
check(r.returncode == 1 and b"CAP_BPF" in r.stderr and b"pid and USDT probes of your own processes" in r.stderr, "kernel refused", r)
other = subprocess.Popen([os.path.join(BUILD, "test", "tracee_inside"), "late", "1000"], stdout=subprocess.DEVNULL)
r = run("-q", "-n", "pid$target:a.out:work:entry { @ = count(); }", "-p", str(other.pid))
check(r.returncode == 1 and b"denied" in r.stderr, "somebody else's process", r)
other.wait()
done()
END
