/* Stacks of running programs, stopped at random points: our walk against libdw's, frame by frame.
 * Prints the rate of each program and every case that differs.
 *	UNWIND_STOPS=n	stops per program (default 75, or what four seconds are enough for)
 *	UNWIND_ONLY=w	programs whose name holds w
 * Where a JIT's code is met, what is compared are the frames above it: neither side has tables for
 * the rest. */
#define _GNU_SOURCE
#include "unit.h"

#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "program/symbol/symbol.h"
#include "program/unwind/unwind.h"

enum { MAX_FRAMES = 2048 };

struct frames {
	uint64_t pc[MAX_FRAMES];
	uint32_t n;
	bool error;
};

static pid_t reading;

static bool read_word(void *arg, uint64_t addr, uint64_t *ret)
{
	struct iovec to = { ret, 8 }, from = { (void *)(uintptr_t)addr, 8 };

	return process_vm_readv(reading, &to, 1, &from, 1, 0) == 8;
}

static int on_frame(Dwfl_Frame *f, void *arg)
{
	struct frames *fr = arg;
	Dwarf_Addr pc;

	if (fr->n == MAX_FRAMES || !dwfl_frame_pc(f, &pc, NULL))
		return DWARF_CB_ABORT;
	fr->pc[fr->n++] = pc;
	return DWARF_CB_OK;
}

static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_linux_proc_find_elf,
					  .find_debuginfo = dwfl_standard_find_debuginfo };

static Dwfl *dwfl_attached(pid_t pid)
{
	Dwfl *d = dwfl_begin(&callbacks);

	dwfl_report_begin(d);
	dwfl_linux_proc_report(d, pid);
	dwfl_report_end(d, NULL, NULL);
	return dwfl_linux_proc_attach(d, pid, true) ? (dwfl_end(d), NULL) : d;
}

struct rate {
	uint32_t stops, same, short_libdw, frames, root;
	uint32_t jit; /* stops with a JIT's code on the stack */
	uint32_t frame_pointers; /* the walk by frame pointers, as the kernel and so bpftrace does it, gives the same */
};

static void print_case(struct unwind_process *p, const struct frames *a, const struct frames *b,
		       enum wire_unwind_end end, pid_t pid)
{
	struct symbols *s = symbols_new();
	uint32_t i = 0;

	while (i < a->n && i < b->n && a->pc[i] == b->pc[i])
		i++;
	printf("  differs at frame %u of %u (libdw %u%s), ours ends: %s\n", i, a->n, b->n,
	       b->error ? ", error" : "", unwind_end_text(end));
	for (uint32_t k = i > 1 ? i - 2 : 0; k < i + 2; k++) {
		for (int side = 0; side < 2; side++) {
			const struct frames *f = side ? b : a;
			const struct unwind_range *m;
			struct place pl;
			char text[200], rule[80] = "";

			if (k >= f->n)
				continue;
			symbols_user(s, pid, 0, f->pc[k] - (k > 0), &pl);
			place_format(&pl, f->pc[k], true, text, sizeof(text));
			m = unwind_process_find(p, f->pc[k] - (k > 0));
			if (m && m->image)
				unwind_rule_format(unwind_image_rule(m->image,
								     f->pc[k] - (k > 0) - m->bias),
						   rule, sizeof(rule));
			printf("    %u %s %#lx %s [%s]\n", k, side ? "libdw" : "ours ", f->pc[k],
			       text, rule);
		}
	}
	symbols_free(s);
}

/* Walks like the kernel (perf_callchain_user) and all tools that print its stacks. */
static void by_frame_pointers(const struct user_regs_struct *u, struct frames *f)
{
	uint64_t bp = u->rbp, pair[2];

	f->n = 0;
	f->pc[f->n++] = u->rip;
	while (f->n < MAX_FRAMES && !(bp & 7) && read_word(NULL, bp, &pair[0]) &&
	       read_word(NULL, bp + 8, &pair[1]) && pair[1]) {
		f->pc[f->n++] = pair[1];
		if (pair[0] <= bp)
			break;
		bp = pair[0];
	}
}

