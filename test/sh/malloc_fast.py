#!/usr/bin/env python3
# descry malloc record by a preloaded library: counts equal what the programs do, also across threads, forks, signals and filters of system
# calls; the program outlives a tracer that is killed, stopped, or out of disk, and the file is valid up to there.
import resource

from live import *

ALLOCS = os.path.join(BUILD, "test", "tracee_allocs")
TRACEE = os.path.join(BUILD, "test", "tracee_recorded")
FILE = os.path.join(TMP, "a.dma")


def report(*args):
    p = subprocess.run([DESCRY, "malloc", "report", "--json", *args, FILE], capture_output=True, text=True)
    return json.loads(p.stdout) if check(p.returncode == 0, "report", p.stderr) else {}


def record(*command, rc=0, options=(), said="", **more):
    p = subprocess.run([DESCRY, "malloc", "record", "-o", FILE, *options, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    check(p.returncode == rc and said in p.stderr, "exit", p.returncode, command, p.stdout[-500:], p.stderr[-2000:])
    check("recording by probes" not in p.stderr, "by the library", p.stderr)
    return report()


def exact(r, what, **want):
    want = dict(lost=0, unknown=0, replaced=0, complete=True, **want)
    check(all(r.get(k) == v for k, v in want.items()), what, {k: (r.get(k), v) for k, v in want.items() if r.get(k) != v})


# the kinds that the recording by probes is tested with, too
total = sum(10 << i for i in range(21)) + 33 + 36
exact(record(ALLOCS, "none"), "none", malloc=0, calloc=0, free=0)
exact(record(ALLOCS, "plain"), "plain", malloc=1000, free=900, allocated_bytes=100000, live=100, live_bytes=10000)
exact(record(ALLOCS, "calloc"), "calloc", calloc=100, free=100, allocated_bytes=8000, live=0, temporary=100)
exact(record(ALLOCS, "realloc"), "realloc", realloc_from=20, free=3, allocated=23, allocated_bytes=total, live=0, peak_bytes=10 << 20)
exact(record(ALLOCS, "aligned"), "aligned", aligned=31, free=31, allocated_bytes=10 * (1000 + 1024 + 77) + 5, live=0)
exact(record(ALLOCS, "fails"), "fails", malloc=3, failed=3, allocated=0)
exact(record(ALLOCS, "threads"), "threads", malloc=10000, free=10000, freed_elsewhere=10000, threads=3)

# threads that hand blocks over at once, that come and go, that are more than there are rings; a program that is faster than the tracer
exact(record(TRACEE, "passed", "20000"), "passed", malloc=80000, free=80000, freed_elsewhere=80000, threads=5)
# one thread's allocator gives at once what another has freed
SHARED = dict(os.environ, MALLOC_ARENA_MAX="1", GLIBC_TUNABLES="glibc.malloc.tcache_count=0")
exact(record(TRACEE, "passed", "50000", env=SHARED), "passed by one heap", malloc=200000, free=200000, freed_elsewhere=200000, threads=5)
exact(record(TRACEE, "churn", "300"), "churn", malloc=3000, free=3000)
r = record(TRACEE, "crowd", "600")
check(r["malloc"] + r["free"] + r["calloc"] + r["lost"] == 600 * 20 + 600 and r["lost"] > 0 and r["complete"], "crowd", r)
exact(record(TRACEE, "busy", "200000"), "busy", malloc=200000, live=64)

# alone: a child is not recorded; handlers on a stack of their own are, and those that do not return
exact(record(TRACEE, "forks", options=["--alone"], said="the program has forked "), "forks", malloc=200, free=0)
# nor does it have the recording's memory, and a child that is recorded has other memory than its parent
MAPS = os.path.join(TMP, "maps.")
for options in ["--alone"], []:
    record(sys.executable, "-c", "import os\nchild = not os.fork()\nopen(%r + 'pc'[child], 'w').write(open('/proc/self/maps').read())\nchild or os.wait()" % MAPS,
           options=options)
    inodes = [set(re.findall(r"(\d+) */memfd:descry-malloc ", open(MAPS + who).read())) for who in "pc"]
    check(len(inodes[0]) == 1 and len(inodes[1]) == (not options) and not inodes[0] & inodes[1], "memory of a child", options, inodes)
exact(record(TRACEE, "signals"), "signals", malloc=200, free=0)
exact(record(TRACEE, "jumps"), "jumps", malloc=100, free=0)

# memory that the program maps itself, not its allocator; a replay does without
r = record(TRACEE, "maps")
M = 1 << 20
exact(r, "maps", malloc=1, live_bytes=M, map_calls=13, failed=0)
mapped = {m["kind"]: (m["bytes"], m["peak_bytes"], m["live_bytes"]) for m in r["mapped"]}
# a mremap(2) that fails takes the range out and puts it in again
check(mapped == {"anonymous": (6 * M + 8192, 7 * M // 2 + 8192, 7 * M // 2 + 4096), "reserved": (16 * M, 16 * M, 15 * M), "files": (8192, 8192, 0)},
      "mapped", mapped)
p = subprocess.run([DESCRY, "malloc", "replay", "--json", "--runs", "1", FILE], capture_output=True, text=True)
check(p.returncode == 0 and json.loads(p.stdout)["live_peak_bytes"] == M and json.loads(p.stdout)["skipped"] == 0, "replay of maps", p)
record(TRACEE, "maps", options=["-k", "9"])
FOLDED = os.path.join(TMP, "m.folded")
p = subprocess.run([DESCRY, "malloc", "report", "--of", "mapped", "-o", FOLDED, FILE], capture_output=True, text=True)
stacks = open(FOLDED).read()
check(p.returncode == 0 and sum(int(line.split()[-1]) for line in stacks.splitlines() if "maps" in line) == 6 * M + 8192, "stacks of maps", p, stacks)

# no system call where a filter would end the program, and no tick where they are forbidden
exact(record(TRACEE, "filter", "100000"), "filter", malloc=100001, free=100000)
exact(record(TRACEE, "strict", "1000", said="has forbidden itself the processor's counter"), "strict", malloc=1, free=0)

# the environment is what it was; the status is the program's; what cannot be loaded into is recorded by probes
p = subprocess.run([DESCRY, "malloc", "record", "-o", FILE, "sh", "-c", "echo \"${LD_PRELOAD-none} ${DESCRY_MALLOC-none}\"; ls /proc/self/fd | wc -l; exit 7"],
                   capture_output=True, text=True, stdin=subprocess.DEVNULL)
want = subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l"], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
check(p.returncode == 7 and p.stdout == "none none\n" + want, "environment", p, want)
p = subprocess.run([DESCRY, "malloc", "record", "-o", FILE, os.path.join(TMP, "no")], capture_output=True, text=True)
check(p.returncode == 1 and "cannot run" in p.stderr, "no such command", p)
p = subprocess.run([DESCRY, "malloc", "record", "-o", os.path.join(TMP, "no", "f"), ALLOCS, "plain"], capture_output=True, text=True)
check(p.returncode == 1 and "No such file" in p.stderr, "no such folder", p)

# C++: all forms count once, and operator new throws through the library
if shutil.which("c++"):
    with open(os.path.join(TMP, "n.cc"), "w") as f:
        f.write("""#include <new>
#include <cstdio>
#include <cstdint>
struct alignas(64) Wide { char b[192]; };
int main() { int caught = 0;
  for (int i = 0; i < 10; i++) { int *volatile p = new int; delete p; int *volatile a = new int[10]; delete[] a;
    Wide *volatile w = new Wide; delete w; Wide *volatile v = new Wide[2]; delete[] v;
    int *volatile q = new (std::nothrow) int; operator delete(q, std::nothrow); }
  volatile size_t much = SIZE_MAX / 4;
  for (int i = 0; i < 5; i++) try { char *volatile p = new char[much]; delete[] p; } catch (const std::bad_alloc &) { caught++; }
  for (int i = 0; i < 3; i++) { int *volatile p = new int; delete p; }
  return caught; }""")
    check(subprocess.run(["c++", "-std=c++17", "-O1", "-o", os.path.join(TMP, "n"), os.path.join(TMP, "n.cc")]).returncode == 0, "c++")
    plain = subprocess.run([os.path.join(TMP, "n")]).returncode
    r = record(os.path.join(TMP, "n"), rc=plain)
    exact(r, "c++", aligned=20)
    # 5 more are exceptions; the runtime's own pool for them is never freed
    check(plain == 5 and r["free"] == 53 + 5 and r["failed"] == 5 and r["malloc"] == 33 + 5 + 5 + r["live"],
          "c++", r["malloc"], r["free"], r["live"], r["failed"])

# blocks that one thread reallocates after the other
if shutil.which("cc"):
    with open(os.path.join(TMP, "mv.c"), "w") as f:
        f.write("""#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
static _Atomic(void *) slot[4];
static void *run(void *a) { long me = (long)a;
  for (int i = 0; i < 500; i++) { void *p, *none; while (!(p = atomic_exchange(&slot[me], NULL))) sched_yield();
    p = realloc(p, 16 + (size_t)(i * 7919 + me * 31) % 3000);
    while (none = NULL, !atomic_compare_exchange_strong(&slot[(me + 1) % 4], &none, p)) sched_yield(); }
  return NULL; }
int main(void) { pthread_t t[4]; for (int i = 0; i < 2; i++) slot[i] = malloc(100);
  for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, run, (void *)i);
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  for (int i = 0; i < 4; i++) free(slot[i]);
  return 0; }""")
    check(subprocess.run(["cc", "-O1", "-o", os.path.join(TMP, "mv"), os.path.join(TMP, "mv.c"), "-lpthread"]).returncode == 0, "cc")
    for env in os.environ, SHARED:
        exact(record(os.path.join(TMP, "mv"), env=env), "realloc in turn", realloc=2000, realloc_from=2000, malloc=2, free=2)

# an allocator that is preloaded is recorded, and used
for lib in [l for l in ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0", "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4") if os.path.exists(l)]:
    r = record(ALLOCS, "plain", "realloc", "aligned", env=dict(os.environ, LD_PRELOAD=lib))
    check(r["malloc"] >= 1001 and r["aligned"] == 31 and r["unknown"] == 0 and r["lost"] == 0, lib, r)
# libraries that are loaded later
if shutil.which("python3"):
    r = record("python3", "-c", "import json, ctypes, sqlite3, decimal")
    check(r["lost"] == r["unknown"] == r["replaced"] == 0 and r["malloc"] > 100, "python3", r)

# the merge gives the replay the same peak
record(TRACEE, "passed", "5000")
p = subprocess.run([DESCRY, "malloc", "replay", "--json", "--runs", "1", FILE], capture_output=True, text=True)
r = report()
check(json.loads(p.stdout)["live_peak_bytes"] == r["peak_bytes"] and json.loads(p.stdout)["skipped"] == 0, "replay", p, r["peak_bytes"])

# with the same allocator, a replay takes as much memory as the program did, by the program's own count
p = subprocess.run([DESCRY, "malloc", "record", "-o", FILE, TRACEE, "grows", "200000"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
r = report()
grown = int(p.stdout) * 1024
p = subprocess.run([DESCRY, "malloc", "replay", "--json", "--runs", "1", "--with", "glibc", FILE], capture_output=True, text=True)
played = json.loads(p.stdout)
check(played["live_peak_bytes"] == played["allocators"][0]["live_peak_bytes"] == r["peak_bytes"] > 20 << 20, "the peak", r["peak_bytes"], played)
near(played["allocators"][0]["rss_peak_bytes"], grown, 0.1, "resident memory of a replay")


def begin(*command):
    if os.path.exists(FILE):
        os.unlink(FILE)
    d = subprocess.Popen([DESCRY, "malloc", "record", "-o", FILE, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    kill_at_end(d)
    return d


def wait_for_blocks(d, size=5000):
    while not (os.path.exists(FILE) and os.stat(FILE).st_size > size) and d.poll() is None:
        time.sleep(0.002)


# the tracer is killed, DESCRY_TORTURE times: the program goes on to its end, and the file is valid up to its last block
for i in range(int(os.environ.get("DESCRY_TORTURE", "3"))):
    d = begin(TRACEE, "busy", "20000000")
    wait_for_blocks(d, 50000)  # beyond the names of files
    time.sleep(i % 50 / 1000)  # at another instant each time
    d.kill()
    check(d.communicate()[0] == "end\n", "the program ends", i)
    r = report()
    check(r and r["damage"] is None and r["malloc"] > 100 and r["unknown"] == 0 and (i > 9 or not r["complete"]), "killed", r)

# it is stopped: the program waits a while, and then goes on; all that is lost is counted
d = begin(TRACEE, "busy", "1500000")
wait_for_blocks(d)
d.send_signal(signal.SIGSTOP)
check(d.stdout.readline() == "end\n", "the program does not wait for ever")
d.send_signal(signal.SIGCONT)
out, err = d.communicate()
m = re.search(r"(\d+) calls\n.*?(\d+) calls were lost", err, re.S)
check(d.returncode == 0 and m and int(m[1]) + int(m[2]) == 3000000 - 64, "stopped", d.returncode, err)
check(report()["lost"] == int(m[2]) if m else False, "the file has the losses")

# no room for the file: as for a tracer that ends
d = begin(TRACEE, "busy", "1500000")
wait_for_blocks(d)
resource.prlimit(d.pid, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
out, err = d.communicate()
m = re.search(r"(\d+) of (\d+) calls are in the file", err)
check(out == "end\n" and d.returncode == 1 and "File too large" in err and m and 0 < int(m[1]) < int(m[2]), "a limit", out, err)
check(not report()["complete"], "valid up to there")

# ^C
d = begin(TRACEE, "waits")
check(d.stdout.readline() == "ready\n", "ready")
d.send_signal(signal.SIGINT)
out, err = d.communicate()
check(d.returncode == 0 and report()["complete"], "^C", d.returncode, err)

# damage
record(TRACEE, "passed", "3000")
data = open(FILE, "rb").read()
for name, bad in {"cut": data[:-5], "flip": data[:300] + bytes([data[300] ^ 1]) + data[301:]}.items():
    with open(FILE, "wb") as f:
        f.write(bad)
    p = subprocess.run([DESCRY, "malloc", "report", FILE], capture_output=True, text=True)
    check(p.returncode == 1 and "block at byte" in p.stderr, "damage", name, p)
    r = report("--salvage")
    check(not r["complete"] and "block at byte" in r["damage"], "salvaged", name, r)
done()
