#!/usr/bin/env python3
# ucaller and ustackdepth in code without frame pointers: at an entry, within a function, in a system call, when a timer ticks, for
# the thread that is about to run; in the kernel and inside the program; and from a program that has much on its own stack.
# serial
# covers: ucaller ustackdepth
from live import *

C = r"""
#include <unistd.h>
#include <stdlib.h>
static volatile int s;
#define OWN __attribute__((noinline, noclone))
OWN void leaf(int n) { for (int i = 0; i < 60000; i++) s += i; free(malloc(n + 1)); }
OWN int middle(int n) { leaf(n); s++; usleep(200); s++; return n; }
OWN int down(int n) { if (n) { down(n - 1); s++; } else { middle(n); s++; } return s; }
int main(int argc, char **argv) { for (;;) { down(atoi(argv[1])); s++; } }
"""
exe = TMP + "/ucaller"
subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-w", "-x", "c", "-o", exe, "-"],
               input=C.encode(), check=True)
END_AFTER = " tick-1500ms { exit(0); }"


def run(program, depth, *options):
    """The program runs before it is traced: the first stacks of a process that has just begun are live_first_stacks' subject."""
    with subprocess.Popen([exe, str(depth)]) as p:
        try:
            while "libc.so" not in open("/proc/%d/maps" % p.pid).read():
                time.sleep(0.01)
            return descry("-q", *options, "-p", str(p.pid), "-n", program + END_AFTER).out
        finally:
            p.kill()


def counts(out):
    """Of lines KEY COUNT."""
    return {m.group(1): int(m.group(2)) for m in re.finditer(r"^ *(\S+) +(\d+)$", out, re.M)}


def only(out, key, what):
    c = counts(out)
    check(set(c) == {key} and c[key] > 1, what, out[:800])


def in_leaf(out, key, what):
    c = set(re.findall(r"^ *ucaller`leaf +(\S+) +\d+$", out, re.M))
    check(c == {key}, what, out[:800])


# Where leaf() is called from; its loop is the only place where time is spent.
only(run("pid$target:a.out:leaf:entry { @[ufunc(ucaller)] = count(); }", 3), "ucaller`middle", "entry")
DIS = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=middle", exe], capture_output=True, text=True).stdout
AT = [int(x, 16) for x in re.findall(r"^ +([0-9a-f]+):", DIS, re.M)]
CALL = re.search(r"^ +([0-9a-f]+):\s+call.*leaf", DIS, re.M).group(1)
only(run("pid$target:a.out:middle:%x { @[ufunc(ucaller)] = count(); }" % (int(CALL, 16) - AT[0]), 3), "ucaller`down", "within a function")
in_leaf(run("profile-199 /pid == $target/ { @[ufunc(arg1), ufunc(ucaller)] = count(); }", 3), "ucaller`middle", "a timer")
out = run("syscall::clock_nanosleep:entry /pid == $target/ { @[umod(ucaller)] = count(); }", 3)
only(out, "libc.so.6", "a system call's caller is the library's")
c = counts(run("sched:::on-cpu /pid == $target && ucaller/ { @[umod(ucaller)] = count(); }", 3))
check(c.get("libc.so.6", 0) > 1 and set(c) <= {"libc.so.6", "ld-linux-x86-64.so.2", "ucaller"}, "the thread that is about to run", c)

# _start, two of libc, main, down() times N + 1, middle, leaf
for depth in 3, 40:
    want = str(depth + 7)
    only(run("pid$target:a.out:leaf:entry { @[ustackdepth] = count(); }", depth), want, "depth at entry, %d" % depth)
in_leaf(run("profile-199 /pid == $target/ { @[ufunc(arg1), ustackdepth] = count(); }", 9), "16", "depth by timer")
only(run("pid$target:a.out:leaf:entry { @[ustackdepth] = count(); }", 300), "127", "no deeper than the frames there are")

# inside the program
inside = ("-x", "engine=inproc")
only(run("pid$target:a.out:leaf:entry { @[ufunc(ucaller)] = count(); }", 3, *inside), "ucaller`middle", "entry, inside")
only(run("pid$target:a.out:leaf:entry { @[ustackdepth] = count(); }", 9, *inside), "16", "depth, inside")

# much else in the same program: large keys, strings, several stacks
out = run('pid$target:a.out:leaf:entry { @[ufunc(ucaller), ustackdepth, execname, strjoin(probefunc, execname)] = count(); '
          '@b[ustack(3), ustack(5), stack(2), pid, tid, ppid, uid] = count(); }', 9)
check(re.search(r"ucaller`middle +16 +ucaller +leafucaller +\d", out), "beside much else", out[:800])

done()
