/* Stacks of running programs, stopped at random points: our walk against libdw's, frame by frame. Prints the rate of
 * each program and every case that differs. UNWIND_STOPS=n: stops per program (default 12). */
#define _GNU_SOURCE
#include "unit.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
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
			const struct unwind_mapping *m;
			struct place pl;
			char text[200], rule[80] = "";

			if (k >= f->n)
				continue;
			symbols_user(s, pid, f->pc[k] - (k > 0), &pl);
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

static void compare(struct unwind_process *p, pid_t pid, Dwfl *d, struct rate *r)
{
	static struct frames ours, theirs;
	struct user_regs_struct u;
	enum wire_unwind_end end;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &u))
		return;
	struct unwind_regs regs = {
		.pc = u.rip, .sp = u.rsp, .bp = u.rbp, .di = u.rdi, .r10 = u.r10
	};

	theirs.n = 0;
	theirs.error = dwfl_getthread_frames(d, pid, on_frame, &theirs) != 0;
	if (!theirs.n)
		return;
	reading = pid;
	ours.n = unwind_walk(p, &regs, read_word, NULL, ours.pc, MAX_FRAMES, &end);
	r->stops++;
	r->frames += ours.n;
	r->root += end == WIRE_UNWIND_END_ROOT;
	uint32_t n = ours.n < theirs.n ? ours.n : theirs.n;
	bool prefix = !memcmp(ours.pc, theirs.pc, n * 8);

	if (prefix && ours.n == theirs.n) {
		r->same++;
	} else if (prefix && theirs.error && ours.n > theirs.n && end == WIRE_UNWIND_END_ROOT) {
		r->short_libdw++;
	} else {
		print_case(p, &ours, &theirs, end, pid);
	}
}

static pid_t start(char *const *argv)
{
	pid_t pid = fork();

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

	return n ? (uint32_t)atoi(n) : 12;
}

/* Stops the program at random points of its life; starts it again when it has ended. */
static void run_program(const char *name, char *const *argv, struct rate *total)
{
	struct unwind_images *images = unwind_images_new();
	struct rate r = { 0 };
	uint32_t want = stops_wanted();

	for (uint32_t starts = 0; r.stops < want && starts < want; starts++) {
		pid_t pid = start(argv);
		int status;

		sleep_us(3000 + (uint32_t)random() % 40000);
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL)) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			continue;
		}
		for (uint32_t i = 0; i < 60 && r.stops < want; i++) {
			struct unwind_process *p;
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
			struct err *e = unwind_process_read(images, pid, &p);
			Dwfl *d = e ? NULL : dwfl_attached(pid);

			if (d) {
				compare(p, pid, d, &r);
				dwfl_end(d);
			}
			if (!e)
				unwind_process_free(p);
			err_free(e);
			ptrace(PTRACE_CONT, pid, NULL, sig);
		}
		if (pid) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, __WALL);
		}
	}
	printf("%-12s %5u stops, %6.2f%% as libdw (%u more where libdw gave up), %5.1f frames, %5.1f%% complete\n",
	       name, r.stops, r.stops ? 100.0 * (r.same + r.short_libdw) / r.stops : 0.0,
	       r.short_libdw, r.stops ? (double)r.frames / r.stops : 0.0,
	       r.stops ? 100.0 * r.root / r.stops : 0.0);
	fflush(stdout);
	total->stops += r.stops;
	total->same += r.same + r.short_libdw;
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
		char *argv[8];
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
	};
	struct rate total = { 0 };

	srandom((unsigned)time(NULL));
	for (uint32_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (programs[i].argv[0] &&
		    (!getenv("UNWIND_ONLY") || strstr(getenv("UNWIND_ONLY"), programs[i].name)))
			run_program(programs[i].name, programs[i].argv, &total);
	if (cxx)
		unlink(cxx);
	free(cxx);
	printf("all          %5u stops, %6.2f%% as libdw\n", total.stops,
	       total.stops ? 100.0 * total.same / total.stops : 0.0);
	assert_true(total.stops > 0);
	/* JIT code (node) and a handful of assembly routines have no tables. */
	assert_true(total.same * 100 >= total.stops * 85);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_programs) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
