/* Verifies loads, stores and a helper's memory: proves that an access is in bounds, follows the
 * words of the stack, and notes addresses that are kept where they are not followed. */
#include "compile/jit/verify_private.h"

/* Notes that the function's stack reaches down to `at`. */
static void stack_low(struct v *v, uint32_t fn, int64_t at)
{
	if (at < -EBPF_STACK_SIZE)
		at = -EBPF_STACK_SIZE;
	if (v->record && at < v->f->fns[fn].low)
		v->f->fns[fn].low = (int32_t)at;
}

/* Notes that an address will be kept where the verifier does not follow it. Any byte of its memory
 * may then be read. */
void verify_lose(struct v *v, const struct val *a)
{
	if (!v->record)
		return;
	if (a->kind == CTX)
		v->f->ctx_lost = true;
	if (a->kind == STACK) {
		v->f->fns[a->id].leaked = true;
		stack_low(v, a->id, (int64_t)a->lo);
	}
}

/* Notes the same for an address that arithmetic or an access beyond its frame made point
 * anywhere. */
void verify_lose_bounds(struct v *v, const struct val *a)
{
	verify_lose(v, a);
	if (!v->record || a->kind != STACK)
		return;
	for (uint32_t i = 0; i < v->f->nfns; i++)
		v->f->fns[i].leaked = true;
	stack_low(v, a->id, -EBPF_STACK_SIZE);
}

bool verify_in_bounds(const struct v *v, const struct val *p, int64_t off, uint64_t size)
{
	int64_t lo = (int64_t)p->lo + off, hi = (int64_t)p->hi + off;

	if (p->null || size > OFF_MAX)
		return false;
	switch (p->kind) {
	case STACK: return lo >= -EBPF_STACK_SIZE && hi + (int64_t)size <= 0;
	case CTX: return lo >= 0 && hi + (int64_t)size <= JIT_CTX;
	case VALUE: return lo >= 0 && hi + (int64_t)size <= v->env->maps[p->id].value_size;
	case RECORD: return lo >= 0 && hi + (int64_t)size <= p->id;
	}
	return false;
}

/* Notes that bytes [lo, hi) of function fn's stack, relative to its r10, may be read. */
static void reads_stack(struct v *v, uint32_t fn, int64_t lo, int64_t hi)
{
	for (int64_t i = lo; i < hi; i++)
		v->f->fns[fn].read[(i + 512) / 64] |= 1ull << (i + 512) % 64;
}

static uint64_t slot_mask(int64_t lo, int64_t hi) /* slots that bytes [lo, hi) below r10 touch */
{
	uint64_t m = 0;

	for (int64_t i = (-hi) / 8; i < SLOTS && -8 * (i + 1) < hi; i++)
		if (i >= 0 && -8 * i > lo)
			m |= 1ull << i;
	return m;
}

/* Returns the slots of the mask that may hold an address that is not followed. Bytes [lo, hi) of
 * them are read. */
static uint64_t unknown_slots(const struct v *v, uint32_t fn, uint64_t mask, int64_t lo, int64_t hi)
{
	for (int i = 0; i < SLOTS && fn == v->fn; i++) {
		const struct val *s = &v->s.slot[i];
		int64_t at = -8 * (i + 1);

		if (s->kind == NUMBER && (!s->size || (hi <= at + s->size && lo >= at)))
			mask &= ~(UINT64_C(1) << i);
	}
	return mask;
}

static void proven_read(struct v *v, const struct val *p, int64_t off, uint64_t size)
{
	int64_t lo = (int64_t)p->lo + off, hi = (int64_t)p->hi + off + (int64_t)size;

	if (!v->record)
		return;
	if (p->kind == STACK) {
		reads_stack(v, p->id, lo, hi);
		v->f->fns[p->id].blind |= unknown_slots(v, p->id, slot_mask(lo, hi), lo, hi);
	}
	if (p->kind == CTX) {
		v->f->ctx_used = true;
		for (int64_t i = lo / 8; i * 8 < hi; i++)
			v->f->ctx_words |= 1u << i;
	}
}

/* Forgets the slots in the mask. gone: a store certainly overwrites their old values. */
static void forget_slots(struct v *v, uint64_t mask, bool gone)
{
	for (int i = 0; i < SLOTS; i++) {
		if (!(mask >> i & 1))
			continue;
		if (!gone)
			verify_lose(v, &v->s.slot[i]);
		v->s.slot[i] = (struct val){ 0 };
	}
}

