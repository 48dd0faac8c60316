/* Copies the memory that a program can write, and its threads' registers. Pages that it has not
 * touched are passed over: neither read, nor made in the copy. */
#include <errno.h>

#include "base/meminfo.h"
#include "memory/copy/copy_private.h"

enum {
	PIECE = 1 << 20,
	RED_ZONE = 128,
	FILES_MAX = 256 << 20,
	TABLE_PART = 512,  /* a page table takes such a part of the addresses */
	TABLES_SHARE = 16, /* and all of them such a part of the memory at most */
};
#define USER_END (1ull << 56) /* no address of a process is higher */

bool copy_wants(const struct mapping *m, uint64_t java_end)
{
	if (!m->read || m->end <= m->start || m->end > USER_END)
		return false;
	if (m->start >= java_end && copy_is_java_heap(m))
		return false;
	if (!m->write) /* what the process has made, as its code */
		return !m->shared && !*m->path;
	if (!strncmp(m->path, "/memfd:descry", 13))
		return false;
	return !m->shared || strncmp(m->path, "/dev/", 5) || !strncmp(m->path, "/dev/shm/", 9) ||
	       !strncmp(m->path, "/dev/zero", 9);
}

void copy_list_regions(memory_region_vec *ret, const struct mappings *maps)
{
	const uint64_t java_end = copy_java_end(maps);

	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];
		struct memory_region *last = ret->n ? vec_last(ret) : NULL;

		if (!copy_wants(m, java_end))
			continue;
		if (!last || last->end != m->start || last->heap_file != copy_is_java_heap(m)) {
			last = vec_add(ret);
			last->start = m->start;
			last->stack = !strcmp(m->path, "[stack]");
			last->heap_file = copy_is_java_heap(m);
		}
		last->end = m->end;
		last->file |= *m->path && *m->path != '[';
		last->shared |= m->shared;
	}
}

/* Reads one run. Pages that cannot be read stay zeros. */
static void read_run(struct space *s, struct memory_region *r, struct space_range run)
{
	for (uint64_t at = run.start; at < run.end;) {
		uint32_t n = run.end - at < PIECE ? (uint32_t)(run.end - at) : PIECE;
		uint32_t got = space_read_some(s, at, r->bytes + (at - r->start), n);

		at += got == n ? n : (got / MEMORY_PAGE + 1) * MEMORY_PAGE;
	}
}

void copy_list_gaps(const space_range_vec *has, struct space_range in, space_range_vec *ret)
{
	uint32_t i = partition_point(has->n, k, has->v[k].end <= in.start);

	for (uint64_t at = in.start; at < in.end; i++) {
		uint64_t next = i < has->n ? has->v[i].start : in.end;

		if (next > in.end)
			next = in.end;
		if (at < next)
			vec_push(ret, (struct space_range){ at, next });
		if (next == in.end)
			return;
		at = has->v[i].end;
	}
}

/* Lists the pages that are copied: those of the regions that are not in `kept`. A process can map
 * the same page thousands of times, and a core file can name the same bytes as often, so that the
 * copy can be far larger than either. The other half of the memory is for the tables that are made
 * from the copy, and for others.
 * populated: bytes of the copy's memory that are no longer available to others. */
static struct err *list_runs(const struct memory_copy *c, struct space *s,
			     const space_range_vec *kept, uint64_t populated, space_range_vec *ret)
{
	const uint64_t available = meminfo_available(),
		       room = available ? (available + populated) / 2 : 0;
	space_range_vec gaps = { 0 };
	struct err *e = NULL;
	uint64_t n = 0;

	for (uint32_t i = 0; !e && i < c->regions.n; i++) {
		const struct memory_region *r = &c->regions.v[i];

		gaps.n = 0;
		copy_list_gaps(kept, (struct space_range){ r->start, r->end }, &gaps);
		for (uint32_t k = 0; !e && k < gaps.n; k++)
			e = copy_resident(s, r, gaps.v[k], ret);
	}
	for (uint32_t i = 0; i < ret->n; i++)
		n += ret->v[i].end - ret->v[i].start;
	if (!e && room && n > room)
		e = err_new(ENOMEM,
			    "%s: a copy of its memory takes %llu MB, which is more than half of "
			    "the %llu MB that this machine has available",
			    s->name, (unsigned long long)(n >> 20),
			    (unsigned long long)(room >> 19));
	vec_fini(&gaps);
	return e;
}

