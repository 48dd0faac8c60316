#!/usr/bin/env python3
# The tracer is killed by SIGKILL at a random instant while it traces functions of Python, Ruby and Java by their names, and lines of Ruby:
# of a program that runs on, attached to again and again, and of commands. The programs print what they print without a tracer, end
# well, and have none of descry's memory a moment later; Ruby's and Java's flags are as before. DESCRY_TORTURE: kills of each kind (4).
# serial
import random

from live import *

KILLS = int(os.environ.get("DESCRY_TORTURE", "4"))
PYTHON = r"""
import sys


def leaf(n):
    return n % 7


def work(n):
    return sum(leaf(i) for i in range(n))


class Order:
    def save(self, n):
        return work(n) + leaf(n)


turns = 0
print("ready", flush=True)
while turns != int(sys.argv[1]):
    value = Order().save(300)
    assert value == work(300) + 300 % 7
    turns += 1
    if turns % 50 == 0:
        print(turns, value, flush=True)
"""
RUBY = r"""
$stdout.sync = true
def leaf(n) n % 7 end
def work(n)
  s = 0
  n.times do |i|
    s += leaf(i)
  end
  s
end
class Order
  def save(n) work(n) + leaf(n) end
end
puts "ready"
turns = 0
until turns == ARGV[0].to_i
  value = Order.new.save(300)
  raise "wrong" if value != work(300) + 300 % 7
  turns += 1
  puts "#{turns} #{value}" if turns % 50 == 0
end
"""
JAVA = r"""
public class Order {
    static int leaf(int n) { return n % 7; }
    static int work(int n) {
        int s = 0;
        for (int i = 0; i < n; i++)
            s += leaf(i);
        return s;
    }
    int save(int n) { return work(n) + leaf(n); }
    public static void main(String[] args) {
        System.out.println("ready");
        for (int turns = 1; turns <= Integer.parseInt(args[0]); turns++) {
            int value = new Order().save(300);
            if (value != work(300) + 300 % 7)
                throw new RuntimeException("wrong");
            if (turns % 500 == 0) {
                System.out.println(turns + " " + value);
                System.gc();
            }
        }
    }
}
"""


def descry_is_in(pid):
    try:
        with open("/proc/%d/maps" % pid) as f:
            return "memfd:descry" in f.read()
    except OSError:
        return False


def becomes(condition, secs=60):
    end = time.monotonic() + secs
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def running(name, argv, probe):
    """Attaches to one program again and again."""
    log = "%s/%s.log" % (TMP, name)
    with open(log, "w") as out, subprocess.Popen(argv + ["-1"], stdout=out) as p:
        kill_at_end(p)
        check(becomes(lambda: "ready" in open(log).read()), name, "is ready")
        for i in range(KILLS):
            d = subprocess.Popen([DESCRY, "-q", "-x", "engine=inproc", "-p", str(p.pid), "-n",
                                  probe + " { @[probefunc] = count(); } tick-20ms { printa(@); }"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0, 0.5))
            d.kill()
            d.wait()
            check(p.poll() is None, name, i, "the program lives", p.returncode)
            before = os.path.getsize(log)
            check(becomes(lambda: os.path.getsize(log) > before), name, i, "the program works")
        check(becomes(lambda: not descry_is_in(p.pid)), name, "descry's memory is gone")
        p.kill()


def started(name, argv, turns, probe, flag=None):
    """Kills the tracer of a command."""
    killed = 0
    alone = subprocess.run(argv + [turns], capture_output=True, text=True, check=True).stdout
    for i in range(KILLS):
        log = "%s/%s.%d" % (TMP, name, i)
        with open(log, "w") as out:
            d = subprocess.Popen([DESCRY, "-q", "-x", "engine=inproc", "-n", probe + " { @[probefunc] = count(); @n = count(); }", "-c",
                                  shlex.join(argv + [turns])], stdout=out, stderr=subprocess.DEVNULL)
        # from the moment when the command runs
        becomes(lambda: "ready" in open(log).read() or d.poll() is not None)
        time.sleep(random.uniform(0, 0.3))
        pids = [c for c in descendants(d.pid) if argv[-1] in open("/proc/%d/cmdline" % c).read()]
        d.kill()
        d.wait()
        killed += len(pids) > 0
        for pid in pids:
            check(becomes(lambda: not descry_is_in(pid)), name, i, "descry's memory is gone")
            check(flag is None or not os.path.exists("/proc/%d" % pid) or flag(pid), name, i, "its flag is as before")
            check(becomes(lambda: not os.path.exists("/proc/%d" % pid), 300), name, i, "the command ends")
        said = open(log).read()
        check(said.startswith(alone), name, i, "the output is unchanged", said[-200:], alone[-200:])
    check(killed * 2 > KILLS, name, "most of the commands were at work", killed)


def ruby_flag(pid):
    """Returns true when Ruby makes code without lines' events."""
    try:
        with open("/proc/%d/maps" % pid) as f:
            line = next(m for m in f if re.search(r" 00000000 .*libruby-\d", m))
        symbol = re.search(r"^(\w+) \w ruby_vm_event_enabled_global_flags", sh("nm -D " + line.split()[-1]).stdout, re.M)
        with open("/proc/%d/mem" % pid, "rb") as f:
            f.seek(int(line.split("-")[0], 16) + int(symbol.group(1), 16))
            return f.read(1) == b"\0"
    except OSError:
        return True


py, rb = TMP + "/order.py", TMP + "/order.rb"
with open(py, "w") as f:
    f.write(PYTHON)
with open(rb, "w") as f:
    f.write(RUBY)
running("python", ["/usr/bin/python3", py], "python$target:::function-entry")
running("ruby", ["/usr/bin/ruby", rb], "ruby$target:::method-entry, ruby$target:Order:save:method-return")
started("python_command", ["/usr/bin/python3", py], "12000", "python$target:order.py:*:function-entry")
started("ruby_lines", ["/usr/bin/ruby", rb], "3000", "ruby$target:::line", ruby_flag)
if shutil.which("javac"):
    with open(TMP + "/Order.java", "w") as f:
        f.write(JAVA)
    check(sh("javac -d %s %s/Order.java" % (TMP, TMP)).returncode == 0, "javac")
    home = os.path.dirname(os.path.realpath(shutil.which("javac")))
    started("java", [home + "/java", "-cp", TMP, "Order"], "60000", "java$target:Order:*:entry")
done()
