#!/usr/bin/env python3
# The in-process engine's report, and the state that it leaves: modes and reasons of probes, the engine's name; long
# sites; followed children are restored too; counts are exact however often they are read.
# serial
from live import *

INSIDE = os.path.join(BUILD, "test", "tracee_inside")
r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())

# -l -v and the report agree
PROBES = "pid$target:a.out:branches:entry,pid$target:a.out:branches:return,pid$target:a.out:text:return"
r = descry("-l", "-v", "-n", PROBES, c=INSIDE + " work 1")
said = re.findall(r"In-process: (.*)", r.out)
check(len(said) == 3 and said[0] == said[2] == "patched jump" and said[1].startswith("refused: a branch leads"), "-l -v", r)
r = descry("-q", "-x", "engine=inproc", "-x", "report", "-n", PROBES + " { @ = count(); } tick-1s {}", c=INSIDE + " mix 300")
check(re.search(r"^run: .*, engine inproc, 4 probes", r.err, re.M), "the engine's name", r)
check(re.search(r":branches:entry patched jump fired 300", r.err) and
      re.search(r":branches:return " + re.escape(said[1]) + " fired 0", r.err) and
      re.search(r":text:return patched jump fired 300", r.err) and "tick-1s own thread" in r.err, "modes", r)
r = descry("--json", "-x", "engine=inproc", "-n", PROBES + " { @ = count(); }", c=INSIDE + " mix 300")
report = [x for x in r.json() if x["type"] == "report"][0]
check(report["engine"] == "inproc" and [p["mode"] for p in report["probes"]] == said, "the same in JSON", r)

# requested but not available; the defaults are not mentioned
D = "BEGIN { @a[pid] = count(); exit(0); }"
r = descry("-x", "engine=inproc", "-x", "bufsize=64m", "-x", "aggsize=64m", "-n", D)
check("buffer data reduced to 16777216 bytes for each thread" in r.err and
      "agg_a reduced to 65536 keys for each thread" in r.err, "notes of what was reduced", r)
r = descry("-x", "engine=inproc", "-n", D)
check("reduced" not in r.err, "none of the defaults", r)

# every instruction of a function: sites are joined up to their limit, and all of it is taken back
proc = subprocess.Popen([INSIDE, "mix", "3000000000"], stdout=subprocess.PIPE)
r = descry("-q", "-x", "engine=inproc", "-n", "pid$target:a.out:branches: { @[probename] = count(); } tick-300ms { exit(0); }",
           "-p", str(proc.pid))
check(len(r.table()) >= 8, "all instructions fire", r)
time.sleep(0.1)
check(proc.poll() is None and "/memfd:descry" not in open("/proc/%d/maps" % proc.pid).read(), "and nothing is left")
proc.kill()
proc.wait()

# threads that are in a probe whenever the aggregation is taken; work(1, 2) is a signal handler's, which is skipped in a probe
r = descry("-q", "-x", "engine=inproc", "-n", "pid$target:a.out:thread:entry { self->t = 1; } "
           "pid$target:a.out:work:entry /self->t && !(arg0 == 1 && arg1 == 2)/ { @ = count(); } tick-2ms { printa(\"%@d \", @); } END { printa(\"last %@d\\n\", @); }",
           c=INSIDE + " threads 20000")
check("0 wrong" in r.out and re.search(r"last (\d+)", r.out).group(1) == str(20 * 4 * 20000), "an exact count", r)

# a program that executes itself at the same addresses: the patch of the second run is removed
if shutil.which("setarch"):
    want = sh(INSIDE + " late 1000").stdout
    proc = subprocess.Popen(["setarch", "-R", INSIDE, "exec", "300000000"], stdout=subprocess.PIPE)
    time.sleep(0.05)
    run = start("-q", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { @ = count(); }", "-p", str(proc.pid))
    end = time.time() + 20
    while "late" not in open("/proc/%d/cmdline" % proc.pid).read() and time.time() < end:
        time.sleep(0.005)
    time.sleep(0.25)
    check(open("/proc/%d/maps" % proc.pid).read().count("descry-island"), "the second program is traced")
    os.kill(run[1].pid, signal.SIGINT)
    r = finish(run)
    out = proc.communicate()[0].decode()
    check(r.rc == 0 and proc.returncode == 0 and out.strip() == want.strip(), "it goes on untraced", out, want, r)

# a child that is followed and outlives the tracing
with open(os.path.join(TMP, "forks.py"), "w") as f:
    f.write("""
import os, time
end = time.time() + 20
kids = []
while time.time() < end:
    os.getppid()
    if len(kids) < 100:
        pid = os.fork()
        if not pid:
            while time.time() < end:
                os.getppid()
                time.sleep(0.01)
            os._exit(0)
        kids.append(pid)
        print(pid, flush=True)
    time.sleep(0.02)
""")
proc = subprocess.Popen([sys.executable, os.path.join(TMP, "forks.py")], stdout=open(os.path.join(TMP, "kids"), "w"))
time.sleep(0.2)
r = descry("-q", "-x", "engine=inproc", "-x", "follow", "-n",
           "pid$target:libc.so.6:getppid:entry { @[pid] = count(); } tick-310ms { exit(0); }", "-p", str(proc.pid))
kids = [int(k) for k in open(os.path.join(TMP, "kids")).read().split()]
check(len(re.findall(r"^ +\d+ +\d+$", r.out, re.M)) > 2, "children fire", r)
for pid in [proc.pid] + kids:  # also a child that began amid the detach
    check("/memfd:descry" not in open("/proc/%d/maps" % pid).read(), "process %d lives, and has nothing left in it" % pid)
for pid in [proc.pid] + kids:
    os.kill(pid, signal.SIGKILL)
proc.wait()
done()
