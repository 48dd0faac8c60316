/* Decodes one function: its instructions, and which of them can be reached. */
#include "base/sorted.h"
#include "program/text/text_private.h"

enum {
	REACH = 130,             /* a short branch and its instruction, in bytes */
	FUNCTION_MAX = 16 << 20, /* bytes; each takes up to 24 when it is decoded */
	INSN_BYTES = 4,          /* of an instruction, about */
	DECODE_BYTES = 64,       /* that take as long as to begin a function, */
	AROUND_BYTES = 8,        /* and to look around a place */
};

void text_classify(const ZydisDecodedInstruction *z, uint64_t addr, struct insn *ret)
{
	bool memory = (z->attributes & ZYDIS_ATTRIB_HAS_MODRM) && z->raw.modrm.mod == 0 &&
		      z->raw.modrm.rm == 5 && z->raw.disp.size == 32;
	uint64_t next = addr + z->length;

	ret->len = z->length;
	ret->target = 0;
	ret->relative = memory;
	ret->kind = INSN_PLAIN;
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_RET:
		ret->kind = z->mnemonic == ZYDIS_MNEMONIC_RET &&
					    z->meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR
				    ? INSN_RET
				    : INSN_STUCK;
		break;
	case ZYDIS_CATEGORY_CALL: ret->kind = INSN_CALL; break;
	case ZYDIS_CATEGORY_COND_BR:
		switch (z->mnemonic) {
		case ZYDIS_MNEMONIC_JCXZ:
		case ZYDIS_MNEMONIC_JECXZ:
		case ZYDIS_MNEMONIC_JRCXZ:
		case ZYDIS_MNEMONIC_LOOP:
		case ZYDIS_MNEMONIC_LOOPE:
		case ZYDIS_MNEMONIC_LOOPNE: ret->kind = INSN_LOOP; break;
		case ZYDIS_MNEMONIC_XBEGIN:
		case ZYDIS_MNEMONIC_XEND:
		case ZYDIS_MNEMONIC_XABORT: ret->kind = INSN_STUCK; break;
		default: ret->kind = INSN_JCC;
		}
		break;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (z->mnemonic != ZYDIS_MNEMONIC_JMP ||
		    z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			ret->kind = INSN_STUCK;
		else
			ret->kind = z->raw.imm[0].is_relative ? INSN_JMP : INSN_JUMP_INDIRECT;
		break;
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP: ret->kind = INSN_NOP; break;
	case ZYDIS_CATEGORY_INTERRUPT:
		ret->kind = z->mnemonic == ZYDIS_MNEMONIC_INT3 ? INSN_END : INSN_STUCK;
		break;
	case ZYDIS_CATEGORY_SYSCALL:
		ret->kind = z->mnemonic == ZYDIS_MNEMONIC_SYSCALL ? INSN_SYSCALL : INSN_STUCK;
		break;
	case ZYDIS_CATEGORY_SYSRET: ret->kind = INSN_STUCK; break;
	default:
		if (z->mnemonic == ZYDIS_MNEMONIC_UD0 || z->mnemonic == ZYDIS_MNEMONIC_UD1 ||
		    z->mnemonic == ZYDIS_MNEMONIC_UD2 || z->mnemonic == ZYDIS_MNEMONIC_HLT)
			ret->kind = INSN_END;
	}
	if (text_is_branch(ret)) {
		ret->target = next + z->raw.imm[0].value.u;
		ret->relative = true;
	} else if (memory) {
		ret->target = next + (uint64_t)z->raw.disp.value;
	}
	if (memory && z->address_width != 64)
		ret->kind = INSN_STUCK;
	/* A branch with a 16-bit operand truncates rip. */
	if (text_is_branch(ret) && z->raw.imm[0].size == 16)
		ret->kind = INSN_STUCK;
}

bool text_falls_through(const struct insn *n)
{
	return n->kind != INSN_JMP && n->kind != INSN_JUMP_INDIRECT && n->kind != INSN_RET &&
	       n->kind != INSN_END && n->kind != INSN_BAD;
}

bool text_is_branch(const struct insn *n)
{
	return n->kind == INSN_JMP || n->kind == INSN_JCC || n->kind == INSN_LOOP;
}

bool text_inside(const struct text_code *c, uint64_t addr)
{
	return addr >= c->start && addr < c->end;
}

uint32_t text_insn_at(const struct text_code *c, uint64_t off)
{
	uint32_t lo = partition_point(c->insns.n, i, c->insns.v[i].off < off);

	return lo < c->insns.n && c->insns.v[lo].off == off ? lo : UINT32_MAX;
}

uint32_t text_insn_of(const struct text_code *c, uint64_t addr)
{
	return text_inside(c, addr) ? text_insn_at(c, addr - c->start) : UINT32_MAX;
}

