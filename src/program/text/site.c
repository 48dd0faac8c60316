/* Chooses the bytes that a jump may displace: entries, returns, tail jumps, offsets, system
 * calls. */
#define _GNU_SOURCE
#include "base/sorted.h"
#include "program/text/text_private.h"

enum {
	MAX_PARTS = 16,
	MAX_BACK = 8,        /* instructions moved before the probed instruction */
	MAX_EXITS = 1 << 20, /* of one function: each takes 150 bytes */
	LOOKED_AT_ONCE = 8,  /* instructions that take as long as a step of decoding */
};

const char TEXT_GO[] =
	"built by Go, whose runtime walks its own stacks and would meet an address it does not know";
static const char TEXT_OCAML[] =
	"built by OCaml 5, whose functions run on small stacks in its heap without room for a probe";
static const char NO_START[] = "no function is known to start there";
static const char TOO_LONG[] = "to decode the functions of this file takes too long";
static const char NO_BYTES[] = "its code is not in the file";
static const char RESTARTABLE[] = "a restartable sequence, which the kernel knows by its addresses";
static const char READ_AS_DATA[] = "instructions read its bytes as data";
static const char BRANCHED[] = "a branch leads into the bytes that a jump would displace";
static const char CALLS[] = "a call would be displaced, and not as the last instruction";
static const char TOO_SHORT[] = "fewer than 5 bytes, and no padding behind them";
static const char STUCK[] = "an instruction that cannot run elsewhere would be displaced";
static const char SYSCALLS[] = "a system call would be displaced";
static const char UNRESOLVED[] = "an indirect jump of the function could lead anywhere";
static const char IRREGULAR[] = "its bytes do not decode as one sequence of instructions";
static const char FALLS_OFF[] = "it continues into the code behind it";
static const char SIGRETURN[] = "unwinders recognise signal frames by these bytes";

const char *text_refusal(struct object *o)
{
	uint64_t addr;

	if (object_is_go(o))
		return TEXT_GO;
	/* OCaml 4, which runs on the C stack, has no such function. */
	return object_symbol_value(o, "caml_c_call_stack_args", &addr) ? TEXT_OCAML : NULL;
}
const char TEXT_NEVER_RETURNS[] = "it never returns";
static const char SHARED_TAIL[] = "it jumps into the middle of other code";

/* Returns the reason why text_code() returned NULL for r, which may be NULL. */
static const char *no_code(const struct text *t, const struct text_range *r)
{
	if (!r)
		return NO_START;
	if (text_is_too_large(r))
		return "the function is larger than 16 MB";
	return t->work_left ? NO_BYTES : TOO_LONG;
}

static bool falls_through(const struct insn *n)
{
	return n->kind != INSN_JMP && n->kind != INSN_JUMP_INDIRECT && n->kind != INSN_RET &&
	       n->kind != INSN_END && n->kind != INSN_BAD;
}

static void none(struct text_site *s, uint64_t addr, enum wire_stub_kind kind, const char *reason)
{
	*s = (struct text_site){ .addr = addr, .kind = kind, .mode = TEXT_NONE, .reason = reason };
}

/* Returns true when the call can be replaced by pushing its return address and jumping. It cannot
 * when its operand is relative to rsp. */
static bool can_push(struct text *t, const struct text_code *c, uint32_t i)
{
	ZydisDecodedInstruction z;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&t->decoder, c->bytes + c->insns.v[i].off,
						   c->insns.v[i].len, &z, ops)) &&
	       z.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR && z.operand_width == 64 &&
	       !(ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		 ops[0].mem.base == ZYDIS_REGISTER_RSP) &&
	       !(ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		 ops[0].reg.value == ZYDIS_REGISTER_RSP);
}

