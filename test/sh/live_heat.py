#!/usr/bin/env python3
# descry heat runs D programs: every event is counted once, in its second; values that are printed twice count once; a command's output stays out of the
# picture; the diagonal of a program that wakes once a second.
# serial
from live import *


def heat(*args, rc=0):
    r = subprocess.run([DESCRY, "heat", "--json", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    r.err = r.stderr.decode(errors="replace")
    check(r.returncode == rc and "D_VERIFIER" not in r.err, "exit code", args, r.returncode, r.err)
    return json.loads(r.stdout) if r.stdout else None, r.err


def cells(doc):
    for column in doc["columns"]:
        for row, party, n in zip(*[iter(column["cells"])] * 3):
            series, who = doc["parties"][party]
            yield doc["time"]["first"] + column["column"], doc["value"]["rows"][row], doc["series"][series]["name"], who, n


# dd writes 2000 times; its latencies are counted, and printed each second without a clear().
DD = "dd if=/dev/zero of=/dev/null bs=512 count=2000"
WRITE = "syscall::write:entry /execname == \"dd\" && arg2 == 512/ { self->t = timestamp; }" \
        "syscall::write:return /self->t/ { @[timestamp / 1000000000, execname, pid] = %s; self->t = 0; }"
for how in ("quantize(timestamp - self->t)", "llquantize(timestamp - self->t, 10, 0, 9, 20)", "lquantize(timestamp - self->t, 0, 100000, 1000)"):
    doc, err = heat("-c", DD, "-n", WRITE % how)
    check(doc["total"] == 2000 and [s["name"] for s in doc["series"]] == ["dd"], "every write", how, doc["total"], err)
    check("records in" in err or "2000" in err, "the command's output", err)
    check(len({who for _, _, _, who, _ in cells(doc)}) == 1, "who", doc["parties"])
doc, err = heat("-w", "-c", "echo of the command", "-n", "BEGIN { system(\"echo of system\"); printf(\"%d 5 x\\n\", timestamp / 1000000000); }")
check(doc["total"] == 1 and "of the command\n" in err and "of system\n" in err, "what is started prints beside the picture", doc["total"], err)
doc, err = heat("-c", "sh -c '%s; sleep 1.2'" % DD, "-n", WRITE % "quantize(timestamp - self->t)" + " tick-200ms { printa(@); }")
check(doc["total"] == 2000, "printed again and again, counted once", doc["total"], err)
doc, err = heat("-c", "sh -c '%s; sleep 1'" % DD, "-n", WRITE % "quantize(timestamp - self->t)" + " tick-200ms { printa(@); trunc(@); }")
check(doc["total"] == 2000, "printed and cleared: what was printed adds up", doc["total"], err)
doc, err = heat("--time", "ns", "-c", DD, "-n", "syscall::write:return /execname == \"dd\" && arg1 == 512/ { printf(\"%d %d %s\\n\", timestamp, arg1, execname); }")
check(doc["total"] == 2000 and {tuple(b) for _, b, _, _, _ in cells(doc)} == {(500, 599)}, "events of printf()", doc["total"], err)

# A program that wakes once a second: second and offset are of one timestamp, so it is in one column, on a line that drifts slowly.
tracee = subprocess.Popen([sys.executable, "-c", "import time\nt = time.monotonic()\nwhile 1:\n t += 1\n time.sleep(max(0, t - time.monotonic()))"])
atexit.register(tracee.kill)
time.sleep(1) # it has begun
doc, err = heat("--subsecond", "-t", "6", "-n", "sched:::on-cpu /pid == %d/ { @[timestamp / 1000000000, execname] = "
                "lquantize(timestamp %% 1000000000 / 1000000, 0, 1000, 20); }" % tracee.pid)
check(len(doc["value"]["rows"]) == 50 and doc["value"]["unit"] == "ms" and doc["mode"] == "subsecond", "all offsets are rows", doc["value"])
seconds = {}
for second, row, _, _, n in cells(doc):
    seconds.setdefault(second, set()).add(row[0])
# it may wake late: then a second has none, and the next one has two
check(sum(map(len, seconds.values())) >= 5 and all(len(rows) <= 3 for rows in seconds.values()), "once a second", seconds)
check(len(set.union(*seconds.values())) <= 8, "always at the same offset", seconds)
tracee.kill()

# Utilization: a busy process has nearly all of the time of one processor at most.
busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
atexit.register(busy.kill)
doc, err = heat("--utilization", "--full", "100", "-t", "4", "-n", "profile-100hz { @[timestamp / 1000000000, cpu] = count(); }")
check(len(doc["series"]) == 1 and doc["total"] == len(doc["parties"]) * doc["time"]["columns"], "one value a second of each", doc["total"])
check(any(row[0] >= 80 for _, row, _, _, _ in cells(doc)), "full seconds", list(cells(doc)))
busy.kill()
_, err = heat("-t", "1", "-n", "profile-100hz { @[execname] = quantize(1); }", rc=1)
check("no time as key" in err, "no time", err)
_, err = heat("-t", "1", "-n", "profile-100hz { @[nosuch] = quantize(1); }", rc=1)
check("nosuch" in err and "usage" not in err, "a program that is wrong", err)
done()
