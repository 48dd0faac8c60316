#!/usr/bin/env python3
# The pid provider beyond the basics: args[] from debug information, libraries that are loaded later, children (-x follow), the
# provider plockstat, and -x budget.
# covers: follow budget plockstat
# serial
from live import *


def build(name, text, *flags):
    src = TMP + "/%s.c" % name
    open(src, "w").write(text)
    subprocess.run(["cc", "-O1", "-o", TMP + "/" + name, src, *flags], check=True)
    return TMP + "/" + name


def counts(r):
    """{key: count} of an aggregation with one integer key."""
    return {int(k): int(n) for k, n in re.findall(r"^ +(\d+) +(\d+)$", r.out, re.M)}


# --- args[] ---
TYPED = r"""
struct big { long a, b, c; };
struct two { double d; long l; };
enum color { RED, GREEN };
struct req { int id; const char *path; struct req *next; };
__attribute__((noinline)) short handle(struct req *r, signed char c, double f, unsigned short u, enum color e, struct two t,
	struct big b, int x, int y, int z)
{
	__asm__ volatile("" ::: "memory");
	return (short)(r->id + c + u + x + y + z + b.a + t.l + (int)f);
}
__attribute__((noinline)) struct big make(int n, const char *s)
{
	struct big b = { n, 2, s[0] };

	__asm__ volatile("" ::: "memory");
	return b;
}
int main(void)
{
	struct req next = { 42, "next", 0 }, r = { -7, "/x", &next };

	__asm__ volatile("" ::"r"(&r), "r"(&next) : "memory");
	handle(&r, -3, 1.5, 60000, GREEN, (struct two){ 2.5, 77 }, (struct big){ 11, 12, 13 }, -21, -22, -23);
	make(-5, "str");
	return 0;
}
"""
PROG = """pid$target:a.out:handle:entry {
	printf("%d %d %d %d %d %d %d %d %d\\n", args[1], args[2], args[3], args[4], args[5], args[6], args[7], args[8], args[9]);
	printf("%d %s %d\\n", args[0]->id, copyinstr((uintptr_t)args[0]->path), args[0]->next->id);
	printf("%d\\n", curthread->tgid == pid);
}
pid$target:a.out:handle:return { printf("returns %d\\n", args[1]); }
pid$target:a.out:make:entry { printf("make %d %s\\n", args[0], copyinstr((uintptr_t)args[1])); }"""
WANT = ["-3 0 60000 1 77 11 -21 -22 -23", "-7 /x 42", "1", "returns -5523", "make -5 str"]
for flags in (["-g"], ["-g", "-gdwarf-4"]):
    typed = build("typed", TYPED, *flags)
    r = descry("-x", "engine=kernel", "-q", "-n", PROG, c=typed)
    check(r.lines() == WANT, "args[]", flags, r)
r = descry("-l", "-v", "-n", "pid$target:a.out:handle:entry, pid$target:a.out:handle:return, pid$target:a.out:make:entry", c=typed)
for line in ("args[0]: struct req *", "args[1]: signed char", "args[3]: unsigned short", "args[4]: enum color", "args[9]: int",
             "args[1]: short", "args[1]: const char *"):
    check("\t\t%s\n" % line in r.out, "-l -v:", line, r)
bare = build("bare", TYPED, "-s", "-rdynamic")
r = descry("-x", "engine=kernel", "-q", "-n", "pid$target:a.out:make:entry { printf(\"%d %s\\n\", (int)arg1, copyinstr(arg2)); }", c=bare)
check(r.lines() == ["-5 str"], "without debug information", r)
r = descry("-q", "-n", "pid$target:a.out:make:entry { trace(args[0]); }", c=bare, rc=1)
check("D_ARGS" in r.err, "args[] without debug information", r)
# a debug file beside it
subprocess.run("objcopy --only-keep-debug typed typed.debug && objcopy --strip-debug --add-gnu-debuglink=typed.debug typed typed2",
               shell=True, cwd=TMP, check=True)
os.unlink(typed)
r = descry("-x", "engine=kernel", "-q", "-n", PROG, c=TMP + "/typed2")
check(r.lines() == WANT, "args[] by debuglink", r)

# --- libraries loaded later ---
os.mkdir(TMP + "/plugins")
build("plugins/libplug.so", "int plug_work(int n, const char *name) { return n * 2 + name[0]; }", "-g", "-shared", "-fPIC")
host = build("host", r"""
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int c, char **v)
{
	void *h;
	int (*f)(int, const char *), s = 0;

	usleep(200000);
	h = dlopen(v[1], RTLD_NOW);
	f = h ? (int (*)(int, const char *))dlsym(h, "plug_work") : 0;
	for (int i = 0; f && i < 5; i++)
		s += f(i, "x");
	printf("%d\n", s);
	return !f;
}
""", "-ldl")
where = {"LD_LIBRARY_PATH": TMP + "/plugins"}
for mod in "libplug", "libplug.so":
    r = descry("-n", "pid$target:%s:plug_work:entry { @[args[0]] = count(); }" % mod, c=host + " libplug.so", env=where)
    check(counts(r) == {i: 1 for i in range(5)}, "loaded later", mod, r)
    check("is not loaded: its probes fire when %s/plugins/libplug.so is" % TMP in r.err, "said", r)
