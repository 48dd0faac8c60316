#!/usr/bin/env python3
# `descry calls` of a library whose many functions all have a parameter of a large type takes memory for the type once.
import atexit
import os
import resource
import shutil
import subprocess
import sys
import tempfile

from checks import *

NAMES, FUNCTIONS, MOST = 20000, 1200, 3 << 30
if not shutil.which("cc"):
    skip("no C compiler here")
TMP = tempfile.mkdtemp(prefix="descry-types-")
atexit.register(shutil.rmtree, TMP, True)
source, library = os.path.join(TMP, "large.c"), os.path.join(TMP, "liblarge.so")
with open(source, "w") as f:
    f.write("enum large { %s };\n" % ",".join("L%d" % i for i in range(NAMES)))
    for i in range(FUNCTIONS):
        f.write("int large%d(%s) { return a0; }\n" % (i, ", ".join("enum large a%d" % k for k in range(6))))
check(subprocess.run(["cc", "-g", "-O1", "-fPIC", "-shared", "-o", library, source]).returncode == 0, "the library is not built")
command = [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print('ready', flush=True); sys.stdin.read()", library]
p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
check(p.stdout.readline() == b"ready\n", "the process does not begin")
r = subprocess.run([os.environ["DESCRY"], "calls", "--show-d", "-x", "large*@liblarge.so", "-p", str(p.pid)], stdin=subprocess.DEVNULL,
                   capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST)))
p.stdin.close()
p.wait()
check(r.returncode == 0, "it ends with", r.returncode, r.stderr[:500])
check("large0(" in r.stdout and "large%d(" % (FUNCTIONS - 1) in r.stdout, "the functions are not there", r.stdout[:500], r.stderr[:500])
done()