/* Walks all callers of function fn again, because it writes more than known before. */
void verify_callers_again(struct v *v, uint32_t fn)
{
	for (uint32_t i = 0; i < v->n; i++) {
		const struct bpf_insn *ins = &v->insns[i];
		bool ref = (ins->code == (BPF_JMP | BPF_CALL) && ins->src_reg == BPF_PSEUDO_CALL) ||
			   (ebpf_is_ld_imm64(ins) && ins->src_reg == EBPF_PSEUDO_FUNC);

		if (ref && (uint32_t)((int64_t)i + 1 + ins->imm) == v->f->fns[fn].start) {
			uint32_t f = v->blocks[v->block_of[i]].fn;

			/* The loop of a callback may be in another block than its address. */
			for (uint32_t b = 0; b < v->nblocks; b++)
				if (v->blocks[b].fn == f && v->blocks[b].in)
					v->blocks[b].dirty = true;
		}
		if (ebpf_is_ld_imm64(ins))
			i++;
	}
}

void verify_writes_any(struct v *v)
{
	forget_slots(v, UINT64_MAX, false);
	if (!v->fns[v->fn].wild) {
		v->fns[v->fn].wild = true;
		verify_callers_again(v, v->fn);
	}
}

void verify_writes_frame(struct v *v, uint32_t fn, uint64_t mask, bool gone)
{
	if (fn == v->fn) {
		forget_slots(v, mask, gone);
	} else if (mask & ~v->fns[v->fn].writes[fn]) {
		v->fns[v->fn].writes[fn] |= mask;
		verify_callers_again(v, v->fn);
	}
}

static void writes(struct v *v, const struct val *p, int64_t off, uint64_t size, bool proven)
{
	int64_t lo = (int64_t)p->lo + off, hi = (int64_t)p->hi + off + (int64_t)size;

	if (!proven) {
		verify_writes_any(v);
	} else if (p->kind == STACK) {
		verify_writes_frame(v, p->id, slot_mask(lo, hi), p->lo == p->hi);
		if (p->id != v->fn || p->lo != p->hi)
			stack_low(v, p->id, lo);
	}
}

static struct val load_slot(struct v *v, const struct val *p, int64_t off, uint32_t size)
{
	int64_t at = (int64_t)p->lo + off;
	const struct val *s;
	struct val r;

	if (p->kind != STACK || p->id != v->fn || p->lo != p->hi || at & 7 || at < -512 || at >= 0)
		return any;
	s = &v->s.slot[-at / 8 - 1];
	if (s->kind == NONE)
		return any;
	if (size == 8)
		return s->size ? any : *s;
	if (size == 4 && is_const(s)) {
		r = number((uint32_t)s->lo, (uint32_t)s->lo);
		return r;
	}
	return any;
}

static void note_access(struct v *v, bool proven)
{
	if (!v->record)
		return;
	v->f->insn[v->pc].proven = proven;
	if (proven) {
		v->f->nproven++;
	} else {
		v->f->nchecked++;
		v->f->checks = true;
	}
}

/* Notes the place of a proven access that does not depend on the generation. */
static void note_place(struct v *v, const struct val *p, int64_t off)
{
	const struct wire_map *m = p->kind == VALUE ? &v->env->maps[p->id] : NULL;
	struct jit_fact *f = &v->f->insn[v->pc];
	uint64_t place;

	if (!v->record || !m || !p->element || p->lo != p->hi)
		return;
	place = m->base + (uint64_t)(p->element - 1) * m->stride + p->lo + (uint64_t)off;
	if (m->kind == WIRE_MAP_ARRAY)
		f->where = JIT_AT;
	else if ((m->kind == WIRE_MAP_THREAD_ARRAY || m->kind == WIRE_MAP_TASK ||
		  (m->kind == WIRE_MAP_AGG_ARRAY && !wire_map_is_flipped(m))) &&
		 place < INT32_MAX - 8)
		f->where = JIT_IN_THREAD;
	f->place = place;
}

/* Returns which eight bytes of the thread's private variables p + off leads to: *ret_from to the
 * result, which stands behind the last of them. */
