/* Whole programs under probes at every entry and every return that program/text/ offers.
 *
 *	text_stress --table FILE...          prints the share of functions and returns that can be patched, per file
 *	text_stress [-e] [-s] [-m SEED] [-v] -- CMD ARG...  runs CMD with all of them patched; exit code of CMD
 *
 * Runs CMD and all its descendants under ptrace; whenever one of them has executed a program and
 * reached the program's own entry (all libraries mapped, nothing initialised but the dynamic
 * linker) each module is patched: a stub for every site, whose thunk checks struct wire_stub and
 * counts. The thunks overwrite all that a stub kind allows: flags, and the red zone. Standard
 * output is the program's; a line of totals goes to standard error with -v. -e: entries only. -m:
 * an offset of each function too, chosen by SEED. -s: system calls too, before and after.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "base/mem.h"
#include "program/text/text.h"

enum { COUNTERS = 1 << 22, THUNKS = 4096 };

static bool entries_only, syscalls_too, verbose;
static uint32_t offset_seed;
static uint64_t total_hits, total_entries, total_returns, total_processes, analysis_ns;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void die(struct err *e)
{
	fprintf(stderr, "text_stress: %s\n", e->text);
	exit(99);
}

/* --- analysis --- */

/* One patch: a site and all points in it. */
struct patch {
	struct text_site site;
	VEC(struct text_point) points;
};
struct module {
	char *path;
	struct object *object;
	VEC(struct patch) patches;
	uint64_t lo, hi; /* of its segments */
	uint32_t functions, entries, entry_traps, entry_none, returns, return_traps, unseen;
	uint32_t mid_entries, never, go;
	uint64_t ns;
	struct text_stats stats;
};

struct reasons {
	const char *text;
	uint32_t entry, ret;
};
static VEC(struct reasons) reasons;

static struct reasons *reason_of(const char *text)
{
	for (uint32_t i = 0; i < reasons.n; i++)
		if (!strcmp(reasons.v[i].text, text))
			return &reasons.v[i];
	vec_push(&reasons, (struct reasons){ .text = text });
	return vec_last(&reasons);
}

