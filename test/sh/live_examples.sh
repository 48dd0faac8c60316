# Each script of examples/ on a live kernel, its answer compared with what the traced program says of itself.
# serial
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=test/sh exec python3 - <<'END'
from live import *


def example(name, *args, c=None, **more):
    return descry("-s", "examples/%s.d" % name, *args, c=c, **more)


def until(name, secs, command):
    """A script without an end: run the command meanwhile, then ^C."""
    s = start("-s", "examples/%s.d" % name)
    time.sleep(0.8)
    out = sh(command)
    time.sleep(secs)
    s[1].send_signal(signal.SIGINT)
    r = finish(s)
    check(r.rc == 0 and "rejects" not in r.err, "%s: exit 0 after ^C" % name, r)
    return r, out


r = example("lx-sys", "top", c="top -b -n 3 -d 0.2")
v = {m[0]: int(m[1]) for m in re.findall(r"^  (\S.*?) +(\d+)$", r.out, re.M)}
calls = v.pop("- all syscalls -", 0)
whole = v.pop("- total -", 0)
sums = {k: n for k, n in v.items() if re.match(r"^[a-z_0-9]+$", k)}
check(sums.get("read", 0) > 0 and calls == sum(sums.values()), "lx-sys: the sum is the sum", calls, sums)
check(calls <= whole * 1.05, "lx-sys: system calls within the time on CPU", calls, whole)

r = example("malloc2", "--json", c=LIVE + " malloc 500")
n, a = numbers(r.out), r.aggs()
check(total(a.get("mapped", [])) >= n["large"] and {b["min"]: b["count"] for b in a["mapped"]}.get(262144) == n["large"], "malloc2: mapped", a)
check(total(a.get("mapped", [])) + total(a.get("no map", [])) == n["large"] + n["small"], "malloc2: all", a, n)

r, _ = until("opensnoop", 0.3, "cat /etc/passwd /nonexistent/name")
check(re.search(r"^\d+ +cat +3 /etc/passwd$", r.out, re.M) and re.search(r"^\d+ +cat +-2 /nonexistent/name$", r.out, re.M), "opensnoop", r)

r, _ = until("execsnoop", 0.3, "echo x; /bin/true some arguments")
check(re.search(r"^\d{4} \w{3} +\d+ [\d:]{8} \d+ +\d+ +/bin/true some arguments$", r.out, re.M), "execsnoop", r)

dd = "dd if=/dev/zero of=%s/dd bs=64k count=20 oflag=direct; rm -f %s/dd" % (BUILD, BUILD)
r, o = until("iosnoop", 0.3, dd)
if "20+0" in o.stderr:
    check(len(re.findall(r"^dd +W +\d+ +65536 +\d+$", r.out, re.M)) == 20, "iosnoop", r)
    r, o = until("biolatency", 0.3, dd)
    check("write, microseconds" in r.out and sum(map(int, re.findall(r"\| *@* +(\d+)", r.out))) >= 20, "biolatency", r)

r, _ = until("runqlat", 0.3, "ls >/dev/null; sleep 0.01; sleep 0.01")
check("microseconds from wakeup to CPU" in r.out and sum(map(int, re.findall(r"\| *@* +(\d+)", r.out))) > 3, "runqlat", r)

r = example("offcpu", c="sleep 0.3")
check(any(270000 < int(n) < 500000 for n in re.findall(r"^ +(\d{6})$", r.out, re.M)) and "nanosleep" in r.out, "offcpu", r)

r = example("wakeup", c="sh -c 'sleep 0.3; exit 3'")
times = [int(n) for n in re.findall(r"^  sleep +(\d+)$", r.out, re.M)]
check(r.rc in (0, 3) and any(270000 < n < 600000 for n in times) and "vmlinux`" in r.out, "wakeup: the wait and the stack of who ended it", r)

r = example("procsystime", c=LIVE + " syscalls 100")
t = {m[0]: tuple(map(int, m[1:])) for m in re.findall(r"^(\w+) +(\d+) +(\d+) +(\d+)$", r.out, re.M)}
check(t.get("getppid", (0,))[0] == 100 and t.get("getuid", (0,))[0] == 50, "procsystime: calls", t)
check(t and t["TOTAL"][0] == sum(v[0] for k, v in t.items() if k != "TOTAL"), "procsystime: total", t)
check(all(v[2] <= v[1] * 1.05 for v in t.values()), "procsystime: CPU within elapsed", t)

r, _ = until("syserr", 0.1, LIVE + " syscalls 100")
check(re.search(r"^tracee_live +open +2 +20$", r.out, re.M) and re.search(r"^tracee_live +close +9 +10$", r.out, re.M), "syserr", r)

r, o = until("rwtop", 1.5, "dd if=/dev/zero of=/dev/null bs=1M count=200")
for way in "R", "W":
    got = sum(int(x) for x in re.findall(r"^%s dd +\d+ +(\d+)$" % way, r.out, re.M))
    check(200 << 20 <= got < 210 << 20, "rwtop", way, got, r)

r = example("hotuser", c=LIVE + " spin 400")
m = re.search(r"^tracee_live`do_spin +(\d+)$", r.out, re.M)
check(m and int(m.group(1)) > 997 * 0.4 * 0.7, "hotuser", r)
done()
END
