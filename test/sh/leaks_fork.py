#!/usr/bin/env python3
# The copy of a process by clone(2) (`descry leaks --fork`): what the copy lacks is read in the process itself, the process notices nothing, and it
# is not copied where that is a risk.
import atexit
import json
import os
import shutil
import signal
import subprocess
import tempfile

from checks import *

DESCRY = os.environ["DESCRY"]
TMP = tempfile.mkdtemp(prefix="descry-fork-")
atexit.register(shutil.rmtree, TMP, True)
SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int signals, interrupted;
static void on_signal(int sig) { (void)sig; signals++; }

static void hold(int flags, int fd, int advice)
{
	void **p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (advice)
		madvise(p, 4096, advice);
	p[1] = memset(malloc(200), 0, 200);
}

static __attribute__((noinline)) void lose(void)
{
	void *volatile p = memset(malloc(100), 0, 100);
	printf("%p\n", p);
	p = NULL;
}

static __attribute__((noinline)) void wipe(void) { volatile char w[65536]; for (int i = 0; i < 65536; i++) w[i] = 0; }

static void *sleeper(void *arg)
{
	for (;;)
		if (usleep(100000) < 0)
			interrupted++;
	return arg;
}

/* Says whether a child sees a lock of this process. */
static int show_lock(void)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	char c;

	if (fork() == 0) {
		printf("lock %s\n", fcntl(9, F_GETLK, &l) == 0 && l.l_type != F_UNLCK ? "held" : "lost");
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

/* Has much memory and a lock, and executes itself. */
static int lock_and_execute(const char *self)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	char c;

	for (int i = 0; i < 2000; i++)
		memset(malloc(100000), 1, 100000);
	if (dup2(memfd_create("lock", 0), 9) != 9 || fcntl(9, F_SETLK, &l))
		return 6;
	printf("ready\n");
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return 7;
	execl(self, self, "locked", NULL);
	return 8;
}

