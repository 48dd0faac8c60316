/* What differs between two recordings: sums, sizes, and stacks by the difference of their
 * values. */
#include "base/hash.h"
#include "memory/alloc/alloc_report.h"
#include "render/json.h"

enum { FRAMES_SHOWN = 12 };

/* A stack of either recording, or of both. */
struct pair {
	uint32_t stack[2]; /* 0: not there */
	uint64_t value[2], blocks[2];
};

struct pairs {
	struct hash by_frames; /* numbers of the frames' texts -> index in v */
	struct intern texts;   /* of the frames of both */
	VEC(struct pair) v;
};

struct sum {
	const char *name, *json;
	uint64_t v[2];
	bool bytes;
};
enum { SUMS = 9 };

static unsigned long long ull(uint64_t v)
{
	return v;
}

static void diff_sums(const struct report_side side[2], struct sum ret[SUMS])
{
	const struct alloc_report *a = side[0].r, *b = side[1].r;
	const struct sum sums[SUMS] = {
		{ "allocated, blocks", "allocated", { a->allocated, b->allocated }, false },
		{ "allocated", "allocated_bytes", { a->allocated_bytes, b->allocated_bytes }, true },
		{ "at the peak, blocks", "peak_blocks", { a->peak_blocks, b->peak_blocks }, false },
		{ "at the peak", "peak_bytes", { a->peak, b->peak }, true },
		{ "at the end, blocks", "live", { a->live, b->live }, false },
		{ "at the end", "live_bytes", { a->live_bytes, b->live_bytes }, true },
		{ "temporary, blocks", "temporary", { a->temporary, b->temporary }, false },
		{ "freed elsewhere", "freed_elsewhere", { a->elsewhere, b->elsewhere }, false },
		{ "failed calls", "failed", { a->failed, b->failed }, false },
	};

	memcpy(ret, sums, sizeof(sums));
}

/* --- stacks --- */

/* Returns the number of each frame's text, which is the same in both recordings. */
static uint32_t *number_frames(struct intern *texts, const struct alloc_trace *t)
{
	uint32_t *number = xcalloc(t->frames.n + 1, sizeof(*number));

	for (uint32_t i = 0; i < t->frames.n; i++)
		number[i] = intern_strn(texts, t->frames.v[i].text, t->frames.v[i].len);
	return number;
}

static void add_side(struct pairs *p, const struct report_side side[2], int which,
		     enum report_of of)
{
	const struct alloc_trace *t = side[which].t;
	const struct alloc_report *r = side[which].r;
	cleanup_free uint32_t *number = number_frames(&p->texts, t);
	uint32_t key[ALLOC_FRAMES_MAX];

	for (uint32_t i = 1; i < r->sites.n && i < side[which].t->stacks.n; i++) {
		uint64_t value = report_site_value(&r->sites.v[i], of), *at;
		const struct alloc_stack *s;
		bool is_new;

		if (!value)
			continue;
		s = &t->stacks.v[i];
		for (uint32_t k = 0; k < s->n; k++)
			key[k] = number[t->stack_frames.v[s->at + k]];
		at = hash_put(&p->by_frames, key, s->n * sizeof(*key), &is_new);
		if (is_new) {
			*at = p->v.n;
			vec_add(&p->v);
		}
		p->v.v[*at].stack[which] = i;
		p->v.v[*at].value[which] += value;
		p->v.v[*at].blocks[which] += report_site_blocks(&r->sites.v[i], of);
	}
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static int by_difference(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	uint64_t d = difference(x->value[0], x->value[1]), e = difference(y->value[0], y->value[1]);

	if (d != e)
		return d > e ? -1 : 1;
	if (x->stack[0] != y->stack[0])
		return x->stack[0] < y->stack[0] ? -1 : 1;
	return (x->stack[1] > y->stack[1]) - (x->stack[1] < y->stack[1]);
}

/* Pairs the stacks, and sorts those that differ to the front: *ret_n. */
static void make_pairs(const struct report_side side[2], enum report_of of, struct pairs *ret,
		       uint32_t *ret_n)
{
	*ret = (struct pairs){ 0 };
	intern_init(&ret->texts);
	add_side(ret, side, 0, of);
	add_side(ret, side, 1, of);
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), by_difference);
	for (*ret_n = 0; *ret_n < ret->v.n; ++*ret_n)
		if (ret->v.v[*ret_n].value[0] == ret->v.v[*ret_n].value[1])
			break;
}

static void free_pairs(struct pairs *p)
{
	hash_fini(&p->by_frames);
	intern_fini(&p->texts);
	vec_fini(&p->v);
}

/* Returns the side that has the stack of a pair. */
static int side_of(const struct pair *p)
{
	return p->stack[0] ? 0 : 1;
}

static uint32_t frames_of(const struct report_side side[2], const struct pair *p)
{
	return side[side_of(p)].t->stacks.v[p->stack[side_of(p)]].n;
}

static const struct alloc_text *frame_of(const struct report_side side[2], const struct pair *p,
					 uint32_t i)
{
	const struct alloc_trace *t = side[side_of(p)].t;

	return &t->frames.v[t->stack_frames.v[t->stacks.v[p->stack[side_of(p)]].at + i]];
}

/* --- text --- */

static char *number_text(char buf[32], uint64_t v, bool bytes)
{
	if (bytes)
		return report_bytes_text(buf, v);
	snprintf(buf, 32, "%llu", ull(v));
	return buf;
}

