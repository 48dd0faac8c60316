/* Builds unwind images: rows of functions -> pages, a dictionary of rules, one block of bytes. Also
 * checks them. */
#include <errno.h>

#include "base/hash.h"
#include "program/unwind/cfi.h"

/* An image being built. */
struct making {
	uint32_t first_page;
	uint32_t now; /* number of the rule valid at the end of the rows so far */
	uint32_t skipped;
	VEC(uint32_t) pages;
	VEC(uint32_t) rules;
	VEC(uint32_t) rows;
	struct hash numbers; /* rule -> number */
};

static uint32_t rule_number(struct making *m, uint32_t rule)
{
	uint64_t *n;
	bool is_new;

	if (m->rules.v[m->now] == rule)
		return m->now;
	n = hash_put(&m->numbers, &rule, sizeof(rule), &is_new);
	if (is_new) {
		if (m->rules.n > UINT16_MAX) {
			m->skipped++; /* the number stays 0: NONE */
		} else {
			*n = m->rules.n;
			vec_push(&m->rules, rule);
		}
	}
	return (uint32_t)*n;
}

/* Adds a row: rule is valid from addr on. Addresses ascend. */
static void unwind_image_put(struct making *m, uint64_t addr, uint32_t rule)
{
	uint32_t page = (uint32_t)(addr >> WIRE_UNWIND_PAGE_SHIFT) - m->first_page;
	uint32_t number = rule_number(m, rule);

	while (m->pages.n <= page) {
		vec_push(&m->pages, m->rows.n);
		vec_push(&m->rows, WIRE_UNWIND_ROW(0, m->now));
	}
	if (number == m->now)
		return;
	m->now = number;
	if (WIRE_UNWIND_ROW_PC(*vec_last(&m->rows)) == (addr & 0xffff))
		*vec_last(&m->rows) = WIRE_UNWIND_ROW(addr, number);
	else
		vec_push(&m->rows, WIRE_UNWIND_ROW(addr, number));
}

static int unwind_image_by_start(const void *a, const void *b)
{
	const struct cfi_func *x = a, *y = b;

	return COMPARE(x->start, y->start) ?: COMPARE(x->first, y->first);
}

enum {
	CODE_MAX = 4096,
	SAVED_MAX = 64,         /* limit of functions whose CFA is in rbx; ld.so has a handful */
	CONTEXT_START_MAX = 64, /* bytes; it has 26 */
	ROW_WORK = 16,          /* for struct unwind_image.work */
};

/* Returns functions that save rbx: start -> place, in words from the CFA. */
static struct hash rbx_savers(const struct cfi *c)
{
	struct hash h = { 0 };

	for (uint32_t i = 0; i < c->funcs.n; i++)
		if (c->funcs.v[i].rbx)
			*hash_put(&h, &c->funcs.v[i].start, 8, NULL) =
				(uint64_t)(int64_t)c->funcs.v[i].rbx;
	return h;
}

/* Returns where the first function called from f saves rbx, or WIRE_UNWIND_SAME. */
static int callee_saves(const struct hash *savers, const struct object *o, const struct cfi_func *f)
{
	uint8_t code[CODE_MAX];
	uint64_t size = f->end - f->start;
	uint32_t n = object_read(o, f->start, code, size < CODE_MAX ? (uint32_t)size : CODE_MAX);

	for (uint32_t i = 0; i + 5 <= n; i++) {
		const uint64_t *saved;
		int32_t rel;
		uint64_t to;

		if (code[i] != 0xe8)
			continue;
		memcpy(&rel, code + i + 1, 4);
		to = f->start + i + 5 + (uint64_t)(int64_t)rel;
		saved = hash_get(savers, &to, sizeof(to));
		if (saved)
			return (int)(int64_t)*saved;
	}
	return WIRE_UNWIND_SAME;
}

static bool is_in_rbx(uint32_t rule)
{
	return WIRE_UNWIND_RULE_KIND(rule) == WIRE_UNWIND_REG &&
	       WIRE_UNWIND_RULE_REG(rule) == WIRE_UNWIND_REG_RBX;
}

/* Finds the place of the saved rbx for functions whose CFA is in rbx. */
static void find_saved(struct cfi *c, const struct object *o)
{
	struct hash savers = { 0 };
	uint32_t found = 0;

	for (uint32_t i = 0; i < c->funcs.n && found < SAVED_MAX; i++) {
		const struct cfi_func *f = &c->funcs.v[i];
		int saved = 0;

		for (uint32_t r = 0; r < f->n; r++) {
			struct cfi_row *row = &c->rows.v[f->first + r];

			if (!is_in_rbx(row->rule))
				continue;
			if (!saved) {
				if (!found++)
					savers = rbx_savers(c);
				saved = callee_saves(&savers, o, f);
			}
			row->rule = WIRE_UNWIND_RULE(WIRE_UNWIND_REG, saved,
						     WIRE_UNWIND_RULE_OFF(row->rule));
		}
	}
	hash_fini(&savers);
}

