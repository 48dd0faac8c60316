#!/usr/bin/env python3
# Probes of methods in a JVM whose interpreter has no code for them (Java 25 of tools/install-runtimes): the counts are those of a copy of the program
# in which each method counts itself, in both engines, interpreted, compiled by each compiler, with each collector, also for classes that are
# loaded later. Stacks have the method and its callers. Afterwards the JVM calls its functions for the probes no more, also after descry was
# killed, 100 times (KILLS), and the program's answer is always the same.
# serial
# timeout: 600
from runtime_versions import *

METHOD = re.compile(r"^( *)((?:static |synchronized |public |default )*[\w\[\]]+ (\w+)\([^)]*\)) \{ ?// (\w+)$", re.M)
PROGRAM = r"""
import java.io.*;
import java.util.*;
import java.util.function.*;

public class App {
    static final int[] COUNTS = new int[100];
    static final TreeMap<String, Integer> NAMES = new TreeMap<>();
    static int id(String name) {
        return NAMES.computeIfAbsent(name, k -> NAMES.size());
    }
    interface Shape {
        int area(int n);
        default int twice(int n) { // Shape
            return 2 * area(n);
        }
    }
    static class Square implements Shape {
        public int area(int n) { // Square
            return n * n;
        }
    }
    static class Wide implements Shape {
        final long[] kept = new long[3];
        public synchronized int area(int n) { // Wide
            kept[n % 3] += n;
            return (int) kept[n % 3] % 1000;
        }
    }
    static class Later {
        static float half(float f) { // Later
            return f / 2;
        }
        static synchronized double sum(byte a, long b, double c, float d) { // Later
            return a + b + c + half(d);
        }
    }
    static int fib(int n) { // App
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }
    static long mix(long a, int b, long c) { // App
        return a * 31 + b ^ c;
    }
    static String text(String s, int n) { // App
        return n % 2 == 0 ? s : null;
    }
    static int throwing(int n) { // App
        if (n % 3 == 0)
            throw new IllegalStateException();
        return n;
    }
    static void nothing() { // App
    }
    static int catching(int n) { // App
        try {
            return throwing(n);
        } catch (IllegalStateException e) {
            return -1;
        }
    }
    static long run(int n, boolean later) { // App
        Shape[] shapes = { new Square(), new Wide() };
        IntUnaryOperator f = x -> shapes[x % 2].twice(x);
        long sum = 0;
        for (int i = 0; i < n; i++) {
            sum = mix(sum, f.applyAsInt(i), i) + fib(i % 6) + catching(i);
            sum += text("x", i) == null ? 1 : 2;
            nothing();
            if (later)
                sum += (long) Later.sum((byte) i, i, i / 2.0, i);
        }
        return sum;
    }
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            Arrays.fill(COUNTS, 0);
            System.out.print("[" + run(Integer.parseInt(words[0]), words.length > 1));
            for (Map.Entry<String, Integer> e : NAMES.entrySet())
                if (COUNTS[e.getValue()] > 0)
                    System.out.print(",\"" + e.getKey() + "\"," + COUNTS[e.getValue()]);
            System.out.println("]");
        }
    }
}
"""
ENTRIES = "java$target:App*::entry { @e[probemod, probefunc] = count(); }"
BOTH = ENTRIES + "java$target:App*::return { @r[probemod, probefunc] = count(); }"
STACK = "java$target:App:text:entry { @e[jstack(4)] = count(); } java$target:App:text:return { @r[jstack(4)] = count(); }"
AT_PROBE = "pid$target:libjvm.so:*dtrace_method_e*:entry { @ = count(); }"
OPTIONS = [("-XX:+UseG1GC", "inproc"), ("-XX:+UseG1GC", "kernel"), ("-Xint", "inproc"), ("-XX:TieredStopAtLevel=1", "kernel"),
           ("-XX:-TieredCompilation", "inproc"), ("-XX:+UseZGC", "kernel"), ("-XX:+UseSerialGC", "inproc"), ("-XX:+UseParallelGC", "inproc")]
MANY = 20000


def counting(text):
    """The program with a counter in each method that is marked."""
    ids = []

    def counter(m):
        name = ("App" if m[4] == "App" else "App$" + m[4]) + "." + m[3]
        ids.append(name)
        return "%s%s {\n%s    COUNTS[%d]++;" % (m[1], m[2], m[1], len(ids) - 1)

    text = METHOD.sub(counter, text)
    names = "static { %s }" % " ".join('NAMES.put("%s", %d);' % (n, i) for i, n in enumerate(ids))
    return text.replace("    static int id(", "    " + names + "\n    static int id(")


def compiled_to(folder, text):
    path = os.path.join(TMP, folder)
    os.mkdir(path)
    with open(path + "/App.java", "w", encoding="utf-8") as f:
        f.write(text)
    subprocess.run(["javac", "--release", "11", "-g", "-d", path, path + "/App.java"], check=True, capture_output=True)
    return path


