/* Writes stubs, which hold probes, the displaced instructions and the jump back, and the patch that
 * leads to a stub. */
#include <errno.h>

#include "program/text/text_private.h"

struct out {
	uint8_t *p;
	uint32_t n, max;
	uint64_t base;     /* run-time address of p[0] */
	const char *error; /* the first error */
};

static void stub_put(struct out *o, const void *p, uint32_t n)
{
	if (n > o->max - o->n) {
		if (!o->error)
			o->error = "no room for the stub";
		return;
	}
	memcpy(o->p + o->n, p, n);
	o->n += n;
}

/* Writes a displacement to target, relative to the end of the instruction, which is `behind` bytes
 * behind it. */
static void put_rel32(struct out *o, uint64_t target, uint32_t behind)
{
	int64_t rel = (int64_t)(target - (o->base + o->n + 4 + behind));
	int32_t v = (int32_t)rel;

	if (rel != v && !o->error)
		o->error = "farther away than 2 GB";
	stub_put(o, &v, 4);
}

static void put_jmp(struct out *o, uint64_t target)
{
	stub_put(o, "\xe9", 1);
	put_rel32(o, target, 0);
}

/* A block that stands behind the stub, because its program sleeps most of the time. */
struct far_block {
	const struct text_point *point;
	uint64_t site;
	uint32_t back; /* end of the jump to it, in the stub: the block jumps back there */
};

struct moving {
	struct out *o;
	const struct text_site *s;
	uint64_t site; /* run-time address */
	int64_t bias;
	uint32_t code; /* the first code in the stub, when it begins with a block */
	struct far_block far[TEXT_POINTS_MAX];
	uint32_t nfar;
};

/* Writes one probe. The thunk finds struct wire_stub in front of the call (and of the lea). */
static void put_block(struct out *o, const struct text_point *p, uint64_t site)
{
	struct wire_stub stub = { .site = p->shown ? p->shown : site,
				  .probe = p->probe,
				  .kind = (uint32_t)p->kind | p->call << WIRE_STUB_CALL_SHIFT };

	stub_put(o, &stub, sizeof(stub));
	if (p->kind >= WIRE_STUB_MID)
		stub_put(o, "\x48\x8d\x64\x24\x80", WIRE_STUB_LEA);
	stub_put(o, "\x67\xe8", 2); /* a call of six bytes, in the form that linkers use */
	put_rel32(o, p->gate, 0);
	if (p->kind >= WIRE_STUB_MID)
		stub_put(o, "\x48\x8d\xa4\x24\x80\x00\x00\x00", 8);
}

/* Writes a probe, or the look at its program's `awake`, with the probe behind the stub. */
static void put_point(struct moving *m, const struct text_point *p, uint64_t site, bool first)
{
	struct out *o = m->o;

	if (p->awake && p->kind < WIRE_STUB_MID) {
		stub_put(o, "\x80\x3d", 2); /* cmpb $0, awake(%rip) */
		put_rel32(o, p->awake, 1);
		stub_put(o, "\0\x0f\x85\0\0\0\0", 7); /* jne */
		m->far[m->nfar++] = (struct far_block){ p, site, o->n };
		return;
	}
	if (first)
		m->code = sizeof(struct wire_stub);
	else
		stub_put(o, "\xeb\x10", 2);
	put_block(o, p, site);
}

static void put_far_blocks(struct moving *m)
{
	struct out *o = m->o;

	for (uint32_t i = 0; i < m->nfar && !o->error; i++) {
		const struct far_block *f = &m->far[i];
		int32_t rel = (int32_t)(o->n + sizeof(struct wire_stub) - f->back);

		memcpy(o->p + f->back - 4, &rel, 4);
		put_block(o, f->point, f->site);
		put_jmp(o, o->base + f->back);
	}
}

/* Returns the run-time target of a direct branch in the displaced bytes. A branch to the first byte
 * meets the patch again, as it would meet a breakpoint. */
static uint64_t branch_target(struct moving *m, const struct insn *n)
{
	if (m->s->mode == TEXT_PATCH && n->target > m->s->addr &&
	    n->target < m->s->addr + m->s->len && !m->o->error)
		m->o->error = "a branch leads into the displaced bytes";
	return n->target + (uint64_t)m->bias;
}