/* Returns true for glibc's __start_context, to which makecontext() lets coroutines return. It has
 * no caller, but its FDE does not show this. Recognises it by its code: mov %rbx,%rsp; mov
 * (%rsp),%rdi; test %rdi,%rdi. */
static bool is_context_start(const struct object *o, const struct cfi_func *f)
{
	static const char code[] = "\xf3\x0f\x1e\xfa" /* endbr64, or none */
				   "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff";
	uint8_t b[sizeof(code) - 1];

	return f->n == 1 && f->end - f->start <= CONTEXT_START_MAX &&
	       object_read(o, f->start, b, sizeof(b)) == sizeof(b) &&
	       (!memcmp(b, code, sizeof(b)) || !memcmp(b, code + 4, sizeof(b) - 4));
}

static void mark_context_start(struct cfi *c, const struct object *o)
{
	const char *soname = object_soname(o);

	if (!soname || strcmp(soname, "libc.so.6"))
		return;
	for (uint32_t i = 0; i < c->funcs.n; i++)
		if (is_context_start(o, &c->funcs.v[i]))
			c->rows.v[c->funcs.v[i].first].rule =
				WIRE_UNWIND_RULE(WIRE_UNWIND_STOP, 0, 0);
}

/* Returns true for a function without a caller whose address may be in the place of a return
 * address. The byte before it, by which return addresses are looked up, then counts as its own. */
static bool is_returned_to(const struct cfi *c, const struct cfi_func *f)
{
	return f->n && WIRE_UNWIND_RULE_KIND(c->rows.v[f->first].rule) == WIRE_UNWIND_STOP &&
	       c->rows.v[f->first].addr == f->start;
}

/* Returns true for a function that returns from signals and ends in the system call. During the
 * call, pc is the byte behind the function. */
static bool ends_in_call(const struct cfi *c, uint32_t i)
{
	const struct cfi_func *f = &c->funcs.v[i];

	return f->n &&
	       WIRE_UNWIND_RULE_KIND(c->rows.v[f->first + f->n - 1].rule) ==
		       WIRE_UNWIND_SIGRETURN &&
	       (i + 1 == c->funcs.n || c->funcs.v[i + 1].start > f->end);
}

/* Adds the rows of all functions in order of address, with NONE between them. Of two that overlap,
 * the one that starts earlier keeps the common part. */
static void put_funcs(struct making *m, struct cfi *c, const struct object *o)
{
	uint64_t end = 0;

	if (c->funcs.n)
		qsort(c->funcs.v, c->funcs.n, sizeof(*c->funcs.v), unwind_image_by_start);
	for (uint32_t i = 0; i < c->funcs.n; i++) {
		const struct cfi_func *f = &c->funcs.v[i];
		uint64_t page = f->start >> WIRE_UNWIND_PAGE_SHIFT,
			 last = (f->end - 1) >> WIRE_UNWIND_PAGE_SHIFT;

		if (!object_is_text(o, f->start) || !object_is_text(o, f->end - 1) ||
		    f->end <= end || last >= UINT32_MAX)
			continue;
		if (!m->pages.n)
			m->first_page = (uint32_t)page;
		if (last + 1 - m->first_page >= WIRE_UNWIND_PAGES_MAX) {
			m->skipped += c->funcs.n - i;
			break;
		}
		if (i && f->start > end && end)
			unwind_image_put(m, end, 0);
		if (f->start > end && is_returned_to(c, f) &&
		    (f->start - 1) >> WIRE_UNWIND_PAGE_SHIFT >= m->first_page)
			unwind_image_put(m, f->start - 1, c->rows.v[f->first].rule);
		for (uint32_t r = 0; r < f->n; r++) {
			const struct cfi_row *row = &c->rows.v[f->first + r];
			uint64_t addr = row->addr;

			/* Clip: the row valid at `end` is still valid from there. */
			if (addr < end) {
				if (r + 1 < f->n && row[1].addr <= end)
					continue;
				addr = end;
			}
			if (addr < f->end)
				unwind_image_put(m, addr, row->rule);
		}
		end = f->end + (ends_in_call(c, i) ? 1 : 0);
	}
	if (m->pages.n)
		unwind_image_put(m, end, 0);
}

