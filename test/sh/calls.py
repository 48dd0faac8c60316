#!/usr/bin/env python3
# descry calls: lines and table of the library calls of a program, on both engines; the program's own output, exit code and life are
# unchanged. Of the part "libraries loaded later", `ltrace -x sqlite3_step -ttT /usr/bin/python3 sql.py` of Debian 12 (0.7.3) shows
# nothing: the interpreter's own calls ("free(0x1b381ee0) = <void> <0.000101>"), and no line with sqlite3_step.
from calls_tracee import *

WANT = r"""
atol\("0"\) += 0
strcmp\("lines", "lines"\) += 0
malloc\(24\) += (0x[0-9a-f]+)
strcpy\(\1, "hello"\) += \1
puts\("hello"\) += 6
qsort\(0x[0-9a-f]+, 3, 8, 0x[0-9a-f]+ <unfinished ...>
(strcmp\("[abc]", "[abc]"\) += -?\d+
){2,3}<\.\.\. qsort resumed> \) += <void>
getenv\("GIVEN"\) += "given"
atoi\("12"\) += 12
strchr\("hello", 'z'\) += (nil|\?)
printf\("%s %d %d%c\\n", "given", 12, 1, 'x'\) += 12
mempcpy\(0x[0-9a-f]+, "hel", 3\) += (0x[0-9a-f]+|\?)
free\(\1\) += <void>
fopen\("/nonexistent", "r"\) += 0 ENOENT \(No such file or directory\)
nanosleep\({ tv_sec=0, tv_nsec=1000 }, 0\) += 0
made_pair\({ 7, -8, 0x[0-9a-f]+ }, 1\) += 1
made_pair\(0x8, 2\) += 2
made_sum\(\[ 1, -2, 3 \], 3\) += SIX
made_fill\("xxxxxx", 6\) += 0x6
made_nest\(2\) += 12
_setjmp\(0x[0-9a-f]+\) += .*
made_leave\(0x[0-9a-f]+\)( += \?)?
(_setjmp\(0x[0-9a-f]+\) += .*
)?made_sum\(\[ 1 \], 1\) += 1
fflush\(0x[0-9a-f]+\) += 0
exit\(3\)
(__cxa_finalize\(0x[0-9a-f]+\) += <void>
)?\+\+\+ exited \(status 3\) \+\+\+
"""
WANT = WANT.lstrip()

