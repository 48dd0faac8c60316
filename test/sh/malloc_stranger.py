#!/usr/bin/env python3
# The tracer of descry malloc record has ended, and a stranger has got its process number. Under the descriptor number of the library he has a
# file of the library's inode number: programs that a process of the command executes then do not load it.
# serial
from live import *

LAST_PID = "/proc/sys/kernel/ns_last_pid"
MOUNT, MARK, SOURCE, EVIL = (os.path.join(TMP, name) for name in ("mount", "mark", "evil.c", "evil.so"))
os.mkdir(MOUNT)
if not shutil.which("cc") or not os.access(LAST_PID, os.W_OK):
    skip("needs cc, and to write " + LAST_PID)
if subprocess.run(["mount", "-t", "tmpfs", "none", MOUNT], capture_output=True).returncode:
    skip("mount(8) of a tmpfs is not permitted")
running = []


@atexit.register
def end_all():
    for p in running:
        p.kill()
        p.wait()
    subprocess.run(["umount", "-l", MOUNT])


def cannot(why):
    end_all()
    skip(why)


with open(SOURCE, "w") as f:
    f.write("#include <fcntl.h>\n#include <unistd.h>\n"
            "__attribute__((constructor)) static void begin(void) { close(open(\"%s\", O_CREAT | O_WRONLY, 0600)); }\n" % MARK)
subprocess.run(["cc", "-shared", "-fPIC", "-o", EVIL, SOURCE], check=True)


def file_of_inode(number):
    """A copy of EVIL in MOUNT whose inode is number modulo 2^32."""
    path = os.path.join(MOUNT, "library")
    for _ in range(1 << 20):
        with open(path, "wb") as f:
            if os.fstat(f.fileno()).st_ino % 2**32 == number % 2**32:
                f.write(open(EVIL, "rb").read())
                return path
        os.unlink(path)
    cannot("the numbers of inodes here are not small")


def stranger_with(pid, fd, path):
    """A process of this number that has the file open under this descriptor."""
    for _ in range(1000):
        with open(LAST_PID, "w") as f:
            f.write(str(pid - 1))
        child = os.fork()
        if not child:
            if os.getpid() == pid:
                os.dup2(os.open(path, os.O_RDONLY), fd)
                signal.pause()
            os._exit(0)
        if child == pid:
            while not os.path.exists("/proc/%d/fd/%d" % (pid, fd)) or not os.path.samefile("/proc/%d/fd/%d" % (pid, fd), path):
                time.sleep(0.01)
            return child
        os.waitpid(child, 0)
    cannot("the tracer's process number is taken")


for ended in signal.SIGKILL, signal.SIGINT:
    d = subprocess.Popen([DESCRY, "malloc", "record", "-o", os.path.join(TMP, "a.dma"), "sh", "-c", "trap '' TERM; echo ready; read x; /bin/true; echo end"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    running.append(d)
    check(d.stdout.readline() == "ready\n", "begins")
    fds = "/proc/%d/fd" % d.pid
    fd = next(int(f) for f in os.listdir(fds) if "descry-malloc-library" in os.readlink(os.path.join(fds, f)))
    path = file_of_inode(os.stat(os.path.join(fds, str(fd))).st_ino)
    d.send_signal(ended)
    d.wait()
    stranger = stranger_with(d.pid, fd, path)
    d.stdin.write("x\n")
    d.stdin.flush()
    check(d.stdout.readline() == "end\n", "the command goes on")
    check(not os.path.exists(MARK), "the stranger's library was loaded", ended)
    os.kill(stranger, signal.SIGKILL)
    os.waitpid(stranger, 0)
    os.unlink(path)
done()
