/* Reads the file of a program's allocations. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <zstd.h>

#include "base/characters.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/meminfo.h"
#include "memory/alloc/trace_merge.h"

enum { HEAD = 16, DROP = 4 << 20 };

/* zstd packs 9,000 equal bytes into one. Recordings are packed 3 to 30 times. */
enum { UNPACKED_FREE = 1 << 30, UNPACKED_PER_BYTE = 200 };

struct reader {
	struct alloc_trace trace; /* first */
	struct mapped file;       /* fd -1: in memory */
	const uint8_t *p;
	size_t n, at;      /* at: the next block */
	uint64_t unpacked; /* bytes of the blocks before it */
	size_t dropped;    /* pages of the file up to here are not kept in memory */
	size_t current;    /* where the block that is being read begins in the file */
	char *name;
	bool salvage, stopped;
	bool unfinished; /* ALLOC_UNFINISHED */
	bool disorder;   /* the version is later than ALLOC_IN_ORDER, */
	bool narrow;     /* than ALLOC_WIDE_NODES, */
	bool dense;      /* than ALLOC_WHOLE_TEXTS */
	uint8_t *raw;
	struct bytes block; /* of raw */
	uint64_t time, addr, events;
	uint32_t thread;
	uint64_t node, frame; /* the block's last, and its frame */
	VEC(uint32_t) follow; /* by frame: that of the last NODE above one with this frame */
	struct arena text;
	/* Of chunks; NULL: there were none. */
	struct merge *merge;
	bool merging;   /* events up to `until` are given out before the next block is read, */
	uint64_t until; /* ticks; UINT64_MAX: all */
	bool held;      /* then `chunk`, whose bytes are in raw, is added */
	struct alloc_chunk chunk;
	bool ending; /* the end was read: it counts so many events */
	uint64_t end_count;
};

static struct reader *reader_of(struct alloc_trace *t)
{
	return (struct reader *)t;
}

static uint32_t u32_at(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Ends the reading at damage. Returns the error, or NULL when the rest is given up. */
static struct err *damaged(struct reader *r, const char *why)
{
	size_t in = r->block.start ? (size_t)(r->block.pos - r->block.start) : 0;

	r->stopped = true;
	r->held = r->ending = false;
	if (r->salvage) {
		r->merging = r->merge != NULL;
		r->until = UINT64_MAX;
		r->trace.cut = arena_printf(&r->text, "%s: block at byte %zu, %zu bytes in it: %s",
					    r->name, r->current, in, why);
		return NULL;
	}
	return err_new(
		EINVAL,
		"%s: block at byte %zu, %zu bytes in it: %s (--salvage reads what is before)",
		r->name, r->current, in, why);
}

static uint64_t u64_at(const uint8_t *p)
{
	return u32_at(p) | (uint64_t)u32_at(p + 4) << 32;
}

/* Begins the chunk that raw has. Returns the reason when it is wrong, else NULL. */
static const char *begin_chunk(struct reader *r, size_t n)
{
	struct merge_clock c = { .tick = 0 };
	const char *clock;

	if (n < ALLOC_CHUNK_HEAD)
		return "a chunk is too short";
	if (!r->merge) {
		clock = alloc_info(&r->trace, "clock");
		if (!clock ||
		    sscanf(clock, "%" SCNu64 ",%" SCNu64 ",%u", &c.ticks, &c.factor, &c.tick) < 2 ||
		    c.tick > MERGE_TICK_MAX)
			return "a chunk has no clock";
		r->merge = merge_new(&r->trace, &c, r->disorder);
	}
	r->chunk = (struct alloc_chunk){ u32_at(r->raw), u64_at(r->raw + 8), u64_at(r->raw + 16),
					 r->raw + ALLOC_CHUNK_HEAD,
					 (uint32_t)(n - ALLOC_CHUNK_HEAD) };
	r->held = r->merging = true;
	if (r->until < r->chunk.sync)
		r->until = r->chunk.sync;
	return NULL;
}

/* Gives pages back that were read, so that a file of any size takes little memory. */
static void drop_pages(struct reader *r)
{
	if (r->file.fd < 0 || r->at < r->dropped + DROP)
		return;
	madvise((uint8_t *)(uintptr_t)r->p + r->dropped, DROP, MADV_DONTNEED);
	r->dropped += DROP;
}

/* Unpacks the next block. Returns false at the end of the file, or at damage. */
static bool next_block(struct reader *r, struct err **ret_err)
{
	const uint8_t *h = r->p + r->at;
	size_t left = r->n - r->at, raw, packed, got;

	r->current = r->at;
	r->block = (struct bytes){ 0 };
	if (!left || (r->unfinished && (left < HEAD || u32_at(h + 8) > left - HEAD))) {
		r->stopped = true;
		r->merging = r->merge != NULL;
		r->until = UINT64_MAX;
		return false;
	}
	if (left < HEAD) {
		*ret_err = damaged(r, "the file ends within its head");
		return false;
	}
	raw = u32_at(h + 4);
	packed = u32_at(h + 8);
	if ((u32_at(h) != ALLOC_BLOCK && u32_at(h) != ALLOC_CHUNK) || raw > ALLOC_BLOCK_MAX ||
	    !raw) {
		*ret_err = damaged(r, "its head is no block's");
		return false;
	}
	if (packed > left - HEAD) {
		*ret_err = damaged(r, "the file ends within it");
		return false;
	}
	got = ZSTD_decompress(r->raw, ALLOC_BLOCK_MAX, h + HEAD, packed);
	if (ZSTD_isError(got) || got != raw ||
	    (uint32_t)hash_fixed(r->raw, raw) != u32_at(h + 12)) {
		*ret_err = damaged(r, "its bytes are not those that were written");
		return false;
	}
	r->at += HEAD + packed;
	r->unpacked += raw;
	if (r->unpacked > UNPACKED_FREE + r->at * UNPACKED_PER_BYTE) {
		*ret_err = damaged(r, "the file unpacks to too many bytes");
		return false;
	}
	drop_pages(r);
	if (u32_at(h) == ALLOC_CHUNK) {
		const char *wrong = begin_chunk(r, raw);

		if (wrong)
			*ret_err = damaged(r, wrong);
		return !wrong;
	}
	r->block = bytes_of(r->raw, raw, r->name);
	r->time = r->addr = r->thread = r->node = r->frame = 0;
	return true;
}

static int64_t zigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ -(v & 1));
}