/* Makes a site with an int3 at instruction i. */
static void trap(struct text *t, const struct text_code *c, uint32_t i, enum wire_stub_kind kind,
		 const char *reason, struct text_site *s)
{
	const struct insn *n = &c->insns.v[i];

	if (n->kind == INSN_STUCK || n->kind == INSN_END || n->kind == INSN_BAD ||
	    (n->kind == INSN_CALL && !can_push(t, c, i))) {
		none(s, c->start + n->off, kind, STUCK);
		return;
	}
	/* The signal of a trap would abort the sequence each time. */
	if (text_is_restartable(t, c->start + n->off, c->start + n->off + n->len)) {
		none(s, c->start + n->off, kind, RESTARTABLE);
		return;
	}
	*s = (struct text_site){ .addr = c->start + n->off,
				 .kind = kind,
				 .mode = TEXT_TRAP,
				 .len = n->len,
				 .moved = n->len,
				 .pushes = n->kind == INSN_CALL,
				 .reason = reason };
	memcpy(s->bytes, c->bytes + n->off, n->len);
}

/* Returns true when [lo, hi), which follows an instruction that never falls through, is padding
 * that never runs. */
static bool is_padding(struct text *t, const struct text_code *c, uint64_t lo, uint64_t hi)
{
	while (lo < hi) {
		struct text_range *r = text_range_cover(t, lo);
		ZydisDecodedInstruction z;
		uint8_t b[15];
		uint32_t n = sizeof(b);
		struct insn k;

		if ((r && r != c->range && !c->range->inner) ||
		    (c->range->inner && lo >= c->end && r))
			return false;
		while (n && !text_bytes(t, lo, b, n))
			n--;
		if (!n || ZYAN_FAILED(ZydisDecoderDecodeInstruction(&t->decoder, NULL, b, n, &z)))
			return false;
		text_classify(&z, lo, &k);
		if (k.kind != INSN_NOP && b[0] != 0xcc)
			return false;
		if (lo < c->end) {
			uint32_t i = text_insn_at(c, lo - c->start);

			if (i == UINT32_MAX || c->insns.v[i].reached)
				return false;
		}
		lo += k.len;
	}
	return true;
}

struct span {
	bool one;      /* only one instruction may be displaced */
	bool syscalls; /* the probed instruction may be a system call */
	bool padding;  /* padding may be used */
};

/* Returns true when a branch may lead into the displaced bytes [addr, end), except to the first. In
 * a function that decodes as one sequence only targets at an instruction count, because marks in
 * the middle of an instruction come from bytes that look like an address. (A target behind a lock
 * prefix counts too, because the C library jumps there.) */
static bool is_branched(const struct text *t, const struct text_code *c, uint32_t a, uint64_t addr,
			uint64_t end)
{
	if (c->irregular)
		return text_any_mark(t, addr + 1, end);
	for (; a < c->insns.n && c->start + c->insns.v[a].off < end; a++) {
		uint64_t at = c->start + c->insns.v[a].off;
		uint8_t first = c->bytes[c->insns.v[a].off];

		if ((at > addr && text_any_mark(t, at, at + 1)) ||
		    (first == 0xf0 && text_any_mark(t, at + 1, at + 2)))
			return true;
	}
	return end > c->end && text_any_mark(t, c->end, end);
}

/* Tries a site from instruction a on, with instruction i and room for a jump. Returns NULL when it
 * has made *s, or the reason why it cannot. */
