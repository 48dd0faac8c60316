#!/usr/bin/env python3
# descry heap alloc of Java and Node.js: what a running program makes, from samples, by file, line and class: the bytes and numbers are those that
# the program has made, near enough; large arrays of Java are all counted; as JSON, as stacks, again and again; the answers stay the same.
# serial
# timeout: 600
import re

from live import *

ROUNDS, EACH, LARGE = 10, 200000, 7

JAVA = r"""
import java.util.*;
public class Maker {
    static class Foo { long a, b; Foo next; Foo(Foo n) { a = 1; next = n; } }
    static Object keep;
    static long sum;
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
        if name.endswith(".java"):
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
        check(self.d.stderr.readline() == "descry heap: recording\n", "the recording did not begin")

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
    check(text[0].startswith("allocated while it was recorded, estimated from ") and "lives is not known" in text[0], name, text[:3])
    check(all(re.match(r" *\d+ +\d+ +\d+  (\S.*:|\[\w+\]:)\S", row) for row in text[2:]) and len(text) > 2, name, text[:5])
    # stacks
    page = os.path.join(TMP, language + ".folded")
    a = Alloc(p, "-o", page)
    p.ask("make", EACH)
    a.end()
    with open(page) as f:
        folded = f.read().splitlines()
    check(any(re.search(r"[Mm]aker\.\w+:.*make;", row) for row in folded), name, "stacks", folded[:20])
    # again and again
    a = Alloc(p, "--every", "0.2", "--json")
    p.ask("make", EACH)
    heads = 0
    while heads < 3:
        heads += '"type":"allocated",' in a.d.stdout.readline()
    a.end()
    wrong(["alloc", "--sample", "3", "-p", str(p.p.pid)], "are for Ruby and Python")
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
    check([(r["objects"], r["bytes"], r["file"]) for r in large] == [(LARGE, LARGE * 2000016, "Maker.java")], "large arrays", rows)
    kills(p)
    about(p, "java", "java", lambda r: r["class"] == "Maker$Foo", 40, line_of(JAVA, "last = new Foo"))
if shutil.which("node"):
    tools += 1
    p = Program("maker.js", NODE, ["node"])
    kills(p)
    # a Foo, and nothing else that lasts: the loop's numbers are no objects
    about(p, "node", "javascript", lambda r: r["class"] == "(72 bytes)" and r.get("function") == "make", 72, None)
if not tools:
    skip("neither java and javac nor node")
done()
