#!/usr/bin/env python3
# descry heap on a live HotSpot (Java 17; DESCRY_JAVA names another java, of 25): as many objects and bytes of each class as `jcmd PID GC.class_histogram` has, for Serial, Parallel,
# G1 and ZGC (of 17), with and without compressed pointers; references, paths and retained memory of objects that the test knows; the same from its
# core; as an HPROF file; a program that runs on while it is read, one that is killed, and collectors that descry does not read.
# timeout: 600
import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile

from checks import *

DESCRY = os.environ["DESCRY"]
TMP = tempfile.mkdtemp(prefix="descry-heap-java-")
atexit.register(shutil.rmtree, TMP, True)
running = []
COUNT = 20000

PROGRAM = r"""
import java.lang.ref.*;
import java.util.*;

public class Plant {
    static class Session { int id; String name; Object next; long[] times; Session(int i, Object n) { id = i; name = "session " + i; next = n; times = new long[i % 5]; } }
    static class Keeper { Object held; }
    static class Weakly { int x; }
    static class Below extends Keeper { Object more; static Object shared = new Keeper(); }
    static Session[] sessions;
    static Keeper keeper = new Keeper();
    static Below below = new Below();
    static WeakReference<Weakly> weak;
    static SoftReference<Weakly> soft;
    static volatile Object churned;

    static void churn() {
        Random r = new Random(1);
        Session[] all = new Session[1000];
        while (true) {
            int k = r.nextInt(all.length);
            all[k] = new Session(k, new int[r.nextInt(300)]);
            if (r.nextInt(1000) == 0)
                churned = new byte[200000];
        }
    }

    static void plant(int n) {
        Session before = null;
        sessions = new Session[n];
        for (int i = 0; i < n; i++)
            sessions[i] = before = new Session(i, i % 100 == 0 ? null : before);
        List<byte[]> list = new ArrayList<>();
        for (int i = 0; i < 1000; i++)
            list.add(new byte[1000]);
        keeper.held = list;
        below.held = new byte[5][7][];
        below.more = new Keeper();
        soft = new SoftReference<>(new Weakly());
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("churn")) {
            for (int i = 0; i < 2; i++) {
                Thread t = new Thread(Plant::churn);
                t.setDaemon(true);
                t.start();
            }
        } else {
            plant(Integer.parseInt(args[0]));
        }
        System.out.println("ready");
        System.in.read();
    }
}
"""
LETTERS = {"B": "byte", "C": "char", "I": "int", "J": "long", "Z": "boolean", "S": "short", "F": "float", "D": "double"}


@atexit.register
def end_all():
    for p in running:
        p.kill()
        p.wait()


