#!/usr/bin/env python3
# descry calls of a library whose functions all end with a jump into one with thousands of returns: how many have no results is said, and the search
# for their returns has an end.
import re
import struct

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

# A million words of a library have one name of ten megabytes. They stand in tables for which the dynamic linker does not look.
WORDS, NAME = 1000000, 10000000
with open("long.s", "w") as f:
    f.write('.text\n.globl long_f\n.type long_f,@function\nlong_f: jmp getppid@PLT\n.size long_f,.-long_f\n.section .note.GNU-stack,"",@progbits\n')
with open("use.c", "w") as f:
    f.write("#include <unistd.h>\nint long_f(void);\nint main(void) { for (;;) { long_f(); usleep(1000); } }\n")
subprocess.run(["cc", "-shared", "-o", "liblong.so", "long.s"], check=True)
subprocess.run(["cc", "-w", "-o", "use", "use.c", "-L.", "-llong", "-Wl,-rpath," + TMP], check=True)
b = bytearray(open("liblong.so", "rb").read())
at, = struct.unpack_from("<Q", b, 40)
_, count, named = struct.unpack_from("<HHH", b, 58)
heads = [list(struct.unpack_from("<IIQQQQIIQQ", b, at + i * 64)) for i in range(count)]
by_name = {bytes(b[heads[named][4] + h[0]:b.index(0, heads[named][4] + h[0])]): h for h in heads}


def grow(section, more):
    h = by_name[section]
    data = bytes(b[h[4]:h[4] + h[5]]) + more
    b.extend(bytes(-len(b) % 16))
    size, h[4], h[5] = h[5], len(b), len(data)
    b.extend(data)
    return size


name = grow(b".dynstr", b"A" * NAME + b"\0")
symbol = grow(b".dynsym", struct.pack("<IBBHQQ", name, 0x12, 0, 0, 0, 0)) // 24
grow(b".rela.plt", b"".join(struct.pack("<QQq", 0x100000 + 8 * i, symbol << 32 | 7, 0) for i in range(WORDS)))
b.extend(bytes(-len(b) % 16))
struct.pack_into("<Q", b, 40, len(b))
for h in heads:
    b.extend(struct.pack("<IIQQQQIIQQ", *h))
with open("new", "wb") as f:
    f.write(b)
os.rename("new", "liblong.so")
target = subprocess.Popen(["./use"])
d = subprocess.Popen([DESCRY, "calls", "-p", str(target.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
lines = [d.stderr.readline() for _ in range(4)]
d.send_signal(signal.SIGINT)
d.communicate()
target.kill()
target.wait()
check(any("long_f(" in line for line in lines), "calls of a library with long names", lines)
done()
