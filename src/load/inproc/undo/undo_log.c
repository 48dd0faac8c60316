/* The undo log: finds the areas in a process and reads their records. */
#define _GNU_SOURCE
#include <errno.h>

#include "base/sorted.h"
#include "load/inproc/undo/undo_private.h"

enum {
	UNDO_MAX = 1 << 20,
	STUB_MAX = 1 << 16,
	PRIVATE_MAX = 1 << 30,
	RECORDS = 4096,     /* records read at once */
	NO_STUBS = 1 << 16, /* records without a stub that a log may have: traps, semaphores */
	SAME_SITE = 16,     /* records of one place that are examined; an honest log has a few */
};

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
		memcpy(u->moved, moved, (len < WIRE_SITE_MAX ? len + 1u : len) * sizeof(*moved));
	__atomic_store_n(&u->len, len, __ATOMIC_RELEASE);
}

void undo_log_fini(struct undo_log *log)
{
	vec_fini(&log->sites);
	vec_fini(&log->still);
	free(log->patches);
	free(log->by_stub);
	log->by_stub = NULL;
	log->patches = NULL;
}

bool undo_is(const struct undo_log *log, uint64_t inode, uint64_t code_inode)
{
	return log->inode ? log->inode == inode : log->code_inode && log->code_inode == code_inode;
}

/* --- areas --- */

void undo_island_name(uint64_t base, char ret[UNDO_NAME])
{
	snprintf(ret, UNDO_NAME, WIRE_MEMFD_ISLAND "-%llx", (unsigned long long)(base >> 40));
}

uint64_t undo_base_of(uint64_t addr)
{
	if (addr < WIRE_BASE || addr >= WIRE_BASE + WIRE_BASES * WIRE_BASE_STEP)
		return 0;
	return addr - (addr - WIRE_BASE) % WIRE_BASE_STEP;
}

struct err *undo_is_tracer(struct control *c, bool *ret)
{
	const struct mappings *maps;
	struct err *e = control_maps(c, &maps);

	*ret = false;
	for (uint32_t i = 0; !e && i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];

		*ret |= m->write && (mapping_is_memfd(m, WIRE_MEMFD_CODE) ||
				     mapping_is_memfd(m, WIRE_MEMFD_FACTS));
	}
	return e;
}

uint32_t undo_bases(const struct mappings *maps, uint64_t ret_bases[WIRE_BASES])
{
	uint32_t found = 0, seen = 0;

	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];
		uint64_t base = undo_base_of(m->start);
		uint32_t bit;

		if (!base || (!mapping_is_memfd(m, WIRE_MEMFD_CODE) &&
			      !mapping_is_memfd(m, WIRE_MEMFD_FACTS)))
			continue;
		if (m->start != base && m->start != base + WIRE_FACTS)
			continue;
		bit = 1u << (base - WIRE_BASE) / WIRE_BASE_STEP;
		if (!(seen & bit))
			ret_bases[found++] = base;
		seen |= bit;
	}
	return found;
}
_Static_assert(WIRE_BASES <= 32, "undo_bases() has a bit for each");

struct err *undo_areas(struct control *c, uint64_t ret_bases[WIRE_BASES], uint32_t *ret_n)
{
	const struct mappings *maps;
	struct err *e = control_maps(c, &maps);

	if (!e)
		*ret_n = undo_bases(maps, ret_bases);
	return e;
}

uint64_t undo_inode_here(uint64_t addr)
{
	struct mappings maps = { 0 };
	const struct mapping *m;
	uint64_t inode;

	err_free(mappings_read(getpid(), &maps));
	m = mappings_find(&maps, addr);
	inode = m && m->start == addr ? m->inode : 0;
	mappings_free(&maps);
	return inode;
}

/* Returns the end of the facts, 0 when there are none. Also finds the inodes of both memory files,
 * 0 likewise. */
uint64_t undo_find_inodes(const struct mappings *maps, uint64_t base, uint64_t *ret_facts,
			  uint64_t *ret_code)
{
	const struct mapping *facts = mappings_find(maps, base + WIRE_FACTS),
			     *code = mappings_find(maps, base);

	if (code && code->start == base && mapping_is_memfd(code, WIRE_MEMFD_CODE))
		*ret_code = code->inode;
	if (!facts || facts->start != base + WIRE_FACTS ||
	    !mapping_is_memfd(facts, WIRE_MEMFD_FACTS))
		return 0;
	*ret_facts = facts->inode;
	return facts->end;
}

/* All memory files are on one device. Their names distinguish them from other files with these
 * inodes. */
bool undo_left(pid_t pid, uint64_t base, uint64_t inode, uint64_t code_inode)
{
	struct mappings maps = { 0 };
	uint64_t facts = 0, code = 0;

	err_free(mappings_read_whole(pid, &maps));
	(void)undo_find_inodes(&maps, base, &facts, &code);
	mappings_free(&maps);
	return (facts && facts == inode) || (code && code == code_inode);
}

