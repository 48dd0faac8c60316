#!/usr/bin/env python3
# system(3) and popen(3) of a program under descry malloc record: they do what they do without it, and no other thread ever hands descry's variables
# to what it starts, because the tracer may have ended then, and another process may have its number.
import re

from live import *

if not shutil.which("cc"):
    skip("needs cc")
DIR, FILE = os.path.join(TMP, "d"), os.path.join(TMP, "d", "a.dma")


def build(name, source, *options):
    path = os.path.join(TMP, name)
    subprocess.run(["cc", "-x", "c", "-w", "-pthread", "-o", path, "-", "-x", "none", *options], input=source.encode(), check=True)
    return path


def record(*command):
    shutil.rmtree(DIR, ignore_errors=True)
    os.mkdir(DIR)
    return subprocess.run([DESCRY, "malloc", "record", "-o", FILE, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True)


# what system(3) does to the thread, the process and the shell
BEHAVES = build("behaves", r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void on_signal(int s) { (void)!write(1, "signal\n", 7); }
static void state(const char *when)
{
	struct sigaction i, q;
	sigset_t m;
	sigaction(SIGINT, NULL, &i);
	sigaction(SIGQUIT, NULL, &q);
	pthread_sigmask(SIG_SETMASK, NULL, &m);
	printf("%s: %d %d %x %d %d %d\n", when, i.sa_handler == on_signal, i.sa_handler == SIG_IGN, i.sa_flags, q.sa_handler == SIG_DFL,
	       sigismember(&m, SIGCHLD), sigismember(&m, SIGUSR1));
	fflush(stdout);
}
static void run(const char *command)
{
	int r;
	errno = 0;
	r = system(command);
	printf("%s: %d, errno %d\n", command, r, errno);
	fflush(stdout);
}
static void *shell(void *command) { run(command); return NULL; }
static int cleaned;
static void clean(void *arg) { cleaned++; }
static void *to_cancel(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	system("echo $$ >cancelled; exec sleep 1000");
	pthread_cleanup_pop(0);
	return NULL;
}
int main(int argc, char **argv)
{
	struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NODEFER };
	sigset_t usr1;
	pthread_t t[2];
	void *end;
	int pid = 0;
	FILE *f;
	char line[100];
	sigaction(SIGINT, &a, NULL);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	state("before");
	printf("a shell: %d\n", system(NULL) != 0);
	fflush(stdout);
	run("exit 3");
	run("kill -9 $$");
	run("no-such-program");
	run("echo 'a b' \"$0\" $#; exit 0");
	run("kill -INT $PPID; kill -INT $$; echo not here");   /* ignored by the process, the shell has no handler */
	run("grep Sig[BI] /proc/self/status; grep Sig[BI]gn /proc/$PPID/status");
	state("after");
	pthread_create(&t[0], NULL, shell, (void *)"echo one; read x <one");
	pthread_create(&t[1], NULL, shell, (void *)"echo two; read x <two");
	pthread_join(t[argc > 1 ? 0 : 1], &end);
	pthread_join(t[argc > 1 ? 1 : 0], &end);
	state("two threads");
	unlink("cancelled");
	pthread_create(&t[0], NULL, to_cancel, NULL);
	while (!(f = fopen("cancelled", "r")) || fscanf(f, "%d", &pid) != 1) {
		if (f) fclose(f);
		usleep(1000);
	}
	pthread_cancel(t[0]);
	pthread_join(t[0], &end);
	printf("cancelled: %d, %d, shell is gone: %d\n", end == PTHREAD_CANCELED, cleaned, kill(pid, 0) < 0 && errno == ESRCH);
	state("cancelled");
	f = popen("echo from popen; exit 4", "r");
	printf("%s", fgets(line, sizeof(line), f));
	printf("popen: %d\n", pclose(f));
	signal(SIGINT, SIG_IGN);
	run("grep SigIgn /proc/self/status");
	state("ignored");
	return 0;
}
""")


def behaves(*prefix):
    """Two shells of two threads at one time: `two` ends first."""
    for name in ("one", "two"):
        path = os.path.join(TMP, name)
        if not os.path.exists(path):
            os.mkfifo(path)
    p = subprocess.Popen([*prefix, BEHAVES], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TMP)
    lines, begun = [], 0
    for line in p.stdout:
        if line in ("one\n", "two\n"):
            begun += 1
            if begun == 2:
                with open(os.path.join(TMP, "two"), "w"):
                    pass
            continue
        if line.startswith("echo two"):
            with open(os.path.join(TMP, "one"), "w"):
                pass
        lines.append(line)
    return lines, p.stderr.read(), p.wait()


alone, errors, rc = behaves()
check(rc == 0 and len(alone) > 15, "alone", rc, alone, errors)
shutil.rmtree(DIR, ignore_errors=True)
os.mkdir(DIR)
recorded, more, rc = behaves(DESCRY, "malloc", "record", "-o", FILE)
check(rc == 0 and recorded == alone, "as without descry", rc, *["%r %r" % pair for pair in zip(alone, recorded) if pair[0] != pair[1]],
      recorded[len(alone):])
check("not found" in errors and [l for l in more.splitlines() if "not found" in l] == [l for l in errors.splitlines() if "not found" in l],
      "the shell's message", errors, more)

# another object with system(3), which is called, and with a popen(3) that changes the environment while a shell is started
OTHER = build("libother.so", r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern char **environ;
int systems;
char **kept;
int system(const char *command)
{
	systems++;
	return ((int (*)(const char *))dlsym(RTLD_NEXT, "system"))(command);
}
FILE *popen(const char *command, const char *mode)
{
	static int i;
	char name[20];
	snprintf(name, sizeof(name), "NAME%d", i++);
	setenv(name, "1", 1);
	if (!kept) {
		int n = 0;
		while (environ[n]) n++;
		kept = calloc(n + 1, sizeof(*kept));
		for (int j = 0; j < n; j++) kept[j] = strdup(environ[j]);
	}
	return ((FILE *(*)(const char *, const char *))dlsym(RTLD_NEXT, "popen"))(command, mode);
}
""", "-shared", "-fPIC")
CHANGES = r"""
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
extern char **environ, **kept;
extern int systems;
int main(int argc, char **argv)
{
	pid_t p;
	free(malloc(10));
	setenv("A", "1", 1);
	for (int i = 0; i < 10; i++)
		pclose(popen("echo \"$NAME9 ${LD_PRELOAD:-none}\"", "w"));
	system("echo \"$NAME9 ${LD_PRELOAD:-none}\"");
	for (char **e = environ; *e; e++)
		if (!strncmp(*e, "NAME", 4) || !strncmp(*e, "LD_PRE", 6) || !strncmp(*e, "DESCRY_M", 8))
			puts(*e);
	fflush(stdout);
	if (!posix_spawn(&p, argv[1], 0, 0, argv + 1, kept)) waitpid(p, 0, 0);
	printf("%d\n", systems);
	return 0;
}
"""

