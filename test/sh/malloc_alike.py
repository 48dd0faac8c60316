#!/usr/bin/env python3
# Programs do under descry malloc record what they do alone: those whose libraries are only listed (ldd), that need AddressSanitizer, with as many
# arguments as they may have, that the dynamic linker runs, that lock all their memory, and that dump core.
import resource

from live import *

if not shutil.which("cc"):
    skip("needs cc")
DIR, FILE = os.path.join(TMP, "d"), os.path.join(TMP, "d", "a.dma")
BINARY = shutil.copy(DESCRY, TMP)  # other users may not reach the original
LINKER = "/lib64/ld-linux-x86-64.so.2"


def build(name, source, *options):
    path = os.path.join(TMP, name)
    r = subprocess.run(["cc", "-x", "c", "-w", "-pthread", "-o", path, "-", *options], input=source.encode(), stderr=subprocess.PIPE)
    return path if not r.returncode else None


def run(*command, **more):
    r = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    return r.returncode, re.sub(r"0x[0-9a-f]+", "ADDRESS", r.stdout), r.stderr


def record(*command, **more):
    shutil.rmtree(DIR, ignore_errors=True)
    os.mkdir(DIR)
    os.chmod(DIR, 0o777)
    return run(BINARY, "malloc", "record", "-o", FILE, *command, **more)


def alike(what, *command, **more):
    """Returns what descry says; the command's status and output are as without it."""
    alone, recorded = run(*command, **more), record(*command, **more)
    check(recorded[:2] == alone[:2], what, "alone", alone, "recorded", recorded)
    return recorded[2]


# the dynamic linker only lists
for command in (["ldd", "/bin/sh"], ["sh", "-c", "LD_TRACE_LOADED_OBJECTS=1 /bin/sh -c exit"], ["sh", "-c", "LD_TRACE_LOADED_OBJECTS= /bin/cat /dev/null"],
                ["sh", "-c", LINKER + " --list /bin/sh"], ["sh", "-c", LINKER + " --library-path /tmp --list /bin/sh; exit 5"]):
    said = alike("lists", *command)
    # ldd(1) tries the dynamic linker of 32-bit programs, too
    check(command[0] == "ldd" or "not recorded" not in said, "it is no program that could be recorded", command, said)
status, out, said = record(LINKER, "--list", "/bin/sh")
check(status == 1 and not out and "only lists" in said, "nothing to record", status, out, said)
# ... and runs programs
said = alike("a program of the linker's", LINKER, "/bin/echo", "a", "--list")
check(re.search(r"a\.dma: [1-9]\d* calls", said), "recorded", said)
said = alike("a program of a linker of the shell's", "sh", "-c", LINKER + " --argv0 --list /bin/echo hi; exit 4")
check(re.search(r"a\.\d+\.dma: [1-9]\d* calls", said), "recorded", said)