static uint64_t read_address(struct reader *r)
{
	uint64_t v = bytes_uleb(&r->block);
	uint64_t d = (uint64_t)zigzag(v >> 1);

	r->addr += v & 1 ? d : d * 16;
	return r->addr;
}

static bool is_node(const struct alloc_trace *t, uint64_t stack)
{
	return stack < t->nodes.n && t->nodes.v[stack].defined && t->nodes.v[stack].frame;
}

/* Defines a stack by another. Returns the reason when it is wrong, else NULL. */
static const char *add_node(struct reader *r, uint64_t stack, uint64_t parent, uint64_t frame)
{
	struct alloc_trace *t = &r->trace;
	struct alloc_node *to;

	r->node = stack;
	r->frame = frame;
	if (!stack || stack >= ALLOC_NODES_MAX ||
	    (stack > t->nodes.n && stack - t->nodes.n > ALLOC_NODES_GAP))
		return "a stack's number is too large";
	if (frame >= t->frames.n)
		return "a stack has a frame that is not defined";
	/* it is defined before, so that no stack is among its own callers */
	if (parent == stack || ((parent || !frame) && !is_node(t, parent)))
		return "a stack has callers that are not defined";
	while (t->nodes.n <= stack) {
		vec_add(&t->nodes);
		t->defined += sizeof(*to) + sizeof(struct alloc_stack);
	}
	to = &t->nodes.v[stack];
	if (to->defined)
		return "a stack is defined twice";
	*to = (struct alloc_node){ (uint32_t)parent, (uint32_t)frame, true };
	return NULL;
}

static const char *define_node(struct reader *r, uint8_t op)
{
	uint8_t bits = r->narrow ? op : 0;
	uint64_t stack = bits & ALLOC_NEXT ? r->node + 1 : bytes_uleb(&r->block);
	uint64_t parent = bits & ALLOC_ABOVE ? r->node : bytes_uleb(&r->block), frame;

	if (r->narrow && !(bits & ALLOC_ABOVE))
		parent = stack - (uint64_t)zigzag(parent);
	frame = bytes_uleb(&r->block);
	if (r->dense && r->frame && frame && stack == r->node + 1 && parent == r->node) {
		while (r->follow.n <= r->frame)
			vec_push(&r->follow, 0);
		r->follow.v[r->frame] = (uint32_t)frame;
	}
	return add_node(r, stack, parent, frame);
}

