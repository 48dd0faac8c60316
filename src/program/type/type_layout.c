/* Lays out members by the System V x86-64 ABI, section 3.1.2. */
#include <assert.h>
#include <string.h>

#include "type_private.h"

/* Returns a bit-field's offset. It must lie within one naturally aligned unit of its declared
 * type. */
static uint64_t bit_field_offset(uint64_t next, uint32_t bits, uint64_t unit_bits)
{
	return next / unit_bits != (next + bits - 1) / unit_bits ? round_up(next, unit_bits) : next;
}

static void append(struct type_graph *g, struct tnode *n, struct type_member m)
{
	if (n->nparts == n->cap) {
		struct type_member *old = n->members;

		n->cap = n->cap ? n->cap * 2 : 8;
		n->members = arena_array(&g->arena, struct type_member, n->cap);
		if (n->nparts)
			memcpy(n->members, old, n->nparts * sizeof(*old));
	}
	m.name = arena_strdup(&g->arena, m.name);
	n->members[n->nparts++] = m;
}

/* Adds a member. A nameless integer is `int : n`: it takes room, `int : 0` closes the unit, and
 * neither is a member or aligns the whole. */
void type_add_member(struct type_graph *g, type_id sou, const char *name, type_id type,
		     uint32_t bit_size)
{
	struct tnode *n = tnode(g, sou);
	uint64_t size = type_size(g, type), end;
	uint32_t align = type_align(g, type);
	bool padding = !*name && !type_is_sou(g, type);
	struct type_member m = { .name = name, .type = type, .bit_size = bit_size };

	assert((n->kind == TYPE_STRUCT || n->kind == TYPE_UNION) && !n->complete);
	if (bit_size || padding) {
		uint64_t unit = size ? size * 8 : 32;

		if (bit_size > unit)
			m.bit_size = bit_size = (uint32_t)unit;
		if (!n->is_union)
			m.bit_offset = bit_size ? bit_field_offset(n->bits, bit_size, unit)
						: round_up(n->bits, unit);
		end = m.bit_offset + bit_size;
	} else {
		if (!n->is_union)
			m.bit_offset = round_up(n->bits, align * 8ull);
		end = m.bit_offset + size * 8;
	}
	if (end > n->bits)
		n->bits = end;
	if (padding)
		return;
	if (align > n->align)
		n->align = align;
	append(g, n, m);
}

void type_complete(struct type_graph *g, type_id sou)
{
	struct tnode *n = tnode(g, sou);

	if (n->complete || (n->kind != TYPE_STRUCT && n->kind != TYPE_UNION))
		return;
	if (!n->align)
		n->align = 1;
	n->size = round_up(round_up(n->bits, 8) / 8, n->align);
	n->complete = true;
}

uint64_t type_size_of_members(struct type_graph *g, type_id t)
{
	uint64_t bits = tnode(g, type_strip(g, t))->bits;

	return bits ? round_up(bits, 8) / 8 : type_size(g, t);
}

/* Computes the alignment, which BTF does not have: that of the strictest member, or 1 when a member
 * is off its boundary, because the struct is then packed. */
uint32_t layout_align(struct type_graph *g, type_id t)
{
	struct tnode *n = tnode(g, t);
	const struct type_member *m;
	uint32_t count, max = 1;

	if (n->align)
		return n->align;
	if (n->busy || !n->complete || g->nest == NEST_LIMIT)
		return 1;
	n->busy = true;
	g->nest++;
	m = type_members(g, t, &count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t align = type_align(g, m[i].type);

		if (!m[i].bit_size && m[i].bit_offset % (align * 8ull)) {
			max = 1;
			break;
		}
		if (align > max)
			max = align;
	}
	if (n->size % max)
		max = 1;
	g->nest--;
	n->busy = false;
	n->align = max;
	return max;
}
