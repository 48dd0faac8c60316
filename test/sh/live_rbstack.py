#!/usr/bin/env python3
# ustack() and descry profile have the functions and lines of Ruby programs, walked in the kernel and in the process: of a process that runs, of a command from
# its start, of one that has ended when its stacks are printed. RUBIES: other interpreters than Debian's.
# serial
import itertools

from live import *

RUBIES = os.environ.get("RUBIES", "/usr/bin/ruby").split()
# Calls in a fixed order, so that each stack can be checked: methods written in C call back in between, blocks lie in blocks, a fiber runs a
# part, and code comes and goes in churn().
PROGRAM = r"""
def leaf(n)
  x = 0
  i = 0
  while i < n
    x += i * i
    i += 1
  end
  x
end

def key(x)
  leaf(20) * x
end

class Order
  def save(n)
    return save(n - 1) if n > 0
    (0...8).to_a.sort_by { |x| key(x) }
  end

  def self.each
    4.times { yield new.save(3) }
  end
end

def fiber
  Fiber.new { each_pair }.resume
end

def each_pair
  [1].each { |x| [2].each { |y| leaf(x + y) } }
end

def work
  Order.each { |x| x.size }
  fiber
end

def churn(n)
  n.times do |i|
    Object.new.instance_eval("def short#{i}() (0...50).inject { |a, b| a + b } end\nshort#{i}", "churn.rb", 1)
  end
end

def main(seconds)
  stop = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + seconds
  while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < stop
    work
    churn(2)
  end
end

t = Thread.new { main(ARGV[0].to_f) } if ARGV.size > 1
main(ARGV[0].to_f)
t.join if t
"""
with open(TMP + "/app.rb", "w") as f:
    f.write(PROGRAM)
# what may call what; callers of functions of C that are asked for by name, too
CALLERS = {
    "Object#leaf": {"Object#key", "block (2 levels) in Object#each_pair"},
    "Object#key": {"block in Order#save"},
    "block in Order#save": {"Array#each", "Enumerable#sort_by", "Range#each"},
    "Order#save": {"Order#save", "block in Order.each"},
    "block in Order.each": {"Integer#times"},
    "Order.each": {"Object#work"},
    "block (2 levels) in Object#each_pair": {"Array#each"},
    "block in Object#each_pair": {"Array#each"},
    "Object#each_pair": {"block in Object#fiber"},
    "Object#fiber": {"Object#work"},
    "Object#work": {"Object#main"},
    "Object#churn": {"Object#main"},
    "block in Object#churn": {"Integer#times", "BasicObject#instance_eval"}, # the text that is evaluated belongs to it
    "BasicObject#instance_eval": {"block in Object#churn"},
    "Enumerable#inject": {"short"},
    "Object#main": {"<main>", "block in <main>"},
    "<main>": set(),
    "block in <main>": set(),
    "block in Object#fiber": set(),
}
# the first line of a function
LINES = {}
for i, line in enumerate(PROGRAM.splitlines(), 1):
    m = re.match(r"( *)def (?:self\.)?(\w+)$|( *)def (?:self\.)?(\w+)\(", line)
    if m:
        LINES.setdefault(m.group(2) or m.group(4), i)


def short(name):
    return re.sub(r"^.*\bshort\d+$", "short", name)


def stacks(text):
    """Stacks of printed aggregations: ([frames], count)."""
    for m in re.finditer(r"((?:^ +\S.*\n)+?)^ +(\d+)$", text, re.M):
        yield [line.strip() for line in m.group(1).splitlines()], int(m.group(2))


def judge(name, all_stacks, r):
    """Counts samples: those in the program's functions, wrong ones, those without a name or a line."""
    seen, wrong, unknown, inside = 0, [], 0, set()
    for frames, n in all_stacks:
        if "[ruby]" in frames:
            unknown += n
            continue
        found = [re.match(r"(app\.rb|churn\.rb|\?)`(.*?)(?::(\d+))?$", f) for f in frames]
        found = [m for m in found if m]
        names = [short(m.group(2)) for m in found]
        if not names:
            continue
        seen += n
        inside.update(names)
        for callee, caller in zip(names, names[1:]):
            if callee in CALLERS and caller not in CALLERS[callee]:
                wrong.append((callee, caller, frames))
        # a method that is being made has no line yet
        unknown += n if any(not m.group(3) for m in found) else 0
        if any(m.group(1) == "?" for m in found):
            wrong.append(("without a place", frames))
        # a run of the loop that has no frame yet, or none any more, is the innermost
        first = next(i for i, f in enumerate(frames) if re.match(r"(app|churn)\.rb`", f))
        if any("rb_vm_exec" in f for f in frames[first:]):
            wrong.append(("the loop is still there", frames))
    print("%s: %d samples, %d wrong, %d without a name" % (name, seen, len(wrong), unknown))
    check(seen > 10, name, "has samples", seen, r)
    check(not wrong, name, "calls as the program makes them", wrong[:3])
    check(unknown <= seen * 0.05, name, "names", unknown, "of", seen)
    missing = {"Order#save", "Integer#times", "Order.each"} - inside
    check(not missing, name, "functions of all kinds", missing, r)
    return seen


# until there are enough, on a machine as busy as it may be
ENOUGH = "profile-997 /pid == $target/ { @[ustack()] = count(); n++; } profile-997 /n >= 300/ { exit(0); } tick-60s { exit(0); }"
STACKS = "profile-997 /pid == $target/ { @[ustack()] = count(); } "
for ruby in RUBIES:
    if not shutil.which(ruby):
        skip("there is no " + ruby)
for ruby, engine in itertools.product(RUBIES, ("kernel", "inproc")):
    options = ("-q", "-x", "engine=" + engine, "-x", "aggsize=16m")
    name = "%s, %s" % (ruby, engine)
    p = subprocess.Popen([ruby, TMP + "/app.rb", "600", "threads"])
    r = descry(*options, "-p", str(p.pid), "-n", "pid$target::rb_ary_push:entry { @[ustack()] = count(); n++; } tick-97hz /n >= 20000/ { exit(0); } tick-60s { exit(0); }")
    judge(name + ", function", stacks(r.out), r)
    r = descry(*options, "-p", str(p.pid), "-n", ENOUGH)
    judge(name + ", -p", stacks(r.out), r)
    first = LINES["leaf"]
    lines = {int(n) for n in re.findall(r"app\.rb`Object#leaf:(\d+)$", r.out, re.M)}
    check(lines and min(lines) >= first and max(lines) <= first + 8, "leaf's lines", lines, first)
    # a function of C is where it was called
    lines = {int(n) for n in re.findall(r"app\.rb`Integer#times:(\d+)$", r.out, re.M)}
    check(lines <= {LINES["each"] + 1, LINES["churn"] + 1} and lines, "times' lines", lines, LINES)
    p.kill()
    p.wait()
    # it has ended when the stacks are printed
    r = descry(*options, "-n", STACKS, c="%s %s/app.rb 1.5" % (ruby, TMP))
    judge(name + ", -c", stacks(r.out), r)
for ruby in RUBIES:
    r = descry("profile", "--folded", "-q", c="%s %s/app.rb 1" % (ruby, TMP))
    folded = [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in r.out.splitlines()]
    both = [(s.index("Object#leaf") > s.index("Object#work"), n) for s, n in folded if "Object#leaf" in s and "Object#work" in s]
    check(sum(n for ok, n in both) > 20 and all(ok for ok, n in both), ruby, "folded", r.out[:2000])
done()
