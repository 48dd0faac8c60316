#define _GNU_SOURCE
#include "undo.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/io.h"

enum { UNDO_MAX = 1 << 20, STUB_MAX = 1 << 16, PRIVATE_MAX = 1 << 30, CHUNK = 4096 /* records */ };

static const int signals[WIRE_SIGNALS] = { SIGSEGV, SIGBUS, SIGTRAP };

void undo_record(struct wire_undo *u, pid_t pid, uint64_t site, uint8_t len, const uint8_t *before,
		 const uint8_t *after, uint64_t stub, uint32_t stub_len, const uint16_t *moved)
{
	__atomic_store_n(&u->len, 0, __ATOMIC_RELEASE);
	u->site = site;
	u->pid = (uint32_t)pid;
	u->stub = stub;
	u->stub_len = stub_len;
	memset(u->before, 0, sizeof(u->before));
	memset(u->after, 0, sizeof(u->after));
	memset(u->moved, 0xff, sizeof(u->moved));
	memcpy(u->before, before, len);
	memcpy(u->after, after, len);
	if (moved)
		memcpy(u->moved, moved, len * sizeof(*moved));
	__atomic_store_n(&u->len, len, __ATOMIC_RELEASE);
}

void undo_log_fini(struct undo_log *log)
{
	vec_fini(&log->sites);
	free(log->patches);
	log->patches = NULL;
}

bool undo_is(const struct undo_log *log, uint64_t inode, uint64_t code_inode)
{
	return log->inode ? log->inode == inode
			  : log->code_inode && log->code_inode == code_inode;
}

/* --- program counters --- */

/* The last site at or below pc, if pc is in it. */
static const struct wire_undo *site_at(const struct undo_log *log, uint64_t pc)
{
	uint32_t lo = 0, hi = log->sites.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (log->sites.v[mid].site <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || pc - log->sites.v[lo - 1].site >= log->sites.v[lo - 1].len)
		return NULL;
	return &log->sites.v[lo - 1];
}

static uint64_t pc_in(const struct undo_log *log, uint64_t pc)
{
	const struct wire_undo *u = site_at(log, pc);
	uint64_t at = u ? pc - u->site : 0;

	/* at the site itself the jump does it, and the probe fires */
	return u && at && u->stub && u->moved[at] != 0xffff ? u->stub + u->moved[at] : pc;
}

static uint64_t pc_out(const struct undo_log *log, uint64_t pc)
{
	for (uint32_t i = 0; i < log->sites.n; i++) {
		const struct wire_undo *u = &log->sites.v[i];
		uint64_t off = pc - u->stub;
		uint16_t last = 0;

		if (!u->stub || pc < u->stub || off >= u->stub_len)
			continue;
		if (off == 0)
			return u->site;
		for (uint32_t k = 0; k < u->len; k++) {
			if (u->moved[k] == off)
				return u->site + k;
			if (u->moved[k] != 0xffff && u->moved[k] > last)
				last = u->moved[k];
		}
		return pc;
	}
	return pc;
}

uint64_t undo_pc_in(const struct undo_log *log, uint64_t pc, bool in_syscall)
{
	uint64_t to;

	if (!in_syscall)
		return pc_in(log, pc);
	to = pc_in(log, pc - 2);
	return to == pc - 2 ? pc : to + 2;
}

uint64_t undo_pc_out(const struct undo_log *log, uint64_t pc, bool in_syscall)
{
	uint64_t to;

	if (!in_syscall)
		return pc_out(log, pc);
	to = pc_out(log, pc - 2);
	return to == pc - 2 ? pc : to + 2;
}

struct mover {
	const struct undo_log *log;
	uint64_t (*move)(const struct undo_log *log, uint64_t pc, bool in_syscall);
	uint32_t moved;
};

static void move_saved(void *arg, uint64_t *pc)
{
	struct mover *m = arg;
	uint64_t to = m->move(m->log, *pc, false);

	m->moved += to != *pc;
	*pc = to;
}

