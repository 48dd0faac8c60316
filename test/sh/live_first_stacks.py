#!/usr/bin/env python3
# Stacks of processes that live for a few milliseconds and of libraries they load: the share that is right, by table of the first
# sample on. PRINT=1 prints the figures.
# serial
from live import *
import threading

LIB = "static volatile unsigned long s;\n" \
      "__attribute__((noinline)) static void spin(int n) { for (int i = 0; i < n; i++) s += i; }\n" \
      "__attribute__((noinline)) int in_library(int n) { int r = n ? in_library(n - 1) + 1 : (spin(4000000), 0); s++; return r; }\n"
MAIN = "#include <dlfcn.h>\n#include <stdlib.h>\n" \
       "__attribute__((noinline)) static int from_main(int (*f)(int)) { return f(10) + 1; }\n" \
       "int main(int argc, char **argv) { void *h = dlopen(argv[1], RTLD_NOW); if (!h) return 9;\n" \
       "int (*f)(int) = (int (*)(int))dlsym(h, \"in_library\"); return from_main(f) == 11 ? 0 : 1; }\n"
lib, exe = TMP + "/libfirst.so", TMP + "/firststacks"
CC = ["cc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-x", "c", "-"]
subprocess.run(CC + ["-shared", "-fPIC", "-o", lib], input=LIB.encode(), check=True)
subprocess.run(CC + ["-o", exe, "-ldl"], input=MAIN.encode(), check=True)
PROGRAM = 'profile-1999 /execname == "firststacks" && arg1 != 0/ { @[ustack(60)] = count(); }'


def share(n, running=False):
    """Samples of n processes, those in in_library(), and how many of these begin at main. running: their parent runs before the tracer."""
    script = 'for i in $(seq %d); do %s %s; done' % (n, exe, lib)
    if running:
        shell = subprocess.Popen(["sh", "-c", "read begin; " + script], stdin=subprocess.PIPE)
        begin = threading.Timer(1, shell.communicate, (b"begin\n",))
        begin.start()
        r = descry("--json", "-p", str(shell.pid), "-n", PROGRAM)
        begin.join()
    else:
        r = descry("--json", "-n", PROGRAM, c="sh -c '%s'" % script)
    rows = [j for line in r.out.splitlines() for j in [json.loads(line)] if j["type"] == "aggregation"]
    total = inside = right = 0
    for row in rows:
        frames = [f.get("function") for f in row["keys"][0] if "function" in f]
        total += row["value"]
        if "in_library" not in frames and "spin" not in frames:
            continue
        inside += row["value"]
        if frames.count("in_library") == 11 and "from_main" in frames and "main" in frames:
            right += row["value"]
    return total, inside, right


first = share(1)
many = share(40)
if os.environ.get("PRINT"):
    print("samples, in the library, right: the first process: %s; the next 40: %s" % (first, many))
check(many[1] > 40, "samples", many)
check(many[2] >= 0.6 * many[1], "nearly all are right once the files are known", many, first)
forked = share(40, running=True)
if os.environ.get("PRINT"):
    print("of a process that ran before: %s" % (forked,))
check(forked[1] > 40 and forked[2] >= 0.6 * forked[1], "-p: children's, too", forked)
done()
