/* A process's undo records. They are written before its text. A record does not change any more
 * once its place was patched. */
#define _GNU_SOURCE
#include <errno.h>

#include "base/procmem.h"
#include "base/sorted.h"
#include "load/inproc/patch/records.h"
#include "load/inproc/undo/undo.h"

static int by_text(const void *a, const void *b)
{
	const struct wire_undo *x = a, *y = b;

	return COMPARE(x->site, y->site);
}

/* Records a semaphore. It is raised when the text is patched, and lowered when the text is
 * restored, unless another program has changed it meanwhile. */
static bool record_semaphore(const struct inproc_process *p, uint64_t addr, struct wire_undo *u)
{
	uint16_t before = 0, after;
	uint8_t b[2], a[2];

	if (procmem_read(p->pid, &before, sizeof(before), addr) != sizeof(before))
		return false;
	after = (uint16_t)(before + 1);
	memcpy(b, &before, 2);
	memcpy(a, &after, 2);
	u->data = 1;
	undo_record(u, inproc_undo_id(p), addr, sizeof(before), b, a, 0, 0, NULL);
	return true;
}

/* Records a bool, unless it is true already. */
static bool record_bool(const struct inproc_process *p, uint64_t addr, struct wire_undo *u)
{
	static const uint8_t no = 0, yes = 1;
	uint8_t now;

	if (procmem_read(p->pid, &now, sizeof(now), addr) != sizeof(now) || now)
		return false;
	u->data = 1;
	undo_record(u, inproc_undo_id(p), addr, sizeof(now), &no, &yes, 0, 0, NULL);
	return true;
}

/* Reserves the records that one module needs. */
static struct err *reserve_records(struct inproc_engine *e, struct inproc_process *p,
				   uint32_t module)
{
	struct inproc_module *m = &p->modules.v[module];
	uint32_t n = m->records ? 0 : m->nsites;

	for (uint32_t i = 0; i < p->semaphores.n; i++)
		n += p->semaphores.v[i].module == module && !p->semaphores.v[i].record;
	if (n > INPROC_UNDO_MAX - e->nundo)
		return err_new(E2BIG, "%u places are too many", n);
	if (!m->records) {
		m->first_undo = e->nundo;
		m->records = m->fresh = true;
		e->nundo += m->nsites;
	}
	for (uint32_t i = 0; i < p->semaphores.n; i++) {
		struct inproc_semaphore *s = &p->semaphores.v[i];

		if (s->module != module || s->record)
			continue;
		s->undo = e->nundo++;
		s->record = true;
	}
	return NULL;
}

static void write_module(struct inproc_engine *e, struct inproc_process *p, uint32_t module,
			 struct undo_log *log)
{
	const struct inproc_module *m = &p->modules.v[module];

	_Static_assert((int)TEXT_SITE_MAX <= (int)WIRE_SITE_MAX &&
			       (int)TEXT_SITE_MAX <= (int)CONTROL_PATCH_MAX,
		       "sites");
	for (uint32_t i = 0; i < m->nsites; i++) {
		struct inproc_site *s = &p->sites.v[m->first_site + i];
		uint8_t after[TEXT_SITE_MAX];

		text_patch(&s->text, s->bias, s->code_at, after);
		if (m->fresh || !e->undo[m->first_undo + i].len)
			undo_record(&e->undo[m->first_undo + i], inproc_undo_id(p),
				    s->text.addr + s->bias, s->text.len, s->text.bytes, after,
				    s->stub, s->stub_len, s->moved);
		undo_record(vec_add(&log->sites), inproc_undo_id(p), s->text.addr + s->bias,
			    s->text.len, s->text.bytes, after, s->stub, s->stub_len, s->moved);
	}
	for (uint32_t i = 0; i < p->semaphores.n; i++) {
		const struct inproc_semaphore *s = &p->semaphores.v[i];

		if (s->module != module)
			continue;
		if (s->question)
			undo_record(&e->undo[s->undo], inproc_undo_id(p), s->addr + m->bias,
				    sizeof(s->question->no), s->question->no, s->question->yes, 0,
				    0, NULL);
		if (s->question || (s->is_bool ? record_bool : record_semaphore)(
					   p, s->addr + m->bias, &e->undo[s->undo]))
			vec_push(&log->sites, e->undo[s->undo]);
	}
}

