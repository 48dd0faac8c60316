/* A process: our mappings put into it, its text patched. One short stop; all that can be done before it is. Order: stubs,
 * then program counters that stand in displaced bytes, then text. The undo log is written before the text. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "load/inproc/agent.h"
#include "load/inproc/inproc.h"
#include "load/inproc/remote.h"
#include "load/inproc/undo.h"
#include "load/inproc/watchdog.h"

enum {
	PAGE = 4096,
	STOP_MS = 2000,
	STUB_ALIGN = 16,
	STUB_MAX = 4096,    /* bytes of one stub */
	STUB_ROOM = 128,    /* moved instructions and the jump back, generously */
	STUB_PROBE = 48,    /* each probe of a stub */
	REACH = 0x70000000, /* less than 2 GB, to the middle of which island and text lie */
	WIPEONFORK = 18,    /* MADV_ */
	DONTDUMP = 16,
};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- islands --- */

struct range {
	uint64_t lo, hi;
	bool readable;
};
struct ranges {
	VEC(struct range) list;
};

/* Reading a device's memory does something, and the kernel's own pages need not be there. */
static bool has_effects(const char *line)
{
	return (strstr(line, " /dev/") && !strstr(line, " /dev/shm/")) || strstr(line, "[v");
}

/* Every mapping, in address order. */
static struct err *read_ranges(pid_t pid, struct ranges *ret)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", (int)pid);
	FILE *f = fopen(path, "re");
	unsigned long lo, hi;
	char line[8192], prot;

	if (!f)
		return err_errno(errno, "%s", path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %c", &lo, &hi, &prot) == 3)
			vec_push(&ret->list,
				 (struct range){ lo, hi, prot == 'r' && !has_effects(line) });
	fclose(f);
	return NULL;
}

/* The free stretch of `size` bytes nearest to [lo, hi) from which all of it is in reach; 0: none. */
static uint64_t find_gap(const struct ranges *r, uint64_t lo, uint64_t hi, uint64_t size)
{
	uint64_t best = 0, best_far = REACH, from = 0x10000;

	for (uint32_t i = 0; i <= r->list.n; i++) {
		uint64_t to = i < r->list.n ? r->list.v[i].lo : 0x7ffffffff000;
		uint64_t after = round_up(from, PAGE), before = (to - size) / PAGE * PAGE;

		/* a page of distance, so that nothing that grows or that overruns meets us */
		if (to > from && to - from >= size + 3 * PAGE) {
			after += PAGE;
			before -= PAGE;
			if (after >= hi && after + size - lo < best_far) {
				best = after;
				best_far = after + size - lo;
			}
			if (before + size <= lo && hi - before < best_far) {
				best = before;
				best_far = hi - before;
			}
		}
		if (i < r->list.n)
			from = r->list.v[i].hi;
	}
	return best;
}

static uint64_t slots_size(const struct inproc_engine *e)
{
	return ((uint64_t)e->base.image->nprogs * WIRE_STUB_ALL + 1) * 8;
}

static uint64_t island_room(const struct inproc_engine *e, const struct inproc_process *p,
			    const struct inproc_module *m)
{
	uint64_t n = slots_size(e);

	for (uint32_t i = 0; i < m->nsites; i++) {
		const struct inproc_site *s = &p->sites.v[m->first_site + i];

		n += STUB_ROOM + s->text.len * 8u + (uint64_t)s->points.n * STUB_PROBE;
	}
	return round_up(n, PAGE);
}

/* Points fire in the order of their addresses; of one address, of their probes, behind what keeps books of system calls. */
static int by_point(const void *a, const void *b)
{
	const struct inproc_point *x = a, *y = b;
	bool xbooks = x->kind == WIRE_STUB_SYSNOTE || x->kind == WIRE_STUB_SYSFORK;
	bool ybooks = y->kind == WIRE_STUB_SYSNOTE || y->kind == WIRE_STUB_SYSFORK;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (xbooks != ybooks)
		return xbooks ? -1 : 1;
	if (x->probe == y->probe)
		return x->prog < y->prog ? -1 : x->prog > y->prog;
	return x->probe < y->probe ? -1 : x->probe > y->probe;
}

