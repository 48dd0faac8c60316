/* serial: a program under torture (tracee/torture.c) is patched by tracers that are killed at
 * random instants, and by tracers that attach and detach in a loop. It must not notice.
 * DESCRY_TORTURE=N: number of kills, 60 by default. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "base/procdir.h"
#include "load/inproc/attach/watchdog.h"
#include "load/inproc/undo/undo.h"
#include "unit.h"

enum {
	SITES = 8,
	FACTS_SIZE = 1 << 20,
	CODE_SIZE = 1 << 16,
	PRIVATE_SIZE = 1 << 17,
	ISLAND_SIZE = 4096,
	STUB_SIZE = 64,
	AT_UNDO = 65536, /* offsets in the facts */
	AT_PROCESSES = 262144,
	AT_COUNTS = 131072,
	AT_SAID = 524288,
};

struct tracee {
	pid_t pid;
	FILE *out;
	uint64_t work[SITES];
	char ready[512];
};

/* --- the tracee --- */

static void start_tracee(struct tracee *t, const char *secs)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *p;
	int fds[2];

	assert_true(n > 0);
	path[n] = '\0';
	strcpy(strrchr(path, '/') + 1, "tracee_torture");
	assert_int_equal(pipe(fds), 0);
	t->pid = fork();
	if (t->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		execl(path, path, secs, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	t->out = fdopen(fds[0], "r");
	assert_non_null(fgets(t->ready, sizeof(t->ready), t->out));
	assert_int_equal(strncmp(t->ready, "ready ", 6), 0);
	p = strchr(t->ready + 6, ' ');
	for (int i = 0; i < SITES; i++)
		t->work[i] = strtoull(p, &p, 16);
}

/* Ends it: no errors, and the checksum. */
static uint64_t end_tracee(struct tracee *t, int may_interrupt)
{
	unsigned long long sum = 0;
	int status, errors = -1, interrupted = -1;
	char line[512];

	kill(t->pid, SIGTERM);
	while (fgets(line, sizeof(line), t->out)) {
		sscanf(line, "checksum %llx errors %d interrupted %d", &sum, &errors, &interrupted);
		print_message("%s", line);
	}
	fclose(t->out);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	assert_int_equal(status, 0);
	assert_int_equal(errors, 0);
	assert_in_range(interrupted, 0, may_interrupt);
	return sum;
}

static int descry_mappings(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", pid);
	char *text, *p;
	size_t len;
	int n = 0;

	if (io_read_file(path, &text, &len))
		return -1;
	for (p = text; (p = strstr(p, "/memfd:descry-")); p++)
		n++;
	for (p = text; *p; p = strchr(p, '\n') + 1) /* the private mapping has no name */
		n += !strncmp(p, "20", 2) && strcspn(p, "-") == 12 && !strstr(p, "memfd");
	free(text);
	return n;
}

/* --- a tracer with patches made by hand --- */

struct tracer {
	struct wire_area *area;
	int facts_fd, code_fd, island_fd, watchdog;
	uint64_t base, island;
	uint8_t *island_mem;
	void *code;
	struct control *c;
};

static void must(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "tracer: %s\n", e->text);
	_exit(3);
}

static int64_t call(struct tracer *t, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		    uint64_t e, uint64_t f)
{
	int64_t got;

	must(control_syscall(t->c, nr, (uint64_t[6]){ a, b, c, d, e, f }, &got));
	return got;
}

/* Maps this process's fd into the target at addr. */
static void map_there(struct tracer *t, int fd, uint64_t addr, uint64_t size, int prot)
{
	uint32_t n;
	uint64_t at = control_threads(t->c, &n)->regs.rsp - 2048;
	char path[64];
	int64_t there, got;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	must(control_write(t->c, at, path, (uint32_t)strlen(path) + 1));
	there = call(t, SYS_open, at, O_RDWR | O_CLOEXEC, 0, 0, 0, 0);
	if (there < 0)
		must(err_errno((int)-there, "open in the target"));
	got = call(t, SYS_mmap, addr, size, (uint64_t)prot, MAP_SHARED | MAP_FIXED_NOREPLACE,
		   (uint64_t)there, 0);
	if (got != (int64_t)addr)
		must(err_errno((int)-got, "mmap in the target at %llx", (unsigned long long)addr));
	call(t, SYS_close, (uint64_t)there, 0, 0, 0, 0, 0);
}

