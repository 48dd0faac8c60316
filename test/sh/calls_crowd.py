#!/usr/bin/env python3
# descry calls of a library whose functions all end with a jump into one with thousands of returns: how many have no results is said, and the search
# for their returns has an end.
import re

from live import *

FUNCTIONS, RETURNS = 1500, 4000
if not shutil.which("cc"):
    skip("needs cc")
os.chdir(TMP)
with open("crowd.s", "w") as f:
    f.write(".text\n.type big,@function\nbig:\n" + "test $1,%edi\njne 1f\nret\n1:\n" * RETURNS + "ret\n.size big,.-big\n")
    for i in range(FUNCTIONS):
        f.write(".globl f%d\n.type f%d,@function\nf%d: test %%edi,%%edi\njmp big\n.size f%d,.-f%d\n" % (i, i, i, i, i))
    f.write('.section .note.GNU-stack,"",@progbits\n')
with open("main.s", "w") as f:
    f.write(".text\n.globl main\n.type main,@function\nmain:\nsub $8,%rsp\n1: mov $1000,%edi\ncall sleep@plt\njmp 1b\n")
    f.write("".join("call f%d@plt\n" % i for i in range(FUNCTIONS)) + '.size main,.-main\n.section .note.GNU-stack,"",@progbits\n')
subprocess.run(["cc", "-shared", "-o", "libcrowd.so", "crowd.s"], check=True)
subprocess.run(["cc", "-o", "crowd", "main.s", "-L.", "-lcrowd", "-Wl,-rpath," + TMP], check=True)
target = subprocess.Popen(["./crowd"])
d = subprocess.Popen([DESCRY, "calls", "-c", "-p", str(target.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
first = d.stderr.readline()
d.send_signal(signal.SIGINT)
out, rest = d.communicate()
target.kill()
target.wait()
n = re.match("descry calls: ([0-9]+) functions have no results and no times: their returns are too many together", first)
check(n and FUNCTIONS - 20 < int(n.group(1)) < FUNCTIONS, "said", first, rest[-500:])
check(d.returncode in (0, -signal.SIGINT), "ends at ^C", d.returncode)
done()
