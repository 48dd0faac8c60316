#!/usr/bin/env python3
# ustack() and descry profile have the functions and lines of Java programs, walked in the kernel and in the process: interpreted, compiled
# by each compiler, inlined, in stubs and in the JVM's own functions; of a process that runs, and of a command from its start. JAVAS: homes of the JVMs to
# compare, instead of Debian's; SAMPLES: of each kind.
# serial
# timeout: 900
import itertools

from jvms import java_homes
from live import *

SAMPLES = int(os.environ.get("SAMPLES", "600"))
# Each line has the calls that it makes, so that the line of a caller shows the function in front of it.
PROGRAM = r"""
import java.util.*;

public class Busy {
    static volatile long sink;
    static final Object lock = new Object();

    static int leaf(int i) {
        return i * 31 + 7;
    }

    static int middle(int i) {
        return leaf(i)
                ^ leaf(i + 1);
    }

    static int loop() {
        int x = 0;
        for (int i = 0; i < 3000; i++)
            x += middle(i);
        return x;
    }

    static int fib(int n) {
        return n < 2 ? n : fib(n - 1)
                + fib(n - 2);
    }

    static int key(int x) {
        return x * 7 % 1000;
    }

    static int compared(Integer a, Integer b) {
        return key(a)
                - key(b);
    }

    static int sorted() {
        Integer[] v = new Integer[200];
        for (int i = 0; i < v.length; i++)
            v[i] = Integer.valueOf(i * 7919 % 1000);
        Arrays.sort(v, (a, b) -> compared(a, b));
        return v[0];
    }

    static class Node {
        Node next;
        long[] room = new long[20];

        Node(Node n) {
            next = n;
        }
    }

    static long allocated() {
        Node n = null;
        for (int i = 0; i < 200; i++)
            n = new Node(n);
        return n.room.length;
    }

    static long copied() {
        byte[] from = new byte[20000], to = new byte[20000];
        for (int i = 0; i < 20; i++)
            System.arraycopy(from, i, to, i + 1, 10000);
        return to[5];
    }

    static int thrown(int n) {
        if (n == 0)
            throw new IllegalStateException("x");
        return thrown(n - 1) + 1;
    }

    static int caught() {
        try {
            return thrown(5);
        } catch (IllegalStateException e) {
            return 1;
        }
    }

    static synchronized long locked() {
        synchronized (lock) {
            return System.nanoTime();
        }
    }

    static int reflected() throws Exception {
        return (int)Busy.class.getDeclaredMethod("loop").invoke(null);
    }

    static int work() throws Exception {
        int x = loop();
        x += fib(15);
        x += sorted();
        x += allocated();
        x += copied();
        x += caught();
        x += locked();
        x += reflected();
        return x;
    }

    static int deep(int n) throws Exception {
        return n == 0 ? work()
                : deep(n - 1);
    }

    static void forever() throws Exception {
        while (true)
            sink += deep(10);
    }

    public static void main(String[] args) throws Exception {
        Thread t = new Thread(() -> {
            try {
                forever();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        });
        t.start();
        System.out.println("ready");
        System.out.flush();
        forever();
    }
}
"""[1:]
SOURCE = PROGRAM.split("\n")
MODES = {"G1": ["-XX:+UseG1GC"], "interpreted": ["-Xint"], "C1, serial": ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
         "C2, Z": ["-XX:-TieredCompilation", "-XX:+UseZGC"]}
FRAME = re.compile(r"(\S+|\?)`((?:[\w$<>/]+\.)+[\w$<>]+)(?::(\d+))?$")
# the library calls them, or the JVM does
FROM_OUTSIDE = re.compile(r"Busy\.(main|lambda\$.*|loop)$")


def stacks(text):
    """Stacks of printed aggregations: ([frames], count)."""
    for m in re.finditer(r"((?:^ +\S.*\n)+?)^ +(\d+)$", text, re.M):
        yield [line.strip() for line in m.group(1).splitlines()], int(m.group(2))