static void make_area(struct tracer *t, pid_t pid)
{
	struct wire_area *a;
	struct wire_process *p;
	uint64_t bases[WIRE_BASES], at;
	char name[UNDO_NAME];
	uint32_t n;

	must(undo_areas(t->c, bases, &n));
	for (uint32_t i = 0, k = 0; i <= n; i++)
		if (i == n || bases[i] != WIRE_BASE + (k = i) * WIRE_BASE_STEP) {
			t->base = WIRE_BASE + (i == n ? i : k) * WIRE_BASE_STEP;
			break;
		}
	t->facts_fd = memfd_create(WIRE_MEMFD_FACTS, MFD_CLOEXEC);
	t->code_fd = memfd_create(WIRE_MEMFD_CODE, MFD_CLOEXEC);
	undo_island_name(t->base, name);
	t->island_fd = memfd_create(name, MFD_CLOEXEC);
	if (ftruncate(t->facts_fd, FACTS_SIZE) || ftruncate(t->code_fd, CODE_SIZE) ||
	    ftruncate(t->island_fd, ISLAND_SIZE))
		_exit(4);
	at = t->base + WIRE_FACTS;
	a = mmap((void *)at, FACTS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
		 t->facts_fd, 0);
	t->code = mmap((void *)t->base, CODE_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE,
		       t->code_fd, 0);
	t->island_mem =
		mmap(NULL, ISLAND_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, t->island_fd, 0);
	if (a == MAP_FAILED || t->code == MAP_FAILED || (void *)t->island_mem == MAP_FAILED)
		must(err_errno(errno, "mmap"));
	t->area = a;
	a->version = WIRE_AREA_VERSION;
	a->base = t->base;
	a->shared_size = FACTS_SIZE;
	a->private_size = PRIVATE_SIZE;
	a->code_size = CODE_SIZE;
	a->tracer_pid = (uint32_t)getpid();
	a->processes = at + AT_PROCESSES;
	a->said = at + AT_SAID;
	a->undo = at + AT_UNDO;
	a->nundo = SITES;
	p = (struct wire_process *)a->processes;
	p->pid = (uint32_t)pid;
	p->started = procdir_start(pid);
	p->state = WIRE_PROCESS_TRACED;
	a->magic = WIRE_AREA_MAGIC;
}

/* Room within 2 GB below the text. */
static uint64_t find_room(struct tracer *t, uint64_t text)
{
	const struct mappings *m;
	uint64_t best = 0;

	must(control_maps(t->c, &m));
	for (uint32_t i = 0; i < m->n; i++) {
		uint64_t below = i ? m->v[i - 1].end : 65536, start = m->v[i].start;

		if (start <= text && start - below > 1 << 20)
			best = start - 65536;
	}
	return best;
}

