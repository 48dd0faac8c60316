#!/usr/bin/env python3
# Other programs' readers open what descry heap -o has written. VisualVM's library reads the HPROF of a live JVM: as many objects of each class
# as in the JVM's own dump, the same texts and numbers, and a path from a root. The code of Chrome's DevTools reads the snapshots of Java and
# Node.js: as many objects, bytes and retained bytes as descry has; v8-heapsnapshot finds the same objects.
# timeout: 300
import re

from live import *

READERS = os.path.join(BUILD, "readers")
JAR = os.path.join(READERS, "visualvm-heap.jar")
JAVA = r"""
public class Export {
    static class Kept { String name; int number; Kept(int i) { name = "kept " + i; number = 7 * i; } }
    static class Keeper { Kept[] held = new Kept[500]; }
    static Keeper k = new Keeper();
    public static void main(String[] a) throws Exception {
        for (int i = 0; i < 500; i++)
            k.held[i] = new Kept(i);
        System.out.println("ready");
        System.in.read();
    }
}
"""
NODE = """
class Kept { constructor(i) { this.name = 'kept ' + i; this.next = [i]; } }
class Keeper { constructor(held) { this.held = held; } }
global.k = new Keeper(Array.from({ length: 500 }, (_, i) => new Kept(i)));
console.log('ready');
process.stdin.once('data', () => process.exit(0));
"""
WALK = r"""
import java.io.File;
import java.util.*;
import org.graalvm.visualvm.lib.jfluid.heap.*;
public class Walk {
    static String text(Instance s) {
        StringBuilder b = new StringBuilder();
        for (Object v : ((PrimitiveArrayInstance) s.getValueOfField("value")).getValues())
            b.append((char) Integer.parseInt((String) v));
        return b.toString();
    }
    public static void main(String[] a) throws Exception {
        Heap h = HeapFactory.createHeap(new File(a[0]));
        for (Object o : h.getAllClasses()) {
            JavaClass c = (JavaClass) o;
            System.out.println("class " + c.getInstancesCount() + " " + c.getName());
        }
        Instance k = (Instance) h.getJavaClassByName("Export$Keeper").getInstances().get(0);
        for (Object o : ((ObjectArrayInstance) k.getValueOfField("held")).getValues()) {
            Instance kept = (Instance) o;
            System.out.println("kept " + text((Instance) kept.getValueOfField("name")) + " " + kept.getValueOfField("number"));
        }
        for (Instance i = k; i != null; i = i.isGCRoot() ? null : i.getNearestGCRootPointer())
            System.out.println("path " + i.getJavaClass().getName() + " " + i.isGCRoot());
        System.out.println("retained " + k.getRetainedSize());
    }
}
"""
DEVTOOLS = """
import { createReadStream } from 'node:fs';
import { parse } from '%s/node_modules/heap-snapshot-toolkit/index.js';
const s = await parse(createReadStream(process.argv[2], 'utf-8'));
const sums = {};
let n = 0;
for (const i = s.allNodes(); i.hasNext(); i.next(), n++) {
  const node = i.item();
  if (node.type().endsWith('string')) // its name is its text
    continue;
  const sum = sums[node.rawName()] ??= [0, 0, 0];
  sum[0]++;
  sum[1] += node.selfSize();
  sum[2] += node.retainedSize();
}
console.log(JSON.stringify({ n, total: s.totalSize, sums }));
"""
OTHER = """
const v8 = require('%s/node_modules/v8-heapsnapshot');
v8.parseSnapshotFromFile(process.argv[2]).then((s) => {
  const kept = [...s.nodes].filter((n) => n.name === process.argv[3] && n.type === 'object');
  const names = kept.map((n) => n.out_edges.find((e) => e.name === 'name').to.name);
  console.log(JSON.stringify({ n: [...s.nodes].length, kept: kept.length, names }));
});
"""


def file(name, text):
    path = os.path.join(TMP, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def run(*argv):
    r = subprocess.run(argv, capture_output=True, text=True, timeout=200, cwd=TMP)
    check(r.returncode == 0, argv, r.returncode, r.stdout[-500:], r.stderr[-2000:])
    return r.stdout


def start(*argv):
    p = kill_at_end(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TMP))
    check(p.stdout.readline() == "ready\n", argv, "did not start")
    return p


