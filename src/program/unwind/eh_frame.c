/* Executes call frame information (.eh_frame, .debug_frame) to rows of rules.
 *
 * Tracks only what finds the caller: the CFA, the saved rbp and the return address. Recognises
 * expressions by their bytes, because compilers and assemblers write only a handful. A rule that
 * wire/wire_unwind.h cannot express becomes NONE and is counted. */
#include <dwarf.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "program/unwind/cfi.h"

enum {
	REG_RDI = 5,
	REG_RBX = 3,
	REG_RBP = 6,
	REG_RSP = 7,
	REG_RA = 16,
	MAX_DEPTH = 16, /* of remember_state */
	/* Limits for hostile files, where 12 bytes make a function of a row. Chromium has
	 * 1.5 million rows. */
	MAX_ROWS = 4 << 20,
	MAX_FUNCS = 4 << 20,
	MAX_CIES = 1 << 18,
};

/* The place of a saved value. */
struct where {
	enum { SAME, AT_CFA, IN_REG, EXPR, UNDEFINED, OTHER } how;
	int64_t off; /* AT_CFA */
	uint64_t reg;
	const uint8_t *expr;
	size_t len;
};

struct state {
	struct where cfa; /* IN_REG: reg + off; EXPR */
	struct where rbp, ra, rbx;
};

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t enc, lsda_enc;
	bool has_lsda;
	bool has_augmentation, is_signal;
	struct state initial;
};

struct reader {
	struct cfi *c;
	struct bytes b;
	uint64_t addr; /* of b.start */
	bool eh, only_ranges;
	int16_t rbx; /* of the function being read: saved rbx, words from its CFA; 0: none */
	VEC(struct cie) cies;
	struct hash by_offset; /* offset of a CIE -> index in cies; valid CIEs read so far */
	uint64_t last_offset;
	uint32_t last_cie; /* index + 1 */
};

static size_t at(const struct bytes *b)
{
	return (size_t)(b->pos - b->start);
}

/* Reads a pointer of DW_EH_PE encoding enc. `here`: address of its first byte. */
static uint64_t read_encoded(struct bytes *b, uint8_t enc, uint64_t here)
{
	uint64_t v;

	switch (enc & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c: v = bytes_u64(b); break;
	case 0x01: v = bytes_uleb(b); break;
	case 0x02: v = bytes_u16(b); break;
	case 0x03: v = bytes_u32(b); break;
	case 0x09: v = (uint64_t)bytes_sleb(b); break;
	case 0x0a: v = (uint64_t)(int16_t)bytes_u16(b); break;
	case 0x0b: v = (uint64_t)(int32_t)bytes_u32(b); break;
	default: b->bad_at = at(b) + 1; return 0;
	}
	return (enc & 0x70) == 0x10 /* pcrel */ ? v + here : v;
}

/* --- rules --- */

/* Reads DW_OP_bregN, its offset, and the rest behind it. Returns false for another expression. */
static bool is_breg(const struct where *w, uint8_t reg, int64_t *ret_off, const uint8_t **ret_rest,
		    size_t *ret_nrest)
{
	struct bytes b = bytes_of(w->expr, w->len, "expression");

	if (w->how != EXPR || bytes_u8(&b) != DW_OP_breg0 + reg)
		return false;
	*ret_off = bytes_sleb(&b);
	*ret_rest = b.pos;
	*ret_nrest = bytes_left(&b);
	return bytes_ok(&b);
}

/* Reads DW_OP_bregN of any register but rsp, in words. Returns its length, or 0 for another
 * expression. */
static size_t index_register(const uint8_t *p, size_t n, uint32_t *ret)
{
	if (n < 2 || p[0] < DW_OP_breg0 || p[0] > DW_OP_breg0 + 15 ||
	    p[0] == DW_OP_breg0 + REG_RSP || p[1])
		return 0;
	*ret = p[0] - DW_OP_breg0;
	return 2;
}

static bool is_bytes(const uint8_t *p, size_t n, const char *want, size_t nwant)
{
	return n == nwant && !memcmp(p, want, n);
}

static bool is_words(int64_t off, int64_t min, int64_t max)
{
	return !(off & 7) && off / 8 >= min && off / 8 <= max;
}

/* Returns the saved rbp in words from `base`, in *ret. Returns false when the rule cannot be
 * expressed. */
static bool rbp_field(const struct where *rbp, int *ret)
{
	*ret = WIRE_UNWIND_SAME;
	if (rbp->how == SAME || rbp->how == UNDEFINED)
		return true;
	if (rbp->how != AT_CFA || !is_words(rbp->off, -2047, 2047))
		return false;
	*ret = (int)(rbp->off / 8);
	return true;
}

