# Programs of Ruby, Python, Java and Node.js that keep objects, make more on request, and answer with a number that the test knows. They end with 7.
from live import *

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
        LANGUAGES.append((name, ["java", "-Xmx128m", "-XX:ReservedCodeCacheSize=16m", "-cp", TMP, "Kept"], text))
    else:
        LANGUAGES.append((name, [tools[0], path], text))
if not LANGUAGES:
    skip("no interpreter whose heap descry reads")


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


def state(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0]
