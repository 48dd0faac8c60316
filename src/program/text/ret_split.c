/* Places the probe of a return that has no room for a jump where the function comes from: at the
 * branches that lead to it, and behind the instructions before it. */
#include "program/text/text_private.h"

/* A return and the instructions before it that are copied. */
struct splitting {
	struct text *t;
	struct text_code *const *parts;
	uint32_t nparts;
	const struct text_code *c;
	uint32_t start, ret; /* instructions */
	enum wire_stub_kind kind;
	struct text_sites *sites;
};

static uint64_t addr_of(const struct text_code *c, uint32_t i)
{
	return c->start + c->insns.v[i].off;
}

static uint32_t copied(const struct splitting *x, uint32_t start)
{
	return x->c->insns.v[x->ret].off + x->c->insns.v[x->ret].len - x->c->insns.v[start].off;
}

static void add_split(struct splitting *x, struct text_site *s)
{
	s->split.start = addr_of(x->c, x->start);
	s->split.ret = addr_of(x->c, x->ret);
	s->split.len = (uint8_t)copied(x, x->start);
	memcpy(s->split.bytes, x->c->bytes + x->c->insns.v[x->start].off, s->split.len);
	vec_push(&x->sites->v, *s);
}

/* Adds a site for each branch to the start. Returns false when one of them has no room, or when
 * something else may lead there. */
static bool split_branches(struct splitting *x)
{
	const uint64_t target = addr_of(x->c, x->start);
	uint32_t before = x->sites->v.n;

	if (x->c->insns.v[x->start].table_target || text_marked(x->t, target, MARK_TAKEN))
		return false;
	for (uint32_t p = 0; p < x->nparts; p++) {
		struct text_code *c = x->parts[p];
		uint32_t n;
		const struct text_branch *b = text_branches_from(c, target, &n);

		for (; n && b->target == target; n--, b++) {
			struct text_site s;

			if (c->insns.v[b->insn].kind == INSN_LOOP)
				return false;
			text_place(x->t, c, b->insn, false, x->kind, &s);
			if (s.mode != TEXT_PATCH)
				return false;
			add_split(x, &s);
		}
	}
	/* A mark that no branch of the function explains is somebody else's. */
	return x->sites->v.n > before;
}

static bool is_copyable(const struct insn *n)
{
	return n->reached && (n->kind == INSN_PLAIN || n->kind == INSN_NOP);
}

/* Handles the instruction x->start, to which branches lead or may lead, and the way there from the
 * instruction before it. */
static bool split_from(struct splitting *x)
{
	const struct text_code *c = x->c;

	for (;;) {
		const struct insn *before = x->start ? &c->insns.v[x->start - 1] : NULL;
		struct text_site s;

		if (text_any_mark(x->t, addr_of(c, x->start), addr_of(c, x->start) + 1)) {
			if (!split_branches(x))
				return false;
			if (!before || !before->reached || !text_falls_through(before))
				return x->start > 0; /* callers come to the function's start */
			if (text_place_falling(x->t, c, x->start, x->kind, &s)) {
				add_split(x, &s);
				return true;
			}
		}
		if (!before || !is_copyable(before) || copied(x, x->start - 1) > TEXT_SPLIT_MAX)
			return false;
		x->start--;
	}
}

bool text_split_ret(struct text *t, struct text_code *const *parts, uint32_t nparts,
		    const struct text_code *c, uint32_t i, enum wire_stub_kind kind,
		    struct text_sites *ret)
{
	struct splitting x = { t, parts, nparts, c, i, i, kind, ret };
	uint32_t before = ret->v.n;

	for (uint32_t p = 0; p < nparts; p++)
		if (parts[p]->unresolved || parts[p]->irregular)
			return false;
	if (c->insns.v[i].kind == INSN_RET && c->insns.v[i].len <= TEXT_SPLIT_MAX && split_from(&x))
		return true;
	ret->v.n = before;
	return false;
}