/* Program counters of all threads and signal frames. */
static struct err *move_all(struct control *c, struct mover *m)
{
	uint32_t n;
	struct control_thread *t = control_threads(c, &n);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t to = m->move(m->log, t[i].regs.rip, t[i].in_syscall);

		if (to == t[i].regs.rip)
			continue;
		t[i].regs.rip = to;
		t[i].changed = true;
		m->moved++;
	}
	return control_put_regs(c) ?: control_signal_frames(c, move_saved, m);
}

/* --- areas and their logs --- */

static bool name_is(const struct control_map *m, const char *name)
{
	size_t n = strlen(name);

	/* "/memfd:NAME (deleted)" */
	return !strncmp(m->name, "/memfd:", 7) && !strncmp(m->name + 7, name, n) &&
	       (!m->name[7 + n] || m->name[7 + n] == ' ');
}

void undo_island_name(uint64_t base, char ret[UNDO_NAME])
{
	snprintf(ret, UNDO_NAME, WIRE_MEMFD_ISLAND "-%llx", (unsigned long long)(base >> 40));
}

static uint64_t base_of(uint64_t addr)
{
	if (addr < WIRE_BASE || addr >= WIRE_BASE + WIRE_BASES * WIRE_BASE_STEP)
		return 0;
	return addr - (addr - WIRE_BASE) % WIRE_BASE_STEP;
}

struct err *undo_areas(struct control *c, uint64_t ret_bases[WIRE_BASES], uint32_t *ret_n)
{
	const struct control_map *m;
	uint32_t n, found = 0;
	struct err *e = control_maps(c, &m, &n);

	for (uint32_t i = 0; !e && i < n; i++) {
		uint64_t base = base_of(m[i].lo);

		if (!base ||
		    (!name_is(&m[i], WIRE_MEMFD_CODE) && !name_is(&m[i], WIRE_MEMFD_SHARED)))
			continue;
		if (m[i].lo != base && m[i].lo != base + WIRE_SHARED)
			continue;
		if (!found || ret_bases[found - 1] != base)
			ret_bases[found++] = base;
	}
	if (!e)
		*ret_n = found;
	return e;
}

uint64_t undo_inode_here(uint64_t addr)
{
	cleanup_free char *want = xasprintf("%llx-", (unsigned long long)addr);
	unsigned long long inode = 0;
	char *text = NULL;
	size_t n;
	struct err *e = io_read_file("/proc/self/maps", &text, &n);

	for (char *line = e ? NULL : strtok(text, "\n"); line && !inode; line = strtok(NULL, "\n"))
		if (!strncmp(line, want, strlen(want)))
			sscanf(line, "%*s %*s %*s %*s %llu", &inode);
	err_free(e);
	free(text);
	return inode;
}

/* The end of the shared mapping, 0 when there is none; the inodes of both memfds, 0 likewise. */
static uint64_t find_inodes(const struct control_map *m, uint32_t n, uint64_t base,
			    uint64_t *ret_shared, uint64_t *ret_code)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < n; i++)
		if (m[i].lo == base + WIRE_SHARED && name_is(&m[i], WIRE_MEMFD_SHARED)) {
			end = m[i].hi;
			*ret_shared = m[i].inode;
		} else if (m[i].lo == base && name_is(&m[i], WIRE_MEMFD_CODE)) {
			*ret_code = m[i].inode;
		}
	return end;
}

/* Which of a process's threads still has the memory: one that has ended, the main one too, shows none. */
static char *maps_of(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/task", pid);
	DIR *d = opendir(path);
	struct dirent *de;
	char *text = NULL;
	size_t n = 0;

	while (d && !n && (de = readdir(d))) {
		cleanup_free char *file = xasprintf("%s/%s/maps", path, de->d_name);

		free(text);
		text = NULL;
		if (de->d_name[0] == '.')
			continue;
		err_free(io_read_file(file, &text, &n));
	}
	if (d)
		closedir(d);
	return text;
}