/* Returns the rule of known expressions: the PLT, realigned frames, signal frames, frames whose rsp
 * was saved on the stack. */
static uint32_t expression_rule(const struct state *s)
{
	const uint8_t *rest, *more;
	size_t n, nmore, skip;
	uint32_t reg;
	int64_t off, ra, at_rbp;
	int rbp;

	if (is_breg(&s->cfa, REG_RSP, &off, &rest, &n)) {
		/* rsp+8 + (((rip+0) & 15) >= N) << 3 */
		if (off == 8 && n == 9 && !memcmp(rest, "\x80\x00\x3f\x1a", 4) &&
		    rest[4] >= DW_OP_lit0 && rest[4] <= DW_OP_lit15 &&
		    !memcmp(rest + 5, "\x2a\x33\x24\x22", 4))
			return WIRE_UNWIND_RULE(WIRE_UNWIND_PLT, WIRE_UNWIND_SAME,
						rest[4] - DW_OP_lit0);
		if (is_bytes(rest, n, "\x06", 1) && off == WIRE_UNWIND_UC_RSP &&
		    is_breg(&s->ra, REG_RSP, &ra, &more, &nmore) && !nmore &&
		    ra == WIRE_UNWIND_UC_RIP)
			return WIRE_UNWIND_RULE(WIRE_UNWIND_SIGRETURN, 0, 0);
		if (s->ra.how != AT_CFA || s->ra.off != -8 || !is_words(off, -32768, 32767) ||
		    !rbp_field(&s->rbp, &rbp))
			return 0;
		if (is_bytes(rest, n, "\x06", 1))
			return WIRE_UNWIND_RULE(WIRE_UNWIND_RSP_DEREF, rbp, off / 8);
		if (is_bytes(rest, n, "\x06\x23\x08", 3))
			return WIRE_UNWIND_RULE(WIRE_UNWIND_RSP_DEREF8, rbp, off / 8);
		/* breg7 off; bregN 0; lit8; mul; plus; deref; plus_uconst 8: OpenSSL's
		 * multiplications */
		skip = index_register(rest, n, &reg);
		if (skip && is_bytes(rest + skip, n - skip, "\x38\x1e\x22\x06\x23\x08", 6) &&
		    is_words(off, -2048, 2047))
			return WIRE_UNWIND_RULE(WIRE_UNWIND_INDEX, rbp,
						WIRE_UNWIND_REG_OFF(reg, off / 8));
		return 0;
	}
	if (s->ra.how == AT_CFA && s->ra.off == -8 && is_breg(&s->cfa, REG_RBP, &off, &rest, &n) &&
	    is_bytes(rest, n, "\x06", 1) && is_words(off, -32768, 32767) &&
	    is_breg(&s->rbp, REG_RBP, &at_rbp, &more, &nmore) && !nmore &&
	    is_words(at_rbp, -2047, 2047))
		return WIRE_UNWIND_RULE(WIRE_UNWIND_RBP_DEREF, at_rbp / 8, off / 8);
	return 0;
}

/* Returns the state's rule, or 0 when it cannot be expressed. */
static uint32_t make_rule(const struct state *s)
{
	enum wire_unwind_kind kind;
	int rbp;

	if (s->ra.how == UNDEFINED)
		return WIRE_UNWIND_RULE(WIRE_UNWIND_STOP, 0, 0);
	if (s->cfa.how == EXPR)
		return expression_rule(s);
	if (s->cfa.how != IN_REG || !is_words(s->cfa.off, -32768, 32767) ||
	    !rbp_field(&s->rbp, &rbp))
		return 0;
	switch (s->cfa.reg) {
	case REG_RSP: kind = WIRE_UNWIND_RSP; break;
	case REG_RBP: kind = WIRE_UNWIND_RBP; break;
	default:
		if (s->cfa.reg > 15 || !is_words(s->cfa.off, -2048 * 8, 2047 * 8) ||
		    s->ra.how != AT_CFA || s->ra.off != -8)
			return 0;
		/* The field has another meaning in this rule. */
		if (s->cfa.reg == REG_RBX && rbp != WIRE_UNWIND_SAME)
			return 0;
		return WIRE_UNWIND_RULE(WIRE_UNWIND_REG, rbp,
					WIRE_UNWIND_REG_OFF(s->cfa.reg, s->cfa.off / 8));
	}
	if (s->ra.how == IN_REG && s->ra.reg == REG_RDI && kind == WIRE_UNWIND_RSP)
		kind = WIRE_UNWIND_RA_RDI;
	else if (s->ra.how != AT_CFA || s->ra.off != -8)
		return 0;
	return WIRE_UNWIND_RULE(kind, rbp, s->cfa.off / 8);
}

