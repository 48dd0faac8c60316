#!/usr/bin/env python3
# What does not fit is counted, each kind forced: printed + dropped is everything. Control messages do not depend on it.
# serial
from live import *

N = 40000
CALLS = LIVE + " threads %d" % N
ALL = 4 * N
HIT = "syscall::getppid:entry /pid == $target/ "


def message_count(r, what):
    """The sum of all messages "descry: N drops on CPU C" of a kind."""
    return sum(int(m.group(1)) for m in re.finditer(r"^\w+: (\d+) %ss?\b" % what, r.err, re.M))


# the data buffer: text
r = descry("-q", "-x", "bufsize=4k", "-n", HIT + '{ printf("%d %d\\n", timestamp, tid); }', c=CALLS)
printed = len(re.findall(r"^\d+ \d+$", r.out, re.M))
drops = message_count(r, "drop")
check(0 < printed < ALL and drops > 0, "a buffer of 4k overflows", printed, drops)
check(printed + drops == ALL, "printed %d + dropped %d = %d of %d events" % (printed, drops, printed + drops, ALL), r.err)

# ... JSON: drops by probe too, and the firings are all seen
r = descry("--json", "-x", "bufsize=4k", "-n", HIT + '{ printf("%d\\n", timestamp); } syscall::getppid:return '
           '/pid == $target/ { printf("%d\\n", tid); }', c=CALLS)
rows = r.json()
report = [x for x in rows if x["type"] == "report"][0]
said = sum(x["count"] for x in rows if x["type"] == "drop" and x["kind"] == "data")
check(said == report["drops"]["data"] > 0, "messages and report agree", said, report["drops"])
for name in "entry", "return":
    printed = sum(x["type"] == "printf" and x["probe"]["name"] == name for x in rows)
    probe = [p for p in report["probes"] if p["probe"]["name"] == name][0]
    check(probe["fired"] >= ALL, name, "fired", probe)
    check(printed + probe["dropped"] == ALL and probe["dropped"] > 0, name, printed, probe)

# exit() and clear() come through a flood, at once
begun = time.monotonic()
r = descry("-q", "-x", "bufsize=4k", "-n", HIT + '{ printf("%d\\n", timestamp); @ = count(); } '
           'tick-300ms { exit(3); }', c=LIVE + " threads 100000000", rc=3)
check(time.monotonic() - begun < 3, "exit() under a flood took", time.monotonic() - begun)
check(message_count(r, "drop") > 0, "there was a flood", r.err[-500:])
check(message_count(r, "control drop") == 0, "control messages lost", r.err)
sh("pkill -P %d" % os.getpid())
r = descry("-q", "-x", "bufsize=4k", "-x", "switchrate=100hz", "-n",
           'BEGIN { n = 0; } ' + HIT + '{ printf("%d\\n", timestamp); @ = count(); @all["all"] = count(); } '
           'tick-100ms /n < 5/ { clear(@); n++; } tick-100ms /n == 5/ { exit(0); }', c=LIVE + " threads 100000000")
values = {k: v for k, v in r.table()}
single = [int(m) for m in re.findall(r"^ +(\d+)$", r.out, re.M)]
check(len(single) == 1 and values.get(("all",), 0) > 2 * single[0], "clear() under a flood", single, values, r.err[-500:])

# exit() by a thread that has filled its own buffer of control messages: it ends tracing, with the status
r = descry("-q", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { @ = count(); clear(@); } pid$target:a.out:work:entry /n++ == 300000/ { exit(7); }",
           c=os.path.join(BUILD, "test", "tracee_inside") + " work 1000000", rc=7)
check(message_count(r, "control drop") > 0, "the control buffer was not full", r.err[-500:])

# aggregations: more keys than there is memory for
r = descry("--json", "-x", "aggsize=16k", "-n", HIT + "{ @[timestamp] = count(); }", c=LIVE + " threads 5000")
report = [x for x in r.json() if x["type"] == "report"][0]
kept = sum(r.aggs().values())
check(report["drops"]["aggregation"] > 0 and kept + report["drops"]["aggregation"] == 20000, "aggregation drops", kept,
      report["drops"])
r = descry("-q", "-x", "aggsize=16k", "-n", HIT + "{ @[timestamp] = count(); }", c=LIVE + " threads 5000")
check(message_count(r, "aggregation drop") + len(re.findall(r"^ +\d+ +1$", r.out, re.M)) == 20000, "aggregation drops, text", r.err[-500:])

# dynamic variables
r = descry("--json", "-x", "dynvarsize=16k", "-n", HIT + "{ a[timestamp] = 1; }", c=LIVE + " threads 5000")
report = [x for x in r.json() if x["type"] == "report"][0]
check(5000 < report["drops"]["dynamic"] < 20000, "dynamic variable drops", report["drops"])
r = descry("-q", "-x", "dynvarsize=16k", "-n", HIT + "{ a[timestamp] = 1; }", c=LIVE + " threads 5000")
check(5000 < message_count(r, "dynamic variable drop") < 20000, "dynamic variable drops, text", r)

# speculations: no buffer free; and more in one than it holds
r = descry("-q", "-x", "nspec=1", "-n", 'BEGIN { a = speculation(); b = speculation(); printf("%d %d\\n", a, b); exit(0); }')
check(r.out.split() == ["1", "0"] and re.search(r"1 failed speculation", r.err), "no speculation buffer free", r)
r = descry("-q", "-x", "specsize=8k", "-n", 'BEGIN { s = speculation(); } ' + HIT + '{ speculate(s); printf("%d\\n", tid); '
           '} END { commit(s); }', c=LIVE + " threads 2000")
printed = len(re.findall(r"^\d+$", r.out, re.M))
spec = message_count(r, "speculative drop")
check(printed > 0 and spec > 0 and printed + spec == 8000, "speculation of 8k", printed, spec, r.err[-500:])
done()