/* An island begins with the addresses of thunks: of each program one for each kind of stub, then the agent's. */
static uint64_t slot_of(const struct inproc_module *m, const struct inproc_point *p,
			uint32_t nprogs)
{
	uint64_t i = p->probe == INPROC_SIGACTION ? (uint64_t)nprogs * WIRE_STUB_ALL
						  : (uint64_t)p->prog * WIRE_STUB_ALL + p->kind;

	return m->island + i * 8;
}

/* Which system call returns at point k: the last of a place forgets what is looked up. */
static uint32_t call_of(const struct inproc_point *points, uint32_t n, uint32_t k)
{
	if (points[k].kind != WIRE_STUB_SYSRET)
		return 0;
	if (points[k].number >= 0)
		return (uint32_t)points[k].number + 1;
	for (uint32_t i = k + 1; i < n && points[i].addr == points[k].addr; i++)
		if (points[i].kind == WIRE_STUB_SYSRET)
			return WIRE_STUB_CALL_KEEP;
	return 0;
}

static struct err *write_stub(const struct inproc_module *m, struct inproc_site *s, uint64_t at,
			      uint32_t nprogs)
{
	struct text_point points[TEXT_POINTS_MAX];
	uint32_t code = 0, n = s->points.n;
	struct err *err;

	if (n > TEXT_POINTS_MAX)
		return err_new(E2BIG, "%u probes at one instruction; %d is the most", n,
			       TEXT_POINTS_MAX);
	qsort(s->points.v, n, sizeof(*s->points.v), by_point);
	for (uint32_t k = 0; k < n; k++) {
		const struct inproc_point *p = &s->points.v[k];

		points[k] = (struct text_point){
			.at = (uint8_t)(p->addr - s->text.addr),
			.kind = p->kind,
			.probe = p->probe,
			.shown = p->shown ? p->shown + s->bias : 0,
			.call = call_of(s->points.v, n, k),
			.slot = slot_of(m, p, nprogs),
		};
	}
	err = text_stub_points(&s->text, s->bias, m->island + at, points, n, m->island_mem + at,
			       (uint32_t)(m->island_size - at), &s->stub_len, &code, s->moved);
	s->stub = m->island + at;
	s->code_at = s->stub + code;
	return err;
}

static struct err *write_stubs(struct inproc_engine *e, struct inproc_process *p,
			       struct inproc_module *m)
{
	const uint64_t sigaction = e->addr + agent_blob()->entry[WIRE_AGENT_sigaction_site];
	uint32_t nprogs = e->base.image->nprogs;
	uint64_t at = slots_size(e);
	struct err *err = NULL;

	memcpy(m->island_mem + (uint64_t)nprogs * WIRE_STUB_ALL * 8, &sigaction, 8);
	for (uint32_t i = 0; i < nprogs; i++)
		for (uint32_t k = 0; k < WIRE_STUB_ALL; k++) {
			uint64_t thunk = e->progs[i].addr + e->progs[i].code.thunk[k];

			memcpy(m->island_mem + ((uint64_t)i * WIRE_STUB_ALL + k) * 8, &thunk, 8);
		}
	for (uint32_t i = 0; i < m->nsites && !err; i++) {
		struct inproc_site *s = &p->sites.v[m->first_site + i];

		at = round_up(at, STUB_ALIGN);
		err = write_stub(m, s, at, nprogs);
		at += s->stub_len;
	}
	return err;
}

/* Chooses each module's island and writes its stubs into one memory file. */
static struct err *prepare_islands(struct inproc_engine *e, struct inproc_process *p)
{
	struct ranges r = { 0 };
	struct err *err = read_ranges(p->pid, &r);
	uint64_t used = 0;