/* --- programs --- */

static void emit(struct reader *r, uint32_t first, uint64_t addr, const struct state *s)
{
	struct cfi *c = r->c;
	uint32_t rule = make_rule(s);

	if (!rule)
		c->skipped++;
	if (s->rbx.how == AT_CFA && !r->rbx && is_words(s->rbx.off, -2047, 2047))
		r->rbx = (int16_t)(s->rbx.off / 8);
	if (c->rows.n > first) {
		struct cfi_row *last = vec_last(&c->rows);

		if (last->addr == addr) {
			last->rule = rule;
			return;
		}
		if (last->rule == rule)
			return;
	}
	vec_push(&c->rows, (struct cfi_row){ addr, rule });
}

static struct where *target(struct state *s, uint64_t reg)
{
	static struct where ignored;

	return reg == REG_RBP   ? &s->rbp
	       : reg == REG_RA  ? &s->ra
	       : reg == REG_RBX ? &s->rbx
				: &ignored;
}

static struct where at_cfa(int64_t off)
{
	return (struct where){ .how = AT_CFA, .off = off };
}

static struct where expression(struct bytes *b)
{
	uint64_t n = bytes_uleb(b);
	const uint8_t *p = n <= bytes_left(b) ? bytes_take(b, n) : NULL;

	if (!p)
		b->bad_at = at(b) + 1;
	return (struct where){ .how = EXPR, .expr = p, .len = p ? n : 0 };
}

/* Multiplies by the alignment factor. Wraps instead of overflowing. */
static int64_t scaled(uint64_t n, int64_t align)
{
	return (int64_t)(n * (uint64_t)align);
}

/* Runs a CFA program. start..end: the function, for FDEs (c non-NULL). CIE programs do not
 * advance. */
static bool eh_frame_run(struct reader *r, struct cie *cie, struct bytes b, struct state *s,
			 uint64_t start, uint64_t end, uint32_t first, bool is_fde, uint64_t here)
{
	struct state stack[MAX_DEPTH];
	uint32_t depth = 0;
	uint64_t pc = start, next, reg;

	while (bytes_left(&b) && bytes_ok(&b)) {
		uint8_t op = bytes_u8(&b), low = op & 0x3f;

		next = pc;
		switch (op & 0xc0 ? op & 0xc0 : op) {
		case DW_CFA_advance_loc: next = pc + low * cie->code_align; break;
		case DW_CFA_advance_loc1: next = pc + bytes_u8(&b) * cie->code_align; break;
		case DW_CFA_advance_loc2: next = pc + bytes_u16(&b) * cie->code_align; break;
		case DW_CFA_advance_loc4: next = pc + bytes_u32(&b) * cie->code_align; break;
		case DW_CFA_set_loc: next = read_encoded(&b, cie->enc, here + at(&b)); break;
		case DW_CFA_offset:
			*target(s, low) = at_cfa(scaled(bytes_uleb(&b), cie->data_align));
			break;
		case DW_CFA_restore: *target(s, low) = *target(&cie->initial, low); break;
		case DW_CFA_nop: break;
		case DW_CFA_offset_extended:
			reg = bytes_uleb(&b);
			*target(s, reg) = at_cfa(scaled(bytes_uleb(&b), cie->data_align));
			break;
		case DW_CFA_offset_extended_sf:
			reg = bytes_uleb(&b);
			*target(s, reg) = at_cfa(scaled((uint64_t)bytes_sleb(&b), cie->data_align));
			break;
		case DW_CFA_GNU_negative_offset_extended:
			reg = bytes_uleb(&b);
			*target(s, reg) = at_cfa(scaled(-bytes_uleb(&b), cie->data_align));
			break;
		case DW_CFA_restore_extended:
			reg = bytes_uleb(&b);
			*target(s, reg) = *target(&cie->initial, reg);
			break;
		case DW_CFA_undefined:
			*target(s, bytes_uleb(&b)) = (struct where){ .how = UNDEFINED };
			break;
		case DW_CFA_same_value:
			*target(s, bytes_uleb(&b)) = (struct where){ .how = SAME };
			break;
		case DW_CFA_register:
			reg = bytes_uleb(&b);
			*target(s, reg) = (struct where){ .how = IN_REG, .reg = bytes_uleb(&b) };
			break;
		case DW_CFA_remember_state:
			if (depth == MAX_DEPTH)
				return false;
			stack[depth++] = *s;
			break;
		case DW_CFA_restore_state:
			if (!depth)
				return false;
			*s = stack[--depth];
			break;
		case DW_CFA_def_cfa:
			reg = bytes_uleb(&b);
			s->cfa = (struct where){ .how = IN_REG,
						 .reg = reg,
						 .off = (int64_t)bytes_uleb(&b) };
			break;
		case DW_CFA_def_cfa_sf:
			reg = bytes_uleb(&b);
			s->cfa = (struct where){ .how = IN_REG,
						 .reg = reg,
						 .off = scaled((uint64_t)bytes_sleb(&b),
							       cie->data_align) };
			break;
		case DW_CFA_def_cfa_register:
			s->cfa.how = IN_REG;
			s->cfa.reg = bytes_uleb(&b);
			break;
		case DW_CFA_def_cfa_offset: s->cfa.off = (int64_t)bytes_uleb(&b); break;
		case DW_CFA_def_cfa_offset_sf:
			s->cfa.off = scaled((uint64_t)bytes_sleb(&b), cie->data_align);
			break;
		case DW_CFA_def_cfa_expression: s->cfa = expression(&b); break;
		case DW_CFA_expression:
			reg = bytes_uleb(&b);
			*target(s, reg) = expression(&b);
			break;
		case DW_CFA_val_expression:
			reg = bytes_uleb(&b);
			expression(&b);
			*target(s, reg) = (struct where){ .how = OTHER };
			break;
		case DW_CFA_val_offset:
		case DW_CFA_val_offset_sf:
			reg = bytes_uleb(&b);
			bytes_sleb(&b);
			*target(s, reg) = (struct where){ .how = OTHER };
			break;
		case DW_CFA_GNU_window_save: break;
		case DW_CFA_GNU_args_size: bytes_uleb(&b); break;
		default: return false;
		}
		if (next == pc)
			continue;
		if (!is_fde || next < pc || r->c->rows.n > MAX_ROWS)
			return false;
		emit(r, first, pc, s);
		pc = next;
		if (pc >= end)
			return bytes_ok(&b);
	}
	if (is_fde)
		emit(r, first, pc, s);
	return bytes_ok(&b);
}