static void diff_row(struct out *o, const char *name, const uint64_t v[2], bool bytes)
{
	char a[32], b[32], d[32], sign[40] = "same";

	if (v[0] != v[1])
		snprintf(sign, sizeof(sign), "%c%s", v[1] > v[0] ? '+' : '-',
			 number_text(d, difference(v[0], v[1]), bytes));
	out_printf(o, "%-20s %14s %14s %14s\n", name, number_text(a, v[0], bytes),
		   number_text(b, v[1], bytes), sign);
}

static void diff_sizes(const struct report_side side[2], struct out *o)
{
	bool any = false;

	for (uint32_t i = 0; i < REPORT_SIZES; i++) {
		const uint64_t v[2] = { side[0].r->sizes[i].count, side[1].r->sizes[i].count };
		char name[32];

		if (v[0] == v[1])
			continue;
		if (!any)
			out_str(o, "\nblocks of a size up to\n");
		any = true;
		snprintf(name, sizeof(name), "%20llu", i < 64 ? 1ull << i : ~0ull);
		diff_row(o, name, v, false);
	}
}

static void diff_stacks(const struct report_side side[2], enum report_of of, uint32_t most,
			struct out *o)
{
	const bool bytes = !report_of_blocks(of);
	char a[32], b[32], d[32];
	struct pairs p;
	uint32_t n;

	make_pairs(side, of, &p, &n);
	for (uint32_t i = 0; i < n && i < most; i++) {
		const struct pair *s = &p.v.v[i];
		uint32_t frames = frames_of(side, s);

		if (!i)
			out_printf(o, "\nstacks that differ, by %s:\n", report_of_name(of));
		out_printf(o, "  %c%s: %s in %llu blocks, %s in %llu\n",
			   s->value[1] > s->value[0] ? '+' : '-',
			   number_text(d, difference(s->value[0], s->value[1]), bytes),
			   number_text(a, s->value[0], bytes), ull(s->blocks[0]),
			   number_text(b, s->value[1], bytes), ull(s->blocks[1]));
		for (uint32_t k = 0; k < frames && k < FRAMES_SHOWN; k++)
			out_printf(o, "      %s\n", frame_of(side, s, k)->text);
		if (frames > FRAMES_SHOWN)
			out_printf(o, "      ... %u more\n", frames - FRAMES_SHOWN);
	}
	if (n > most)
		out_printf(o, "  ... and %u more stacks (-n)\n", n - most);
	free_pairs(&p);
}

void alloc_diff_print(const struct report_side side[2], enum report_of of, uint32_t most,
		      struct out *o)
{
	struct sum sums[SUMS];

	for (int i = 0; i < 2; i++) {
		const char *command = alloc_info(side[i].t, "command");

		out_printf(o, "%c  %s: %s%s\n", 'A' + i, side[i].name,
			   command ?: "a running process",
			   side[i].t->ended ? "" : "; the recording was cut off");
		if (side[i].r->lost)
			out_printf(o, "   %llu RECORDS WERE LOST\n", ull(side[i].r->lost));
	}
	out_printf(o, "\n%-20s %14s %14s %14s\n", "", "A", "B", "DIFFERENCE");
	diff_sums(side, sums);
	for (int i = 0; i < SUMS; i++)
		diff_row(o, sums[i].name, sums[i].v, sums[i].bytes);
	diff_sizes(side, o);
	diff_stacks(side, of, most, o);
}

/* --- JSON --- */

static void json_pair(struct out *o, const char *name, const uint64_t v[2])
{
	out_printf(o, "\"%s\":[%llu,%llu]", name, ull(v[0]), ull(v[1]));
}

void alloc_diff_json(const struct report_side side[2], enum report_of of, uint32_t most,
		     struct out *o)
{
	struct sum sums[SUMS];
	struct pairs p;
	bool comma = false;
	uint32_t n;

	out_str(o, "{\"type\":\"allocations_diff\",\"files\":[");
	json_string(o, side[0].name, strlen(side[0].name));
	out_char(o, ',');
	json_string(o, side[1].name, strlen(side[1].name));
	out_printf(o, "],\"complete\":[%s,%s]", side[0].t->ended ? "true" : "false",
		   side[1].t->ended ? "true" : "false");
	out_printf(o, ",\"lost\":[%llu,%llu]", ull(side[0].r->lost), ull(side[1].r->lost));
	diff_sums(side, sums);
	for (int i = 0; i < SUMS; i++) {
		out_char(o, ',');
		json_pair(o, sums[i].json, sums[i].v);
	}
	out_str(o, ",\"sizes\":[");
	for (uint32_t i = 0; i < REPORT_SIZES; i++) {
		const uint64_t v[2] = { side[0].r->sizes[i].count, side[1].r->sizes[i].count };

		if (!v[0] && !v[1])
			continue;
		out_printf(o, "%s{\"to\":%llu,", comma ? "," : "", i < 64 ? 1ull << i : ~0ull);
		json_pair(o, "blocks", v);
		out_char(o, '}');
		comma = true;
	}
	out_printf(o, "],\"of\":\"%s\",\"stacks\":[", report_of_name(of));
	make_pairs(side, of, &p, &n);
	for (uint32_t i = 0; i < n && i < most; i++) {
		const struct pair *s = &p.v.v[i];

		out_str(o, i ? ",{" : "{");
		json_pair(o, "values", s->value);
		out_char(o, ',');
		json_pair(o, "blocks", s->blocks);
		out_str(o, ",\"frames\":[");
		for (uint32_t k = 0; k < frames_of(side, s); k++) {
			const struct alloc_text *f = frame_of(side, s, k);

			out_str(o, k ? "," : "");
			json_string(o, f->text, f->len);
		}
		out_str(o, "]}");
	}
	out_str(o, "]}\n");
	free_pairs(&p);
}