/* Counts, runs push, mov and lea, and jumps back behind them. */
static void make_stub(struct tracer *t, int i, uint64_t site)
{
	static const uint8_t displaced[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x64, 0x24, 0xe0 };
	uint8_t *p = t->island_mem + i * STUB_SIZE, after[sizeof(displaced)],
		have[sizeof(displaced)];
	uint64_t stub = t->island + (uint64_t)i * STUB_SIZE,
		 count = t->base + WIRE_FACTS + AT_COUNTS + (uint64_t)i * 8;
	uint16_t moved[WIRE_SITE_MAX];
	int32_t rel;

	must(control_read(t->c, site, have, sizeof(have)));
	p[0] = 0x49; /* movabs $count, %r11; lock incq (%r11) */
	p[1] = 0xbb;
	memcpy(p + 2, &count, 8);
	memcpy(p + 10, (uint8_t[]){ 0xf0, 0x49, 0xff, 0x03 }, 4);
	memcpy(p + 14, displaced, sizeof(displaced));
	p[23] = 0xe9;
	rel = (int32_t)(site + sizeof(displaced) - (stub + 28));
	memcpy(p + 24, &rel, 4);
	memset(after, 0xcc, sizeof(after));
	after[0] = 0xe9;
	rel = (int32_t)(stub - (site + 5));
	memcpy(after + 1, &rel, 4);
	memset(moved, 0xff, sizeof(moved));
	moved[0] = 14;
	moved[1] = 15;
	moved[4] = 18;
	undo_record((struct wire_undo *)t->area->undo + i, control_pid(t->c), site,
		    sizeof(displaced), displaced, after, stub, 28, moved);
}

/* Installs a handler for SIGSEGV that keeps the program's own action. */
static void take_signal(struct tracer *t)
{
	uint64_t at = t->base + WIRE_PRIVATE + offsetof(struct wire_private, action);
	uint64_t scratch = t->base + WIRE_PRIVATE + offsetof(struct wire_private, spare), one = 1;
	struct wire_sigaction ours = { .handler = t->base + 64,
				       .flags = 0x04000000,
				       .restorer = t->base + 128 };

	call(t, SYS_rt_sigaction, SIGSEGV, 0, at, 8, 0, 0);
	must(control_write(t->c, t->base + WIRE_PRIVATE + offsetof(struct wire_private, signals),
			   &one, 8));
	must(control_write(t->c, scratch, &ours, sizeof(ours)));
	call(t, SYS_rt_sigaction, SIGSEGV, scratch, 0, 8, 0, 0);
}

static void attach(struct tracer *t, const struct tracee *tracee, bool watchdog)
{
	struct undo_log log;
	uint32_t skipped;

	*t = (struct tracer){ .watchdog = -1 };
	must(control_open(tracee->pid, &t->c));
	make_area(t, tracee->pid);
	if (watchdog)
		must(watchdog_start(t->area, &t->watchdog));
	must(control_stop(t->c, 5000));
	map_there(t, t->code_fd, t->base, CODE_SIZE, PROT_READ | PROT_EXEC);
	map_there(t, t->facts_fd, t->base + WIRE_FACTS, FACTS_SIZE, PROT_READ | PROT_WRITE);
	call(t, SYS_mmap, t->base + WIRE_PRIVATE, PRIVATE_SIZE, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);
	t->island = find_room(t, tracee->work[0]);
	map_there(t, t->island_fd, t->island, ISLAND_SIZE, PROT_READ | PROT_EXEC);
	for (int i = 0; i < SITES; i++)
		make_stub(t, i, tracee->work[i] + 4);
	must(control_resume(t->c));
	/* the second stop */
	must(control_stop(t->c, 5000));
	take_signal(t);
	must(undo_log_read(t->c, t->base, &log));
	must(undo_patch(t->c, &log, &skipped));
	undo_log_fini(&log);
	must(control_resume(t->c));
	if (skipped)
		must(err_new(0, "%u sites are not as expected", skipped));
}

/* Returns the tracer's own mappings and open files. */
static void free_area(struct tracer *t)
{
	watchdog_stop(t->area, t->watchdog);
	control_free(t->c);
	munmap(t->island_mem, ISLAND_SIZE);
	munmap(t->area, FACTS_SIZE);
	munmap(t->code, CODE_SIZE);
	close(t->facts_fd);
	close(t->code_fd);
	close(t->island_fd);
}

