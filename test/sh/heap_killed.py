#!/usr/bin/env python3
# timeout: 900
# serial
# descry heap and descry heap alloc, and SIGKILL of the tracer at a random instant: programs of Ruby, Python, Java and Node.js answer as they would
# without descry, end with their own exit code, and can be read again. DESCRY_TORTURE=N: so many kills, and a tally; 24 if not given.
import random

import checks

from live import *

KILLS = int(os.environ.get("DESCRY_TORTURE", "24"))
ROUND = 6  # kills of one process

RUBY = r"""
$stdout.sync = true
Foo = Struct.new(:a, :b)
$keep = (0...20000).map { |i| Foo.new(i, "text #{i}") }
puts "ready"
while (line = $stdin.gets)
  n = line.to_i
  sum = 0
  n.times { |i| sum += Foo.new(i, "x").a }
  $keep[n % 100] = Foo.new(n, [])
  puts "#{n} #{sum}"
end
exit 7
"""
PYTHON = r"""
import sys
class Foo:
    def __init__(self, a, b):
        self.a, self.b = a, b
keep = [Foo(i, "text %d" % i) for i in range(20000)]
print("ready", flush=True)
while True:
    line = sys.stdin.readline()
    if not line:
        break
    n = int(line)
    total = 0
    for i in range(n):
        total += Foo(i, "x").a
    keep[n % 100] = Foo(n, [])
    print(n, total, flush=True)
sys.exit(7)
"""
JAVA = r"""
import java.util.*;
public class Kept {
    static class Foo { long a; Object b; Foo(long a, Object b) { this.a = a; this.b = b; } }
    static Foo[] keep = new Foo[20000];
    public static void main(String[] args) {
        Scanner in = new Scanner(System.in);
        for (int i = 0; i < keep.length; i++)
            keep[i] = new Foo(i, "text " + i);
        System.out.println("ready");
        while (in.hasNextLine()) {
            int n = Integer.parseInt(in.nextLine());
            long sum = 0;
            for (int i = 0; i < n; i++) {
                Foo f = new Foo(i, new byte[n % 50]);
                keep[i % 1000] = f;
                sum += f.a;
            }
            System.out.println(n + " " + sum);
        }
        System.exit(7);
    }
}
"""
NODE = r"""
class Foo { constructor(a, b) { this.a = a; this.b = b; } }
const keep = [];
for (let i = 0; i < 20000; i++)
  keep.push(new Foo(i, 'text ' + i));
let rest = '';
process.stdin.on('data', (d) => {
  rest += d;
  for (let at; (at = rest.indexOf('\n')) >= 0; rest = rest.slice(at + 1)) {
    const n = +rest.slice(0, at);
    let sum = 0;
    for (let i = 0; i < n; i++) {
      keep[i % 1000] = new Foo(i, [i]);
      sum += keep[i % 1000].a;
    }
    console.log(`${n} ${sum}`);
  }
});
process.stdin.on('end', () => process.exit(7));
console.log('ready');
"""


def write(name, text):
    path = os.path.join(TMP, name)
    with open(path, "w") as f:
        f.write(text)
    return path


LANGUAGES = []
for name, tools, text in (("kept.rb", ("ruby",), RUBY), ("kept.py", ("/usr/bin/python3",), PYTHON), ("Kept.java", ("java", "javac"), JAVA),
                          ("kept.js", ("node",), NODE)):
    if not all(map(shutil.which, tools)):
        continue
    path = write(name, text)
    if name == "Kept.java":
        subprocess.run(["javac", "-d", TMP, path], check=True)
        LANGUAGES.append((name, ["java", "-Xmx128m", "-XX:ReservedCodeCacheSize=16m", "-cp", TMP, "Kept"]))
    else:
        LANGUAGES.append((name, [tools[0], path]))
if not LANGUAGES:
    skip("no interpreter whose heap descry reads")
WAYS = (("heap",), ("heap", "alloc"), ("heap", "--fork"), ("heap", "--histogram"), ("heap", "alloc", "--every", "0.1"))


class Program:
    def __init__(self, name, argv):
        self.name, self.n = name, 1000
        self.p = kill_at_end(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        check(self.p.stdout.readline() == "ready\n", name, "the program did not start")

    def request(self):
        self.n += 7
        self.p.stdin.write("%d\n" % self.n)
        self.p.stdin.flush()

    def answer(self, *what):
        line = self.p.stdout.readline()
        return check(line == "%d %d\n" % (self.n, self.n * (self.n - 1) // 2), self.name, "the answer", line, self.p.poll(), *what)

    def end(self):
        out, err = self.p.communicate(timeout=120)
        check(self.p.returncode == 7 and not out and not err, self.name, "the end", self.p.returncode, out, err[-1000:])


def descry(way, pid):
    return kill_at_end(subprocess.Popen([DESCRY, *way, "-p", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True))


def alloc_lasts(way):
    return "alloc" in way


def seconds(p, way):
    """How long it takes, or until it records."""
    begun = time.monotonic()
    d = descry(way, p.p.pid)
    line = d.stderr.readline()
    while line and "recording" not in line:
        line = d.stderr.readline()
    took = time.monotonic() - begun
    if alloc_lasts(way):
        check("recording" in line, p.name, way, "does not record")
        d.send_signal(signal.SIGINT)
    d.communicate(timeout=120)
    check(d.returncode == 0, p.name, way, "exit", d.returncode)
    return took


def state(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0]


tally, amid, took = {}, 0, {}
for i in range(KILLS):
    name, argv = LANGUAGES[i // ROUND % len(LANGUAGES)]
    if i % ROUND == 0:
        p = Program(name, argv)
    way = WAYS[i % len(WAYS)]
    if (name, way) not in took:
        took[name, way] = seconds(p, way)
        p.request()
        p.answer("after it was read")
    p.request()
    d = descry(way, p.p.pid)
    time.sleep(random.random() * took[name, way] * (1.5 if alloc_lasts(way) else 1))
    amid += d.poll() is None
    d.kill()
    d.communicate()
    tally[" ".join(way)] = tally.get(" ".join(way), 0) + 1
    p.answer(i, way)
    p.request()
    p.answer(i, way, "a request after the kill")
    limit = time.monotonic() + 60
    # the watchdog takes the probes back, and stops the process for that
    while (descendants(p.p.pid) or state(p.p.pid) in "tT") and time.monotonic() < limit:
        time.sleep(0.01)
    check(time.monotonic() < limit, name, way, "processes stay, or it is stopped", descendants(p.p.pid), state(p.p.pid))
    if i % ROUND == ROUND - 1 or i == KILLS - 1:
        r = subprocess.run([DESCRY, "heap", "--json", "-p", str(p.p.pid)], capture_output=True, text=True, timeout=300)
        check(r.returncode == 0 and json.loads(r.stdout.splitlines()[0])["objects"] > 20000, name, "is read after kills", r.stderr)
        p.end()
    if checks.failures > 20:
        break
if "DESCRY_TORTURE" in os.environ:
    print("%d kills, %d of them while descry was at work: %s; %d failures" %
          (sum(tally.values()), amid, ", ".join("%d of %s" % (n, w) for w, n in tally.items()), checks.failures))
done()