static const char *try_span(struct text *t, const struct text_code *c, uint32_t a, uint32_t i,
			    const struct span *how, enum wire_stub_kind kind, struct text_site *s)
{
	uint64_t addr = c->start + c->insns.v[a].off;
	uint32_t len = 0, k = a, moved;

	for (;; k++) {
		const struct insn *n;

		if (k == c->insns.n)
			return TOO_SHORT;
		n = &c->insns.v[k];
		if (!n->reached || n->kind == INSN_STUCK || n->kind == INSN_END ||
		    n->kind == INSN_BAD)
			return k > a && k > i ? TOO_SHORT : STUCK;
		if (n->kind == INSN_CALL &&
		    (k < i || len + n->len < TEXT_JUMP || !can_push(t, c, k)))
			return CALLS;
		if (n->kind == INSN_SYSCALL && !(how->syscalls && k == i))
			return SYSCALLS;
		len += n->len;
		if (len > 32)
			return TOO_SHORT;
		if (!falls_through(n) || (k >= i && len >= TEXT_JUMP))
			break;
	}
	if (k < i)
		return TOO_SHORT;
	if (how->one && k != a)
		return c->unresolved ? UNRESOLVED : IRREGULAR;
	moved = len;
	if (len < TEXT_JUMP) {
		if (!how->padding || !is_padding(t, c, addr + len, addr + TEXT_JUMP))
			return TOO_SHORT;
		len = TEXT_JUMP;
	}
	if (text_is_restartable(t, addr, addr + len))
		return RESTARTABLE;
	text_mark_around(t, addr, addr + len);
	if (is_branched(t, c, a, addr, addr + len))
		return BRANCHED;
	if (text_is_read(t, addr, addr + len))
		return READ_AS_DATA;
	*s = (struct text_site){ .addr = addr,
				 .kind = kind,
				 .mode = TEXT_PATCH,
				 .at = (uint8_t)(c->insns.v[i].off - c->insns.v[a].off),
				 .len = (uint8_t)len,
				 .moved = (uint8_t)moved,
				 .pushes = c->insns.v[k].kind == INSN_CALL };
	if (!text_bytes(t, addr, s->bytes, len))
		return NO_BYTES;
	return NULL;
}

void text_place(struct text *t, const struct text_code *c, uint32_t i, bool syscalls,
		enum wire_stub_kind kind, struct text_site *s)
{
	struct span how = { .one = c->unresolved || c->irregular,
			    .syscalls = syscalls,
			    .padding = !c->irregular };
	const char *first = NULL;

	for (uint32_t back = 0; back <= MAX_BACK && back <= i; back++) {
		const struct insn *n = &c->insns.v[i - back];
		const char *why;

		if (back && (!n->reached || !falls_through(n) || n->kind == INSN_CALL ||
			     n->kind == INSN_SYSCALL || n->kind == INSN_STUCK))
			break;
		why = try_span(t, c, i - back, i, &how, kind, s);
		if (!why)
			return;
		if (!first)
			first = why;
		if (how.one)
			break;
		/* A branch target must be first in a site, so going further back is useless. */
		if (text_any_mark(t, c->start + n->off, c->start + n->off + 1)) {
			first = first == TOO_SHORT ? BRANCHED : first;
			break;
		}
	}
	trap(t, c, i, kind, first, s);
}

struct err *text_entry(struct text *t, uint64_t func, struct text_site *ret)
{
	struct text_range *r = text_range_at(t, func);
	enum wire_stub_kind kind = WIRE_STUB_ENTRY;
	cleanup_code struct text_code *c = NULL;
	struct span how = { .padding = true };
	uint8_t b[4] = { 0 };
	const char *why;
	uint32_t i = 0;

	if (t->refused || !r || !(c = text_code(t, r))) {
		none(ret, func, kind, t->refused ?: no_code(t, r));
		return NULL;
	}
	/* A function that is not called uses the flags and red zone of the code that jumps here. */
	if (r->cold || (!text_marked(t, func, MARK_CALLED) && !text_marked(t, func, MARK_TAKEN)))
		kind = WIRE_STUB_MID;
	if (text_is_sigreturn(t, func)) {
		none(ret, func, kind, SIGRETURN);
		return NULL;
	}
	if (text_bytes(t, func, b, 4) && !memcmp(b, "\xf3\x0f\x1e\xfa", 4) && c->insns.n > 1)
		i = 1;
	why = try_span(t, c, i, i, &how, kind, ret);
	if (why)
		trap(t, c, i, kind, why, ret);
	return NULL;
}

