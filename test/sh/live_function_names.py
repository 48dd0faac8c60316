#!/usr/bin/env python3
# probemod and probefunc of probes in functions of Python, Ruby and Java are the file or class and the function at the firing, and a description
# selects functions by them: python$target:app.py:Order*:function-entry, ruby$target:Order:save:method-entry,
# java$target:com.shop.Order*:save:entry. As often as the program calls them; in keys, text, predicates and variables; beside descriptions by
# the interpreter's own names. (A JVM that runs already: live_javamethods.py.)
# serial
from live import *

PYTHON = r"""
class Order:
    def save(self):
        return self.key()

    def key(self):
        return 1


def Orderly(n):
    return Orderly(n - 1) if n else 0


def unsorted(f):
    return f()


for i in range(40):
    Order().save()
Orderly(6)
unsorted(lambda: 1)
"""
RUBY = r"""
class Order
  def save() key end
  def key() 1 end
end
class OrderLine < Order
  def key() 2 end
  def self.make() new end
end
module Preorder
  def self.save() 1 end
end
40.times { Order.new.save }
7.times { OrderLine.make.save }
Preorder.save
"""
JAVA = r"""
package com.shop;

public class Order {
    static int sum;
    int key() { return 1; }
    int save(int n) { return key() + n; }
    static class Line extends Order {
        Line() { }
        int key() { return 2; }
    }
    public static void main(String[] args) throws Exception {
        if (args.length > 0) {
            System.out.println("ready");
            System.in.read();
        }
        for (int i = 0; i < 30000; i++) {
            sum += new Order().save(i);
            if (i % 3 == 0)
                sum += new Line().save(i);
        }
        System.out.println(sum);
    }
}
"""


def count(clauses, command, engine="inproc", **more):
    if engine == "inproc" and "python$target" in clauses:
        engine = python_from_inside("/usr/bin/python3")
    r = descry("--json", "-x", "engine=" + engine, "-n", clauses, c=command, **more)
    check(r.rc == 0 and "fault" not in r.err and "drop" not in r.err, clauses, engine, r)
    return r


def refused(clauses, command, text):
    r = descry("-n", clauses, c=command, rc=1)
    check(text in r.err, clauses, r)


py, rb = TMP + "/app.py", TMP + "/app.rb"
with open(py, "w") as f:
    f.write(PYTHON)
with open(rb, "w") as f:
    f.write(RUBY)
for engine in ("inproc", "kernel"):
    python, ruby = "/usr/bin/python3 -S " + py, "/usr/bin/ruby --disable-gems " + rb
    own = {"Order": 1, "Orderly": 7, "save": 40, "key": 40, "unsorted": 1, "<lambda>": 1, "<module>": 1}
    r = count("""python$target:app.py::function-entry { @[probefunc] = count(); @both[probemod, probefunc] = count(); }
                 python$target:::function-entry /probemod == "app.py" && probefunc == "Orderly"/ { @all[probename] = count(); }
                 python$target:app.py:Orderly:function-entry { self->at[probefunc]++; @deep = max(self->at[probefunc]); }""", python, engine)
    check(r.aggs() == own and r.aggs("both") == {("app.py", k): n for k, n in own.items()}, engine, r)
    check(r.aggs("all") == {"function-entry": 7} and r.aggs("deep") == {(): 7}, engine, r)
    r = count("""python$target:*.py:Ord*:function-entry { @a[probefunc] = count(); }
                 python$target:app*:*ed:function-entry { @b[probefunc] = count(); }
                 python$target:*pp.p*:*rder*:function-return { @c[probefunc] = count(); }
                 python$target:app.py:save:function-entry, python$target:app.py:key:function-return { @d[probename, probefunc] = count(); }
                 python$target:other.py::function-entry { @e = count(); }""", python, engine)
    check(r.aggs("a") == {"Order": 1, "Orderly": 7} and r.aggs("b") == {"unsorted": 1} and r.aggs("c") == {"Order": 1, "Orderly": 7}, engine, r)
    check(r.aggs("d") == {("function-entry", "save"): 40, ("function-return", "key"): 40} and not r.aggs("e"), engine, r)
    r = count("""ruby$target:Order*::method-entry { @[probemod, probefunc] = count(); }
                 ruby$target:Order:save:method-return { @a[strjoin(probefunc, "!")] = count(); printf("%s", probefunc); }
                 ruby$target:*order*:save:method-entry { @b[probemod] = count(); }
                 ruby$target:Order*:key:method-entry { @c[probemod] = count(); }""", ruby, engine)
    check(r.aggs() == {("Order", "save"): 47, ("Order", "key"): 40, ("OrderLine", "key"): 7, ("OrderLine", "make"): 7}, engine, r)
    check(r.aggs("a") == {"save!": 47} and r.aggs("b") == {"Preorder": 1} and r.aggs("c") == {"Order": 40, "OrderLine": 7}, engine, r)
    check(r.out.count('"save"') >= 47, engine, "text", r)
