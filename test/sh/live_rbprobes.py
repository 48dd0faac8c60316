#!/usr/bin/env python3
# ruby$target:::method-entry and method-return fire for each call of a method written in Ruby, as often as a TracePoint says in the same
# program, with its class, name, file and line: of a command, of a process that runs already, of real programs. The toolkit's old names
# select the same probes. RUBIES: other interpreters than Debian's.
# serial
from ruby_calls import *

RUBIES = os.environ.get("RUBIES", "/usr/bin/ruby").split()
for ruby in RUBIES:
    if not shutil.which(ruby):
        skip("there is no " + ruby)
    for app, text in (("shop.rb", PROGRAM), ("libraries.rb", LIBRARIES)):
        path = os.path.join(TMP, app)
        with open(path, "w") as f:
            f.write(text)
        want = truth(ruby, path)
        for engine in ("kernel", "inproc"):
            options = ("-q", "--json", "-x", "engine=" + engine, "-x", "aggsize=8m")
            name = "%s, %s, %s" % (ruby, app, engine)
            r = descry(*options, "-n", COUNT, c="%s %s run" % (ruby, path))
            judge(name + ", -c", r, want)
            if app == "shop.rb":
                judge_lines(name, r, path, text)
            p = subprocess.Popen([ruby, path, "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            p.stdout.readline()
            d = tracing(*options, "-n", COUNT, "-p", str(p.pid))
            p.stdin.write(b"go\n")
            p.stdin.close()
            p.wait()
            judge(name + ", -p", finish(d), want)
# a Ruby that compiles its methods would be counted wrong
if "+YJIT" in sh(RUBIES[0] + " --yjit --version").stdout:
    path = os.path.join(TMP, "shop.rb")
    with subprocess.Popen([RUBIES[0], "--yjit", "--yjit-call-threshold=2", path, "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        p.stdout.readline()
        r = descry("-n", "ruby$target:::method-entry { }", "-p", str(p.pid), rc=1)
        check("calls of methods there pass no place" in r.err, "YJIT is refused", r)
        p.communicate(b"go\n")
    # a command that compiles later, and children of one
    YJIT = """
    class Order
      def key(x) x + 1 end
      def all() i = 0; while i < 100; key(i); i += 1; end; end
    end
    10.times { Order.new.all }
    2.times { system(RbConfig.ruby, "--yjit", "--yjit-call-threshold=2", __FILE__) } if ARGV[0]
    """
    path = os.path.join(TMP, "compiled.rb")
    with open(path, "w") as f:
        f.write(YJIT)
    KEYS = 'ruby$target:Order:key:method-entry { @[pid] = count(); }'
    for engine in ("kernel", "inproc"):
        options = ("-q", "--json", "-x", "engine=" + engine, "-n", KEYS)
        r = descry(*options, c="%s --yjit --yjit-call-threshold=2 %s" % (RUBIES[0], path))
        got = r.aggs()
        check(len(got) == 1 and sum(got.values()) < 1000, engine, "YJIT's calls are missed", got)
        said = re.findall(r"process (\d+): Ruby's own compiler \(YJIT\) has made code since", r.err)
        check(said == [str(pid) for pid in got], engine, "the missed calls are reported", r.err)
        r = descry(*options, c="%s %s" % (RUBIES[0], path))
        check(list(r.aggs().values()) == [1000] and not r.err, engine, "without YJIT nothing is reported", r.aggs(), r.err)
        r = descry(*options, "-x", "follow", c="%s %s children" % (RUBIES[0], path))
        got = r.aggs()
        said = re.findall(r"process (\d+): Ruby's own compiler", r.err)
        check(len(got) == 3 and sorted(said) == sorted(str(pid) for pid, n in got.items() if n < 1000), engine, "children's too", got, r.err)
# the probes of the interpreter's own notes, and the names of other systems
OTHERS = """
require "tempfile"
class Widget; end
class Trouble < StandardError; end
7.times { Widget.new }
5.times { begin; raise Trouble; rescue Trouble; end }
3.times { [].push(1) }
GC.start
def leaf(n) n end
def tree(n) n > 0 ? tree(n - 1) + leaf(n) : 0 end
6.times { tree(5) }
"""
with open(os.path.join(TMP, "others.rb"), "w") as f:
    f.write(OTHERS)
SEEN = """
ruby$target:::object-create /copyinstr(arg0) == "Widget"/ { @["new", arg2] = count(); }
ruby$target:::raise /copyinstr(arg0) == "Trouble"/ { @["raise", arg2] = count(); }
ruby$target:::require-entry /basename(copyinstr(arg0)) == "tempfile"/ { @["require", 0] = count(); }
ruby$target:::gc-mark-begin { @gc["mark"] = count(); }
ruby$target:::gc-begin { @gc["begin"] = count(); }
ruby$target:::function-entry /copyinstr(arg1) == "tree"/ { @old[copyinstr(arg1)] = count(); }
"""
FLOW = """
ruby$target:::function-entry /basename(copyinstr(arg2)) == "others.rb" && copyinstr(arg1) == "tree"/ { self->depth++; @deepest = max(self->depth); }
ruby$target:::function-return /basename(copyinstr(arg2)) == "others.rb" && copyinstr(arg1) == "tree"/ { self->depth--; @last = min(self->depth); }
"""
WANT = {("new", 5): 7, ("raise", 6): 5, ("require", 0): 1}
# object-create has no room for a patch, so by default the kernel probes it in the same run
for engine in ("kernel", "auto"):
    r = descry("-q", "--json", "-x", "engine=" + engine, "-n", SEEN, c="%s %s/others.rb" % (RUBIES[0], TMP))
    got = r.aggs()
    check({k: got.get(k) for k in WANT} == WANT, engine, "the interpreter's own probes", got, r.err)
    gc = r.aggs("gc")
    check(gc.get("mark", 0) > 0 and gc.get("mark") == gc.get("begin"), engine, "gc", gc)
    old = r.aggs("old")
    check(old.get("tree") == 36, engine, "old names", old)
for engine in ("kernel", "inproc"):
    r = descry("-q", "--json", "-x", "engine=" + engine, "-n", FLOW, c="%s %s/others.rb" % (RUBIES[0], TMP))
    ends = [row["value"] for row in r.json() if row["type"] == "aggregation" and row["name"] in ("deepest", "last")]
    check(ends == [6, 0], engine, "every method that begins returns", ends, r.err)
# Ruby itself crashes now and then when it prepares the arguments of these
r = descry("-n", "ruby$target:::cmethod-entry { }", rc=1, c="%s %s/others.rb" % (RUBIES[0], TMP))
check("now and then crashes" in r.err, "methods written in C are refused with the reason", r)
done()
