# The traced program of the tests of descry calls, with a library of its own and prototypes. Importing the module builds them in TMP.
from live import *

SOURCE = r"""
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <dlfcn.h>

struct pair { int a; short b; const char *name; };
int made_pair(struct pair *p, int n);
int made_sum(const int *v, int n);
int made_fill(char *to, int n);
int made_nest(int n);
void made_leave(jmp_buf to);
int _ZN4made3addEii(int a, int b);
int made_split(int n);
int made_cut(int n);
double made_mean(float a, int n, double b);

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void *spin(void *arg)
{
	unsigned seed = 1;

	for (long i = 0; i < (long)arg; i++)
		rand_r(&seed);
	return NULL;
}

/* Returns that have no room for a jump, and floating-point numbers. */
static void registers(void)
{
	volatile double half = 0.5;
	volatile float f = -1.25f;
	int e;

	for (int i = 0; i < 2; i++) {
		made_split(i);
		made_cut(i * 3);
	}
	made_mean(f, 7, 3e20);
	sin(half);
	pow(2.0, half);
	sqrtf(2.25f);
	ldexp(half, 3);
	frexp(40.0, &e);
	strtod("1e3", NULL);
	printf("%.2f %d %s %g\n", 1.5, 3, "x", half * 4);
	printf("%d\n", 7);
	fflush(stdout);
}

static volatile long handled, nested;

static void handle(int s)
{
	handled++;
	made_nest(0);
}

/* Prints how many calls of made_nest() it has made, and how many signals it has handled. */
static void signals(long n)
{
	struct sigaction sa = { .sa_handler = handle };

	sigaction(SIGUSR1, &sa, NULL);
	for (long i = 0; i < n; i++) {
		raise(SIGUSR1);
		nested += 3; /* made_nest(2) is three calls */
		made_nest(2);
	}
	printf("%ld %ld\n", nested + handled, handled);
}

static void lines(void)
{
	const char *words[] = { "b", "a", "c" };
	const int numbers[] = { 1, -2, 3 };
	struct pair p = { 7, -8, "seven" };
	struct timespec ts = { 0, 1000 };
	char text[8];
	jmp_buf back;
	char *s = malloc(24), *given, *found;
	int n;

	strcpy(s, "hello");
	puts(s);
	qsort(words, 3, sizeof(*words), compare);
	given = getenv("GIVEN");
	n = atoi("12");
	found = strchr(s, 'z');
	printf("%s %d %d%c\n", given, n, found == NULL, 'x');
	mempcpy(text, s, 3);
	free(s);
	fopen("/nonexistent", "r");
	nanosleep(&ts, NULL);
	made_pair(&p, 1);
	made_pair((void *)8, 2);
	made_sum(numbers, 3);
	made_fill(text, 6);
	made_nest(2);
	if (!setjmp(back))
		made_leave(back);
	made_sum(numbers, 1);
	fflush(stdout);
	exit(3);
}

int main(int argc, char **argv)
{
	long m = atol(argv[2]), n = argc > 3 ? atol(argv[3]) : 0;
	pthread_t t[64];

	if (!strcmp(argv[1], "lines"))
		lines();
	if (!strcmp(argv[1], "registers"))
		registers();
	if (!strcmp(argv[1], "threads")) {
		for (long i = 0; i < m; i++)
			pthread_create(&t[i], NULL, spin, (void *)n);
		for (long i = 0; i < m; i++)
			pthread_join(t[i], NULL);
	}
	if (!strcmp(argv[1], "fork")) {
		for (long i = 0; i < m; i++)
			if (!fork()) {
				for (long k = 0; k < n; k++)
					_ZN4made3addEii(k, 5);
				_exit(0);
			}
		for (long i = 0; i < m; i++)
			wait(NULL);
		_ZN4made3addEii(1, 2);
	}
	if (!strcmp(argv[1], "sleep"))
		for (long i = 0; i < m; i++) {
			char text[8];

			nanosleep(&(struct timespec){ 0, 3000000 }, NULL);
			strcpy(text, "quick");
		}
	if (!strcmp(argv[1], "sys")) {
		int fd = open("made", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
		void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		write(fd, "a\tb\n", 4);
		lseek(fd, -2, SEEK_END);
		close(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
		mprotect(p, 4096, PROT_READ | PROT_EXEC);
		madvise(p, 4096, MADV_DONTNEED);
		open("/nonexistent", O_WRONLY | O_APPEND);
		dup(fd);
		munmap(p, 8192);
		close(-1);
	}
	if (!strcmp(argv[1], "signals"))
		signals(m);
	if (!strcmp(argv[1], "uid"))
		getuid();
	if (!strcmp(argv[1], "kill"))
		raise(SIGKILL);
	for (long i = 0; !strcmp(argv[1], "forever"); i++) {
		printf("%ld\n", i);
		fflush(stdout);
		usleep(2000);
	}
	return 0;
}
"""
LIBRARY = r"""
#include <setjmp.h>
#include <string.h>
struct pair { int a; short b; const char *name; };
static volatile int seen; /* code enough that every return can be patched */
int made_pair(struct pair *p, int n) { seen = n; return n; }
int made_sum(const int *v, int n) { int s = 0; while (n--) s += v[n]; seen = s; return s; }
int made_fill(char *to, int n) { memset(to, 'x', n); seen = n; return n; }
int made_nest(int n) { int less = n ? made_nest(n - 1) : 9; return less + 1; }
void made_leave(jmp_buf to) { longjmp(to, 1); }
int _ZN4made3addEii(int a, int b) { seen = a; return a + b; }
double made_mean(float a, int n, double b) { seen = n; return (a + b) / 2; }

/* Branches lead to the ret, and to the pop before it; other functions begin behind. */
__asm__(".text\n"
	".globl made_split\n.type made_split,@function\nmade_split: xor %eax,%eax\n test %edi,%edi\n je 1f\n lea 5(%rdi),%eax\n"
	"1: ret\n.size made_split,.-made_split\n"
	".globl made_cut\n.type made_cut,@function\nmade_cut: xor %eax,%eax\n push %rbx\n mov %rdi,%rbx\n test %edi,%edi\n je 1f\n"
	"lea 5(%rbx),%eax\n add $1,%eax\n1: pop %rbx\n ret\n.size made_cut,.-made_cut\n"
	".globl made_end\n.type made_end,@function\nmade_end: xor %eax,%eax\n ret\n.size made_end,.-made_end");
"""
CONF = """
typedef pair = struct(int, short, addr)
int made_pair(pair*, int); comment
enum(NONE, SIX=2, MANY) made_sum(array(int, arg2)*, int);
hex(int) made_fill(+string[retval], int);
int made_nest(int);
int _ZN4made3addEii(int, int);
void made_leave(addr);
int made_split(int);
int made_cut(int);
double made_mean(float, int, double);
"""