def calls(outer, line, inner):
    """Does this line of the program call that function?"""
    own, name = inner.startswith("Busy"), inner.rsplit(".", 1)[-1]
    text = SOURCE[line - 1]
    if outer.startswith("Busy.lambda$sorted"):
        return name in ("compared", "intValue", "valueOf")
    if name == "<init>":
        return "new " in text or "super" in text or "{" in text
    if own and not name.startswith("lambda$"):
        return name + "(" in text
    # Java's own functions: called by name, or by a form of the language (boxing, lambdas, classes that are found)
    return True


def judge(name, all_stacks, r):
    seen, whole, unknown, wrong, inside = 0, 0, 0, [], set()
    for frames, n in all_stacks:
        found = [FRAME.match(f) for f in frames]
        own = [m for m in found if m and m.group(2).startswith("Busy.")]
        unknown += n if "[java]" in frames else 0
        if not own:
            continue
        seen += n
        whole += n if any("clone3" in f for f in frames) and not any("stack ends" in f for f in frames) else 0
        inside.update(m.group(2) for m in own)
        for m in own:
            if m.group(1) != "Busy.java":
                wrong.append(("in another file", m.group(0), frames))
        # behind this stub the function may stand that an exception has just left
        left = any("handle_exception_from_callee" in f for f in frames[:1])
        for inner, outer in zip(found[2 * left:], found[2 * left + 1:]):
            if not inner or not outer or not outer.group(2).startswith("Busy."):
                # what the program's functions are called by
                if inner and outer and inner.group(2).startswith("Busy.") and not FROM_OUTSIDE.match(inner.group(2)):
                    wrong.append(("called by", outer.group(2), frames))
                continue
            if not outer.group(3):
                wrong.append(("a caller without a line", frames))
            elif not calls(outer.group(2), int(outer.group(3)), inner.group(2)):
                wrong.append(("line %s does not call %s" % (outer.group(3), inner.group(2)), frames))
    print("%s: %d samples, %d whole, %d wrong, %d without a name" % (name, seen, whole, len(wrong), unknown))
    check(seen > 10, name, "has samples", seen, r)
    # the JVM's stubs have moments at which no frame can be told, such as a barrier of ZGC's
    check(len(wrong) * 200 <= seen, name, "calls as the program makes them", "\n".join(str(w) for w in wrong[:4]))
    check(whole >= seen * 0.95, name, "whole", whole, "of", seen)
    check(unknown <= seen * 0.05, name, "names", unknown, "of", seen)
    return inside


# until there are enough, on a machine as busy as it may be
ENOUGH = ("profile-997 /pid == $target/ { @[jstack(100)] = count(); n++; } profile-997 /n >= %d/ { exit(0); } tick-60s { exit(0); }" % SAMPLES)
homes = java_homes()
with open(TMP + "/Busy.java", "w") as f:
    f.write(PROGRAM)
subprocess.run([homes[0] + "/bin/javac", "-g", "-d", TMP, TMP + "/Busy.java"], check=True)
for home, engine in itertools.product(homes, ("kernel", "inproc")):
    options = ("-q", "-x", "engine=" + engine, "-x", "aggsize=16m")
    for mode, flags in MODES.items():
        p = subprocess.Popen([home + "/bin/java", "-Xmx128m", *flags, "-cp", TMP, "Busy"], stdout=subprocess.PIPE)
        check(p.stdout.readline() == b"ready\n", "is ready")
        r = descry(*options, "-p", str(p.pid), "-n", ENOUGH)
        inside = judge("%s, %s, %s" % (home, engine, mode), stacks(r.out), r)
        check({"Busy.work", "Busy.deep", "Busy.forever"} <= inside, "functions", inside)
        p.kill()
        p.wait()
    # names are read while it runs
    r = descry(*options, "-n", ENOUGH, c="%s/bin/java -Xmx128m -cp %s Busy" % (home, TMP))
    judge("%s, %s, -c" % (home, engine), stacks(r.out), r)
for home in homes:
    compare_folded([home + "/bin/java", "-Xmx128m", "-cp", TMP, "Busy"], "Busy.work", "Busy.forever")
done()