static struct unwind_image *unwind_image_finish(struct making *m, const struct object *o)
{
	struct wire_unwind_image head = {
		.magic = WIRE_UNWIND_MAGIC,
		.version = WIRE_UNWIND_VERSION,
		.first_page = m->first_page,
		.npages = m->pages.n,
		.nrules = m->rules.n,
		.nrows = m->rows.n,
		.skipped = m->skipped,
	};
	struct unwind_image *u = xcalloc(1, sizeof(*u));
	uint32_t n, *p;
	const uint8_t *id = object_build_id(o, &n);

	if (id && n <= sizeof(head.build_id)) {
		memcpy(head.build_id, id, n);
		head.build_id_len = (uint16_t)n;
	}
	vec_push(&m->pages, m->rows.n);
	u->size = sizeof(head) + 4 * ((size_t)m->pages.n + m->rules.n + m->rows.n);
	u->head = memcpy(xmalloc(u->size), &head, sizeof(head));
	u->pages = p = (uint32_t *)(u->head + 1);
	memcpy(p, m->pages.v, 4 * (size_t)m->pages.n);
	u->rules = p += m->pages.n;
	memcpy(p, m->rules.v, 4 * (size_t)m->rules.n);
	u->rows = p += m->rules.n;
	if (m->rows.n)
		memcpy(p, m->rows.v, 4 * (size_t)m->rows.n);
	return u;
}

struct err *unwind_image_build(struct object *o, struct unwind_image **ret)
{
	struct making m = { 0 };
	struct cfi c = { 0 };
	uint64_t addr, zero = 0, work = 0;
	size_t n;
	uint8_t *frames;

	if (!object_is_x86_64(o))
		return err_new(ENOEXEC, "%s: not for x86-64", object_path(o));
	frames = object_eh_frame(o, &addr, &n);
	if (frames) {
		cfi_read(&c, object_path(o), frames, n, addr, true);
		work += n;
	}
	free(frames);
	/* Of functions with entries in both, use the first. Go's .debug_frame has less information
	 * than its own table. */
	frames = cfi_add_go(&c, o) ? NULL : object_section(o, ".debug_frame", &addr, &n);
	if (frames) {
		cfi_add(&c, object_path(o), frames, n, addr, false);
		work += n;
	}
	free(frames);
	work += ROW_WORK * ((uint64_t)c.rows.n + c.funcs.n);
	vec_push(&m.rules, 0);
	*hash_put(&m.numbers, &zero, 4, NULL) = 0;
	m.skipped = c.skipped;
	find_saved(&c, o);
	mark_context_start(&c, o);
	put_funcs(&m, &c, o);
	*ret = unwind_image_finish(&m, o);
	(*ret)->work = work;
	cfi_fini(&c);
	hash_fini(&m.numbers);
	vec_fini(&m.pages);
	vec_fini(&m.rules);
	vec_fini(&m.rows);
	return NULL;
}

/* Checks the rows of a page: at least one, the first at 0, ascending, with valid rule numbers. */
static bool rows_ok(const struct unwind_image *u, uint32_t first, uint32_t end)
{
	if (first >= end || end - first > WIRE_UNWIND_CHUNK_WORDS ||
	    WIRE_UNWIND_ROW_PC(u->rows[first]))
		return false;
	for (uint32_t i = first; i < end; i++)
		if (WIRE_UNWIND_ROW_RULE(u->rows[i]) >= u->head->nrules ||
		    (i > first &&
		     WIRE_UNWIND_ROW_PC(u->rows[i]) <= WIRE_UNWIND_ROW_PC(u->rows[i - 1])))
			return false;
	return true;
}

static bool image_ok(struct unwind_image *u)
{
	const struct wire_unwind_image *h = u->head;

	if (h->magic != WIRE_UNWIND_MAGIC || h->version != WIRE_UNWIND_VERSION ||
	    h->build_id_len > sizeof(h->build_id) || h->npages > WIRE_UNWIND_PAGES_MAX ||
	    !h->nrules || h->nrules > UINT16_MAX + 1 ||
	    u->size != sizeof(*h) + 4 * ((size_t)h->npages + 1 + h->nrules + h->nrows))
		return false;
	u->pages = (const uint32_t *)(h + 1);
	u->rules = u->pages + h->npages + 1;
	u->rows = u->rules + h->nrules;
	if (u->pages[0] != 0 || u->pages[h->npages] != h->nrows || u->rules[0])
		return false;
	for (uint32_t i = 0; i < h->npages; i++)
		if (u->pages[i + 1] > h->nrows || !rows_ok(u, u->pages[i], u->pages[i + 1]))
			return false;
	for (uint32_t i = 0; i < h->nrules; i++)
		if (WIRE_UNWIND_RULE_KIND(u->rules[i]) >= WIRE_UNWIND_KIND_COUNT)
			return false;
	return true;
}