bool undo_left(pid_t pid, uint64_t base, uint64_t inode, uint64_t code_inode)
{
	cleanup_free char *text = maps_of(pid);
	bool found = false;
	char *save = NULL;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && !found;
	     line = strtok_r(NULL, "\n", &save)) {
		unsigned long long lo, have;

		if (sscanf(line, "%llx-%*x %*s %*s %*s %llu", &lo, &have) == 2 && have)
			found = (lo == base && have == code_inode) ||
				(lo == base + WIRE_SHARED && have == inode);
	}
	return found;
}

static int by_site(const void *a, const void *b)
{
	const struct wire_undo *x = a, *y = b;

	return x->site < y->site ? -1 : x->site > y->site;
}

static bool sane(const struct wire_undo *u)
{
	if (!u->len || u->len > WIRE_SITE_MAX || u->site < CHUNK || u->site >> 47 ||
	    u->stub_len > STUB_MAX || u->stub >> 47)
		return false;
	for (uint32_t i = 0; i < u->len; i++)
		if (u->moved[i] != 0xffff && u->moved[i] >= u->stub_len)
			return false;
	return true;
}

/* Takes the records of `pid`, or of any process when it is 0. */
static struct err *read_records(struct control *c, uint64_t addr, uint32_t n, pid_t pid,
				struct undo_log *log)
{
	cleanup_free struct wire_undo *buf = xmalloc(sizeof(*buf) * CHUNK);

	for (uint32_t at = 0; at < n;) {
		uint32_t part = n - at < CHUNK ? n - at : CHUNK;
		struct err *e = control_read(c, addr + (uint64_t)at * sizeof(*buf), buf,
					     part * (uint32_t)sizeof(*buf));

		if (e)
			return err_wrap(e, "the undo log");
		for (uint32_t i = 0; i < part; i++)
			if (sane(&buf[i]) && (!pid || buf[i].pid == (uint32_t)pid))
				vec_push(&log->sites, buf[i]);
		at += part;
	}
	return NULL;
}

/* Sorted. Of one place there may be several, with different patches (an attach that failed, and the next), and where a library
 * was another one may be now, whose places overlap: what is in memory tells which of them was done. */
static void sort_records(struct undo_log *log)
{
	uint32_t n = 0;

	if (log->sites.n)
		qsort(log->sites.v, log->sites.n, sizeof(*log->sites.v), by_site);
	for (uint32_t i = 0; i < log->sites.n; i++) {
		const struct wire_undo *u = &log->sites.v[i];
		bool again = false;

		for (uint32_t k = n; k-- > 0 && log->sites.v[k].site == u->site && !again;)
			again = u->len == log->sites.v[k].len &&
				!memcmp(u->after, log->sites.v[k].after, u->len);
		if (!again)
			log->sites.v[n++] = *u;
	}
	log->sites.n = n;
}

/* Whose records are a process's: its own, or, of a forked child, those of the process it is a copy of. 0: not known. */
static pid_t patched_as(struct control *c, uint64_t base)
{
	uint32_t pid = 0;
	struct err *e =
		control_read(c, base + WIRE_PRIVATE + WIRE_KEPT + offsetof(struct wire_kept, pid),
			     &pid, sizeof(pid));

	if (e)
		pid = 0;
	err_free(e);
	return (pid_t)pid;
}

/* Without its island a place was not patched: a tracer that found the stretch taken, by another's island, had its records
 * written already. Those are not to be believed: the other's jumps may look as its own would. */
static void drop_unmapped(struct undo_log *log, const struct control_map *m, uint32_t n)
{
	VEC(struct control_range) islands = { 0 };
	uint32_t kept = 0;
	char name[UNDO_NAME];

	undo_island_name(log->base, name);
	for (uint32_t i = 0; i < n; i++)
		if (name_is(&m[i], name))
			vec_push(&islands, (struct control_range){ m[i].lo, m[i].hi });
	for (uint32_t i = 0; i < log->sites.n; i++) {
		const struct wire_undo *u = &log->sites.v[i];
		bool there = !u->stub;

		for (uint32_t k = 0; k < islands.n && !there; k++)
			there = u->stub >= islands.v[k].lo && u->stub < islands.v[k].hi;
		if (there)
			log->sites.v[kept++] = *u;
	}
	log->sites.n = kept;
	vec_fini(&islands);
}