static void detach(struct tracer *t)
{
	struct undo_report r = { 0 };
	struct undo_log log;

	must(undo_log_read(t->c, t->base, &log));
	must(undo_restore(t->c, &log, 5000, &r));
	if (r.restored != SITES || r.busy || r.foreign || r.signals != 1 || r.unmapped < 4)
		must(err_new(0, "restored %u clean %u foreign %u signals %u unmapped %u busy %d",
			     r.restored, r.clean, r.foreign, r.signals, r.unmapped, r.busy));
	undo_log_fini(&log);
	free_area(t);
}

static unsigned long fired(const struct tracer *t)
{
	const unsigned long *counts = (const unsigned long *)((char *)t->area + AT_COUNTS);
	unsigned long n = 0;

	for (int i = 0; i < SITES; i++)
		n += counts[i];
	return n;
}

/* Attaches and detaches until it is killed, or n times. */
static void trace(const struct tracee *tracee, bool watchdog, int n)
{
	struct tracer t;

	for (int i = 0; i != n; i++) {
		unsigned long count;

		attach(&t, tracee, watchdog);
		usleep((useconds_t)(rand() % 4000) + 500);
		for (int ms = 0; n > 0 && ms < 60000 && !fired(&t); ms++) /* a loaded machine */
			usleep(1000);
		count = fired(&t);
		detach(&t);
		if (n > 0 && !count)
			must(err_new(0, "no probe fired"));
	}
	_exit(0);
}

/* --- the tests --- */

static uint64_t reference(void)
{
	struct tracee t;

	start_tracee(&t, "0");
	return end_tracee(&t, 0);
}

/* A tracer of its own does that, and leaves nothing of it. */
static void as_tracer(const struct tracee *t, void (*act)(const struct tracee *))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		act(t);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(descry_mappings(t->pid), 0);
}

static void trace_often(const struct tracee *t)
{
	trace(t, true, 20);
}

static void test_attach_and_detach(void **state)
{
	struct tracee t;

	start_tracee(&t, NULL);
	as_tracer(&t, trace_often);
	assert_true(end_tracee(&t, 0) == reference());
}

/* The watchdog is at it; at the latest after a minute it is all out. */
static void wait_healed(const struct tracee *t)
{
	for (int i = 0; i < 60000 && descry_mappings(t->pid); i++)
		usleep(1000);
	assert_int_equal(descry_mappings(t->pid), 0);
}

static void heal(const struct tracee *t)
{
	struct undo_report r;
	struct control *c;
	struct err *e;

	/* on a busy machine the watchdog of the round before may hold it longer than control_open()
	 * waits */
	for (int i = 0; (e = control_open(t->pid, &c)) && e->code == EBUSY && i < 10; i++)
		err_free(e);
	if (e)
		print_error("%s\n", e->text);
	assert_null(e);
	for (int i = 0; (e = undo_all(c, 5000, &r)) && e->code == EBUSY && i < 10; i++)
		err_free(e);
	if (e)
		print_error("%s\n", e->text);
	assert_null(e);
	assert_int_equal(r.busy, 0);
	assert_int_equal(r.foreign, 0);
	assert_int_equal(descry_mappings(t->pid), 0);
	control_free(c);
}

static void test_killed_at_random(void **state)
{
	const char *env = getenv("DESCRY_TORTURE");
	int n = env ? atoi(env) : 60, attached = 0, span = 25000, i;
	struct tracee t;

	start_tracee(&t, NULL);
	srand((unsigned)time(NULL));
	/* more rounds when few find anything mapped */
	for (i = 0; i < n || (attached <= n / 10 && i < 20 * n); i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			srand((unsigned)getpid());
			trace(&t, i % 2, -1);
		}
		usleep((useconds_t)(rand() % span));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status)); /* nothing went wrong before */
		attached += descry_mappings(t.pid) > 0;
		/* on a busy machine all takes longer */
		if (attached * 3 < i && span < 1000000)
			span += span / 8;
		if (i % 2)
			wait_healed(&t);
		else
			heal(&t);
		assert_int_equal(waitpid(t.pid, &status, WNOHANG), 0); /* it lives */
	}
	print_message("%d kills, %d while something was mapped\n", i, attached);
	assert_true(n < 10 || attached > n / 10);
	/* a tracer is killed between a stop and its repair of EINTR: as after SIGSTOP and
	 * SIGCONT */
	assert_true(end_tracee(&t, i) == reference());
}