	if (!err && !r.list.n)
		err = err_new(ESRCH, "process %d ends, or executes another program, just now",
			      (int)p->pid);
	for (uint32_t i = 0; i < p->modules.n; i++)
		used += island_room(e, p, &p->modules.v[i]);
	p->island_fd = (int)syscall(SYS_memfd_create, "descry-island", 1u | 0x10u);
	if (p->island_fd < 0 && errno == EINVAL)
		p->island_fd = (int)syscall(SYS_memfd_create, "descry-island", 1u);
	if (!err && (p->island_fd < 0 || ftruncate(p->island_fd, (off_t)used)))
		err = err_errno(errno, "memfd_create");
	for (uint32_t i = 0; i < p->modules.n && !err; i++) {
		struct inproc_module *m = &p->modules.v[i];
		void *mem;

		if (!m->nsites)
			continue;
		m->island_size = island_room(e, p, m);
		m->island = find_gap(&r, m->lo, m->hi, m->island_size);
		if (!m->island) {
			err = err_new(ENOMEM, "process %d has no %llu free bytes within 2 GB of %s",
				      (int)p->pid, (unsigned long long)m->island_size,
				      object_path(m->object));
			break;
		}
		vec_push(&r.list, (struct range){ m->island, m->island + m->island_size, true });
		for (uint32_t k = r.list.n - 1; k && r.list.v[k - 1].lo > r.list.v[k].lo; k--) {
			struct range t = r.list.v[k];

			r.list.v[k] = r.list.v[k - 1];
			r.list.v[k - 1] = t;
		}
		m->island_at = p->island_used;
		p->island_used += m->island_size;
		mem = mmap(NULL, m->island_size, PROT_READ | PROT_WRITE, MAP_SHARED, p->island_fd,
			   (off_t)m->island_at);
		if (mem == MAP_FAILED) {
			err = err_errno(errno, "mapping stubs");
			break;
		}
		m->island_mem = mem;
		err = write_stubs(e, p, m);
	}
	vec_fini(&r.list);
	return err;
}

/* --- the process's entry in the area --- */

static uint32_t status_number(pid_t pid, const char *field, int nth)
{
	cleanup_free char *path = xasprintf("/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	size_t n = strlen(field);
	uint32_t value = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		char *s = line + n;

		if (strncmp(line, field, n))
			continue;
		for (int i = 0; i <= nth && *s; i++) {
			char *end;
			unsigned long v = strtoul(s, &end, 10);

			if (end == s)
				break;
			value = (uint32_t)v; /* fewer than nth: the last */
			s = end;
		}
	}
	if (f)
		fclose(f);
	return value;
}

struct err *process_ranges(struct inproc_engine *e, struct inproc_process *p)
{
	struct wire_process *w = &e->list[p->index];
	struct wire_range *out = e->ranges + (uint64_t)p->index * WIRE_RANGES_MAX;
	struct ranges r = { 0 };
	struct err *err = read_ranges(p->pid, &r);
	uint32_t n = 0;

	__atomic_add_fetch(&w->version, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < r.list.n; i++) {
		if (!r.list.v[i].readable)
			continue;
		if (n && out[n - 1].hi == r.list.v[i].lo)
			out[n - 1].hi = r.list.v[i].hi;
		else if (n < WIRE_RANGES_MAX)
			out[n++] = (struct wire_range){ r.list.v[i].lo, r.list.v[i].hi };
	}
	w->nranges = n;
	w->ranges_wanted = 0;
	__atomic_add_fetch(&w->version, 1, __ATOMIC_SEQ_CST);
	vec_fini(&r.list);
	return err;
}

static struct err *enter(struct inproc_engine *e, struct inproc_process *p)
{
	struct wire_process *w;

	p->index = __atomic_fetch_add(&e->area->process_count, 1, __ATOMIC_SEQ_CST);
	if (p->index >= WIRE_PROCESSES_MAX)
		return err_new(E2BIG, "at most %d processes can be traced in-process",
			       WIRE_PROCESSES_MAX - 1);
	w = &e->list[p->index];
	w->pid = (uint32_t)p->pid;
	w->own_pid = status_number(p->pid, "NSpid:", 63);
	w->uid = status_number(p->pid, "Uid:", 0);
	w->gid = status_number(p->pid, "Gid:", 0);
	w->ppid = status_number(p->pid, "PPid:", 0);
	w->task = area_task(e, p->pid);
	__atomic_store_n(&w->state, WIRE_PROCESS_TRACED, __ATOMIC_RELEASE);
	return process_ranges(e, p);
}

/* --- while it is stopped --- */

/* What the process executes, as the tracer does, it cannot make writable. */
static int for_reading(int fd)
{
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", fd);

	return open(path, O_RDONLY | O_CLOEXEC);
}

static struct err *map_area(struct inproc_engine *e, struct inproc_process *p, struct control *c)
{
	cleanup_close int code = for_reading(e->code_fd), island = for_reading(p->island_fd);
	const int fds[] = { code < 0 ? e->code_fd : code, e->shared_fd,
			    island < 0 ? p->island_fd : island };
	uint64_t head = round_up(sizeof(struct wire_private), PAGE);
	const struct wire_private prefix = { .ready = 1, .process = p->index };
	const struct wire_kept kept = { .pid = (uint32_t)inproc_undo_id(p),
					.no_vm_read = p->filtered };
	int theirs[3] = { -1, -1, -1 };
	struct err *err = remote_send_files(c, e->addr + WIRE_MAIL, fds, 3, theirs), *barrier;

