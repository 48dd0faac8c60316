/* The undo log: patches and restores text, and moves program counters. */

#include "base/sorted.h"
#include "load/inproc/undo/undo_private.h"

enum { SAME_STUB = 16, JMP = 0xe9, JMP_LEN = 5 };

/* --- program counters --- */

/* Returns the last site at or below pc, if pc is in it. */
static const struct wire_undo *site_at(const struct undo_log *log, uint64_t pc)
{
	uint32_t lo = partition_point(log->sites.n, i, log->sites.v[i].site <= pc);

	if (!lo || pc - log->sites.v[lo - 1].site >= log->sites.v[lo - 1].len)
		return NULL;
	return &log->sites.v[lo - 1];
}

static uint64_t pc_in(const struct undo_log *log, uint64_t pc)
{
	const struct wire_undo *u = site_at(log, pc);
	uint64_t at = u ? pc - u->site : 0;

	/* at the site itself the jump executes, and the probe fires */
	return u && at && u->stub && u->moved[at] != 0xffff ? u->stub + u->moved[at] : pc;
}

/* Returns true when offset `off` of a stub is the copy of the system call in front of site + k.
 * Where a probe stands in front of a copy, its entry in `moved` is the probe's. Then only the entry
 * of the next instruction shows where the copy ends. */
static bool is_call_before(const struct wire_undo *u, uint32_t k, uint64_t off)
{
	return k >= 2 && u->moved[k] == off + 2 && u->before[k - 2] == 0x0f &&
	       u->before[k - 1] == 0x05;
}

/* Returns the original address of the instruction at offset `off` of a stub, 0: it has none. */
static uint64_t came_from(const struct wire_undo *u, uint64_t off)
{
	if (off == 0)
		return u->site;
	for (uint32_t k = 0; k <= u->len && k < WIRE_SITE_MAX; k++) {
		if (u->moved[k] == off)
			return u->site + k;
		if (is_call_before(u, k, off))
			return u->site + k - 2;
	}
	return 0;
}

const struct wire_undo *undo_record_at(const struct undo_log *log, uint64_t pc)
{
	uint32_t lo = partition_point(log->sites.n, i, log->by_stub[i].stub <= pc);

	/* stubs do not overlap, but only one of several records of a place counts */
	for (uint32_t n = 0; lo-- > 0 && n < SAME_STUB; n++) {
		const struct wire_undo *u = &log->sites.v[log->by_stub[lo].site];

		if (u->stub && pc - u->stub < u->stub_len)
			return u;
	}
	return NULL;
}

static uint64_t pc_out(const struct undo_log *log, uint64_t pc)
{
	const struct wire_undo *u = undo_record_at(log, pc);

	return u ? came_from(u, pc - u->stub) ?: pc : pc;
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

/* Moves the program counters of all threads and signal frames. */
static struct err *move_all(struct control *c, struct mover *m)
{
	uint32_t n;
	struct control_thread *t = control_threads(c, &n);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t to = m->move(m->log, t[i].regs.rip, t[i].in_syscall);

		if (to == t[i].regs.rip || !control_is_64bit(&t[i].regs))
			continue;
		t[i].regs.rip = to;
		t[i].changed = true;
		m->moved++;
	}
	return control_put_regs(c) ?: control_signal_frames(c, move_saved, m);
}

static int by_stub(const void *a, const void *b)
{
	const struct undo_stub *x = a, *y = b;

	return COMPARE(x->stub, y->stub) ?: COMPARE(x->site, y->site);
}

void undo_sort_stubs(struct undo_log *log)
{
	free(log->by_stub);
	log->by_stub = xcalloc(log->sites.n + 1, sizeof(*log->by_stub));
	for (uint32_t i = 0; i < log->sites.n; i++)
		log->by_stub[i] = (struct undo_stub){ log->sites.v[i].stub, i };
	qsort(log->by_stub, log->sites.n, sizeof(*log->by_stub), by_stub);
}

struct err *undo_move_out(struct control *c, const struct undo_log *log, uint32_t *moved)
{
	struct mover m = { log, undo_pc_out, 0 };
	struct err *e = move_all(c, &m);

