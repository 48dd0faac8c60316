#!/usr/bin/env python3
# descry malloc: what is recorded equals what tracee_allocs does; stacks, attaching, a recording that was killed, damaged files.
import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from checks import *

DESCRY = os.environ["DESCRY"]
TRACEE = os.path.join(os.environ["BUILD"], "test", "tracee_allocs")
TMP = tempfile.mkdtemp(prefix="descry-malloc-")
atexit.register(shutil.rmtree, TMP, True)
os.environ["TMPDIR"] = TMP
FILE = os.path.join(TMP, "a.dma")


def stopped_player(p):
    """Stops the process that plays for a replay. Returns None when the replay has ended before."""
    while p.poll() is None:
        with open("/proc/%d/task/%d/children" % (p.pid, p.pid)) as f:
            child = f.read().strip()
        try:
            os.kill(int(child), signal.SIGSTOP)
            while process_state(child) not in "TZX":
                pass
            with open("/proc/%s/maps" % child) as f:
                if "descry-replay" in f.read():  # it has the operations
                    return int(child)
            os.kill(int(child), signal.SIGCONT)
        except (ValueError, ProcessLookupError, FileNotFoundError):
            pass
    return None


def process_state(pid):
    with open("/proc/%s/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def wait_until(condition, what):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    check(False, what)


def malloc(*args, rc=0):
    p = subprocess.run([DESCRY, "malloc", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == rc, "exit", p.returncode, p.args, p.stdout[-2000:], p.stderr)
    if args[:1] == ("record",) and os.path.exists(FILE):
        check(os.stat(FILE).st_mode & 0o777 == 0o600, "others cannot read it", oct(os.stat(FILE).st_mode))
    return p


def report(*args, file=FILE):
    return json.loads(malloc("report", "--json", *args, file).stdout)


def record(*kinds, options=()):
    """A recording without losses: a machine that is too busy gets some more tries."""
    for _ in range(5):
        r = malloc("record", "-o", FILE, "-X", "bufsize=32m", *options, TRACEE, *kinds)
        if "were lost" not in r.stderr:
            return report()
    skip("this machine is too busy to record without losses")


none = record("none")
check(none["complete"] and none["lost"] == 0 and none["unknown"] == 0 and none["replaced"] == 0, none)


def more(kind, **want):
    """What a kind adds to a run without any."""
    r = record(kind)
    for name, n in want.items():
        check(r[name] - none[name] == n, kind, name, r[name] - none[name], "not", n)
    # a thread that ends frees the blocks of its cache once more
    check(r["unknown"] <= (20 if kind == "threads" else 0) and r["replaced"] == 0, kind, r)
    return r


more("plain", malloc=1000, free=900, allocated_bytes=100000, live=100, live_bytes=10000)
more("calloc", calloc=100, free=100, allocated_bytes=8000, live=0, temporary=100)
total = sum(10 << i for i in range(21)) + 33 + 36
r = more("realloc", realloc_from=20, free=3, allocated=23, allocated_bytes=total, live=0)
check(r["peak_bytes"] >= 10 << 20, "the peak of realloc", r)
more("aligned", aligned=31, free=31, allocated_bytes=10 * (1000 + 1024 + 77) + 5, live=0)
more("fails", malloc=3, failed=3, allocated=0)
r = more("threads", malloc=10000, freed_elsewhere=10000)
check(r["threads"] == 3, "threads", r)
r = more("kept", malloc=7, live=7, live_bytes=7 * 12345)

# stacks: what lives at the end, as text, folded, as a picture
r = record("plain", "kept", options=("-k", "16"))
end = [s for s in r["end_stacks"] if s["value"] == 7 * 12345]
check(len(end) == 1 and end[0]["blocks"] == 7, "end", r["end_stacks"])
check([f.split("`")[-1] for f in end[0]["frames"][:3]] == ["malloc", "keep", "main"], "stack", end)
peak = [s["value"] for s in r["peak_stacks"]]
check(sum(peak) == r["peak_bytes"], "the stacks of the peak are all of it", peak, r["peak_bytes"])
text = malloc("report", FILE).stdout
check(re.search(r"^at the end:\n  86\.4 kB in 7 blocks\n      libc.so.6`malloc\n      tracee_allocs`keep\n", text, re.M), text)
folded = os.path.join(TMP, "out.folded")
malloc("report", "--of", "end", "-o", folded, FILE)
lines = open(folded).read().splitlines()
check(any(re.search(r"tracee_allocs`main;tracee_allocs`keep;libc.so.6`malloc 86415$", line) for line in lines), lines)
check(sum(int(line.rsplit(" ", 1)[1]) for line in lines) == r["live_bytes"], "folded", lines)
malloc("report", "--of", "peak", "-o", os.path.join(TMP, "out.svg"), FILE)
check("tracee_allocs`plain" in open(os.path.join(TMP, "out.svg")).read(), "the picture has the function")

check(all(s["value"] <= s["temporary"] for s in r["temporary_stacks"]) and "shared_lines" in end[0], "temporary", r)
check({c["name"]: c["peak_waste_bytes"] > 0 for c in r["size_classes"]} == {"glibc": True, "jemalloc": True, "mimalloc": True}, "waste", r)
check(re.search(r"^glibc .* %$", text, re.M), "size classes in text", text)
# the page has everything in itself, and says what it lacks
page = os.path.join(TMP, "page.html")
malloc("report", "-o", page, FILE)
html = open(page).read()
check(html.count("<iframe ") == 6 and "tracee_allocs`keep" in html and "Live bytes over time" in html, "page", len(html))
check(not re.search(r"""(src|href)=["']?(https?:)?//""", html) and "default-src 'none'" in html, "no outside requests")
malloc("report", "--of", "temporary", "-o", page, FILE)
check("<iframe" not in open(page).read(), "--of: one flame graph")

# diff: sums, sizes, stacks by their difference; a stack of one side only; nothing to show when they are the same
before = FILE + ".before"
record("plain", options=("-k", "8"))
os.rename(FILE, before)
record("plain", "plain", "kept", options=("-k", "8"))
d = json.loads(malloc("diff", "--json", "--of", "end", before, FILE).stdout)
check(d["allocated"][1] - d["allocated"][0] == 1007 and d["live_bytes"][1] - d["live_bytes"][0] == 10000 + 86415, "sums", d)
check([s["values"] for s in d["stacks"]] == [[0, 86415], [10000, 20000]], "stacks", d["stacks"])
check("keep" in d["stacks"][0]["frames"][1] and d["complete"] == [True, True], "frames", d)
text = malloc("diff", before, FILE).stdout
check(re.search(r"^allocated, blocks +\d+ +\d+ +\+1007$", text, re.M) and "+100.0 kB: 100.0 kB in 1000 blocks, 200.0 kB in 2000" in text, text)
check(re.search(r"^ +16384 +0 +7 +\+7$", text, re.M), text)
text = malloc("diff", FILE, before).stdout
check("-86.4 kB: 86.4 kB in 7 blocks, 0 bytes in 0" in text, text)
check("stacks that differ" not in malloc("diff", FILE, FILE).stdout, "the same")
for args in [("diff", FILE), ("diff", "--of", "x", FILE, FILE), ("diff", "-o", "x.svg", FILE, FILE)]:
    malloc(*args, rc=2)
malloc("diff", FILE, FILE + "none", rc=1)

# replay: the same calls, the same peak; a library that is built here; what is missing or no allocator is said
record("plain", "realloc", "aligned", "threads", "kept", options=("-k", "4"))
r = report()
want = r["malloc"] + r["calloc"] + r["aligned"] + r["realloc"] + r["free"] - r["unknown"] - r["failed"]
source = os.path.join(TMP, "bump.c")
with open(source, "w") as f:
    f.write("""#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
static char *at, *end;
static void *get(size_t n, size_t a) { size_t need = n + a + 16; char *p; if (need > (size_t)(end - at)) { size_t m = need > (64 << 20) ? need : 64 << 20;
  at = mmap(0, m, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); if (at == MAP_FAILED) return 0; end = at + m; }
  p = (char *)(((size_t)at + 16 + a - 1) & ~(a - 1)); at = p + n; ((size_t *)p)[-1] = n; return p; }
void *malloc(size_t n) { return get(n, 16); }
void *calloc(size_t a, size_t b) { return get(a * b, 16); }
void free(void *p) { }
void *realloc(void *p, size_t n) { void *q = get(n, 16); if (q && p) memcpy(q, p, ((size_t *)p)[-1] < n ? ((size_t *)p)[-1] : n); return q; }
int posix_memalign(void **p, size_t a, size_t n) { *p = get(n, a < 16 ? 16 : a); return *p ? 0 : 12; }
""")
bump = os.path.join(TMP, "libbump.so")
with_ = ["glibc"] + ([bump] if not subprocess.run(["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", bump, source]).returncode else [])
installed = [n for n in ("jemalloc", "tcmalloc", "mimalloc") if "not installed" not in
             subprocess.run([DESCRY, "malloc", "replay", "--runs", "1", "--with", n, FILE], capture_output=True, text=True).stderr]
for name in {"jemalloc", "tcmalloc", "mimalloc"} - set(installed):
    check("apt-get install lib" in malloc("replay", "--with", name, FILE, rc=1).stderr, "the package is named", name)
p = json.loads(malloc("replay", "--json", "--runs", "2", "--with", ",".join(with_ + installed), FILE).stdout)
check(p["calls"] == want, "replayed calls", p["calls"], want)
check(p["live_peak_bytes"] == r["peak_bytes"], "the peak", p["live_peak_bytes"], r["peak_bytes"])
check([os.path.basename(a["name"]) for a in p["allocators"]] == [os.path.basename(w) for w in with_ + installed], p)
for a in p["allocators"]:
    check(len(a["ns"]) == 2 and a["failed"] == 0 and a["rss_peak_bytes"] >= a["rss_mean_bytes"] > 0, a)
    check(a["rss_peak_bytes"] > r["peak_bytes"] * 0.9, "every page was touched", a, r["peak_bytes"])
check(p["allocators"][0]["library"].endswith("libc.so.6"), p["allocators"][0])
check(len(with_) == 1 or p["allocators"][1]["rss_peak_bytes"] > p["allocators"][0]["rss_peak_bytes"], "an allocator that frees nothing", p)
check(re.search(r"^ALLOCATOR .*\nglibc +[\d.]+ ", malloc("replay", FILE).stdout, re.M), "table")
kept = malloc("replay", "--memory", "1", "--with", "glibc", FILE, rc=1).stderr
check("glibc: it keeps more than 1 MB" in kept and len(kept.splitlines()) == 1, "--memory", kept)
# the process that plays ends with the one that waits for it, however that ends
replays = subprocess.Popen([DESCRY, "malloc", "replay", "--runs", "1000", "--with", "glibc", FILE], stdout=subprocess.DEVNULL)
player = stopped_player(replays)
check(player, "a process plays", replays.poll())
replays.kill()
replays.wait()
deadline = time.monotonic() + 60
while player and os.path.exists("/proc/%d" % player) and time.monotonic() < deadline:
    time.sleep(0.01)
check(not player or not os.path.exists("/proc/%d" % player), "the process that plays has ended")
# the threads of the recording, its speed, every page touched, a picture; wrong values
check([x["live_peak_bytes"] for x in p["allocators"]] == [r["peak_bytes"]] * len(p["allocators"]), "the peak as it was played", p)
check(all(x["course"] and x["p50_ns"] <= x["p99_ns"] <= x["p999_ns"] <= x["most_ns"] for x in p["allocators"]), "calls and course", p)
picture = os.path.join(TMP, "rss.svg")
p = json.loads(malloc("replay", "--json", "--runs", "1", "--threads", "same", "--speed", "recorded", "--touch", "--picture", picture, FILE).stdout)
# one of the two threads may end before the other makes its first call: then they share a lane
check(p["threads"] in (2, 3) and p["calls"] == want and p["speed"] == "recorded" and p["touch"], "as recorded", p)
check(p["allocators"][0]["name"] == "glibc" and all(x["failed"] == 0 for x in p["allocators"]), "installed ones", p)
svg = open(picture).read()
check(svg.count("<polyline") == 1 + len(p["allocators"]) and ">live bytes<" in svg, svg)
for args in [("--threads", "2"), ("--speed", "fast")]:
    malloc("replay", *args, FILE, rc=2)
malloc("replay", "--runs", "1", "--with", "glibc", "--picture", os.path.join(TMP, "no", "dir.svg"), FILE, rc=1)
libm = next((x for x in ("/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6") if os.path.exists(x)), None)
check(not libm or "does not define it" in malloc("replay", "--with", libm, FILE, rc=1).stderr, "libm")
for args in [("--with", "nomalloc", FILE), ("--with", "", FILE), ("--runs", "0", FILE), ()]:
    malloc("replay", *args, rc=2)
text = malloc("compare", "--runs", "1", TRACEE, "plain").stdout
check("ALLOCATOR" in text and not [f for f in os.listdir(TMP) if f.startswith("descry-malloc-")], "compare removes its file", text)

# a running process; descry is killed: the file ends behind its last block
p = subprocess.Popen([TRACEE, "endless"], stdout=subprocess.PIPE, text=True)
kill_at_end(p)
check(p.stdout.readline() == "ready\n", "endless")
d = subprocess.Popen([DESCRY, "malloc", "record", "-o", FILE + "2", "-p", str(p.pid)], stderr=subprocess.PIPE, text=True)
kill_at_end(d)


def size():
    try:
        return os.stat(FILE + "2").st_size
    except OSError:
        return 0


wait_until(lambda: size() > 100, "blocks appear while it runs")
d.send_signal(signal.SIGKILL)
d.wait()
r = report(file=FILE + "2")
check(not r["complete"] and r["malloc"] > 10 and r["damage"] is None, "killed", r)
check("the recording was cut off" in malloc("report", FILE + "2").stdout, "text says so")
check(p.poll() is None, "the program goes on")
d = subprocess.Popen([DESCRY, "malloc", "record", "-o", FILE + "3", "-p", str(p.pid)], stderr=subprocess.PIPE, text=True)
kill_at_end(d)
wait_until(lambda: os.path.exists(FILE + "3") and os.stat(FILE + "3").st_size > 100, "it can be recorded again")
d.send_signal(signal.SIGINT)
d.wait()
r = report(file=FILE + "3")
check(r["complete"] and r["lost"] == 0 and r["free"] > 10, "ended by ^C", r)

# blocks of before the recording: a free of them is known, and those that are left live at the end
if shutil.which("cc"):
    source, holder = os.path.join(TMP, "holder.c"), os.path.join(TMP, "holder")
    with open(source, "w") as f:
        f.write("""#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) { void *p[100]; char c; struct pollfd in = { 0, POLLIN, 0 };
  for (int i = 0; i < 100; i++) p[i] = malloc(5000);
  write(1, "r", 1);
  while (!poll(&in, 1, 1)) { void *volatile q = malloc(333); free(q); }
  read(0, &c, 1);
  for (int i = 0; i < 60; i++) free(p[i]);
  write(1, "d", 1);
  while (read(0, &c, 1) > 0) ;
  return p[99] == 0; }""")
    check(subprocess.run(["cc", "-w", "-O1", "-fno-builtin", "-o", holder, source]).returncode == 0, "cc")
    p = subprocess.Popen([holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    kill_at_end(p)
    check(p.stdout.read(1) == b"r", "it holds blocks")
    d = subprocess.Popen([DESCRY, "malloc", "record", "-o", FILE + "5", "-p", str(p.pid)], stderr=subprocess.PIPE, text=True)
    kill_at_end(d)
    wait_until(lambda: os.path.exists(FILE + "5") and os.stat(FILE + "5").st_size > 100, "its calls are recorded")
    p.stdin.write(b"x")
    p.stdin.flush()
    check(p.stdout.read(1) == b"d", "it frees")
    d.send_signal(signal.SIGINT)
    said = d.communicate()[1]
    r = report(file=FILE + "5")
    old = [s for s in r["end_stacks"] if s["frames"] == ["[allocated before the recording]"]]
    check("blocks that were allocated before the recording" in said and len(old) == 1 and 200000 <= old[0]["value"] < 250000, "left", old, said)
    # the block of the loop may have been allocated before, and freed before the heap was read
    check(r["unknown"] <= 1 and r["free"] >= 60 and r["lost"] == 0, "freed", r)
    p.stdin.close()
    check(p.wait() == 0, "the program goes on")

# an allocator with names of its own, and jemalloc's calls, beside the C library's
if shutil.which("cc"):
    source, own = os.path.join(TMP, "own.c"), os.path.join(TMP, "own")
    with open(source, "w") as f:
        f.write("""#include <stdlib.h>
static char pool[1 << 20], *at = pool;
#define NOINLINE __attribute__((noinline))
NOINLINE void *je_malloc(size_t n) { char *p = at; at += (n + 15) & ~15ul; return p; }
NOINLINE void je_free(void *p) { __asm__ volatile("" : : "r"(p)); }
NOINLINE void *je_mallocx(size_t n, int flags) { return je_malloc(n + flags); }
NOINLINE void je_sdallocx(void *p, size_t n, int flags) { je_free(p); }
NOINLINE void *je_rallocx(void *p, size_t n, int flags) { void *q = je_malloc(n); je_free(p); return q; }
NOINLINE void *mi_malloc(size_t n) { return je_malloc(n); }
int main(void) { for (int i = 0; i < 50; i++) { je_free(je_malloc(100)); je_sdallocx(je_rallocx(je_mallocx(200, 0), 300, 0), 300, 0); mi_malloc(7); }
  free(malloc(5)); return 0; }""")
    check(subprocess.run(["cc", "-w", "-O1", "-fno-builtin", "-o", own, source]).returncode == 0, "cc")
    malloc("record", "--probes", "-o", FILE + "6", own)
    r = report(file=FILE + "6")
    # mi_malloc() is no allocator's without mi_free(), so its call of je_malloc() counts
    check(r["malloc"] >= 151 and r["realloc"] >= 50 and r["free"] >= 101 and r["unknown"] == 0 and r["replaced"] == 0, "names of its own", r)
    check(r["allocated_bytes"] >= 50 * (100 + 200 + 300 + 7) + 5, "bytes", r)

# damage: refused with its place, or read up to it
data = open(FILE, "rb").read()
for name, bad in {"cut": data[:-5], "flip": data[:40] + bytes([data[40] ^ 1]) + data[41:], "head": data + b"junk of 16 bytes",
                  "no": b"nothing" * 10, "version": data[:8] + b"\x09" + data[9:]}.items():
    with open(FILE + name, "wb") as f:
        f.write(bad)
    said = malloc("report", FILE + name, rc=1).stderr
    check({"no": "not a file of", "version": "of version 9"}.get(name, "block at byte") in said, name, said)
    if name in ("cut", "flip"):
        r = report("--salvage", file=FILE + name)
        check(not r["complete"] and "block at byte" in r["damage"], name, r)

# D in the name of a library that defines malloc() is not run: another user chose it
chosen = os.path.join(TMP, 'c{}BEGIN{printf("in%s","jected");}y')
with open(FILE + ".c", "w") as f:
    f.write("#include <stddef.h>\nvoid *__libc_malloc(size_t n);\nvoid *malloc(size_t n) { return __libc_malloc(n); }\n")
if shutil.which("cc"):
    subprocess.run(["cc", "-shared", "-fPIC", "-o", chosen, FILE + ".c"], check=True)
    p = subprocess.Popen([TRACEE, "endless"], stdout=subprocess.PIPE, text=True, env=dict(os.environ, LD_PRELOAD=chosen))
    kill_at_end(p)
    check(p.stdout.readline() == "ready\n", "endless, with that library")
    said = malloc("record", "-o", FILE + "4", "-p", str(p.pid), rc=1)
    check("D cannot hold the file's name" in said.stderr and "injected" not in said.stdout + said.stderr, "refused", said)

# wrong use
for args in [(), ("record",), ("record", "-o", FILE), ("record", TRACEE), ("report",), ("report", "--of", "x", FILE), ("replay",), ("play", "1"),
             ("record", "-k", "0", "-o", FILE, TRACEE)]:
    malloc(*args, rc=2)
malloc("report", os.path.join(TMP, "none"), rc=1)
d = malloc("record", "--show-d", TRACEE).stdout
check("pid$target:libc.so.6:malloc:entry" in d and "posix_memalign" in d, d)
check(subprocess.run([DESCRY, "malloc", "record", "-o", FILE, "sh", "-c", "exit 7"], stderr=subprocess.DEVNULL).returncode == 7, "status")
done()