static bool writes_files(const struct mappings *maps, uint64_t inode, uint64_t code_inode)
{
	bool writes = false;

	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];

		writes |= m->write &&
			  ((m->inode == inode && mapping_is_memfd(m, WIRE_MEMFD_FACTS)) ||
			   (m->inode == code_inode && mapping_is_memfd(m, WIRE_MEMFD_CODE)));
	}
	return writes;
}

bool undo_writes(pid_t pid, uint64_t inode, uint64_t code_inode)
{
	struct mappings maps = { 0 };
	bool writes;

	err_free(mappings_read_whole(pid, &maps));
	writes = writes_files(&maps, inode, code_inode);
	mappings_free(&maps);
	return writes;
}

bool undo_is_child(pid_t pid, uint64_t base, uint64_t inode, uint64_t code_inode)
{
	struct mappings maps = { 0 };
	uint64_t facts = 0, code = 0;
	bool is;

	err_free(mappings_read_whole(pid, &maps));
	(void)undo_find_inodes(&maps, base, &facts, &code);
	is = facts && facts == inode && !writes_files(&maps, inode, code_inode);
	mappings_free(&maps);
	return is;
}

bool undo_in_ranges(const struct control_range *r, uint32_t n, uint64_t addr)
{
	uint32_t i = partition_point(n, k, r[k].hi <= addr);

	return i < n && addr >= r[i].lo;
}

/* --- logs --- */

static int by_site(const void *a, const void *b)
{
	const struct wire_undo *x = a, *y = b;

	return COMPARE(x->site, y->site);
}

static bool sane(const struct wire_undo *u)
{
	if (!u->len || u->len > WIRE_SITE_MAX || u->site < UNDO_PAGE || u->site >> 47 ||
	    u->stub_len > STUB_MAX || u->stub >> 47)
		return false;
	for (uint32_t i = 0; i < u->len; i++)
		if (u->moved[i] != 0xffff && u->moved[i] >= u->stub_len)
			return false;
	return true;
}

static void take_records(const struct wire_undo *u, uint32_t n, pid_t pid, struct undo_log *log)
{
	for (uint32_t i = 0; i < n; i++)
		if (sane(&u[i]) && (!pid || u[i].pid == (uint32_t)pid))
			vec_push(&log->sites, u[i]);
}

/* Returns the largest possible number of records: each has a stub in an island, except traps and
 * semaphores. */
static uint32_t most_records(const struct mappings *maps, uint64_t base)
{
	uint64_t bytes = 0;
	char name[UNDO_NAME];

	undo_island_name(base, name);
	for (uint32_t i = 0; i < maps->n; i++)
		if (mapping_is_memfd(&maps->v[i], name))
			bytes += maps->v[i].end - maps->v[i].start;
	bytes /= sizeof(struct wire_stub);
	return NO_STUBS + (uint32_t)(bytes < UNDO_MAX ? bytes : UNDO_MAX);
}

/* Calls fn for all records of the log in the process, in pieces. *left: the number of records that
 * may still be read; stops at 0. */
static struct err *read_pieces(struct control *c, const struct wire_area *a, uint32_t *left,
			       undo_records_fn *fn, void *arg)
{
	cleanup_free struct wire_undo *buf = xmalloc(sizeof(*buf) * RECORDS);

	for (uint32_t at = 0; at < a->nundo && *left;) {
		uint32_t part = a->nundo - at < RECORDS ? a->nundo - at : RECORDS;
		struct err *e;

		part = part < *left ? part : *left;
		e = control_read(c, a->undo + (uint64_t)at * sizeof(*buf), buf,
				 part * (uint32_t)sizeof(*buf));
		if (e)
			return err_wrap(e, "the undo log");
		*left -= part;
		if (!fn(arg, buf, part))
			break;
		at += part;
	}
	return NULL;
}

struct taking {
	pid_t pid;
	uint32_t most;
	struct undo_log *log;
};

static bool take_piece(void *arg, const struct wire_undo *u, uint32_t n)
{
	const struct taking *t = arg;

	take_records(u, n, t->pid, t->log);
	return t->log->sites.n < t->most;
}

/* Takes the records of `pid`, or of any process when it is 0. own: reads them here, not in the
 * process; otherwise takes at most `most` of them, and one piece. */
static struct err *read_records(struct control *c, const struct wire_area *a, bool own, pid_t pid,
				uint32_t most, struct undo_log *log)
{
	struct taking t = { pid, most, log };
	uint32_t left = UNDO_MAX;

	if (own) {
		take_records((const struct wire_undo *)a->undo, a->nundo, pid, log);
		return NULL;
	}
	return read_pieces(c, a, &left, take_piece, &t);
}

/* Sorts the records. A place may have several with different patches: one of an attach that failed
 * and one of the next. Places of different libraries may overlap when one was loaded where another
 * one was. The bytes in memory decide which record was carried out. */