def app(folder, name, *options):
    return Program(name, "-Xmx128m", "-XX:+EnableDynamicAgentLoading", *options, "-cp", folder, "App")


def truth(folder, name, *words):
    """The program's answer, and {(class, method): calls}."""
    p = app(folder, name)
    answer = p.ask(*words)
    p.p.stdin.close()
    return answer[0], {tuple(k.rsplit(".", 1)): v for k, v in zip(answer[1::2], answer[2::2])}


def known(aggs, wanted):
    return {k: v for k, v in aggs.items() if k in wanted}


def equal(p, engine, r, wanted, name):
    found = known({tuple(k.split(",")) if isinstance(k, str) else k: v for k, v in r.aggs(name).items()}, wanted)
    p.check(found == wanted, engine, name, {k: (wanted.get(k), found.get(k)) for k in wanted if wanted.get(k) != found.get(k)}, r.err)


def quiet(p):
    """The JVM calls its functions for the probes no more."""
    def none():
        _, r = p.traced("kernel", AT_PROBE, 1000, "later")
        return r is not None and r.aggs() == {}
    end = time.monotonic() + 60
    while not none():
        if not p.check(time.monotonic() < end, "the probes are passed no more"):
            return


def counted(name, option, engine, answers, wanted):
    p = app(PLAIN, name, option)
    p.name += ", %s, %s" % (option, engine)
    first = p.ask(1000)
    said, r = p.traced(engine, BOTH, MANY, "later")
    p.check(said == [answers["many"]], engine, "the answer", said)
    equal(p, engine, r, wanted["many"], "e")
    returns = dict(wanted["many"])
    # compiled code in which a handler is inlined does not pass the probe of a method that throws
    thrown = returns.pop(("App", "throwing"))
    equal(p, engine, r, returns, "r")
    p.check(thrown * 2 // 3 <= known(r.aggs("r"), wanted["many"])[("App", "throwing")] <= thrown, "returns of the method that throws", r)
    said, r = p.traced(engine, "java$target:App:fib:entry { @e[probemod, probefunc] = count(); }", 1000, "later")
    equal(p, engine, r, {("App", "fib"): wanted["few"][("App", "fib")]}, "e")
    quiet(p)
    p.check(p.ask(1000) == first, "the answer afterwards")


def interpreted_returns(name, wanted):
    """The interpreter passes them for exceptions, too."""
    p = app(PLAIN, name, "-Xint")
    _, r = p.traced("inproc", BOTH, 1000, "later")
    equal(p, "inproc", r, wanted["few"], "e")
    equal(p, "inproc", r, wanted["few"], "r")


def stacks(name, engine):
    p = app(PLAIN, name, "-Xint")
    _, r = p.traced(engine, STACK, 100)
    for direction in "e", "r":
        rows = r.aggs(direction)
        text = "\n".join(map(str, rows))
        p.check(sum(rows.values()) == 100 and re.search(r"App\.text\b.*App\.run\b", text, re.S), engine, direction, "stack", text)


def killed(name, answers):
    p = app(PLAIN, name)
    for i in range(int(os.environ.get("KILLS", 100))):
        d = tracing("-q", "-x", "engine=" + ("inproc", "kernel")[i % 2], "-p", p.pid, "-n", BOTH)
        p.tell(1000, "later")
        d[1].kill()
        finish(d)
        answer = p.answer()
        if not p.check(answer == [answers["few"]], "killed", i, answer):
            break
    quiet(p)


def native_methods(name):
    """Methods in native code are never counted, and the JVM compiles no way to them that would have the probes afterwards."""
    p = app(PLAIN, name)
    _, r = p.traced("inproc", "java$target:java.lang.Throwable:fillInStackTrace:entry { @e[copyinstr(arg5, arg6)] = count(); }", MANY)
    p.check(r and list(r.aggs("e")) == ["()Ljava/lang/Throwable;"] and sum(r.aggs("e").values()) >= MANY // 3, "native methods", r)
    quiet(p)


def version(name):
    answers, wanted = {}, {}
    for key, words in {"many": (MANY, "later"), "few": (1000, "later")}.items():
        answers[key], wanted[key] = truth(COUNTING, name, *words)
        check(len(wanted[key]) == 12, "methods that count themselves", wanted)
    for option, engine in OPTIONS:
        counted(name, option, engine, answers, wanted)
    interpreted_returns(name, wanted)
    for engine in "inproc", "kernel":
        stacks(name, engine)
    native_methods(name)
    killed(name, answers)


PLAIN, COUNTING = compiled_to("plain", PROGRAM), compiled_to("counting", counting(PROGRAM))
os.chmod(TMP, 0o755)
EXPECTED["java"] = ("25",)
each_version("java", version)