/* Defines the stacks of a run. */
static const char *define_run(struct reader *r, uint32_t n)
{
	const char *wrong = NULL;

	while (!wrong && n--) {
		uint32_t frame = r->frame < r->follow.n ? r->follow.v[r->frame] : 0;

		wrong = frame ? add_node(r, r->node + 1, r->node, frame)
			      : "a stack of a run has no frame";
	}
	return wrong;
}

/* Returns the stack of an event: 0, if it is not defined. Makes the list of its frames. */
static uint32_t find_node(struct reader *r, uint32_t stack)
{
	struct alloc_trace *t = &r->trace;
	struct alloc_stack *to;

	if (stack < t->nodes.n && t->nodes.v[stack].defined && !t->nodes.v[stack].frame)
		stack = t->nodes.v[stack].parent;
	if (!is_node(t, stack))
		return 0;
	while (t->stacks.n <= stack)
		vec_add(&t->stacks);
	to = &t->stacks.v[stack];
	if (to->n)
		return stack;
	to->at = t->stack_frames.n;
	for (uint32_t i = stack; i && to->n < ALLOC_FRAMES_MAX; i = t->nodes.v[i].parent) {
		vec_push(&t->stack_frames, t->nodes.v[i].frame);
		to->n++;
	}
	t->defined += to->n * (uint64_t)ALLOC_DEFINED_FRAME;
	return stack;
}

/* Reads an entry that defines something. Returns the reason when it is wrong, else NULL. */
static const char *define(struct reader *r, uint8_t bits)
{
	enum alloc_op op = bits & ALLOC_OP_MASK;
	struct alloc_trace *t = &r->trace;
	uint64_t n = op == ALLOC_NODE ? 0 : bytes_uleb(&r->block);
	struct alloc_text text = { 0 };
	struct alloc_stack stack = { t->stack_frames.n, (uint32_t)n };

	if (op == ALLOC_NODE)
		return define_node(r, bits);
	t->defined += ALLOC_DEFINED;
	switch (op) {
	case ALLOC_NEW_THREAD:
		if (n > UINT32_MAX)
			return "a thread's number is too large";
		vec_push(&t->threads, (uint32_t)n);
		return NULL;
	case ALLOC_FRAME:
	case ALLOC_INFO: {
		const struct alloc_text *last = &t->frames.v[t->frames.n - 1];
		uint64_t same = op == ALLOC_FRAME && r->dense ? bytes_uleb(&r->block) : 0;
		const char *p = n <= ALLOC_TEXT_MAX ? bytes_take(&r->block, n) : NULL;
		char *copy;

		if (!p || same > last->len || same + n > ALLOC_TEXT_MAX)
			return "a text is too long";
		t->defined += same + n;
		copy = arena_printf(&r->text, "%.*s%.*s", (int)same, last->text, (int)n, p);
		text.text = copy;
		text.len = (uint32_t)strlen(copy);
		for (char *c = copy; *c; c++) /* tabs are between the parts of an info */
			if (character_is_control(*c) && (op != ALLOC_INFO || *c != '\t'))
				*c = '?';
		if (op == ALLOC_INFO)
			vec_push(&t->infos, text);
		else
			vec_push(&t->frames, text);
		return NULL;
	}
	default:
		if (n > ALLOC_FRAMES_MAX || n > bytes_left(&r->block))
			return "a stack is too long";
		t->defined += n * ALLOC_DEFINED_FRAME;
		for (uint64_t i = 0; i < n; i++) {
			uint64_t f = bytes_uleb(&r->block);

			if (!f || f >= t->frames.n)
				return "a stack has a frame that is not defined";
			vec_push(&t->stack_frames, (uint32_t)f);
		}
		vec_push(&t->stacks, stack);
		return NULL;
	}
}