/* Returns the kind of an offset's site. At a return, flags and red zone are free. */
static enum wire_stub_kind at_point(const struct insn *n)
{
	return n->kind == INSN_RET ? WIRE_STUB_ENTRY : WIRE_STUB_MID;
}

struct err *text_offset(struct text *t, uint64_t func, uint64_t off, struct text_site *ret)
{
	struct text_range *r = text_range_at(t, func);
	cleanup_code struct text_code *c = NULL;
	uint32_t i;

	if (!off)
		return text_entry(t, func, ret);
	if (t->refused || !r || off >= r->end - r->start || !(c = text_code(t, r))) {
		none(ret, func + off, WIRE_STUB_MID,
		     t->refused                      ? t->refused
		     : r && off >= r->end - r->start ? "behind the function's end"
						     : no_code(t, r));
		return NULL;
	}
	i = text_insn_at(c, off);
	if (text_is_sigreturn(t, func))
		none(ret, func + off, WIRE_STUB_MID, SIGRETURN);
	else if (i == UINT32_MAX)
		none(ret, func + off, WIRE_STUB_MID, "inside an instruction");
	else if (!c->insns.v[i].reached)
		none(ret, func + off, WIRE_STUB_MID,
		     c->unresolved ? UNRESOLVED : "it cannot be reached from the function's start");
	else
		text_place(t, c, i, false, at_point(&c->insns.v[i]), ret);
	return NULL;
}

const char *text_may_be_data(struct text *t, uint64_t func, uint64_t off)
{
	struct text_range *r = text_range_at(t, func);
	cleanup_code struct text_code *c = NULL;
	uint32_t i;

	if (t->refused)
		return NULL;
	if (!r || off >= r->end - r->start || !(c = text_code(t, r)))
		return r && off >= r->end - r->start ? "behind the function's end" : no_code(t, r);
	i = text_insn_at(c, off);
	if (i != UINT32_MAX && c->insns.v[i].certain)
		return NULL;
	return c->unresolved
		       ? "it may be data: an indirect jump of the function could lead anywhere"
		       : "it may be data: no branch of the function leads there";
}

/* --- returns --- */

struct returns {
	struct text *t;
	bool through; /* functions that only this one jumps to are parts of it: */
	bool any;     /* there is one */
	struct text_code *parts[MAX_PARTS];
	uint32_t nparts;
	uint64_t insns; /* of the parts */
	struct text_sites sites;
	const char *reason;
};

static bool inside_parts(const struct returns *r, uint64_t addr)
{
	for (uint32_t i = 0; i < r->nparts; i++)
		if (addr >= r->parts[i]->start && addr < r->parts[i]->end)
			return true;
	return false;
}

static void add_part(struct returns *r, struct text_range *range)
{
	struct text_code *c;

	if (r->nparts == MAX_PARTS) {
		r->reason = SHARED_TAIL;
		return;
	}
	c = text_code(r->t, range);
	if (!c) {
		r->reason = no_code(r->t, range);
		return;
	}
	r->parts[r->nparts++] = c;
	r->insns += c->insns.n;
	if (r->insns > CODE_INSNS)
		r->reason = "the function and its parts have more than 4 million instructions";
}

/* Returns true for a function's start as the target of a jump, which may be behind endbr64. */
static bool is_start(struct text *t, uint64_t addr)
{
	uint8_t b[4];

	if (text_range_at(t, addr))
		return true;
	return addr >= 4 && text_range_at(t, addr - 4) && text_bytes(t, addr - 4, b, 4) &&
	       !memcmp(b, "\xf3\x0f\x1e\xfa", 4);
}

enum belongs { BELONGS, BELONGS_NOT, BELONGS_PERHAPS };

/* Does a part, of which only words behind a table know, belong to the function? Its branches show
 * this. A part without branches that does not return does not matter. */
static enum belongs belongs(const struct returns *r, uint64_t addr)
{
	struct text_code *part = text_code(r->t, text_part_at(r->t, addr));
	enum belongs ret = part ? BELONGS_NOT : BELONGS_PERHAPS;