struct err *undo_log_read(struct control *c, uint64_t base, struct undo_log *ret)
{
	struct undo_log log = { .base = base };
	pid_t id;
	const struct control_map *m;
	struct wire_area a;
	uint64_t end = 0;
	uint32_t n;
	struct err *e = control_maps(c, &m, &n);

	if (!e)
		end = find_inodes(m, n, base, &log.inode, &log.code_inode);
	if (!e && end)
		e = control_read(c, base + WIRE_SHARED, &a, sizeof(a));
	if (e)
		return e;
	/* not yet laid out: nothing was patched by it */
	if (!end || !a.magic) {
		*ret = log;
		return NULL;
	}
	if (a.magic != (WIRE_AREA_MAGIC) || a.version != WIRE_AREA_VERSION)
		return err_new(
			EINVAL,
			"process %d has mappings of another version of descry (%u, this is %u): heal it with that one",
			control_pid(c), a.version, WIRE_AREA_VERSION);
	if (a.base != base || a.private_size > PRIVATE_MAX || a.nundo > UNDO_MAX ||
	    a.undo < base + WIRE_SHARED || a.undo > end ||
	    (end - a.undo) / sizeof(struct wire_undo) < a.nundo)
		return err_new(EINVAL, "process %d: the undo log at 0x%llx is damaged",
			       control_pid(c), (unsigned long long)base + WIRE_SHARED);
	log.private_size = a.private_size;
	log.tracer_pid = a.tracer_pid;
	log.watchdog_pid = a.watchdog_pid;
	id = patched_as(c, base);
	e = read_records(c, a.undo, a.nundo, id ? id : control_pid(c), &log);
	if (!e && !log.sites.n && !id)
		e = read_records(c, a.undo, a.nundo, 0, &log);
	drop_unmapped(&log, m, n);
	sort_records(&log);
	if (e)
		undo_log_fini(&log);
	else
		*ret = log;
	return e;
}

/* --- text --- */

void undo_prepare(struct undo_log *log)
{
	struct control_patch *p = xcalloc(log->sites.n + 1, sizeof(*p));

	for (uint32_t i = 0; i < log->sites.n; i++) {
		const struct wire_undo *u = &log->sites.v[i];

		p[i].addr = u->site;
		p[i].len = u->len;
		memcpy(p[i].expect, u->before, u->len);
		memcpy(p[i].put, u->after, u->len);
	}
	free(log->patches);
	log->patches = p;
}

struct err *undo_patch(struct control *c, struct undo_log *log, uint32_t *ret_skipped)
{
	struct mover m = { log, undo_pc_in, 0 };
	struct err *e;

	if (!log->patches)
		undo_prepare(log);
	e = move_all(c, &m);
	return e ?: control_patch_text(c, log->patches, log->sites.n, ret_skipped);
}

/* Is `have` a site that a tracer was killed in the middle of writing? Each side of a page boundary has its own state. */
static bool is_torn(const struct wire_undo *u, const uint8_t *have)
{
	static const uint8_t hold[] = { WIRE_UNDO_HOLD };
	uint32_t first = (uint32_t)(CHUNK - u->site % CHUNK), rest = u->len - first;
	uint8_t held[WIRE_SITE_MAX];

	if (first >= u->len || first < sizeof(hold))
		return false;
	if (memcmp(have + first, u->before + first, rest) &&
	    memcmp(have + first, u->after + first, rest))
		return false;
	for (int k = 0; k < 2; k++) {
		const uint8_t *state = k ? u->after : u->before;

		memcpy(held, state, first);
		if (!memcmp(have, held, first))
			return true;
		memcpy(held, hold, sizeof(hold));
		if (!memcmp(have, held, first))
			return true;
	}
	return false;
}

/* Text read in runs of pages: sites come in order, and there may be 10,000. */
struct window {
	uint64_t lo;
	uint32_t n;
	uint8_t bytes[16 * CHUNK];
};

