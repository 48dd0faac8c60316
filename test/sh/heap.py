#!/usr/bin/env python3
# timeout: 600
# descry heap: dumps that Java, Node and Ruby write of themselves have the counts that they report, and the planted leak is found.
import atexit
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

from checks import *

DESCRY = os.environ["DESCRY"]
TMP = tempfile.mkdtemp(prefix="descry-heap-")
atexit.register(shutil.rmtree, TMP, True)


def heap(*args, rc=0):
    p = subprocess.run([DESCRY, "heap", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == rc, "exit", p.returncode, p.args, p.stdout, p.stderr)
    return p


def rows(*args):
    return [json.loads(line) for line in heap("--json", "-n", "1000000", *args).stdout.splitlines()]


def path_of(name, text=""):
    path = os.path.join(TMP, name)
    with open(path, "w") as f:
        f.write(text)
    return path


JAVA = """import java.util.*;
public class Shop {
    static class Order { long id; String name; byte state; Order(long i) { id = i; name = "order " + i; } }
    static class Cache { Map<Integer, Order> orders = new HashMap<>(); }
    static class Held { byte[] big = new byte[100000]; }
    static Cache cache = new Cache();
    static Object soft = new java.lang.ref.SoftReference<Object>(new Held());
    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 20000; i++) cache.orders.put(i, new Order(i));
        List<double[]> local = new ArrayList<>();
        for (int i = 0; i < 1000; i++) local.add(new double[10]);
        System.out.println("ready");
        while (System.in.read() >= 0) { }
        System.out.println(local.size());
    }
}
"""


def jcmd(pid, *args):
    """jcmd gives up when a busy machine does not let the other process answer within ten seconds."""
    for _ in range(8):
        p = subprocess.run(["jcmd", str(pid), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if p.returncode == 0:
            return p.stdout
    skip("jcmd does not reach the process: " + p.stderr)


def histogram_of(pid):
    text = jcmd(pid, "GC.class_histogram")
    names = {"B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short", "Z": "boolean"}
    found = {}
    for n, size, name in re.findall(r"^ *\d+: +(\d+) +(\d+) +(\S+)", text, re.M):
        dims = len(name) - len(name.lstrip("["))
        name = name.lstrip("[")
        if dims:
            name = name[1:-1] if name.startswith("L") else names[name]
        found[name + "[]" * dims] = (int(n), int(size))
    return found


def java():
    path_of("Shop.java", JAVA)
    if not all(shutil.which(p) for p in ("java", "javac", "jcmd")) or subprocess.run(["javac", "-d", TMP, os.path.join(TMP, "Shop.java")]).returncode:
        print("note: a JDK is not installed: dumps of Java are not tested")
        return
    p = subprocess.Popen(["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", TMP, "Shop"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(p.kill)
    check(p.stdout.readline() == "ready\n", "the program of Java started")
    dump = os.path.join(TMP, "shop.hprof")
    before = histogram_of(p.pid)
    made = jcmd(p.pid, "GC.heap_dump", "-overwrite", dump)
    after = histogram_of(p.pid)
    p.stdin.close()
    p.wait()
    check(os.path.exists(dump), made)

    # the objects of a class, and their sizes, which are not in the file. A mirror of a class has fields that no dump has
    same = {c: v for c, v in before.items() if after.get(c) == v and c != "java.lang.Class"}
    counted = {r["class"]: (r["objects"], r["bytes"]) for r in rows("--histogram", dump)}
    check(len(same) > 150 and same["Shop$Order"][0] == 20000, len(same), same.get("Shop$Order"))
    off = {c: (v, counted.get(c)) for c, v in same.items() if counted.get(c, (0, 0)) != v}
    check(len([c for c in off if off[c][0][0] != (off[c][1] or (0, 0))[0]]) <= 2, "counts", off)
    check(len(off) <= len(same) // 20, "sizes", off)
    check(not [c for c in off if c.startswith("Shop$") or same[c][0] >= 1000], off)

    # the suspect: the class's field holds the cache, whose table has the orders
    summary = rows(dump)
    total, suspects = summary[0], [r for r in summary if r["type"] == "suspect"]
    check(total["source"] == "hprof" and total["reachable"] > 60000 and not total["remarks"], total)
    check(total["weakly_reachable"] >= 2 and total["weakly_reachable_bytes"] >= 100000, "the soft reference", total)
    leak = suspects[0]
    check(leak["point_class"] == "java.util.HashMap$Node[]" and leak["point_holds"] == 20000, leak)
    check([s.get("field") for s in leak["path"][-3:]] == ["cache", "orders", "table"], leak["path"])
    kept = {r["class"]: r for r in rows("--retained", dump)}
    size = lambda c: counted[c][1] // counted[c][0]
    strings = sum(size("java.lang.String") + (16 + len("order %d" % i) + 7) // 8 * 8 for i in range(20000))
    check(kept["Shop$Order"]["retained"] == 20000 * size("Shop$Order") + strings, kept["Shop$Order"], strings)
    check("Shop$Held" not in kept, "a soft reference retains nothing")

    ways = rows("--paths", "Shop$Order", dump)
    check(ways[-1]["class"] == "Shop$Order" and ways[-1]["leads_to"] == 20000, ways[-1])
    local = [w for w in rows("--paths", "double[]", dump) if w.get("field") == "<local>"]
    check(local and local[0]["leads_to"] == 1000, "local variables belong to their thread", local)
    found = rows("--find", 'class == "Shop$Cache" && size >= 16', dump)
    check(len(found) == 1 and found[0]["retained"] == kept["Shop$Cache"]["retained"], found)
    refs = rows("--refs", found[0]["address"], dump)
    check(refs[0]["class"] == "Shop$Cache" and [r["field"] for r in refs if r["type"] == "reference"] == ["orders"], refs)
    check([(r["class"], r["field"]) for r in refs if r["type"] == "referrer"] == [("java.lang.Class", "cache")], refs)
    check(not rows("--diff", dump, dump), "no difference to itself")

    packed = path_of("shop.hprof.gz")
    with open(dump, "rb") as f, gzip.open(packed, "wb", 1) as z:
        shutil.copyfileobj(f, z)
    check(rows("--histogram", packed) == rows("--histogram", dump), "a packed dump is the same")
    with open(dump, "rb") as f:
        whole = f.read()
    with open(dump, "wb") as f:
        f.write(whole[:len(whole) // 2])
    check(re.search(r"shop.hprof: byte \d+: .*truncated", heap(dump, rc=1).stderr), "truncated")


def node():
    program = path_of("shop.js", """const v8 = require('v8');
class Order { constructor(i) { this.id = i; this.name = 'order ' + i; } }
global.cache = new Map();
for (let i = 0; i < 10000; i++) cache.set(i, new Order(i));
setImmediate(() => v8.writeHeapSnapshot(process.argv[2]));
""")
    dump = os.path.join(TMP, "shop.heapsnapshot")
    # without compilers: a compilation of the loop under way holds the Map by a handle of its own, beside the field
    if not shutil.which("node") or subprocess.run(["node", "--jitless", program, dump], stdout=subprocess.DEVNULL,
                                                  stderr=subprocess.DEVNULL).returncode:
        print("note: Node is not installed: its snapshots are not tested")
        return
    with open(dump) as f:
        snapshot = json.load(f)
    fields = snapshot["snapshot"]["meta"]["node_fields"]
    sizes = snapshot["nodes"][fields.index("self_size")::len(fields)]
    total = rows(dump)[0]
    check(total["objects"] == snapshot["snapshot"]["node_count"] and total["bytes"] == sum(sizes), total)
    check(total["references"] + total["weak_references"] == snapshot["snapshot"]["edge_count"] and not total["dropped_references"], total)
    check({r["class"]: r["objects"] for r in rows("--histogram", dump)}["Order"] == 10000, "orders")
    ways = rows("--paths", "Order", dump)
    check(any(w["class"] == "Map" and w["leads_to"] >= 9900 for w in ways), ways[:20])
    leaks = [r for r in rows("--percent", "5", dump) if r["type"] == "suspect"]
    check(any("cache" in [s.get("field") for s in r.get("path", [])] for r in leaks), leaks)


def ruby():
    program = path_of("shop.rb", """require 'objspace'
class Order; def initialize(i); @id = i; @name = "order #{i} with a long name"; end; end
$cache = {}
5000.times { |i| $cache[i] = Order.new(i) }
GC.start
GC.disable
File.open(ARGV[0], "w") { |f| ObjectSpace.dump_all(output: f) }
puts ObjectSpace.each_object(Order).count, ObjectSpace.each_object(Class).count { |c| !c.singleton_class? }
puts ObjectSpace.count_objects[:T_OBJECT]
""")
    dump = os.path.join(TMP, "shop.json")
    p = subprocess.run(["ruby", program, dump], capture_output=True, text=True) if shutil.which("ruby") else None
    if not p or p.returncode:
        print("note: Ruby is not installed: its dumps are not tested")
        return
    orders, classes, objects = map(int, p.stdout.split())
    with open(dump) as f:
        lines = [json.loads(line) for line in f]
    lines = [x for x in lines if "address" in x and x["type"] not in ("NONE", "FREE")]
    total = rows(dump)[0]
    check(total["source"] == "rubydump" and total["objects"] == len(lines), total, len(lines))
    check(total["bytes"] == sum(x.get("memsize", x.get("slot_size", 0)) for x in lines), total)
    counted = {r["class"]: r["objects"] for r in rows("--histogram", dump)}
    check(counted["Order"] == orders == 5000 and objects >= 5000 and counted["Class"] >= classes, counted["Order"], counted["Class"], classes)
    leak = [r for r in rows("--percent", "5", dump) if r["type"] == "suspect" and r["class"] == "Hash"][0]
    check( leak["point_holds"] >= 5000, leak)
    same = rows("--duplicates", dump)
    check(not [r for r in same if r["head"].startswith("order ")], "each name is another")


java()
node()
ruby()

# a small dump, with each form of output
small = path_of("small.json", "".join(json.dumps(x) + "\n" for x in [
    {"type": "ROOT", "root": "vm", "references": ["0x1000", "0x1100"]},
    {"address": "0x1000", "type": "HASH", "class": "0x2000", "references": ["0x3000", "0x3100"], "memsize": 400},
    {"address": "0x1100", "type": "ARRAY", "class": "0x2100", "references": ["0x3100"], "memsize": 100},
    {"address": "0x3000", "type": "STRING", "class": "0x2200", "value": "text", "memsize": 5000},
    {"address": "0x3100", "type": "STRING", "class": "0x2200", "value": "text", "memsize": 40},
    {"address": "0x3200", "type": "STRING", "class": "0x2200", "value": "gone", "memsize": 60},
    {"address": "0x2000", "type": "CLASS", "name": "Hash", "memsize": 500},
    {"address": "0x2100", "type": "CLASS", "name": "Array", "memsize": 500},
    {"address": "0x2200", "type": "CLASS", "name": "String", "memsize": 500}]))
text = heap(small).stdout
check(re.search(r"small.json: Ruby heap dump, 8 objects, 7100 bytes\nreachable from 2 roots: 7 objects, 7040 bytes; not at all: 1 object, 60 bytes\n", text), text)
check(re.search(r"leak suspects, which retain 20 % or more:\n1. 83.8 %, 5900 bytes: Hash @0x1000", text), text)
check(heap("--histogram", small).stdout.splitlines()[:2] == ["     OBJECTS          BYTES  CLASS", "           3           5100  String"], "histogram")
check(heap("--retained", "-n", "1", small).stdout.splitlines()[1].split() == ["5900", "1", "400", "Hash"], "retained")
check(heap("--unreachable", small).stdout.splitlines()[1].split() == ["1", "60", "String"], "unreachable")
check(heap("--duplicates", small).stdout.splitlines()[1].split() == ["2", "5040", "4", "String", '"text"'], "duplicates")
check("[vm] Hash @0x1000" in heap("--paths", "0x3000", small).stdout, "paths")
check("referred to by 2:" in heap("--refs", "0x3100", small).stdout, "refs")
check(heap("--find", 'strstr(class, "tri") != NULL && (size > 50 || reachable == 0) && !(size == 60)', small).stdout.splitlines()[-1] == "1 object, 5000 bytes", "find")
older = path_of("older.json", "".join(open(small).readlines()[:3]))
check(heap("--diff", older, small).stdout.splitlines()[1].split() == ["+2", "+5040", "2", "5040", "String"], "diff")
for name in ("page.html", "page.svg", "page.folded", "page.json"):
    page = os.path.join(TMP, name)
    heap("-o", page, small)
    with open(page) as f:
        check("Hash" in f.read(), name)
with open(os.path.join(TMP, "page.folded")) as f:
    check("Hash;String 5000\n" in f.read(), "retained memory by class")

# wrong use
check("only the heap of a Java program" in heap("-o", os.path.join(TMP, "page.hprof"), small, rc=1).stderr, "an HPROF file of Ruby")
check("no heap is named" in heap(rc=2).stderr, "no file")
check("one heap at a time" in heap(small, small, rc=2).stderr, "two files")
check("no class has the name Nothing" in heap("--paths", "Nothing", small, rc=1).stderr, "no class")
check("no object has the address 0x77" in heap("--refs", "0x77", small, rc=1).stderr, "no object")
check("not an address" in heap("--refs", "Hash", small, rc=1).stderr, "no address")
check("D_SYNTAX" in heap("--find", "size >", small, rc=1).stderr, "no expression")
check("and no color" in heap("--find", "color == 1", small, rc=1).stderr, "no such name")
check("a text is compared with a number" in heap("--find", "class > 1", small, rc=1).stderr, "texts and numbers")
check("not one expression" in heap("--find", "1/ { trace(1); } BEGIN /1", small, rc=1).stderr, "no program")
check("not a heap dump" in heap(path_of("other", "x" * 100), rc=1).stderr, "another file")
with open(os.path.join(TMP, "core"), "wb") as f:  # the head of a core file of one segment
    f.write(struct.pack("<4s12sHHIQQQIHHHHHH", b"\x7fELF", b"\2\1\1", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0))
check("cut short" in heap(os.path.join(TMP, "core"), rc=1).stderr, "a core file that is cut short")
check("ends in none of" in heap("-o", os.path.join(TMP, "page.txt"), small, rc=1).stderr, "another picture")
check("No such file" in heap(os.path.join(TMP, "none"), rc=1).stderr, "no file")
done()