static void sweep(struct text *t, struct text_code *c)
{
	uint64_t size = c->end - c->start;

	vec_reserve(&c->insns, size / 4 + 1);
	for (uint64_t off = 0; off < size;) {
		ZydisDecodedInstruction z;
		struct insn n = { .off = (uint32_t)off, .len = 1, .kind = INSN_BAD };

		if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&t->decoder, NULL, c->bytes + off,
							       size - off > 15 ? 15 : size - off,
							       &z)))
			text_classify(&z, c->start + off, &n);
		if (text_is_branch(&n))
			text_mark(t, n.target, MARK_BRANCH);
		vec_push(&c->insns, n);
		off += n.len;
	}
}

/* Returns true when target is the byte behind a lock prefix. The C library jumps there. */
bool text_is_lock_skip(const struct text_code *c, uint64_t target)
{
	return text_inside(c, target) && target > c->start &&
	       c->bytes[target - 1 - c->start] == 0xf0 && text_insn_of(c, target - 1) != UINT32_MAX;
}

static bool *reached(struct insn *n, bool certain)
{
	return certain ? &n->certain : &n->reached;
}

/* Marks the instructions that are reachable from those on the stack. */
static void reach(struct text_code *c, uint32_t *stack, uint32_t depth, bool certain)
{
	while (depth) {
		uint32_t i = stack[--depth];

		for (; i < c->insns.n && !*reached(&c->insns.v[i], certain); i++) {
			struct insn *n = &c->insns.v[i];

			*reached(n, certain) = true;
			if (n->kind == INSN_BAD)
				c->irregular = true;
			if (text_is_branch(n) && text_inside(c, n->target)) {
				uint32_t to = text_insn_of(c, n->target);

				if (to == UINT32_MAX && text_is_lock_skip(c, n->target))
					to = text_insn_of(c, n->target - 1);
				if (to == UINT32_MAX)
					c->irregular = true;
				else if (!*reached(&c->insns.v[to], certain))
					stack[depth++] = to;
			}
			if (!text_falls_through(n))
				break;
		}
	}
}

void text_reach(struct text *t, struct text_code *c)
{
	/* Each branch is pushed once, when it is reached. */
	cleanup_free uint32_t *stack = xmalloc((c->insns.n + 1) * sizeof(*stack));

	for (uint32_t i = 0; i < c->insns.n; i++) {
		uint64_t addr = c->start + c->insns.v[i].off;

		if (c->insns.v[i].reached ||
		    (i && !c->insns.v[i].table_target && !text_marked(t, addr, MARK_BRANCH) &&
		     !text_marked(t, addr, MARK_TAKEN)))
			continue;
		stack[0] = i;
		reach(c, stack, 1, false);
	}
}

/* Marks the instructions that are reachable from the function's start, and by its jump tables. The
 * words behind the end of a table lead to any place of a function that has data in it. */
static void reach_certain(struct text_code *c)
{
	cleanup_free uint32_t *stack = xmalloc((c->insns.n + 1) * sizeof(*stack));

	for (uint32_t i = 0; i < c->insns.n; i++) {
		if (i && (!c->insns.v[i].table_target || c->irregular))
			continue;
		stack[0] = i;
		reach(c, stack, 1, true);
	}
}

static void find_end(struct text_code *c)
{
	uint32_t i = c->insns.n;

	while (i && c->insns.v[i - 1].kind == INSN_NOP && c->insns.v[i - 1].reached)
		i--;
	if (i) {
		const struct insn *last = &c->insns.v[i - 1];

		/* A function that ends in a call or a system call does not return from it. */
		c->falls_off = last->reached &&
			       (last->kind == INSN_PLAIN || last->kind == INSN_JCC ||
				last->kind == INSN_LOOP || last->kind == INSN_STUCK);
	}
}

void text_code_put(struct text_code *c)
{
	if (!c || --c->refs)
		return;
	vec_fini(&c->insns);
	vec_fini(&c->jumps);
	vec_fini(&c->branches);
	vec_fini(&c->tables);
	vec_fini(&c->outside);
	vec_fini(&c->perhaps);
	free(c);
}

static int by_target(const void *a, const void *b)
{
	const struct text_branch *x = a, *y = b;

	return COMPARE(x->target, y->target) ?: COMPARE(x->insn, y->insn);
}

const struct text_branch *text_branches_from(struct text_code *c, uint64_t target, uint32_t *ret_n)
{
	uint32_t first;

	for (uint32_t i = 0; i < c->insns.n && !c->listed; i++) {
		const struct insn *n = &c->insns.v[i];

		if (n->reached && text_is_branch(n))
			vec_push(&c->branches, (struct text_branch){ n->target, i });
	}
	if (c->branches.n && !c->listed)
		qsort(c->branches.v, c->branches.n, sizeof(*c->branches.v), by_target);
	c->listed = true;
	first = partition_point(c->branches.n, k, c->branches.v[k].target < target);
	*ret_n = c->branches.n - first;
	return c->branches.v + first;
}

bool text_is_too_large(const struct text_range *r)
{
	return r->end > r->start && r->end - r->start > FUNCTION_MAX;
}

