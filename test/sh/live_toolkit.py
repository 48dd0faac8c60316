#!/usr/bin/env python3
# The scripts of examples/ that look at the whole machine, on a live kernel: each answers a program that does one known thing.
# serial
from live import *


def example(name, *args, c=None, **more):
    return descry("-s", "examples/%s.d" % name, *args, c=c, **more)


def until(name, command, *args, shows=None):
    """A script without an end: run the command when it traces, then ^C. shows: a script that prints by a tick has told what
    it saw. The kernel leaves a tick out that comes during a system call on a map on its CPU, descry's reading included."""
    path = tempfile.mktemp(dir=TMP)
    s = tracing("-s", "examples/%s.d" % name, *args, *(["-o", path] if shows else []))
    s[1].objects = path if shows else None  # finish() takes it for the output
    out = sh(command)
    end = time.monotonic() + 30
    while shows and time.monotonic() < end and not shows(open(path).read() if os.path.exists(path) else ""):
        time.sleep(0.1)
    if not shows:
        time.sleep(0.3)
    s[1].send_signal(signal.SIGINT)
    r = finish(s)
    check(r.rc == 0 and "rejects" not in r.err and "error" not in r.err, "%s: exit 0 after ^C" % name, r)
    return r, out


def rows(r, pattern):
    return [m.groups() for m in re.finditer("^" + pattern + "$", r if isinstance(r, str) else r.out, re.M)]


def buckets(text):
    return sum(map(int, re.findall(r"\|[ @]* +(\d+) *$", text, re.M)))


def part(r, title):
    """A distribution under its title, up to the next one."""
    m = re.search(r"^  %s\n(.*?)(?:\n\n|\Z)" % title, re.sub(r"\n\n +value", "\n value", r.out), re.M | re.S)
    return m.group(1) if m else ""


text = TMP + "/text"
open(text, "w").write("x" * 1233 + "\n")
DD = "dd if=/dev/zero of=%s/dd bs=64k count=20 oflag=direct; rm -f %s/dd" % (BUILD, BUILD)
PY = "/usr/bin/python3"

r, _ = until("rwsnoop", "cat %s" % text, "cat")
check((["1234"], ["0"]) == ([n for w, n, f in rows(r, r" *\d+ cat +([RW]) +(\d+) (\S+)") if f == text and n != "0"],
                            [n for w, n, f in rows(r, r" *\d+ cat +([RW]) +(\d+) (\S+)") if f == text and n == "0"]), "rwsnoop", r)

# cat's output may come in the middle of a line of descry's
r = example("dtruss", c="sh -c 'exec cat %s /nonexistent/name >/dev/null'" % text)
check(re.search(r'^ +(\d+)/\1 +\d+ openat\(0xffffff9c, "%s", 0x0\) = \d+$' % text, r.out, re.M), "dtruss: openat", r)
check(re.search(r'openat\(0xffffff9c, "/nonexistent/name", 0x0\) = -1 errno 2$', r.out, re.M), "dtruss: errno", r)
check(re.search(r"read\(0x[0-9a-f]+, 0x[0-9a-f]+, 0x[0-9a-f]+\) = 1234$", r.out, re.M), "dtruss: read", r)

r, _ = until("errinfo", "cat /nonexistent/name; cat /etc", "cat")
check(rows(r, r" *\d+ cat +openat +2 no such file or directory") and rows(r, r" *\d+ cat +read +21 is a directory"), "errinfo", r)

r, _ = until("statsnoop", "ls /nonexistent/name", "ls")
check(re.search(r"^ *\d+ ls +statx +2 /nonexistent/name$", r.out, re.M), "statsnoop", r)

r, _ = until("filebyproc", "cat %s; cat %s" % (text, text))
check(rows(r, r"cat +(\d+) %s" % text) == [("2",)], "filebyproc", r)

