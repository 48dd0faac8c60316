#!/usr/bin/env python3
# descry heap alloc --inspector of Node.js: the bytes that live by the functions that made them are those that the program keeps, near enough, in
# all versions that are here; the port is closed again, unless it was open before; the program answers and ends as without descry; a descry that is
# killed leaves no sampling (DESCRY_TORTURE=N: so many kills; 6 if not given). Refused where SIGUSR1 is the program's own, where the port does not
# come, where another one samples, and elsewhere.
# serial
# timeout: 3600
import glob
import random
import socket

from live import *

KILLS = int(os.environ.get("DESCRY_TORTURE", "6"))
MANY, SIZE, SAMPLE = 300000, 72, 16384
NODE = r"""
class Foo { constructor(next) { this.a = 1; this.b = 2; this.c = 3; this.d = 4; this.e = 5; this.next = next; } }
const kept = new Array(%d).fill(null);
let gone, signals = 0;
const work = {
  keep: function keeps(n) { for (let i = 0; i < n; i++) kept[i] = new Foo(null); },
  drop: function drops(n) { for (let i = 0; i < n; i++) gone = new Foo(null); },
  forget: () => kept.fill(null),
  listen: () => process.on('SIGUSR1', () => signals++),
  signals: () => 0,
  serve: () => require('http').createServer((request, answer) => { signals++; answer.end(); }).listen(0, '127.0.0.1'),
};
let rest = '';
process.stdin.on('data', (d) => {
  rest += d;
  for (let at; (at = rest.indexOf('\n')) >= 0; rest = rest.slice(at + 1)) {
    const [what, n] = rest.slice(0, at).split(' ');
    work[what](+n);
    console.log(`${what} ${kept.filter((x) => x).length} ${signals}`);
  }
});
process.stdin.on('end', () => process.exit(7));
console.log('ready');
""" % MANY
NODES = ["node"] if shutil.which("node") else []
NODES += sorted(glob.glob(os.path.join(BUILD, "nodes", "*", "node_modules", "node", "bin", "node")))
if not NODES:
    skip("no node")
PATH = os.path.join(TMP, "keeper.js")
with open(PATH, "w") as f:
    f.write(NODE)


