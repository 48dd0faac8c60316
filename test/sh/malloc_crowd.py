#!/usr/bin/env python3
# descry malloc record -k: another user's processes among those of the recording ask for tables all the time, with new processes again and again.
# The others lose nothing on a machine that has a processor for the tracer, and far from all on one that has not: a full ring waits a
# second for the tracer. (When each new process was served at once, nearly all was lost.)
from live import *

CROWD = os.path.join(BUILD, "test", "tracee_crowd")
if os.geteuid():
    skip("needs root, to have processes of another user")
os.chmod(TMP, 0o755)
os.chdir(TMP)
r = descry("malloc", "record", "-k", "8", "-o", "x.dma", CROWD, "16")
children = [line.split() for line in r.lines()]
check(r.rc == 0 and len(children) == 4, "recorded", r)
lost = want = 0
for pid, calls in children:
    report = json.loads(descry("malloc", "report", "--json", "x.%s.dma" % pid).out)
    check(report["lost"] + report["malloc"] + report["free"] == int(calls), "all calls are told", pid, calls, report["lost"], report["malloc"])
    lost += report["lost"]
    want += int(calls)
check(lost < want * 0.75, "lost", lost, want)
done()