/* Writes a call that runs elsewhere: pushes its own return address, then jumps. */
static void put_call(struct moving *m, const struct insn *n, const ZydisDecodedInstruction *z,
		     const uint8_t *b)
{
	uint64_t back = m->site + n->off + n->len;
	uint32_t half[2] = { (uint32_t)back, (uint32_t)(back >> 32) };
	bool memory_rsp = (z->attributes & ZYDIS_ATTRIB_HAS_MODRM) && z->raw.modrm.mod != 3 &&
			  z->raw.modrm.rm == 4 && z->raw.sib.base == 4 && !z->raw.rex.B;

	stub_put(m->o, "\x48\x8d\x64\x24\xf8", 5); /* lea -8(%rsp),%rsp */
	stub_put(m->o, "\xc7\x04\x24", 3);
	stub_put(m->o, &half[0], 4);
	stub_put(m->o, "\xc7\x44\x24\x04", 4);
	stub_put(m->o, &half[1], 4);
	if (z->raw.imm[0].is_relative) {
		put_jmp(m->o, m->site + n->off + n->len + z->raw.imm[0].value.u);
	} else if (!(z->attributes & ZYDIS_ATTRIB_HAS_MODRM) || z->raw.modrm.reg != 2 ||
		   memory_rsp) {
		if (!m->o->error)
			m->o->error = "a call that cannot be moved";
	} else {
		uint8_t copy[16];

		/* The same operand, with /4 (jmp) for /2. */
		memcpy(copy, b, n->len);
		copy[z->raw.modrm.offset] = (uint8_t)((copy[z->raw.modrm.offset] & 0xc7) | 4 << 3);
		if (n->relative) {
			stub_put(m->o, copy, z->raw.disp.offset);
			put_rel32(m->o, n->target + (uint64_t)m->bias,
				  n->len - z->raw.disp.offset - 4u);
			stub_put(m->o, copy + z->raw.disp.offset + 4,
				 n->len - z->raw.disp.offset - 4u);
		} else {
			stub_put(m->o, copy, n->len);
		}
	}
}

/* Returns the condition of a jcc: low four bits of its opcode. */
static uint8_t condition(const ZydisDecodedInstruction *z)
{
	return z->opcode & 15;
}

static void put_moved(struct moving *m, const struct insn *n, const ZydisDecodedInstruction *z,
		      const uint8_t *b)
{
	struct out *o = m->o;
	uint8_t op[2] = { 0x0f, (uint8_t)(0x80 | condition(z)) };

	switch (n->kind) {
	case INSN_NOP: break;
	case INSN_JMP: put_jmp(o, branch_target(m, n)); break;
	case INSN_JCC:
		stub_put(o, op, 2);
		put_rel32(o, branch_target(m, n), 0);
		break;
	case INSN_LOOP:
		/* loop .+2; jmp over; jmp target */
		stub_put(o, b, n->len - 1u);
		stub_put(o, "\x02\xeb\x05", 3);
		put_jmp(o, branch_target(m, n));
		break;
	case INSN_CALL: put_call(m, n, z, b); break;
	case INSN_STUCK:
	case INSN_END:
	case INSN_BAD:
		if (!o->error)
			o->error = "an instruction that cannot be moved";
		break;
	default:
		if (!n->relative) {
			stub_put(o, b, n->len);
			break;
		}
		stub_put(o, b, z->raw.disp.offset);
		put_rel32(o, n->target + (uint64_t)m->bias, n->len - z->raw.disp.offset - 4u);
		stub_put(o, b + z->raw.disp.offset + 4, n->len - z->raw.disp.offset - 4u);
	}
}

static bool is_split(const struct text_point *p)
{
	return p->split && p->split->ret;
}

/* Selects points of one instruction. */
enum which {
	ALWAYS = 1,  /* those that fire whatever the instruction does */
	LEAVING = 2, /* those of a tail jump */
	SPLIT = 4,   /* those that stand for a return */
};