/* The frames before the first that lies in no file. */
static uint32_t native_frames(const struct unwind_process *p, const struct frames *f)
{
	for (uint32_t i = 0; i < f->n; i++) {
		const struct unwind_range *m = unwind_process_find(p, f->pc[i] - (i > 0));

		if (!m || !m->image)
			return i;
	}
	return f->n;
}

static bool same(const struct frames *a, const struct frames *b, uint32_t n)
{
	return a->n >= n && b->n >= n && !memcmp(a->pc, b->pc, n * 8);
}

static void compare(struct unwind_process *p, pid_t pid, Dwfl *d, struct rate *r)
{
	static struct frames ours, theirs, plain;
	struct user_regs_struct u;
	enum wire_unwind_end end;
	uint32_t native;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &u))
		return;
	struct unwind_regs regs = {
		.pc = u.rip,
		.sp = u.rsp,
		.bp = u.rbp,
		.reg = { u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8, u.r9, u.r10,
			 u.r11, u.r12, u.r13, u.r14, u.r15 },
	};

	theirs.n = 0;
	theirs.error = dwfl_getthread_frames(d, pid, on_frame, &theirs) != 0;
	if (!theirs.n)
		return;
	reading = pid;
	ours.n = unwind_walk(p, &regs, read_word, NULL, ours.pc, NULL, MAX_FRAMES, &end);
	by_frame_pointers(&u, &plain);
	r->stops++;
	r->frames += ours.n;
	r->root += end == WIRE_UNWIND_END_ROOT;
	r->frame_pointers += plain.n == theirs.n && same(&plain, &theirs, plain.n);
	native = native_frames(p, &theirs);
	uint32_t n = ours.n < theirs.n ? ours.n : theirs.n;

	if (same(&ours, &theirs, n) && ours.n == theirs.n) {
		r->same++;
		r->jit += native < theirs.n;
	} else if (native < theirs.n && same(&ours, &theirs, native + 1)) {
		r->same++;
		r->jit++;
	} else if (same(&ours, &theirs, n) && theirs.error && ours.n > theirs.n &&
		   end == WIRE_UNWIND_END_ROOT) {
		r->short_libdw++;
	} else {
		print_case(p, &ours, &theirs, end, pid);
	}
}

static pid_t start(char *const *argv)
{
	pid_t pid;

	fflush(stdout); /* or the child writes it, too */
	pid = fork();
	if (!pid) {
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr) ||
		    !freopen("/dev/null", "r", stdin))
			_exit(126);
		setenv("LC_ALL", "C", 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

static void sleep_us(uint32_t us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000L };

	nanosleep(&t, NULL);
}

/* Lets it run so long, passing signals on; false: it has ended. */
static bool run_for(pid_t pid, uint32_t us)
{
	int status;

	for (uint32_t t = 0; t <= us; t += 200) {
		pid_t got = waitpid(pid, &status, __WALL | WNOHANG);

		if (got == pid && !WIFSTOPPED(status))
			return false;
		if (got == pid)
			ptrace(PTRACE_CONT, pid, NULL, status >> 16 ? 0 : WSTOPSIG(status));
		else
			sleep_us(us - t < 200 ? us - t : 200);
	}
	return true;
}

static uint32_t stops_wanted(void)
{
	const char *n = getenv("UNWIND_STOPS");

	return n ? (uint32_t)atoi(n) : 75;
}

/* Returns true when it is time to end early. Without UNWIND_STOPS, a slow machine makes fewer
 * stops. */
static bool late(time_t began)
{
	return !getenv("UNWIND_STOPS") && time(NULL) - began > 4;
}

/* Returns the present mappings, to see whether they have changed. malloc()ed. */
static char *maps_text(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", (int)pid);
	char *text = NULL;
	size_t n;
	struct err *e = io_read_file(path, &text, &n);

	err_free(e);
	return e ? NULL : text;
}

/* A process and both sides' data about it. Made again when its mappings change. */
struct looked_at {
	pid_t pid;
	char *maps;
	Dwfl *dwfl;
	struct unwind_process *process;
};