/* Copies the runs of a region, of which the first is runs->v[*run]. */
static struct err *read_region(struct memory_copy *c, struct space *s, struct memory_room *room,
			       struct memory_region *r, const space_range_vec *runs, uint32_t *run)
{
	const uint32_t first = *run;

	while (*run < runs->n && runs->v[*run].start < r->end)
		++*run;
	if (!r->room.end && !copy_room_take(room, r) &&
	    !copy_room_map(r, 0, runs->v + first, *run - first, &c->advised))
		return err_errno(errno, "%s: no room for a copy of 0x%llx-0x%llx", s->name,
				 (unsigned long long)r->start, (unsigned long long)r->end);
	for (uint32_t i = first; i < *run; i++)
		read_run(s, r, runs->v[i]);
	return NULL;
}

int copy_range_order(const void *a, const void *b)
{
	const struct space_range *p = a, *q = b;

	return COMPARE(p->start, q->start);
}

static void add_runs(struct memory_copy *c, const space_range_vec *runs)
{
	for (uint32_t i = 0; i < runs->n; i++)
		vec_push(&c->runs, runs->v[i]);
	if (c->runs.n)
		qsort(c->runs.v, c->runs.n, sizeof(*c->runs.v), copy_range_order);
}

struct err *copy_read(struct memory_copy *c, struct space *s, const space_range_vec *kept,
		      struct memory_room *room)
{
	space_range_vec runs = { 0 };
	struct err *e = list_runs(c, s, kept, copy_room_populated(room), &runs);
	const uint64_t available = meminfo_available();

	if (!e && available)
		copy_cut_gaps(c, &runs, available / TABLES_SHARE * TABLE_PART);
	for (uint32_t i = 0, run = 0; !e && i < c->regions.n; i++)
		e = read_region(c, s, room, &c->regions.v[i], &runs, &run);
	if (!e)
		add_runs(c, &runs);
	vec_fini(&runs);
	return e;
}

static struct err *read_registers(struct memory_copy *c, struct space *s)
{
	const struct space_thread *t = NULL;
	uint32_t n = 0;
	struct err *e = space_threads(s, &t, &n);

	for (uint32_t i = 0; !e && i < n; i++) {
		const struct user_regs_struct *r = &t[i].regs;
		const uint64_t words[] = { r->r15,      r->r14,     r->r13,    r->r12, r->rbp,
					   r->rbx,      r->r11,     r->r10,    r->r9,  r->r8,
					   r->rax,      r->rcx,     r->rdx,    r->rsi, r->rdi,
					   r->orig_rax, r->fs_base, r->gs_base };

		for (uint32_t k = 0; k < ARRAY_SIZE(words); k++)
			vec_push(&c->registers, words[k]);
		vec_push(&c->threads,
			 (struct memory_thread){ r->rsp > RED_ZONE ? r->rsp - RED_ZONE : 0,
						 r->fs_base });
	}
	return e;
}

struct err *copy_keep(struct memory_copy *c, struct space *s, const space_range_vec *kept)
{
	struct err *e = NULL;

	for (uint32_t i = 0; !e && i < kept->n; i++) {
		uint32_t at =
			partition_point(c->regions.n, k, c->regions.v[k].end <= kept->v[i].start);
		struct memory_region *r = &c->regions.v[at];
		space_range_vec runs = { 0 };
		uint32_t run = 0;

		e = copy_resident(s, r, kept->v[i], &runs);
		e = e ?: read_region(c, s, NULL, r, &runs, &run);
		if (!e)
			add_runs(c, &runs);
		vec_fini(&runs);
	}
	return e;
}

struct err *copy_begin(struct memory_copy *c, struct space *s, const struct mappings **ret)
{
	struct err *e = space_mappings(s, 0, ret);

	if (e)
		return e;
	copy_list_regions(&c->regions, *ret);
	return read_registers(c, s);
}

struct err *memory_copy_into(struct space *s, struct memory_room *room, struct memory_copy **ret)
{
	const space_range_vec none = { 0 };
	struct memory_copy *c = xcalloc(1, sizeof(*c));
	const struct mappings *maps;
	struct err *e = copy_begin(c, s, &maps);