static enum which which_of(const struct text_point *p)
{
	return is_split(p) ? SPLIT : p->kind == WIRE_STUB_TAIL ? LEAVING : ALWAYS;
}

static uint32_t put_points(struct moving *m, const struct text_point *points, uint32_t n,
			   uint32_t at, bool first, uint32_t which, uint32_t *ret_done)
{
	uint32_t put_n = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (points[i].at != at || !(which_of(&points[i]) & which))
			continue;
		put_point(m, &points[i], m->site + at, first && !put_n);
		put_n++;
		++*ret_done;
	}
	return put_n;
}

static const struct text_split *split_at(const struct text_point *points, uint32_t n, uint32_t at)
{
	for (uint32_t i = 0; i < n; i++)
		if (points[i].at == at && is_split(&points[i]))
			return points[i].split;
	return NULL;
}

/* Writes the way through a return: copies of the instructions before it, the probes, and a copy of
 * it. */
static void put_split(struct moving *m, const struct text_split *x, const ZydisDecoder *decoder,
		      const struct text_point *points, uint32_t n, uint32_t at, uint32_t *ret_done)
{
	ZydisDecodedInstruction z;

	for (uint32_t off = 0; off < x->len; off += z.length) {
		struct insn k = { .off = off };

		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, NULL, x->bytes + off,
							      x->len - off, &z))) {
			m->o->error = m->o->error ?: "not an instruction";
			return;
		}
		text_classify(&z, x->start + off, &k);
		if (x->start + off == x->ret)
			put_points(m, points, n, at, false, SPLIT, ret_done);
		put_moved(m, &k, &z, x->bytes + off);
	}
}

/* Writes the probes of a conditional jump that fire when it is taken: jump over them unless cc;
 * probes; jmp target, or the way through the return there. */
static void put_taken(struct moving *m, const struct insn *n, const ZydisDecodedInstruction *z,
		      const ZydisDecoder *decoder, const struct text_point *points,
		      uint32_t npoints, uint32_t *ret_done)
{
	const struct text_split *split = split_at(points, npoints, n->off);
	uint8_t op[2] = { 0x0f, (uint8_t)(0x80 | (condition(z) ^ 1)) };
	uint32_t from;
	int32_t rel;

	stub_put(m->o, op, 2);
	from = m->o->n;
	stub_put(m->o, "\0\0\0\0", 4);
	put_points(m, points, npoints, n->off, false, LEAVING, ret_done);
	if (split)
		put_split(m, split, decoder, points, npoints, n->off, ret_done);
	else
		put_jmp(m->o, branch_target(m, n));
	if (m->o->error)
		return;
	rel = (int32_t)(m->o->n - from - 4);
	memcpy(m->o->p + from, &rel, 4);
}

static bool has_taken_point(const struct text_point *points, uint32_t n, uint32_t at)
{
	for (uint32_t i = 0; i < n; i++)
		if (points[i].at == at && which_of(&points[i]) != ALWAYS)
			return true;
	return false;
}