def calls(*args, rc=0, **more):
    r = descry("calls", *args, rc=rc, **more)
    r.err = without_objects(r.err)
    return r


def text_is_its_own(pid):
    """No mapping of a tracer is left, and the C library's text is as in its file."""
    maps = open("/proc/%d/maps" % pid).read()
    if "/memfd:descry" in maps:
        return False
    m = re.search(r"^(\w+)-(\w+) r-xp (\w+) \S+ \d+ +(/\S*libc\.so\.6)$", maps, re.M)
    if not m:  # the list was read while the text was changed
        return False
    lo, hi, off = (int(m[i], 16) for i in (1, 2, 3))
    with open("/proc/%d/mem" % pid, "rb") as f:
        f.seek(lo)
        mine = f.read(hi - lo)
    with open(m[4], "rb") as f:
        f.seek(off)
        return mine[:4096 * 256] == f.read(hi - lo)[:4096 * 256]


if not shutil.which("cc"):
    skip("no C compiler")
os.chdir(TMP)
for name, text in (("t.c", SOURCE), ("made.c", LIBRARY), ("made.conf", CONF)):
    with open(name, "w") as f:
        f.write(text)
check(sh("cc -O1 -fno-inline -fPIC -shared -o libmade.so made.c && cc -O0 -fno-builtin -U_FORTIFY_SOURCE -o t t.c -L. -lmade -lm -Wl,-rpath,%s -pthread" % TMP)
      .returncode == 0, "built")
os.environ["GIVEN"] = "given"
plain = subprocess.run(["./t", "lines", "0"], stdout=subprocess.PIPE, text=True)
check(plain.returncode == 3, "the program alone")
engines = engines_here()