static void sort_records(struct undo_log *log)
{
	uint32_t n = 0;

	if (log->sites.n)
		qsort(log->sites.v, log->sites.n, sizeof(*log->sites.v), by_site);
	for (uint32_t i = 0; i < log->sites.n; i++) {
		const struct wire_undo *u = &log->sites.v[i];
		bool again = false;

		for (uint32_t k = n; k-- > 0 && log->sites.v[k].site == u->site && !again;)
			again = n - k >= SAME_SITE ||
				(u->len == log->sites.v[k].len &&
				 !memcmp(u->after, log->sites.v[k].after, u->len));
		if (!again)
			log->sites.v[n++] = *u;
	}
	log->sites.n = n;
}

/* Returns the owner number of a process's records: its own, or in a forked child that of the
 * process it is a copy of. 0: not known. */
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

/* Drops records whose island is not mapped, because such a place was not patched. A tracer that
 * found the range taken by another tracer's island had written its records already. The other
 * tracer's jumps may look like its own. */
static void drop_unmapped(struct undo_log *log, const struct mappings *maps)
{
	VEC(struct control_range) islands = { 0 };
	uint32_t kept = 0;
	char name[UNDO_NAME];

	undo_island_name(log->base, name);
	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];

		if (mapping_is_memfd(m, name))
			vec_push(&islands, (struct control_range){ m->start, m->end });
	}
	for (uint32_t i = 0; i < log->sites.n; i++) {
		const struct wire_undo *u = &log->sites.v[i];

		if (!u->stub || undo_in_ranges(islands.v, islands.n, u->stub))
			log->sites.v[kept++] = *u;
	}
	log->sites.n = kept;
	vec_fini(&islands);
}

static struct err *check_area(struct control *c, const struct wire_area *a, uint64_t base,
			      uint64_t end)
{
	if (a->magic != (WIRE_AREA_MAGIC) || a->version != WIRE_AREA_VERSION)
		return err_new(
			EINVAL,
			"process %d has mappings of another version of descry (%u, this is %u): run descry heal of that version",
			control_pid(c), a->version, WIRE_AREA_VERSION);
	if (a->base != base || a->private_size > PRIVATE_MAX || a->nundo > UNDO_MAX ||
	    a->undo < base + WIRE_FACTS || a->undo > end ||
	    (end - a->undo) / sizeof(struct wire_undo) < a->nundo)
		return err_new(EINVAL, "process %d: the undo log at 0x%llx is damaged",
			       control_pid(c), (unsigned long long)base + WIRE_FACTS);
	return NULL;
}

/* own: the area as this process has it; NULL: as the other process has it. */
static struct err *read_log(struct control *c, uint64_t base, const struct wire_area *own,
			    struct undo_log *ret)
{
	struct undo_log log = { .base = base, .own = own };
	const struct mappings *maps;
	struct wire_area a = { 0 };
	uint64_t end = 0;
	uint32_t most = 0;
	pid_t id;
	struct err *e = control_maps(c, &maps);

	if (!e)
		end = undo_find_inodes(maps, base, &log.inode, &log.code_inode);
	if (own)
		a = *own;
	else if (!e && end)
		e = control_read(c, base + WIRE_FACTS, &a, sizeof(a));
	if (e)
		return e;
	/* it was not laid out yet, so it has no patches */
	if (!end || !a.magic) {
		*ret = log;
		return NULL;
	}
	e = own ? NULL : check_area(c, &a, base, end);
	if (e)
		return e;
	log.private_size = a.private_size;
	log.tracer_pid = a.tracer_pid;
	log.watchdog_pid = a.watchdog_pid;
	id = patched_as(c, base);
	most = most_records(maps, base);
	e = read_records(c, &a, own, id ? id : control_pid(c), most, &log);
	if (!e && !log.sites.n && !id && !own)
		e = read_records(c, &a, own, 0, most, &log);
	drop_unmapped(&log, maps);
	sort_records(&log);
	undo_sort_stubs(&log);
	if (e)
		undo_log_fini(&log);
	else
		*ret = log;
	return e;
}

struct err *undo_log_read(struct control *c, uint64_t base, struct undo_log *ret)
{
	return read_log(c, base, NULL, ret);
}

struct err *undo_log_own(struct control *c, const struct wire_area *own, struct undo_log *ret)
{
	return read_log(c, own->base, own, ret);
}

struct err *undo_log_scan(struct control *c, uint64_t base, uint32_t *left, uint32_t *ret_tracer,
			  undo_records_fn *fn, void *arg)
{
	const struct mappings *maps;
	uint64_t end = 0, facts = 0, code = 0;
	struct wire_area a = { 0 };
	struct err *e = control_maps(c, &maps);

	if (!e)
		end = undo_find_inodes(maps, base, &facts, &code);
	if (!e && end)
		e = control_read(c, base + WIRE_FACTS, &a, sizeof(a));
	if (e || !a.magic)
		return e;
	*ret_tracer = a.tracer_pid;
	return check_area(c, &a, base, end) ?: read_pieces(c, &a, left, fn, arg);
}
