#!/usr/bin/env python3
# descry stack shows the Java functions that threads execute, equal to what the JVM itself says of threads that wait (jstack), interpreted
# and compiled by each compiler; of busy threads, stopped at random instructions, each caller's line must call the function in front of
# it; a core has the same frames as its process. JAVAS: homes of the JVMs to compare, instead of Debian's; SAMPLES: random stops.
# timeout: 600
import atexit
import os
import random
import re
import shutil
import subprocess
import tempfile
import time

from checks import *
from jvms import java_homes

DESCRY = os.environ["DESCRY"]
SAMPLES = int(os.environ.get("SAMPLES", "6"))
TMP = tempfile.mkdtemp(prefix="descry-stack-java-")
atexit.register(shutil.rmtree, TMP, True)

# Threads that wait: below recursion, synchronized code, a comparator that the library calls, lambdas, reflection, a class initializer,
# a handler of an exception, streams, and functions that were compiled and inlined. Busy ones run until the end.
PROGRAM = r"""
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

public class Truth {
    static final Object lock = new Object();

    interface Shape { double area(int n); }

    static class Square implements Shape {
        public double area(int n) {
            return n == 0 ? park() : area(n - 1) + 1;
        }
    }

    static double park() {
        while (true)
            LockSupport.park();
    }

    static int waits() throws Exception {
        synchronized (lock) {
            while (true)
                lock.wait();
        }
    }

    static int sorts() {
        Arrays.sort(new Integer[] { 3, 1, 2 }, (a, b) -> (int)park());
        return 0;
    }

    static int lambda() {
        Runnable r = () -> {
            Supplier<Double> s = () -> park();
            s.get();
        };
        r.run();
        return 0;
    }

    static class Init {
        static double v = park();
    }

    static int caught(int n) {
        try {
            if (n == 0)
                throw new IllegalStateException("x");
            caught(n - 1);
        } catch (IllegalStateException e) {
            try {
                throw e;
            } finally {
                park();
            }
        }
        return 0;
    }

    static double streams() {
        return Arrays.asList(3, 1, 2).stream().mapToDouble(x -> x + park()).sum();
    }

    static int warm(int n, boolean stop) {
        if (n == 0)
            return stop ? (int)park() : 1;
        return inner(n, stop) + 1;
    }

    static int inner(int n, boolean stop) {
        return innermost(n, stop);
    }

    static int innermost(int n, boolean stop) {
        return warm(n - 1, stop);
    }

    static int warmed() {
        for (int i = 0; i < 30000; i++)
            warm(10, false);
        return warm(25, true);
    }

    static volatile long sink;

    static int leaf(int i) {
        return i * 31 + 7;
    }

    static int middle(int i) {
        return leaf(i)
                ^ leaf(i + 1);
    }

    static int busyLoop() {
        while (true)
            for (int i = 0; i < 1000; i++)
                sink += middle(i);
    }

    static int fib(int n) {
        return n < 2 ? n : fib(n - 1)
                + fib(n - 2);
    }

    static int busyFib() {
        while (true)
            sink += fib(20);
    }

    static void start(String name, Callable<?> c) {
        Thread t = new Thread(() -> {
            try {
                c.call();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }, name);
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0) {
            start("busyLoop", () -> busyLoop());
            start("busyFib", () -> busyFib());
        } else {
            start("square", () -> new Square().area(5));
            start("waits", () -> waits());
            start("sorts", () -> sorts());
            start("lambda", () -> lambda());
            start("reflects", () -> Truth.class.getDeclaredMethod("park").invoke(null));
            start("init", () -> Init.v);
            start("caught", () -> caught(4));
            start("streams", () -> streams());
            start("warmed", () -> warmed());
        }
        System.out.println("ready");
        System.out.flush();
        waits();
    }
}
"""
WAITING = 10
# The JVM keeps the place of each instruction.
DENSE = "-XX:+DebugNonSafepoints"
MODES = ([], ["-Xint"], ["-XX:TieredStopAtLevel=1"], ["-Xcomp", "-XX:-TieredCompilation"],
         ["-XX:+UnlockDiagnosticVMOptions", DENSE])


def run(*args):
    p = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == 0 and not p.stderr, "exit", p.returncode, args, p.stderr)
    return p.stdout


def without_address(name):
    """The class of a lambda has an address behind it, in Java 11 only as Java says it."""
    return re.sub(r"/0x[0-9a-f]+", "", name)


def said_by_java(text):
    """Returns (function, file, line) of each thread by its number. Java does not give the file of native functions."""
    found = {}
    for block in text.split("\n\n"):
        tid = re.search(r" nid=(\w+)", block)
        frames = re.findall(r"^\s+at (\S+)\((?:[^/()\n]*/)?([^:()\n]*)(?::(\d+))?\)", block, re.M)
        if tid and frames:
            found[int(tid[1], 0)] = [(without_address(f[0]), f[1] if f[1] not in ("Native Method", "Unknown Source") else None, int(f[2] or 0)) for f in frames]
    return found


def blocks(text):
    return {int(tid): rest for tid, rest in re.findall(r"^  thread (\d+)[^\n]*\n((?:    .*\n?)*)", text, re.M)}