static void look_away(struct looked_at *l)
{
	if (l->dwfl)
		dwfl_end(l->dwfl);
	unwind_process_free(l->process);
	free(l->maps);
	*l = (struct looked_at){ 0 };
}

static bool look_at(struct looked_at *l, pid_t pid, struct unwind_images *images)
{
	char *maps = maps_text(pid);

	if (l->maps && maps && l->pid == pid && !strcmp(l->maps, maps)) {
		free(maps);
		return true;
	}
	look_away(l);
	l->pid = pid;
	l->maps = maps;
	struct err *e = unwind_process_live(images, pid, &l->process);

	if (!e)
		l->dwfl = dwfl_attached(pid);
	else
		err_free(e);
	return l->dwfl != NULL;
}

static bool exists(const char *program)
{
	cleanup_free char *path = xstrdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");

	if (*program == '/')
		return !access(program, X_OK);
	for (char *save, *dir = strtok_r(path, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
		cleanup_free char *file = xasprintf("%s/%s", dir, program);

		if (!access(file, X_OK))
			return true;
	}
	return false;
}

/* The thread that has run most: of a JVM it is not the first. */
static pid_t busiest_thread(pid_t pid)
{
	cleanup_free char *dir = xasprintf("/proc/%d/task", (int)pid);
	unsigned long most = 0;
	pid_t found = pid;
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		cleanup_free char *path = xasprintf("%s/%s/schedstat", dir, e->d_name);
		char *text;
		size_t n;
		struct err *err = *e->d_name == '.' ? NULL : io_read_file(path, &text, &n);
		unsigned long ran;

		if (*e->d_name == '.' || err) {
			err_free(err);
			continue;
		}
		ran = strtoul(text, NULL, 10);
		free(text);
		if (ran > most) {
			most = ran;
			found = atoi(e->d_name);
		}
	}
	if (d)
		closedir(d);
	return found;
}

/* Stops the program at random points of its life; starts it again when it has ended. */
static void run_program(const char *name, char *const *argv, struct rate *total)
{
	struct unwind_images *images = unwind_images_new();
	struct looked_at look = { 0 };
	struct rate r = { 0 };
	uint32_t want = stops_wanted();
	time_t began = time(NULL);

	for (uint32_t starts = 0; r.stops < want && starts < want && !late(began); starts++) {
		pid_t first = start(argv), pid;
		int status;

		sleep_us(3000 + (uint32_t)random() % 40000 + (!strcmp(name, "java") ? 500000 : 0));
		pid = busiest_thread(first);
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL)) {
			kill(first, SIGKILL);
			waitpid(first, &status, 0);
			continue;
		}
		for (uint32_t i = 0; i < 60 + want / 8 && r.stops < want && !late(began); i++) {
			int sig = 0;

			if (!run_for(pid, (uint32_t)random() % 4000)) {
				pid = 0;
				break;
			}
			ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
			if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status)) {
				pid = 0;
				break;
			}
			if (status >> 16 != PTRACE_EVENT_STOP)
				sig = WSTOPSIG(status);
			if (look_at(&look, pid, images))
				compare(look.process, pid, look.dwfl, &r);
			ptrace(PTRACE_CONT, pid, NULL, sig);
		}
		look_away(&look);
		kill(first, SIGKILL);
		if (pid && pid != first)
			waitpid(pid, &status, __WALL);
		if (pid || waitpid(first, &status, __WALL | WNOHANG) == 0)
			waitpid(first, &status, __WALL);
	}
	printf("%-8s %5u stops, %6.2f%% as libdw (%u more where libdw gave up, %u up to a JIT's code), "
	       "%5.1f frames, %5.1f%% complete; by frame pointers %5.2f%%\n",
	       name, r.stops, r.stops ? 100.0 * (r.same + r.short_libdw) / r.stops : 0.0,
	       r.short_libdw, r.jit, r.stops ? (double)r.frames / r.stops : 0.0,
	       r.stops ? 100.0 * r.root / r.stops : 0.0,
	       r.stops ? 100.0 * r.frame_pointers / r.stops : 0.0);
	fflush(stdout);
	total->stops += r.stops;
	total->same += r.same + r.short_libdw;
	total->short_libdw += r.short_libdw;
	total->frame_pointers += r.frame_pointers;
	unwind_images_free(images);
}

