#!/usr/bin/env python3
# descry leaks: exactly the blocks that tracee_leaks has planted, in the process and in its core; none in programs that lose nothing.
import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from checks import *

DESCRY = os.environ["DESCRY"]
TRACEE = os.path.join(os.environ["BUILD"], "test", "tracee_leaks")
TMP = tempfile.mkdtemp(prefix="descry-leaks-")
atexit.register(shutil.rmtree, TMP, True)
running = []


def start(*args, preload=None):
    env = dict(os.environ, LD_PRELOAD=preload) if preload else None
    p = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    running.append(p)
    lines = []
    for line in p.stdout:
        if line == "ready\n":
            return p, lines
        lines.append(line.strip())
    skip("%s did not start" % args[0])


def end(p):
    p.stdin.close()
    p.wait()
    running.remove(p)


@atexit.register
def end_all():
    for p in running:
        p.kill()
        p.wait()


def leaks(*args, rc=0):
    p = subprocess.run([DESCRY, "leaks", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == rc, "exit", p.returncode, p.args, p.stdout, p.stderr)
    return p


def found(*args):
    """The heap, the groups and the roots by their addresses."""
    rows = [json.loads(line) for line in leaks("--json", "-v", *args).stdout.splitlines()]
    blocks = {r["address"]: r for r in rows if r["type"] == "block"}
    return rows[0], [r for r in rows if r["type"] == "leak"], blocks


def core_of(p, name):
    r = subprocess.run(["gcore", "-o", os.path.join(TMP, name), str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True)
    return os.path.join(TMP, "%s.%d" % (name, p.pid)) if r.returncode == 0 else None


# roots planted, blocks held by them
KINDS = {"none": (0, 0), "single": (7, 0), "list": (1, 999), "circle": (1, 9), "tree": (1, 50), "big": (2, 0), "threads": (4, 4 * 2),
         "interior": (0, 0), "tls": (0, 0), "freed": (0, 0), "many": (4000, 0)}
for kind, (roots, held) in KINDS.items():
    p, planted = start(TRACEE, kind)
    check(len(planted) == roots, kind, "plants", len(planted))
    for where in [("-p", str(p.pid))] + ([(core_of(p, kind),)] if kind in ("tree", "threads", "big") and shutil.which("gcore") else []):
        heap, groups, blocks = found(*where)
        check(heap["consistent"] and not heap["remarks"], kind, where, heap)
        check(heap["leaks"] == roots and heap["leaked_blocks"] == roots + held, kind, where, heap)
        if kind == "circle": # any of its blocks
            check(len(blocks) == 1 and list(blocks.values())[0]["held_blocks"] == 9, kind, blocks)
        else:
            check(set(blocks) == set(planted), kind, where, set(blocks) ^ set(planted))
        check(sum(g["count"] for g in groups) == roots, kind, groups)
        check(sum(g["held_blocks"] for g in groups) == held, kind, groups)
        check(heap["search_ns"] > 0 and heap["scanned_bytes"] > 0, kind, heap)
        check((heap["pause_ns"] > 0) == (where[0] == "-p") and not heap["forked"] and heap["not_forked"] is None, kind, heap)
    end(p)

# all of them in one program
# (what is freed leaves addresses behind, of blocks that are allocated again)
p, planted = start(TRACEE, *(k for k in KINDS if k != "freed"))
heap, groups, blocks = found("-p", str(p.pid))
want = sum(r for r, _ in KINDS.values())
check(heap["leaks"] == want and len(set(planted) - set(blocks)) <= 1, "all", heap["leaks"], want, set(planted) ^ set(blocks))
text = leaks("-n", "3", "-p", str(p.pid)).stdout
check(re.search(r"^process \d+ \(tracee_leaks\): \d+ blocks in use, .*; stopped for [\d.]+ ms\n%d leaks: " % want, text), text)
check("more kinds (-n)" in text, text)
end(p)

# other allocators: the same, in the process and its core
LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
for library in ["libmimalloc.so.2", "libjemalloc.so.2", "libtcmalloc_minimal.so.4"]:
    if not os.path.exists(LIBRARIES + library):
        print("note: %s is not installed" % library)
        continue
    for kind, (roots, held) in KINDS.items():
        p, planted = start(TRACEE, kind, preload=LIBRARIES + library)
        core = core_of(p, kind) if kind in ("tree", "threads", "many", "freed") and shutil.which("gcore") else None
        for where in [("-p", str(p.pid))] + ([(core,)] if core else []):
            heap, groups, blocks = found(*where)
            own = [g for g in groups if g["class"] == "MallocExtension"]  # an object that tcmalloc itself loses
            check(len(own) == (library == "libtcmalloc_minimal.so.4"), library, kind, own)
            if own:
                check(own[0]["count"] == 1, library, own)
                del blocks[own[0]["address"]]
            check(heap["consistent"] and not heap["remarks"], library, kind, where, heap)
            check(heap["leaked_blocks"] == roots + held + len(own), library, kind, where, heap)
            check(len(blocks) == roots if kind == "circle" else set(blocks) == set(planted), library, kind, where, set(blocks) ^ set(planted))
        end(p)

# the types of C++, of a stripped program
source = os.path.join(TMP, "types.cc")
with open(source, "w") as f:
    f.write("""#include <cstdio>
#include <string>
#include <unistd.h>
namespace shop { struct Thing { virtual ~Thing() {} int a = 1; }; struct Order : Thing { Thing *more = new Thing; std::string name = "a name longer than sixteen"; }; }
__attribute__((noinline)) void lose() { for (int i = 0; i < 12; i++) new shop::Order; }
__attribute__((noinline)) void wipe() { volatile char w[65536]; for (auto &c : w) c = 0; }
int main() { lose(); wipe(); puts("ready"); fflush(stdout); char c; while (read(0, &c, 1) > 0); }
""")
if shutil.which("g++") and not subprocess.run(["g++", "-O0", "-s", "-o", source[:-3], source]).returncode:
    p, _ = start(source[:-3])
    heap, groups, blocks = found("-p", str(p.pid))
    check(heap["leaks"] == 12 and heap["leaked_blocks"] == 36, "types", heap)
    check([(g["class"], g["count"], g["held_blocks"]) for g in groups] == [("shop::Order", 12, 24)], "types", groups)
    check("  shop::Order\n" in leaks("-p", str(p.pid)).stdout, "the table has the type")
    end(p)
else:
    print("note: g++ is not installed: types of C++ are not tested")

# types by DWARF: by what lost blocks hold, and by living blocks of the same stack
source = os.path.join(TMP, "dwarf.c")
with open(source, "w") as f:
    f.write("""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct item { struct item *next; char *name; int n; };
typedef struct { struct item *first; double d; void (*call)(void); int k[3]; } bucket_t;
struct order { bucket_t *b; struct order *up; long total; };
struct bill { bucket_t *b; struct order *sum; long total[5]; };
struct plain { long a[30]; };
struct node { struct node *next, *before; char text[16]; };
static struct order *volatile orders;
static bucket_t *volatile table[16];
static struct plain *volatile plains[4];
static void *volatile any[4];
static void hello(void) {}
static struct item *make_item(const char *s) { struct item *i = calloc(1, sizeof *i); i->name = strdup(s); i->n = 5; return i; }
static bucket_t *make_bucket(void) { bucket_t *b = calloc(1, sizeof *b); b->first = make_item("x"); b->call = hello; return b; }
static struct order *make_order(bucket_t *b) { struct order *o = calloc(1, sizeof *o); o->b = b; o->total = 77; return o; }
__attribute__((noinline)) struct plain *make_plain(void) { struct plain *p = calloc(1, sizeof *p); p->a[0] = 5; return p; }
__attribute__((noinline)) void plain_calls(void) { for (int i = 0; i < 7; i++) { struct plain *volatile p = make_plain(); if (i < 4) plains[i] = p; } }
__attribute__((noinline)) static void lose(void)
{
	for (int i = 0; i < 5; i++) make_order(table[i]);                     /* leads to a bucket_t in use */
	for (int i = 0; i < 6; i++) make_bucket();                            /* has a function */
	for (int i = 0; i < 2; i++) memset(malloc(72), 'a' + i, 72);          /* text */
	{ struct bill *b = calloc(1, sizeof *b); b->sum = (void *)table[0]; } /* of no type: the pointer's is another's */
	struct node *h = 0;
	for (int i = 0; i < 100; i++) { struct node *n = calloc(1, sizeof *n); n->next = h; if (h) h->before = n; h = n; }
}
static void wipe(void) { volatile char w[65536]; for (int i = 0; i < 65536; i++) w[i] = 0; }
int main(void)
{
	for (int i = 0; i < 16; i++) table[i] = make_bucket();
	for (int i = 0; i < 9; i++) { struct order *o = make_order(table[i]); o->up = orders; orders = o; }
	plain_calls(); lose(); wipe();
	printf("%d\\n", (int)getpid()); puts("ready"); fflush(stdout); char c; while (read(0, &c, 1) > 0);
}
""".replace("\\\\", "\\"))
GUESSED = {("struct node", 40, 1, 99), ("bucket_t", 40, 6, 12), ("struct order", 24, 5, 0), (None, 72, 2, 0), (None, 56, 1, 0), (None, 248, 3, 0)}


def rows(groups):
    return {(g["class"], g["size"], g["count"], g["held_blocks"]) for g in groups}


def compiled(name, *flags, cc="cc"):
    path = os.path.join(TMP, name)
    ok = shutil.which(cc) and not subprocess.run([cc, "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-o", path, source, *flags]).returncode
    return path if ok else None


for name, flags in (("clang5", ["-gdwarf-5"]), ("gcc4", ["-gdwarf-4"]), ("gcc5", ["-gdwarf-5"]), ("static", ["-g", "-static"]), ("fixed", ["-g", "-no-pie"])):
    program = compiled(name, *flags, cc=name.rstrip("45") if name[-1] in "45" else "cc")
    if not program:
        continue
    p, told = start(program)
    core = core_of(p, name) if shutil.which("gcore") else None
    for where in [("-p", str(p.pid))] + ([(core,)] if core else []):
        heap, groups, blocks = found(*where)
        # a static program of glibc loses blocks of its C library, too
        check(rows(groups) >= GUESSED if name == "static" else rows(groups) == GUESSED, name, where, groups)
        check({g["class_by"] for g in groups if g["class"]} == {"pointers"} and not heap["remarks"], name, groups, heap)
    check("  struct node?\n" in leaks("-p", str(p.pid)).stdout, "a guess has a question mark")
    end(p)
plain = compiled("plain")
if plain:
    p, told = start(plain)
    check({g["class"] for g in found("-p", str(p.pid))[1]} == {None}, "without DWARF there are no types")
    end(p)
# the file of another user is not trusted
program = compiled("foreign", "-g")
if program and not os.geteuid():
    os.chown(program, 65534, 65534)
    p, told = start(program)
    heap, groups, _ = found("-p", str(p.pid))
    check({g["class"] for g in groups} == {None} and any("foreign" in r for r in heap["remarks"]), "not trusted", groups, heap)
    end(p)
program = compiled("stacks", "-g")
if program:
    recording = program + ".dma"
    p, told = start(DESCRY, "malloc", "record", "-k", "16", "-o", recording, program)
    limit = time.monotonic() + 30
    while time.monotonic() < limit and (
            lambda r: r.returncode or r.stdout.count('"frames":') < 4)(subprocess.run([DESCRY, "leaks", "--json", "-r", recording, "-p", told[0]],
                                                                                     stdin=subprocess.DEVNULL, capture_output=True, text=True)):
        time.sleep(0.1)
    heap, groups, blocks = found("-r", recording, "-p", told[0])
    of = {g["class"]: g for g in groups}
    check("struct plain" in of and of["struct plain"]["class_by"] == "stack" and of["struct plain"]["count"] == 3, "by stack", groups)
    end(p)

# C++: from an object with virtual functions to one without, of a class with the same name in another namespace
source = os.path.join(TMP, "plain.cc")
with open(source, "w") as f:
    f.write("""#include <cstdio>
#include <cstring>
#include <unistd.h>
namespace shop { struct Thing { long number; Thing *next; long more[3]; }; struct Order { Thing *first = new Thing(); virtual ~Order() {} }; struct Note { Order *of; long when[7]; }; }
namespace other { struct Thing { long number; int *next; long more[4]; }; other::Thing one; }
shop::Order *volatile order;
__attribute__((noinline)) void lose() {
    for (int i = 0; i < 3; i++) { shop::Thing *volatile t = new shop::Thing(); t->next = order->first; }
    for (int i = 0; i < 2; i++) { shop::Note *volatile n = new shop::Note(); n->of = order; }
}
__attribute__((noinline)) void wipe() { volatile char w[65536]; for (auto &c : w) c = 0; }
int main() { order = new shop::Order; lose(); wipe(); puts("ready"); fflush(stdout); char c; while (read(0, &c, 1) > 0); }
""")
if shutil.which("g++") and not subprocess.run(["g++", "-g", "-O0", "-o", source[:-3], source]).returncode:
    p, _ = start(source[:-3])
    check({(g["class"], g["count"], g["class_by"]) for g in found("-p", str(p.pid))[1]} ==
          {("shop::Thing", 3, "pointers"), ("shop::Note", 2, "pointers")}, "C++", found("-p", str(p.pid))[1])
    end(p)

# the stacks of a recording that goes on
source = os.path.join(TMP, "recorded.c")
with open(source, "w") as f:
    f.write("""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) static void lose(int n) { for (int i = 0; i < n; i++) { char *volatile p = memset(malloc(100), 0, 100); p = 0; } }
__attribute__((noinline)) void five(void) { lose(5); wipe(); }
__attribute__((noinline)) void three(void) { lose(3); wipe(); }
int main(void) { five(); three(); printf("%d\\n", (int)getpid()); puts("ready"); fflush(stdout); char c; while (read(0, &c, 1) > 0); }
""".replace("__attribute__((noinline)) void five", "static void wipe(void) { volatile char w[65536]; for (int i = 0; i < 65536; i++) w[i] = 0; }\n"
            "__attribute__((noinline)) void five"))
if not subprocess.run(["cc", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-o", source[:-2], source]).returncode:
    recording = source[:-2] + ".dma"
    p, told = start(DESCRY, "malloc", "record", "-k", "16", "-o", recording, source[:-2])
    where = ("-r", recording, "-p", told[0])
    wait_for = time.monotonic() + 30
    while time.monotonic() < wait_for: # the recorder writes a block now and then
        r = subprocess.run([DESCRY, "leaks", "--json", *where], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if r.returncode == 0 and r.stdout.count('"frames":') == 2:
            break
        time.sleep(0.1)
    heap, groups, blocks = found(*where)
    check(heap["leaks"] == 8 and len(groups) == 2, "by stack", heap, groups)
    check([(g["count"], [f.split("`")[1] for f in g.get("frames", [])][:3]) for g in groups] ==
          [(5, ["lose", "five", "main"]), (3, ["lose", "three", "main"])], "by stack", groups)
    text = leaks(*where).stdout
    check(re.search(r"\n {6,}3 .*\n +recorded`lose\n +recorded`three\n +recorded`main\n", text), text)
    other, _ = start(TRACEE, "single")
    check("a recording of process " + told[0] in leaks("-r", recording, "-p", str(other.pid), rc=1).stderr, "another process's recording")
    end(other)
    end(p)

# programs that lose nothing
for program in [["python3", "-c", "import json, sys; print('ready', flush=True); sys.stdin.read()"],
                ["perl", "-e", "$| = 1; print qq(ready\\n); <STDIN>"],
                ["bash", "-c", "echo ready; read x"]]:
    if shutil.which(program[0]):
        p, _ = start(*program)
        heap, groups, _ = found("-p", str(p.pid))
        check(heap["leaks"] == 0 and heap["used_blocks"] > 100, program[0], heap, groups)
        end(p)

# wrong use, and what is no heap of glibc's
leaks(rc=2)
leaks("-p", "0", rc=2)
leaks("-n", "0", "-p", "1", rc=2)
leaks("-p", str(os.getpid()), "core", rc=2)
check("not a core file" in leaks(source if os.path.exists(source) else __file__, rc=1).stderr, "no core")
static = os.path.join(TMP, "asm")
with open(static + ".c", "w") as f:
    f.write("""static long call(long n, long a, const char *b, long c) { long r; __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory"); return r; }
void _start(void) { static char in[8]; call(1, 1, "ready\\n", 6); while (call(0, 0, in, 8) > 0); call(231, 0, 0, 0); }
""")
if not subprocess.run(["cc", "-O1", "-static", "-nostdlib", "-o", static, static + ".c"]).returncode:
    p, _ = start(static)
    check("no heap that descry reads" in leaks("-p", str(p.pid), rc=1).stderr, "a program without malloc")
    end(p)
done()
