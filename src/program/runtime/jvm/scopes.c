/* The functions of compiled code. An nmethod has a table of places (PcDesc). Each place has a scope
 * (ScopeDesc), which leads to the scope that it is inlined in. */
#include "program/runtime/jvm/jvm.h"

enum { PCS_MAX = 1 << 22, SCOPE_BYTES = 15, BCI_BIAS = 1 };

/* The tables of an nmethod. */
struct tables {
	struct jvm *j;
	const struct jvm_blob *b;
	uint64_t pcs, npcs, scopes, scopes_end, metadata;
	uint64_t method; /* of the nmethod itself */
};

static bool tables_open(struct tables *t, struct jvm *j, const struct jvm_blob *b)
{
	const struct jvm_layout *l = &j->layout;
	uint64_t base = b->address, end;

	*t = (struct tables){ .j = j, .b = b, .method = jvm_get(j, base, l->compiled_method) };
	if (l->compiled_immutable.width)
		base = jvm_get(j, b->address, l->compiled_immutable);
	t->pcs = base + jvm_get(j, b->address, l->compiled_pcs);
	end = base + jvm_get(j, b->address, l->compiled_pcs_end);
	t->scopes = jvm_get(j, b->address, l->compiled_scopes);
	t->scopes_end = t->pcs;
	if (l->compiled_immutable.width) {
		uint64_t all = base + jvm_get(j, b->address, l->compiled_immutable_size);

		/* The order of the two differs by version. */
		t->scopes = base + jvm_get(j, b->address, l->compiled_scopes_offset);
		t->scopes_end = t->scopes < t->pcs ? t->pcs : all;
		end = t->scopes < t->pcs ? all : t->scopes;
	}
	t->metadata = b->address + jvm_get(j, b->address, l->compiled_metadata);
	if (l->blob_mutable.width)
		t->metadata = jvm_get(j, b->address, l->blob_mutable) +
			      jvm_get(j, b->address, l->blob_relocation_size);
	t->npcs = end > t->pcs ? (end - t->pcs) / l->size.pc : 0;
	return t->method && t->npcs && t->npcs < PCS_MAX && t->scopes < t->scopes_end;
}

static bool place(const struct tables *t, uint64_t i, int64_t *ret_pc, uint64_t *ret_scope)
{
	const struct jvm_layout *l = &t->j->layout;
	uint64_t at = t->pcs + i * l->size.pc;

	*ret_scope = jvm_get(t->j, at, l->pc_scope);
	return jvm_read(t->j, at, l->pc_offset, ret_pc);
}

/* Finds the first place at or behind an offset in the code. */
static bool find_place(const struct tables *t, int64_t offset, uint64_t *ret)
{
	uint64_t lo = 0, hi = t->npcs, scope;
	int64_t pc;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (!place(t, mid, &pc, &scope))
			return false;
		if (pc < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret = lo;
	return lo < t->npcs;
}

/* Reads a scope and the scopes that it is inlined in. */
static uint32_t read_scopes(const struct tables *t, uint64_t offset, struct jvm_scope *ret)
{
	uint32_t n = 0;

	while (offset && n < JVM_SCOPES_MAX && offset < t->scopes_end - t->scopes) {
		uint8_t bytes[SCOPE_BYTES];
		uint32_t i = 0, excluded = t->j->layout.excluded, index;
		uint32_t got = space_read_some(t->j->runtime.space, t->scopes + offset, bytes,
					       sizeof(bytes));

		offset = jvm_number(excluded, bytes, got, &i);
		index = jvm_number(excluded, bytes, got, &i);
		ret[n].bci = (int32_t)(jvm_number(excluded, bytes, got, &i) - BCI_BIAS);
		ret[n].sure = true;
		if (!index || !jvm_word(t->j, t->metadata + (index - 1) * 8ull, &ret[n].method))
			return 0;
		n++;
	}
	return n;
}

/* Keeps the scopes that both places have in common, from the outermost on. */
static uint32_t agree(struct jvm_scope *a, uint32_t na, const struct jvm_scope *b, uint32_t nb)
{
	uint32_t shared = 0, drop;
	bool same = true;

	while (same && shared < na && shared < nb) {
		struct jvm_scope *x = &a[na - 1 - shared];
		const struct jvm_scope *y = &b[nb - 1 - shared];

		if (x->method != y->method)
			break;
		same = x->bci == y->bci;
		x->sure = same;
		shared++;
	}
	drop = na - shared;
	for (uint32_t i = 0; i < shared; i++)
		a[i] = a[i + drop];
	return shared;
}

uint32_t jvm_scopes(struct jvm *j, const struct jvm_blob *b, uint64_t pc, bool exact,
		    struct jvm_scope *ret)
{
	struct jvm_scope other[JVM_SCOPES_MAX];
	struct tables t;
	uint64_t i, scope;
	uint32_t n = 0;
	int64_t at;

	if (!tables_open(&t, j, b)) {
		*ret = (struct jvm_scope){ .method = t.method };
		return t.method != 0;
	}
	if (find_place(&t, (int64_t)(pc - b->code), &i) && place(&t, i, &at, &scope)) {
		n = read_scopes(&t, scope, ret);
		if (b->code + (uint64_t)at != pc && (exact || !j->dense))
			n = exact || !i || !place(&t, i - 1, &at, &scope)
				    ? 0
				    : agree(ret, n, other, read_scopes(&t, scope, other));
	}
	/* The nmethod belongs to its outermost scope. */
	if (!n || ret[n - 1].method != t.method) {
		*ret = (struct jvm_scope){ .method = t.method };
		n = 1;
	}
	return n;
}

uint64_t jvm_original_pc(const struct jvm *j, const struct jvm_blob *b, uint64_t pc, uint64_t sp)
{
	const struct jvm_layout *l = &j->layout;
	uint64_t deopt = jvm_get(j, b->address, l->compiled_deopt);
	uint64_t deopt_mh = jvm_get(j, b->address, l->compiled_deopt_mh), original;
	int64_t v;

	if (jvm_read(j, b->address, l->compiled_deopt_offset, &v) && v > 0)
		deopt = b->address + (uint64_t)v;
	if (jvm_read(j, b->address, l->compiled_deopt_mh_offset, &v) && v > 0)
		deopt_mh = b->address + (uint64_t)v;
	if ((pc != deopt && pc != deopt_mh) ||
	    !jvm_read(j, b->address, l->compiled_original_pc, &v) || v < 0 ||
	    !jvm_word(j, sp + (uint64_t)v, &original) || original < b->code || original >= b->end)
		return pc;
	return original;
}
