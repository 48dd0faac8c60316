#!/usr/bin/env python3
# Descriptions that select functions by names decide once for each function of Python and method of Ruby, by a number of it: as many firings as
# the program made such calls. Functions and classes that are made and dropped again and again use addresses again; there are more functions
# than the program remembers; several descriptions select among the same functions; a class of Ruby gets its name after its first calls, and
# its collector moves methods; several threads call. Returns and lines of Python and methods of Java have no code object or method entry
# at hand; a number of the two texts selects them. Texts are longer than the numbers know, or use the addresses of other texts again.
# serial
from live import *

PYTHON = r"""
import collections, json, sys, threading

calls = collections.Counter()


def define(name, file):
    space = {}
    calls["%s <module>" % file] += 1
    exec(compile("def %s(n): return n + 1" % name, file, "exec"), space)
    return space[name]


def call(name, file, f, n):
    calls["%s %s" % (file, name)] += n
    for i in range(n):
        f(i)


for i in range(3000):
    name, file = "made_%d" % (i % 7), "/x/part%d.py" % (i % 3)
    call(name, file, define(name, file), 3)  # dropped at once: the next one has its address
kept = {}
for i in range(6000):
    name, file = "kept_%d" % (i % 1000), "/x/part%d.py" % (i % 6)
    kept[i] = name, file, define(name, file)
for round in range(3):
    for name, file, f in kept.values():
        call(name, file, f, 2)
together = define("kept_4000", "/x/part1.py")
threads = [threading.Thread(target=lambda: [together(i) for i in range(5000)]) for _ in range(4)]
calls["/x/part1.py kept_4000"] += 20000
for t in threads:
    t.start()
for t in threads:
    t.join()
with open(sys.argv[1], "w") as f:
    json.dump(calls, f)
"""
RUBY = r"""
require "json"
$calls = Hash.new(0)
def call(owner, name, n)
  $calls["#{owner} #{name}"] += n
  n.times { yield }
end
1500.times do |i|
  name = "made_#{i % 7}"
  c = Class.new
  c.class_eval("def #{name}() 1 end")
  Object.const_set("Made#{i % 3}", c)
  o = c.new
  call("Made#{i % 3}", name, 3) { o.send(name) }
  Object.send(:remove_const, "Made#{i % 3}")
end
late = Class.new { def made_3() 1 end }
o = late.new
call("nothing", "made_3", 9) { o.made_3 }
MadeLate = late
call("MadeLate", "made_3", 9) { o.made_3 }
class Kept; end
class KeptToo; end
all = [Kept, KeptToo].flat_map do |c|
  (0...2500).map { |i| c.class_eval("def kept_#{i}() 1 end"); [c.name, "kept_#{i}", c.new] }
end
4.times { |i| GC.compact if i == 2; all.each { |c, n, o| call(c, n, 2) { o.send(n) } } }
k = Kept.new
$calls["Kept kept_1"] += 2000
(0...4).map { Thread.new { 500.times { k.kept_1 } } }.each(&:join)
File.write(ARGV[0], JSON.dump($calls))
"""
JAVA = r"""
import java.io.*;
import java.net.*;
import java.nio.file.*;

public class App {
    public static void main(String[] args) throws Exception {
        URL[] here = { new File(args[0]).toURI().toURL() };
        for (int i = 0; i < 60; i++) {
            // unloaded: other classes' names use the addresses again
            try (URLClassLoader loader = new URLClassLoader(here, null)) {
                Class<?> c = loader.loadClass("shop.Made" + i % 3);
                ((Runnable) c.getDeclaredConstructor().newInstance()).run();
            }
            if (i % 10 == 9)
                System.gc();
        }
    }
}
"""
MADE = r"""
package shop;

public class Made%d implements Runnable {
    static int sum;
    int save(int n) { return n + 1; }
    int saved(int n) { return n + 1; }
    int %s(int n) { return n + 1; }
    public void run() {
        for (int i = 0; i < 500; i++)
            sum += save(i) + saved(i) + %s(i);
    }
}
"""
LANGUAGES = (
    ("python", "function-entry", "/usr/bin/python3 -S", PYTHON, "py", "d_id_python",
     (("part1.py", "made_3"), ("*art2*", "*de_5"), ("", "kept_1*"), ("part3*", "*_99"), ("part1.py", "kept_4000"), ("part4.py", ""), ("none*", "*"))),
    ("ruby", "method-entry", "/usr/bin/ruby --disable-gems", RUBY, "rb", "d_id_ruby",
     (("Made1", "made_3"), ("Made*", "*_3"), ("MadeLate", ""), ("Kept", "kept_1*"), ("*Too", "*_99"), ("", "kept_77"), ("None*", "*"))),
)


def selects(pattern, text):
    """The project's own patterns: one * at the beginning, one at the end."""
    word = pattern.strip("*")
    return word in text if pattern[:1] == pattern[-1:] == "*" else text.startswith(word) if pattern.endswith("*") \
        else text.endswith(word) if pattern.startswith("*") else not pattern or text == pattern


