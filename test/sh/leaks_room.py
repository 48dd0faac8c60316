#!/usr/bin/env python3
# A process that maps one memory file many times seems to have more memory than there is: a copy of it takes at most half of what is available,
# because the tables that are made from it take room, too.
import ctypes
import mmap

from live import *

SIZE = 64 << 20
available = int(re.search(r"MemAvailable: +(\d+)", open("/proc/meminfo").read()).group(1)) << 10
if available < 1 << 30:
    skip("needs 1 GB of memory")


def owner(share):
    """A process with mappings of that share of the available memory."""
    r, w = os.pipe()
    pid = os.fork()
    if pid:
        os.close(w)
        check(os.read(r, 1) == b"x", "begins")
        os.close(r)
        return pid
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    fd = os.memfd_create("many")
    os.truncate(fd, SIZE)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc(100)
    for _ in range(int(available * share) // SIZE):
        if libc.mmap(None, ctypes.c_size_t(SIZE), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | 0x8000, fd, ctypes.c_long(0)) in (None, 2**64 - 1):
            os._exit(1)
    os.write(w, b"x")
    while True:
        signal.pause()


pid = owner(0.75)
try:
    p = finish(start("leaks", "-p", str(pid)))
    check(p.rc == 1 and re.search(r"a copy of its memory takes \d+ MB, which is more than half of the \d+ MB", p.err), "three quarters", p)
finally:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

# addresses are no memory: a program may reserve a terabyte, as AddressSanitizer does, and write a page in each 32 GB of it
child = subprocess.Popen([sys.executable, "-c", """
import ctypes, mmap, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
base = libc.mmap(None, ctypes.c_size_t(1 << 40), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, -1, ctypes.c_long(0))
for i in range(32):
    ctypes.memset(base + (i << 35), 1, 1)
print("ready", flush=True)
sys.stdin.read()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
kill_at_end(child)
check(child.stdout.readline() == b"ready\n", "a terabyte is reserved")
for command in [["leaks"], ["heap"]] + ([["leaks", "--fork"]] if not os.geteuid() else []):
    p = finish(start(*command, "-p", str(child.pid)))
    check(p.rc == 0 and "no room" not in p.err, "a terabyte of addresses", command, p)
child.kill()
child.wait()
done()