static uint64_t own_words_at(const struct v *v, const struct val *p, int64_t off, uint64_t size,
			     uint64_t *ret_from)
{
	const struct wire_map *m = &v->env->maps[p->id];
	const uint64_t words = (m->value_size + 7) / 8;
	const int64_t from = (int64_t)p->lo + off, to = (int64_t)p->hi + off;

	*ret_from = from < 0 ? 0 : (uint64_t)from / 8;
	if (from < 0 || to < from || (uint64_t)to >= m->value_size || size > m->value_size ||
	    ((uint64_t)to + size + 7) / 8 > words)
		return words;
	return ((uint64_t)to + size + 7) / 8;
}

static bool is_own_value(const struct v *v, const struct val *p)
{
	return p->kind == VALUE && v->env->maps[p->id].kind == WIRE_MAP_OWN_TASK;
}

bool verify_is_shared(const struct v *v, const struct val *p, int64_t off, uint32_t size)
{
	uint64_t word, end;
	bool any = false;

	const int64_t at = (int64_t)p->lo + off;
	const struct wire_map *m;

	if (p->kind == TASK)
		return false;
	if (!verify_in_bounds(v, p, off, size))
		return true;
	switch (p->kind) {
	case CTX: return false;
	case STACK:
		if (p->id == v->fn && p->lo == p->hi && at >> 3 == (at + size - 1) >> 3 &&
		    v->s.slot[(-at - 1) / 8].kind != NONE)
			return v->s.slot[(-at - 1) / 8].shared;
		return v->fns[p->id].shared;
	case VALUE:
		m = &v->env->maps[p->id];
		if (is_own_value(v, p)) {
			end = own_words_at(v, p, off, size, &word);
			for (; word < end; word++)
				any |= v->env->own_shared[word / 64] >> word % 64 & 1;
			return any;
		}
		return m->kind != WIRE_MAP_ARRAY || m->base >= v->env->shared;
	}
	return true;
}

/* Returns true when a word was marked that was not before. */
static bool share_own(const struct v *v, const struct val *p, int64_t off, uint64_t size)
{
	uint64_t word, end = own_words_at(v, p, off, size, &word);
	bool any = false;

	for (; word < end; word++) {
		any |= !(v->env->own_shared[word / 64] >> word % 64 & 1);
		v->env->own_shared[word / 64] |= 1ull << word % 64;
	}
	return any;
}

void verify_share(struct v *v, const struct val *p, int64_t off, uint64_t size, bool shared)
{
	bool is_new = false;

	if (shared && is_own_value(v, p)) {
		is_new = share_own(v, p, off, size);
	} else if (shared && p->kind == STACK) {
		is_new = !v->fns[p->id].shared;
		v->fns[p->id].shared = true;
	}
	for (uint32_t b = 0; b < v->nblocks && is_new; b++)
		v->blocks[b].dirty |= v->blocks[b].in != NULL;
}

void verify_load(struct v *v, const struct bpf_insn *ins)
{
	const struct val *p = &v->s.r[ins->src_reg];
	uint32_t size = jit_access_size(ins);
	bool ok = verify_in_bounds(v, p, ins->off, size), sign = BPF_MODE(ins->code) == EBPF_MEMSX;
	const bool shared = verify_is_shared(v, p, ins->off, size);
	struct val r = any;

	verify_check_reg(v, ins->src_reg);
	if (v->record && p->kind == CTX && !ok)
		verify_refuse(v, "reads outside the context");
	note_access(v, ok);
	if (!ok)
		verify_lose_bounds(v, p);
	if (ok) {
		uint64_t blind = p->kind == STACK ? v->f->fns[p->id].blind : 0;

		note_place(v, p, ins->off);
		proven_read(v, p, ins->off, size);
		if (!sign)
			r = load_slot(v, p, ins->off, size);
		if (is_pointer(&r)) /* the verifier followed it */
			v->f->fns[p->id].blind = blind;
	}
	if (!sign)
		r = zero_extended(r, size);
	r.shared = shared;
	v->s.r[ins->dst_reg] = r;
}