	if (!err)
		err = remote_map(c, e->addr, WIRE_CODE_SIZE, PROT_READ | PROT_EXEC, theirs[0], 0);
	if (!err)
		err = remote_map(c, e->addr + WIRE_SHARED, e->shared_size, PROT_READ | PROT_WRITE,
				 theirs[1], 0);
	if (!err)
		err = remote_map(c, e->addr + WIRE_PRIVATE, area_private_size(),
				 PROT_READ | PROT_WRITE, -1, 0);
	if (!err)
		err = remote_call(c, "madvise", SYS_madvise, e->addr + WIRE_PRIVATE, head,
				  WIPEONFORK, NULL);
	if (!err)
		err = remote_call(c, "madvise", SYS_madvise, e->addr + WIRE_SHARED, e->shared_size,
				  DONTDUMP, NULL);
	for (uint32_t i = 0; i < p->modules.n && !err; i++)
		if (p->modules.v[i].nsites)
			err = remote_map(c, p->modules.v[i].island, p->modules.v[i].island_size,
					 PROT_READ | PROT_EXEC, theirs[2],
					 p->modules.v[i].island_at);
	for (int i = 3; i-- > 0;) /* the code's last: undo_strays() */
		if (theirs[i] >= 0)
			err_free(remote_call(c, "close", SYS_close, (uint64_t)theirs[i], 0, 0,
					     NULL));
	/* so that the tracer's barrier reaches it; without: a slower one does */
	barrier = remote_call(c, "membarrier", SYS_membarrier,
			      MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0, NULL);
	e->slow_barrier |= barrier != NULL;
	err_free(barrier);
	if (!err)
		err = control_write(c, e->addr + WIRE_PRIVATE, &prefix,
				    offsetof(struct wire_private, threads));
	if (!err)
		err = control_write(c, e->addr + WIRE_PRIVATE + WIRE_KEPT, &kept, sizeof(kept));
	if (!err)
		err = watchdog_permit(c, e->area);
	return err;
}

static int by_text(const void *a, const void *b)
{
	const struct wire_undo *x = a, *y = b;

	return x->site < y->site ? -1 : x->site > y->site;
}

/* A semaphore is raised as text is patched, and lowered as text is restored, if nobody else has changed it meanwhile. */
static bool record_semaphore(const struct inproc_process *p, uint64_t addr, struct wire_undo *u)
{
	uint16_t before = 0, after;
	struct iovec to = { &before, sizeof(before) }, from = { (void *)addr, sizeof(before) };
	uint8_t b[2], a[2];

	if (process_vm_readv(p->pid, &to, 1, &from, 1, 0) != sizeof(before))
		return false;
	after = (uint16_t)(before + 1);
	memcpy(b, &before, 2);
	memcpy(a, &after, 2);
	u->data = 1;
	undo_record(u, inproc_undo_id(p), addr, sizeof(before), b, a, 0, 0, NULL);
	return true;
}

/* The undo records, in the area and, sorted, in *log: long before the process is stopped. A site that holds what it held
 * is none to anyone who reads them. */
static struct err *write_records(struct inproc_engine *e, struct inproc_process *p,
				 struct undo_log *log)
{
	struct wire_undo *u = e->undo + e->nundo;
	uint32_t n = p->sites.n;

