#!/usr/bin/env python3
# lstack(): the innermost functions of Ruby and Python that a thread runs, exactly, in both engines, as a key and in a record; nothing of
# native frames, of functions written in C, or of a program without a language.
# covers: lstack
# serial
import itertools
import re

from live import *

RUBY = r"""
def leaf(n)
  [n].each { |x| Process.getpgid(0) }
end
def work
  1.times do
    leaf(1)
  end
end
$stdout.syswrite("ready\n")
$stdin.gets
100.times { work }
$stdin.gets
"""
PYTHON = r"""
import os, sys
def leaf(n):
    return list(map(lambda x: os.getpgid(0), [n]))
def work():
    leaf(1)
print("ready", flush=True)
sys.stdin.readline()
for i in range(100):
    work()
sys.stdin.readline()
"""
PROGRAMS = {
    "ruby": (RUBY, ["app.ruby`block in Object#leaf:3", "app.ruby`Object#leaf:3", "app.ruby`block in Object#work:7", "app.ruby`Object#work:6"]),
    "python3": (PYTHON, ["app.python3`leaf.<locals>.<lambda>:4", "app.python3`leaf:4", "app.python3`work:6", "app.python3`<module>:10"]),
}
CALLS = "syscall::getpgid:entry /pid == $target/ { %s n++; } tick-10hz /n == 100/ { exit(0); }"


def run_it(name, program, *args):
    path = "%s/app.%s" % (TMP, name)
    with open(path, "w") as f:
        f.write(program)
    p = subprocess.Popen(["/usr/bin/" + name, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdout.readline()
    d = subprocess.Popen([DESCRY, *args, "-p", str(p.pid), "-n", "BEGIN { printf(\"go\\n\"); }"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    first = d.stdout.readline()
    check(first == "go\n", "tracing does not begin", first)
    p.stdin.write(b"\n")
    p.stdin.flush()
    text = d.communicate(timeout=60)[0]
    p.communicate(b"\n", timeout=60)
    return [line.strip() for line in text.splitlines() if line.strip()]


def rows(lines):
    """{stack: count} of a printed aggregation. Instructions of one line are keys of their own."""
    found, stack = {}, []
    for line in lines:
        if line.isdigit():
            found[tuple(stack)] = found.get(tuple(stack), 0) + int(line)
            stack = []
        else:
            stack.append(line)
    return found


for (name, (program, expected)), engine in itertools.product(PROGRAMS.items(), ("kernel", "inproc")):
    if not os.path.exists("/usr/bin/" + name):
        skip("there is no " + name)
    for n in 1, 3, len(expected):
        lines = run_it(name, program, "-q", "-x", "engine=" + engine, "-n", CALLS % ("@[lstack(%d)] = count();" % n))
        check(rows(lines) == {tuple(expected[:n]): 100}, name, engine, n, "as a key", lines)
    lines = run_it(name, program, "-q", "-x", "engine=" + engine, "-n", CALLS % "lstack(2);")
    check(lines == expected[:2] * 100, name, engine, "in a record", lines[:50])
    lines = run_it(name, program, "-q", "-x", "engine=" + engine, "-n", CALLS % "lstack(1);")
    check(lines == expected[:1] * 100, name, engine, "one in a record", lines[:50])
    # without the names of Ruby's methods: the same files and lines
    places = [re.sub("`.*:", ":", row) for row in expected]
    for n in 1, 3:
        lines = run_it(name, program, "-q", "-x", "engine=" + engine, "-n", CALLS % ("lstack(%d, 1);" % n))
        check([re.sub("`.*:", ":", row) for row in lines] == places[:n] * 100, name, engine, n, "only lines", lines[:50])
        check(name != "ruby" or not any("#" in row for row in lines), name, engine, n, "no classes", lines[:10])
for engine in "kernel", "inproc":
    r = descry("-q", "-x", "engine=" + engine, "-n", "pid$target:a.out:main:entry { lstack(); @[lstack()] = count(); exit(0); }",
               c=os.environ["BUILD"] + "/test/tracee_types")
    check(r.rc == 0 and "`" not in r.out, engine, "a program without a language", r)
r = descry("-n", "BEGIN { lstack(0); }", rc=1)
check("must be a non-zero positive integer constant" in r.err, "no frames", r)
done()
