#!/usr/bin/env python3
# Each version of Java that tools/install-runtimes has got: the frames of waiting threads are those of Thread.getStackTrace(), sampled callers
# call what they are shown to call in both engines, calls of methods and their arguments are counted as the program makes them, the heap has
# as many objects and bytes as `jcmd GC.class_histogram` has, heap alloc knows the line that makes objects. VERSIONS="21": only these.
from runtime_versions import *

PROGRAM = r"""
import java.io.*;
import java.util.*;
import java.util.concurrent.locks.LockSupport;
import java.util.function.*;

public class App {
    static volatile boolean until;
    static volatile long sum;
    static List<Object> kept = new ArrayList<>();
    static class Foo { int a; }
    static class Kept { long number; String name; int[] tags = new int[4]; Kept(int i) { number = i; name = "kept " + i; } }
    static class Wide extends Kept { Object a, b, c; Wide(int i) { super(i); } }

    static int leaf(int n) {
        int x = 0;
        for (int i = 0; i < n; i++)
            x += i * i ^ x;
        return x;
    }

    static int key(int x) {
        return leaf(20 + x) * x;
    }

    static int save(int n) {
        if (n > 0)
            return save(n - 1);
        int[] sum = new int[1];
        Arrays.asList(3, 1, 2).forEach(x -> sum[0] += key(x));
        return sum[0];
    }

    static void work() {
        for (int i = 0; i < 4; i++)
            sum += save(3);
    }

    static void busy() {
        while (true) {
            if (until)
                work();
            else
                LockSupport.parkNanos(10000000);
        }
    }

    static Object held(int n, Supplier<Object> s) {
        if (n > 0)
            return held(n - 1, s);
        return s.get();
    }

    static void holds() {
        held(2, () -> {
            LockSupport.park();
            return "";
        });
    }

    static int called(int n, String text) {
        return n + text.length();
    }

    static int calls(int n) {
        for (int i = 0; i < n; i++)
            sum += called(i, i % 2 == 0 ? "even" : "odd");
        return n;
    }

    static void waits(Thread t) throws Exception {
        while (t.getState() != Thread.State.WAITING)
            Thread.sleep(10);
    }

    static String stack(Thread t) {
        StringBuilder s = new StringBuilder();
        for (StackTraceElement e : t.getStackTrace())
            s.append(s.length() > 0 ? "," : "").append(String.format("[\"%s\",\"%s\",%d]", e.getFileName(), e.getClassName() + "." + e.getMethodName(),
                                                                         Math.max(e.getLineNumber(), 0)));
        return "[" + s + "]";
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 3000; i++)
            kept.add(i % 3 == 0 ? new Wide(i) : new Kept(i));
        Thread held = new Thread(App::holds, "held"), busy = new Thread(App::busy, "busy");
        held.setDaemon(true);
        busy.setDaemon(true);
        held.start();
        busy.start();
        waits(held);
        for (int i = 0; i < 3; i++)
            work();
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = in.readLine()) != null) {
            String[] words = line.split(" ");
            int n = Integer.parseInt(words[1]);
            switch (words[0]) {
            case "busy":
                until = n > 0;
                System.out.println(n);
                break;
            case "calls":
                System.out.println(calls(n));
                break;
            case "stacks":
                System.out.println(stack(held));
                break;
            case "make":
                for (int i = 0; i < n; i++)
                    kept.add(new Foo());
                System.out.println(n);
                break;
            case "collect":
                System.gc();
                System.out.println(n);
                break;
            }
        }
    }
}
"""
APP = file_of("App.java", PROGRAM)
CALLERS = {"leaf": {"key"}, "key": {"lambda$save$0"}, "save": {"save", "work"}, "work": {"busy"}}
FOO = 1 + next(i for i, line in enumerate(PROGRAM.splitlines()) if "kept.add(new Foo())" in line)
OPTIONS = {"G1": ["-XX:+UseG1GC"], "Serial": ["-XX:+UseSerialGC"], "Parallel": ["-XX:+UseParallelGC"]}


def frames_of(lines):
    """(file, function, line) of the Java frames."""
    found = (re.match(r"(\S+\.java|\?)`(\S+?)(?::(\d+))?$", line) for line in lines)
    return [[None if m[1] == "?" else m[1], m[2], int(m[3] or 0)] for m in found if m]