/* --- records and bytes that do not agree --- */

static struct undo_report restore(struct tracer *t, int timeout_ms)
{
	struct undo_report r = { 0 };
	struct undo_log log;

	must(undo_log_read(t->c, t->base, &log));
	must(undo_restore(t->c, &log, timeout_ms, &r));
	undo_log_fini(&log);
	return r;
}

static void text_of(const struct tracee *tracee, struct tracer *t, uint8_t (*ret)[9])
{
	for (int i = 0; i < SITES; i++)
		must(control_read(t->c, tracee->work[i] + 4, ret[i], 9));
}

/* Writes n bytes at site i, as another patching program would. */
static void overwrite(const struct tracee *tracee, struct tracer *t, int i, const void *p,
		      uint8_t n)
{
	struct control_patch patch = { .addr = tracee->work[i] + 4, .len = n };
	uint32_t skipped;

	memcpy(patch.put, p, n);
	must(control_stop(t->c, 5000));
	must(control_read(t->c, patch.addr, patch.expect, n));
	must(control_patch_text(t->c, &patch, 1, &skipped));
	must(control_resume(t->c));
	if (skipped)
		must(err_new(0, "not overwritten"));
}

/* Adds a second record i of SITES: of the same place with another jump, either of an earlier attach
 * that was undone or of the present one. The log is sorted, so the order in which the two are read
 * must not matter. Tries both. */
static void two_records(const struct tracee *tracee, bool stale_first)
{
	struct wire_undo *u;
	struct tracer t;
	struct undo_report r;
	uint8_t before[SITES][9], after[SITES][9];

	attach(&t, tracee, false);
	text_of(tracee, &t, before);
	u = (struct wire_undo *)t.area->undo;
	for (int i = 0; i < SITES; i++) {
		struct wire_undo *stale = stale_first ? &u[i] : &u[SITES + i];

		u[SITES + i] = u[i];
		stale->after[1] ^= 0x40;
		stale->stub += 1024;
	}
	t.area->nundo = 2 * SITES;
	r = restore(&t, 10000);
	text_of(tracee, &t, after);
	if (r.restored != SITES || r.busy || r.foreign || r.clean || r.unmapped < 4)
		must(err_new(0, "two records: restored %u clean %u foreign %u unmapped %u busy %d",
			     r.restored, r.clean, r.foreign, r.unmapped, r.busy));
	for (int i = 0; i < SITES; i++)
		if (after[i][0] != 0x55 || !memcmp(before[i], after[i], 9))
			must(err_new(0, "site %d is not what it was", i));
}

/* A tracer that lives patches more between the reading of its log and the stop. */
static void patched_meanwhile(const struct tracee *tracee)
{
	const uint64_t magic = WIRE_AREA_MAGIC;
	struct undo_report r = { 0 };
	struct undo_log log;
	struct tracer t;

	for (int laid_out = 0; laid_out < 2; laid_out++) {
		attach(&t, tracee, false);
		t.area->magic = laid_out ? magic : 0;
		t.area->nundo = SITES - 1;
		must(undo_log_read(t.c, t.base, &log));
		t.area->magic = magic;
		t.area->nundo = SITES;
		r = (struct undo_report){ 0 };
		must(undo_restore(t.c, &log, 10000, &r));
		undo_log_fini(&log);
		if (r.restored != SITES || r.busy || r.clean || r.foreign || r.unmapped < 4)
			must(err_new(0, "restored %u clean %u foreign %u unmapped %u busy %d",
				     r.restored, r.clean, r.foreign, r.unmapped, r.busy));
		free_area(&t);
	}
}

