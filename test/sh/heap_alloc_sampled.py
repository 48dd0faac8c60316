#!/usr/bin/env python3
# descry heap alloc of Java and Node.js: what a running program makes, from samples, by file, line and class: the bytes and numbers are those that
# the program has made, near enough; as JSON, as stacks, again and again; the answers stay the same. Of Java also which of it lives: those that
# a root reaches, or that the collector has not taken, in all collectors.
# serial
# timeout: 1500
import re

from live import *

ROUNDS, EACH, LARGE = 10, 200000, 300

JAVA = r"""
import java.util.*;
public class Maker {
    static class Foo { long a, b; Foo next; Foo(Foo n) { a = 1; next = n; } }
    static Object keep;
    static List<Object> kept = new ArrayList<>();
    static class Kept { long a, b, c; }
    static class Gone { long a, b, c; }
    static long sum;
    static void keeps(int n) {
        for (int i = 0; i < n; i++)
            kept.add(new Kept());
    }
    static void drops(int n) {
        for (int i = 0; i < n; i++)
            keep = new Gone();
    }
    static Foo make(int n) {
        Foo last = null;
        for (int i = 0; i < n; i++) {
            last = new Foo(i % 1000 == 0 ? null : last);
            sum += last.a;
        }
        return last;
    }
    static Object large() {
        return new long[250000];
    }
    public static void main(String[] args) throws Exception {
        Scanner in = new Scanner(System.in);
        for (int i = 0; i < 200; i++)
            keep = make(10000);
        for (int i = 0; i < 300; i++)
            keep = large();
        sum = 0;
        System.out.println("ready");
        while (in.hasNextLine()) {
            String[] words = in.nextLine().split(" ");
            int n = Integer.parseInt(words[1]);
            if (words[0].equals("make"))
                keep = make(n);
            else if (words[0].equals("keep"))
                keeps(n);
            else if (words[0].equals("drop"))
                drops(n);
            else if (words[0].equals("forget"))
                kept.clear();
            else if (words[0].equals("collect"))
                System.gc();
            else
                for (int i = 0; i < n; i++)
                    keep = large();
            System.out.println(words[0] + " " + sum);
        }
        System.exit(7);
    }
}
"""
NODE = r"""
class Foo { constructor(next) { this.a = 1; this.b = 2; this.c = 3; this.d = 4; this.e = 5; this.next = next; } }
let keep, sum = 0;
function make(n) {
  let last = null;
  for (let i = 0; i < n; i++) {
    last = new Foo(i % 1000 ? last : null);
    sum += last.a;
  }
  return last;
}
for (let i = 0; i < 200; i++)
  keep = make(10000);
sum = 0;
let rest = '';
process.stdin.on('data', (d) => {
  rest += d;
  for (let at; (at = rest.indexOf('\n')) >= 0; rest = rest.slice(at + 1)) {
    const [what, n] = rest.slice(0, at).split(' ');
    keep = make(+n);
    console.log(`${what} ${sum}`);
  }
});
process.stdin.on('end', () => process.exit(7));
console.log('ready');
"""


class Program:
    def __init__(self, name, text, argv):
        self.path = os.path.join(TMP, name)
        with open(self.path, "w") as f:
            f.write(text)
        if name.endswith(".java") and not os.path.exists(os.path.join(TMP, "Maker.class")):
            subprocess.run(["javac", "-d", TMP, self.path], check=True)
        self.p = kill_at_end(subprocess.Popen(argv + ([self.path] if "Maker" not in argv else []), stdin=subprocess.PIPE,
                                              stdout=subprocess.PIPE, text=True))
        self.sum = 0
        check(self.p.stdout.readline() == "ready\n", name, "the program did not start")

    def ask(self, what, n):
        self.p.stdin.write("%s %d\n" % (what, n))
        self.p.stdin.flush()
        self.sum += n if what == "make" else 0
        answer = self.p.stdout.readline().strip()
        check(answer == "%s %d" % (what, self.sum), "the answer", answer, self.sum)

    def end(self):
        self.p.stdin.close()
        check(self.p.wait(timeout=60) == 7, "the exit code", self.p.returncode)


