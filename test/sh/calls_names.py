#!/usr/bin/env python3
# Names that a traced process of another user chooses do not become D of root's `descry calls`: the names of a library that it maps, and
# of a function there, hold a clause with system().
# serial
from live import *

UID, SECS = 60001, 60
if os.geteuid() != 0 or not shutil.which("setpriv"):
    skip("not root: cannot run a process as another user")
if not shutil.which("cc"):
    skip("no C compiler here")
os.chmod(TMP, 0o755)
os.chdir(TMP)
DONE = os.path.join(TMP, "done")
CLAUSE = '#pragma D option destructive\nBEGIN{system("echo >done");}\n'
SOURCE = """
#include <stdio.h>
int %s(int a) { return a + 1; }
int made_%s(int a) { return a + 1; }
int made_caller(int a) { putc('.', stderr); return made_%s(a); }
"""
PYTHON = """
import ctypes, select, sys
libs = [ctypes.CDLL(path) for path in sys.argv[1:]]
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0.01)[0]:
    for lib in libs:
        lib.made_caller(1)
"""


def library(file, symbol, called):
    """A library of this name with a function of that name."""
    stand_in = "p" + "q" * (len(symbol) - 1)
    with open("l.c", "w") as f:
        f.write(SOURCE % (stand_in, called, called))
    check(sh("cc -O1 -fno-inline -fPIC -shared -Wl,-z,lazy -o made.so l.c").returncode == 0, "the library is not built")
    with open("made.so", "rb") as f:
        data = f.read()
    check(stand_in.encode() in data, "the library has no such function")
    with open(file, "wb") as f:
        f.write(data.replace(stand_in.encode(), symbol.encode()))
    os.chmod(file, 0o755)
    return os.path.join(TMP, file)


PLAIN = library("libplain.so", "made_nothing", "plain")


def calls(path, *options):
    """What `descry calls` of a process that has mapped both libraries prints, up to the first call of made_plain()."""
    p = subprocess.Popen(["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups", "--", sys.executable, "-c", PYTHON, path, PLAIN],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    check(p.stdout.readline() == b"ready\n", "the process does not begin")
    t = subprocess.Popen([DESCRY, "calls", *options, "-p", str(p.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = ""
    for line in t.stdout:
        text += line.decode(errors="replace")
        if re.search(rb"made_plain[@(]", line):
            break
    p.stdin.close()
    text += t.communicate(timeout=SECS)[0].decode(errors="replace")
    p.wait(SECS)
    check(not os.path.exists(DONE), "root runs D that the process has chosen", options, text[:2000])
    check(re.search(r"made_plain[@(]", text), "the other functions are not traced", options, text[:2000])
    check("left out" in text, "what is left out is not said", options, text[:2000])


calls(library("x::entry{}\n" + CLAUSE + "plt$target:a.out", "made_nothing", "other"), "-e", "*@*")
calls(library("x::entry{}\n" + CLAUSE + "pid$target:a.out", "made_nothing", "other"), "-x", "made_*")
calls(library("libother.so", "a.out::entry{}\n" + CLAUSE + "pid$target:a.out:q", "other"), "-x", "*@libother.so", "-x", "made_*")
done()