/* Reads an event. Returns the reason when it is wrong, else NULL. */
static const char *read_event(struct reader *r, uint8_t op, struct alloc_event *e)
{
	uint64_t thread = op & ALLOC_THREAD ? bytes_uleb(&r->block) : r->thread;
	uint64_t stack = op & ALLOC_STACK ? bytes_uleb(&r->block) : 0;

	*e = (struct alloc_event){ .op = op & ALLOC_OP_MASK };
	r->time += (uint64_t)zigzag(bytes_uleb(&r->block));
	if (e->op == ALLOC_ALIGNED)
		e->align = bytes_uleb(&r->block);
	if (e->op != ALLOC_FREE && e->op != ALLOC_REALLOC_FROM)
		e->size = bytes_uleb(&r->block);
	if (e->op < ALLOC_LOST)
		e->addr = read_address(r);
	if (!bytes_ok(&r->block))
		return "an event is cut off";
	if (thread >= r->trace.threads.n || (!thread && e->op < ALLOC_LOST))
		return "an event has a thread that is not defined";
	if (stack >= r->trace.stacks.n)
		return "an event has a stack that is not defined";
	e->thread = r->thread = (uint32_t)thread;
	e->stack = (uint32_t)stack;
	e->time = r->time;
	r->events += e->op < ALLOC_LOST;
	return NULL;
}

/* Compares the count of the end with the events that were read. Returns the reason when it is
 * wrong, else NULL. */
static const char *check_end(struct reader *r)
{
	r->ending = false;
	r->stopped = true;
	r->trace.ended = r->end_count == r->events;
	return r->trace.ended ? NULL : "the end counts other events than were read";
}

/* Gives out merged events. Returns true with one; false when there is no more, or with the reason
 * in *ret_wrong. */
static bool next_merged(struct reader *r, struct alloc_event *ret, const char **ret_wrong)
{
	if (merge_next(r->merge, r->until, ret, ret_wrong)) {
		ret->stack = ret->stack ? find_node(r, ret->stack) : 0;
		r->events++;
		return true;
	}
	r->merging = false;
	if (!*ret_wrong && r->held)
		*ret_wrong = merge_add(r->merge, &r->chunk);
	r->held = false;
	if (!*ret_wrong && r->ending)
		*ret_wrong = check_end(r);
	return false;
}

/* Reads the entry at hand. Returns the reason when it is wrong, else NULL; *ret_event: it is an
 * event. */
static const char *next_entry(struct reader *r, struct alloc_event *ret, bool *ret_event)
{
	uint8_t op = bytes_u8(&r->block), kind = op & ALLOC_OP_MASK;
	const char *wrong;

	if (r->dense && op >= ALLOC_RUN && op < ALLOC_RUN + ALLOC_RUN_MAX)
		return define_run(r, op - ALLOC_RUN + 1u);
	if (kind >= ALLOC_MAP || op > (ALLOC_OP_MASK | ALLOC_THREAD | ALLOC_STACK))
		return "an entry is of no known kind";
	wrong = kind > ALLOC_END ? define(r, op) : read_event(r, op, ret);
	if (!wrong && !bytes_ok(&r->block))
		wrong = "an entry is cut off";
	if (!wrong && kind == ALLOC_END) {
		if (bytes_left(&r->block) || r->at < r->n)
			return "bytes follow the end";
		r->end_count = ret->size;
		r->ending = r->merging = r->merge != NULL;
		r->until = UINT64_MAX;
		if (!r->merge)
			return check_end(r);
	}
	*ret_event = kind < ALLOC_END;
	return wrong;
}

bool alloc_next(struct alloc_trace *t, struct alloc_event *ret, struct err **ret_err)
{
	struct reader *r = reader_of(t);

	*ret_err = NULL;
	while (!*ret_err && (r->merging || !r->stopped)) {
		const char *wrong = NULL;
		bool is_event = false;

		if (r->merging)
			is_event = next_merged(r, ret, &wrong);
		else if (bytes_left(&r->block))
			wrong = next_entry(r, ret, &is_event);
		else
			next_block(r, ret_err);
		if (!*ret_err && t->room && t->defined > t->room)
			*ret_err = alloc_no_room(t, t->defined);
		else if (wrong)
			*ret_err = damaged(r, wrong);
		else if (is_event)
			return true;
	}
	return false;
}

struct err *alloc_no_room(struct alloc_trace *t, uint64_t needs)
{
	struct reader *r = reader_of(t);