static int by_addr(const void *a, const void *b)
{
	const struct text_site *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

typedef VEC(struct text_site) site_list;

static void add_site(site_list *all, const struct text_site *s)
{
	if (s->mode == TEXT_PATCH)
		vec_push(all, *s);
}

static void add_returns(struct module *m, struct text *t, uint64_t start, site_list *all)
{
	cleanup_free struct text_site *sites = NULL;
	const char *why = NULL;
	struct err *e;
	uint32_t n;

	e = text_returns(t, start, &sites, &n, &why);
	if (e)
		die(e);
	if (!n) {
		if (strstr(why, "never returns"))
			m->never++;
		else
			m->unseen++;
		reason_of(why)->ret++;
	}
	for (uint32_t i = 0; i < n; i++) {
		/* a cold part shows its returns twice: as part and as a function of its own */
		if (sites[i].mode == TEXT_PATCH) {
			m->returns++;
		} else {
			m->return_traps++;
			reason_of(sites[i].reason)->ret++;
		}
		add_site(all, &sites[i]);
	}
}

/* Chooses one offset of the function, or none when eight tries find no instruction. */
static void add_offset(struct text *t, uint64_t start, uint64_t end, site_list *all)
{
	uint64_t x = (start + offset_seed) * 0x9e3779b97f4a7c15ull;

	for (int i = 0; i < 8; i++) {
		struct text_site s;
		struct err *e;

		x ^= x >> 29;
		x *= 0xbf58476d1ce4e5b9ull;
		x ^= x >> 32;
		e = text_offset(t, start, x % (end - start), &s);
		if (e)
			die(e);
		if (s.mode == TEXT_PATCH) {
			add_site(all, &s);
			return;
		}
	}
}

static void add_syscalls(struct text *t, site_list *all)
{
	cleanup_free struct text_syscall *v = NULL;
	uint32_t n;
	struct err *e = text_syscalls(t, 0, &v, &n);

	if (e)
		die(e);
	for (uint32_t i = 0; i < n; i++) {
		add_site(all, &v[i].site);
		v[i].site.at += 2;
		add_site(all, &v[i].site);
	}
}

static uint64_t split_ret(const struct text_split *s)
{
	return s ? s->ret : 0;
}

/* Joins sites that overlap. A point that is there twice (aliases, parts) fires once. */
static void make_patches(struct module *m, site_list *all)
{
	if (all->n)
		qsort(all->v, all->n, sizeof(*all->v), by_addr);
	for (uint32_t i = 0; i < all->n; i++) {
		const struct text_site *s = &all->v[i];
		struct patch *p = m->patches.n ? vec_last(&m->patches) : NULL;
		struct text_point point = { .kind = s->kind };
		bool known = false;

		if (p && s->addr < p->site.addr + p->site.len) {
			struct text_site joined;

			if (!text_join(&p->site, s, &joined))
				continue;
			p->site = joined;
		} else {
			p = vec_add(&m->patches);
			p->site = *s;
		}
		point.at = (uint8_t)(s->addr + s->at - p->site.addr);
		for (uint32_t k = 0; k < p->points.n; k++)
			known |= p->points.v[k].at == point.at &&
				 p->points.v[k].kind == point.kind &&
				 split_ret(p->points.v[k].split) == s->split.ret;
		if (known || p->points.n == TEXT_POINTS_MAX)
			continue;
		if (s->split.ret) {
			struct text_split *kept = xmalloc(sizeof(*kept));

			*kept = s->split;
			point.split = kept; /* as long as the module */
		}
		vec_push(&p->points, point);
	}
}

static struct module *analyse(const char *path)
{
	static VEC(struct module *) known;
	struct module *m;
	struct text *t;
	struct err *e;
	uint64_t start, end, begun = now_ns();
	site_list all = { 0 };

	for (uint32_t i = 0; i < known.n; i++)
		if (!strcmp(known.v[i]->path, path))
			return known.v[i];
	m = xcalloc(1, sizeof(*m));
	m->path = xstrdup(path);
	vec_push(&known, m);
	e = object_open(path, &m->object);
	if (!e)
		e = text_open(m->object, &t);
	if (e)
		die(e);
	m->go = object_is_go(m->object);
	for (uint32_t i = 0; text_function_at(t, i, &start, &end); i++) {
		struct text_site s;

		e = text_entry(t, start, &s);
		if (e)
			die(e);
		m->functions++;
		m->entries += s.mode == TEXT_PATCH;
		m->mid_entries += s.mode == TEXT_PATCH && s.kind == WIRE_STUB_MID;
		m->entry_traps += s.mode == TEXT_TRAP;
		m->entry_none += s.mode == TEXT_NONE;
		if (s.mode != TEXT_PATCH)
			reason_of(s.reason)->entry++;
		add_site(&all, &s);
		/* cold parts belong to their functions */
		if (!entries_only && s.kind != WIRE_STUB_MID)
			add_returns(m, t, start, &all);
		if (offset_seed)
			add_offset(t, start, end, &all);
	}
	if (syscalls_too)
		add_syscalls(t, &all);
	text_stats(t, &m->stats);
	make_patches(m, &all);
	vec_fini(&all);
	text_free(t);
	struct object_segment g;

	m->lo = UINT64_MAX;
	for (uint32_t i = 0; object_segment(m->object, i, &g); i++) {
		if (g.type != PT_LOAD)
			continue;
		m->lo = g.addr < m->lo ? g.addr : m->lo;
		m->hi = g.addr + g.memsz > m->hi ? g.addr + g.memsz : m->hi;
	}
	m->ns = now_ns() - begun;
	analysis_ns += m->ns;
	return m;
}

static const char *tail_of(const char *path)
{
	const char *s = strrchr(path, '/');

	return s ? s + 1 : path;
}

static double share(uint64_t a, uint64_t of)
{
	return of ? 100.0 * (double)a / (double)of : 0;
}

static int table(char **files)
{
	printf("%-28s %9s %7s %6s %5s %9s %7s %6s %6s %6s %7s %7s\n", "binary", "functions",
	       "entry%", "trap", "none", "returns", "patch%", "trap", "unseen", "seen%", "text MB",
	       "ms");
	for (; *files; files++) {
		struct module *m = analyse(*files);
		uint32_t fns = m->functions - m->never;

		printf("%-28.28s %9u %7.2f %6u %5u %9u %7.2f %6u %6u %6.1f %7.1f %7.0f\n",
		       tail_of(m->path), m->functions, share(m->entries, m->functions),
		       m->entry_traps, m->entry_none, m->returns + m->return_traps,
		       share(m->returns, m->returns + m->return_traps), m->return_traps, m->unseen,
		       share(fns - m->unseen, fns), (double)m->stats.text_bytes / 1e6,
		       (double)m->ns / 1e6);
	}
	printf("\nreasons (entries, returns)\n");
	for (uint32_t i = 0; i < reasons.n; i++)
		printf("%8u %8u  %s\n", reasons.v[i].entry, reasons.v[i].ret, reasons.v[i].text);
	return 0;
}

/* --- a process --- */

static uint64_t remote_syscall(pid_t pid, uint64_t pc, long nr, uint64_t a, uint64_t b, uint64_t c,
			       uint64_t d, uint64_t e, uint64_t f)
{
	struct user_regs_struct saved, regs;
	long text;
	int status;

	ptrace(PTRACE_GETREGS, pid, 0, &saved);
	regs = saved;
	errno = 0;
	text = ptrace(PTRACE_PEEKTEXT, pid, pc, 0);
	ptrace(PTRACE_POKETEXT, pid, pc, (text & ~0xffffffL) | 0xcc050f);
	regs.rip = pc;
	regs.rax = (uint64_t)nr;
	regs.orig_rax = (uint64_t)-1;
	regs.rdi = a;
	regs.rsi = b;
	regs.rdx = c;
	regs.r10 = d;
	regs.r8 = e;
	regs.r9 = f;
	ptrace(PTRACE_SETREGS, pid, 0, &regs);
	ptrace(PTRACE_CONT, pid, 0, 0);
	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status) ||
	    WSTOPSIG(status) != SIGTRAP) {
		fprintf(stderr, "text_stress: a system call in %d went wrong\n", pid);
		exit(99);
	}
	ptrace(PTRACE_GETREGS, pid, 0, &regs);
	ptrace(PTRACE_POKETEXT, pid, pc, text);
	ptrace(PTRACE_SETREGS, pid, 0, &saved);
	return regs.rax;
}

