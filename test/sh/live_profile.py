#!/usr/bin/env python3
# descry profile: samples of a command, of a process and of everything, in every format; the ends of stacks, and the
# processes that are counted.
# serial
from live import *
import gzip

C = r"""
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void leaf(void) { for (int i = 0; i < 1000; i++) sink += i; }
__attribute__((noinline)) static void left(void) { leaf(); sink++; }
__attribute__((noinline)) static void right(void) { leaf(); leaf(); leaf(); sink++; }
__attribute__((noinline)) static void both(void) { left(); right(); sink++; }
static void *thread(void *arg) { prctl(PR_SET_NAME, "worker"); for (;;) both(); return arg; }
__attribute__((noinline)) static int deep(int n) { int r = n ? deep(n - 1) + 1 : (leaf(), 0); sink++; return r; }
int main(int argc, char **argv)
{
	pthread_t t;
	while (argc > 3 && clock() < CLOCKS_PER_SEC) both();
	if (argc > 3) return 0;
	if (argc > 2) for (;;) deep(500);
	if (argc > 1) pthread_create(&t, 0, thread, 0);
	for (;;) both();
}
"""
exe = TMP + "/profiled"
subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", "-x", "c", "-o", exe, "-"],
               input=C.encode(), check=True)


def profile(*options, rc=0):
    return descry("profile", *options, rc=rc)


def folded(text):
    return {k: int(n) for k, n in (l.rsplit(" ", 1) for l in text.splitlines())}


r = profile("-F", "499", "-t", "1.5", "--folded", "-c", exe)
if "not permitted" in r.err or "privilege" in r.err:
    skip(r.err.strip().splitlines()[-1])
got = folded(r.out)
total = sum(got.values())
summary = re.search(r"(\d+) samples in ([\d.]+) s at 499 Hz, (\d+) distinct stacks, 0 lost", r.err)
check(summary and int(summary.group(1)) == total and total > 50, "samples and summary", r.err, total)
user = {k: n for k, n in got.items() if ";main;both" in k}
check(sum(user.values()) > 0.85 * total, "stacks to main", [k for k in got if k not in user][:9])
right = sum(n for k, n in user.items() if ";both;right;leaf" in k)
left = sum(n for k, n in user.items() if ";both;left;leaf" in k)
check(left and 1.5 < right / left < 8, "right runs three times as often as left", left, right)
check(all(k.startswith("profiled;") for k in user), "the command is the root", list(user)[:3])

p = subprocess.Popen([exe, "thread"])
atexit.register(p.kill)
r = profile("-F", "499", "-t", "1", "--folded", "--tid", "-p", str(p.pid))
roots = {k.split(";")[0] for k in folded(r.out)}
check(any(re.match(r"worker-\d+$", k) for k in roots) and "profiled-%d" % p.pid in roots, "threads", roots)
r = profile("-F", "499", "-t", "1", "--folded", "--pid", "--comm", "worker", "-p", str(p.pid))
check({k.split(";")[0] for k in folded(r.out)} == {"worker-%d" % p.pid}, "--comm", r.out[:300])
r = profile("-F", "499", "-t", "1", "--folded", "--user", "--module", "-p", str(p.pid))
check(r.out and all("profiled`leaf" in k or "profiled`" in k for k in folded(r.out)), "--user --module", r.out[:300])
p.kill()

# every format, from its name; the command runs for a second of its own time
for name in "a.txt", "a.folded", "a.json", "a.svg", "a.html", "a.pb.gz", "a.speedscope.json":
    path = os.path.join(TMP, name)
    profile("-F", "499", "-q", "-o", path, "-c", exe + " for a while")
    data = open(path, "rb").read()
    if name == "a.json":
        j = json.loads(data)
        check(j["samples"] == j["tree"]["value"] and j["hz"] == 499 and j["user_stacks"]["root"] > 0, "json", data[:300])
    elif name.endswith(".speedscope.json"):
        j = json.loads(data)
        check(any(f["name"] == "leaf" for f in j["shared"]["frames"]), "speedscope", data[:300])
    elif name.endswith(".gz"):
        check(b"leaf" in gzip.decompress(data), "pprof")
    else:
        check(b"leaf" in data, name, data[:300])
    if name == "a.txt":
        check(re.search(rb"^ +[\d.]+% +[\d.]* *%? +\d+ +- right$", data, re.M), "text tree", data[:2000])

# a stack that is too deep is marked; the program's own depth exceeds the limit
r = profile("-F", "499", "-t", "0.5", "--folded", "-c", exe + " x deep")
check("deeper than 127 frames" in r.err, "too deep is said", r.err)
check(any(k.count(";deep") > 100 for k in folded(r.out)), "deep stacks are there")

# ^C prints the samples so far
t = subprocess.Popen([DESCRY, "profile", "-c", exe, "--folded"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
time.sleep(1.5)
t.send_signal(signal.SIGINT)
out, err = t.communicate(timeout=10)
check(t.returncode == 0 and "leaf" in out, "^C prints the results", t.returncode, err)

# ^C twice while it does not get to run in between: nothing is written over the old file, and this is reported
before = TMP + "/before.folded"
open(before, "w").write("kept 1\n")
t = subprocess.Popen([DESCRY, "profile", "-c", exe, "--folded", "-o", before], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
time.sleep(1.5)
subprocess.run(["gdb", "-q", "-batch", "-p", str(t.pid), "-ex", "handle SIGINT nostop noprint pass", "-ex", "call (int)raise(2)", "-ex", "shell sleep 0.3", "-ex", "call (int)raise(2)"],
               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
out, err = t.communicate(timeout=10)
check(t.returncode == 1 and "interrupted a second time" in err and open(before).read() == "kept 1\n", "^C twice", t.returncode, err)

# marks in text, too; names of any bytes stay in their line
busy = "import ctypes\nctypes.CDLL(None).prctl(15, b'a\\nb;c')\nimport os\nwhile 1: os.stat('/')"
p = subprocess.Popen(["/usr/bin/python3", "-c", busy])
atexit.register(p.kill)
time.sleep(0.5)
r = profile("-F", "499", "-t", "1", "--marks", "-p", str(p.pid))
check(re.search(r"do_syscall_64_\[k\]$", r.out, re.M), "--marks in text", r.out[:900])
r = profile("-F", "499", "-t", "0.5", "--folded", "-p", str(p.pid))
check(r.out and all(l.startswith("a?b:c;") for l in r.out.splitlines()), "a line feed in a name", r.out[:300])
r = profile("-F", "499", "-t", "9", "-o", TMP, "-p", str(p.pid), rc=1)
check(TMP in r.err and "directory" in r.err and r.secs < 5, "-o FOLDER", r)

for bad in (["-F", "0", "-a"], ["-a", "-p", "1"], [], ["-t", "x", "-a"], ["--colors", "none", "-a"], ["-c", exe, "word"]):
    profile(*bad, rc=2)
r = profile("-c", "/nonexistent/x", rc=1)
r = profile("-p", "999999999", rc=1)
done()