	e = e ?: copy_read(c, s, &none, room);
	if (e)
		memory_copy_free(c);
	else
		*ret = c;
	return e;
}

struct err *memory_copy(struct space *s, struct memory_copy **ret)
{
	return memory_copy_into(s, NULL, ret);
}

static int size_order(const void *a, const void *b)
{
	const struct space_range *p = a, *q = b;

	return COMPARE(p->end - p->start, q->end - q->start);
}

/* Keeps the smallest ranges, of FILES_MAX bytes together. Returns the bytes that they have. */
static uint64_t keep_small(struct memory_copy *c, space_range_vec *gaps)
{
	uint64_t n = 0, total = 0;
	uint32_t kept = 0;

	if (gaps->n)
		qsort(gaps->v, gaps->n, sizeof(*gaps->v), size_order);
	for (uint32_t i = 0; i < gaps->n; i++) {
		total += gaps->v[i].end - gaps->v[i].start;
		if (total <= FILES_MAX) {
			n = total;
			kept = i + 1;
		}
	}
	c->left_out = total - n;
	gaps->n = kept;
	return n;
}

struct err *memory_copy_files(struct memory_copy *c, struct space *s)
{
	const uint64_t room = meminfo_available();
	const struct mappings *maps = NULL;
	struct err *e = space_mappings(s, 0, &maps);
	space_range_vec gaps = { 0 };
	uint64_t n;

	for (uint32_t i = 0; !e && i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];

		if (copy_wants(m, UINT64_MAX) && !m->shared && *m->path && *m->path != '[')
			copy_list_gaps(&c->runs, (struct space_range){ m->start, m->end }, &gaps);
	}
	n = keep_small(c, &gaps);
	if (!e && room && n > room)
		e = err_new(ENOMEM, "%s: no room for a copy of its files", s->name);
	for (uint32_t i = 0; !e && i < gaps.n; i++) {
		uint32_t at =
			partition_point(c->regions.n, k, c->regions.v[k].end <= gaps.v[i].start);

		if (at == c->regions.n || c->regions.v[at].start > gaps.v[i].start ||
		    c->regions.v[at].end < gaps.v[i].end)
			continue;
		read_run(s, &c->regions.v[at], gaps.v[i]);
		vec_push(&c->runs, gaps.v[i]);
	}
	if (c->runs.n)
		qsort(c->runs.v, c->runs.n, sizeof(*c->runs.v), copy_range_order);
	vec_fini(&gaps);
	return e;
}

void memory_copy_free(struct memory_copy *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->regions.n; i++)
		copy_room_unmap(&c->regions.v[i]);
	vec_fini(&c->regions);
	vec_fini(&c->runs);
	vec_fini(&c->registers);
	vec_fini(&c->threads);
	free(c);
}

const struct memory_region *memory_region_at(const struct memory_copy *c, uint64_t addr)
{
	uint32_t i = partition_point(c->regions.n, k, c->regions.v[k].end <= addr);

	return i < c->regions.n && c->regions.v[i].start <= addr ? &c->regions.v[i] : NULL;
}

const void *memory_at(const struct memory_copy *c, uint64_t addr, uint64_t n)
{
	const struct memory_region *last = NULL;

	return memory_at_near(c, &last, addr, n);
}

const void *memory_at_near(const struct memory_copy *c, const struct memory_region **last,
			   uint64_t addr, uint64_t n)
{
	const struct memory_region *r = *last;

	if (!r || addr < r->start || addr >= r->end) {
		r = memory_region_at(c, addr);
		if (!r)
			return NULL;
		*last = r;
	}
	return n <= r->end - addr ? r->bytes + (addr - r->start) : NULL;
}

static int stacks_by_address(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

void memory_stacks(const struct memory_copy *c, memory_word_vec *ret)
{
	for (uint32_t i = 0; i < c->threads.n; i++)
		vec_push(ret, c->threads.v[i].sp);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), stacks_by_address);
}

bool memory_has_stack(const memory_word_vec *stacks, const struct memory_region *r)
{
	uint32_t i = partition_point(stacks->n, k, stacks->v[k] < r->start);

	return i < stacks->n && stacks->v[i] < r->end;
}