struct area {
	uint64_t lo, hi;
};
static VEC(struct area) areas;

struct mapped {
	struct module *m;
	uint64_t bias;
};

/* Finds the modules of the process, by file. Adds every mapping to areas. */
static uint32_t read_maps(pid_t pid, struct mapped *ret, uint32_t max)
{
	char name[64], line[4400], path[4096];
	uint64_t lo, hi, off;
	uint32_t n = 0;
	char perms[8];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "r");
	areas.n = 0;
	while (f && fgets(line, sizeof(line), f)) {
		path[0] = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]", &lo,
			   &hi, perms, &off, path) < 4)
			continue;
		vec_push(&areas, (struct area){ lo, hi });
		if (path[0] != '/' || !strncmp(path, "/dev/zero", 9) || off || n == max)
			continue;
		struct module *m = analyse(path);
		bool again = false;

		for (uint32_t i = 0; i < n; i++)
			again |= ret[i].m == m;
		if (!again)
			ret[n++] = (struct mapped){ m, lo - (m->lo & ~4095ull) };
	}
	if (f)
		fclose(f);
	return n;
}

/* Finds free addresses within reach of [lo, hi): below it, else above. */
static uint64_t find_room(uint64_t lo, uint64_t hi, uint64_t size)
{
	uint64_t best = 0;

	for (uint32_t i = 0; i < areas.n; i++) {
		uint64_t before = i ? areas.v[i - 1].hi : 0x10000, gap = areas.v[i].lo;

		if (gap > before && gap - before > size + 0x20000) {
			uint64_t at = gap - size - 0x10000;

			at = at > hi && before + 0x10000 > hi ? before + 0x10000 : at;
			if ((at < lo ? hi - at : at + size - lo) < 0x70000000)
				best = at & ~0xfffull;
		}
	}
	return best;
}