	r->stopped = true;
	return err_new(
		ENOMEM,
		"%s: to read it takes %llu MB of memory or more, and this machine has %llu MB "
		"for it",
		r->name, (unsigned long long)(needs >> 20), (unsigned long long)(t->room >> 20));
}

struct err *alloc_unchanged(struct alloc_trace *t)
{
	struct reader *r = reader_of(t);

	return r->file.fd < 0 ? NULL : mapped_check(&r->file, r->name);
}

static void drop_definitions(struct alloc_trace *t)
{
	vec_fini(&t->threads);
	vec_fini(&t->frames);
	vec_fini(&t->stacks);
	vec_fini(&t->stack_frames);
	vec_fini(&t->nodes);
	vec_fini(&t->infos);
}

void alloc_rewind(struct alloc_trace *t)
{
	struct reader *r = reader_of(t);

	drop_definitions(t);
	vec_push(&t->threads, 0);
	vec_add(&t->frames)->text = "";
	vec_add(&t->stacks);
	t->ended = false;
	t->cut = NULL;
	t->defined = 0;
	arena_fini(&r->text);
	arena_init(&r->text);
	r->follow.n = 0;
	r->at = HEAD;
	r->unpacked = 0;
	r->dropped = 0;
	r->stopped = false;
	r->events = 0;
	r->block = (struct bytes){ 0 };
	merge_free(r->merge);
	r->merge = NULL;
	r->merging = r->held = r->ending = false;
	r->until = 0;
}

static struct err *begin(struct reader *r, const void *p, size_t n, const char *name, bool salvage)
{
	r->p = p;
	r->n = n;
	r->name = xstrdup(name);
	r->salvage = salvage;
	r->trace.room = meminfo_available() / 2;
	r->raw = xmalloc(ALLOC_BLOCK_MAX);
	arena_init(&r->text);
	if (n < HEAD || memcmp(p, "DESCRYMA", 8))
		return err_new(EINVAL, "%s: not a file of descry malloc record", name);
	if (!u32_at(r->p + 8) || u32_at(r->p + 8) > ALLOC_VERSION)
		return err_new(EINVAL, "%s: of version %u, and this descry reads versions up to %u",
			       name, u32_at(r->p + 8), ALLOC_VERSION);
	r->disorder = u32_at(r->p + 8) > ALLOC_IN_ORDER;
	r->narrow = u32_at(r->p + 8) > ALLOC_WIDE_NODES;
	r->dense = u32_at(r->p + 8) > ALLOC_WHOLE_TEXTS;
	r->unfinished = u32_at(r->p + 12) == ALLOC_UNFINISHED;
	alloc_rewind(&r->trace);
	return NULL;
}

static struct err *give(struct reader *r, struct err *e, struct alloc_trace **ret)
{
	if (e)
		alloc_close(&r->trace);
	else
		*ret = &r->trace;
	return e;
}

struct err *alloc_open(const char *path, bool salvage, struct alloc_trace **ret)
{
	struct reader *r = xcalloc(1, sizeof(*r));
	struct err *e;

	r->file.fd = -1;
	e = mapped_open(path, &r->file);
	return give(r, e ?: begin(r, r->file.p, r->file.len, path, salvage), ret);
}

struct err *alloc_open_memory(const void *p, size_t n, const char *name, bool salvage,
			      struct alloc_trace **ret)
{
	struct reader *r = xcalloc(1, sizeof(*r));

	r->file.fd = -1;
	return give(r, begin(r, p, n, name, salvage), ret);
}

void alloc_close(struct alloc_trace *t)
{
	struct reader *r = reader_of(t);

	if (!t)
		return;
	if (r->file.fd >= 0)
		mapped_close(&r->file);
	drop_definitions(t);
	vec_fini(&r->follow);
	arena_fini(&r->text);
	merge_free(r->merge);
	free(r->name);
	free(r->raw);
	free(r);
}

const char *alloc_info(const struct alloc_trace *t, const char *name)
{
	size_t n = strlen(name);

	for (uint32_t i = 0; i < t->infos.n; i++)
		if (!strncmp(t->infos.v[i].text, name, n) && t->infos.v[i].text[n] == '=')
			return t->infos.v[i].text + n + 1;
	return NULL;
}