def waiting(p):
    theirs = p.ask("stacks", 0)
    ours = [f for f in map(frames_of, p.stacks().values()) if any(x[1] == "App.holds" for x in f)]
    # functions that the JVM hides in some versions: those of a lambda's class, and one of its own
    theirs, *ours = [[f for f in frames if "$$Lambda" not in f[1] and f[1] != "java.lang.Thread.runWith"] for frames in (theirs, *ours)]
    p.check(ours == [theirs], "frames of a waiting thread\n theirs %s\n ours   %s" % (theirs, ours))
    return len(theirs)


def sampled(p, engine):
    p.ask("busy", 1)
    seen, wrong, unnamed = 0, [], 0
    for lines, n in p.sampled(engine, 150, "jstack(100)"):
        names = [f[1].rsplit(".", 1)[-1] for f in frames_of(lines) if f[1].startswith("App.")]
        if "busy" not in names:
            unnamed += n if "[java]" in lines else 0
            continue
        seen += n
        names = [name for name in names if name != "accept"]  # a lambda's class
        bad = [(callee, caller) for callee, caller in zip(names, names[1:]) if callee in CALLERS and caller not in CALLERS[callee]]
        if bad or any("stack ends" in line for line in lines):
            wrong.append((bad, lines))
    p.ask("busy", 0)
    p.check(seen > 50 and not wrong and unnamed * 10 < seen, engine, "samples %d, without names %d, wrong:" % (seen, unnamed), wrong[:2])
    return seen


CALLS = "java$target:App:called:entry { @n = count(); }"
RETURNS = "java$target:App:*lled:return { @n = count(); }"
ARGUMENTS = "java$target:App:called:entry { @[args[2]] = sum(args[1]); }"
ANY = "java$target:App:c*:entry { @n[probefunc] = count(); }"


def entries(p, engine):
    for program in CALLS, RETURNS:
        _, r = p.traced(engine, program, "calls", 1000)
        p.check(r and r.aggs("n") == {(): 1000}, engine, program, r)
    _, r = p.traced(engine, ANY, "calls", 1000)
    p.check(r and r.aggs("n") == {"calls": 1, "called": 1000}, engine, ANY, r)
    _, r = p.traced(engine, ARGUMENTS, "calls", 1000)
    p.check(r and r.aggs() == {"even": sum(range(0, 1000, 2)), "odd": sum(range(1, 1000, 2))}, engine, "arguments", r)


def heap(p):
    r = subprocess.run(["jcmd", p.pid, "GC.class_histogram", "-all"], capture_output=True, text=True)
    theirs = {m[3]: (int(m[1]), int(m[2])) for m in re.finditer(r"^ *\d+: +(\d+) +(\d+) +(\S+)", r.stdout, re.M)}
    rows = {r["class"]: (r["objects"], r["bytes"]) for r in p.heap("--histogram") if "class" in r}
    for name in "App$Kept", "App$Wide":
        p.check(name in theirs and rows.get(name) == theirs[name], "objects of", name, rows.get(name), "not", theirs.get(name))


def allocated(p):
    d = kill_at_end(subprocess.Popen([DESCRY, "heap", "alloc", "--json", "-p", p.pid], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    p.check(d.stderr.readline() == "descry heap: recording\n", "heap alloc has begun")
    p.ask("make", 500000)
    d.send_signal(signal.SIGINT)
    rows = [json.loads(line) for line in d.communicate()[0].splitlines()]
    p.check(rows[0]["live"] == "reachable" and rows[0]["live_samples"] < rows[0]["samples"], "heap alloc knows which live", rows[0])
    found = [r for r in rows if r.get("class") == "App$Foo" and r.get("line") == FOO]
    p.check(len(found) == 1 and 100000 < found[0].get("objects", 0) < 1000000, "heap alloc, about 500,000", rows[:5])


def version(name):
    for kind, options in OPTIONS.items():
        p = Program(name, "-Xmx128m", *options, "-cp", TMP, "App")
        p.name += ", " + kind
        p.ask("collect", 1)
        heap(p)
        if kind != "G1":
            continue
        listed = descry("list", "-p", p.pid).out
        p.check("runs java (%s." % name[4:] in listed and ("hotspot" in listed or name == "java11"), "descry list", listed)
        frames = waiting(p)
        samples = [sampled(p, engine) for engine in ("kernel", "inproc")]
        for engine in ("kernel", "auto"):
            entries(p, engine)
        allocated(p)
        print("%s: %d frames, %s samples" % (p.name, frames, samples))


subprocess.run(["javac", "--release", "11", "-g", "-d", TMP, APP], check=True, capture_output=True)
each_version("java", version)