/* Thunks at the start of an island: by kind. Counter index: struct wire_stub.probe. */
static uint32_t make_thunks(uint8_t *p, uint64_t counters, uint32_t offset[WIRE_STUB_KINDS])
{
	uint32_t n = 0;

	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		int32_t back = -(WIRE_STUB_CALL + (kind == WIRE_STUB_MID ? WIRE_STUB_LEA : 0) + 16);
		uint8_t code[128];
		uint32_t k = 0;
#define C(...) \
	do { \
		const uint8_t c_[] = { __VA_ARGS__ }; \
		memcpy(code + k, c_, sizeof(c_)); \
		k += sizeof(c_); \
	} while (0)
#define I32(v) C((uint8_t)(v), (uint8_t)((v) >> 8), (uint8_t)((v) >> 16), (uint8_t)((v) >> 24))
		offset[kind] = n;
		if (kind == WIRE_STUB_MID)
			C(0x9c);                                            /* pushf */
		C(0x50);                                                    /* push %rax */
		C(0x51);                                                    /* push %rcx */
		C(0x48, 0x8b, 0x44, 0x24, kind == WIRE_STUB_MID ? 24 : 16); /* mov x(%rsp),%rax */
		C(0x83, 0xb8);
		I32(back + 12);
		C((uint8_t)kind);          /* cmpl $kind,stub.kind */
		C(0x74, 0x02, 0x0f, 0x0b); /* je .+2; ud2 */
		C(0x8b, 0x88);
		I32(back + 8); /* mov stub.probe,%ecx */
		C(0x81, 0xf9);
		I32(COUNTERS);             /* cmp $COUNTERS,%ecx */
		C(0x72, 0x02, 0x0f, 0x0b); /* jb .+2; ud2 */
		C(0x48, 0xb8);
		I32((uint32_t)counters);
		I32((uint32_t)(counters >> 32)); /* movabs $counters,%rax */
		C(0x48, 0xff, 0x04, 0xc8);       /* incq (%rax,%rcx,8) */
		C(0x59, 0x58);                   /* pop %rcx; pop %rax */
		if (kind == WIRE_STUB_MID) {
			C(0x9d); /* popf */
		} else {
			/* xor $-1: spoil flags; write into the red zone */
			C(0x48, 0x83, 0x64, 0x24, 0xf0, 0x00); /* andq $0,-16(%rsp) */
			C(0xf9);                               /* stc */
		}
		C(0xc3);
		memcpy(p + n, code, k);
		n += (k + 15) & ~15u;
	}
	return n;
}

/* Notes the place and the purpose of a stub, so that a crash in or behind it can name it. */
struct placed {
	uint64_t stub, end, site;
	const struct module *m;
};
static VEC(struct placed) placed;

struct process {
	pid_t pid;
	uint64_t counters;
};
static VEC(struct process) processes;

static void write_all(int fd, const void *p, size_t n, uint64_t at)
{
	if (pwrite(fd, p, n, (off_t)at) != (ssize_t)n) {
		fprintf(stderr, "text_stress: write at 0x%" PRIx64 ": %s\n", at, strerror(errno));
		exit(99);
	}
}

