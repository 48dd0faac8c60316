#!/usr/bin/env python3
# descry heap and the numbers and texts of Java's objects: a java.lang.String is found by its text, of one byte or two a character, in a
# process, in the JVM's own dump, and in the HPROF file that descry writes; the numbers in that file, of instances, static fields and arrays,
# are those of the JVM's dump.
# timeout: 600
import struct

from live import *

COUNT = 50
PROGRAM = r"""
public class Values {
    static class Base { int id; boolean even; }
    static class Item extends Base {
        long big; String name; double third; float half; byte small; char letter; short minus;
        Item(int i) {
            id = i; even = i % 2 == 0; big = i * 1000000007L; name = "needle number " + i; third = i / 3.0; half = i / 2f;
            small = (byte) i; letter = (char) ('A' + i); minus = (short) -i;
        }
    }
    static Item[] items = new Item[50];
    static int stat = 4711;
    static double pi = 3.25;
    static boolean yes = true;
    static int[] ints = { 1, 2, -3, 2000000000 };
    static double[] doubles = { 1.5, -2.25, 1e300 };
    static byte[] odd = { 1, 2, 3, 4, 5 };
    static long[] longs = new long[3000];
    static String wide = "\u017c\u00f3\u0142w \ud83d\udc22 beetle";
    static String accents = "caf\u00e9 beetle";
    public static void main(String[] a) throws Exception {
        for (int i = 0; i < items.length; i++)
            items[i] = new Item(i);
        for (int i = 0; i < longs.length; i++)
            longs[i] = i * 3L;
        System.out.println("ready");
        System.in.read();
    }
}
"""