/* Bytes of site i. */
static struct err *read_site(struct control *c, struct window *w, const struct undo_log *log,
			     uint32_t i, uint8_t *ret)
{
	const struct wire_undo *u = &log->sites.v[i];
	uint64_t end = u->site + u->len;
	struct err *e;

	if (u->site - w->lo >= w->n || w->n - (u->site - w->lo) < u->len) {
		w->lo = u->site - u->site % CHUNK;
		for (; i < log->sites.n &&
		       log->sites.v[i].site + WIRE_SITE_MAX <= w->lo + sizeof(w->bytes);
		     i++)
			if (log->sites.v[i].site + log->sites.v[i].len > end)
				end = log->sites.v[i].site + log->sites.v[i].len;
		w->n = (uint32_t)((end + CHUNK - 1) / CHUNK * CHUNK - w->lo);
		e = control_read(c, w->lo, w->bytes, w->n);
		if (e) { /* part of it is unmapped */
			w->n = 0;
			err_free(e);
			return control_read(c, u->site, ret, u->len);
		}
	}
	memcpy(ret, w->bytes + (u->site - w->lo), u->len);
	return NULL;
}

/* What a place holds, by one of its records. */
enum holds { NOTHING /* its text is not mapped */, FOREIGN, BEFORE, AFTER };

static enum holds what_holds(struct control *c, struct window *w, const struct undo_log *log,
			     uint32_t i, uint8_t *ret)
{
	const struct wire_undo *u = &log->sites.v[i];
	struct err *e = read_site(c, w, log, i, ret);

	if (e) {
		err_free(e);
		return NOTHING;
	}
	if (!memcmp(ret, u->before, u->len))
		return BEFORE;
	return !memcmp(ret, u->after, u->len) || is_torn(u, ret) ? AFTER : FOREIGN;
}

/* Does another record speak of bytes of record i, and truly? */
static bool is_settled(const struct undo_log *log, const uint8_t *holds, uint32_t i)
{
	const struct wire_undo *v = log->sites.v, *u = &v[i];

	for (uint32_t k = i; k-- > 0 && u->site - v[k].site < WIRE_SITE_MAX;)
		if (holds[k] >= BEFORE && v[k].site + v[k].len > u->site)
			return true;
	for (uint32_t k = i + 1; k < log->sites.n && v[k].site < u->site + u->len; k++)
		if (holds[k] >= BEFORE)
			return true;
	return false;
}

static struct err *restore_text(struct control *c, struct undo_log *log, struct undo_report *r)
{
	uint32_t n = log->sites.n, todo = 0, skipped;
	cleanup_free struct control_patch *p = xcalloc(n + 1, sizeof(*p));
	cleanup_free struct window *w = xcalloc(1, sizeof(*w));
	cleanup_free uint8_t *holds = xcalloc(n + 1, 1);
	uint64_t done = 0; /* up to this address */
	struct err *e;

	for (uint32_t i = 0; i < n; i++) {
		const struct wire_undo *u = &log->sites.v[i];
		struct control_patch *q = &p[todo];

		holds[i] = (uint8_t)what_holds(c, w, log, i, q->expect);
		if (holds[i] != AFTER || u->site < done)
			continue;
		q->addr = u->site;
		q->len = u->len;
		memcpy(q->put, u->before, u->len);
		done = u->site + u->len;
		todo++;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct wire_undo *u = &log->sites.v[i];

		r->gone += holds[i] == NOTHING;
		r->clean += holds[i] == BEFORE && !(i && holds[i - 1] == BEFORE &&
						    u[-1].site == u->site);
		if (holds[i] != FOREIGN || is_settled(log, holds, i))
			continue;
		r->foreign++;
		u->stub = 0; /* nobody is taken out of it into that text */
	}
	e = control_patch_text(c, p, todo, &skipped);
	r->restored += todo - skipped;
	return e;
}

/* --- signal actions --- */

/* Gives back the program's own actions where ours stand. */
static struct err *restore_signals(struct control *c, const struct undo_log *log,
				   struct undo_report *r)
{
	uint64_t at = log->base + WIRE_PRIVATE;
	struct wire_sigaction now;
	struct wire_private p;
	struct err *e = NULL;
	uint32_t off = 1;
	int64_t got;

