/* Finds the interpreter's code that begins and ends a method.
 *
 * Ruby passes its notes method__entry and method__return only while a TracePoint is enabled. So
 * probes are placed on the code that pushes and pops the frames of methods. The compiler copies
 * this code to many places, which the constants of the frames' flags show. The frame's address is
 * in the register that the code stores in the execution context. */
#define _GNU_SOURCE /* memmem() */
#include <string.h>

#include <Zydis/Zydis.h>

#include "program/runtime/ruby/ruby.h"

enum {
	TEXT_MAX = 64 << 20,
	FUNCTIONS_MAX = 512,      /* that are decoded */
	STEPS_MAX = 1 << 24,      /* instructions that are decoded, some more than once */
	LOOP_MIN = 4096,          /* bytes of the function that has the instructions */
	CONTEXT_FRAME = 16,       /* in the execution context: the address of the frame */
	FRAME_SCOPE = 32,         /* in a frame */
	TYPE_METHOD = 0x11110003, /* flags of a method's frame */
	TYPE_MASK = 0x7fff0001,
	FLAG_FINISH = 0x20,
	FLAG_BLOCK_METHOD = 0x40,
	TYPE_BLOCK_METHOD = 0x22220141,
	KEPT = 1 << 3 | 1 << 4 | 1 << 5 | 0xf << 12, /* registers that a called function keeps */
	POPS = 2,  /* instructions that end a method: leave, opt_invokebuiltin_delegate_leave */
	NEAR = 32, /* instructions between parts of a pattern */
	GENERAL = 16,
	NONE = RUBY_NO_REGISTER,
	RDX = 2,
	RSI = 6,
	R9 = 9,
	STORES = 8,       /* remembered */
	ENTRY_BELOW = 16, /* bytes from a scope's method entry to its flags */
	FRAME_ISEQ = 16,
};

struct step {
	ZydisDecodedInstruction z;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t addr, next;
};

struct walk {
	struct object *o;
	struct ruby ruby; /* for ruby_function() */
	struct ruby_places *ret;
	uint64_t push; /* vm_push_frame(); 0: not known yet */
	uint8_t *text;
	uint64_t text_addr;
	uint32_t ntext;
	uint32_t steps;               /* instructions decoded so far */
	uint64_t done[FUNCTIONS_MAX]; /* functions decoded for the present purpose */
	uint32_t ndone;
};

/* The meaning of a general register while a function is decoded in one line. */
struct known {
	uint8_t context; /* it has the address of the frame of the context in this register */
	int32_t moved;   /* plus so many bytes; 0: the frame itself */
	uint8_t scope_of, flags_of; /* frame register whose scope, or flags, it has */
};

/* A register's store to a member behind another one. */
struct store {
	uint8_t base, from;
	int64_t at;
};

/* A frame that became the one of the context before it was filled (Ruby 2.7). */
struct pushed {
	uint64_t addr; /* of the instruction; 0: none */
	uint8_t context, iseq,
		block;    /* registers; block: it has the flags of a block that is a method */
	uint32_t written; /* registers since */
	struct store stores[STORES];
	uint32_t nstores;
};

struct reading {
	struct known regs[GENERAL];
	uint32_t n;                     /* instructions so far */
	uint32_t method, block, finish; /* 1 + n of the last constant of this kind; 0: none */
	uint32_t looked;                /* the same for the last look at a frame's kind */
	struct ruby_place kind;         /* that place */
	uint32_t compared;              /* bits of the kinds that it was compared with since */
	struct pushed pushed;
};

static uint8_t general(ZydisRegister reg)
{
	reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15
		       ? (uint8_t)(reg - ZYDIS_REGISTER_RAX)
		       : NONE;
}

static uint8_t operand_reg(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER ? general(op->reg.value) : NONE;
}

/* Returns the base of an operand that is a member behind a register. */
static uint8_t member(const ZydisDecodedOperand *op, int64_t *ret_offset)
{
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.index != ZYDIS_REGISTER_NONE ||
	    op->mem.segment == ZYDIS_REGISTER_FS)
		return NONE;
	*ret_offset = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
	return general(op->mem.base);
}