static void test_patched_since_the_log_was_read(void **state)
{
	struct tracee t;

	start_tracee(&t, NULL);
	as_tracer(&t, patched_meanwhile);
	assert_true(end_tracee(&t, 0) == reference());
}

static void first_record(const struct tracee *t)
{
	two_records(t, 0);
}

static void second_record(const struct tracee *t)
{
	two_records(t, 1);
}

static void test_two_records_of_a_place(void **state)
{
	struct tracee t;

	start_tracee(&t, NULL);
	as_tracer(&t, first_record);
	as_tracer(&t, second_record);
	assert_true(end_tracee(&t, 0) == reference());
}

/* A library was here before. The places of its records overlap those of the present library, by a
 * few bytes or from the same start. Only records that match the bytes are undone. */
static void overlapping(const struct tracee *tracee)
{
	static const int8_t shift[] = { -3, 0, 2, 8 };
	uint8_t before[SITES][9], after[SITES][9], untraced[] = { 0x55, 0x48, 0x89, 0xe5 };
	struct wire_undo *u;
	struct undo_report r;
	struct tracer t;
	uint32_t n = SITES;

	attach(&t, tracee, false);
	text_of(tracee, &t, before);
	u = (struct wire_undo *)t.area->undo;
	for (int i = 0; i < SITES; i++)
		for (int k = 0; k < 4; k++, n++) {
			u[n] = u[i];
			u[n].site = u[i].site + (uint64_t)(int64_t)shift[k];
			u[n].len = (uint8_t)(5 + (i + k) % 5);
			memset(u[n].before, 0x90, sizeof(u[n].before));
			memset(u[n].after, 0xcc, sizeof(u[n].after));
			u[n].after[0] = 0xe9;
			for (int m = 0; m < WIRE_SITE_MAX; m++)
				u[n].moved[m] = 0xffff;
		}
	t.area->nundo = n;
	r = restore(&t, 10000);
	text_of(tracee, &t, after);
	if (r.restored != SITES || r.busy || r.foreign || r.clean || r.unmapped < 4)
		must(err_new(0, "overlapping: restored %u clean %u foreign %u unmapped %u busy %d",
			     r.restored, r.clean, r.foreign, r.unmapped, r.busy));
	for (int i = 0; i < SITES; i++)
		if (memcmp(after[i], untraced, sizeof(untraced)) || !memcmp(before[i], after[i], 9))
			must(err_new(0, "site %d is not what it was", i));
}

static void test_overlapping_records(void **state)
{
	struct tracee t;

	start_tracee(&t, NULL);
	as_tracer(&t, overlapping);
	assert_true(end_tracee(&t, 0) == reference());
}

/* Two tracers chose the same base. The log read there identifies itself as the first tracer's. */
static void same_base(const struct tracee *tracee)
{
	struct undo_log log;
	struct tracer t;
	struct stat code, shared;

	attach(&t, tracee, false);
	if (fstat(t.code_fd, &code) || fstat(t.facts_fd, &shared))
		_exit(4);
	must(undo_log_read(t.c, t.base, &log));
	if (!undo_is(&log, shared.st_ino, code.st_ino))
		must(err_new(0, "the first one's is not its own"));
	/* the second tracer's files; a tracer without mappings; a tracer that has mapped only its
	 * code */
	if (undo_is(&log, shared.st_ino + 1, code.st_ino + 1) ||
	    undo_is(&log, shared.st_ino + 1, code.st_ino))
		must(err_new(0, "the first one's is taken for the second one's"));
	log.inode = 0;
	if (!undo_is(&log, shared.st_ino, code.st_ino) ||
	    undo_is(&log, shared.st_ino, code.st_ino + 1))
		must(err_new(0, "an attach cut short"));
	log.code_inode = 0;
	if (undo_is(&log, 0, 0))
		must(err_new(0, "nothing is somebody's"));
	undo_log_fini(&log);
	detach(&t);
}