for engine in engines:
    how = ["-X", "engine=" + engine, "-F", "made.conf"]

    r = calls(*how, "-o", "lines.out", "./t", "lines", "0", rc=3)
    text = open("lines.out").read()
    check(r.out == plain.stdout, engine, "the program's own output", r)
    check(re.fullmatch(WANT, text), engine, "lines", text)

    # a call in a call of the same function, each with its own time
    r = calls(*how, "-T", "-n", "2", "-x", "made_nest", "./t", "lines", "0", rc=3)
    check(re.search(r"^made_nest\(2 <unfinished \.\.\.>\n  made_nest\(1 <unfinished \.\.\.>\n    made_nest\(0\) += 10 <\d\.\d{6}>\n"
                    r"  <\.\.\. made_nest resumed> \) += 11 <\d\.\d{6}>\n<\.\.\. made_nest resumed> \) += 12 <\d\.\d{6}>$", r.err, re.M),
          engine, "nested", r)

    # every call of every thread
    r = calls(*how, "-c", "./t", "threads", "7", "30011")
    rows = {line.split()[-1 if "total" in line else 4]: line.split() for line in r.err.splitlines()[2:]}
    check(rows.get("rand_r", [0] * 4)[3] == str(7 * 30011), engine, "calls of threads", r)
    check(rows.get("pthread_join", [0] * 4)[3] == "7" and "total" in rows, engine, "the table", r)
    row = rows.get("rand_r")
    check(row and float(row[5]) <= float(row[6]) <= float(row[7]), engine, "median, 99th percentile, longest", r)

    # children
    r = calls(*how, "-c", "-C", "-e", "_ZN*", "./t", "fork", "3", "211")
    check(re.search(r" 1 made::add\(int, int\) +[\d.]+ +[\d.]+ +[\d.]+$", r.err, re.M), engine, "not the children's calls", r)
    r = calls(*how, "-f", "-c", "-e", "_ZN*", "./t", "fork", "3", "211")
    check(re.search(r" 634 _ZN4made3addEii +[\d.]+ +[\d.]+ +[\d.]+$", r.err, re.M), engine, "the children's calls", r)
    r = calls(*how, "-f", "-i", "-C", "-e", "_ZN*", "./t", "fork", "2", "1")
    # the children run side by side: a call of one may begin before that of the other has returned
    began = re.findall(r"^\[pid (\d+)\] \[(0x\w+)\] made::add\(int, int\)\(\d, \d", r.err, re.M)
    sums = re.findall(r"^\[pid (\d+)\] .*\) += ([35])$", r.err, re.M)
    check(len({pid for pid, at in began}) == 3 and len({at for pid, at in began}) == 2 and {p for p, s in sums} == {p for p, at in began} and
          sorted(s for p, s in sums) == ["3", "5", "5"],
          engine, "lines of children, return addresses", r)

    # a signal ends the program
    r = calls(*how, "-e", "raise", "./t", "kill", "0", rc=128 + 9)
    check(r.err.endswith("+++ killed by SIGKILL +++\n") and "raise(SIGKILL" in r.err, engine, "killed", r)

    # a running program, and ^C: it goes on
    t = subprocess.Popen(["./t", "forever", "0"], stdout=subprocess.PIPE, text=True)
    try:
        t.stdout.readline()
        traced = subprocess.Popen([DESCRY, "calls", *how, "-tt", "-r", "-e", "usleep", "-p", str(t.pid)], stderr=subprocess.PIPE, text=True)
        seen = [without_objects(traced.stderr.readline()) for i in range(3)]
        check(all(re.match(r"\d\d:\d\d:\d\d\.\d{6} +\d+\.\d{6} usleep\(2000\) += 0$", line) for line in seen), engine, "of a process", seen)
        traced.send_signal(signal.SIGINT)
        traced.communicate(timeout=60)
        check(traced.returncode == 0, engine, "^C", traced.returncode)
        last = int(t.stdout.readline())
        check(any(int(t.stdout.readline()) > last + 50 for i in range(200)), engine, "goes on after ^C")
        check(t.poll() is None, engine, "lives after ^C")
    finally:
        t.kill()
        t.communicate()

# filters
def functions(*args, rc=3):
    r = calls("-F", "made.conf", *args, "./t", "lines", "0", rc=rc)
    return {m for m in re.findall(r"^(\w+)\(", r.err, re.M)}


check(functions("-e", "mal*+free") == {"malloc", "free"}, "-e of two")
check(functions("-l", "libmade.so", "-e", "-made_[l-s]*") == {"made_fill"}, "-l, -e without")
check(functions("-e", "memset@libmade*") == {"memset"}, "-e of a library's calls")
check(functions("-e", "/mal.*|fre+/") == {"malloc", "free"} and functions("-e", "/m.*/@MAIN-/made.*/") == {"malloc", "mempcpy"}, "-e of expressions")
check(functions("-e", "/m.*@t/-made*") == functions("-e", "m*@^t$-^made*") == functions("-e", "m*@%s/t-made*" % TMP) == {"malloc", "mempcpy"}, "-e of a caller's expression, name, path")
everything = functions("-e", "@")
check(everything >= {"malloc", "memset", "puts"} and functions("-e", "-malloc") == functions("-e", "!malloc") == everything - {"malloc"}, "all but one", everything)
check(functions("-e", "@", "-l", "/libmade.*/") == functions("-e", "@", "-l", TMP + "/libmade.so") == functions("-e", "@", "-l", "libmade*"), "-l of an expression, of a path")
check(functions("-x", "/made_[f-p].*/@/libmade.*/") == {"made_pair", "made_fill", "made_nest", "made_leave"}, "-x of expressions")
check(functions("-x", "made_*@libmade*-made_sum") == {"made_pair", "made_fill", "made_nest", "made_leave"}, "-x of a pattern")
calls("-e", "/mallo/", "./t", "lines", "0", rc=1)  # an expression matches whole names
r = calls("-e", "no_such_function", "./t", "lines", "0", rc=1)
check("the filters match no function that is called" in r.err and plain.stdout not in r.out, "nothing to trace", r)
for wrong in (["-e", ""], ["-l", "/(/"], ["-s", "0"], ["-e", "a@b+"], ["-e", "/(/"], ["-e", "/a"], ["-w", "0"], ["--min-time", "x"], ["-F", "t.c"], ["-F", "nonexistent"]):
    r = finish(start("calls", *wrong, "./t", "lines", "0"))
    check(r.rc == (1 if "nonexistent" in wrong else 2) and r.err.startswith("descry calls: "), "wrong", wrong, r)
