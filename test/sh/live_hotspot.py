#!/usr/bin/env python3
# hotspot$target::: on OpenJDK as it is installed: of a JVM that descry starts, each call and return of a method, each object, wait and
# notify is counted, as the program counts them itself, interpreted and compiled; collections, classes and threads as the JVM's own log has
# them. In a JVM that runs already, in both engines, all that needs no flag; the flag of the monitors' probes is set while they are
# enabled, and false again afterwards, also when descry was killed. JAVAS: homes of other JVMs than Debian's.
# serial
from live import *

PROGRAM = r"""
public class Counted {
    static class Lock { }
    static class Thing {
        int v;
        Thing(int v) { this.v = v; }
    }

    static final int CALLS = 30000, TURNS = 20;
    static final Lock lock = new Lock();
    static boolean waiting;
    static int waits;
    static volatile Object kept;
    static volatile int sum;

    static int inner(int i) { return i * 31; }
    static int outer(int i) { return inner(i) + inner(i + 1); }
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

    static void waiter() {
        synchronized (lock) {
            for (int i = 0; i < TURNS; i++) {
                waiting = true;
                while (waiting) {
                    waits++;
                    try {
                        lock.wait();
                    } catch (InterruptedException e) {
                        throw new RuntimeException(e);
                    }
                }
            }
        }
    }

    static void notifies() {
        for (int n = 0; n < TURNS; Thread.yield()) {
            synchronized (lock) {
                if (waiting) {
                    waiting = false;
                    lock.notify();
                    n++;
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        int gcs = Integer.parseInt(args[0]), n = Integer.parseInt(args[1]);
        Thread[] threads = new Thread[n];

        System.out.println("ready");
        System.in.read();
        for (int i = 0; i < gcs; i++)
            System.gc();
        for (int i = 0; i < n; i++) {
            threads[i] = new Thread(() -> fib(15), "counted-" + i);
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
        for (int i = 0; i < CALLS; i++) {
            sum += outer(i);
            kept = new Thing(i);
        }
        Thread w = new Thread(() -> waiter(), "waiter");
        w.start();
        notifies();
        w.join();
        System.out.println("waits " + waits);
        System.in.read();
    }
}
"""
GCS, THREADS, CALLS, TURNS = 5, 7, 30000, 20
FIB = 1973  # calls that fib(15) makes
# The names of classes and methods are no C strings: the length stands behind the address.
COUNTS = """
hotspot$target:::gc-begin, hotspot$target:::gc-end { @g[probename] = count(); }
hotspot$target:::class-loaded { @c = count(); @cn[copyinstr(arg0, arg1)] = count(); }
hotspot$target:::thread-start, hotspot$target:::thread-stop { @t[probename, copyinstr(arg0, arg1)] = count(); }
hotspot$target:::method-compile-begin, hotspot$target:::method-compile-end { @k[probename] = count(); }
"""
MONITORS = """
hotspot$target:::monitor-wait, hotspot$target:::monitor-waited, hotspot$target:::monitor-notify
/copyinstr(arg2, arg3) == "Counted$Lock"/ { @m[probename] = count(); }
"""
METHODS = """
hotspot$target:::method-entry, hotspot$target:::method-return
/copyinstr(arg1, arg2) == "Counted"/ { @f[probename, copyinstr(arg3, arg4)] = count(); }
hotspot$target:::object-alloc /copyinstr(arg1, arg2) == "Counted$Thing"/ { @o = count(); }
"""


def homes():
    if "JAVAS" in os.environ:
        return os.environ["JAVAS"].split()
    javac = shutil.which("javac")
    if not javac:
        skip("no javac: tools/install-deps --test installs it")
    home = os.path.dirname(os.path.dirname(os.path.realpath(javac)))
    if "hotspot" not in sh("readelf -n %s/lib/server/libjvm.so" % home).stdout:
        skip("the JVM of %s has no USDT probes" % home)
    return [home]


def java(home, log):
    return [home + "/bin/java", "-XX:+UseSerialGC", "-Xmx64m", "-Xlog:gc:file=%s.gc" % log, "-Xlog:class+load:file=%s.class" % log,
            "-cp", TMP, "Counted", str(GCS), str(THREADS)]


def logged(path, pattern):
    with open(path, encoding="utf-8") as f:
        return len(re.findall(pattern, f.read(), re.M))


def compare_events(r, name, log):
    """What both kinds of runs count."""
    pauses = logged(log + ".gc", r"GC\(\d+\) Pause")
    check(pauses >= GCS and r.aggs("g") == {"gc-begin": pauses, "gc-end": pauses}, name, "collections", pauses, r)
    threads = {k: n for k, n in r.aggs("t").items() if k[1].startswith("counted-")}
    check(threads == {(p, "counted-%d" % i): 1 for p in ("thread-start", "thread-stop") for i in range(THREADS)}, name, "threads", r)


def compare_monitors(r, name, waits):
    check(waits >= TURNS and r.aggs("m") == {"monitor-wait": waits, "monitor-waited": waits, "monitor-notify": TURNS}, name, "monitors",
          waits, r)


