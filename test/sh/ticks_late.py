#!/usr/bin/env python3
# Ticks of the engines that wait in this process: those that were due while descry stood still fire afterwards, one for each period;
# those that are more than a second late are given up, and counted.
# covers: tick- DTRACEDROP_TICK
import os
import re
import signal
import subprocess
import time

from checks import *

DESCRY = os.environ["DESCRY"]
# The first line says that ticks fire. The last says how many of them are missing: the least number in the last 300 ms, because ticks may
# be late at any instant.
PROGRAM = """
int64_t least;
BEGIN { start = timestamp; n = 0; least = 1 << 30; after = (uint64_t)0; }
tick-1ms { n++; this->t = timestamp - start; this->missing = (int64_t)this->t / 1000000 - n; }
tick-1ms /n == 10/ { printf("fires\\n"); }
tick-1ms /n > 10 && this->t > 600000000 && this->missing < least/ { least = this->missing; after = after ? after : this->t; }
tick-1ms /after && this->t - after > 300000000/ { printf("missing %d\\n", least); exit(0); }
"""


def stopped_for(engine, secs):
    p = subprocess.Popen([DESCRY, "-q", "-x", "droptags", "-x", "switchrate=10ms", "-x", "engine=" + engine, "-n", PROGRAM],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = p.stdout.readline()
    p.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WNOWAIT)
    end = time.monotonic() + secs
    while time.monotonic() < end:
        time.sleep(end - time.monotonic())
    p.send_signal(signal.SIGCONT)
    out, err = p.communicate(timeout=120)
    m = re.fullmatch(r"missing (-?\d+)", out.strip())
    check(p.returncode == 0 and first == "fires\n" and m, engine, p.returncode, first, out, err)
    lost = sum(int(n) for n in re.findall(r"\[DTRACEDROP_TICK\] (\d+) tick drops? \(more than a second late\)", err))
    return int(m[1]) if m else 0, lost


for engine in "interp", "inproc":
    missing, lost = stopped_for(engine, 0.4)
    check(lost == 0 and abs(missing) <= 1, engine, "0.4 s: %d missing, %d lost" % (missing, lost))
    missing, lost = stopped_for(engine, 2.5)
    check(lost > 1000 and abs(missing - lost) <= 1, engine, "2.5 s: %d missing, %d lost" % (missing, lost))
done()