def frames_of(block):
    """The Java frames among the native ones, which have an offset, and the JVM's own."""
    lines = re.findall(r"^ +([^`\s]+)`(\S+?)(?::(\d+))?$", block, re.M)
    return [(without_address(name), None if file == "?" else file, int(line or 0)) for file, name, line in lines
            if file != "[jvm]" and not re.search(r"\+0x[0-9a-f]+$", name)]


def is_equal(theirs, ours):
    return len(theirs) == len(ours) and all(t[0] == o[0] and t[2] == o[2] and t[1] in (None, o[1]) for t, o in zip(theirs, ours))


def is_whole(block):
    """Does the native part come to the thread's first function, clone() or clone3()? A stripped C library may have no name for it."""
    return re.search(r"libc(\.so\.6|-2\.\d+\.so)(`clone3?)?\+0x[0-9a-f]+$", block.strip()) is not None


def waits(frames):
    return frames[0][0].rsplit(".", 1)[-1] in ("park", "wait", "wait0") and any(f[0].startswith("Truth") for f in frames)


def start(home, mode, *args):
    p = subprocess.Popen([home + "/bin/java", "-Xmx64m", *mode, "-cp", TMP, "Truth", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    check(p.stdout.readline() == b"ready\n", home, mode, "is ready")
    return p


def when_all_wait(home, pid):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        said = said_by_java(run(home + "/bin/jstack", str(pid)))
        if sum(map(waits, said.values())) >= WAITING:
            return said
        time.sleep(0.1)
    raise SystemExit("FAILED: not in time: all threads wait")


def compare_core(name, pid, said):
    subprocess.run(["gcore", "-o", TMP + "/core", str(pid)], stdin=subprocess.DEVNULL, capture_output=True)
    core = blocks(run(DESCRY, "stack", TMP + "/core.%d" % pid))
    os.unlink(TMP + "/core.%d" % pid)
    check(core and all(is_equal(said[tid], frames_of(core.get(tid, ""))) for tid in said), name, "a core's frames")


def compare_waiting(home, mode, with_core):
    name = "%s %s" % (home, " ".join(mode))
    p = start(home, mode)
    try:
        said = when_all_wait(home, p.pid)
        text = run(DESCRY, "stack", "-p", str(p.pid))
        ours, frames = blocks(text), 0
        for tid, theirs in said.items():
            frames += len(theirs)
            check(is_equal(theirs, frames_of(ours.get(tid, ""))), name, "unlike\n theirs %s\n ours %s" % (theirs, frames_of(ours.get(tid, ""))))
            check(is_whole(ours.get(tid, "")), name, "not walked to its end", ours.get(tid))
        check("[jvm]`call_stub" in text, name, "names the JVM's own code")
        print("%s: %d threads, %d frames" % (name, len(said), frames))
        if with_core:
            compare_core(name, p.pid, said)
    finally:
        p.kill()
        p.wait()


def fault(block, busy):
    """Why a busy thread's stack cannot be. Of inlined functions only those are there of which the JVM's tables leave no doubt; the
    innermost one that is there has no line then."""
    frames = frames_of(block)
    source = PROGRAM.split("\n")[1:]
    if not is_whole(block):
        return "not walked to its end"
    cut = frames and not frames[0][2] and frames[0][0].startswith("Truth.lambda$main")
    if not (cut or any(f[0] == "Truth." + busy for f in frames)) or frames[-1][0] != "java.lang.Thread.run":
        return "outer functions are missing"
    for inner, outer in zip(frames, frames[1:]):
        own = inner[0].startswith("Truth.") and outer[0] in ("Truth.busyFib", "Truth.busyLoop", "Truth.fib", "Truth.middle")
        if own and (not outer[2] or inner[0][len("Truth."):] + "(" not in source[outer[2] - 1]):
            return "%s does not call %s" % (outer, inner)
    return None


def compare_busy(home, mode):
    name = "%s %s, busy" % (home, " ".join(mode))
    p, wrong, seen, lines = start(home, mode, "busy"), [], 0, 0
    try:
        said = run(home + "/bin/jstack", str(p.pid))
        busy = {int(m[1], 0): m[0] for m in re.findall(r'^"(busy\w+)".* nid=(\w+)', said, re.M)}
        check(len(busy) == 2, name, "two threads", said)
        for _ in range(SAMPLES):
            time.sleep(random.random() * 0.02)
            for tid, block in blocks(run(DESCRY, "stack", "-p", str(p.pid))).items():
                if tid in busy:
                    why = fault(block, busy[tid])
                    seen += 1
                    lines += any(f[2] for f in frames_of(block)[:1])
                    wrong += ["%s\n%s" % (why, block)] if why else []
        print("%s: %d of %d stacks can be, %d with the innermost line" % (name, seen - len(wrong), seen, lines))
        check(DENSE not in mode or lines * 2 > seen, name, "lines", lines, seen)
        check(seen == SAMPLES * 2 and not wrong, name, "\n".join(wrong[:3]))
    finally:
        p.kill()
        p.wait()


def main():
    homes = java_homes()
    with open(TMP + "/Truth.java", "w", encoding="utf-8") as f:
        f.write(PROGRAM[1:])
    run(homes[0] + "/bin/javac", "-g", "-d", TMP, TMP + "/Truth.java")
    for home in homes:
        for mode in MODES:
            compare_waiting(home, mode, not mode)
            compare_busy(home, mode)


main()
done()
