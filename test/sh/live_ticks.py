#!/usr/bin/env python3
# A tick fires once for each period that has passed, although map calls of bpf(2) keep the CPU from running programs of timers,
# although its tracer is busy, and although nobody reads what the tracer prints.
# covers: tick-
# serial
from live import *

# The n-th tick fires n periods after the first, or later. `lead` is the greatest n * period - timestamp that a window of time has
# seen. It falls from window to window when ticks are lost, and rises when one fires twice.
WINDOWS = 4
COUNT = """
#pragma D option quiet
#pragma D option aggsize=32m
int64_t lead[int];
int64_t n;
BEGIN { start = timestamp; }
tick-1ms { n++; this->w = (timestamp - start) / 700000000; this->lead = n * 1000000 - (int64_t)(timestamp - start); }
tick-1ms /!seen[this->w] || this->lead > lead[this->w]/ { seen[this->w] = 1; lead[this->w] = this->lead; }
tick-1ms /this->w > %d/ { done = 1; exit(0); }
END { printf("%%d leads", done); LEADS printf("\\n"); }
""" % WINDOWS
COUNT = COUNT.replace("LEADS", " ".join('printf(" %%d", lead[%d]);' % i for i in range(WINDOWS)))
# 4,000 keys with large values, read 20 times a second
BUSY = "BEGIN { i = 0; } tick-1ms { @[i++ % 4000] = quantize(i); @b[i % 4000, probename] = lquantize(i, 0, 100); } tick-50ms { printa(@); printa(@b); }"


def exact(what, r):
    m = re.search(r"^(\d) leads((?: -?\d+)+)$", r.out, re.M)
    if not check(r.rc == 0 and m and m[1] == "1", what + ": counted", r):
        return
    leads = [int(w) for w in m[2].split()]
    spread = max(leads) - min(leads)
    check(spread < 2000000, "%s: a tick for each period: the leads of the windows are %s" % (what, leads), "")


def on_cpu_0():
    """Beside the ticks of the kernel engine, which are on the first CPU."""
    os.sched_setaffinity(0, {0})


exact("while its own tracer reads maps", descry("-n", COUNT + BUSY, preexec_fn=on_cpu_0))
busy = start("-qn", BUSY, "-o", "/dev/null", preexec_fn=on_cpu_0)
exact("while another tracer reads maps", descry("-n", COUNT))
# Samples are not made up for, but counted.
r = descry("-q", "-x", "report", "-n", "profile-4999 { @ = count(); } tick-2s { exit(0); }")
m = re.search(r"profile-4999 profile fired (\d+) left out (\d+)", r.err)
check(m and int(m[1]) > 0 and int(m[2]) > 0, "samples that are missing are reported", r)
busy[1].terminate()
finish(busy)
done()