r, _ = until("syscallbysysc", LIVE + " syscalls 20000")
check(any(n == "getppid" and int(c) >= 20000 for n, c in rows(r, r"  (\w+) +(\d+)")), "syscallbysysc", r)
r, _ = until("syscallbyproc", LIVE + " syscalls 20000")
check(any(n == "tracee_live" and int(c) >= 70000 for n, c in rows(r, r"  (\S+) +(\d+)")), "syscallbyproc", r)
def reads(r):
    return rows(r, r"\d{4} \w{3} +\d+ [\d:]{8}") and any(n == "read" and int(c) > 1000 for n, c in rows(r, r"  (\w+) +(\d+)"))


def begun(r):
    return sum(int(n) for _, n in rows(r, r"\d{4} \w{3} +\d+ [\d:]{8} +(\d+) +(\d+)")) >= 5


r, _ = until("topsyscall", LIVE + " syscalls 400000", shows=reads)
check(reads(r), "topsyscall", r)
r, _ = until("pidpersec", "for i in 1 2 3 4 5; do /bin/true; done", shows=begun)
check(begun(r), "pidpersec", r)

r, _ = until("newproc", "sleep 0.2; sh -c 'exit 3'; timeout -s KILL 0.1 sleep 5")
check(any(200 <= int(ms) < 2000 for ms, in rows(r, r" *\d+ +\d+ +(\d+) +0 sleep 0.2")), "newproc: time", r)
check(rows(r, r" *\d+ +\d+ +\d+ +3 sh -c exit 3") and rows(r, r" *\d+ +\d+ +\d+ +-9 sleep 5"), "newproc: status", r)

r, _ = until("sigdist", "timeout -s USR1 0.1 sleep 5")
check(rows(r, r"timeout +sleep +10 +[12]"), "sigdist", r)

r, _ = until("setuids", PY + " -c 'import os; os.setuid(65534)'")
check(rows(r, r" *0 +65534 +\d+ +\d+ python3\S* +setuid"), "setuids", r)

r, o = until("bitesize", DD)
if "20+0" in o.stderr:
    d = part(r, r"\d+ dd")
    m = re.search(r"^ +65536 \|@+ +(\d+) *$", d, re.M)
    check(m and int(m.group(1)) >= 20, "bitesize", r)
    r, o = until("seeksize", DD)
    check(buckets(part(r, r"\d+ dd")) >= 19, "seeksize", r)

    def disks(r):
        return rows(r, r"(\S+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)")

    def written(r):
        return sum(int(x[8]) for x in disks(r)) >= 1280

    r, o = until("iopattern", DD, shows=written)
    check(written(r) and all(99 <= int(x[1]) + int(x[2]) <= 100 for x in disks(r) if int(x[3])), "iopattern", r)
else:
    print("no direct I/O here: bitesize, seeksize, iopattern not tested")

SOCKETS = """%s -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); a = s.accept()[0]
c.send(b"x" * 77); print(s.getsockname()[1], len(a.recv(100)))
c.close(); a.close(); s.close()
try: socket.create_connection(("127.0.0.1", 1))
except OSError: pass'""" % PY
r, o = until("tcpsnoop", SOCKETS)
port = (o.stdout.split() or ["none"])[0]
check(re.search(r"127\.0\.0\.1 +\d+ -> 127\.0\.0\.1 +%s +0 SYN\|$" % port, r.out, re.M), "tcpsnoop: SYN", r, o)
check(re.search(r"127\.0\.0\.1 +\d+ -> 127\.0\.0\.1 +%s +77 PSH\|ACK\|$" % port, r.out, re.M), "tcpsnoop: data", r)
check(re.search(r"127\.0\.0\.1 +%s <- 127\.0\.0\.1 +\d+ +77 " % port, r.out, re.M), "tcpsnoop: received", r)
r, o = until("tcpconn", SOCKETS)
port = (o.stdout.split() or ["none"])[0]
check(re.search(r" out +127\.0\.0\.1:\d+ +127\.0\.0\.1:%s$" % port, r.out, re.M), "tcpconn: out", r, o)
check(re.search(r" in +127\.0\.0\.1:%s +127\.0\.0\.1:\d+$" % port, r.out, re.M), "tcpconn: in", r)
check(re.search(r" refused +127\.0\.0\.1:\d+ +127\.0\.0\.1:1$", r.out, re.M), "tcpconn: refused", r)

