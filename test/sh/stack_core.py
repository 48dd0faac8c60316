#!/usr/bin/env python3
# descry stack: the stacks of all threads of a process, of its core as gdb writes it, and as the kernel does, equal to gdb's.
import atexit
import glob
import os
import re
import resource
import shutil
import subprocess
import tempfile

from checks import *

DESCRY = os.environ["DESCRY"]
if not shutil.which("gdb"):
    skip("gdb is not installed")
TMP = tempfile.mkdtemp(prefix="descry-stack-")
atexit.register(shutil.rmtree, TMP, True)
PROGRAM = shutil.copy(os.path.join(os.environ["BUILD"], "test", "tracee_threads"), TMP)
THREADS = 7

FRAMES = """
import gdb
for t in gdb.selected_inferior().threads():
    t.switch()
    f = gdb.newest_frame()
    print("thread", t.ptid[1])
    while f is not None:
        if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME): # those have no frame on the stack
            print("%#x" % f.pc())
        f = f.older()
"""
script = os.path.join(TMP, "frames.py")
with open(script, "w") as f:
    f.write(FRAMES)


def stacks(text):
    """{thread: [pc]}"""
    found, frames = {}, None
    for line in text.splitlines():
        m = re.match(r" *thread (\d+)", line)
        if m:
            frames = found.setdefault(int(m.group(1)), [])
        elif frames is not None and line.strip().startswith("0x"):
            frames.append(int(line.split()[0], 16))
    return found


def gdb(*args):
    p = subprocess.run(["gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set backtrace past-main on", *args],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return p.stdout


def stack(*args, rc=0):
    p = subprocess.run([DESCRY, "stack", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == rc, "exit", p.returncode, p.args, p.stdout, p.stderr)
    return p


def functions(text):
    return [line.split("`")[-1].split("+")[0] for line in text.splitlines() if "`" in line]


def compare(ours, theirs, what):
    check(len(theirs) == THREADS, what, "gdb sees", theirs)
    for tid, frames in theirs.items():
        check(ours.get(tid) == frames, what, "thread", tid,
              "\n ours ", [hex(pc) for pc in ours.get(tid, [])], "\n gdb's", [hex(pc) for pc in frames])


# unlimited: where it may be raised
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
traced = subprocess.Popen([PROGRAM, "abort"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=TMP,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
atexit.register(lambda: traced.poll() is None and traced.kill())
check(traced.stdout.readline() == b"ready\n", "the program is ready")

live = stack("-a", "-p", str(traced.pid))
check(len(stacks(live.stdout)) == THREADS and not live.stderr, "a process", live.stdout, live.stderr)
for name, n in (("threads_go_deeper", 11 + 21 + 31), ("threads_compare", 1), ("on_signal", 1), ("threads_spin", 1), ("_start", 1)):
    check(functions(live.stdout).count(name) == n, name, live.stdout)

made = os.path.join(TMP, "gdb.core")
gdb("-p", str(traced.pid), "-ex", "gcore " + made)
if not os.path.exists(made):
    skip("gdb cannot write a core of a process here")
theirs = stacks(gdb("-c", made, PROGRAM, "-x", script))
core = stack("-a", made)
compare(stacks(core.stdout), theirs, "gdb's core:")
check(not core.stderr, "nothing is wrong with it", core.stderr)
compare(stacks(live.stdout), theirs, "the process itself:")
check(functions(live.stdout) == functions(core.stdout), "with the same names", core.stdout)



def cut_short(path, size):
    cut = os.path.join(TMP, "cut.core")
    with open(path, "rb") as a, open(cut, "wb") as b:
        b.write(a.read(size))
    return stack("-a", cut)


# gdb writes the registers behind the memory
p = cut_short(made, os.path.getsize(made) // 2)
check("it is cut short" in p.stderr and "it holds no thread's registers" in p.stderr, "gdb's core cut short", p.stdout, p.stderr)

# the kernel's own core, which leaves out the contents of files
pattern = open("/proc/sys/kernel/core_pattern").read().strip()
traced.stdin.close()
traced.wait()
made = glob.glob(os.path.join(TMP, "core*"))
if not made:
    print("[  note  ] the kernel writes no core here (limit %s, core_pattern %s): gdb's alone is compared" % (hard, pattern))
else:
    p = stack("-a", made[0])
    theirs = stacks(gdb("-c", made[0], PROGRAM, "-x", script))
    compare(stacks(p.stdout), theirs, "the kernel's core:")
    # the kernel writes the registers first: a truncated core has them, and the contents of files
    cut = cut_short(made[0], os.path.getsize(made[0]) // 8)
    check("it is cut short" in cut.stderr and set(stacks(cut.stdout)) == set(theirs), "cut short", cut.stdout, cut.stderr)
    for tid, frames in stacks(cut.stdout).items():
        check(frames and frames == theirs[tid][:len(frames)], "what there is of a stack is right", tid, frames)
    check("stack ends: " in cut.stdout, "and why it ends is said", cut.stdout)
    check(re.search(r"7 threads\n  thread %d, signal 6 \(" % traced.pid, p.stdout), "the first has got the signal", p.stdout)
    check("abort" in functions(p.stdout) and not p.stderr, "it called abort()", p.stdout, p.stderr)
    # as many frames as fit into a stack
    os.unlink(made[0])
    subprocess.run([PROGRAM, "overflow"], cwd=TMP, preexec_fn=lambda: (
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)), resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))))
    deep = functions(stack(glob.glob(os.path.join(TMP, "core*"))[0]).stdout)
    check(deep.count("threads_overflow") > 100000 and deep[-1] == "_start", "a stack that has overflown", len(deep), deep[-3:])
    # another program in its place
    shutil.copy(os.path.join(os.environ["BUILD"], "test", "tracee_inside"), PROGRAM)
    made = glob.glob(os.path.join(TMP, "core*"))
    p = stack(made[0])
    check("the mapped part of %s is missing: another file is there now" % PROGRAM in p.stderr, "a file that was replaced", p.stderr)
    check("threads_overflow" not in p.stdout, "has no names", p.stdout[:1000])

for args, say in ((("/dev/null",), "not a core file"), ((PROGRAM,), "not a core file"), (("/nonexistent",), "No such file")):
    p = stack(*args, rc=1)
    check(say in p.stderr and p.stderr.count("\n") == 1, args, p.stderr)
check("no process is named" in stack(rc=2).stderr, "no argument")
check("exclude" in stack("-p", "1", "x", rc=2).stderr, "both")
done()