class Program:
    def __init__(self, node, *options, before=()):
        self.p = kill_at_end(subprocess.Popen([*before, node, *options, PATH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        self.pid, self.kept = self.p.pid, 0
        check(self.p.stdout.readline() == "ready\n", node, "the program did not start")

    def ask(self, what, n=1, signals=0):
        self.p.stdin.write("%s %d\n" % (what, n))
        self.p.stdin.flush()
        self.kept = max(n, self.kept) if what == "keep" else 0 if what == "forget" else self.kept
        answer = self.p.stdout.readline().strip()
        check(answer == "%s %d %d" % (what, self.kept, signals), "the answer", answer, self.kept)

    def end(self):
        self.p.stdin.close()
        check(self.p.wait(timeout=60) == 7, "the exit code", self.p.returncode)
        return self.p.stderr.read()


def ports(pid):
    """Ports at which a process listens."""
    found = set()
    inodes = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            inodes.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except OSError:
            pass
    with open("/proc/%d/net/tcp" % pid) as f:
        for row in list(f)[1:]:
            cells = row.split()
            if cells[3] == "0A" and "socket:[%s]" % cells[9] in inodes:
                found.add(int(cells[1].split(":")[1], 16))
    return found


class Alloc:
    def __init__(self, p, *args):
        self.d = kill_at_end(subprocess.Popen([DESCRY, "heap", "alloc", "--inspector", "-n", "1000", "-p", str(p.pid), *args], stdin=subprocess.DEVNULL,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        said = self.d.stderr.readline()
        check(said == "descry heap: recording\n", "the recording did not begin", said)

    def ends(self):
        out, err = self.d.communicate(timeout=120)
        check(self.d.returncode == 0 and not err, "exit", self.d.returncode, err[-1000:], out[-500:])
        return out

    def end(self):
        self.d.send_signal(signal.SIGINT)
        return self.ends()


def rows_of(text):
    lines = [json.loads(line) for line in text.splitlines()]
    return lines[0], {r.get("function"): r for r in lines[1:]}


def wrong(pid, message, *args):
    r = subprocess.run([DESCRY, "heap", "alloc", "--inspector", "-p", str(pid), *args], capture_output=True, text=True, timeout=120)
    check(r.returncode in (1, 2) and message in r.stderr, pid, args, r.returncode, r.stderr)


def line_of(text):
    return 1 + next(i for i, line in enumerate(NODE.splitlines()) if text in line)


def lives(node):
    p = Program(node, "--inspect-port=0")
    for _ in range(2):  # compiled code makes them from then on
        p.ask("keep", MANY)
        p.ask("drop", MANY)
        p.ask("forget")
    a = Alloc(p, "--json", "--sample", str(SAMPLE))
    check(len(ports(p.pid)) == 1, node, "a port", ports(p.pid))
    p.ask("keep", MANY)
    p.ask("drop", 2 * MANY)
    head, rows = rows_of(a.end())
    check(not ports(p.pid), node, "the port is closed", ports(p.pid))
    check(head["live"] == "reachable" and head["interval"] == SAMPLE and head["language"] == "javascript", node, head)
    check(head["live_bytes"] == sum(r["live_bytes"] for r in rows.values()), node, "the sum", head)
    keeps, drops = rows.get("keeps"), rows.get("drops", {"live_samples": 0})
    if check(keeps, node, "the function", rows):
        near(keeps["live_bytes"], MANY * SIZE, 0.2, node + ", bytes alive")
        check(keeps["live_samples"] > 500 and keeps["file"] == PATH and keeps["line"] == line_of("function keeps"), node, keeps)
    check(drops["live_samples"] <= 1, node, "what is gone lives", drops)
    # what is let go does not live; again and again; as text
    a = Alloc(p, "--sample", str(SAMPLE), "--every", "0.1")
    p.ask("forget")
    p.ask("keep", MANY)
    text = a.d.stdout.readline()
    check(re.match(r"alive, of what was allocated while it was recorded; estimated from \d+ samples, one for each %d bytes\n" % SAMPLE, text), node, text)
    while not re.match(r" *\d{8} +\d+  %s:%d:keeps\n" % (re.escape(PATH), line_of("function keeps")), text) and text:
        text = a.d.stdout.readline()
    check(text, node, "the function as text")
    p.ask("forget")
    text = a.end()
    # a variable or a register may hold the last one
    left = re.search(r"^ *\d+ +(\d+) .*:keeps$", text[text.rindex("alive, of"):], re.M)
    check(not left or int(left.group(1)) <= 2, node, "let go", text[-1000:])
    # stacks
    page = os.path.join(TMP, "x.folded")
    a = Alloc(p, "--sample", str(SAMPLE), "-o", page)
    p.ask("keep", MANY)
    a.end()
    with open(page) as f:
        stacks = [row.rsplit(" ", 1) for row in f]
    mine = [(stack, int(n)) for stack, n in stacks if re.search(r"keeper\.js:\d+:keeps", stack)]
    near(sum(n for _, n in mine), MANY * SIZE, 0.2, node + ", bytes of stacks")
    check(all(":onStreamRead" in stack for stack, n in mine), node, "the callers", mine[:3])
    # it ends while it is recorded
    a = Alloc(p, "--json", "--sample", str(SAMPLE))
    p.ask("keep", MANY)
    p.end()
    head, rows = rows_of(a.ends())
    near(rows["keeps"]["live_bytes"], MANY * SIZE, 0.2, node + ", bytes at its end")


def killed(node):
    """V8 samples no more, and the port stays open. The next one uses it and leaves it."""
    p = Program(node)
    a = Alloc(p, "--sample", str(SAMPLE))
    p.p.stdin.write("keep %d\n" % MANY)
    p.p.stdin.flush()
    a.d.kill()
    a.d.communicate()
    check(p.p.stdout.readline() == "keep %d 0\n" % MANY, node, "the answer after a kill")
    p.kept = MANY
    check(len(ports(p.pid)) == 1, node, "the port stays", ports(p.pid))
    a = Alloc(p, "--sample", str(SAMPLE), "--json")
    wrong(p.pid, "another program samples the objects")
    p.ask("keep", MANY)
    check("keeps" in rows_of(a.end())[1], node, "recorded after a kill")
    check(len(ports(p.pid)) == 1, node, "the port stays as it was", ports(p.pid))
    p.end()


def killed_often(node):
    """At random instants: while it opens the port, records, and makes its answer or ends."""
    p = Program(node)
    begun = time.monotonic()
    a = Alloc(p)
    start = time.monotonic() - begun
    begun = time.monotonic()
    a.end()
    end = time.monotonic() - begun
    for i in range(KILLS):
        if i % 3:
            a = Alloc(p, "--sample", str(SAMPLE)).d
        else:
            a = kill_at_end(subprocess.Popen([DESCRY, "heap", "alloc", "--inspector", "-p", str(p.pid)], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        n = MANY // 3 + i
        p.p.stdin.write("keep %d\n" % n)
        p.p.stdin.flush()
        if i % 3 == 2:
            a.send_signal(signal.SIGINT)
        time.sleep(random.random() * (end if i % 3 == 2 else start))
        a.kill()
        a.communicate()
        p.kept = max(n, p.kept)
        answer = p.p.stdout.readline()
        check(answer == "keep %d 0\n" % p.kept, node, "the answer after kill", i, answer)
        p.ask("drop", 1000)
        if i % 25 == 24 or i == KILLS - 1:
            a = Alloc(p, "--sample", str(SAMPLE), "--json")
            p.ask("keep", MANY)
            near(rows_of(a.end())[1]["keeps"]["live_bytes"], MANY * SIZE, 0.2, "bytes after kills")
            p.end()
            p = Program(node)
    p.end()
    if "DESCRY_TORTURE" in os.environ:
        print("%d kills" % KILLS)


def refused(node):
    p = Program(node)
    p.ask("listen")
    wrong(p.pid, "the program handles SIGUSR1 itself")
    p.ask("signals")
    wrong(p.pid, "--inspector goes with neither", "--garbage")
    wrong(p.pid, "--inspector goes with neither", "--show-d")
    check(not ports(p.pid), node, "no port", ports(p.pid))
    p.end()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        p = Program(node, "--inspect-port=%d" % taken.getsockname()[1])
        wrong(p.pid, "opens no port")
        p.ask("signals")
        p.end()
    # it was open before
    p = Program(node, "--inspect=0")
    port = ports(p.pid)
    wrong(p.pid, "opens no port")  # its number is not known
    p.end()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    p = Program(node, "--inspect=127.0.0.1:%d" % port)
    a = Alloc(p, "--sample", str(SAMPLE), "--json")
    p.ask("keep", MANY)
    check("keeps" in rows_of(a.end())[1] and ports(p.pid) == {port}, node, "a port that was open", ports(p.pid))
    p.end()


def served(node):
    """The program's own port is not asked."""
    p = Program(node, "--inspect-port=0")
    p.ask("serve")
    while not ports(p.pid):  # it listens soon
        time.sleep(0.01)
    a = Alloc(p, "--sample", str(SAMPLE), "--json")
    p.ask("keep", MANY)
    check("keeps" in rows_of(a.end())[1] and len(ports(p.pid)) == 1, node, "a program with a port", ports(p.pid))
    p.ask("signals")
    p.end()


def elsewhere(node):
    """Programs that SIGUSR1 would end; another network."""
    p = kill_at_end(subprocess.Popen(["sleep", "1000"]))
    wrong(p.pid, "does not run Node.js")
    check(p.poll() is None, "sleep lives")
    p.kill()
    p.wait()
    if sh("unshare -n ip link set lo up").returncode:
        print("note: no network of its own to try")
        return
    p = Program(node, before=["unshare", "-n", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
    a = Alloc(p, "--sample", str(SAMPLE), "--json")
    p.ask("keep", MANY)
    check("keeps" in rows_of(a.end())[1] and not ports(p.pid), node, "in a network of its own")
    p.end()


for node in NODES:
    lives(node)
killed(NODES[0])
killed_often(NODES[0])
refused(NODES[0])
served(NODES[0])
elsewhere(NODES[0])
done()