struct err *unwind_image_parse(const char *name, const void *p, size_t n, struct unwind_image **ret)
{
	struct unwind_image *u;

	if (n < sizeof(*u->head))
		return err_new(EINVAL, "%s: too short for an unwind image", name);
	u = xcalloc(1, sizeof(*u));
	u->head = xmemdup(p, n);
	u->size = n;
	if (!image_ok(u)) {
		unwind_image_free(u);
		return err_new(EINVAL, "%s: not a valid unwind image", name);
	}
	*ret = u;
	return NULL;
}

void unwind_image_trim(struct unwind_image *u)
{
	if (!u->pages)
		return;
	u->head = xrealloc((void *)u->head, sizeof(*u->head));
	u->size = sizeof(*u->head);
	u->pages = u->rules = u->rows = NULL;
}

void unwind_image_free(struct unwind_image *u)
{
	if (!u)
		return;
	free((void *)u->head);
	free(u);
}

uint32_t unwind_image_rule(const struct unwind_image *u, uint64_t addr)
{
	uint64_t page = (addr >> WIRE_UNWIND_PAGE_SHIFT) - u->head->first_page;
	uint32_t lo, hi;

	if (page >= u->head->npages)
		return 0;
	/* Find the last row at or before addr. Row lo always is one. */
	lo = u->pages[page];
	hi = u->pages[page + 1];
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (WIRE_UNWIND_ROW_PC(u->rows[mid]) <= (addr & 0xffff))
			lo = mid;
		else
			hi = mid;
	}
	return u->rules[WIRE_UNWIND_ROW_RULE(u->rows[lo])];
}

void unwind_rule_format(uint32_t rule, char *buf, size_t n)
{
	int off = WIRE_UNWIND_RULE_OFF(rule) * 8, rbp = WIRE_UNWIND_RULE_RBP(rule);
	enum wire_unwind_kind kind = WIRE_UNWIND_RULE_KIND(rule);
	static const char *const cfa[] = {
		[WIRE_UNWIND_RSP] = "CFA=rsp%+d",
		[WIRE_UNWIND_RBP] = "CFA=rbp%+d",
		[WIRE_UNWIND_STACK] = "CFA=rbp%+d, another stack",
		[WIRE_UNWIND_RSP_DEREF] = "CFA=*(rsp%+d)",
		[WIRE_UNWIND_RSP_DEREF8] = "CFA=*(rsp%+d)+8",
		[WIRE_UNWIND_RBP_DEREF] = "CFA=*(rbp%+d)",
		[WIRE_UNWIND_RA_RDI] = "CFA=rsp%+d ra=rdi",
	};
	char where[60];

	if (kind == WIRE_UNWIND_REG || kind == WIRE_UNWIND_INDEX) {
		snprintf(where, sizeof(where),
			 kind == WIRE_UNWIND_REG ? "CFA=reg%d%+d" : "CFA=*(rsp+reg%d*8%+d)+8",
			 (int)WIRE_UNWIND_RULE_REG(rule), WIRE_UNWIND_RULE_WORDS(rule) * 8);
		if (rbp == WIRE_UNWIND_SAME)
			snprintf(buf, n, "%s", where);
		else
			snprintf(buf, n, "%s rbp=*(cfa%+d)", where, rbp * 8);
		return;
	}
	if (kind >= ARRAY_SIZE(cfa) || !cfa[kind]) {
		static const char *const names[] = { [WIRE_UNWIND_NONE] = "none",
						     [WIRE_UNWIND_STOP] = "stop",
						     [WIRE_UNWIND_SIGRETURN] = "sigreturn" };

		if (kind == WIRE_UNWIND_PLT)
			snprintf(buf, n, "plt %d", WIRE_UNWIND_RULE_OFF(rule));
		else
			snprintf(buf, n, "%s",
				 kind < ARRAY_SIZE(names) && names[kind] ? names[kind] : "?");
		return;
	}
	snprintf(where, sizeof(where), cfa[kind], off);
	if (rbp == WIRE_UNWIND_SAME)
		snprintf(buf, n, "%s", where);
	else
		snprintf(buf, n, "%s rbp=*(%s%+d)", where,
			 kind == WIRE_UNWIND_RBP_DEREF ? "rbp" : "cfa", rbp * 8);
}