r = descry("-n", "pid$target:libplug.so:plug_work:entry { }", c=host + " libplug.so", rc=1)
check("has not loaded libplug.so" in r.err and "LD_LIBRARY_PATH" in r.err, "not to be found", r)
p = subprocess.Popen([host, "libplug.so"], env=dict(os.environ, **where), stdout=subprocess.DEVNULL)
p.wait()

# --- children ---
tree = build("tree", r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile("" ::: "memory"); return n + 1; }
int main(int c, char **v)
{
	int s = 0;

	for (int i = 0; i < 3; i++)
		s += work(i);
	if (c > 1)
		return 0;
	for (int k = 0; k < 2; k++)
		if (!fork()) {
			for (int i = 0; i < 10; i++)
				s += work(i);
			if (!fork()) {
				for (int i = 0; i < 100; i++)
					s += work(i);
				_exit(0);
			}
			wait(NULL);
			if (k)
				execl("/proc/self/exe", v[0], "again", (char *)0);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}
""")
COUNT = "pid$target:a.out:work:entry { @[pid == $target] = count(); }"
r = descry("-x", "engine=kernel", "-n", COUNT, c=tree)
check(counts(r) == {1: 3}, "without -x follow", r)
other = subprocess.Popen("sleep 1; while :; do %s; done" % tree, shell=True, start_new_session=True)
r = descry("-x", "engine=kernel", "-x", "follow", "-n", COUNT, c=tree)
check(counts(r) == {1: 3, 0: 223}, "-x follow", r)
os.killpg(other.pid, signal.SIGKILL)

# --- plockstat ---
locks = build("locks", r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, rec;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static void *other(void *a)
{
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	pthread_rwlock_rdlock(&rw);
	pthread_rwlock_unlock(&rw);
	return a;
}
int main(void)
{
	pthread_t t;
	pthread_mutexattr_t a;

	printf("%ld %ld %ld\n", (long)&m, (long)&rec, (long)&rw);
	fflush(stdout);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&rec, &a);
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
	}
	pthread_mutex_lock(&rec);
	pthread_mutex_lock(&rec);
	pthread_mutex_unlock(&rec);
	pthread_mutex_unlock(&rec);
	pthread_mutex_lock(&m);
	pthread_mutex_trylock(&m);
	pthread_rwlock_wrlock(&rw);
	pthread_create(&t, NULL, other, NULL);
	usleep(100000);
	pthread_mutex_unlock(&m);
	usleep(100000);
	pthread_rwlock_unlock(&rw);
	return pthread_join(t, NULL);
}
""", "-pthread")
r = descry("--json", "-n", "plockstat$target::: { @[probename, arg0, arg1] = count(); }", c=locks)
m, rec, rw = map(int, re.search(r"^(\d+) (\d+) (\d+)$", r.out, re.M).groups())
got = {(k[0], k[2]): n for k, n in r.aggs().items() if k[1] == m}
check(got == {("mutex-acquire", 0): 7, ("mutex-release", 0): 7, ("mutex-block", 0): 1, ("mutex-blocked", 1): 1,
              ("mutex-error", 16): 1}, "plockstat: mutex", got)
got = {(k[0], k[2]): n for k, n in r.aggs().items() if k[1] == rec}
check(got == {("mutex-acquire", 0): 1, ("mutex-acquire", 1): 1, ("mutex-release", 0): 1, ("mutex-release", 1): 1},
      "plockstat: recursive", got)
got = {(k[0], k[2]): n for k, n in r.aggs().items() if k[1] == rw}
check(got == {("rw-acquire", 0): 1, ("rw-acquire", 1): 1, ("rw-release", 0): 2, ("rw-block", 0): 1, ("rw-blocked", 0): 1},
      "plockstat: rwlock", got)

# --- budget ---
r = descry("-x", "budget=much", "-n", "BEGIN { exit(0); }", rc=2)
check("a share of the machine's CPU time" in r.err, "budget=much", r)
BUSY = "dd if=/dev/zero of=/dev/null bs=1 count=100000000"
PROG = "syscall::read:entry { @r = count(); } tick-4s { exit(0); }"
r = descry("-x", "budget=0.1%", "-x", "droptags", "-n", PROG, c=BUSY)
check(re.search(r"\[DRT_BUDGET\] tracing takes \d+\.\d% of the machine, 0.1% is allowed: stopped syscall:vmlinux:read:entry \(\d+\.\d%\)",
                r.err), "budget", r)
held = int(re.findall(r"^ +(\d+)$", r.out, re.M)[-1])
r = descry("-x", "budget=100%", "-n", PROG, c=BUSY)
free = int(re.findall(r"^ +(\d+)$", r.out, re.M)[-1])
check("budget" not in r.err and "allowed" not in r.err and held < free / 2, "a budget of all", held, free, r)

# an indirect function's symbol is that of its resolver, which is said of one that the description names
for pattern, said in (("strlen", True), ("str*en", False)):
    r = descry("-n", "pid$target:libc.so.6:%s:entry { @ = count(); }" % pattern, c="ls /")
    check(("libc.so.6:strlen is an indirect function" in r.err) == said, pattern, r)
done()