for language, probe, interpreter, program, ending, routine, patterns in LANGUAGES:
    if not os.path.exists(interpreter.split()[0]):
        skip("no " + interpreter.split()[0])
    path, truth = "%s/app.%s" % (TMP, ending), "%s/truth.%s" % (TMP, ending)
    with open(path, "w", encoding="utf-8") as f:
        f.write(program)
    clauses = "".join("%s$target:%s:%s:%s { @[%d] = count(); }\n" % (language, mod, func, probe, i) for i, (mod, func) in enumerate(patterns))
    text = descry("-e", "-d", "ir", "-x", "engine=inproc", "-n", clauses, c=interpreter + " --version").out
    check(routine + "(" in text, language, "the number is asked for", text[-2000:])
    inside = python_from_inside("/usr/bin/python3") if language == "python" else "inproc"
    # without --json, which counts each probe's firings, most firings end in the thunk's shortcut
    for engine, form in ((inside, "-q"), (inside, "--json"), ("kernel", "--json")):
        r = descry(form, "-x", "engine=" + engine, "-n", clauses, c="%s %s %s" % (interpreter, path, truth))
        check(os.path.exists(truth) and "fault" not in r.err and "drop" not in r.err, language, engine, form, r)
        counted = r.aggs() if form == "--json" else {int(i): int(n) for i, n in re.findall(r"^ +(\d+) +(\d+)$", r.out, re.M)}
        with open(truth, encoding="utf-8") as f:
            calls = {tuple(k.rsplit("/", 1)[-1].split()): n for k, n in json.load(f).items()}
        os.unlink(truth)
        for i, (mod, func) in enumerate(patterns):
            want = sum(n for (m, f), n in calls.items() if selects(mod, m) and selects(func, f))
            check(counted.get(i, 0) == want, language, engine, form, (mod, func), "counted", counted.get(i, 0), "expected", want)


def by_texts(provider, probe, patterns, all_texts, command, engine):
    """Compares with an aggregation whose keys are the texts."""
    clauses = "".join("%s$target:%s:%s:%s { @[%d] = count(); }\n" % (provider, mod, func, probe, i) for i, (mod, func) in enumerate(patterns))
    text = descry("-e", "-d", "ir", "-x", "engine=inproc", "-n", clauses, c=command.split()[0] + " --version").out
    check("d_id_texts(" in text, provider, probe, "the number is asked for", text[-2000:])
    r = descry("--json", "-x", "engine=" + engine, "-n", clauses + all_texts, c=command)
    check("fault" not in r.err and "drop" not in r.err, provider, probe, engine, r)
    all_of = r.aggs("all")
    for i, (mod, func) in enumerate(patterns):
        want = sum(n for (m, f), n in all_of.items() if selects(mod, m.replace("/", ".") if provider == "java" else m.rsplit("/", 1)[-1]) and selects(func, f))
        check(r.aggs().get(i, 0) == want, provider, probe, engine, (mod, func), "counted", r.aggs().get(i, 0), "expected", want)
        check(want or func == "none", provider, probe, (mod, func), "is called")


path = TMP + "/texts.py"
with open(path, "w", encoding="utf-8") as f:
    f.write(PYTHON.replace("range(6000)", "range(600)").replace(": return n", ":\\n    return n").replace("kept_4000", "kept_40")
            + "for name in 'y' * 130, 'y' * 131, 'eightchr', 'seven_c', 'sixteen_charactr':\n    f = define(name, '/x/' + 'z' * 140 + 'part1.py')\n    f(1), f(2)\n")
PATTERNS = (("part1.py", "made_3"), ("*art2*", "*de_5"), ("", "kept_1*"), ("part3*", "*_99"), ("part1.py", "kept_40"), ("part4.py", ""), ("", "none"),
            ("", "y" * 131), ("*zpart1.py", ""), ("", "eightchr"), ("", "sixteen_charactr"))
for probe in "function-return", "line":
    for engine in python_from_inside("/usr/bin/python3"), "kernel":
        by_texts("python", probe, PATTERNS, "python$target:::%s { @all[copyinstr(arg0), copyinstr(arg1)] = count(); }" % probe,
                 "/usr/bin/python3 -S %s %s/truth.py" % (path, TMP), engine)
javac = shutil.which("javac")
if javac:
    for i in range(3):
        long = "long_%d_%s" % (i, "n" * 130)
        os.makedirs(TMP + "/java/made/shop", exist_ok=True)
        with open("%s/java/made/shop/Made%d.java" % (TMP, i), "w") as f:
            f.write(MADE % (i, long, long))
    with open(TMP + "/java/App.java", "w") as f:
        f.write(JAVA)
    check(sh("cd %s/java && javac App.java made/shop/*.java" % TMP).returncode == 0, "javac")
    java = os.path.join(os.path.dirname(os.path.realpath(javac)), "java")
    for engine in "inproc", "kernel":
        by_texts("java", "entry", (("shop.Made1", "save"), ("shop.*", "save"), ("*Made2", "saved"), ("shop.Made0", "<init>"), ("shop.Made*", "*sav*"),
                                   ("*Made*", "long_1_" + "n" * 130), ("*Made*", "long_*"), ("shop.Made3", "none")),
                 "java$target:::entry { @all[copyinstr(arg1, arg2), copyinstr(arg3, arg4)] = count(); }",
                 "%s %s -cp %s/java App %s/java/made/" % (java, "-XX:+DTraceMethodProbes" if engine == "kernel" else "", TMP, TMP), engine)
done()