def start(*args, what=str(COUNT)):
    # few arenas of malloc(3), and a small reserve for code: the core is small
    env = dict(os.environ, MALLOC_ARENA_MAX="1")
    p = subprocess.Popen([JAVA, "-Xmx128m", "-XX:ReservedCodeCacheSize=16m", *args, "-cp", TMP, "Plant", what], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    running.append(p)
    line = p.stdout.readline()
    while "VM warning: " in line or line.startswith("["):  # 25 warns of -XX:-UseCompressedClassPointers
        line = p.stdout.readline()
    return p if line == "ready\n" else None


def end(p):
    p.kill()
    p.wait()
    running.remove(p)


def heap(*args):
    p = subprocess.run([DESCRY, "heap", "--json", "-n", "10000000", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == 0, "exit", p.returncode, p.args, p.stdout[-500:], p.stderr[-500:])
    return [json.loads(line) for line in p.stdout.splitlines()]


def own_name(name):
    """A class as descry names it."""
    dims = len(name) - len(name.lstrip("["))
    element = name[dims:]
    if dims:
        element = LETTERS.get(element) or element[1:-1]
    return element + "[]" * dims


def own(p):
    """The JVM's own histogram, behind a collection. ZGC makes none for it."""
    subprocess.run(["jcmd", str(p.pid), "GC.run"], stdin=subprocess.DEVNULL, capture_output=True)
    r = subprocess.run(["jcmd", str(p.pid), "GC.class_histogram"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(r.returncode == 0, r.stdout[-500:], r.stderr[-500:])
    rows = {}
    for m in re.finditer(r"^ *\d+: +(\d+) +(\d+) +(\S+)", r.stdout, re.M):
        n, size = rows.get(own_name(m[3]), (0, 0))
        rows[own_name(m[3])] = (n + int(m[1]), size + int(m[2]))
    return rows


def histogram(*where):
    rows = {}
    for r in heap("--histogram", *where):
        if "class" in r:
            n, size = rows.get(r["class"], (0, 0))
            rows[r["class"]] = (n + r["objects"], size + r["bytes"])
    return rows


def differ(a, b):
    return {k: (a.get(k), b.get(k)) for k in set(a) | set(b) if a.get(k) != b.get(k)}


def compare(p, name, count=COUNT):
    """Equal in all classes. A thread of the JVM may make an object in between: then once more."""
    own(p)  # makes what jcmd needs
    for _ in range(10):
        before = own(p)
        found = histogram("-p", str(p.pid))
        if before == own(p) and before == found:
            break
    check(found == before, name, "differ", differ(before, found))
    check(found.get("Plant$Session", (0, 0))[0] == count, name, "Plant$Session", found.get("Plant$Session"))
    check(found.get("byte[][]") == before.get("byte[][]") and found.get("byte[][][]", (0, 0))[0] == 1, name, found.get("byte[][][]"))
    rows = heap("-p", str(p.pid))
    if check(rows and rows[0]["source"] == "java", name, rows[:1]):
        check(rows[0]["unreachable"] * 100 < rows[0]["objects"], name, "not reachable", rows[0])


def one(where, expression):
    rows = [r for r in heap("--find", expression, *where) if "address" in r]
    return rows[0]["address"] if check(len(rows) == 1, expression, rows) else None


def sums(*where):
    """The classes, but for the bytes of java.lang.Class, of which a dump has not all; and what roots reach."""
    rows = histogram(*where)
    rows["java.lang.Class"] = rows["java.lang.Class"][:1]
    head = heap(*where)[0]
    return rows, [head[what] for what in ("objects", "reachable", "weakly_reachable", "unreachable")]


def export(p, name):
    """The heap as an HPROF file is the same. A thread of the JVM may do something in between: then once more."""
    dump = os.path.join(TMP, "x.hprof")
    for _ in range(10):
        here = sums("-p", str(p.pid))
        r = subprocess.run([DESCRY, "heap", "-p", str(p.pid), "-o", dump], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if not check(r.returncode == 0 and "no place" not in r.stderr, name, r.stdout, r.stderr):
            return
        there = sums(dump)
        if here == there:
            break
    check(here == there, name, "exported", differ(here[0], there[0]), here[1], there[1])
    os.unlink(dump)


def ask(p):
    """Questions whose answers are known."""
    where = ("-p", str(p.pid))
    keeper = one(where, 'class == "Plant$Keeper" && retained > 1000000')
    if not keeper:
        return
    refs = heap("--refs", keeper, *where)
    check(1016000 <= refs[0]["retained"] <= 1040000, refs[0])
    check(any(r.get("field") == "held" and r["class"] == "java.util.ArrayList" for r in refs[1:]), refs)
    check(any(r.get("field") == "keeper" and r["class"] == "java.lang.Class" for r in refs[1:]), refs)
    refs = heap("--refs", one(where, 'class == "Plant$Below"') or "0", *where)
    for field, name in (("held", "byte[][][]"), ("more", "Plant$Keeper")):
        check(any(r.get("field") == field and r["class"] == name for r in refs[1:]), field, refs)
    paths = heap("--paths", "Plant$Session", *where)
    check(any(r.get("field") == "sessions" for r in paths), paths)
    weakly = one(where, 'class == "Plant$Weakly" && !reachable')
    refs = heap("--refs", weakly or "0", *where)
    check([r["strength"] for r in refs if r["type"] == "referrer"] == ["soft"], refs)


JAVA = os.environ.get("DESCRY_JAVA", "java")
for tool in JAVA, "javac", "jcmd":
    if not shutil.which(tool):
        skip("no %s" % tool)
version = subprocess.run([JAVA, "-version"], capture_output=True, text=True)
VERSION = "".join(re.findall(r'version "(17|25)\.', version.stderr + version.stdout))
if not VERSION or "HotSpot" not in version.stderr + version.stdout and "OpenJDK" not in version.stderr + version.stdout:
    skip("java is none of the versions 17 and 25 whose heaps the test knows")
with open(os.path.join(TMP, "Plant.java"), "w") as f:
    f.write(PROGRAM)
subprocess.run(["javac", "--release", "17", "-d", TMP, os.path.join(TMP, "Plant.java")], check=True)

# ZGC's heap is known of 17 alone
ZGC = [("Z", ())] if "17" in VERSION else []
wide = ("-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers")
for collector, options in (("Serial", ()), ("Parallel", wide), ("G1", ("-XX:G1HeapRegionSize=1m",)), ("G1", wide), *ZGC):
    p = start("-XX:+Use%sGC" % collector, *options)
    if not check(p, collector, "the program did not start"):
        continue
    compare(p, " ".join((collector, *options)))
    if not options or collector == "Parallel":
        ask(p)
    if options or collector == "Z":
        export(p, " ".join((collector, *options)))
    if collector == "Serial" and shutil.which("gcore"):
        core = os.path.join(TMP, "core")
        r = subprocess.run(["gcore", "-o", core, str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True)
        if r.returncode == 0:
            core += ".%d" % p.pid
            here, there = histogram("-p", str(p.pid)), histogram(core)
            check(here == there, "core and process differ", differ(here, there))
            os.unlink(core)
    end(p)

# More than a million objects.
p = start("-XX:+UseG1GC", "-Xmx1g", what="300000")
if check(p, "a million", "the program did not start"):
    compare(p, "a million", 300000)
    found = histogram("-p", str(p.pid))
    check(sum(n for n, _ in found.values()) > 1000000, "a million objects", sum(n for n, _ in found.values()))
    end(p)

# A program that makes and drops objects all the while is read, and goes on.
for collector in "Serial", "Parallel", "G1", *(name for name, _ in ZGC):
    p = start("-XX:+Use%sGC" % collector, "-Xmx64m", what="churn")
    if not check(p, collector, "the program did not start"):
        continue
    for _ in range(2):
        rows = heap("-p", str(p.pid))
        check(rows and rows[0]["objects"] > 1000, rows[:1])
    check(p.poll() is None, "the program has ended", p.poll())
    # killed while it is read: an answer or one message
    d = subprocess.Popen([DESCRY, "heap", "-p", str(p.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end(p)
    out, err = d.communicate()
    check(d.returncode in (0, 1), "exit", d.returncode, out, err)
    check(d.returncode == 0 or err.strip(), "no message")

p = start("-XX:+UnlockExperimentalVMOptions", "-XX:+UseEpsilonGC", what="10")
if p:
    r = subprocess.run([DESCRY, "heap", "-p", str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(r.returncode == 1 and "EpsilonGC" in r.stderr and "GC.heap_dump" in r.stderr, r.stdout, r.stderr)
    end(p)
done()