static void test_same_base(void **state)
{
	struct tracee t;

	start_tracee(&t, NULL);
	as_tracer(&t, same_base);
	assert_true(end_tracee(&t, 0) == reference());
}

/* Another program's patch at a patched place jumps to descry's stub. descry must not restore this
 * text, and the stub stays until the patch is gone. */
static void foreign_jump(const struct tracee *tracee)
{
	uint8_t ours[9], theirs[9];
	struct undo_report r;
	struct tracer t;

	attach(&t, tracee, false);
	must(control_read(t.c, tracee->work[3] + 4, ours, sizeof(ours)));
	memcpy(theirs, ours, sizeof(ours));
	memset(theirs + 5, 0x90, 4);
	overwrite(tracee, &t, 3, theirs, sizeof(theirs));
	r = restore(&t, 2000);
	if (r.restored != SITES - 1 || r.foreign != 1 || !r.busy || r.unmapped ||
	    !descry_mappings(tracee->pid))
		must(err_new(0, "foreign: restored %u foreign %u unmapped %u busy %d", r.restored,
			     r.foreign, r.unmapped, r.busy));
	usleep(50000); /* it runs on, through our stub */
	overwrite(tracee, &t, 3, ours, sizeof(ours));
	r = restore(&t, 10000);
	if (r.restored != 1 || r.clean != SITES - 1 || r.foreign || r.busy || r.unmapped < 4)
		must(err_new(0, "then: restored %u clean %u foreign %u unmapped %u busy %d",
			     r.restored, r.clean, r.foreign, r.unmapped, r.busy));
}

/* A second tracer chose the same range for its island, wrote its records, and then found the range
 * taken. The patches in its records are the first tracer's. */
static void records_without_island(const struct tracee *tracee)
{
	struct tracer t, second = { .watchdog = -1 };
	struct undo_report r = { 0 };
	struct undo_log log;
	unsigned long count;

	attach(&t, tracee, false);
	second.c = t.c;
	make_area(&second, tracee->pid);
	memcpy((void *)second.area->undo, (void *)t.area->undo, SITES * sizeof(struct wire_undo));
	must(control_stop(t.c, 5000));
	map_there(&second, second.code_fd, second.base, CODE_SIZE, PROT_READ | PROT_EXEC);
	map_there(&second, second.facts_fd, second.base + WIRE_FACTS, FACTS_SIZE,
		  PROT_READ | PROT_WRITE);
	must(control_resume(t.c));
	must(undo_log_read(t.c, second.base, &log));
	if (log.sites.n)
		must(err_new(0, "%u records believed", log.sites.n));
	must(undo_restore(t.c, &log, 10000, &r));
	undo_log_fini(&log);
	if (r.restored || r.foreign || r.busy || r.unmapped != 2)
		must(err_new(0, "second: restored %u foreign %u unmapped %u busy %d", r.restored,
			     r.foreign, r.unmapped, r.busy));
	count = fired(&t);
	for (int i = 0; fired(&t) == count && i < 5000; i++)
		usleep(1000);
	if (fired(&t) == count)
		must(err_new(0, "the first one's probes do not fire any more"));
	detach(&t);
}

static void test_records_without_island(void **state)
{
	struct tracee t;

	start_tracee(&t, NULL);
	as_tracer(&t, records_without_island);
	assert_true(end_tracee(&t, 0) == reference());
}

static void test_foreign_jump_into_ours(void **state)
{
	struct tracee t;

	start_tracee(&t, NULL);
	as_tracer(&t, foreign_jump);
	assert_true(end_tracee(&t, 0) == reference());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patched_since_the_log_was_read),
		cmocka_unit_test(test_two_records_of_a_place),
		cmocka_unit_test(test_foreign_jump_into_ours),
		cmocka_unit_test(test_records_without_island),
		cmocka_unit_test(test_overlapping_records),
		cmocka_unit_test(test_same_base),
		cmocka_unit_test(test_attach_and_detach),
		cmocka_unit_test(test_killed_at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
