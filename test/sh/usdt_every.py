#!/usr/bin/env python3
# USDT probes of every process that has them: a pattern for the provider, and no process is named.
# serial
from live import *

subprocess.run(["cc", "-O1", "-o", TMP + "/serves", "-x", "c", "-"], check=True, text=True, input="""
#include <sys/sdt.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0;; i++) {
		DTRACE_PROBE1(everyserver, round, i);
		usleep(10000);
	}
}
""")
two = [subprocess.Popen([TMP + "/serves"]) for _ in range(2)]
names = sorted("everyserver%d" % p.pid for p in two)
try:
    # Popen() returns when the program runs: it is in the process' memory
    r = descry("-l", "-n", "everyserver*:::round")
    check(sorted(line.split()[1] for line in r.lines()[1:]) == names, "both processes", names, r)
    r = descry("-l", "-n", "everys*:serves:main:")
    check(sorted(line.split()[1] for line in r.lines()[1:]) == names, "with an object and a function", names, r)
    r = descry("-l", "-p", str(two[0].pid), "-n", "everyserver*:::round")
    check([line.split()[1] for line in r.lines()[1:]] == ["everyserver%d" % two[0].pid], "the process that is named only", r)
    for pattern in ("*server*", "sys*"):
        r = descry("-l", "-Z", "-n", pattern + ":::round", rc=1)
        check("everyserver" not in r.out, "not for " + pattern, r)
    r = descry("-q", "-x", "engine=kernel", "-n", "everyserver*:::round /!seen[pid]/ { seen[pid] = 1; printf(\"%d %s\\n\", pid, probeprov); n++; }"
               " everyserver*:::round /n == 2/ { exit(0); }")
    check(sorted(r.lines()) == sorted("%d everyserver%d" % (p.pid, p.pid) for p in two), "both fire", r)
finally:
    for p in two:
        p.kill()
        p.wait()
done()