	if (p->sites.n + p->semaphores.n > INPROC_UNDO_MAX - e->nundo)
		return err_new(E2BIG, "%u places are too many", p->sites.n);
	_Static_assert((int)TEXT_SITE_MAX <= (int)WIRE_SITE_MAX &&
			       (int)TEXT_SITE_MAX <= (int)CONTROL_PATCH_MAX,
		       "sites");
	for (uint32_t i = 0; i < p->sites.n; i++) {
		struct inproc_site *s = &p->sites.v[i];
		uint8_t after[TEXT_SITE_MAX];

		text_patch(&s->text, s->bias, s->code_at, after);
		undo_record(&u[i], inproc_undo_id(p), s->text.addr + s->bias, s->text.len,
			    s->text.bytes, after, s->stub, s->stub_len, s->moved);
		undo_record(vec_add(&log->sites), inproc_undo_id(p), s->text.addr + s->bias,
			    s->text.len, s->text.bytes, after, s->stub, s->stub_len, s->moved);
	}
	log->base = e->addr;
	p->first_undo = e->nundo;
	for (uint32_t i = 0; i < p->semaphores.n; i++)
		if (record_semaphore(p, p->semaphores.v[i], &u[n]))
			vec_push(&log->sites, u[n++]);
	e->nundo += n;
	__atomic_store_n(&e->area->nundo, e->nundo, __ATOMIC_RELEASE);
	/* modules come in any order */
	if (log->sites.n)
		qsort(log->sites.v, log->sites.n, sizeof(*log->sites.v), by_text);
	undo_prepare(log);
	return NULL;
}

static struct err *patch(struct inproc_engine *e, struct inproc_process *p, struct control *c,
			 struct undo_log *log)
{
	uint32_t skipped = 0;
	struct err *err = undo_patch(c, log, &skipped);

	if (skipped && !err)
		inproc_note(
			e,
			"process %d: %u places not enabled: they hold other bytes than their files, or cannot be written at once",
			(int)p->pid, skipped);
	return err;
}

/* seccomp(2): strict mode kills at the first system call of ours; a filter may refuse process_vm_readv(2). */
static struct err *check_seccomp(struct inproc_process *p)
{
	enum { STRICT = 1, FILTER = 2 };
	uint32_t mode = status_number(p->pid, "Seccomp:", 0);

	p->filtered = mode == FILTER;
	return mode == STRICT ? err_new(EPERM, "it runs in seccomp's strict mode") : NULL;
}

/* All that are traced share memory: whoever can write it has a say in what is done to the others. */
static struct err *check_user(struct inproc_engine *e, const struct inproc_process *p)
{
	uint32_t uid = status_number(p->pid, "Uid:", 0);

	if (e->any_user && e->uid != uid)
		return err_new(EPERM,
			       "processes of different users (%u, %u) are not traced together",
			       e->uid, uid);
	e->any_user = true;
	e->uid = uid;
	return NULL;
}

struct err *process_plan(struct inproc_engine *e, pid_t pid)
{
	struct inproc_process *p;
	struct control *c = NULL;
	struct err *err = NULL;
	bool held = false;

	for (uint32_t i = 0; i < e->held.n; i++)
		held |= control_pid(e->held.v[i]) == pid;
	if (!held)
		err = control_open(pid, &c);
	control_free(c);
	vec_push(&e->processes, (struct inproc_process){ .pid = pid, .island_fd = -1 });
	p = vec_last(&e->processes);
	if (!err)
		err = check_seccomp(p);
	if (!err)
		err = sites_plan(e, p);
	p->planned = !err;
	/* One in twenty, of probes that a pattern has matched, is left out with a note, as those are which the kernel cannot
	 * probe. */
	if (!err && (uint64_t)e->nrefused * 20 > e->base.image->nprobes)
		err = err_new(ENOTSUP, "%u probes", e->nrefused);
	return err;
}

struct err *process_attach(struct inproc_engine *e, pid_t pid)
{
	for (uint32_t i = 0; i < e->processes.n; i++)
		if (e->processes.v[i].pid == pid && e->processes.v[i].planned)
			return process_enter(e, i);
	vec_push(&e->processes, (struct inproc_process){ .pid = pid, .island_fd = -1 });
	return process_enter(e, e->processes.n - 1);
}

/* An attach that failed half way leaves nothing, and no record of it either: the next one may patch the same places with
 * other jumps. False: something had to stay, with its records (from `first` on), for the watchdog to take out. */