class Alloc:
    def __init__(self, program, *args):
        self.d = kill_at_end(subprocess.Popen([DESCRY, "heap", "alloc", "-n", "100000", "-p", str(program.p.pid), *args], stdin=subprocess.DEVNULL,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        said = self.d.stderr.readline()
        check(said == "descry heap: recording\n", "the recording did not begin", said)

    def end(self):
        self.d.send_signal(signal.SIGINT)
        out, err = self.d.communicate(timeout=120)
        check(self.d.returncode == 0 and not err, "exit", self.d.returncode, err[-1000:], out[-500:])
        return out


def json_rows(text):
    lines = [json.loads(line) for line in text.splitlines()]
    return lines[0], lines[1:]


def line_of(program, text):
    return 1 + next(i for i, line in enumerate(program.splitlines()) if text in line)


def about(p, name, language, mine, size, line):
    """Rounds of what is known: `mine` says which rows are those of the objects."""
    for _ in range(3):  # compiled code, of which descry has read the names
        p.ask("make", EACH)
    a = Alloc(p, "--json")
    for _ in range(ROUNDS):
        p.ask("make", EACH)
    head, rows = json_rows(a.end())
    check(head["type"] == "allocated" and head["language"] == language and head["lost"] == 0 and head["samples"] > 20, name, head)
    check(head["samples"] == sum(r["samples"] for r in rows) and head["bytes"] == sum(r["bytes"] for r in rows), name, "the sums", head)
    found = [r for r in rows if mine(r)]
    n, size = sum(r["objects"] for r in found), size * ROUNDS * EACH
    near(sum(r["bytes"] for r in found), size, 0.4, name + ", bytes")
    near(n, ROUNDS * EACH, 0.4, name + ", objects")
    if line:
        check(sum(r["bytes"] for r in found if r.get("line") == line) > size / 2, name, "the line", line, found)
    # the text has the same form as memprof's rows
    a = Alloc(p)
    p.ask("make", EACH)
    text = a.end().splitlines()
    if language == "java":
        check(text[0].startswith("alive, of what was allocated while it was recorded; estimated from "), name, text[:3])
    else:
        check(text[0].startswith("allocated while it was recorded, estimated from ") and "lives is not known" in text[0], name, text[:3])
    form = r" *\d+ +\d+ +\d+ " + (r"+\d+ " if language == "java" else "") + r" (\S.*:|\[\w+\]:)\S"
    check(all(re.match(form, row) for row in text[2:]) and len(text) > 2, name, text[:5])
    # stacks
    page = os.path.join(TMP, language + ".folded")
    a = Alloc(p, "-o", page)
    maker = "keeps" if language == "java" else "make"
    p.ask("keep" if language == "java" else "make", EACH)
    a.end()
    with open(page) as f:
        folded = f.read().splitlines()
    check(any(re.search(r"[Mm]aker\.\w+:.*%s;" % maker, row) for row in folded), name, "stacks", folded[:20])
    # again and again
    a = Alloc(p, "--every", "0.2", "--json")
    p.ask("make", EACH)
    heads = 0
    while heads < 3:
        heads += '"type":"allocated",' in a.d.stdout.readline()
    a.end()
    if language != "java":
        wrong(["alloc", "--sample", "3", "-p", str(p.p.pid)], "are for Ruby, Python and Java")
    # it ends while it is recorded, and what was recorded is shown
    a = Alloc(p, "--json")
    p.ask("make", EACH)
    p.end()
    out, err = a.d.communicate(timeout=120)
    check(a.d.returncode == 0 and json_rows(out)[0]["samples"] > 0, name, "a process that ends", a.d.returncode, err, out[:300])


def wrong(args, message):
    r = subprocess.run([DESCRY, "heap", *args], capture_output=True, text=True, timeout=60)
    check(r.returncode in (1, 2) and message in r.stderr, args, r.returncode, r.stderr)


def kills(p):
    """A recorder that is killed leaves a program that answers as before."""
    for i in range(10):
        a = Alloc(p)
        p.p.stdin.write("make %d\n" % EACH)
        p.p.stdin.flush()
        time.sleep(i * 0.003)
        a.d.kill()
        a.d.wait()
        p.sum += EACH
        check(p.p.stdout.readline() == "make %d\n" % p.sum, "an answer after a kill", i)


def sums(rows, name):
    mine = [r for r in rows if r["class"] == name]
    return [sum(r[k] for r in mine) for k in ("live_samples", "live_objects", "live_bytes", "objects")]


def kept(p, *args):
    """Recorded are 300,000 objects that stay, 600,000 that do not, and a collection between."""
    for what, n in (("keep", 3000), ("drop", 3000), ("forget", 1)):
        p.ask(what, n)
    a = Alloc(p, "--json", "--sample", "16384", *args)
    p.ask("keep", 300000)
    p.ask("drop", 600000)
    return a


def lives(name, *options, read=True):
    """Which of the samples live. read: descry reads the heaps of this collector."""
    p = Program("Maker.java", JAVA, ["java", "-Xmx256m", *options, "-cp", TMP, "Maker"])
    a = kept(p)
    if not read:
        p.ask("collect", 1)
    head, rows = json_rows(a.end())
    check(head["live"] == ("reachable" if read else "uncollected") and ("reason" in head) != read and head["interval"] == 16384, name, head)
    n, objects, size, made = sums(rows, "Maker$Kept")
    check(n > 200, name, "samples of what stays", n)
    near(made, 300000, 0.3, name + ", made and stays")
    near(objects, 300000, 0.3, name + ", alive")
    near(size / objects, 40, 0.01, name + ", bytes")
    n, objects, size, made = sums(rows, "Maker$Gone")
    check(n <= 1, name, "what is gone lives", n, objects)
    near(made, 600000, 0.3, name + ", made and gone")
    if not read:
        p.end()
        return
    # what is let go is not alive from then on, collected or not; --garbage: until it is collected
    a = kept(p)
    p.ask("forget", 1)
    head, rows = json_rows(a.end())
    check(sums(rows, "Maker$Kept")[0] == 0 and sums(rows, "Maker$Kept")[3] > 0, name, "let go", sums(rows, "Maker$Kept"))
    a = kept(p, "--garbage")
    p.ask("forget", 1)
    p.ask("collect", 1)
    p.ask("keep", 100000)
    p.ask("forget", 1)
    head, rows = json_rows(a.end())
    n, objects, size, made = sums(rows, "Maker$Kept")
    check(head["live"] == "uncollected" and "reason" not in head, name, head)
    if name == "ZGC":  # it collects whenever it likes
        check(objects < 140000, name, "not collected", objects)
    else:
        near(objects, 100000, 0.4, name + ", not collected")
    p.end()


def others():
    """Two at the same time; a JVM that takes no library."""
    p = Program("Maker.java", JAVA, ["java", "-Xmx256m", "-cp", TMP, "Maker"])
    a = Alloc(p, "--json")
    b = Alloc(p, "-X", "engine=kernel")
    p.ask("make", EACH)
    check("lives is not known: another tracer samples its objects" in b.end(), "two at the same time")
    check(json_rows(a.end())[0]["live"] == "reachable", "two at the same time, the first")
    for i in range(5):  # killed; then the next one has what it needs
        a = Alloc(p)
        p.ask("make", EACH)
        a.d.kill()
        a.d.wait()
        a = Alloc(p, "--json")
        p.ask("make", EACH)
        a.end()
    head = {}
    while head.get("live") != "reachable":
        a = Alloc(p, "--json")
        p.ask("make", EACH)
        head, rows = json_rows(a.end())
    p.end()
    p = Program("Maker.java", JAVA, ["java", "-Xmx128m", "-XX:+DisableAttachMechanism", "-cp", TMP, "Maker"])
    wrong(["alloc", "--sample", "3", "-p", str(p.p.pid)], "the samples are what the runtime lets see, because it was started with")
    a = Alloc(p, "--json")
    p.ask("make", EACH)
    head, rows = json_rows(a.end())
    check(head["live"] == "unknown" and "DisableAttachMechanism" in head["reason"] and head["samples"] > 5 and "live_objects" not in rows[0], "no library", head)
    p.end()


tools = 0
if shutil.which("java") and shutil.which("javac"):
    tools += 1
    # C1 alone: C2 may leave out the making of an object that nobody sees
    java = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", TMP, "Maker"]
    p = Program("Maker.java", JAVA, java)
    a = Alloc(p, "--json")
    p.ask("large", LARGE)
    head, rows = json_rows(a.end())
    large = [r for r in rows if r["class"] == "long[]" and r.get("line") == line_of(JAVA, "new long[")]
    check(len(large) == 1 and large[0]["live_samples"] <= 1 and large[0]["file"] == "Maker.java", "large arrays", rows)
    near(large[0]["objects"], LARGE, 0.1, "large arrays")
    near(large[0]["bytes"], LARGE * 2000016, 0.1, "bytes of large arrays")
    kills(p)
    about(p, "java", "java", lambda r: r["class"] == "Maker$Foo", 40, line_of(JAVA, "last = new Foo"))
    others()
    lives("G1", "-XX:+UseG1GC")
    lives("Serial", "-XX:+UseSerialGC")
    lives("Parallel", "-XX:+UseParallelGC")
    lives("wide", "-XX:-UseCompressedOops")
    lives("ZGC", "-XX:+UseZGC")
    lives("Shenandoah", "-XX:+UseShenandoahGC", read=False)
if shutil.which("node"):
    tools += 1
    p = Program("maker.js", NODE, ["node"])
    kills(p)
    # a Foo, and nothing else that lasts: the loop's numbers are no objects
    about(p, "node", "javascript", lambda r: r["class"] == "(72 bytes)" and r.get("function") == "make", 72, None)
if not tools:
    skip("neither java and javac nor node")
done()