	e = control_read(c, at, &p, offsetof(struct wire_private, threads));
	if (!e)
		e = control_write(c, at + offsetof(struct wire_private, off), &off, sizeof(off));
	if (e) { /* a forked child that unmapped it, or an attach cut short */
		err_free(e);
		return NULL;
	}
	for (int i = 0; !e && i < WIRE_SIGNALS; i++) {
		uint64_t scratch = at + offsetof(struct wire_private, spare);
		uint64_t own = at + offsetof(struct wire_private, action) +
			       (uint64_t)i * sizeof(struct wire_sigaction);

		if (!(p.signals >> i & 1))
			continue;
		e = control_syscall(c, SYS_rt_sigaction,
				    (uint64_t[6]){ (uint64_t)signals[i], 0, scratch, 8 }, &got);
		if (!e && got == 0)
			e = control_read(c, scratch, &now, sizeof(now));
		if (e || got || now.handler < log->base ||
		    now.handler >= log->base + WIRE_CODE_SIZE)
			continue;
		e = control_syscall(c, SYS_rt_sigaction,
				    (uint64_t[6]){ (uint64_t)signals[i], own, 0, 8 }, &got);
		r->signals += !e && got == 0;
	}
	return e;
}

/* --- mappings --- */

/* What is to be unmapped, in this order: private, islands, code, shared. */
struct mappings {
	VEC(struct control_range) v;
	uint32_t shared; /* index of the first that may only go last */
};

static struct err *find_mappings(struct control *c, const struct undo_log *log,
				 struct mappings *ret)
{
	uint64_t private = log->base + WIRE_PRIVATE;
	const struct control_map *m;
	char island[UNDO_NAME];
	uint32_t n;
	struct err *e = control_maps(c, &m, &n);

	undo_island_name(log->base, island);
	for (uint32_t i = 0; !e && i < n; i++)
		/* exactly what was mapped: the program may have memory of its own behind it, even in one mapping */
		if (log->private_size && !m[i].inode && m[i].lo == private)
			vec_push(&ret->v,
				 (struct control_range){ private, private + log->private_size });
	/* of an attach cut short, and of libraries that are gone, too */
	for (uint32_t i = 0; !e && i < n; i++)
		if (name_is(&m[i], island))
			vec_push(&ret->v, (struct control_range){ m[i].lo, m[i].hi });
	for (uint32_t i = 0; !e && i < n; i++)
		if (name_is(&m[i], WIRE_MEMFD_CODE) && base_of(m[i].lo) == log->base)
			vec_push(&ret->v, (struct control_range){ m[i].lo, m[i].hi });
	ret->shared = ret->v.n;
	for (uint32_t i = 0; !e && i < n; i++)
		if (name_is(&m[i], WIRE_MEMFD_SHARED) && base_of(m[i].lo) == log->base)
			vec_push(&ret->v, (struct control_range){ m[i].lo, m[i].hi });
	return e;
}

/* Does code that is not as it was still jump to what would be unmapped? Then that stays, and the process runs on. */
static bool jumped_to(struct control *c, const struct undo_log *log, const struct mappings *m)
{
	enum { JMP = 0xe9, JMP_LEN = 5 };
	uint8_t have[WIRE_SITE_MAX];
	int32_t rel;

	for (uint32_t i = 0; i < log->sites.n; i++) {
		const struct wire_undo *u = &log->sites.v[i];
		struct err *e = control_read(c, u->site, have, u->len);
		uint64_t to = 0;

		if (!e && u->len >= JMP_LEN && have[0] == JMP) {
			memcpy(&rel, have + 1, sizeof(rel));
			to = u->site + JMP_LEN + (uint64_t)(int64_t)rel;
		}
		err_free(e);
		for (uint32_t k = 0; to && k < m->v.n; k++)
			if (to >= m->v.v[k].lo && to < m->v.v[k].hi)
				return true;
	}
	return false;
}