static const char cxx_source[] =
	"#include <algorithm>\n#include <map>\n#include <regex>\n#include <string>\n#include <vector>\n"
	"#include <stdexcept>\n#include <csignal>\n#include <cstdlib>\n"
	"static volatile int hits;\n"
	"static void on_signal(int) { std::string s(50, 'x'); for (int i = 0; i < 200; i++) hits += s.size() + i; }\n"
	"static int deep(int n) { if (!n) throw std::runtime_error(\"x\"); std::string s(n, 'a');\n"
	"	try { return deep(n - 1) + (int)s.size(); } catch (std::logic_error &) { return 0; } }\n"
	"__attribute__((noinline)) static double aligned(int n) { alignas(64) volatile double v[16];\n"
	"	char *p = (char *)__builtin_alloca(n); p[0] = 1; for (int i = 0; i < 16; i++) v[i] = i * p[0];\n"
	"	return n > 3 ? v[n & 15] + aligned(n - 3) : v[1]; }\n"
	"int main() { std::signal(SIGUSR1, on_signal); std::map<std::string, int> m; double d = 0;\n"
	"	for (unsigned i = 0;; i++) {\n"
	"		std::vector<int> v(300); for (auto &x : v) x = rand();\n"
	"		std::sort(v.begin(), v.end(), [](int a, int b) { return a % 97 < b % 97; });\n"
	"		m[std::to_string(v[0])]++; if (m.size() > 500) m.clear();\n"
	"		if (i % 4 == 0) try { deep(8); } catch (std::exception &) { }\n"
	"		if (i % 8 == 0) std::regex_search(std::to_string(v[1]), std::regex(\"(1|2)+[0-9]*7\"));\n"
	"		if (i % 3 == 0) raise(SIGUSR1);\n"
	"		d += aligned(40); } return (int)d; }\n";

static char *make_cxx(void)
{
	char *bin = xstrdup("/tmp/descry-unwind-XXXXXX");
	int fd = mkstemp(bin);
	cleanup_free char *cmd = NULL;
	FILE *f;

	if (fd < 0)
		return NULL;
	close(fd);
	cmd = xasprintf("g++ -O2 -march=x86-64-v2 -w -x c++ -o %s - 2>/dev/null", bin);
	f = popen(cmd, "w");
	if (f)
		fputs(cxx_source, f);
	if (f && !pclose(f))
		return bin;
	unlink(bin);
	free(bin);
	return NULL;
}

/* A Java program in a file of its own; the file's name. */
static char *java_source(void)
{
	static char path[] = "/tmp/descry-unwind.java";
	FILE *f = fopen(path, "we");

	if (!f)
		return path;
	fputs("import java.util.*;\n"
	      "class U { static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"
	      "public static void main(String[] a) throws Exception { while (true) { fib(15);\n"
	      " Map<String, byte[]> m = new HashMap<>(); for (int i = 0; i < 500; i++) m.put(\"k\" + i, new byte[500]);\n"
	      " java.util.zip.CRC32 c = new java.util.zip.CRC32(); for (byte[] b : m.values()) c.update(b);\n"
	      " System.identityHashCode(c); new java.io.File(\"/tmp\").listFiles(); } } }\n",
	      f);
	fclose(f);
	return path;
}

