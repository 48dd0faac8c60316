/* Writes leaks as a table, or as JSON lines.
 *
 *	process 4711 (server): 61,002 blocks in use, 4.1 MB; stopped for 3.2 ms
 *	4 leaked blocks lead to 8,003 others: 8,007 blocks, 192.2 kB
 *
 *	   LEAKS      BYTES       HOLD      BYTES       SIZE           FIRST  TYPE
 *	       1         24      7,999     191976         24  0x55d0c0a312a0  ...
 */
#include "memory/leaks/leaks_private.h"
#include "render/json.h"

enum { PREVIEW = 32, LEAST_TEXT = 4 };

static void put_count(struct out *o, uint64_t n, const char *one, const char *many)
{
	out_printf(o, "%llu %s", (unsigned long long)n, n == 1 ? one : many);
}

/* The block's type, or its text if it holds one. */
static void put_content(struct out *o, const struct memory_copy *c, const struct leaks_group *g)
{
	uint64_t n = g->size < PREVIEW ? g->size : PREVIEW, i = 0;
	const char *p = memory_at(c, g->first, n);

	if (g->type) {
		out_str(o, g->type);
		if (g->by != LEAKS_BY_TABLE)
			out_char(o, '?');
		return;
	}
	while (p && i < n && p[i] >= ' ' && p[i] <= '~')
		i++;
	if (i < LEAST_TEXT || (i < n && p[i] && p[i] != '\n' && p[i] != '\t'))
		return;
	out_char(o, '"');
	out_escaped(o, p, i);
	out_str(o, i == PREVIEW ? "..." : "\"");
}

static void put_group(struct out *o, const struct memory_copy *c, const struct leaks_group *g)
{
	out_printf(o, "%8llu %10llu %10llu %10llu %10llu  %#14llx  ", (unsigned long long)g->n,
		   (unsigned long long)g->bytes, (unsigned long long)g->held,
		   (unsigned long long)g->held_bytes, (unsigned long long)g->size,
		   (unsigned long long)g->first);
	put_content(o, c, g);
	while (o->n && o->v[o->n - 1] == ' ')
		o->n--;
	out_char(o, '\n');
}

/* The stack that has allocated the blocks, below them. */
static void put_stack(struct out *o, const struct leaks *l, uint32_t stack)
{
	for (uint32_t i = 0; stack && i < l->stacks.v[stack].n; i++) {
		out_printf(o, "%19s ", "");
		out_escaped(o, l->stacks.v[stack].frames[i], strlen(l->stacks.v[stack].frames[i]));
		out_char(o, '\n');
	}
}

/* Lists the blocks by their groups, in their order: those of group i begin at v[ends[i - 1]] and
 * end at v[ends[i]]. There can be as many groups as blocks. */
static uint32_t *blocks_by_group(const struct leaks *l, uint32_t **ret_ends)
{
	uint32_t *v = xcalloc(l->blocks.n + 1ull, sizeof(*v));
	uint32_t *at = xcalloc(l->groups.n + 1ull, sizeof(*at));

	for (uint32_t i = 0; i < l->blocks.n; i++)
		at[l->blocks.v[i].group + 1]++;
	for (uint32_t i = 0; i < l->groups.n; i++)
		at[i + 1] += at[i];
	for (uint32_t i = 0; i < l->blocks.n; i++)
		v[at[l->blocks.v[i].group]++] = i;
	*ret_ends = at;
	return v;
}

static void put_blocks(struct out *o, const struct leaks *l, const uint32_t *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct leaks_block *b = &l->blocks.v[v[i]];

		out_printf(o, "%19s %10llu %10llu %10llu  %#14llx\n", "",
			   (unsigned long long)b->held, (unsigned long long)b->held_bytes,
			   (unsigned long long)b->size, (unsigned long long)b->addr);
	}
}

static void put_groups(struct out *o, const struct leaks *l, const struct memory_copy *c,
		       const struct leaks_shown *how)
{
	uint32_t *ends = NULL, *by_group = how->blocks ? blocks_by_group(l, &ends) : NULL;

	for (uint32_t i = 0; i < l->groups.n && i < how->most; i++) {
		const uint32_t first = how->blocks && i ? ends[i - 1] : 0;

		put_group(o, c, &l->groups.v[i]);
		if (how->blocks)
			put_blocks(o, l, by_group + first, ends[i] - first);
		put_stack(o, l, l->groups.v[i].stack);
	}
	free(by_group);
	free(ends);
}

