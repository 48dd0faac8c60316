#!/usr/bin/env python3
# descry malloc record: a process of the command that has given up its rights learns nothing of a set-user-ID program that another one executes,
# and makes root remove nothing. It does so through the memory that it shares with the tracer.
# serial
import stat

from live import *

if os.geteuid() or not shutil.which("cc"):
    skip("needs root and cc")
SRC = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chmod(TMP, 0o755)
os.chdir(TMP)


def build(name, text):
    subprocess.run(["cc", "-x", "c", "-w", "-I", SRC, "-o", name, "-"], input=text.encode(), check=True)


COMMON = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "wire/alloc.h"
static struct wire_alloc *m;
static struct wire_alloc_lobby *lobby;
static void find(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	free(malloc(100));
	while (fgets(line, sizeof(line), f)) {
		unsigned long at = strtoul(line, NULL, 16);

		if (strstr(line, "/memfd:descry-malloc ("))
			m = (void *)at;
		if (strstr(line, "/memfd:descry-malloc-lobby"))
			lobby = (void *)at;
	}
	fclose(f);
}
static void give_up(void)
{
	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		_exit(9);
}
"""

# The child keeps the memory of a process that executes ./privileged, and requests the tables of that process.
build("asks", COMMON + r"""
static pid_t other;
static int spy(void *arg)
{
	char path[64], name[32] = "";
	int fd, n;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)other);
	while (strncmp(name, "privileged", 10)) {
		fd = open(path, O_RDONLY);
		n = read(fd, name, sizeof(name) - 1);
		close(fd);
		sched_yield();
	}
	unsigned asked = __atomic_add_fetch(&m->asked, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&lobby->bell, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &lobby->bell, FUTEX_WAKE, 1, 0, 0, 0);
	while (__atomic_load_n(&m->served, __ATOMIC_SEQ_CST) != asked)
		sched_yield();
	dprintf(1, "uid %d: %d mappings\n", (int)getuid(), (int)m->nmappings);
	_exit(0);
}
int main(void)
{
	static char stack[1 << 18];
	char *args[] = { "./privileged", NULL }, *env[] = { NULL };
	int in[2];

	if (fork()) {
		wait(NULL);
		return 0;
	}
	give_up();
	find();
	other = getpid();
	pipe(in);
	if (clone(spy, stack + sizeof(stack) - 64, CLONE_VM | SIGCHLD, NULL) < 0)
		_exit(8);
	dup2(in[0], 0);
	close(in[1]);
	syscall(SYS_execve, args[0], args, env);
	_exit(7);
}
""")
# It waits for its child, which is the spy.
build("privileged", "#include <sys/wait.h>\nint main(void) { wait(0); return 0; }\n")
os.chmod("privileged", 0o4755)
p = subprocess.run([DESCRY, "malloc", "record", "-k", "16", "-o", os.path.join(TMP, "a.dma"), "./asks"], capture_output=True, text=True)
check(p.stdout == "uid 65534: 0 mappings\n", "the addresses of a set-user-ID program", p)

# The last process clears what says that it began.
build("clears", COMMON + r"""
int main(void)
{
	if (!fork()) {
		give_up();
		find();
		m->hello = 0;
		puts("cleared");
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
""")
for made, make in ("a device", lambda: os.mknod("out", 0o666 | stat.S_IFCHR, os.makedev(1, 3))), ("a link", lambda: os.symlink("/dev/null", "out")):
    try:
        make()
    except PermissionError:
        print("note: cannot make", made)
        continue
    p = subprocess.run([DESCRY, "malloc", "record", "-o", os.path.join(TMP, "out"), "./clears"], capture_output=True, text=True)
    check(p.stdout == "cleared\n" and os.path.lexists("out") and stat.S_ISCHR(os.stat("out").st_mode), made + " stays", p)
    os.unlink("out")
done()