int main(int argc, char **argv)
{
	pthread_t t;
	sigset_t set;
	char c;
	ssize_t n;
	int fd;

	if (argc > 1 && !strcmp(argv[1], "locked"))
		return show_lock();
	if (argc > 1 && !strcmp(argv[1], "lock"))
		return lock_and_execute(argv[0]);
	for (int i = 1; i < 32; i++)
		signal(i, on_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_create(&t, NULL, sleeper, NULL);
	fd = memfd_create("shared", 0);
	if (ftruncate(fd, 8192))
		return 3;
	hold(MAP_PRIVATE | MAP_ANONYMOUS, -1, MADV_DONTFORK);
	hold(MAP_PRIVATE | MAP_ANONYMOUS, -1, MADV_WIPEONFORK);
	hold(MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	hold(MAP_SHARED, fd, 0);
	hold(MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	lose();
	wipe();
	if (argc > 1 && !strcmp(argv[1], "direct") && open(argv[0], O_RDONLY | O_DIRECT) < 0)
		return 4;
	if (argc > 1 && !strcmp(argv[1], "filter")) {
		struct sock_filter f = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		struct sock_fprog p = { 1, &f };
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
			return 5;
	}
	printf("ready\n");
	fflush(stdout);
	while ((n = read(0, &c, 1)) > 0 || (n < 0 && errno == EINTR && ++interrupted))
		;
	errno = 0;
	n = waitpid(-1, NULL, 0);
	printf("signals %d interrupted %d wait %d %d", signals, interrupted, (int)n, errno == ECHILD);
	errno = 0;
	n = waitpid(-1, NULL, __WALL);
	printf(" %d %d\n", (int)n, errno == ECHILD);
	return 0;
}
"""


def start(*args):
    p = subprocess.Popen([os.path.join(TMP, "forked"), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(p.kill)
    lost = [line.strip() for line in iter(p.stdout.readline, "ready\n") if line]
    return p, lost


def leaks(p, *args):
    r = subprocess.run([DESCRY, "leaks", "--json", "-v", *args, "-p", str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(r.returncode == 0, args, r)
    rows = [json.loads(line) for line in r.stdout.splitlines()]
    return rows[0], [row["address"] for row in rows if row["type"] == "block"]


def state(p):
    with open("/proc/%d/status" % p.pid) as f:
        status = [line for line in f if line.startswith(("SigBlk", "SigCgt", "Threads", "TracerPid", "SigPnd", "ShdPnd"))]
    with open("/proc/%d/maps" % p.pid) as f:
        return status, f.read()


def copy_of(p):
    """The child of its helper."""
    try:
        for tid in os.listdir("/proc/%d/task" % p.pid):
            with open("/proc/%d/task/%s/children" % (p.pid, tid)) as f:
                for child in f.read().split():
                    return int(child)
    except OSError:
        pass
    return 0


def text(p):
    """The ends of its text, where the code of the copy has been."""
    with open("/proc/%d/maps" % p.pid) as f, open("/proc/%d/mem" % p.pid, "rb") as mem:
        ends = []
        for line in f:
            if "r-xp" in line and "/" in line:
                mem.seek(int(line.split()[0].split("-")[1], 16) - 512)
                ends.append(mem.read(512))
        return ends


with open(os.path.join(TMP, "forked.c"), "w") as f:
    f.write(SOURCE)
if subprocess.run(["cc", "-O1", "-fno-builtin", "-pthread", "-o", os.path.join(TMP, "forked"), os.path.join(TMP, "forked.c")]).returncode:
    skip("no C compiler")

p, lost = start()
before = state(p), text(p)
heap, blocks = leaks(p)
check(not heap["forked"] and heap["not_forked"] is None and blocks == lost, "a small one is not copied unasked", heap, blocks, lost)
check((state(p), text(p)) == before, "as before", before, state(p))
for i in range(5):
    heap, blocks = leaks(p, "--fork")
    check(heap["forked"] and heap["not_forked"] is None and blocks == lost, "copied", heap, blocks, lost)
    check((state(p), text(p)) == before, "as before", before, state(p))
out, _ = p.communicate()
check(p.returncode == 0 and out == "signals 0 interrupted 0 wait -1 1 -1 1\n", "it notices nothing", p.returncode, out)

# one of 200 MB is copied unasked, unless that is forbidden
p, _ = start("lock")
before = state(p), text(p)
for args, forked in (("--copy",), False), ((), True), (("--copy",), False):
    heap, blocks = leaks(p, *args)
    check(heap["forked"] == forked and heap["not_forked"] is None and len(blocks) >= 1999, "a large one", args, heap, len(blocks))
    check((state(p), text(p)) == before, "as before", before, state(p))
p.kill()
p.communicate()
r = subprocess.run([DESCRY, "leaks", "--copy", "--fork", "-p", "1"], capture_output=True, text=True)
check(r.returncode and "exclude each other" in r.stderr, "both", r)

p, lost = start()
os.kill(p.pid, 19)  # SIGSTOP
while open("/proc/%d/stat" % p.pid).read().rsplit(")", 1)[1].split()[0] != "T":
    pass
heap, blocks = leaks(p, "--fork")
check(heap["not_forked"] == "it is stopped" and blocks == lost, "stopped", heap, blocks)
os.kill(p.pid, 18)  # SIGCONT, which it has a handler for
p.communicate()
check(p.returncode == 0, "stopped", p.returncode)

# It executes another program while the copy is read: that one has its locks, and the copy has no descriptors. A copy may end unseen.
p, lost = start("lock")
for _ in range(10):
    d = subprocess.Popen([DESCRY, "leaks", "--fork", "--json", "-p", str(p.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    copy, fds = 0, None
    while d.poll() is None and fds != []:
        copy = copy or copy_of(p)
        if copy:
            os.kill(d.pid, signal.SIGSTOP)
            try:
                fds = os.listdir("/proc/%d/fd" % copy)
                with open("/proc/%d/stat" % copy) as f:
                    ended = f.read().rsplit(")", 1)[1].split()[0] in "XZ"
            except OSError:
                ended = True
            if ended:
                fds = None
                break
            if fds:
                os.kill(d.pid, signal.SIGCONT)
    if fds == []:
        break
    if d.poll() is None:
        os.kill(d.pid, signal.SIGCONT)
    d.communicate()
if check(fds == [], "the copy has no descriptors", copy, fds):
    p.stdin.write("x")
    p.stdin.flush()
    line = p.stdout.readline()
    check(line == "lock held\n", "its lock is kept", line)
    os.kill(d.pid, signal.SIGCONT)
    check('"forked":true' in d.communicate()[0], "copied while it executes")
p.communicate()
check(p.returncode == (0 if fds == [] else 7), "the executed program", p.returncode)

for what, why in (("filter", "filters its system calls"), ("direct", "O_DIRECT")):
    p, lost = start(what)
    if p.poll() is not None:
        print("note: %s is not possible here: %d" % (what, p.returncode))
        continue
    heap, blocks = leaks(p, "--fork")
    check(not heap["forked"] and why in (heap["not_forked"] or "") and blocks == lost, what, heap, blocks)
    p.communicate()
    check(p.returncode == 0, what, p.returncode)
done()