void leaks_print(const struct leaks *l, const struct memory_copy *c, const struct leaks_shown *how,
		 struct out *o)
{
	out_printf(o, "%s: ", how->name);
	put_count(o, l->used, "block in use, ", "blocks in use, ");
	out_size(o, l->used_bytes);
	if (how->pause_ns)
		out_printf(o, "; stopped for %.1f ms", (double)how->pause_ns / 1e6);
	if (how->whole && *how->whole)
		out_printf(o, ", not copied by a fork: %s", how->whole);
	out_char(o, '\n');
	if (!l->leaked) {
		out_str(o, "no leaks\n");
		return;
	}
	put_count(o, l->blocks.n, "leak", "leaks");
	out_str(o, ": ");
	put_count(o, l->leaked, "block, ", "blocks, ");
	out_size(o, l->leaked_bytes);
	out_str(o,
		"\n\n   LEAKS      BYTES       HOLD      BYTES       SIZE           FIRST  TYPE\n");
	put_groups(o, l, c, how);
	if (l->groups.n > how->most)
		out_printf(o, "... and %u more kinds (-n)\n", l->groups.n - how->most);
}

static void put_number(struct out *o, const char *name, uint64_t v)
{
	out_printf(o, ",\"%s\":%llu", name, (unsigned long long)v);
}

static void put_address(struct out *o, uint64_t v)
{
	out_printf(o, ",\"address\":\"0x%llx\"", (unsigned long long)v);
}

static void put_frames(struct out *o, const struct leaks_stack *s)
{
	out_str(o, ",\"frames\":[");
	for (uint32_t i = 0; i < s->n; i++) {
		out_str(o, i ? "," : "");
		json_string(o, s->frames[i], strlen(s->frames[i]));
	}
	out_char(o, ']');
}

static const char *const by[] = {
	[LEAKS_BY_NOTHING] = "null",
	[LEAKS_BY_TABLE] = "\"table\"",
	[LEAKS_BY_STACK] = "\"stack\"",
	[LEAKS_BY_POINTERS] = "\"pointers\"",
};

void leaks_json(const struct leaks *l, const struct leaks_shown *how, struct out *o)
{
	out_str(o, "{\"type\":\"heap\",\"name\":");
	json_string(o, how->name, strlen(how->name));
	put_number(o, "used_blocks", l->used);
	put_number(o, "used_bytes", l->used_bytes);
	put_number(o, "free_blocks", l->unused);
	put_number(o, "free_bytes", l->unused_bytes);
	put_number(o, "arenas", l->arenas);
	put_number(o, "mapped_blocks", l->maps);
	put_number(o, "scanned_bytes", l->scanned);
	put_number(o, "search_ns", l->search_ns);
	put_number(o, "pause_ns", how->pause_ns);
	out_printf(o,
		   ",\"forked\":%s,\"not_forked\":", how->whole && !*how->whole ? "true" : "false");
	if (how->whole && *how->whole)
		json_string(o, how->whole, strlen(how->whole));
	else
		out_str(o, "null");
	put_number(o, "leaks", l->blocks.n);
	put_number(o, "leaked_blocks", l->leaked);
	put_number(o, "leaked_bytes", l->leaked_bytes);
	out_printf(o, ",\"consistent\":%s,\"remarks\":[", l->torn ? "false" : "true");
	for (uint32_t i = 0; i < l->remarks.n; i++) {
		out_str(o, i ? "," : "");
		json_string(o, l->remarks.v[i], strlen(l->remarks.v[i]));
	}
	out_str(o, "]}\n");
	for (uint32_t i = 0; i < l->groups.n && i < how->most; i++) {
		const struct leaks_group *g = &l->groups.v[i];

		out_str(o, "{\"type\":\"leak\"");
		out_str(o, ",\"class\":");
		if (g->type)
			json_string(o, g->type, strlen(g->type));
		else
			out_str(o, "null");
		out_str(o, ",\"class_by\":");
		out_str(o, by[g->by]);
		put_number(o, "size", g->size);
		put_number(o, "count", g->n);
		put_number(o, "bytes", g->bytes);
		put_number(o, "held_blocks", g->held);
		put_number(o, "held_bytes", g->held_bytes);
		put_address(o, g->first);
		if (g->stack)
			put_frames(o, &l->stacks.v[g->stack]);
		out_str(o, "}\n");
	}
	for (uint32_t i = 0; how->blocks && i < l->blocks.n; i++) {
		const struct leaks_block *b = &l->blocks.v[i];

		out_str(o, "{\"type\":\"block\"");
		put_address(o, b->addr);
		put_number(o, "size", b->size);
		put_number(o, "held_blocks", b->held);
		put_number(o, "held_bytes", b->held_bytes);
		out_str(o, "}\n");
	}
}