static void patch_module(pid_t pid, int mem, uint64_t pc, const struct mapped *mm,
			 uint64_t counters, uint32_t *next)
{
	const struct module *m = mm->m;
	uint64_t size = THUNKS, lo = m->lo + mm->bias, hi = m->hi + mm->bias, at, got;
	cleanup_free uint8_t *island = NULL;
	uint32_t offset[WIRE_STUB_KINDS], n;

	for (uint32_t i = 0; i < m->patches.n; i++)
		size += 192 + m->patches.v[i].points.n * 64;
	size = (size + 4095) & ~4095ull;
	at = find_room(lo, hi, size);
	got = !at ? 0
		  : remote_syscall(pid, pc, SYS_mmap, at, size, PROT_READ | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1,
				   0);
	if (!at || got != at) {
		fprintf(stderr, "text_stress: no room near %s (0x%" PRIx64 ": %" PRId64 ")\n",
			m->path, at, (int64_t)got);
		exit(99);
	}
	vec_push(&areas, (struct area){ at, at + size });
	for (uint32_t i = areas.n - 1; i && areas.v[i].lo < areas.v[i - 1].lo; i--) {
		struct area swap = areas.v[i];

		areas.v[i] = areas.v[i - 1];
		areas.v[i - 1] = swap;
	}
	island = xcalloc(1, size);
	memset(island, 0xcc, size);
	n = make_thunks(island, counters, offset);
	for (uint32_t i = 0; i < m->patches.n; i++) {
		const struct patch *p = &m->patches.v[i];
		uint16_t moved[TEXT_SITE_MAX];
		uint8_t now[TEXT_SITE_MAX], bytes[TEXT_SITE_MAX];
		uint32_t used, code;
		struct err *e;

		for (uint32_t k = 0; k < p->points.n; k++) {
			p->points.v[k].probe = *next < COUNTERS - 1 ? (*next)++ : *next;
			p->points.v[k].gate = at + offset[p->points.v[k].kind];
			total_entries += p->points.v[k].kind == WIRE_STUB_ENTRY;
			total_returns += p->points.v[k].kind != WIRE_STUB_ENTRY;
		}
		n = (n + 15) & ~15u;
		e = text_stub_points(&p->site, mm->bias, at + n, p->points.v, p->points.n,
				     island + n, (uint32_t)(size - n), &used, &code, moved);
		if (e)
			die(e);
		if (pread(mem, now, p->site.len, (off_t)(p->site.addr + mm->bias)) != p->site.len ||
		    memcmp(now, p->site.bytes, p->site.len)) {
			fprintf(stderr, "text_stress: %s at 0x%" PRIx64 " is not as in the file\n",
				m->path, p->site.addr);
			exit(99);
		}
		text_patch(&p->site, mm->bias, at + n + code, bytes);
		write_all(mem, bytes, p->site.len, p->site.addr + mm->bias);
		if (verbose)
			vec_push(&placed,
				 (struct placed){ at + n, at + n + used, p->site.addr, m });
		n += used;
	}
	write_all(mem, island, size, at);
}

/* AT_ENTRY, and whether there is a dynamic linker (AT_BASE). */
static uint64_t auxv(pid_t pid, uint64_t type)
{
	char name[64];
	uint64_t pair[2], found = 0;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/auxv", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, pair, sizeof(pair)) == sizeof(pair) && pair[0])
		if (pair[0] == type)
			found = pair[1];
	if (fd >= 0)
		close(fd);
	return found;
}

static void patch_process(pid_t pid)
{
	uint64_t entry = auxv(pid, AT_ENTRY), counters;
	struct user_regs_struct regs;
	struct mapped maps[256];
	uint32_t n, next = 0;
	char name[64];
	int mem, status;
	long text;

	/* also when it has the value already, because the kernel still has to write execve's result
	 * into the registers */
	text = ptrace(PTRACE_PEEKTEXT, pid, entry, 0);
	ptrace(PTRACE_POKETEXT, pid, entry, (text & ~0xffL) | 0xcc);
	ptrace(PTRACE_CONT, pid, 0, 0);
	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status) ||
	    WSTOPSIG(status) != SIGTRAP)
		return; /* ended in the dynamic linker */
	ptrace(PTRACE_POKETEXT, pid, entry, text);
	ptrace(PTRACE_GETREGS, pid, 0, &regs);
	regs.rip = entry;
	ptrace(PTRACE_SETREGS, pid, 0, &regs);
	n = read_maps(pid, maps, 256);
	snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	mem = open(name, O_RDWR | O_CLOEXEC);
	counters = remote_syscall(pid, entry, SYS_mmap, 0, COUNTERS * 8ull, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, (uint64_t)-1, 0);
	n = read_maps(pid, maps, 256);
	for (uint32_t i = 0; i < n; i++)
		patch_module(pid, mem, entry, &maps[i], counters, &next);
	close(mem);
	total_processes++;
	vec_push(&processes, (struct process){ pid, counters });
}