def heap(*args):
    return run(DESCRY, "heap", *args)


def walk(path):
    out = run("java", "-cp", TMP + ":" + JAR, "Walk", path)
    counts = {m[2]: int(m[1]) for m in re.finditer(r"^class (\d+) (.*)$", out, re.M)}
    return counts, re.findall(r"^kept (.*)$", out, re.M), re.findall(r"^path (.*)$", out, re.M), int(re.search(r"^retained (\d+)$", out, re.M)[1])


def visualvm(p):
    own, mine = os.path.join(TMP, "own.hprof"), os.path.join(TMP, "mine.hprof")
    run("jcmd", str(p.pid), "GC.heap_dump", "-all", own)
    heap("-p", str(p.pid), "-o", mine)
    theirs, kept, path, retained = walk(own)
    counts, my_kept, my_path, my_retained = walk(mine)
    check(len(kept) == 500 and "kept 499 3493" in kept and my_kept == kept, "texts and numbers", my_kept[:5])
    check(my_path[0] == "Export$Keeper false" and my_path[-1].endswith(" true"), "the path to a root", my_path)
    # the JVM leaves objects of Class out of its dump, and makes a few others when it is asked for it
    differ = {c: (n, counts.get(c)) for c, n in theirs.items() if c != "java.lang.Class" and abs(n - counts.get(c, 0)) > 20}
    check(not differ and len(theirs) > 400 and counts["Export$Kept"] == 500 and counts["java.lang.String"] > 5000, "objects of each class", differ)
    near(my_retained, retained, 0.2, "retained by Keeper")


def devtools(p, name, keeper, kept):
    path = os.path.join(TMP, name + ".heapsnapshot")
    heap("-p", str(p.pid), "-o", path)
    rows = [json.loads(line) for line in heap("--json", "-n", "1000000", "--histogram", path).splitlines()]
    mine = {r["class"]: (r["objects"], r["bytes"]) for r in rows if "class" in r}
    retained = [json.loads(line) for line in heap("--json", "-n", "1000000", "--retained", path).splitlines()]
    s = json.loads(run("node", file("devtools.mjs", DEVTOOLS % READERS), path))
    with open(path) as f:
        check(s["n"] == json.load(f)["snapshot"]["node_count"], name, "nodes")
    check(s["total"] == sum(b for n, b in mine.values()), name, "bytes", s["total"])
    for c in keeper, kept:
        check(tuple(s["sums"][c][:2]) == mine[c], name, c, s["sums"][c], mine[c])
    one = [r["retained"] for r in retained if r.get("class") == keeper]
    theirs = s["sums"][keeper][2]
    check(one and max(one) > 500 * 40, name, "retained by Keeper", one)
    # of Node's heap, DevTools leaves out 0.7 % that nothing else reaches by references which are not weak: code and its kin
    near(theirs, max(one), 0.02 if name == "node" else 0, name + ", retained by Keeper")
    r = json.loads(run("node", file("other.cjs", OTHER % READERS), path, kept))
    check(r["n"] == s["n"] and r["kept"] == 500 and len(r["names"]) == 500, name, "v8-heapsnapshot", r["n"], r["kept"])
    if name == "node":
        check(sorted(r["names"]) == sorted("kept %d" % i for i in range(500)), name, "texts", r["names"][:5])


if not os.path.exists(JAR) or not os.path.isdir(os.path.join(READERS, "node_modules")):
    skip("no readers: tools/install-heap-readers %s" % READERS)
if not all(map(shutil.which, ("java", "javac", "jcmd", "node"))):
    skip("no java, javac, jcmd or node")
run("javac", "-d", TMP, file("Export.java", JAVA))
run("javac", "-nowarn", "-cp", JAR, "-d", TMP, file("Walk.java", WALK))
p = start("java", "-Xmx256m", "-cp", TMP, "Export")
visualvm(p)
devtools(p, "java", "Export$Keeper", "Export$Kept")
p = start("node", file("export.js", NODE))
devtools(p, "node", "Keeper", "Kept")
done()
