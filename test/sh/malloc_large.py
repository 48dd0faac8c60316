#!/usr/bin/env python3
# timeout: 600
# descry malloc report takes less memory than its recording, under a limit that is lower than the file is large; so does making a replay's
# operations, which are on disk then.
import resource

from live import *

TRACEE = os.path.join(BUILD, "test", "tracee_recorded")
FILE = os.path.join(TMP, "a.dma")
N = 5000000
LIMIT = 24 << 20
if "libasan" in sh("ldd " + DESCRY).stdout:
    skip("sanitizers take memory of their own")


def measured(limit, *args):
    """Runs with at most so much memory that can be written. Returns the exit code, the output, and the most resident memory."""
    out = os.path.join(TMP, "out")
    with open(out, "w") as f:
        p = subprocess.Popen([DESCRY, "malloc", *args], stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
        kill_at_end(p)
        _, status, use = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    with open(out) as f:
        return p.returncode, f.read(), use.ru_maxrss * 1024


p = subprocess.run([DESCRY, "malloc", "record", "-o", FILE, TRACEE, "busy", str(N)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
check(p.returncode == 0 and p.stdout == "end\n", "record", p)
size = os.path.getsize(FILE)
check(size > LIMIT, "the file is larger than the limit", size)
rc, out, most = measured(LIMIT, "report", "--json", FILE)
r = json.loads(out) if check(rc == 0, "report", rc, out[-1000:]) else {}
check(r.get("malloc", 0) + r.get("lost", 0) >= N and r.get("complete"), "all of it", out[:300])
check(most < size, "it takes less memory than the file", most, size)
# the limit is one
rc, out, most = measured(2 << 20, "report", "--json", FILE)
check(rc != 0, "a limit that nothing can keep", rc, out[-300:])
print("%d bytes of file, %d resident" % (size, most))
done()
