#!/usr/bin/env python3
# timeout: 300
# descry malloc record -k by a preloaded library: functions of Python and Ruby are in the stacks, each with the line that it executes. Random
# programs write down what the interpreter itself says of each allocation. PYTHONS, RUBIES: the interpreters to compare, instead of Debian's.
import glob
import threading
from collections import Counter

from live import *

PYTHONS = os.environ.get("PYTHONS", "/usr/bin/python3").split()
RUBIES = os.environ.get("RUBIES", "/usr/bin/ruby").split()
FILE, NOTES = os.path.join(TMP, "l.dma"), os.path.join(TMP, "notes")

# Functions that call each other at random: by generators, exceptions, C functions that call back, closures, coroutines, methods; of
# modules that are compiled and run; in threads, and in a forked child. Each leaf allocates 3,000 bytes or so once.
PYTHON = r'''
import os, random, sys, threading
notes, lock = {}, threading.Lock()


def note():
    f, line = sys._getframe(1), []
    while f:
        line.append("%s`%s:%d" % (os.path.basename(f.f_code.co_filename), getattr(f.f_code, "co_qualname", f.f_code.co_name), f.f_lineno))
        f = f.f_back
    with lock:
        key = os.getpid(), " ".join(line)
        notes[key] = notes.get(key, 0) + 1


class Walk(object):
    def __init__(self, seed):
        self.r = random.Random(seed)

    def leaf(self, n):
        note(); b = bytearray(3000)
        if n > 0 and self.r.random() < 0.5:
            note(); b = bytearray(3100)
        return len(b)

    def any(self, n):
        if n <= 0:
            return self.leaf(n)
        return self.r.choice([self.leaf, self.twice, self.called, self.yields, self.raises, self.closure, self.sends, self.compiled])(n - 1)

    def twice(self, n):
        return (self.any(n) +
                self.any(n - 1))

    def called(self, n):
        x = sorted([2, 1], key=lambda v: self.any(n - 1))
        return sum(map(self.any,
                       [n - 1]))

    def yields(self, n):
        def each():
            yield self.any(n)
            yield self.leaf(n)
        return sum(x for x in each()
                   if x)

    def raises(self, n):
        try:
            self.any(n)
            raise KeyError(n)
        except KeyError:
            return self.any(n - 1)

    def closure(self, n):
        def inside(k):
            return self.any(k)
        return inside(n)

    def sends(self, n):
        async def co():
            return self.any(n)
        c = co()
        try:
            c.send(None)
        except StopIteration as e:
            return e.value

    def compiled(self, n):
        k = self.r.randrange(1000)
        names = {"note": note, "walk": self}
        code = compile("\n" * k + "def f%d(n):\n note(); b = bytearray(3200)\n return walk.any(n)\nr = f%d(%d)\n" % (k, k, n), "made%d.py" % k, "exec")
        exec(code, names)
        return names["r"]


def run(seed):
    for i in range(60):
        Walk(seed * 1000 + i).any(7)


threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
[t.start() for t in threads]
run(9)
[t.join() for t in threads]
child = os.fork()
if child == 0:
    notes.clear()
    run(10)
else:
    os.waitpid(child, 0)
with open("%s.%d" % (sys.argv[1], os.getpid() if child == 0 else 0), "w") as f:
    for (pid, line), n in notes.items():
        f.write("%d %s\n" % (n, line))
'''

RUBY = r'''
$notes = Hash.new(0)
def note
  at = caller_locations(1).map { |l| "#{File.basename(l.path)}`#{l.label.gsub(' ', '_')}:#{l.lineno}" }.join(" ")
  $notes[at] += 1
end

class Walk
  def initialize(seed)
    @r = Random.new(seed)
  end

  def leaf(n)
    note; a = "x" * 3000
    if n > 0 && @r.rand < 0.5
      note; a = "x" * 3000
    end
    a.size
  end

  def any(n)
    return leaf(n) if n <= 0
    send([:leaf, :twice, :yields, :raises, :closure, :fiber, :compiled, :sorts][@r.rand(8)], n - 1)
  end

  def twice(n)
    any(n) +
      any(n - 1)
  end

  def yields(n)
    [1, 2].map do |i|
      any(n - i)
    end.inject do |a, b|
      leaf(n) + a + b
    end
  end

  def raises(n)
    any(n)
    raise KeyError, "x"
  rescue KeyError
    any(n - 1)
  ensure
    leaf(n)
  end

  def closure(n)
    f = lambda { |k| any(k) }
    f.call(n)
  end

  def fiber(n)
    Fiber.new do
      any(n)
    end.resume
  end

  def compiled(n)
    k = @r.rand(1000)
    eval("def self.f#{k}(n)\n note; a = 'x' * 3000\n any(n)\nend\nf#{k}(#{n})", binding, "made#{k}.rb", k)
  end

  def sorts(n)
    [2, 1].sort_by { |x| any(n - 1) }.size
  end
end

def run(seed)
  60.times { |i| Walk.new(seed * 1000 + i).any(6) }
end
threads = 3.times.map { |i| Thread.new { run(i) } }
run(9)
threads.each(&:join)
child = fork do
  $notes.clear
  run(10)
  File.write("#{ARGV[0]}.#{$$}", $notes.map { |k, n| "#{n} #{k}\n" }.join)
end
Process.wait(child)
File.write("#{ARGV[0]}.0", $notes.map { |k, n| "#{n} #{k}\n" }.join)
'''