struct err *records_write(struct inproc_engine *e, struct inproc_process *p, struct undo_log *log)
{
	struct err *err = NULL;

	for (uint32_t i = 0; i < p->modules.n && !err; i++) {
		struct inproc_module *m = &p->modules.v[i];

		if (m->enabled || m->gone)
			continue;
		err = reserve_records(e, p, i);
		if (!err)
			write_module(e, p, i, log);
	}
	log->base = e->addr;
	__atomic_store_n(&e->area->nundo, e->nundo, __ATOMIC_RELEASE);
	/* the modules are in any order */
	if (log->sites.n)
		qsort(log->sites.v, log->sites.n, sizeof(*log->sites.v), by_text);
	undo_prepare(log);
	return err;
}

void process_forget(struct inproc_engine *e, struct inproc_process *p, uint32_t module)
{
	struct inproc_module *m = &p->modules.v[module];

	for (uint32_t i = 0; i < m->nsites && m->records && m->fresh; i++)
		__atomic_store_n(&e->undo[m->first_undo + i].len, 0, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < p->semaphores.n; i++)
		if (p->semaphores.v[i].module == module && p->semaphores.v[i].record)
			__atomic_store_n(&e->undo[p->semaphores.v[i].undo].len, 0,
					 __ATOMIC_RELEASE);
	m->enabled = false;
}

void records_enabled(struct inproc_process *p)
{
	for (uint32_t i = 0; i < p->modules.n; i++) {
		struct inproc_module *m = &p->modules.v[i];

		m->enabled = !m->gone;
		if (m->gone || !m->fresh)
			continue;
		m->fresh = false;
		if (m->nsites)
			vec_push(&m->places,
				 (struct inproc_place){ m->bias, m->island, m->first_undo });
	}
}

static int by_address(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Marks the sites whose patches were skipped, and drops their records. The text there is the
 * process's own. */
static void mark_skipped(struct inproc_engine *e, struct inproc_process *p,
			 const struct undo_log *log)
{
	VEC(uint64_t) skipped = { 0 };

	for (uint32_t i = 0; i < log->sites.n; i++)
		if (log->patches[i].skipped)
			vec_push(&skipped, log->patches[i].addr);
	if (skipped.n)
		qsort(skipped.v, skipped.n, sizeof(*skipped.v), by_address);
	for (uint32_t k = 0; k < p->modules.n && skipped.n; k++) {
		const struct inproc_module *m = &p->modules.v[k];

		for (uint32_t i = 0; i < m->nsites; i++) {
			struct inproc_site *s = &p->sites.v[m->first_site + i];
			const uint64_t addr = s->text.addr + m->bias;
			const uint32_t at = partition_point(skipped.n, j, skipped.v[j] < addr);

			if (at == skipped.n || skipped.v[at] != addr)
				continue;
			s->skipped = true;
			if (m->fresh)
				__atomic_store_n(&e->undo[m->first_undo + i].len, 0,
						 __ATOMIC_RELEASE);
		}
	}
	vec_fini(&skipped);
}

struct err *records_patch(struct inproc_engine *e, struct inproc_process *p, struct control *c,
			  struct undo_log *log)
{
	uint32_t skipped = 0;
	struct err *err = undo_patch(c, log, &skipped);

	if (!err)
		mark_skipped(e, p, log);
	if (skipped && !err)
		inproc_blind(
			e,
			"process %d: %u place%s not enabled: other bytes than the file's stand there (the program hooks functions, for instance), or the bytes cannot be written at once",
			(int)p->pid, skipped, skipped == 1 ? "" : "s");
	return err;
}