	*moved += m.moved;
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

/* Returns true when `have` is a site that a tracer was writing when it was killed. Each side of a
 * page boundary has its own state. */
static bool is_torn(const struct wire_undo *u, const uint8_t *have)
{
	static const uint8_t hold[] = { WIRE_UNDO_HOLD };
	uint32_t first = (uint32_t)(UNDO_PAGE - u->site % UNDO_PAGE), rest = u->len - first;
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

void undo_window_place(struct undo_window *w, const struct undo_log *log, uint32_t i)
{
	const struct wire_undo *v = log->sites.v;
	uint64_t end = v[i].site + v[i].len;

	w->lo = v[i].site - v[i].site % UNDO_PAGE;
	for (; w->lo >= w->one_by_one && i < log->sites.n &&
	       v[i].site + WIRE_SITE_MAX <= w->lo + sizeof(w->bytes);
	     i++, w->looks++)
		if (v[i].site + v[i].len > end)
			end = v[i].site + v[i].len;
	w->n = (uint32_t)((end + UNDO_PAGE - 1) / UNDO_PAGE * UNDO_PAGE - w->lo);
}

void undo_window_failed(struct undo_window *w)
{
	w->n = 0;
	w->one_by_one = w->lo + sizeof(w->bytes);
}

/* The bytes of site i. */
static struct err *read_site(struct control *c, struct undo_window *w, const struct undo_log *log,
			     uint32_t i, uint8_t *ret)
{
	const struct wire_undo *u = &log->sites.v[i];

	if (u->site - w->lo >= w->n || w->n - (u->site - w->lo) < u->len) {
		undo_window_place(w, log, i);
		if (err_drop(control_read(c, w->lo, w->bytes, w->n))) {
			undo_window_failed(w);
			return control_read(c, u->site, ret, u->len);
		}
	}
	memcpy(ret, w->bytes + (u->site - w->lo), u->len);
	return NULL;
}

/* Returns true for a site's jump, with bytes of before behind it. The kernel takes a fill byte for
 * its own breakpoint, when it removes one that a tracer had set before. */
static bool is_jump(const struct wire_undo *u, const uint8_t *have)
{
	if (u->len <= JMP_LEN || u->after[0] != JMP || memcmp(have, u->after, JMP_LEN))
		return false;
	for (uint32_t i = JMP_LEN; i < u->len; i++)
		if (have[i] != u->after[i] && have[i] != u->before[i])
			return false;
	return true;
}

/* The bytes at a place, compared with one of its records. */
enum holds { NOTHING /* its text is not mapped */, FOREIGN, BEFORE, AFTER };

static enum holds what_holds(struct control *c, struct undo_window *w, const struct undo_log *log,
			     uint32_t i, uint8_t *ret)
{
	const struct wire_undo *u = &log->sites.v[i];

	if (err_drop(read_site(c, w, log, i, ret)))
		return NOTHING;
	if (!memcmp(ret, u->before, u->len))
		return BEFORE;
	return !memcmp(ret, u->after, u->len) || is_jump(u, ret) || is_torn(u, ret) ? AFTER
										    : FOREIGN;
}

/* Returns true when another record covers bytes of record i, and matches the text. */
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

struct err *undo_restore_text(struct control *c, struct undo_log *log, struct undo_report *r)
{
	uint32_t n = log->sites.n, todo = 0, skipped;
	cleanup_free struct control_patch *p = xcalloc(n + 1, sizeof(*p));
	cleanup_free struct undo_window *w = xcalloc(1, sizeof(*w));
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
		r->clean += holds[i] == BEFORE &&
			    !(i && holds[i - 1] == BEFORE && u[-1].site == u->site);
		if (holds[i] != FOREIGN || is_settled(log, holds, i))
			continue;
		r->foreign++;
		if (u->stub)
			vec_push(&log->still, u->stub);
		u->stub = 0; /* does not move any thread into that text */
	}
	e = control_patch_text(c, p, todo, &skipped);
	r->restored += todo - skipped;
	return e;
}
