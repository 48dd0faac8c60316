#!/usr/bin/env python3
# descry heap --stacks and --counts: the functions that each thread of Ruby, Python, Java and Node.js executes, with lines, from the process and its core;
# the counts of the histogram, the most first; refused where there are no stacks of a language.
import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from checks import *

DESCRY = os.environ["DESCRY"]
TMP = tempfile.mkdtemp(prefix="descry-heap-stacks-")
atexit.register(shutil.rmtree, TMP, True)
running = []
RUBY = r"""
class Foo
  def wait
    $stdin.gets
  end
end
def outer
  [1].each { Foo.new.wait }
end
$keep = Array.new(1234) { Foo.new }
t = Thread.new { sleep }
Thread.pass until t.stop?
$stdout.syswrite("ready\n")
outer
"""
PYTHON = r"""
import sys, threading
class Foo:
    def wait(self):
        sys.stdin.readline()
def outer():
    Foo().wait()
keep = [Foo() for i in range(1234)]
event = threading.Event()
threading.Thread(target=event.wait, daemon=True).start()
print("ready", flush=True)
outer()
"""
EXPECTED = {
    "ruby": (RUBY, [("IO#gets", 4), ("Foo#wait", 4), ("block in Object#outer", 8), ("Array#each", 8), ("Object#outer", 8), ("<main>", 14)],
             ("block in <main>", 11), 1235),
    "python3": (PYTHON, [("Foo.wait", 5), ("outer", 7), ("<module>", 12)], ("Event.wait", None), 1235),
}


@atexit.register
def end_all():
    for p in running:
        p.kill()
        p.wait()