	if (part && !text_may_work(r->t, part->insns.n)) {
		text_code_put(part);
		return BELONGS_PERHAPS;
	}
	for (uint32_t i = 0; part && ret != BELONGS && i < part->insns.n; i++) {
		const struct insn *n = &part->insns.v[i];

		if (!n->reached)
			continue;
		if (n->kind == INSN_RET || n->kind == INSN_JUMP_INDIRECT)
			ret = BELONGS_PERHAPS;
		if (!text_is_branch(n) || text_inside(part, n->target))
			continue;
		if (inside_parts(r, n->target))
			ret = BELONGS;
		else if (!is_start(r->t, n->target))
			break; /* into the middle of another function */
		else
			ret = BELONGS_PERHAPS; /* it ends by a call */
	}
	if (part)
		text_code_put(part);
	return ret;
}

static void find_parts(struct returns *r)
{
	for (uint32_t p = 0; p < r->nparts && !r->reason; p++) {
		const struct text_code *c = r->parts[p];

		/* The same function is asked for again for each of its offsets. */
		if (!text_may_work(r->t, c->insns.n / LOOKED_AT_ONCE + 1))
			r->reason = TOO_LONG;
		else if (c->irregular)
			r->reason = IRREGULAR;
		else if (c->unresolved)
			r->reason = UNRESOLVED;
		else if (c->falls_off)
			r->reason = FALLS_OFF;
		else if (c->shares)
			r->reason = SHARED_TAIL;
		for (uint32_t i = 0; i < c->outside.n && !r->reason; i++)
			if (!inside_parts(r, c->outside.v[i]))
				add_part(r, text_part_at(r->t, c->outside.v[i]));
		for (uint32_t i = 0; i < c->perhaps.n && !r->reason; i++) {
			uint64_t addr = c->perhaps.v[i];
			enum belongs known = inside_parts(r, addr) ? BELONGS_NOT : belongs(r, addr);

			if (known == BELONGS)
				add_part(r, text_part_at(r->t, addr));
			else if (known == BELONGS_PERHAPS)
				r->reason = SHARED_TAIL;
		}
		for (uint32_t i = 0; i < c->insns.n && !r->reason; i++) {
			const struct insn *n = &c->insns.v[i];
			bool sole;

			if (!n->reached || !text_is_branch(n) || inside_parts(r, n->target))
				continue;
			sole = r->through && text_is_sole(r->t, c, n->target);
			r->any |= sole;
			if (sole || text_is_part(r->t, r->parts[0], n->target))
				add_part(r, text_range_at(r->t, n->target));
		}
	}
}

static enum jump_kind jump_of(const struct text_code *c, uint32_t i)
{
	const uint32_t j = partition_point(c->jumps.n, k, c->jumps.v[k].insn < i);

	return j < c->jumps.n && c->jumps.v[j].insn == i ? c->jumps.v[j].kind : JUMP_UNRESOLVED;
}

static void find_exits(struct returns *r, const struct text_code *c)
{
	for (uint32_t i = 0; i < c->insns.n && !r->reason; i++) {
		const struct insn *n = &c->insns.v[i];
		enum wire_stub_kind kind = WIRE_STUB_TAIL;
		struct text_site s;

		if (!n->reached)
			continue;
		switch (n->kind) {
		case INSN_RET: kind = WIRE_STUB_RETURN; break;
		case INSN_JUMP_INDIRECT:
			if (jump_of(c, i) != JUMP_TAIL)
				continue;
			break;
		case INSN_JMP:
		case INSN_JCC:
		case INSN_LOOP:
			if (inside_parts(r, n->target))
				continue;
			break;
		default: continue;
		}
		if ((n->kind == INSN_JMP || n->kind == INSN_JCC || n->kind == INSN_LOOP) &&
		    (!is_start(r->t, n->target) || n->kind == INSN_LOOP)) {
			/* Flags and red zone may be in use. */
			trap(r->t, c, i, kind, SHARED_TAIL, &s);
		} else {
			text_place(r->t, c, i, false, kind, &s);
			if (s.mode != TEXT_PATCH &&
			    text_split_ret(r->t, r->parts, r->nparts, c, i, kind, &r->sites))
				continue;
		}
		s.conditional = n->kind == INSN_JCC || n->kind == INSN_LOOP;
		vec_push(&r->sites.v, s);
		if (!r->t->work_left || r->sites.v.n > MAX_EXITS) {
			r->reason = r->t->work_left ? "it has more than a million exits" : TOO_LONG;
			r->sites.v.n = 0;
		}
	}
}

