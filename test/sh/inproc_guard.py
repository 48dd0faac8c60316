#!/usr/bin/env python3
# A program whose predicates begin with a variable that only the tracer sets sleeps while it is 0: its gates lead back to the stub. It
# misses no firing while it is awake. A variable that a thread sets puts no program to sleep.
import struct

from live import *

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int n;
__attribute__((noipa)) void work(void) { n += 3; }
__attribute__((noipa)) void other(void) { n += 5; }
int main(int argc, char **argv)
{
	long calls = atol(argv[1]);

	for (long i = 0; i < calls || calls < 0; i++) {
		work();
		other();
		if (calls < 0)
			usleep(1000);
	}
	return 0;
}
"""


def gates(pid):
    """The gates of the islands in a process: True for each that leads back."""
    found = []
    try:
        maps = open("/proc/%d/maps" % pid).read()
        with open("/proc/%d/mem" % pid, "rb") as mem:
            for m in re.finditer(r"^(\w+)-(\w+) r-xs .*/memfd:descry-island", maps, re.M):
                at, end = int(m[1], 16), int(m[2], 16)
                mem.seek(at)
                code = mem.read(end - at)
                for i in range(0, len(code) - 15, 16):
                    if code[i:i + 8] != b"\xff\x25\x02\0\0\0\xc3\xcc":
                        break
                    found.append(struct.unpack_from("<Q", code, i + 8)[0] == at + i + 6)
    except OSError:
        pass
    return found


if not shutil.which("cc"):
    skip("no C compiler")
os.chdir(TMP)
with open("t.c", "w") as f:
    f.write(SOURCE)
check(sh("cc -O1 -o t t.c").returncode == 0, "built")
ENGINE = ["-x", "engine=inproc", "--json"]
# awake from the start: every call is counted
r = descry(*ENGINE, "-n", "int awake; BEGIN { awake = 1; } pid$target:t:work:entry /awake/ { @w = count(); } "
           "pid$target:t:other:entry /!awake/ { @o = count(); }", c="./t 5003", rc=0)
check(r.aggs("w") == {(): 5003} and not r.aggs("o").get((), 0), "each firing counts", r)
# never awake, but for an action of the thread: no guard
r = descry(*ENGINE, "-n", "int on; pid$target:t:other:entry { on = 1; } pid$target:t:work:entry /on && 1/ { @w = count(); }", c="./t 5003", rc=0)
check(r.aggs("w") == {(): 5002}, "a thread's own variable", r)
for name, program, sleeps in (
        ("a guard", "int awake; tick-50ms { awake = !awake; } pid$target:t:work:entry /awake && pid/ { @w = count(); awake = 0; }", True),
        ("two guards", "int awake, later; tick-50ms { awake = !awake; later = awake; } pid$target:t:work:entry /awake/ { @w = count(); } "
         "pid$target:t:work:entry /later && awake/ { @l = count(); }", True),
        ("a clause without a guard", "int awake; tick-50ms { awake = !awake; } pid$target:t:work:entry /awake/ { @w = count(); } pid$target:t:work:entry { @a = count(); }", False),
        ("a variable of threads", "int awake; tick-50ms { awake = !awake; } pid$target:t:other:entry { awake |= 1; } pid$target:t:work:entry /awake/ { @w = count(); }", False)):
    t = subprocess.Popen(["./t", "-1"])
    traced = start("-qx", "engine=inproc", "-n", program + " tick-20ms { printf(\"%d\\n\", awake); }", "-p", str(t.pid))
    try:
        seen, looks = set(), 0
        # a program that does not sleep is looked at for some changes of the variable
        while traced[1].poll() is None and t.poll() is None and (looks < 100 or (sleeps and len(seen) < 2)):
            found = gates(t.pid)
            if found:
                seen.add(any(found))
                looks += 1
            time.sleep(0.005)
        check(seen == ({True, False} if sleeps else {False}), name, seen, looks)
    finally:
        traced[1].send_signal(signal.SIGINT)
        r = finish(traced)
        t.kill()
        t.wait()
    check(re.search(r"^\s*\d+\s*$", r.out, re.M), name, "fires", r)
done()