bool text_may_work(struct text *t, uint64_t n)
{
	t->work_left = t->work_left > n ? t->work_left - n : 0;
	return t->work_left > 0;
}

/* Keeps c, in place of the oldest, and so many of the others as have CODE_INSNS with it. */
static void cache_put(struct text *t, struct text_code *c)
{
	uint64_t n = 0;

	text_code_put(t->cache[t->next]);
	t->cache[t->next] = c;
	for (uint32_t i = 0; i < CODE_CACHE; i++) { /* the newest first */
		struct text_code **old = &t->cache[(t->next + CODE_CACHE - i) % CODE_CACHE];

		n += *old ? (*old)->insns.n : 0;
		if (i && n > CODE_INSNS) {
			text_code_put(*old);
			*old = NULL;
		}
	}
	t->next = (t->next + 1) % CODE_CACHE;
}

struct text_code *text_code(struct text *t, struct text_range *r)
{
	const struct text_segment *g = text_segment_at(t, r->start);
	struct text_code *c;

	for (uint32_t i = 0; i < CODE_CACHE; i++)
		if (t->cache[i] && t->cache[i]->range == r) {
			t->cache[i]->refs++;
			return t->cache[i];
		}
	if (!g || r->end <= r->start || r->end - g->addr > g->size)
		return NULL;
	if (text_is_too_large(r) || !text_may_work(t, r->end - r->start + DECODE_BYTES)) {
		r->irregular = true; /* any of its bytes may be a short branch */
		return NULL;
	}
	c = xcalloc(1, sizeof(*c));
	c->refs = 2; /* the cache's and the caller's */
	c->range = r;
	c->start = r->start;
	c->end = r->end;
	c->bytes = g->bytes + (r->start - g->addr);
	sweep(t, c);
	/* instructions take the time, and can have a byte each */
	if ((uint64_t)c->insns.n * INSN_BYTES > r->end - r->start)
		text_may_work(t, (uint64_t)c->insns.n * INSN_BYTES - (r->end - r->start));
	text_reach(t, c);
	text_resolve(t, c);
	reach_certain(c);
	find_end(c);
	if (!r->decoded) {
		t->decoded++;
		t->unresolved += c->unresolved;
		t->irregular += c->irregular;
	}
	r->decoded = true;
	r->unresolved = c->unresolved;
	r->irregular = c->irregular;
	cache_put(t, c);
	return c;
}

/* Scans bytes that belong to no function. Any of them may be a short branch. */
static void scan_gap(struct text *t, uint64_t lo, uint64_t hi)
{
	for (; lo < hi; lo++) {
		const struct text_segment *g = text_segment_at(t, lo);
		uint8_t b[2];

		if (!g || !text_bytes(t, lo, b, 2))
			continue;
		if (b[0] == 0xeb || (b[0] & 0xf0) == 0x70 || (b[0] & 0xfc) == 0xe0)
			text_mark(t, lo + 2 + (uint64_t)(int64_t)(int8_t)b[1], MARK_BRANCH);
	}
}

void text_mark_around(struct text *t, uint64_t lo, uint64_t hi)
{
	uint64_t from = lo < REACH ? 0 : lo - REACH, to = hi + REACH, at = from, scanned = from;
	uint32_t i = text_range_from(t, from);

	(void)text_may_work(t, AROUND_BYTES);
	/* Go back to the range that covers `from`, and to all ranges inside it. */
	while (i && t->ranges.v[i - 1].inner && text_may_work(t, 1))
		i--;
	if (i)
		i--;
	if (!t->work_left) {
		scan_gap(t, from, to); /* as if nothing were known of the functions */
		return;
	}
	for (; i < t->ranges.n && t->ranges.v[i].start < to; i++) {
		struct text_range *r = &t->ranges.v[i];

		if (r->end <= from)
			continue;
		if (!r->decoded)
			text_code_put(text_code(t, r));
		/* each byte once: many ranges may be one inside another */
		if (r->irregular && r->end > scanned) {
			scanned = r->start > scanned ? r->start : scanned;
			scan_gap(t, scanned, r->end < to ? r->end : to);
			scanned = r->end;
		}
		if (r->inner)
			continue;
		if (r->start > at)
			scan_gap(t, at, r->start);
		if (r->end > at)
			at = r->end;
	}
	if (at < to)
		scan_gap(t, at, to);
}

bool text_is_part(struct text *t, const struct text_code *c, uint64_t addr)
{
	struct text_range *r = text_range_at(t, addr);
	cleanup_code struct text_code *part = NULL;
	const struct text_branch *back;
	uint32_t n = 0;

	if (!r || r == c->range)
		return false;
	if (r->cold)
		return true;
	if (text_marked(t, addr, MARK_CALLED) || text_marked(t, addr, MARK_TAKEN))
		return false;
	if (r->odd_cfa)
		return true;
	part = text_code(t, r);
	back = part ? text_branches_from(part, c->start + 1, &n) : NULL;
	return n && text_inside(c, back->target);
}