static bool take_back(struct inproc_engine *e, struct inproc_process *p, struct control *c,
		      uint32_t first)
{
	struct wire_process *w = &e->list[p->index];
	struct undo_report report = { 0 };
	struct undo_log log = { 0 };
	struct err *err = control_resume(c);

	err = err ?: undo_strays(c, undo_inode_here(e->addr), e->addr, STOP_MS, &report);
	err = err ?: undo_log_read(c, e->addr, &log);
	err = err ?: undo_restore(c, &log, STOP_MS, &report);
	undo_log_fini(&log);
	if (err || report.busy) {
		err_free(err);
		return false;
	}
	for (uint32_t i = first; i < e->nundo; i++)
		__atomic_store_n(&e->undo[i].len, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&w->state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
	return true;
}

static struct err *try_enter(struct inproc_engine *e, uint32_t i)
{
	struct inproc_process *p = &e->processes.v[i];
	struct control *c = NULL, *held = NULL;
	struct undo_log log = { 0 };
	uint32_t first = e->nundo;
	uint64_t stopped = 0;
	struct err *err = p->planned ? NULL : sites_plan(e, p);

	if (!err)
		err = check_seccomp(p);
	if (!err)
		err = check_user(e, p);
	if (!err && e->watchdog < 0)
		err = watchdog_start(e->area, &e->watchdog);
	if (!err)
		err = enter(e, p);
	if (!err)
		err = prepare_islands(e, p);
	if (!err)
		err = write_records(e, p, &log);
	for (uint32_t k = 0; k < e->held.n; k++)
		if (control_pid(e->held.v[k]) == p->pid)
			c = held = e->held.v[k];
	if (!err && !held)
		err = control_open(p->pid, &c);
	stopped = now_ns();
	if (!err && !held)
		err = control_stop_to_call(c, STOP_MS);
	if (!err)
		err = map_area(e, p, c);
	if (!err && p->guarded)
		err = guard_install(e, c);
	if (!err)
		err = patch(e, p, c, &log);
	if (!err) {
		p->attached = true;
		err = held ? NULL : control_resume(c);
	}
	stopped = now_ns() - stopped;
	if (!err && e->measure)
		inproc_note(e, "process %d was stopped for %.3f ms (%u places, %u mappings)",
			    (int)p->pid, (double)stopped / 1e6, p->sites.n, p->modules.n + 3);
	if (err && c && !held && p->index && !take_back(e, p, c, first))
		err->code = EBUSY;
	if (!held)
		control_free(c);
	undo_log_fini(&log);
	return err ? err_wrap(err, "tracing process %d in-process", (int)p->pid) : NULL;
}

static void drop_islands(struct inproc_process *p)
{
	for (uint32_t i = 0; i < p->modules.n; i++) {
		struct inproc_module *m = &p->modules.v[i];

		if (m->island_mem)
			munmap(m->island_mem, m->island_size);
		m->island_mem = NULL;
	}
	if (p->island_fd >= 0)
		close(p->island_fd);
	p->island_fd = -1;
	p->island_used = 0;
}

/* A gap that was free when the stubs were written may be taken by when the process is stopped (threads get their stacks
 * beside libraries): then another one. */
struct err *process_enter(struct inproc_engine *e, uint32_t i)
{
	enum { TRIES = 8 };
	struct err *err = NULL;

	for (int n = 0; n < TRIES; n++) {
		err_free(err);
		err = try_enter(e, i);
		if (!err || err->code != EEXIST)
			break;
		drop_islands(&e->processes.v[i]);
		e->processes.v[i].planned = true;
	}
	return err;
}

struct err *process_detach(struct inproc_engine *e, struct inproc_process *p)
{
	struct undo_log log = { 0 };
	struct undo_report report = { 0 };
	struct control *c = NULL;
	struct err *err;

	if (!p->attached)
		return NULL;
	p->attached = false;
	err = control_open(p->pid, &c);
	if (!err)
		err = undo_log_read(c, e->addr, &log);
	if (!err)
		err = undo_restore(c, &log, STOP_MS, &report);
	undo_log_fini(&log);
	control_free(c);
	if (!err && report.busy)
		err = err_new(
			EBUSY,
			"thread %d is still in a probe, so mappings stay (its text is restored); "
			"descry heal %d removes them",
			(int)report.busy, (int)p->pid);
	if (err && (err->code == ESRCH ||
		    (kill(p->pid, 0) && errno == ESRCH))) { /* nothing is left to restore */
		err_free(err);
		err = NULL;
	}
	return err ? err_wrap(err, "taking the probes out of process %d", (int)p->pid) : NULL;
}

void process_free(struct inproc_process *p)
{
	for (uint32_t i = 0; i < p->modules.n; i++)
		if (p->modules.v[i].island_mem)
			munmap(p->modules.v[i].island_mem, p->modules.v[i].island_size);
	sites_free(p);
	if (p->island_fd >= 0)
		close(p->island_fd);
}