static struct err *unmap(struct control *c, const struct mappings *m, struct undo_report *r)
{
	struct err *e = NULL;
	int64_t got;

	for (uint32_t i = 0; !e && i < m->v.n; i++) {
		e = control_syscall(c, SYS_munmap,
				    (uint64_t[6]){ m->v.v[i].lo, m->v.v[i].hi - m->v.v[i].lo },
				    &got);
		if (!e && got)
			e = err_errno((int)-got, "munmap in process %d", control_pid(c));
		r->unmapped += !e;
	}
	return e;
}

/* --- descriptors --- */

/* Of an attach cut short. */
struct strays {
	VEC(int) fds;
	VEC(uint64_t) pages;
};

/* What a descriptor of the process is; "" when it is not open. */
static void link_of(pid_t pid, const char *fd, char *ret, size_t size)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd/%s", pid, fd);
	ssize_t n = readlink(path, ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
}

uint64_t undo_socket(pid_t pid, int fd)
{
	unsigned long long inode = 0;
	char number[16], text[64];

	snprintf(number, sizeof(number), "%d", fd);
	link_of(pid, number, text, sizeof(text));
	return sscanf(text, "socket:[%llu]", &inode) == 1 ? inode : 0;
}

static uint64_t inode_of(pid_t pid, const char *fd)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd/%s", pid, fd);
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

/* Files of ours that are open there. The code's is the last that is closed: as long as it is there, the others are the same
 * tracer's. */
static void find_files(pid_t pid, uint64_t code_inode, struct strays *s)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd", pid);
	DIR *d = opendir(path);
	bool all = !code_inode;
	struct dirent *de;
	char text[64];
	int code = -1;

	while (d && (de = readdir(d))) {
		link_of(pid, de->d_name, text, sizeof(text));
		if (strncmp(text, "/memfd:" WIRE_MEMFD_PREFIX,
			    sizeof("/memfd:" WIRE_MEMFD_PREFIX) - 1))
			continue;
		if (code_inode && inode_of(pid, de->d_name) == code_inode) {
			code = atoi(de->d_name);
			all = true;
		} else {
			vec_push(&s->fds, atoi(de->d_name));
		}
	}
	if (d)
		closedir(d);
	if (!all)
		s->fds.n = 0;
	if (code >= 0)
		vec_push(&s->fds, code);
}

/* Sockets that are those of which a page tells. */
static void find_sockets(struct control *c, uint64_t base, struct strays *s)
{
	const struct control_map *m;
	uint32_t n = 0;
	struct err *e = control_maps(c, &m, &n);

	for (uint32_t i = 0; !e && i < n; i++) {
		uint64_t at = base_of(m[i].lo);
		struct undo_mail mail;

		if (!at || m[i].lo != at + WIRE_MAIL || (base && at != base) || m[i].inode)
			continue;
		e = control_read(c, m[i].lo, &mail, sizeof(mail));
		if (e)
			break;
		vec_push(&s->pages, m[i].lo);
		for (int k = 0; k < 2 && mail.magic == UNDO_MAIL_MAGIC; k++) {
			uint64_t have =
				mail.pair[k] < 0 ? 0 : undo_socket(control_pid(c), mail.pair[k]);

			if (have && (!mail.socket[k] || have == mail.socket[k]))
				vec_push(&s->fds, mail.pair[k]);
		}
	}
	err_free(e);
}

struct err *undo_strays(struct control *c, uint64_t code_inode, uint64_t base, int timeout_ms,
			struct undo_report *r)
{
	struct strays s = { 0 };
	struct err *e = NULL;
	int64_t got;

