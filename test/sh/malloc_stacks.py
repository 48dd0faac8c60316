#!/usr/bin/env python3
# descry malloc record -k by a preloaded library: each stack is that of the call, whatever the frames look like, across threads, in libraries that
# are loaded and unloaded, and in C++; the calls that are hard to record are exact with stacks, too.
from collections import Counter

from live import *

WALKS = os.path.join(BUILD, "test", "tracee_walks")
RECORDED = os.path.join(BUILD, "test", "tracee_recorded")
FILE = os.path.join(TMP, "s.dma")


def record(*command, k=127, rc=0, **more):
    """Returns the command's output, what was said, and the report."""
    p = subprocess.run([DESCRY, "malloc", "record", "-k", str(k), "-o", FILE, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    check(p.returncode == rc and "recording by probes" not in p.stderr, "exit", p.returncode, command, p.stdout[-300:], p.stderr[-2000:])
    r = subprocess.run([DESCRY, "malloc", "report", "--json", "-n", "100000000", FILE], capture_output=True, text=True)
    return p.stdout, p.stderr, json.loads(r.stdout) if check(r.returncode == 0, "report", r.stderr) else {}


def stacks(r):
    """Counts of calls by stack."""
    c = Counter()
    for s in r["count_stacks"]:
        c[tuple(s["frames"])] += s["blocks"]
    return c


def exact(r, what, **want):
    want = dict(lost=0, unknown=0, replaced=0, complete=True, **want)
    check(all(r.get(k) == v for k, v in want.items()), what, {k: (r.get(k), v) for k, v in want.items() if r.get(k) != v})


# functions that call each other at random, in several threads
for threads, k in ((1, 127), (3, 127), (3, 9)):
    out, said, r = record(WALKS, "random", "4000", str(threads), k=k)
    name = "tracee_walks`"
    want = Counter(tuple(name + "w" + c for c in line)[:k] for line in out.split())
    got, wrong = Counter(), 0
    for frames, n in stacks(r).items():
        if name + "walk_thread" not in frames and len(frames) < k:
            continue  # of the C library, before main()
        ours = tuple(f for f in frames if f.startswith(name + "w") and not f.endswith("walk_thread"))
        rest = frames[len(ours):]
        if len(frames) == k == len(ours) or frames[:1] == (name + "walk_thread",):
            rest = ()
        # behind them are only those of the thread's beginning
        wrong += n if frames[:len(ours)] != ours or any(f.startswith("[stack ends") for f in rest) else 0
        if ours:
            got[ours] += n
    check(sum(want.values()) == 4000 * threads and len(want) > 100, "the program's own list", len(want))
    check(got == want and not wrong, threads, k, "differ:", wrong, sum((got - want).values()), sum((want - got).values()),
          list((got - want).items())[:2], list((want - got).items())[:2])
    check("early" not in said, said)

# a library in the place of another one that was unloaded
if shutil.which("cc"):
    for lib in "ab":
        source = os.path.join(TMP, lib + ".c")
        with open(source, "w") as f:
            f.write("""#include <stdlib.h>
__attribute__((noinline)) static void of_%s(int n) { volatile char room[%d]; room[0] = 1; if (n) of_%s(n - 1); else { void *volatile p = malloc(77); free(p); } room[1] = 1; }
void inside(void) { of_%s(5); }
__attribute__((constructor)) static void begins_%s(void) { void *volatile p = malloc(78); free(p); }""" % (lib, 40 if lib == "a" else 4000, lib, lib, lib))
        check(subprocess.run(["cc", "-O1", "-fomit-frame-pointer", "-fPIC", "-shared", "-o", os.path.join(TMP, "lib%s.so" % lib), source]).returncode == 0, "cc")
    out, said, r = record(WALKS, "load", os.path.join(TMP, "liba.so"), os.path.join(TMP, "libb.so"))
    got = stacks(r)
    for lib in "ab":
        path = tuple("lib%s.so`of_%s" % (lib, lib) for _ in range(6)) + ("lib%s.so`inside" % lib, "tracee_walks`call_in", "tracee_walks`main")
        check(sum(n for f, n in got.items() if f[:len(path)] == path and not f[-1].startswith("[")) == 10, lib, out, [f for f in got if "lib" in f[0]])
        check(sum(n for f, n in got.items() if f[0] == "lib%s.so`begins_%s" % (lib, lib) and "tracee_walks`main" in f) == 1, "constructor", lib, said)
    check("early" not in said, said)

if shutil.which("c++"):
    with open(os.path.join(TMP, "x.cc"), "w") as f:
        f.write("""#include <stdexcept>
template <int N> __attribute__((noinline)) int deep(int n) { return deep<N - 1>(n) + 1; }
template <> __attribute__((noinline)) int deep<0>(int n) { char *volatile p = new char[50]; delete[] p; if (n % 2) throw std::runtime_error("odd"); return 1; }
int main() { int c = 0; for (int i = 0; i < 100; i++) try { c += deep<3>(i); } catch (const std::exception &) { c++; } return c != 250; }""")
    check(subprocess.run(["c++", "-O2", "-o", os.path.join(TMP, "x"), os.path.join(TMP, "x.cc")]).returncode == 0, "c++")
    got = stacks(record(os.path.join(TMP, "x"))[2])
    path = tuple("x`int deep<%d>(int)" % i for i in range(4)) + ("x`main",)
    of = {f: n for f, n in got.items() if any(f[i:i + 5] == path for i in (1, 2))}
    check(sum(n for f, n in of.items() if "operator new" in "".join(f[:2])) == 100, "operator new", got)
    check(not any("descry" in frame for f in got for frame in f), "the library's own frames", got)

# what is hard to record, with stacks
exact(record(RECORDED, "passed", "5000")[2], "passed", malloc=20000, free=20000, freed_elsewhere=20000, threads=5)
exact(record(RECORDED, "churn", "100")[2], "churn", malloc=1000, free=1000)
exact(record(RECORDED, "forks")[2], "forks", malloc=200, free=0)
exact(record(RECORDED, "jumps")[2], "jumps", malloc=100, free=0)
exact(record(RECORDED, "filter", "10000")[2], "filter", malloc=10001, free=10000)
exact(record(RECORDED, "strict", "100")[2], "strict", malloc=1, free=0)
# a handler on another stack: its frames, and those that were interrupted
out, said, r = record(RECORDED, "signals")
exact(r, "signals", malloc=200, free=0)
check(sum(n for f, n in stacks(r).items() if "tracee_recorded`main" in f) == 200, "signals", stacks(r))
# the stacks of one allocation in 10, at random: all calls are counted, and the threads' stacks in proportion
SAMPLED = ["--sample", "10", RECORDED]
for kind, n, calls in (("passed", 20000, 80000), ("busy", 100000, 100000)):
    out, said, r = record(*SAMPLED, kind, str(n))
    exact(r, kind, malloc=calls, sample=10)
    got = sum(n for f, n in stacks(r).items() if any(x.startswith("tracee_recorded`") for x in f))
    check(0.07 * calls < got < 0.13 * calls and "without their stacks" not in said, "a tenth has stacks", kind, got, said)
out, said, r = record(WALKS, "random", "1000", "1")
check(r["sample"] == 0, "not sampled", r["sample"])
text = subprocess.run([DESCRY, "malloc", "record", "-k", "9", "-o", FILE, "--sample", "7", RECORDED, "jumps"], capture_output=True, text=True)
text = subprocess.run([DESCRY, "malloc", "report", FILE], capture_output=True, text=True).stdout
check("of one allocation in 7, at random" in text, "the report says so", text)
for args, why in ((["--sample", "5"], "-k N"), (["-k", "5", "--sample", "5", "--probes"], "library"), (["-k", "5", "--sample", "0"], "")):
    p = subprocess.run([DESCRY, "malloc", "record", "-o", FILE, *args, RECORDED, "jumps"], capture_output=True, text=True)
    check(p.returncode == 2 and why in p.stderr, "wrong usage", args, p)
done()