def noted(path, frame):
    c = Counter()
    with open(path) as f:
        for line in f:
            n, *frames = line.split()
            c[tuple(frame(x) for x in frames)] += int(n)
    return c


def recorded(path, pick, frame, inner):
    """Counts of the stacks that have a frame of the allocating C function."""
    r = json.loads(subprocess.run([DESCRY, "malloc", "report", "--json", "-n", "100000000", path], capture_output=True, text=True).stdout)
    c = Counter()
    for s in r["count_stacks"]:
        if pick(s["frames"]):
            c[tuple(frame(f) for f in s["frames"] if re.match(r".+`.+:\d+$", f))[inner:]] += s["blocks"]
    return c, r


class Stops:
    """The tracer stands still again and again, for longer than a moment: threads wait for it, and miss no name."""
    def __init__(self, pid):
        self.pid, self.over = pid, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        for _ in range(40):
            if self.over.wait(0.05):
                break
            os.kill(self.pid, signal.SIGSTOP)
            time.sleep(0.15)
            os.kill(self.pid, signal.SIGCONT)

    def end(self):
        self.over.set()
        self.thread.join()


def compare(interpreter, source, ending, pick, frame, inner, stops=False):
    script = os.path.join(TMP, "walk" + ending)
    with open(script, "w") as f:
        f.write(source)
    for f in glob.glob(NOTES + ".*") + glob.glob(os.path.join(TMP, "l*.dma")):
        os.unlink(f)
    p = subprocess.Popen([DESCRY, "malloc", "record", "-k", "127", "-o", FILE, interpreter, script, NOTES], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    kill_at_end(p)
    stopped = Stops(p.pid) if stops else None
    while stopped and not os.path.exists(NOTES + ".0"):  # it has made all its calls
        if p.poll() is not None:
            break
        time.sleep(0.02)
    if stopped:
        stopped.end()
    out, err = p.communicate()
    check(p.returncode == 0 and (stops or err.count("\n") == 2) and "0 calls were" not in err, interpreter, p.returncode, out[-300:], err[-2000:])
    notes = glob.glob(NOTES + ".*")
    check(len(notes) == 2, interpreter, "notes", notes)
    for path in notes:
        pid = path.rsplit(".", 1)[1]
        want = noted(path, frame)
        got, r = recorded(FILE if pid == "0" else os.path.join(TMP, "l.%s.dma" % pid), pick, frame, inner)
        check(sum(want.values()) > 500 and len(want) > 100, interpreter, "the program's own list", sum(want.values()), len(want))
        check(got == want, interpreter, pid, "of", sum(want.values()), "differ", sum((got - want).values()), sum((want - got).values()),
              *[str(x) for x in list((got - want).items())[:2] + list((want - got).items())[:2]])
        check(r["lost"] == 0, r["lost"])


def ruby_frame(f):
    """Ruby does not say the classes."""
    return re.sub(r"[^\s`]+[#.](?=[^\s`]+:\d+$)", "", f).replace(" ", "_")


for python in PYTHONS:
    if os.path.exists(python):
        compare(python, PYTHON, ".py", lambda frames: any("PyByteArray_Resize" in f for f in frames[:3]), lambda f: f, 0)
for ruby in RUBIES:
    if os.path.exists(ruby):
        # String#* itself comes first
        compare(ruby, RUBY, ".rb", lambda frames: any("rb_str_times" in f for f in frames[:3]), ruby_frame, 1)
        compare(ruby, RUBY, ".rb", lambda frames: any("rb_str_times" in f for f in frames[:3]), ruby_frame, 1, stops=True)
done()
