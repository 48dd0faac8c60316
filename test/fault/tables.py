#!/usr/bin/env python3
# The unwind tables that descry malloc record -k makes in its processes' memory count in its own limit of memory. In a control group that
# cannot hold those of all processes, the recording goes on, and the kernel kills nothing.
from live import *

CHILDREN, LIMIT = 100, 200
PROGRAM = """
import ctypes, os, sys, time
for name in ("libstdc++.so.6", "libcrypto.so.3"):
    ctypes.CDLL(name)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
for i in range(int(sys.argv[1])):
    if not os.fork():
        while not os.path.exists(sys.argv[2]):
            libc.free(ctypes.c_void_p(libc.malloc(20)))
            time.sleep(0.05)
        os._exit(0)
print(sum(os.waitstatus_to_exitcode(os.wait()[1]) == 0 for i in range(int(sys.argv[1]))))
"""
if os.geteuid():
    skip("needs root, to make a control group")
for top, name, events in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"), ("/sys/fs/cgroup", "memory.max", "memory.events")):
    group = top + "/descry-tables-%d" % os.getpid()
    try:
        os.mkdir(group)
        open(group + "/" + name, "w").write(str(LIMIT << 20))
        break
    except OSError as e:
        print("note: no control group in %s: %s" % (top, e))
        if os.path.isdir(group):
            os.rmdir(group)
else:
    skip("no control groups of memory can be made here")


def oom_kills():
    return sum(int(n) for n in re.findall(r"^oom_kill (\d+)", open(group + "/" + events).read(), re.M))


def shared():
    return int(re.search(r"^RssShmem:\s+(\d+)", open("/proc/%d/status" % p.pid).read(), re.M).group(1))


with open(TMP + "/program.py", "w") as f:
    f.write(PROGRAM)
# the command leaves the group, in which descry stays
LEAVE = 'echo $$ >%s/cgroup.procs; exec /usr/bin/python3 "$@"' % top
enough = os.path.join(TMP, "enough")
with open(TMP + "/out", "w") as out, open(TMP + "/err", "w") as err:
    p = subprocess.Popen([DESCRY, "malloc", "record", "-k", "16", "-o", TMP + "/x.dma", "sh", "-c", LEAVE, "sh", TMP + "/program.py", str(CHILDREN), enough],
                         stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=lambda: open(group + "/cgroup.procs", "w").write(str(os.getpid())))
most = same = 0
until = time.monotonic() + 60
while p.poll() is None and same < 30 and time.monotonic() < until:  # until descry makes no more tables
    now = shared()
    same = same + 1 if now == most and len(os.listdir(TMP)) > CHILDREN else 0
    most = max(most, now)
    time.sleep(0.1)
open(enough, "w").close()
rc = p.wait()
out, err = open(TMP + "/out").read(), open(TMP + "/err").read()
print("%d MB of %d shared; %s" % (most >> 10, LIMIT, err.strip()[:300]))
check(rc == 0 and out.split() == [str(CHILDREN)], "the recording goes on", rc, out, err)
check(oom_kills() == 0, "nothing was killed")
check(most >> 10 < LIMIT / 2, "tables within their part", most)
os.rmdir(group)
done()