# AddressSanitizer: by gcc in a library of its own
SANITIZED = build("sanitized", '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { free(malloc(10)); puts("hello"); return 3; }\n', "-fsanitize=address")
if SANITIZED:
    # without a check for leaks, which traces the process itself: descry may hold a thread just then
    status, out, said = record(SANITIZED, env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
    check("AddressSanitizer" in said, "why it is recorded by probes", status, out, said)
    if not os.geteuid():
        check((status, out) == (3, "hello\n"), "recorded by probes", status, out, said)
    said = alike("AddressSanitizer below a shell", "sh", "-c", SANITIZED + "; exit $?")
    check("1 forked children or executed programs are not recorded" in said, "said", said)
    library = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    alike("AddressSanitizer is preloaded", "sh", "-c", "LD_PRELOAD=" + library + " ASAN_OPTIONS=detect_leaks=0 /bin/echo hi")

# the largest list of arguments and environment
ARGUMENTS = build("arguments", r"""
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char text[100000], *args[64] = { "true" }, last[100001], *env[] = { "A=B", NULL };
static int (*execs[])(const char *, char *const *, char *const *) = { execve, execvpe };
static int runs(int way, int n, int bytes)
{
	int status = 0, pid = 0, r;
	memset(last, 'x', bytes);
	last[bytes] = 0;
	args[n] = last;
	args[n + 1] = NULL;
	if (way == 2) {
		r = posix_spawn(&pid, "/bin/true", NULL, NULL, args, env);
		if (r)
			return r == E2BIG ? 0 : -1;
	} else if (!(pid = fork())) {
		execs[way]("/bin/true", args, env);
		_exit(errno == E2BIG ? 7 : 8);
	}
	waitpid(pid, &status, 0);
	return !status ? 1 : WEXITSTATUS(status) == 7 ? 0 : -1;
}
int main(void)
{
	memset(text, 'x', sizeof(text) - 1);
	for (int way = 0; way < 3; way++) {
		int n = 1, lo = 0, hi = 100000;
		for (; n < 60 && runs(way, n, 1) == 1; n++)
			args[n] = text;
		if (n == 60)
			return 1;
		for (n--; hi - lo > 1;) {
			int bytes = (lo + hi) / 2, r = runs(way, n, bytes);
			if (r < 0)
				return 2;
			*(r ? &lo : &hi) = bytes;
		}
		printf("%d: %d %d\n", way, n, lo);
	}
	return 0;
}
""")
alike("arguments", ARGUMENTS)

# locked memory
LOCKS = build("locks", r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *thread(void *arg) { for (int i = 0; i < 1000; i++) free(malloc(33)); return NULL; }
static void threads(int n)
{
	pthread_t t[8];
	for (int i = 0; i < n; i++) pthread_create(&t[i], NULL, thread, NULL);
	for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
}
static long locked(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof(line), f)) sscanf(line, "VmLck: %ld", &kb);
	fclose(f);
	return kb;
}
int main(int argc, char **argv)
{
	int r, status;
	thread(NULL);
	r = argc > 1 ? syscall(SYS_mlockall, MCL_CURRENT) : mlockall(MCL_CURRENT | MCL_FUTURE);
	printf("%d %d, much: %d\n", r, r ? errno : 0, locked() > 40000);
	munlockall();
	threads(2);
	thread(NULL);
	fflush(stdout);
	if (!fork()) {
		thread(NULL);
		threads(8);
		printf("child: %d\n", mlockall(MCL_CURRENT) ? errno : 0);
		exit(0);
	}
	wait(&status);
	printf("%d\n", status);
	return 0;
}
""")
for limit in ([0] if not os.geteuid() else []) + [12 << 20]: # 0: root's, without a limit
    for raw in [], ["raw"]:
        def limited():
            if limit:
                resource.setrlimit(resource.RLIMIT_MEMLOCK, (min(limit, resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]),) * 2)
            if limit and not os.geteuid():
                os.setuid(65534)
        os.chmod(TMP, 0o777)
        os.chmod(BINARY, 0o755)
        said = alike("locks %s" % limit, LOCKS, *raw, preexec_fn=limited)
        check(re.search(r"a\.dma: [1-9]\d* calls", said) and "lost" not in said, "recorded", limit, raw, said)

# nohup(1)
status = ["grep", "-E", "^Sig(Ign|Cgt)", "/proc/self/status"]
alike("SIGHUP is ignored", *status, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))

# the core has none of the recording's memory
ABORTS = build("aborts", "#include <stdlib.h>\nint main(void) { *(volatile char *)malloc(9) = 1; abort(); }\n")
pattern = open("/proc/sys/kernel/core_pattern").read().strip()
if pattern == "core":
    for depth in "0", "16":
        shutil.rmtree(DIR, ignore_errors=True)
        os.mkdir(DIR)
        r = subprocess.run([DESCRY, "malloc", "record", *(["-k", depth] if depth != "0" else []), "-o", FILE, "sh", "-c", "ulimit -c unlimited; cd %s; %s" % (DIR, ABORTS)],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True)
        cores = [os.path.getsize(os.path.join(DIR, f)) for f in os.listdir(DIR) if f.startswith("core")]
        check(len(cores) == 1 and 10000 < cores[0] < 10 << 20, "core", depth, cores, r)
done()