# Eight processes fill and empty one pipe: its mutex is contended.
r, _ = until("lockbydist", PY + """ -c 'import os
r, w = os.pipe()
os.set_blocking(r, False); os.set_blocking(w, False)
for i in range(8):
    if not os.fork():
        for k in range(30000):
            try: os.write(w, b"x" * 4096)
            except BlockingIOError: pass
            try: os.read(r, 4096)
            except BlockingIOError: pass
        os._exit(0)
for i in range(8): os.wait()'""")
m = re.search(r"^waits: (\d+), (\d+) ns in all$", r.out, re.M)
# a firing on the way when the script ends may be in one of the aggregations alone
check(m and abs(int(m.group(1)) - buckets(r.out)) <= os.cpu_count() and buckets(r.out) > 0, "lockbydist", r)

r, _ = until("hotkernel", "dd if=/dev/zero of=/dev/null bs=1M count=3000")
t = rows(r, r"(\S+`\S+) +(\d+)")
m = re.search(r"^(\d+) samples$", r.out, re.M)
check(t and m and int(m.group(1)) >= sum(int(n) for _, n in t) > 50, "hotkernel", r)

r, _ = until("cpuwalk", "taskset -c 0 %s spin 400" % LIVE)
check(re.search(r"^ +0 \|@{40} +\d{3} *$", part(r, r"\d+ tracee_live"), re.M), "cpuwalk", r)

r, _ = until("dispqlen", "for i in 1 2 3 4 5 6 7 8; do %s spin 100 & done; wait" % LIVE)
check(any(int(v) >= 2 and int(n) > 0 for v, n in re.findall(r"^ +(\d+) \|[ @]* +(\d+) *$", r.out, re.M)), "dispqlen", r)

def seconds(r):
    t = [tuple(map(int, x)) for x in rows(r, " *" + r" +".join([r"(\d+)"] * 9))]
    return t and sum(x[6] for x in t) > 70000 and sum(x[0] for x in t) > 20 and sum(x[8] for x in t) > 0


r, _ = until("vmstat", LIVE + " syscalls 20000", shows=seconds)
check(seconds(r), "vmstat", r)

r = example("mallocs", c=LIVE + " malloc 500")
n = numbers(r.out)
m = re.search(r"^bytes still held: (\d+)$", r.out, re.M)
asked = [int(x) for x in re.findall(r"malloc\+0x0\n(?:tracee_live`.*\n)+(?:.*`.*\n)* +(\d+)\n", r.out)]
check(n["large"] * (256 << 10) in asked, "mallocs: asked", asked, r)
check(m and int(m.group(1)) < 256 << 10, "mallocs: held", r)

LOCKS = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *waiter(void *a) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return a; }
int main(void) { pthread_t t; pthread_mutex_lock(&m); pthread_create(&t, 0, waiter, 0); usleep(100000); pthread_mutex_unlock(&m); return pthread_join(t, 0); }
"""
open(TMP + "/locks.c", "w").write(LOCKS)
subprocess.run(["cc", "-O1", "-o", TMP + "/locks", TMP + "/locks.c", "-pthread"], check=True)
r = example("plockstat", c=TMP + "/locks")
check(any(n == "1" and 1000 < int(us) < 2000000 for n, us in rows(r, r" +(\d+) +(\d+) +0x[0-9a-f]+ +locks`waiter.*")), "plockstat", r)

# every script has its purpose in a comment
for name in sorted(n for n in os.listdir("examples") if n.endswith(".d")):
    head = open("examples/" + name).read().split("\n", 2)
    check(head[0] == "#!/usr/bin/env -S descry -s" and head[1].startswith("/* "), name, "begins with what it is for")
done()