class Hprof:
    """Numbers of an HPROF file: {class: [{field: value}]}, {class: {static field: value}}, arrays of numbers."""
    KINDS = {4: "?", 5: "H", 6: "f", 7: "d", 8: "b", 9: "h", 10: "i", 11: "q"}
    SIZES = {2: 8, 4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.at = self.data.index(b"\0") + 1 + 4 + 8
        self.names, self.classes, self.fields, self.supers = {}, {}, {}, {}
        self.instances, self.statics, self.arrays = {}, {}, []
        raw = []
        while self.at < len(self.data):
            tag, _, n = self.take(">BII")
            end = self.at + n
            if tag == 1:
                (name,) = self.take(">Q")
                self.names[name] = self.data[self.at:end].decode(errors="replace")
            elif tag == 2:
                _, c, _, name = self.take(">IQIQ")
                self.classes[c] = self.names[name]
            elif tag in (0x0c, 0x1c):
                while self.at < end:
                    self.record(raw)
            self.at = end
        for c, body in raw:
            self.instances.setdefault(self.classes[c], []).append(self.instance(c, body))

    def take(self, form):
        v = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return v

    def value(self, kind):
        return self.take(">Q" if kind == 2 else ">" + self.KINDS[kind])[0]

    def record(self, raw):
        (tag,) = self.take(">B")
        more = {0xff: 0, 0x01: 8, 0x02: 8, 0x03: 8, 0x04: 4, 0x05: 0, 0x06: 4, 0x07: 0, 0x08: 8}
        if tag in more:
            self.at += 8 + more[tag]
        elif tag == 0x20:
            c, _, sup = self.take(">QIQ")
            self.at += 8 * 5 + 4
            self.supers[c] = sup
            for _ in range(self.take(">H")[0]):
                self.at += 2
                self.value(self.take(">B")[0])
            statics = self.statics.setdefault(self.classes[c], {})
            for _ in range(self.take(">H")[0]):
                name, kind = self.take(">QB")
                v = self.value(kind)
                if kind != 2:
                    statics[self.names[name]] = v
            self.fields[c] = [self.take(">QB") for _ in range(self.take(">H")[0])]
        elif tag == 0x21:
            _, _, c, n = self.take(">QIQI")
            raw.append((c, self.at))
            self.at += n
        elif tag == 0x22:
            _, _, n, _ = self.take(">QIIQ")
            self.at += n * 8
        elif tag == 0x23:
            _, _, n, kind = self.take(">QIIB")
            self.arrays.append((kind, struct.unpack_from(">%d%s" % (n, self.KINDS[kind]), self.data, self.at)))
            self.at += n * self.SIZES[kind]
        else:
            raise ValueError("record 0x%x at %d" % (tag, self.at))

    def instance(self, c, at):
        self.at, found = at, {}
        while c:
            for name, kind in self.fields[c]:
                v = self.value(kind)
                if kind != 2 and self.names[name] != "(padding)":
                    found[self.names[name]] = v
            c = self.supers[c]
        return found


def heap(*args):
    p = subprocess.run([DESCRY, "heap", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == 0, "exit", p.returncode, p.args, p.stdout[-500:], p.stderr[-500:])
    return p.stdout


def texts(expression, *where):
    rows = [json.loads(line) for line in heap("--json", "-n", "100000", "--find", expression, *where).splitlines()]
    return sorted(r["text"] for r in rows if r["class"] == "java.lang.String")


def questions(*where):
    needles = ["needle number %d" % i for i in range(COUNT)]
    # a template of the compiler's has them, too
    check([t for t in texts('strstr(text, "needle number ")', *where) if t[-1].isdigit()] == sorted(needles), where, "needles")
    check(texts('strstr(text, " beetle")', *where) == sorted(["żółw \U0001f422 beetle", "café beetle"]), where, "beetles",
          texts('strstr(text, " beetle")', *where))
    check(texts('class == "java.lang.String" && text == "needle number 7" && reachable', *where) == ["needle number 7"], where, "one")
    check('java.lang.String @' in heap("--find", 'text == "café beetle"', *where) and '"café beetle"\n' in
          heap("--find", 'text == "café beetle"', *where), where, "as text")


JAVA = os.environ.get("DESCRY_JAVA", "java")
for tool in JAVA, "javac", "jcmd":
    if not shutil.which(tool):
        skip("no " + tool)
with open(os.path.join(TMP, "Values.java"), "w") as f:
    f.write(PROGRAM)
subprocess.run(["javac", "--release", "17", "-d", TMP, os.path.join(TMP, "Values.java")], check=True)
for options in (), ("-XX:-UseCompressedOops", "-XX:+UseSerialGC"), ("-XX:+UseParallelGC",):
    p = kill_at_end(subprocess.Popen([JAVA, "-Xmx64m", *options, "-cp", TMP, "Values"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    check(p.stdout.readline() == "ready\n", "the program did not start")
    live = ("-p", str(p.pid))
    own, mine, again = (os.path.join(TMP, n) for n in ("own.hprof", "mine.hprof", "again.hprof"))
    r = subprocess.run(["jcmd", str(p.pid), "GC.heap_dump", "-overwrite", own], capture_output=True, text=True)
    check(os.path.exists(own), r.stdout, r.stderr)
    heap(*live, "-o", mine)
    heap(own, "-o", again)
    for where in live, (own,), (mine,), (again,):
        questions(*where)
    want = Hprof(own)
    for path in mine, again:
        got = Hprof(path)
        for c in "Values$Item", "java/lang/Integer", "java/lang/Thread":
            a, b = ([sorted(i.items()) for i in h.instances.get(c, [])] for h in (want, got))
            check(a and sorted(a, key=str) == sorted(b, key=str), options, path, c, "numbers of instances", a[:2], b[:2])
        check(sorted(i["big"] for i in got.instances["Values$Item"]) == [i * 1000000007 for i in range(COUNT)], options, path, "big")
        for c in "Values", "java/lang/Integer", "java/lang/String":
            check(want.statics[c] == got.statics[c], options, path, c, "static numbers", want.statics[c], got.statics[c])
        check(got.statics["Values"] == {"stat": 4711, "pi": 3.25, "yes": True}, options, path, got.statics["Values"])
        for kind, array in ((10, (1, 2, -3, 2000000000)), (7, (1.5, -2.25, 1e300)), (8, (1, 2, 3, 4, 5)),
                            (11, tuple(i * 3 for i in range(3000)))):
            check((kind, array) in got.arrays, options, path, "array", array[:5])
    p.kill()
    p.wait()
done()