struct err *text_stub_points(const struct text_site *s, uint64_t bias, uint64_t stub,
			     const struct text_point *points, uint32_t n, uint8_t *out,
			     uint32_t max, uint32_t *ret_n, uint32_t *ret_code,
			     uint16_t ret_moved[TEXT_SITE_MAX])
{
	struct out o = { .p = out, .max = max, .base = stub };
	struct moving m = { .o = &o, .s = s, .site = s->addr + bias, .bias = (int64_t)bias };
	uint16_t moved[TEXT_SITE_MAX];
	uint32_t done = 0, at = 0, code = 0;
	bool falls = true;
	ZydisDecoder decoder;

	if (s->mode == TEXT_NONE || s->moved > s->len || s->len > TEXT_SITE_MAX || !s->moved ||
	    !n || n > TEXT_POINTS_MAX)
		return err_new(EINVAL, "a stub for 0x%llx: not a site",
			       (unsigned long long)(s->addr + bias));
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	memset(moved, 0xff, sizeof(moved));
	while (at < s->moved && falls) {
		struct insn k = { .off = at };
		ZydisDecodedInstruction z;
		uint32_t begun = o.n;

		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, s->bytes + at,
							      s->moved - at, &z))) {
			o.error = "not an instruction";
			break;
		}
		text_classify(&z, s->addr + at, &k);
		if (k.kind == INSN_JCC && has_taken_point(points, n, at)) {
			/* All other points there always fire, before the jump. */
			uint32_t blocks = put_points(&m, points, n, at, !o.n, ALWAYS, &done);

			if (!at && blocks)
				code = m.code;
			moved[at] = (uint16_t)(blocks && !at ? code : begun);
			put_taken(&m, &k, &z, &decoder, points, n, &done);
		} else {
			const struct text_split *split = split_at(points, n, at);
			uint32_t blocks =
				put_points(&m, points, n, at, !o.n, ALWAYS | LEAVING, &done);

			/* The first block begins with its data. */
			if (blocks && !begun)
				code = m.code;
			moved[at] = (uint16_t)(blocks && !begun ? code : begun);
			if (split && k.kind == INSN_JMP)
				put_split(&m, split, &decoder, points, n, at, &done);
			else
				put_moved(&m, &k, &z, s->bytes + at);
		}
		falls = k.kind != INSN_JMP && k.kind != INSN_JUMP_INDIRECT && k.kind != INSN_RET &&
			k.kind != INSN_CALL;
		at += k.len;
	}
	if (falls && !o.error) {
		/* A dropped nop may have left nothing before it. */
		const struct text_split *split = split_at(points, n, s->moved);
		uint32_t begun = o.n, blocks = put_points(&m, points, n, s->moved, !o.n,
							  ALWAYS | LEAVING, &done);

		if (blocks && !begun)
			code = m.code;
		/* Also without a block: a thread in the copy of a system call goes on there. */
		if (s->moved < TEXT_SITE_MAX)
			moved[s->moved] = (uint16_t)(begun || !blocks ? begun : code);
		if (split)
			put_split(&m, split, &decoder, points, n, s->moved, &done);
		else
			put_jmp(&o, m.site + s->moved);
	}
	put_far_blocks(&m);
	/* Nops before the first block were dropped. Threads there continue at the block's code, not
	 * at its data. */
	for (uint32_t i = 0; i < s->moved && code; i++)
		if (!moved[i])
			moved[i] = (uint16_t)code;
	if (!o.error && (done != n || at != s->moved))
		o.error = at != s->moved ? "code behind a jump" : "a probe inside an instruction";
	if (!o.error && (int64_t)(stub + code - m.site - TEXT_JUMP) !=
				(int32_t)(stub + code - m.site - TEXT_JUMP))
		o.error = "farther away than 2 GB";
	if (o.error)
		return err_new(ERANGE, "a stub for 0x%llx at 0x%llx: %s",
			       (unsigned long long)m.site, (unsigned long long)stub, o.error);
	*ret_n = o.n;
	*ret_code = code;
	memcpy(ret_moved, moved, sizeof(moved));
	return NULL;
}

struct err *text_stub(const struct text_site *s, uint64_t bias, uint64_t stub,
		      const uint32_t *probes, const uint64_t *gates, uint32_t nprobes, uint8_t *out,
		      uint32_t max, uint32_t *ret_n, uint32_t *ret_code,
		      uint16_t ret_moved[TEXT_SITE_MAX])
{
	struct text_point points[TEXT_POINTS_MAX];

	for (uint32_t i = 0; i < nprobes && i < TEXT_POINTS_MAX; i++)
		points[i] = (struct text_point){ .at = s->at,
						 .kind = s->kind,
						 .probe = probes[i],
						 .gate = gates[i],
						 .split = &s->split };
	return text_stub_points(s, bias, stub, points, nprobes, out, max, ret_n, ret_code,
				ret_moved);
}

void text_patch(const struct text_site *s, uint64_t bias, uint64_t target, uint8_t *out)
{
	uint32_t rel = (uint32_t)(target - (s->addr + bias + TEXT_JUMP));

	memcpy(out, s->bytes, s->len);
	if (s->mode == TEXT_TRAP) {
		out[0] = 0xcc;
		return;
	}
	memset(out, 0xcc, s->len);
	out[0] = 0xe9;
	memcpy(out + 1, &rel, 4);
}