static void read_counters(pid_t pid)
{
	for (uint32_t i = 0; i < processes.n; i++) {
		cleanup_free uint64_t *v = NULL;
		char name[64];
		int mem;

		if (processes.v[i].pid != pid)
			continue;
		v = xcalloc(COUNTERS, 8);
		snprintf(name, sizeof(name), "/proc/%d/mem", pid);
		mem = open(name, O_RDONLY | O_CLOEXEC);
		if (mem >= 0 && pread(mem, v, COUNTERS * 8ull, (off_t)processes.v[i].counters) > 0)
			for (uint32_t k = 0; k < COUNTERS; k++)
				total_hits += v[k];
		if (mem >= 0)
			close(mem);
		processes.v[i] = processes.v[--processes.n];
		return;
	}
}

/* The last is the nearest in time. */
static void name_stub(uint64_t pc)
{
	for (uint32_t i = placed.n; i--;)
		if (pc >= placed.v[i].stub && pc <= placed.v[i].end) {
			fprintf(stderr,
				"text_stress:   0x%" PRIx64 ": stub+0x%" PRIx64
				" for %s at 0x%" PRIx64 "\n",
				pc, pc - placed.v[i].stub, placed.v[i].m->path, placed.v[i].site);
			return;
		}
}

static int run(char **argv)
{
	pid_t child = fork(), pid;
	int status, code = 99;

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[0], argv);
		fprintf(stderr, "text_stress: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	waitpid(child, &status, __WALL);
	ptrace(PTRACE_SETOPTIONS, child, 0,
	       PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
		       PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
	ptrace(PTRACE_CONT, child, 0, 0);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int sig = 0;

		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (WIFSIGNALED(status) && verbose)
				fprintf(stderr, "text_stress: %d died of signal %d\n", pid,
					WTERMSIG(status));
			if (pid == child)
				code = WIFEXITED(status) ? WEXITSTATUS(status)
							 : 128 + WTERMSIG(status);
			continue;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
			patch_process(pid);
		} else if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) {
			read_counters(pid);
		} else if (status >> 16) {
			; /* fork, vfork, clone */
		} else if (WSTOPSIG(status) != SIGSTOP) {
			sig = WSTOPSIG(status);
			if (verbose &&
			    (sig == SIGSEGV || sig == SIGILL || sig == SIGTRAP || sig == SIGBUS)) {
				struct user_regs_struct regs;

				ptrace(PTRACE_GETREGS, pid, 0, &regs);
				fprintf(stderr,
					"text_stress: %d: signal %d at 0x%llx, rax %llx rsp %llx\n",
					pid, sig, regs.rip, regs.rax, regs.rsp);
				name_stub(regs.rip);
				for (int k = -2; k < 30; k++)
					fprintf(stderr, "text_stress:   %d(%%rsp) 0x%lx\n", k * 8,
						ptrace(PTRACE_PEEKDATA, pid,
						       regs.rsp + (uint64_t)k * 8, 0));
				for (int k = 0; k < 12; k++)
					name_stub((uint64_t)ptrace(PTRACE_PEEKDATA, pid,
								   regs.rsp + (uint64_t)k * 8, 0));
			}
		}
		ptrace(PTRACE_CONT, pid, 0, sig);
	}
	if (verbose)
		fprintf(stderr,
			"text_stress: %" PRIu64 " processes, %" PRIu64 " entries and %" PRIu64
			" returns patched, %" PRIu64 " hits, analysis %.0f ms\n",
			total_processes, total_entries, total_returns, total_hits,
			(double)analysis_ns / 1e6);
	return code;
}

int main(int argc, char **argv)
{
	int i = 1;

	if (i < argc && !strcmp(argv[i], "--table"))
		return table(argv + 2);
	for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++) {
		entries_only |= !strcmp(argv[i], "-e");
		verbose |= !strcmp(argv[i], "-v");
		syscalls_too |= !strcmp(argv[i], "-s");
		if (!strcmp(argv[i], "-m") && i + 1 < argc)
			offset_seed = (uint32_t)strtoul(argv[++i], NULL, 0);
	}
	if (i < argc && !strcmp(argv[i], "--"))
		i++;
	if (i >= argc) {
		fprintf(stderr,
			"usage: text_stress --table FILE... | [-e] [-s] [-m SEED] [-v] -- CMD ARG...\n");
		return 99;
	}
	return run(argv + i);
}