r = calls("/nonexistent", rc=1)
check("/nonexistent" in r.err, "no program", r)

# D in the names of functions and libraries is not run: the traced process chooses those
INJECTED = b'puts:entry{}BEGIN{printf("in%s","jected");}plt$target:a.out:puts'
ATTACK = """
#include <stdio.h>
extern int %s(int);
int main(int argc, char **argv) { if (argc > 5) %s(1); puts("called"); return 0; }
"""
stand_in = "P" * len(INJECTED)
with open("attack.c", "w") as f:
    f.write(ATTACK % (stand_in, stand_in))
with open("chosen.c", "w") as f:
    f.write("int %s(int a) { return a; }" % stand_in)
check(sh("cc -fPIC -shared -o libchosen.so chosen.c && cc -O1 -o attack attack.c -L. -lchosen -Wl,-z,lazy -Wl,-rpath,%s" % TMP).returncode == 0,
      "an attack built")
for name in ("attack", "libchosen.so"):
    with open(name, "rb") as f:
        code = f.read()
    check(stand_in.encode() in code, name, "has the name")
    with open(name, "wb") as f:
        f.write(code.replace(stand_in.encode(), INJECTED))
os.environ["LD_BIND_NOW"] = ""  # the hash of the name is wrong now: it must never be looked up
for filters in ([], ["-e", "*"], ["-x", "*@libchosen*", "-e", "puts"]):
    r = calls(*filters, "./attack")
    check("injected" not in r.err + r.out and 'puts("called"' in r.err, "D in a name", r)
    check("whose names D cannot hold, the first: 'puts:entry{}" in r.err, "names left out are reported", r)
del os.environ["LD_BIND_NOW"]

# the D program runs by itself
r = calls("-F", "made.conf", "--show-d", "-e", "made_sum", "./t", "lines", "0")
check(r.out and plain.stdout not in r.out, "only printed", r)
with open("shown.d", "w") as f:
    f.write(r.out)
r = descry("-q", "-s", "shown.d", c="./t lines 0")
check(len(re.findall(r"\bmade_sum\(", r.out)) == 2 and len(re.findall(r"\bmade_sum = ", r.out)) == 2, "the D alone", r)

# libraries loaded later
PYTHON = "/usr/bin/python3"
with open("sql.py", "w") as f:
    f.write("import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table t(a int)')\n"
            "for i in range(5): c.execute('insert into t values (?)', (i,))\nc.execute('select ?', ('bound',))\nprint(c.execute('select sum(a) from t').fetchall())\n")
if subprocess.run([PYTHON, "sql.py"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
    print("note: no Python with SQLite, whose library is loaded later")
else:
    r = calls("-s", "60", "-ttT", "-x", "sqlite3_step", "-x", "sqlite3_prepare_v2", PYTHON, "sql.py")
    check(r.out == "[(10,)]\n", "the script's own output", r)
    check(re.search(r'^\d\d:\d\d:\d\d\.\d{6} sqlite3_prepare_v2\(0x\w+, "select sum\(a\) from t", \d+, 0x\w+, 0x\w+\) = SQLITE_OK <0\.\d{6}>$',
                    r.err, re.M), "the SQL text", r)
    for engine in engines: # sqlite3_bind_text() jumps to a function that has no name
        r = calls("-X", "engine=" + engine, "-x", "sqlite3_bind_text", PYTHON, "sql.py")
        check(re.search(r'^sqlite3_bind_text\(0x\w+, 1, "bound", 5, 0x\w+\) = SQLITE_OK$', r.err, re.M), engine, "a bound text", r)
    r = calls("-T", "-x", "sqlite3_step", PYTHON, "sql.py")
    check(len(re.findall(r"sqlite3_step\(0x\w+\) += SQLITE_(ROW|DONE) <0\.\d{6}>$", r.err, re.M)) >= 8, "steps", r)
done()