static int by_point(const void *a, const void *b)
{
	const struct text_site *x = a, *y = b;
	uint64_t p = x->addr + x->at, q = y->addr + y->at;

	return COMPARE(p, q);
}

static void find_returns(struct returns *r, uint64_t func)
{
	struct text_range *range = text_range_at(r->t, func);

	if (r->t->refused || !range)
		r->reason = r->t->refused ?: NO_START;
	else if (text_is_sigreturn(r->t, func))
		r->reason = SIGRETURN;
	else
		add_part(r, range);
	if (!r->reason)
		find_parts(r);
	for (uint32_t i = 0; i < r->nparts && !r->reason; i++)
		find_exits(r, r->parts[i]);
	for (uint32_t i = 0; i < r->nparts; i++)
		text_code_put(r->parts[i]);
	if (!r->reason && !r->sites.v.n)
		r->reason = TEXT_NEVER_RETURNS;
}

/* Returns true when not all of the returns can be probed. */
static bool lacks_any(const struct returns *r)
{
	bool lacks = r->reason;

	for (uint32_t i = 0; i < r->sites.v.n; i++)
		lacks |= r->sites.v.v[i].mode != TEXT_PATCH;
	return lacks;
}

struct err *text_returns(struct text *t, uint64_t func, struct text_site **ret, uint32_t *ret_n,
			 const char **ret_reason)
{
	struct returns r = { .t = t, .through = true };

	find_returns(&r, func);
	if (r.any && lacks_any(&r)) {
		vec_fini(&r.sites.v);
		r = (struct returns){ .t = t };
		find_returns(&r, func);
	}
	if (r.sites.v.n)
		qsort(r.sites.v.v, r.sites.v.n, sizeof(*r.sites.v.v), by_point);
	*ret = r.sites.v.v;
	*ret_n = r.sites.v.n;
	*ret_reason = r.reason;
	return NULL;
}

bool text_offset_split(struct text *t, uint64_t func, uint64_t off, struct text_site **ret,
		       uint32_t *ret_n)
{
	struct text_range *range = text_range_at(t, func);
	struct returns r = { .t = t };
	uint32_t i;

	/* A cold part does not know its function, whose branches may lead here. */
	if (t->refused || !range || range->cold || range->odd_cfa || text_is_sigreturn(t, func))
		return false;
	add_part(&r, range);
	if (!r.reason)
		find_parts(&r);
	i = r.reason ? UINT32_MAX : text_insn_at(r.parts[0], off);
	if (i != UINT32_MAX && r.parts[0]->insns.v[i].reached)
		text_split_ret(t, r.parts, r.nparts, r.parts[0], i, WIRE_STUB_ENTRY, &r.sites);
	for (uint32_t k = 0; k < r.nparts; k++)
		text_code_put(r.parts[k]);
	*ret = r.sites.v.v;
	*ret_n = r.sites.v.n;
	return *ret_n > 0;
}

bool text_calls_nothing(struct text *t, uint64_t func)
{
	struct text_range *range = text_range_at(t, func);
	struct text_code *c =
		!t->refused && range && !text_is_too_large(range) ? text_code(t, range) : NULL;
	bool none = c && !c->irregular && !c->unresolved;

	for (uint32_t i = 0; none && i < c->insns.n; i++) {
		const struct insn *k = &c->insns.v[i];

		none = k->kind != INSN_CALL && !(text_is_branch(k) && !text_inside(c, k->target) &&
						 text_is_part(t, c, k->target));
	}
	if (c)
		text_code_put(c);
	return none;
}