/* --- entries --- */

static bool parse_cie(struct reader *r, struct bytes b, uint64_t here, struct cie *cie)
{
	uint8_t version = bytes_u8(&b);
	const char *aug = bytes_cstr(&b);

	if (!aug || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4 && (bytes_u8(&b) != 8 || bytes_u8(&b) != 0)) /* address, segment size */
		return false;
	if (!strncmp(aug, "eh", 2)) {
		bytes_u64(&b);
		aug += 2;
	}
	cie->code_align = bytes_uleb(&b);
	cie->data_align = bytes_sleb(&b);
	if ((version == 1 ? bytes_u8(&b) : bytes_uleb(&b)) != REG_RA)
		return false;
	if (*aug == 'z') {
		uint64_t n = bytes_uleb(&b);
		size_t end = at(&b) + n;

		if (n > bytes_left(&b))
			return false;
		cie->has_augmentation = true;
		for (aug++; *aug; aug++) {
			if (*aug == 'R') {
				cie->enc = bytes_u8(&b);
			} else if (*aug == 'P') {
				uint8_t enc = bytes_u8(&b);

				if (enc == 0x50) /* aligned: never seen on x86-64 */
					return false;
				read_encoded(&b, enc, 0);
			} else if (*aug == 'L') {
				cie->lsda_enc = bytes_u8(&b);
				cie->has_lsda = cie->lsda_enc != 0xff;
			} else if (*aug == 'S') {
				cie->is_signal = true;
			} else if (*aug != 'B') {
				break; /* unknown: skip the augmentation data by its length */
			}
		}
		if (!bytes_seek(&b, end))
			return false;
	} else if (*aug) {
		return false;
	}
	return bytes_ok(&b) && eh_frame_run(r, cie, b, &cie->initial, 0, 0, 0, false, here);
}

/* Adds the CIE at off; b is behind its id. A CIE comes before its FDEs and is read once. Otherwise
 * references into the middle of entries could make the same bytes be read again and again. */
static void add_cie(struct reader *r, uint64_t off, struct bytes b)
{
	struct cie cie = { 0 };
	bool is_new;

	struct bytes body = bytes_of(b.pos, bytes_left(&b), b.name);

	if (r->cies.n == MAX_CIES ||
	    !parse_cie(r, body, r->addr + (uint64_t)(b.pos - r->b.start), &cie))
		return;
	*hash_put(&r->by_offset, &off, sizeof(off), &is_new) = r->cies.n;
	vec_push(&r->cies, cie);
}