static bool of_thread(const struct v *v, const struct val *p)
{
	if (p->kind == STACK)
		return true;
	if (p->kind != VALUE)
		return false;
	switch (v->env->maps[p->id].kind) {
	case WIRE_MAP_THREAD_ARRAY:
	case WIRE_MAP_AGG_ARRAY:
	case WIRE_MAP_AGG_HASH:
	case WIRE_MAP_TASK:
	case WIRE_MAP_OWN_TASK: return true;
	}
	return false;
}

void verify_store(struct v *v, const struct bpf_insn *ins)
{
	struct val p = v->s.r[ins->dst_reg], x;
	bool atomic = BPF_CLASS(ins->code) == BPF_STX && BPF_MODE(ins->code) == BPF_ATOMIC;
	uint32_t size = jit_access_size(ins);
	bool ok = verify_in_bounds(v, &p, ins->off, size) && p.kind != CTX;
	int64_t at = (int64_t)p.lo + ins->off;
	struct jit_fact *f = &v->f->insn[v->pc];
	bool old_shared;

	verify_check_reg(v, ins->dst_reg);
	if (BPF_CLASS(ins->code) == BPF_STX)
		verify_check_reg(v, ins->src_reg);
	if (v->record && p.kind == CTX)
		verify_refuse(v, "writes to the context");
	note_access(v, ok);
	if (ok)
		note_place(v, &p, ins->off);
	else
		verify_lose_bounds(v, &p);
	x = BPF_CLASS(ins->code) == BPF_STX
		    ? v->s.r[ins->src_reg]
		    : number((uint64_t)(int64_t)ins->imm, (uint64_t)(int64_t)ins->imm);
	old_shared = atomic && verify_is_shared(v, &p, ins->off, size);
	writes(v, &p, ins->off, size, ok);
	verify_share(v, &p, ins->off, size, x.shared);
	if (atomic) {
		if (v->record) {
			f->alone = ok && of_thread(v, &p);
			if (ok)
				proven_read(v, &p, ins->off, size);
			verify_lose(v, &x);
		}
		if (ins->imm != BPF_ADD && ins->imm != BPF_OR && ins->imm != BPF_AND &&
		    ins->imm != BPF_XOR) {
			struct val old = zero_extended(any, size);

			old.shared = old_shared;
			if (ins->imm == BPF_CMPXCHG) {
				verify_check_reg(v, 0);
				v->s.r[0] = old;
			} else {
				v->s.r[ins->src_reg] = old;
			}
		}
		return;
	}
	if (ok && p.kind == STACK && p.id == v->fn && p.lo == p.hi) {
		if (v->record) {
			f->own = true;
			f->at = (int16_t)at;
			f->size = (uint8_t)size;
		}
		if (!(at & 7) && (size == 8 || (size == 4 && is_const(&x)))) {
			x.size = size == 8 ? 0 : 4;
			if (size == 4)
				x.lo = x.hi = (uint32_t)x.lo;
			if (x.kind != NONE)
				v->s.slot[-at / 8 - 1] = x;
			if (v->record && x.kind == CTX)
				v->f->fns[v->fn].ctx_at |= slot_mask(at, at + 8);
			if (v->record && x.kind == STACK)
				v->f->fns[v->fn].stack_at |= slot_mask(at, at + 8);
			return;
		}
	}
	verify_lose(v, &x);
}

/* Proves a helper's memory argument, or adds a check at run time. */
void verify_helper_memory(struct v *v, uint32_t reg, uint64_t size, bool write)
{
	struct val *p = &v->s.r[reg];
	bool ok = verify_in_bounds(v, p, 0, size) && (!write || p->kind != CTX);

	if (write)
		writes(v, p, 0, size, ok);
	else if (ok)
		proven_read(v, p, 0, size);
	if (!v->record)
		return;
	if (ok) {
		v->f->nproven++;
		return;
	}
	verify_lose_bounds(v, p);
	v->f->insn[v->pc].check |= (uint8_t)(1 << reg);
	v->f->nchecked++;
	v->f->checks = true;
}

/* Reads the constant in the 4 bytes that r2 points to. Returns false when it is not constant. */
bool verify_known_key(struct v *v, uint32_t *ret)
{
	const struct val *p = &v->s.r[2];
	struct val k;

	if (!verify_in_bounds(v, p, 0, 4))
		return false;
	k = load_slot(v, p, 0, 4);
	*ret = (uint32_t)k.lo;
	return is_const(&k);
}