bool text_is_leaf(struct text *t, uint64_t func)
{
	struct text_range *range = text_range_at(t, func);
	struct text_code *c =
		!t->refused && range && !text_is_too_large(range) ? text_code(t, range) : NULL;
	bool leaf = c && !c->irregular && !c->unresolved && !c->falls_off;

	for (uint32_t i = 0; leaf && i < c->insns.n; i++) {
		const struct insn *k = &c->insns.v[i];
		bool jumps = k->kind == INSN_JMP || k->kind == INSN_JCC || k->kind == INSN_LOOP;

		leaf = k->kind != INSN_CALL &&
		       (!jumps || (k->target >= c->start && k->target < c->end));
	}
	for (uint32_t i = 0; leaf && i < c->jumps.n; i++)
		leaf = c->jumps.v[i].kind == JUMP_INTRA;
	if (c)
		text_code_put(c);
	return leaf;
}

/* --- system calls --- */

/* Returns the number in eax if a mov sets it on the straight path before instruction i, possibly
 * with a mov of al behind it, or -1. */
static int32_t syscall_number(const struct text *t, const struct text_code *c, uint32_t i)
{
	int32_t al = -1;

	for (uint32_t back = 0; back < 16 && i; back++) {
		const uint8_t *b;
		int32_t v;

		if (text_any_mark(t, c->start + c->insns.v[i].off,
				  c->start + c->insns.v[i].off + 1))
			return -1;
		i--;
		b = c->bytes + c->insns.v[i].off;
		if (!falls_through(&c->insns.v[i]) || c->insns.v[i].kind == INSN_CALL ||
		    (b[0] == 0x0f && b[1] == 0x05)) /* the result of another system call */
			return -1;
		if (b[0] == 0xb8) {
			memcpy(&v, b + 1, 4);
			return al < 0 ? v : (v & ~0xff) | al;
		}
		if (c->insns.v[i].len == 7 && !memcmp(b, "\x48\xc7\xc0", 3)) {
			memcpy(&v, b + 3, 4);
			return al < 0 ? v : (v & ~0xff) | al;
		}
		if (c->insns.v[i].len == 2 &&
		    (!memcmp(b, "\x31\xc0", 2) || !memcmp(b, "\x33\xc0", 2)))
			return al < 0 ? 0 : al;
		if (b[0] == 0xb0) {
			al = al < 0 ? b[1] : al;
			continue;
		}
		/* Test for other instructions that write eax. The instructions here usually move
		 * arguments, so any other write to eax ends the search. */
		if (c->insns.v[i].kind == INSN_PLAIN) {
			ZydisDecodedInstruction z;
			ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

			if (ZYAN_FAILED(ZydisDecoderDecodeFull(&t->decoder, b, c->insns.v[i].len,
							       &z, ops)))
				return -1;
			for (uint32_t k = 0; k < z.operand_count; k++)
				if (ops[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
				    (ops[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
				    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
								     ops[k].reg.value) ==
					    ZYDIS_REGISTER_RAX)
					return -1;
		}
	}
	return -1;
}

/* Makes a site of the instructions before instruction i, if the path to i leads through all of
 * them. */
static void place_before(struct text *t, const struct text_code *c, uint32_t i, struct text_site *s)
{
	const struct span how = { .one = c->unresolved };
	uint64_t addr = c->start + c->insns.v[i].off;
	const char *why = BRANCHED;

	text_mark_around(t, addr, addr + 1);
	for (uint32_t back = 1;
	     back <= MAX_BACK && back <= i && !c->irregular && !text_any_mark(t, addr, addr + 1);
	     back++) {
		const struct insn *n = &c->insns.v[i - back];

		if (!n->reached || !falls_through(n) || n->kind == INSN_CALL ||
		    n->kind == INSN_SYSCALL || n->kind == INSN_STUCK)
			break;
		why = try_span(t, c, i - back, i - 1, &how, WIRE_STUB_MID, s);
		if (!why && s->addr + s->len == addr) {
			s->at = s->len;
			return;
		}
		if (text_any_mark(t, c->start + n->off, c->start + n->off + 1))
			break;
	}
	none(s, addr, WIRE_STUB_MID, why ? why : TOO_SHORT);
}

bool text_place_falling(struct text *t, const struct text_code *c, uint32_t i,
			enum wire_stub_kind kind, struct text_site *s)
{
	const struct span how = { 0 };
	uint64_t addr = c->start + c->insns.v[i].off;

	for (uint32_t back = 1; back <= MAX_BACK && back <= i; back++) {
		const struct insn *n = &c->insns.v[i - back];

		if (!n->reached || !falls_through(n) || n->kind == INSN_CALL ||
		    n->kind == INSN_SYSCALL || n->kind == INSN_STUCK)
			return false;
		if (!try_span(t, c, i - back, i - 1, &how, kind, s) && s->addr + s->len == addr) {
			s->at = s->len;
			return true;
		}
		if (text_any_mark(t, c->start + n->off, c->start + n->off + 1))
			return false;
	}
	return false;
}

/* Makes a site of instruction i, if only the instruction before it leads there. */
static void place_behind(struct text *t, const struct text_code *c, uint32_t i, struct text_site *s)
{
	const struct span how = { .one = c->unresolved || c->irregular, .padding = !c->irregular };
	const char *why = TOO_SHORT;
	uint64_t addr;

	if (i < c->insns.n) {
		addr = c->start + c->insns.v[i].off;
		text_mark_around(t, addr, addr + 1);
		why = c->irregular || text_any_mark(t, addr, addr + 1)
			      ? BRANCHED
			      : try_span(t, c, i, i, &how, WIRE_STUB_MID, s);
	}
	if (why)
		none(s, c->start + c->insns.v[i - 1].off + 2, WIRE_STUB_MID, why);
}

static bool holds_syscall(const struct text *t, const struct text_range *r)
{
	const struct text_segment *g = text_segment_at(t, r->start);

	if (!g || r->end <= r->start || r->end - g->addr > g->size)
		return false;
	return memmem(g->bytes + (r->start - g->addr), r->end - r->start, "\x0f\x05", 2);
}

struct err *text_syscalls(struct text *t, uint64_t func, struct text_syscall **ret, uint32_t *ret_n)
{
	VEC(struct text_syscall) found = { 0 };
	uint32_t first = 0, end = t->ranges.n;

	if (func) {
		first = text_range_from(t, func);
		end = first < t->ranges.n && t->ranges.v[first].start == func ? first + 1 : first;
	}
	for (uint32_t k = first; k < end; k++) {
		struct text_range *r = &t->ranges.v[k];
		cleanup_code struct text_code *c = NULL;

		if ((r->inner && !func) || t->refused || !holds_syscall(t, r))
			continue;
		c = text_code(t, r);
		for (uint32_t i = 0; c && i < c->insns.n && t->work_left; i++) {
			struct text_syscall s = { .addr = c->start + c->insns.v[i].off };

			if (c->insns.v[i].kind != INSN_SYSCALL || !c->insns.v[i].reached)
				continue;
			s.number = syscall_number(t, c, i);
			if (text_is_sigreturn(t, r->start) || s.number == 15) {
				none(&s.site, s.addr, WIRE_STUB_MID, SIGRETURN);
				s.before = s.behind = s.site;
			} else {
				text_place(t, c, i, true, WIRE_STUB_MID, &s.site);
				place_before(t, c, i, &s.before);
				place_behind(t, c, i + 1, &s.behind);
			}
			vec_push(&found, s);
		}
	}
	*ret = found.v;
	*ret_n = found.n;
	return NULL;
}