def started(home):
    name, log = home + ", started", TMP + "/started"
    out = TMP + "/out"
    command = shlex.join(java(home, log))
    with open(TMP + "/in", "w") as f:
        f.write("\n\n")
    with open(TMP + "/in") as stdin:
        argv = [DESCRY, "--json", "-o", out, "-n", COUNTS + MONITORS + METHODS, "-c", command]
        p = subprocess.run(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    with open(out) as f:
        r = Run(argv, p.returncode, f.read(), p.stderr, 0)
    check(p.returncode == 0 and "drop" not in p.stderr, name, "exit", r)
    compare_events(r, name, log)
    compare_monitors(r, name, numbers(p.stdout).get("waits", -1))
    check(r.aggs("c") == {(): logged(log + ".class", r"\] .* source: ")}, name, "classes", r.aggs("c"), logged(log + ".class", r"source: "))
    check(r.aggs("cn").get("Counted$Thing") == 1, name, "a class's name", r)
    k = r.aggs("k")
    check(k.get("method-compile-begin", 0) > 0 and 0 <= k["method-compile-begin"] - k.get("method-compile-end", 0) <= 64, name, "compiled", k)
    expected = {"main": 1, "<clinit>": 1, "waiter": 1, "notifies": 1, "fib": FIB * THREADS, "outer": CALLS, "inner": CALLS * 2,
                "lambda$main$0": THREADS, "lambda$main$1": 1}
    for probe in ("method-entry", "method-return"):
        check({k[1]: n for k, n in r.aggs("f").items() if k[0] == probe} == expected, name, probe, r.aggs("f"))
    check(r.aggs("o") == {(): CALLS}, name, "objects", r.aggs("o"))


def flags(home, pid):
    text = subprocess.run([home + "/bin/jcmd", str(pid), "VM.flags", "-all"], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    found = dict(re.findall(r"\b(DTrace\w+Probes) += (true|false)\b", text))
    check(len(found) == 3, home, "flags", text)
    return {k for k, v in found.items() if v == "true"}


def becomes(condition, secs=60):
    end = time.monotonic() + secs
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


def running(home, engine):
    name, log = "%s, running, %s" % (home, engine), TMP + "/" + engine
    with subprocess.Popen(java(home, log), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as j:
        try:
            check(j.stdout.readline() == "ready\n", name, "is ready")
            before = logged(log + ".class", r"source: ")
            s = tracing("--json", "-x", "engine=" + engine, "-p", str(j.pid), "-n", COUNTS + (MONITORS if engine == "inproc" else ""))
            if engine == "inproc":
                check(flags(home, j.pid) == {"DTraceMonitorProbes"}, name, "the flag is set")
            j.stdin.write("\n")
            j.stdin.flush()
            waits = numbers(j.stdout.readline()).get("waits", -1)
            s[1].send_signal(signal.SIGINT)
            r = finish(s)
            check(r.rc == 0, name, "exit", r)
            after = logged(log + ".class", r"source: ")
            compare_events(r, name, log)
            if engine == "inproc":
                compare_monitors(r, name, waits)
                check(flags(home, j.pid) == set(), name, "the flag is reset")
            check(r.aggs("c") == {(): after - before}, name, "classes", r.aggs("c"), after - before)
            if engine == "inproc":
                s = tracing("-p", str(j.pid), "-n", MONITORS)
                check(flags(home, j.pid) == {"DTraceMonitorProbes"}, name, "the flag is set again")
                s[1].kill()
                finish(s)
                check(becomes(lambda: not flags(home, j.pid)), name, "the flag is reset when descry was killed")
            j.stdin.write("\n")
            j.stdin.flush()
            check(j.wait(timeout=60) == 0, name, "the program ends well", j.returncode)
        finally:
            j.kill()


def said(home):
    with subprocess.Popen(java(home, TMP + "/said"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as j:
        try:
            check(j.stdout.readline() == "ready\n", "is ready")
            pid = str(j.pid)
            text = sh("%s list -p %s" % (DESCRY, pid)).stdout
            check(re.search(r"^process %s runs java \(\d+" % pid, text, re.M), "descry list: the runtime", text)
            check(re.search(r"^process %s has probes of its own: .*\bhotspot%s \(\d+\).*\bhotspot_jni%s \(\d+\)" % (pid, pid, pid), text, re.M),
                  "descry list: the probes", text)
            text = descry("-l", "-v", "-n", "hotspot$target:::method-entry", "-p", pid).out
            check("sets its flag DTraceMethodProbes" in text, "method-entry of a JVM that runs", text)
        finally:
            j.kill()
    with subprocess.Popen([home + "/bin/java", "-XX:+DTraceMethodProbes"] + java(home, TMP + "/said")[1:], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, bufsize=1) as j:
        try:
            check(j.stdout.readline() == "ready\n", "is ready")
            r = descry("-l", "-v", "-n", "hotspot$target:::method-entry", "-p", str(j.pid))
            check("method-entry" in r.out and "fires only" not in r.out, "method-entry of a JVM that was started so", r)
        finally:
            j.kill()


with open(TMP + "/Counted.java", "w", encoding="utf-8") as program:
    program.write(PROGRAM)
found = homes()
made = sh("%s/bin/javac -g -d %s %s/Counted.java" % (found[0], TMP, TMP))
check(made.returncode == 0, "javac", made.stderr)
for one in found:
    started(one)
    running(one, "inproc")
    running(one, "kernel")
said(found[0])
done()
