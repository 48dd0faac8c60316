#!/usr/bin/env python3
# `descry calls` of a program that may call many thousand functions: it traces 4,000 of them, says how many it leaves
# out, and takes a limited amount of memory.
import os
import shutil
import subprocess
import tempfile

from checks import *

MOST, MORE, MEMORY = 4000, 500, 500 << 20
if not shutil.which("cc"):
    skip("no C compiler here")
with tempfile.TemporaryDirectory(prefix="descry-many-") as tmp:
    lines = ["extern int pause(void);\n"]
    with open(tmp + "/library.c", "w") as f:
        f.writelines("void many%d(void) { }\n" % i for i in range(MOST + MORE))
    lines += ["extern void many%d(void);\n" % i for i in range(MOST + MORE)]
    lines += ["int main(int argc, char **argv) { if (argc == 1) { pause(); return 0; }\n"]
    lines += ["many%d();\n" % i for i in range(MOST + MORE)]
    with open(tmp + "/main.c", "w") as f:
        f.writelines(lines + ["return 0; }\n"])
    subprocess.run(["cc", "-O0", "-fPIC", "-shared", "-o", tmp + "/libmany.so", tmp + "/library.c"], check=True)
    subprocess.run(["cc", "-O0", "-o", tmp + "/main", tmp + "/main.c", "-L" + tmp, "-lmany", "-Wl,-rpath," + tmp], check=True)
    p = subprocess.Popen([os.environ["DESCRY"], "calls", "-c", "-e", "many*", tmp + "/main", "call"], stdin=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True)
    text = p.stderr.read()
    status, usage = os.wait4(p.pid, 0)[1:]
    p.returncode = os.waitstatus_to_exitcode(status)
    check(p.returncode == 0, "it ends with", p.returncode, text[-500:])
    check("left out %d functions: there are more than %d" % (MORE, MOST) in text, "it is said", text[:500])
    check(sum(" many" in line for line in text.splitlines()) == MOST, "the others are counted", text[:500], text[-500:])
    check(usage.ru_maxrss << 10 < MEMORY, "memory", usage.ru_maxrss)
done()
