#!/usr/bin/env python3
# The tracer of descry malloc record has ended, and a stranger has got its process number. Under the descriptor number of the library he has a
# file of the library's inode number: programs that a process of the command executes then do not load it. Nor does any of them look at the file
# again when a process of the command that has given up its rights writes whatever it can into the memory that all of them share.
# serial
import ctypes

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
    """A copy of EVIL in MOUNT whose inode is number modulo 2^32. A machine that has made many files in memory has large numbers: any then."""
    path = os.path.join(MOUNT, "library")
    for i in range(1 << 17):
        with open(path, "wb") as f:
            inode = os.fstat(f.fileno()).st_ino
            if inode % 2**32 == number % 2**32 or i + 1 == 1 << 17 or not 0 <= number % 2**32 - inode < 1 << 17:
                f.write(open(EVIL, "rb").read())
                return path
        os.unlink(path)


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


# Its child is another user's, and writes 1 into each word of each page that descry shares with the command, in each way that there is.
WORKER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static char *pages[8];
static int n, writable[8];
static void find(void)
{
	char line[512], access[8];
	unsigned long a, b;
	FILE *f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "memfd:descry-malloc-l") && sscanf(line, "%lx-%lx %7s", &a, &b, access) == 3 && access[3] == 's' && n < 8) {
			writable[n] = access[1] == 'w';
			pages[n++] = (char *)a;
		}
	fclose(f);
}
static void spoil(void)
{
	unsigned words[16];
	int mem = open("/proc/self/mem", O_RDWR);
	for (int i = 0; i < 16; i++)
		words[i] = 1;
	for (int i = 0; i < n; i++) {
		if (writable[i] || !mprotect(pages[i], 4096, PROT_READ | PROT_WRITE)) {
			memcpy(pages[i], words, sizeof(words));
			continue;
		}
		if (pwrite(mem, words, sizeof(words), (off_t)pages[i]) > 0)
			puts("written by /proc/self/mem");
		madvise(pages[i], 4096, MADV_REMOVE);
	}
	close(mem);
}
int main(int argc, char **argv)
{
	char *args[] = { "/bin/true", NULL }, *env[] = { NULL }, line[8];
	void *volatile p = malloc(1);
	signal(SIGTERM, SIG_IGN);
	free(p);
	find();
	pid_t child = fork();
	if (!child) {
		if (setgid(65534) || setuid(65534)) _exit(1);
		printf("ready, %d pages\n", n);
		fflush(stdout);
		for (;;) { spoil(); usleep(1000); }
	}
	fgets(line, sizeof(line), stdin);
	for (int i = 0; i < 10; i++) {
		if (!fork()) { execve(args[0], args, env); _exit(1); }
		wait(NULL);
		usleep(10000);
	}
	kill(child, SIGKILL);
	puts("end");
}
"""
COMMAND = os.path.join(TMP, "command")
subprocess.run(["cc", "-x", "c", "-w", "-o", COMMAND, "-"], input=WORKER.encode(), check=True)
libc = ctypes.CDLL(None, use_errno=True)
IN_OPEN, IN_NONBLOCK = 0x20, 0o4000


def was_opened(watch):
    try:
        return bool(os.read(watch, 4096))
    except BlockingIOError:
        return False


SHELL = ["sh", "-c", "trap '' TERM; echo ready; read x; /bin/true; echo end"]
for ended, command in (signal.SIGKILL, SHELL), (signal.SIGINT, SHELL), (signal.SIGKILL, [COMMAND]), (signal.SIGINT, [COMMAND]):
    d = subprocess.Popen([DESCRY, "malloc", "record", "-o", os.path.join(TMP, "a.dma"), *command],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    running.append(d)
    first = d.stdout.readline()
    check(first.startswith("ready"), "begins", first)
    fds = "/proc/%d/fd" % d.pid
    fd = next(int(f) for f in os.listdir(fds) if "descry-malloc-library" in os.readlink(os.path.join(fds, f)))
    path = file_of_inode(os.stat(os.path.join(fds, str(fd))).st_ino)
    d.send_signal(ended)
    d.wait()
    stranger = stranger_with(d.pid, fd, path)
    watch = libc.inotify_init1(IN_NONBLOCK)
    check(libc.inotify_add_watch(watch, path.encode(), IN_OPEN) >= 0, "the file is watched")
    d.stdin.write("x\n")
    d.stdin.flush()
    last = d.stdout.readline()
    check(last == "end\n", "the command goes on", last)
    check(not was_opened(watch), "the stranger's file was opened", ended, command)
    os.close(watch)
    check(not os.path.exists(MARK), "the stranger's library was loaded", ended)
    os.kill(stranger, signal.SIGKILL)
    os.waitpid(stranger, 0)
    os.unlink(path)

# A program that does not load the library would keep the variables for as long as it lives, and hand them to its children.
STARTS, STATIC = os.path.join(TMP, "starts"), os.path.join(TMP, "static")
with open(SOURCE, "w") as f:
    f.write("""#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
    char *args[] = { argc > 1 ? argv[1] : NULL, NULL };
    const char *dir = argc > 2 ? argv[2] : "";
    int n = 0;
    pid_t p;

    free(malloc(10));
    for (char **e = environ; *e && argc == 1; e++)
        n += !strncmp(*e, "LD_PRELOAD=", 11) || !strncmp(*e, "DESCRY_MALLOC=", 14);
    if (argc == 1) {
        printf("has %d\\n", n);
        return 0;
    }
    if (!posix_spawn(&p, args[0], 0, 0, args, environ)) waitpid(p, 0, 0);
    if (!posix_spawnp(&p, args[0], 0, 0, args, environ)) waitpid(p, 0, 0);
    setenv("PATH", dir, 1);
    if (!posix_spawnp(&p, strrchr(args[0], '/') + 1, 0, 0, args, environ)) waitpid(p, 0, 0);
    system(args[0]);
    if (!fork()) { execv(args[0], args); _exit(1); }
    wait(0);
    return 0;
}
""")
subprocess.run(["cc", "-o", STARTS, SOURCE], check=True)
subprocess.run(["cc", "-static", "-o", STATIC, SOURCE], check=True)
p = subprocess.run([DESCRY, "malloc", "record", "-o", os.path.join(TMP, "b.dma"), STARTS, STATIC, TMP], stdin=subprocess.DEVNULL, capture_output=True, text=True)
check(p.stdout == 5 * "has 0\n", "the environments of static programs", p)
check("5 forked children or executed programs are not recorded: they are static" in p.stderr, "that is said", p)
p = subprocess.run([DESCRY, "malloc", "record", "-o", os.path.join(TMP, "c.dma"), STARTS, STARTS, TMP], stdin=subprocess.DEVNULL, capture_output=True, text=True)
check(p.stdout == 5 * "has 0\n" and p.stderr.count("calls of " + STARTS) == 5 and "not recorded" not in p.stderr, "others are recorded", p)
done()