static void test_programs(void **state)
{
	static const char python[] =
		"import json,re,random\n"
		"def f(n): return n if n<2 else f(n-1)+f(n-2)\n"
		"while True:\n"
		" f(9); s=json.dumps({str(i):[random.random()]*3 for i in range(40)}); json.loads(s)\n"
		" re.findall(r'(\\d+\\.\\d)+', s); sorted(s, key=lambda c: -ord(c)); sum(map(lambda x:x*x, range(300)))\n";
	static const char bash[] =
		"f(){ local x=$1; ((x>0)) && f $((x-1)); y=${x//1/2}; }; while :; do f 12; "
		"for i in {1..50}; do [[ a$i =~ ^a.*[0-9]$ ]]; z=$(( i*i )); printf -v w '%05d' $i; done; done";
	static const char perl[] =
		"while(1){ my %h; for my $i (1..300){ $h{\"k$i\"}=[map {$_*2} 1..5]; } "
		"my @k = sort { $h{$a}[0] <=> $h{$b}[0] } keys %h; join(',',@k) =~ s/k(\\d+)/$1/gr; }";
	char *cxx = make_cxx();
	struct {
		const char *name;
		char *argv[12];
	} programs[] = {
		{ "python3", { "/usr/bin/python3", "-c", (char *)python } },
		{ "bash", { "bash", "-c", (char *)bash } },
		{ "perl", { "perl", "-e", (char *)perl } },
		{ "git",
		  { "git", "-C", (char *)(getenv("UNWIND_GIT") ? getenv("UNWIND_GIT") : "."), "log",
		    "-p", "--stat" } },
		{ "c++", { cxx } },
		{ "gcc",
		  { "sh", "-c",
		    "exec $(gcc -print-prog-name=cc1) -quiet -O3 -o /dev/null "
		    "${UNWIND_C:-src/program/type/graph.c} -Isrc -I." } },
		{ "sqlite3",
		  { "sqlite3", ":memory:",
		    "with recursive c(x) as (select 1 union all select x+1 from c limit 3000000) "
		    "select x%7, count(*), max(hex(x)) from c group by 1 order by 2;" } },
		{ "node",
		  { "node", "-e",
		    "while(1){let a=[];for(let i=0;i<1e4;i++)a.push({k:'x'+i});"
		    "JSON.parse(JSON.stringify(a)).sort((x,y)=>x.k<y.k?1:-1)}" } },
		{ "ruby",
		  { "ruby", "-e",
		    "def f(n) n < 2 ? n : f(n-1) + f(n-2) end; "
		    "loop { f(12); h = {}; 400.times { |i| h[\"k#{i}\"] = [i.to_s] * 3 }; "
		    "h.sort_by { |k, v| v[0] }.map { |k, v| k.gsub(/(\\d+)/) { $1.reverse } }.join }" } },
		{ "java", { "java", "-Xss2m", java_source() } },
		{ "ripgrep",
		  { "rg", "-uu", "-j1", "-c", "(unwind|stack)+[a-z]*.{1,20}(frame|table)",
		    "/usr/include", "/usr/share" } },
		{ "fd", { "fdfind", "-HI", "-j1", "[a-z]+.*\\.(h|so|c|py|d)$", "/usr" } },
		{ "gdb",
		  { "gdb", "-q", "-nx", "-batch", "-ex", "info functions u.*w", "-ex",
		    "info types s", "/usr/bin/gdb" } },
		{ "xz", { "sh", "-c", "exec xz -9 -c /usr/bin/python3* /usr/bin/gdb" } },
	};
	struct rate total = { 0 };
	const char *only = getenv("UNWIND_ONLY");

	srandom((unsigned)time(NULL));
	for (uint32_t i = 0; i < ARRAY_SIZE(programs); i++) {
		if (!programs[i].argv[0] || (only && !strstr(only, programs[i].name)))
			continue;
		if (exists(programs[i].argv[0]))
			run_program(programs[i].name, programs[i].argv, &total);
		else
			printf("%-8s MISSING: there is no %s here\n", programs[i].name,
			       programs[i].argv[0]);
	}
	if (cxx)
		unlink(cxx);
	free(cxx);
	printf("all      %5u stops, %6.2f%% as libdw (%u more where libdw gave up); by frame pointers, as "
	       "bpftrace walks, %.2f%%\n",
	       total.stops, total.stops ? 100.0 * total.same / total.stops : 0.0, total.short_libdw,
	       total.stops ? 100.0 * total.frame_pointers / total.stops : 0.0);
	assert_true(total.stops > 0);
	assert_true(total.same * 100 >= total.stops * (total.stops >= 1000 ? 99 : 95));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_programs) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