# threads that have an environment for as long as a command runs, or copy it
MEANWHILE = build("meanwhile", r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static volatile int ended;
static int ours(char **env)
{
	int n = 0;
	for (; *env; env++)
		n += (!strncmp(*env, "LD_PRELOAD=", 11) && strcmp(*env, "LD_PRELOAD=libdl.so.2")) || !strncmp(*env, "DESCRY_MALLOC=", 14);
	return n;
}
static int preloads(void)
{
	int n = 0;
	for (char **e = environ; *e; e++)
		n += !strcmp(*e, "LD_PRELOAD=libdl.so.2");
	return n;
}
static void *opens(void *arg)
{
	for (int i = 0; i < 150; i++)
		pclose(popen(":", "w"));
	ended = 1;
	return NULL;
}
static void *waits(void *arg) { system("echo >begun; read x <end"); return NULL; }
int main(int argc, char **argv)
{
	int forked = 0, status, begun, had = 0;
	pthread_t t;
	free(malloc(10));
	had = preloads();
	pthread_create(&t, NULL, waits, NULL);
	fgetc(fopen("begun", "r"));
	printf("in system: %d\n", ours(environ));
	fclose(fopen("end", "w"));
	pthread_join(t, NULL);
	pthread_create(&t, NULL, opens, NULL);
	while (!ended) {
		pid_t pid = fork();
		if (!pid)
			_exit(ours(environ) || preloads() != had);
		waitpid(pid, &status, 0);
		forked += status != 0;
	}
	pthread_join(t, NULL);
	printf("forked: %d\n", forked);
	printf("after: %d %d\n", ours(environ), preloads() == had);
	return 0;
}
""")
CHANGED = build("changes", CHANGES, OTHER)
STATIC = build("static", """
#include <stdio.h>
#include <string.h>
extern char **environ;
int main(void)
{
	for (char **e = environ; *e; e++)
		if (!strncmp(*e, "LD_PRE", 6) || !strncmp(*e, "DESCRY_M", 8))
			printf("static: %s\\n", *e);
	return 0;
}
""", "-static")
for name in ("begun", "end"):
    os.mkfifo(os.path.join(TMP, name))
os.chdir(TMP)
for preload in None, "libdl.so.2":
    if preload:
        os.environ["LD_PRELOAD"] = preload
    alone = subprocess.run([CHANGED, STATIC], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    p = record(CHANGED, STATIC)
    check(alone.stdout.endswith("1\n") and sorted(p.stdout.splitlines()) == sorted(alone.stdout.splitlines()), "changes", alone.stdout, p.stdout, p.stderr)
    p = record(MEANWHILE)
    check(p.stdout == "in system: 0\nforked: 0\nafter: 0 1\n" and p.returncode == 0, "meanwhile", preload, p.returncode, p.stdout, p.stderr[-500:])
os.environ.pop("LD_PRELOAD")

# ldd(1) lists a program's own libraries alone; AddressSanitizer wants to be the first library
ldd = shutil.which("ldd")
LINKER = "/lib64/ld-linux-x86-64.so.2"


def names_of(text):
    return sorted(re.sub(" *[(]0x[0-9a-f]*[)]", "", line) for line in text.splitlines())


for command in (["ldd", BEHAVES] if ldd else [], ["env", "LD_TRACE_LOADED_OBJECTS=", BEHAVES], ["sh", "-c", LINKER + " --list " + BEHAVES],
                ["sh", "-c", LINKER + " --inhibit-cache --verify %s; echo $?" % BEHAVES]):
    alone = subprocess.run(command or ["true"], capture_output=True, text=True)
    p = record(*(command or ["true"]))
    check(names_of(p.stdout) == names_of(alone.stdout) and (command[:1] == ["ldd"] or "are not recorded" not in p.stderr), "lists", command, alone.stdout, p.stdout, p.stderr[-300:])
p = record("sh", "-c", LINKER + " %s -c 'echo --list'" % os.path.realpath("/bin/sh"))
check(p.stdout == "--list\n" and len(os.listdir(DIR)) == 2, "not listed", p.stdout, os.listdir(DIR))
with open(os.path.join(TMP, "clean.c"), "w") as f:
    f.write('#include <stdio.h>\n#include <stdlib.h>\nint main(void) { free(malloc(10)); puts("here"); return 0; }\n')
if subprocess.run(["cc", "-fsanitize=address", "-o", os.path.join(TMP, "clean"), os.path.join(TMP, "clean.c")], capture_output=True).returncode:
    print("note: there is no AddressSanitizer")
else:
    p = record("sh", "-c", "./clean; :")
    check(p.stdout == "here\n" and "1 forked children or executed programs are not recorded" in p.stderr, "AddressSanitizer", p.stdout, p.stderr)
    # without a check for leaks, which traces the process itself: descry may hold a thread just then
    os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
    p = record("./clean")
    check(p.stdout == "here\n", "AddressSanitizer alone", p.returncode, p.stdout, p.stderr)
done()