# a name that is not ASCII: no text is equal to it, and a pattern may match it, which is said
with open(TMP + "/odd.py", "w", encoding="utf-8") as f:
    f.write("def gr\u00f6\u00dfe(): return 1\ndef grow(): return gr\u00f6\u00dfe()\ngrow()\n")
odd = "/usr/bin/python3 -S %s/odd.py" % TMP
r = count("python$target:odd.py:grow:function-entry { @ = count(); } python$target:odd.py::function-entry { @all = count(); }", odd)
check(r.aggs() == {(): 1} and r.aggs("all") == {(): 3}, r)
r = descry("--json", "-n", "python$target:odd.py:gr*:function-entry { @ = count(); } ERROR { @e = count(); }", c=odd)
check(r.aggs() == {(): 1} and r.aggs("e") == {(): 1}, r)
# by the interpreter's own names, as before
r = count("python$target:python3*::function-entry { @ = count(); }", python)
check(r.aggs().get((), 0) >= 91, r)
listed = descry("-l", "-n", "python$target:app.py:Ord*:function-entry", c=python).out
check(re.search(r"^ *\d+ +python\d+ +app\.py +Ord\* function-entry", listed, re.M), listed)
refused("python$target:app.py:O*d*r:function-entry { exit(0); }", python, "no other wildcards")

javac = shutil.which("javac")
if javac:
    os.mkdir(TMP + "/java")
    with open(TMP + "/java/Order.java", "w") as f:
        f.write(JAVA)
    check(sh("javac -d %s/java %s/java/Order.java" % (TMP, TMP)).returncode == 0, "javac")
    java = [os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(javac)), "java")), "-cp", TMP + "/java", "com.shop.Order"]
    r = count("""java$target:com.shop.Order:save:entry { @[probemod, probefunc] = count(); }
                 java$target:com.shop.Order*:key:return { @a[probemod] = count(); }
                 java$target:*Line:<init>:entry { @b[probename] = count(); }
                 java$target:com.shop.*:*av*:entry, java$target:com.shop.*:*av*:return { @c[probename] = count(); }""", shlex.join(java))
    check(r.aggs() == {("com/shop/Order", "save"): 40000} and r.aggs("b") == {"entry": 10000}, r)
    check(r.aggs("a") == {"com/shop/Order": 30000, "com/shop/Order$Line": 10000} and r.aggs("c") == {"entry": 40000, "return": 40000}, r)
    with subprocess.Popen(java + ["waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        check(p.stdout.readline() == "ready\n", "is ready")
        s = tracing("--json", "-p", str(p.pid), "-n", "java$target:com.shop.Order:save:entry { @ = count(); }")
        p.communicate("\n")
        r = finish(s)
        check(r.aggs() == {(): 40000}, "a JVM that runs already", r)
    with subprocess.Popen(java[:1] + ["-XX:+DTraceMethodProbes"] + java[1:] + ["waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as p:
        check(p.stdout.readline() == "ready\n", "is ready")
        s = tracing("--json", "-p", str(p.pid), "-n", "java$target:com.shop.Order:save:entry { @ = count(); }")
        p.communicate("\n")
        r = finish(s)
        check(r.aggs() == {(): 40000}, "a JVM that was started with the flag", r)
done()