static bool is_near(const struct reading *r, uint32_t since)
{
	return since && r->n + 1 - since <= NEAR;
}

static void forget(struct known *k)
{
	*k = (struct known){ NONE, 0, NONE, NONE };
}

/* Registers of which one is derived from another one are forgotten with it. */
static void forget_register(struct reading *r, uint8_t reg)
{
	if (reg == NONE)
		return;
	forget(&r->regs[reg]);
	for (uint32_t i = 0; i < GENERAL; i++)
		if (r->regs[i].context == reg || r->regs[i].scope_of == reg ||
		    r->regs[i].flags_of == reg)
			forget(&r->regs[i]);
}

/* Follows what an instruction does to the registers. */
static void follow(struct reading *r, const struct step *s)
{
	uint8_t to = operand_reg(&s->ops[0]), from;
	struct known k;
	int64_t at = 0;

	forget(&k);
	if (s->z.mnemonic == ZYDIS_MNEMONIC_MOV && to != NONE && s->ops[0].size == 64) {
		if ((from = operand_reg(&s->ops[1])) != NONE) {
			k = r->regs[from];
		} else if ((from = member(&s->ops[1], &at)) != NONE) {
			if (at == CONTEXT_FRAME)
				k.context = from;
			if (at == FRAME_SCOPE)
				k.scope_of = from;
			if (!at)
				k.flags_of = r->regs[from].scope_of;
		}
	} else if (s->z.mnemonic == ZYDIS_MNEMONIC_LEA && to != NONE &&
		   (from = member(&s->ops[1], &at)) != NONE && at == (int32_t)at) {
		k = r->regs[from];
		k.scope_of = k.flags_of = NONE;
		k.moved += (int32_t)at;
	}
	for (uint32_t i = 0; i < s->z.operand_count; i++)
		if (s->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			forget_register(r, operand_reg(&s->ops[i]));
	if (to != NONE &&
	    (k.context != NONE || k.moved || k.scope_of != NONE || k.flags_of != NONE) &&
	    k.context != to && k.scope_of != to && k.flags_of != to)
		r->regs[to] = k;
	/* code behind a jump is reached from elsewhere; a call changes registers */
	if (s->z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
	    s->z.meta.category != ZYDIS_CATEGORY_COND_BR)
		for (uint32_t i = 0; i < GENERAL; i++)
			if (s->z.meta.category != ZYDIS_CATEGORY_CALL || !(KEPT >> i & 1))
				forget(&r->regs[i]);
	r->n++;
}

static bool decode(struct walk *w, const ZydisDecoder *d, const struct ruby_range *f, uint64_t at,
		   struct step *ret)
{
	uint64_t off = at - w->text_addr;

	if (at - f->start >= f->size || off >= w->ntext || w->steps == STEPS_MAX ||
	    ZYAN_FAILED(
		    ZydisDecoderDecodeFull(d, w->text + off, w->ntext - off, &ret->z, ret->ops)))
		return false;
	w->steps++;
	ret->addr = at;
	ret->next = at + ret->z.length;
	return true;
}

static bool has_constant(const struct step *s, int64_t v)
{
	for (uint32_t i = 0; i < s->z.operand_count_visible; i++)
		if (s->ops[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && s->ops[i].imm.value.s == v)
			return true;
	return false;
}

static bool add_place(struct walk *w, uint64_t addr, uint8_t frame, int16_t moved, uint8_t entry)
{
	if (w->ret->n == RUBY_PLACES_MAX)
		return false;
	w->ret->v[w->ret->n++] = (struct ruby_place){ addr, frame, entry, moved, false };
	return true;
}

static bool add_leaf(struct walk *w, uint64_t addr)
{
	if (!add_place(w, addr, RDX, 0, NONE))
		return false;
	w->ret->v[w->ret->n - 1].leaf = true;
	return true;
}

/* Returns true for an instruction that makes a frame the one of the context. */
static bool stores_frame(const struct step *s, uint8_t *ret_context, uint8_t *ret_reg)
{
	int64_t at = 0;

	if (s->z.mnemonic != ZYDIS_MNEMONIC_MOV || s->ops[0].size != 64)
		return false;
	*ret_context = member(&s->ops[0], &at);
	*ret_reg = operand_reg(&s->ops[1]);
	return *ret_context != NONE && at == CONTEXT_FRAME && *ret_reg != NONE;
}

static bool pushes_frame(const struct walk *w, const struct reading *r, const struct step *s)
{
	uint8_t context, reg;

	return stores_frame(s, &context, &reg) && r->regs[reg].context == context &&
	       r->regs[reg].moved == -(int32_t)w->ruby.layout.frame_size;
}

/* Calls fn for each instruction of the function, until it returns false. Returns what it did. */
static bool each_instruction(struct walk *w, const struct ruby_range *f,
			     bool (*fn)(struct walk *w, struct reading *r, const struct step *s))
{
	struct reading r = { 0 };
	ZydisDecoder d;
	struct step s;

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t i = 0; i < GENERAL; i++)
		forget(&r.regs[i]);
	for (uint64_t at = f->start; decode(w, &d, f, at, &s); at = s.next) {
		if (!fn(w, &r, &s))
			return false;
		follow(&r, &s);
	}
	return true;
}

static bool is_call(const struct step *s, uint64_t *ret_to)
{
	if (s->z.mnemonic != ZYDIS_MNEMONIC_CALL || s->ops[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	*ret_to = s->next + (uint64_t)s->ops[0].imm.value.s;
	return true;
}

static bool no_push(struct walk *w, struct reading *r, const struct step *s)
{
	return !pushes_frame(w, r, s);
}

/* Returns true for vm_push_frame(). */
static bool is_push(struct walk *w, uint64_t to)
{
	struct ruby_range f;

	if (!w->push && ruby_function(&w->ruby, to, &f) && f.start == to &&
	    !each_instruction(w, &f, no_push))
		w->push = to;
	return to == w->push;
}

/* Takes the places where the frame of a method is pushed: the instruction that stores its address,
 * or the call of vm_push_frame(). */
static bool take_method(struct walk *w, struct reading *r, const struct step *s)
{
	uint8_t context, reg;
	uint64_t to;

	if (r->method && !is_near(r, r->method))
		return false; /* unknown code */
	if (has_constant(s, TYPE_METHOD))
		r->method = r->n + 1;
	if (!r->method)
		return true;
	if (pushes_frame(w, r, s) && stores_frame(s, &context, &reg)) {
		r->method = 0;
		return add_place(w, s->addr, reg, 0, NONE);
	}
	if (!is_call(s, &to))
		return true;
	r->method = 0;
	return !is_push(w, to) || add_place(w, s->addr, RSI, 0, R9);
}

/* The same for a block that define_method() made a method. */
static bool take_block(struct walk *w, struct reading *r, const struct step *s)
{
	bool near = is_near(r, r->block);
	uint64_t to;

	if ((s->z.mnemonic == ZYDIS_MNEMONIC_OR && has_constant(s, FLAG_BLOCK_METHOD)) ||
	    has_constant(s, TYPE_BLOCK_METHOD))
		r->block = r->n + 1;
	if (!is_call(s, &to) || to != w->push)
		return true;
	r->block = 0;
	return !near || add_place(w, s->addr, RSI, 0, R9);
}

/* --- Ruby 2.7 ---
 *
 * The compiler has put vm_push_frame() into its callers. The frame becomes the one of the context
 * first, and is filled then. So the place is the instruction that does the former, and the stores
 * behind it show the registers that have the iseq and the method entry already.
 */

/* Returns the register that is stored as the method entry of the scope whose flags are at `at`
 * behind a register, NONE: none. */
static uint8_t stored_entry(const struct pushed *p, uint8_t base, int64_t at)
{
	for (uint32_t i = p->nstores; i--;)
		if (p->stores[i].base == base && p->stores[i].at == at - ENTRY_BELOW)
			return p->stores[i].from;
	return NONE;
}

/* Follows what an instruction does to the registers that hold stored values and their addresses. */
static void follow_stores(struct pushed *p, const struct step *s)
{
	const uint8_t to = operand_reg(&s->ops[0]);
	const bool moves = s->z.mnemonic == ZYDIS_MNEMONIC_ADD && to != NONE &&
			   s->ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	uint32_t n = 0, written = 0;

	for (uint32_t i = 0; i < s->z.operand_count; i++) {
		uint8_t reg = operand_reg(&s->ops[i]);

		if (reg != NONE && s->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			written |= 1u << reg;
	}
	p->written |= written;
	for (uint32_t i = 0; i < p->nstores; i++) {
		struct store x = p->stores[i];

		if (moves && x.base == to)
			x.at -= s->ops[1].imm.value.s;
		else if (written >> x.base & 1)
			continue;
		if (!(p->written >> x.from & 1))
			p->stores[n++] = x;
	}
	p->nstores = n;
}

static void note_push(struct reading *r, const struct step *s)
{
	uint8_t context, reg;
	const uint8_t block = r->pushed.block;

	stores_frame(s, &context, &reg);
	r->pushed =
		(struct pushed){ .addr = s->addr, .context = context, .iseq = NONE, .block = NONE };
	if (is_near(r, r->block))
		r->pushed.block = block;
}

/* Takes a push when the flags are stored that make its frame one of a method. */
static bool take_pushed(struct walk *w, struct reading *r, const struct step *s)
{
	const int32_t size = w->ruby.layout.frame_size;
	struct pushed *p = &r->pushed;
	int64_t at = 0;
	uint8_t base = s->z.mnemonic == ZYDIS_MNEMONIC_MOV && s->ops[0].size == 64
			       ? member(&s->ops[0], &at)
			       : NONE,
		from = operand_reg(&s->ops[1]), entry;
	const bool method = base != NONE && has_constant(s, TYPE_METHOD),
		   is_block = s->z.mnemonic == ZYDIS_MNEMONIC_OR &&
			      has_constant(s, FLAG_BLOCK_METHOD) && operand_reg(&s->ops[0]) != NONE;

	if (pushes_frame(w, r, s)) {
		note_push(r, s);
		return true;
	}
	if (has_constant(s, TYPE_METHOD) && (!method || !p->addr))
		return false; /* unknown code */
	if (!p->addr) {
		if (is_block) {
			r->block = r->n + 1;
			p->block = operand_reg(&s->ops[0]);
		}
		return true;
	}
	if (method ||
	    (base != NONE && from != NONE && from == p->block && !(p->written >> from & 1))) {
		uint64_t addr = p->addr;

		entry = stored_entry(p, base, at);
		p->addr = 0;
		if (p->iseq != NONE && entry != NONE && !(p->written >> p->iseq & 1))
			return add_place(w, addr, p->iseq, 0, entry);
		return !method;
	}
	if (base != NONE && from != NONE && r->regs[base].context == p->context &&
	    r->regs[base].moved + at == FRAME_ISEQ - size)
		p->iseq = p->written >> from & 1 ? NONE : from;
	follow_stores(p, s);
	if (is_block) {
		p->block = operand_reg(&s->ops[0]);
		p->written &= ~(1u << p->block);
	}
	if (base != NONE && from != NONE && p->nstores < STORES && !(p->written >> from & 1))
		p->stores[p->nstores++] = (struct store){ base, from, at };
	if (s->z.meta.category == ZYDIS_CATEGORY_CALL || s->z.meta.category == ZYDIS_CATEGORY_RET)
		p->addr = 0;
	return true;
}

static bool each_function(struct walk *w, uint64_t size,
			  bool (*fn)(struct walk *w, struct reading *r, const struct step *s))
{
	struct ruby_range f;
	uint64_t at = w->text_addr;

	while (ruby_next_function(&w->ruby, &at, &f))
		if (f.size >= size && !each_instruction(w, &f, fn))
			return false;
	return true;
}

/* Takes the places where the loop pops a frame: it then looks at the flag for the end of the
 * loop. */
static bool take_pop(struct walk *w, struct reading *r, const struct step *s)
{
	int32_t size = w->ruby.layout.frame_size;
	uint8_t context, reg;

	if ((s->z.mnemonic == ZYDIS_MNEMONIC_AND || s->z.mnemonic == ZYDIS_MNEMONIC_TEST) &&
	    has_constant(s, FLAG_FINISH))
		r->finish = r->n + 1;
	if (!is_near(r, r->finish) || !stores_frame(s, &context, &reg) ||
	    r->regs[reg].moved != size)
		return true;
	r->finish = 0;
	return add_place(w, s->addr, reg, (int16_t)-size, NONE);
}

/* Takes the place where a frame's kind is looked at before an exception ends it: the kind is then
 * compared with those of methods, blocks and classes, and with no other. */
static bool take_unwound(struct walk *w, struct reading *r, const struct step *s)
{
	static const uint32_t kinds[] = { 0x11110001, 0x22220001, 0x33330001 };
	uint8_t reg = operand_reg(&s->ops[0]);
	uint32_t k = 0;

	if (s->z.mnemonic == ZYDIS_MNEMONIC_AND && has_constant(s, TYPE_MASK) && reg != NONE &&
	    r->regs[reg].flags_of != NONE) {
		r->kind = (struct ruby_place){ s->addr, r->regs[reg].flags_of, NONE, 0, false };
		r->looked = r->n + 1;
		r->compared = 0;
	}
	if (!is_near(r, r->looked) || s->z.mnemonic != ZYDIS_MNEMONIC_CMP ||
	    s->ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return true;
	while (k < ARRAY_SIZE(kinds) && !has_constant(s, kinds[k]))
		k++;
	r->compared |= 1u << k;
	if (r->compared != (1u << ARRAY_SIZE(kinds)) - 1)
		return true;
	r->looked = 0;
	return add_place(w, r->kind.addr, r->kind.frame, 0, NONE);
}

/* Decodes the function around an address, once. Returns false when it is not as it should be. */
static bool decode_around(struct walk *w, uint64_t addr,
			  bool (*fn)(struct walk *w, struct reading *r, const struct step *s))
{
	struct ruby_range f;

	if (!ruby_function(&w->ruby, addr, &f))
		return true;
	for (uint32_t i = 0; i < w->ndone; i++)
		if (w->done[i] == f.start)
			return true;
	if (w->ndone == FUNCTIONS_MAX)
		return false;
	w->done[w->ndone++] = f.start;
	return each_instruction(w, &f, fn);
}

/* Decodes the functions that have the constant. */
static bool decode_around_constant(struct walk *w, uint32_t v,
				   bool (*fn)(struct walk *w, struct reading *r,
					      const struct step *s))
{
	w->ndone = 0;
	for (uint32_t i = 0; i + sizeof(v) <= w->ntext; i++)
		if (w->text[i] == (uint8_t)v && !memcmp(w->text + i, &v, sizeof(v)) &&
		    !decode_around(w, w->text_addr + i, fn))
			return false;
	return true;
}

static bool find_methods(struct walk *w)
{
	return decode_around_constant(w, TYPE_METHOD, take_method) && w->ret->n && w->push;
}

static bool find_blocks(struct walk *w)
{
	w->ndone = 0;
	for (uint32_t i = 0; i + 5 <= w->ntext; i++) {
		int32_t distance;

		if (w->text[i] != 0xe8)
			continue;
		memcpy(&distance, w->text + i + 1, sizeof(distance));
		if (w->text_addr + i + 5 + (uint64_t)(int64_t)distance == w->push &&
		    !decode_around(w, w->text_addr + i, take_block))
			return false;
	}
	return true;
}

/* Not every version names the loop. */
static bool find_pops(struct walk *w)
{
	const uint32_t before = w->ret->n;

	return each_function(w, LOOP_MIN, take_pop) && w->ret->n == before + POPS;
}

static bool find_unwound(struct walk *w)
{
	const uint32_t before = w->ret->n;

	return decode_around_constant(w, TYPE_MASK, take_unwound) && w->ret->n == before + 1;
}

/* The table of symbols: the function that rb_id2str() jumps to compares an ID with the table's
 * first member, of 4 bytes, and reads the member at 16. */
static bool take_symbols_table(struct walk *w, struct reading *r, const struct step *s)
{
	uint64_t addr = 0;
	uint32_t size = 0;

	for (uint32_t i = 0; i < s->z.operand_count_visible; i++)
		if (s->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    s->ops[i].mem.base == ZYDIS_REGISTER_RIP) {
			addr = s->next + (uint64_t)s->ops[i].mem.disp.value;
			size = s->ops[i].size;
		}
	(void)r;
	if (s->z.mnemonic == ZYDIS_MNEMONIC_CMP && size == 32)
		w->done[0] = addr;
	if (s->z.mnemonic != ZYDIS_MNEMONIC_MOV || size != 64 || !w->done[0] ||
	    addr != w->done[0] + 16)
		return true;
	w->ret->symbols = w->done[0];
	return false;
}

static bool take_jump(struct walk *w, struct reading *r, const struct step *s)
{
	struct ruby_range f;
	uint64_t to;

	if (!take_symbols_table(w, r, s))
		return false;
	if (s->z.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE ||
	    s->ops[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return true;
	to = s->next + (uint64_t)s->ops[0].imm.value.s;
	return !ruby_function(&w->ruby, to, &f) || f.start != to ||
	       each_instruction(w, &f, take_symbols_table);
}

static bool find_symbols_table(struct walk *w)
{
	const struct object_symbol *name = object_find_name(w->o, "rb_id2str");
	struct ruby_range f;

	w->done[0] = 0;
	return name && ruby_function(&w->ruby, name->addr, &f) &&
	       !each_instruction(w, &f, take_jump) && w->ret->symbols;
}

bool ruby_unknown(struct object *o, uint64_t *ret)
{
	static const char text[] = "<unknown>";
	uint64_t addr;
	size_t n;
	cleanup_free uint8_t *data = object_section(o, ".rodata", &addr, &n);
	const uint8_t *found = data ? memmem(data, n, text, sizeof(text)) : NULL;

	if (found)
		*ret = addr + (uint64_t)(found - data);
	return found;
}

static const char *find_places(struct walk *w)
{
	const struct ruby_layout *layout;
	uint64_t off, n, version, leaf = 0, leaf_end = 0;
	int32_t v[2];

	if (!object_symbol_value(w->o, "ruby_api_version", &version) ||
	    object_read(w->o, version, v, sizeof(v)) != sizeof(v))
		return "descry does not find its version";
	layout = ruby_layout((uint32_t)v[0], (uint32_t)v[1]);
	if (!layout || (layout->version != RUBY_2_7 && layout->version != RUBY_3_1 &&
			layout->version != RUBY_3_3))
		return "descry does not know where this version's methods begin";
	w->ruby.layout = *layout;
	w->ret->is_3_3 = layout->version == RUBY_3_3;
	if (!object_text_segment(w->o, 0, &off, &n, &w->text_addr) || n > TEXT_MAX)
		return "its code is not as in other builds";
	w->ruby.text = (struct ruby_range){ w->text_addr, n };
	w->text = xmalloc(n);
	w->ntext = object_read(w->o, w->text_addr, w->text, (uint32_t)n);
	if (layout->version == RUBY_2_7 ? !each_function(w, 1, take_pushed) || !w->ret->n
					: !find_methods(w) || !find_blocks(w))
		return "the code that begins a method is not as in other builds";
	if (layout->version == RUBY_3_3 &&
	    !(ruby_leaf(&w->ruby, w->text, w->ntext, &leaf, &leaf_end) && add_leaf(w, leaf)))
		return "the code that calls a leaf is not as in other builds";
	w->ret->nentries = w->ret->n;
	if (!find_pops(w) || !find_unwound(w))
		return "the code that ends a method is not as in other builds";
	if (leaf && !add_leaf(w, leaf_end))
		return "its code is not as in other builds";
	if (!find_symbols_table(w) || !ruby_unknown(w->o, &w->ret->unknown))
		return "descry does not find its names";
	return NULL;
}

const char *ruby_places(struct object *o, struct ruby_places *ret)
{
	struct walk *w = xcalloc(1, sizeof(*w));
	const char *reason;

	memset(ret, 0, sizeof(*ret));
	w->o = w->ruby.object = o;
	w->ret = ret;
	reason = find_places(w);
	if (!reason && w->steps == STEPS_MAX)
		reason = "its code is not as in other builds";
	free(w->ruby.table);
	free(w->text);
	free(w);
	return reason;
}
