#!/usr/bin/env python3
# A uprobe at the place of another tracer's jump would end the traced program. The kernel engine refuses it, also when
# -x follow puts the uprobes of one process into all. A process that forges such jumps costs descry little.
# serial
import resource

from live import *

TORTURE = os.path.join(BUILD, "test", "tracee_torture")
FORGED = os.path.join(BUILD, "test", "tracee_forged")
PROBE = "pid$target:libz:crc32:entry { @ = count(); }"
for engine in "inproc", "kernel":
    r = descry("-q", "-x", "engine=" + engine, "-n", "BEGIN { exit(0); }")
    if r.rc:
        skip("no %s engine: %s" % (engine, r.err.strip()))


def program(path):
    p = subprocess.Popen([path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    return p


traced, other = program(TORTURE), program(TORTURE)
first = tracing("-x", "engine=inproc", "-p", str(traced.pid), "-n", PROBE)
# one process alone: the uprobes are not in the traced one
r = descry("-q", "-x", "engine=kernel", "-p", str(other.pid), "-n", PROBE + " tick-100ms { exit(0); }")
check(r.rc == 0, "another process", r.rc, r.err)
for more in ("-x", "follow", "-p", str(other.pid)), ("-p", str(traced.pid)):
    r = descry("-q", "-x", "engine=kernel", *more, "-n", PROBE + " tick-100ms { exit(0); }", rc=1)
    check("process %d is traced from inside by descry, process %d:" % (traced.pid, first[1].pid) in r.err, more, r.err)
check(traced.poll() is None, "the traced program lives", traced.poll())
os.kill(first[1].pid, signal.SIGINT)
finish(first)
for p in traced, other:
    p.terminate()
    out, err = p.communicate(timeout=60)
    check(p.returncode == 0 and b" errors 0 " in out and not err, "unharmed", p.returncode, out, err)

# All its records together are 1.7 GB.
limit = 192 << 20
forged = program(FORGED)
probe = "pid$target:tracee_forged:forged_work:entry { @ = count(); exit(0); }"
for more in [], ["-x", "follow"]:
    r = descry("-q", "-x", "engine=kernel", *more, "-p", str(forged.pid), "-n", probe,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
    check(r.rc == 0 and r.out.strip().isdigit(), "forged records", more, r.rc, r.out, r.err)
check(forged.poll() is None, "lives", forged.poll())
forged.kill()
forged.communicate()
