#!/usr/bin/env python3
# descry stack of a forged core: its threads share a stack of a million frames, which are printed once, not for each of them.
import atexit
import os
import shutil
import struct
import subprocess
import tempfile

from checks import *

DESCRY = os.environ["DESCRY"]
TMP = tempfile.mkdtemp(prefix="descry-endless-")
atexit.register(shutil.rmtree, TMP, True)
STACK, CODE = 0x7f0000000000, 0x500000000000
FRAMES = 1 << 20  # as many as descry walks of all threads
LEAST = 64        # of a thread, whatever the others have
THREADS = 5
NT_PRSTATUS, NT_PRPSINFO, PT_LOAD, PT_NOTE = 1, 3, 1, 4


def note(kind, data):
    return struct.pack("<III", 5, len(data), kind) + b"CORE\0\0\0\0" + data + b"\0" * (-len(data) % 4)


def thread(tid):
    regs = [0] * 27
    regs[4], regs[16], regs[19] = STACK, CODE, STACK  # rbp, rip, rsp
    status = bytearray(336)
    struct.pack_into("<I", status, 32, tid)
    struct.pack_into("<27Q", status, 112, *regs)
    return note(NT_PRSTATUS, bytes(status))


def segment(kind, flags, offset, address, size, memory):
    return struct.pack("<IIQQQQQQ", kind, flags, offset, address, 0, size, memory, 1)


process = bytearray(136)
struct.pack_into("<I", process, 24, 1000)
notes = b"".join(thread(1000 + i) for i in range(THREADS)) + note(NT_PRPSINFO, bytes(process))
# saved frame pointers: each leads 16 bytes further
memory = b"".join(struct.pack("<QQ", STACK + 16 * (i + 1), CODE + 16) for i in range(FRAMES))
front = 64 + 3 * 56
offset = (front + len(notes) + 4095) // 4096 * 4096
header = b"\x7fELF\x02\x01\x01" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 3, 0, 0, 0)
header += segment(PT_NOTE, 0, front, 0, len(notes), len(notes))
header += segment(PT_LOAD, 5, 0, CODE, 0, 0x10000)
header += segment(PT_LOAD, 6, offset, STACK, len(memory), len(memory))
core = os.path.join(TMP, "core")
with open(core, "wb") as f:
    f.write((header + notes).ljust(offset, b"\0") + memory)

p = subprocess.run([DESCRY, "stack", core], stdin=subprocess.DEVNULL, capture_output=True, text=True)
check(p.returncode == 0, "exit", p.returncode, p.stderr)
check("its threads have more than %d frames together" % FRAMES in p.stderr, "the limit is told", p.stderr)
threads = p.stdout.split("\n  thread ")[1:]
check(len(threads) == THREADS, "all threads are printed", len(threads))
counts = [t.count("\n              0x") for t in threads]
check(counts[0] == FRAMES, "the first has its frames", counts)
check(all(LEAST - 1 <= n <= LEAST + 1 for n in counts[1:]), "the others have the least number", counts)
done()
