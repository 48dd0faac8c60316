#!/usr/bin/env python3
# Each script of examples/ on a live kernel, its answer compared with the traced program's own numbers.
# serial
from live import *


def example(name, *args, c=None, **more):
    return descry("-s", "examples/%s.d" % name, *args, c=c, **more)


def until(name, secs, command, *args):
    """A script without an end: run the command meanwhile, then ^C."""
    s = tracing("-s", "examples/%s.d" % name, *args)
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

# a name that no other program of the machine has
shutil.copy(shutil.which("dd"), TMP + "/livedd")
dd = "%s/livedd if=/dev/zero of=%s/dd bs=64k count=20 oflag=direct; rm -f %s/dd" % (TMP, BUILD, BUILD)
r, o = until("iosnoop", 0.3, dd)
if "20+0" in o.stderr:
    check(len(re.findall(r"^livedd +W +\d+ +65536 +\d+$", r.out, re.M)) == 20, "iosnoop", r)
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
open(TMP + "/leak.c", "w").write(r"""
#include <stdlib.h>
void *keep[100];
__attribute__((noinline)) void leak(int i) { keep[i] = malloc(1000); }
__attribute__((noinline)) void grow(int i) { char *p = calloc(1, 100); keep[50 + i] = realloc(p, 5000); }
__attribute__((noinline)) void fine(void) { free(malloc(70000)); char *p = realloc(NULL, 10); free(realloc(p, 20)); }
int main(void) { for (int i = 0; i < 7; i++) { leak(i); fine(); } for (int i = 0; i < 3; i++) grow(i); return 0; }
""")
subprocess.run(["cc", "-O1", "-fno-builtin", "-o", TMP + "/leak", TMP + "/leak.c"], check=True)
r = example("memleak", c=TMP + "/leak")
held = {f: int(n) for n, f in re.findall(r"^ +(\d+)  leak`(\w+)\+0x[0-9a-f]+$", r.out, re.M) if int(n)}
check(held == {"leak": 7000, "grow": 15000} and "fine" in r.out, "memleak", r)

r, _ = until("offcputime", 0.3, "sleep 0.4", "sleep")
waits = re.findall(r"^sleep\n((?:.+\n|\n(?=.*[`+]))+) +(\d+)$", r.out, re.M)
check(any("nanosleep" in stack and 300000 < int(us) < 2000000 for stack, us in waits), "offcputime", r)

r = example("dapptrace", c=TMP + "/leak")
check(re.search(r"-> main .*\n(?:.*\n)*?.*-> leak .*\(0x0, ", r.out) and len(re.findall(r"<- leak ", r.out)) == 7, "dapptrace", r)
r = example("dappprof", c=TMP + "/leak")
calls = {m[0]: (int(m[1]), int(m[2])) for m in re.findall(r"^(\w+) +(\d+) +(\d+)$", r.out, re.M)}
check(calls.get("leak", (0,))[0] == 7 and calls.get("grow", (0,))[0] == 3 and calls["main"][1] > calls["fine"][1] > 0, "dappprof", r)

open(TMP + "/lines", "w").write("a line\n" * 1000)
r, o = until("iotop", 1.5, dd)
if "20+0" in o.stderr:
    check(sum(int(n) for n in re.findall(r"^W livedd +\d+ \S+ +(\d+)$", r.out, re.M)) == 20 << 16, "iotop", r)

r, _ = until("cachestat", 1.5, "cp %s/lines %s/copy; cat %s/copy >/dev/null" % (TMP, TMP, TMP))
rows = [list(map(int, m)) for m in re.findall(r"^\d{4} \w{3} +\d+ [\d:]{8} +(\d+) +(\d+) +(\d+)$", r.out, re.M)]
check(rows and sum(row[0] for row in rows) >= 2 and sum(row[2] for row in rows) >= 2, "cachestat", r)

# a FIFO is a file that can be made to wait
r, _ = until("fileslower", 0.3, "mkfifo {0}/fifo; (sleep 0.2; cat {0}/lines) > {0}/fifo & cat {0}/fifo >/dev/null; wait".format(TMP))
check(any(int(ms) >= 100 for ms in re.findall(r"^ *\d+ cat +R +\d+ +(\d+) %s/fifo$" % re.escape(TMP), r.out, re.M)), "fileslower", r)

r, _ = until("killsnoop", 0.3, "sleep 5 & echo $!; kill -USR1 $!; kill -KILL 4194303 2>/dev/null; wait")
to = _.stdout.split()[0]
check(re.search(r"^ *\d+ \S*sh +10 +%s +0$" % to, r.out, re.M) and re.search(r"^ *\d+ \S*sh +9 +4194303 +3$", r.out, re.M), "killsnoop", r)

r, _ = until("shellsnoop", 0.3, "echo echo said through a shell | sh")
check(re.search(r"^ *\d+ (sh|dash|bash) +R echo said through a shell$", r.out, re.M) and re.search(r"^ *\d+ (sh|dash|bash) +W said through a shell$", r.out, re.M), "shellsnoop", r)

r = example("gethostlatency", c=sys.executable + " -c 'import socket; socket.getaddrinfo(\"localhost\", 80)'")
check(re.search(r"^ *\d+ python3\S* +\d+\.\d{3} localhost$", r.out, re.M), "gethostlatency", r)

r, o = until("tcptop", 1.5, sys.executable + """ -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); a = s.accept()[0]
c.sendall(b"x" * 30000); n = 0
while n < 30000: n += len(a.recv(30000))
print(s.getsockname()[1])'""")
port = (o.stdout.split() or ["none"])[0]
check(sum(int(n) for n in re.findall(r"^-> 127\.0\.0\.1 +\d+ 127\.0\.0\.1 +%s +(\d+)$" % port, r.out, re.M)) == 30000, "tcptop: sent", r, o)
check(sum(int(n) for n in re.findall(r"^<- 127\.0\.0\.1 +%s 127\.0\.0\.1 +\d+ +(\d+)$" % port, r.out, re.M)) == 30000, "tcptop: received", r)

def oom():
    """A program that outgrows its cgroup; False where no cgroup can be made."""
    for group, limit in ("/sys/fs/cgroup/memory/descry-oom", "memory.limit_in_bytes"), ("/sys/fs/cgroup/descry-oom", "memory.max"):
        if not os.path.exists(os.path.dirname(group) + "/cgroup.procs"):
            continue
        try:
            os.mkdir(group)
            if not os.path.exists(group + "/" + limit):
                os.rmdir(group)
                continue
            open(group + "/" + limit, "w").write("20M")
            sh("echo $$ > %s/cgroup.procs; exec %s -c 'b = bytearray(60 << 20)'" % (group, sys.executable))
            for _ in range(100):
                try:
                    os.rmdir(group)
                    break
                except OSError: # the dead are still in it
                    time.sleep(0.05)
            return True
        except OSError as e:
            print("no cgroup:", e)
    return False


s = tracing("-s", "examples/oomkill.d")
made = oom()
time.sleep(0.5)
s[1].send_signal(signal.SIGINT)
r = finish(s)
check(r.rc == 0 and "waiting for memory to run short" in r.out, "oomkill: exit 0 after ^C", r)
if made:
    check(re.search(r"^\d{4} \w{3} +\d+ [\d:]{8} killed \d+ python3\S* \(\d+ MB\), while python3\S* \(\d+\) asked for memory; load \d+\.\d\d$", r.out, re.M), "oomkill", r)
done()