/* Returns the CIE at section offset off, or NULL when it cannot be used. */
static struct cie *find_cie(struct reader *r, uint64_t off)
{
	const uint64_t *known;

	if (!r->last_cie || r->last_offset != off) {
		known = hash_get(&r->by_offset, &off, sizeof(off));
		if (!known)
			return NULL;
		r->last_offset = off;
		r->last_cie = (uint32_t)*known + 1;
	}
	return &r->cies.v[r->last_cie - 1];
}

static void parse_fde(struct reader *r, struct cie *cie, struct bytes b, uint64_t here)
{
	struct cfi *c = r->c;
	uint64_t start = read_encoded(&b, cie->enc, here + at(&b));
	uint64_t size = read_encoded(&b, cie->enc & 0x0f, 0);
	uint32_t first = c->rows.n;
	struct state s = cie->initial;
	uint64_t lsda = 0;

	if (cie->has_augmentation) {
		uint64_t n = bytes_uleb(&b);

		if (n > bytes_left(&b))
			return;
		if (n && cie->has_lsda) {
			struct bytes data = bytes_of(b.pos, n, b.name);
			uint64_t lsda_at = here + at(&b);

			/* 0 means none, whatever it is relative to. */
			lsda = read_encoded(&data, cie->lsda_enc & 0x0f, 0);
			if (!bytes_ok(&data))
				lsda = 0;
			else if (lsda && (cie->lsda_enc & 0x70) == 0x10)
				lsda += lsda_at;
		}
		bytes_skip(&b, n);
	}
	/* start 0: the linker dropped the function. */
	if (!bytes_ok(&b) || !size || !start || size > UINT64_MAX - start)
		return;
	struct bytes body = bytes_of(b.pos, bytes_left(&b), b.name);

	r->rbx = 0;
	if (!eh_frame_run(r, cie, body, &s, start, r->only_ranges ? start + 1 : start + size, first,
			  true, here + at(&b))) {
		c->rows.n = first;
		vec_push(&c->rows, (struct cfi_row){ start, 0 });
		c->skipped++;
	}
	vec_push(&c->funcs,
		 (struct cfi_func){ start, start + size, first, c->rows.n - first, lsda, r->rbx });
}

static void read_entries(struct cfi *c, const char *name, const uint8_t *p, size_t n, uint64_t addr,
			 bool eh, bool only_ranges)
{
	struct reader r = { .c = c,
			    .b = bytes_of(p, n, name),
			    .addr = addr,
			    .eh = eh,
			    .only_ranges = only_ranges };

	while (bytes_left(&r.b) >= 4) {
		size_t entry_at = at(&r.b), id_at;
		uint64_t len = bytes_u32(&r.b), id, cie_at;
		bool wide = len == 0xffffffff;

		if (!len) {
			if (eh)
				break; /* the terminator */
			continue;
		}
		if (wide)
			len = bytes_u64(&r.b);
		if (!bytes_ok(&r.b) || len > bytes_left(&r.b) || c->rows.n >= MAX_ROWS ||
		    c->funcs.n >= MAX_FUNCS) {
			c->bad = true;
			break;
		}
		struct bytes body = bytes_of(r.b.pos, len, name);

		id_at = at(&r.b);
		id = wide && !eh ? bytes_u64(&body) : bytes_u32(&body);
		bytes_skip(&r.b, len);
		if (!bytes_ok(&body))
			continue;
		if (eh ? id == 0 : id == (wide ? UINT64_MAX : 0xffffffff)) {
			add_cie(&r, entry_at, body);
			continue;
		}
		cie_at = eh ? id_at - id : id;
		if (eh && id > id_at)
			continue;
		struct cie *cie = find_cie(&r, cie_at);

		if (cie)
			parse_fde(&r, cie, body, addr + id_at);
	}
	vec_fini(&r.cies);
	hash_fini(&r.by_offset);
}

void cfi_read(struct cfi *c, const char *name, const uint8_t *p, size_t n, uint64_t addr, bool eh)
{
	*c = (struct cfi){ 0 };
	read_entries(c, name, p, n, addr, eh, false);
}

void cfi_add(struct cfi *c, const char *name, const uint8_t *p, size_t n, uint64_t addr, bool eh)
{
	read_entries(c, name, p, n, addr, eh, false);
}

void cfi_read_ranges(struct cfi *c, const char *name, const uint8_t *p, size_t n, uint64_t addr,
		     bool eh)
{
	*c = (struct cfi){ 0 };
	read_entries(c, name, p, n, addr, eh, true);
}

void cfi_fini(struct cfi *c)
{
	vec_fini(&c->rows);
	vec_fini(&c->funcs);
}
