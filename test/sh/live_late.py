#!/usr/bin/env python3
# copyinstr() of a path that is not resident when the system call begins, which every other tracer prints as nothing.
# serial
from live import *

file = os.path.join(BUILD, "live-cold")
truth = numbers(sh("%s cold %s 20" % (LIVE, file)).stdout)
if truth.get("cold") != 20:
    skip("pages stay resident on the file system of " + BUILD)
r = descry("-q", "-n", 'syscall::openat:entry /pid == $target/ { printf("[%s]\\n", copyinstr(arg1)); }', c="%s cold %s 20" % (LIVE, file))
check("cold 20 of 20" in r.out, "pages were cold", r)
got = re.findall(r"^\[/nonexistent/cold-(\d+)\]$", r.out, re.M)
check(got == [str(i) for i in range(20)], "every cold path printed", got, r)
r = descry("--json", "-n", 'syscall::openat:entry /pid == $target/ { printf("%s %d", copyinstr(arg1), arg2); trace(execname); }',
           c="%s cold %s 20" % (LIVE, file))
got = [x["args"] for x in r.json() if x["type"] == "printf"]
check([a for a in got if "cold-" in a[0]] == [["/nonexistent/cold-%d" % i, 0] for i in range(20)], "--json", got)
check(not [x for x in r.json() if x["type"] == "fault"], "no faults", r)
done()
