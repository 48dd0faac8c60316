#!/usr/bin/env python3
# Firings that the kernel omits because the same program is running on that CPU are reported, with a tag, and in the
# report.
# serial
from live import *

# Every tracepoint: the program's own work (maps, stacks, the ring) meets some of them.
prog = "sdt::: { @[stack(5), probename] = count(); self->x++; } tick-2s { exit(0); }"
r = descry("-x", "droptags", "-x", "aggsize=64k", "-n", prog, "-o", "/dev/null")
missed = [int(n) for n in re.findall(r"\[DTRACEDROP_MISSED\] (\d+) firings? missed \(in the middle of another on the same CPU\)", r.err)]
check(missed and sum(missed) > 0, "firings missed are told", r)
r = descry("--json", "-n", prog)
report = r.json()[-1]
check(report["type"] == "report" and report["drops"].get("missed", 0) > 0, "missed in the report", report)
# a program that meets nothing of its own misses nothing
r = descry("-q", "-x", "report", "-n", "syscall::getppid:entry { @ = count(); } tick-200ms { exit(0); }")
check("missed" not in r.err and "missed" not in r.out, "nothing missed", r)
done()