def heap(*args, status=0):
    r = subprocess.run([DESCRY, "heap", "-n", "100000", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    check(r.returncode == status, "exit", r.returncode, args, r.stdout[-500:], r.stderr[-500:])
    return r


def judge_core(name, pid, path, main):
    """The stack of the main thread stands in a core file, too."""
    core = "%s/core.%d" % (TMP, pid)
    if shutil.which("gcore"):
        subprocess.run(["gcore", "-o", TMP + "/core", str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if os.path.exists(core):
        text = heap("--stacks", core).stdout
        check("".join("    %s:%d: %s\n" % (path, n, f) for f, n in main) in text, name, "from a core", text)
        os.unlink(core)


def compare(name, where, path, main, other):
    threads = [json.loads(line) for line in heap("--stacks", "--json", *where).stdout.splitlines()]
    stacks = [[(f["function"], f["line"]) for f in t["frames"]] for t in threads if t["type"] == "stack"]
    check(len(stacks) == 2 and main in stacks, name, "stacks", stacks)
    rest = [s for s in stacks if s != main]
    check(len(rest) == 1 and any(f == other[0] and other[1] in (None, n) for f, n in rest[0]), name, "the other thread", rest)
    files = {f["file"] for t in threads for f in t["frames"] if (f["function"], f["line"]) in main}
    check(files == {path}, name, "files", files)
    text = heap("--stacks", *where).stdout
    expected = "".join("    %s:%d: %s\n" % (path, n, f) for f, n in main)
    check(expected in text and ": 2 threads\n" in text, name, "as text", text)


# A name from the process makes no line of its own.
p = subprocess.Popen(["/usr/bin/ruby", "-e", r'eval("puts :ready; $stdout.flush; $stdin.gets", nil, "fi\nle\e[32m.rb", 1)'] if shutil.which("ruby") else ["false"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
running.append(p)
if p.stdout.readline() == "ready\n":
    text = heap("--stacks", "-p", str(p.pid)).stdout
    check("fi?le?[32m.rb:1: " in text and "\x1b" not in text, "a file's name with control characters", text)
for name, (program, main, other, objects) in EXPECTED.items():
    if not os.path.exists("/usr/bin/" + name):
        skip("there is no " + name)
    path = os.path.join(TMP, "app." + name)
    with open(path, "w") as f:
        f.write(program)
    p = subprocess.Popen(["/usr/bin/" + name, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    running.append(p)
    check(p.stdout.readline() == "ready\n", name, "start")
    # it is on its way into read(2)
    for _ in range(300):
        if ": %s\n" % main[0][0] in heap("--stacks", "-p", str(p.pid)).stdout:
            break
        time.sleep(0.05)
    compare(name, ("-p", str(p.pid)), path, main, other)
    rows = [json.loads(line) for line in heap("--counts", "--histogram", "--json", "-p", str(p.pid)).stdout.splitlines()]
    counts = [(r["count"], r["class"]) for r in rows if r["type"] == "count"]
    check(sorted((r["objects"], r["class"]) for r in rows if r["type"] == "class") == sorted(counts) and len(counts) > 10, name, "counts", counts[:5])
    check([n for n, _ in counts] == sorted((n for n, _ in counts), reverse=True), name, "the most first", counts[:10])
    foo = [n for n, c in counts if c.split(".")[-1] == "Foo"]
    check(foo == [objects], name, "objects of Foo", foo)
    text = heap("--counts", "-p", str(p.pid)).stdout
    check(re.search(r"^ *%d (\S+\.)?Foo$" % objects, text, re.M), name, "counts as text", text[:300])
    # both in one run
    text = heap("--stacks", "--counts", "-p", str(p.pid)).stdout
    check(text.index("threads\n") < text.index("Foo\n"), name, "stacks and counts", text[:300])
    judge_core(name, p.pid, path, main)
    p.kill()


def jitted(argv, path, main, other):
    """A language whose functions have native frames: interpreted ones, and compiled ones that were called a million times."""
    name = argv[0]
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    running.append(p)
    check(p.stdout.readline() == "ready\n", name, "start")
    stacks = []
    for _ in range(300):
        threads = [json.loads(line) for line in heap("--stacks", "--json", "-p", str(p.pid)).stdout.splitlines()]
        stacks = [[(f["function"], f["line"]) for f in t["frames"]] for t in threads]
        if any(main == s[i:i + len(main)] for s in stacks for i in range(len(s))) and any(other in s for s in stacks):
            break
        time.sleep(0.05)
    check(any(main == s[i:i + len(main)] for s in stacks for i in range(len(s))), name, "the main thread", stacks)
    check(any(other in s for s in stacks), name, "another thread", stacks)
    files = {f["file"] for t in threads for f in t["frames"] if (f["function"], f["line"]) in main}
    check(files == {path}, name, "files", files)
    judge_core(name, p.pid, path, main)
    p.kill()


JAVA = r"""public class Stacks {
    static int hot(int n) throws Exception { if (n < 0) { System.out.println("ready"); Thread.sleep(1000000); } return n + 1; }
    static int outer(int n) throws Exception {
        return hot(n);
    }
    static void idle() {
        try { Thread.sleep(1000000); } catch (InterruptedException e) { }
    }
    public static void main(String[] a) throws Exception {
        Thread t = new Thread(Stacks::idle); t.setDaemon(true); t.start();
        int s = 0;
        for (int i = 0; i < 1000000; i++)
            s += outer(i);
        outer(-1);
    }
}
"""
NODE = r"""const { Worker, isMainThread } = require('worker_threads');
function block() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }
function hot(n) { if (n < 0) block(); return n + 1; }
function outer(n) {
    return hot(n);
}
function idle() { block(); }
if (isMainThread) {
    new Worker(__filename);
    let s = 0;
    for (let i = 0; i < 1000000; i++)
        s += outer(i);
    setTimeout(function main() {
        require('fs').writeSync(1, 'ready\n'); outer(-1);
    }, 1000);
} else {
    idle();
}
"""
if shutil.which("javac") and shutil.which("java"):
    with open(os.path.join(TMP, "Stacks.java"), "w") as f:
        f.write(JAVA)
    subprocess.run(["javac", "-d", TMP, os.path.join(TMP, "Stacks.java")], check=True)
    jitted(["java", "-Xmx64m", "-cp", TMP, "Stacks"], "Stacks.java", [("Stacks.hot", 2), ("Stacks.outer", 4), ("Stacks.main", 14)], ("Stacks.idle", 7))
if shutil.which("node"):
    path = os.path.join(TMP, "stacks.js")
    with open(path, "w") as f:
        f.write(NODE)
    jitted(["node", path], path, [("block", 2), ("hot", 3), ("outer", 5), ("main", 14)], ("idle", 7))

p = subprocess.Popen(["/bin/sleep", "600"])
running.append(p)
r = heap("--stacks", "-p", str(p.pid), status=1)
check("runs none of Java, Node.js, Python and Ruby" in r.stderr, "a program of no language", r.stderr)
dump = os.path.join(TMP, "x.json")
with open(dump, "w") as f:
    f.write('{"type":"ROOT", "root":"vm", "references":["0x1000"]}\n')
r = heap("--stacks", dump, status=1)
check("x.json" in r.stderr, "a dump has no stacks", r.stderr)
done()