	find_files(control_pid(c), code_inode, &s);
	find_sockets(c, base, &s);
	if (s.fds.n || s.pages.n) {
		e = control_stop_to_call(c, timeout_ms);
		if (e) {
			vec_fini(&s.fds);
			vec_fini(&s.pages);
			return e;
		}
		s.fds.n = s.pages.n = 0;
		find_files(control_pid(c), code_inode, &s);
		find_sockets(c, base, &s);
		for (uint32_t i = 0; !e && i < s.fds.n; i++) {
			e = control_syscall(c, SYS_close, (uint64_t[6]){ (uint64_t)s.fds.v[i] },
					    &got);
			r->closed += !e && !got;
		}
		for (uint32_t i = 0; !e && i < s.pages.n; i++) {
			e = control_syscall(c, SYS_munmap, (uint64_t[6]){ s.pages.v[i], CHUNK },
					    &got);
			r->unmapped += !e && !got;
		}
		if (e)
			err_free(control_resume(c));
		else
			e = control_resume(c);
	}
	vec_fini(&s.fds);
	vec_fini(&s.pages);
	return e;
}

/* --- all of it --- */

/* Is the area of which the log is still the one at this base? */
static bool is_there(struct control *c, const struct undo_log *log)
{
	const struct control_map *m;
	uint64_t shared = 0, code = 0;
	uint32_t n;
	struct err *e = control_maps(c, &m, &n);

	if (e) {
		err_free(e);
		return false;
	}
	find_inodes(m, n, log->base, &shared, &code);
	return shared == log->inode && code == log->code_inode;
}

/* One stop: text, signal actions, program counters; and the mappings when no thread can come back to them. */
static struct err *restore_once(struct control *c, struct undo_log *log, int timeout_ms,
				bool *again, struct undo_report *r)
{
	struct mover m = { log, undo_pc_out, 0 };
	struct mappings maps = { 0 };
	struct err *e = control_stop(c, timeout_ms);

	r->busy = 0;
	if (e)
		return e;
	if (!is_there(c, log)) /* someone else has undone it, and perhaps begun anew */
		return control_resume(c);
	if (!*again) {
		e = restore_text(c, log, r) ?: restore_signals(c, log, r);
		*again = !e;
	}
	e = e ?: move_all(c, &m);
	r->moved += m.moved;
	e = e ?: find_mappings(c, log, &maps);
	/* A return address into a stub is on the stack only while the thread is in the thunk that the stub called, or in a
	 * handler that interrupted it there: the program counters tell. The shared mapping is data. */
	e = e ?: control_refers(c, maps.v.v, maps.shared, false, &r->busy);
	if (!e && !r->busy && r->foreign && jumped_to(c, log, &maps))
		r->busy = control_pid(c);
	if (!e && !r->busy)
		e = unmap(c, &maps, r);
	vec_fini(&maps.v);
	if (e && e->code == EBUSY) { /* the only thread waits for its vfork child */
		err_free(e);
		e = NULL;
		r->busy = control_pid(c);
	}
	if (e)
		err_free(control_resume(c));
	else
		e = control_resume(c);
	return e;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct err *undo_restore(struct control *c, struct undo_log *log, int timeout_ms,
			 struct undo_report *ret)
{
	uint64_t end = now_ms() + (uint64_t)timeout_ms;
	long pause = 200000;
	bool again = false;
	struct err *e;

	do {
		e = restore_once(c, log, timeout_ms, &again, ret);
		if (e || !ret->busy)
			return e;
		nanosleep(&(struct timespec){ .tv_nsec = pause }, NULL);
		if (pause < 50000000)
			pause *= 2;
	} while (now_ms() < end);
	return NULL;
}

struct err *undo_quiet(struct control *c, int timeout_ms)
{
	return control_stop(c, timeout_ms) ?: control_resume(c);
}

struct err *undo_all(struct control *c, int timeout_ms, struct undo_report *ret)
{
	uint64_t bases[WIRE_BASES];
	struct err *e;
	uint32_t n;

	*ret = (struct undo_report){ 0 };
	e = undo_quiet(c, timeout_ms) ?: undo_strays(c, 0, 0, timeout_ms, ret) ?: undo_areas(c, bases, &n);
	for (uint32_t i = 0; !e && i < n; i++) {
		struct undo_log log;
		pid_t busy = ret->busy;

		e = undo_log_read(c, bases[i], &log);
		if (e)
			break;
		e = undo_restore(c, &log, timeout_ms, ret);
		ret->busy = ret->busy ?: busy;
		undo_log_fini(&log);
	}
	return e;
}
