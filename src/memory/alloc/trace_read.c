/* Reads the file of a program's allocations. */
#include <errno.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/meminfo.h"
#include "memory/alloc/trace.h"

enum { HEAD = 16 };

struct reader {
	struct alloc_trace trace; /* first */
	struct mapped file;       /* fd -1: in memory */
	const uint8_t *p;
	size_t n, at;   /* at: the next block */
	size_t current; /* where the block that is being read begins in the file */
	char *name;
	bool salvage, stopped;
	uint8_t *raw;
	struct bytes block; /* of raw */
	uint64_t time, addr, events;
	uint32_t thread;
	struct arena text;
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
	if (r->salvage) {
		r->trace.cut = arena_printf(&r->text, "%s: block at byte %zu, %zu bytes in it: %s",
					    r->name, r->current, in, why);
		return NULL;
	}
	return err_new(
		EINVAL,
		"%s: block at byte %zu, %zu bytes in it: %s (--salvage reads what is before)",
		r->name, r->current, in, why);
}

/* Unpacks the next block. Returns false at the end of the file, or at damage. */
static bool next_block(struct reader *r, struct err **ret_err)
{
	const uint8_t *h = r->p + r->at;
	size_t left = r->n - r->at, raw, packed, got;

	r->current = r->at;
	r->block = (struct bytes){ 0 };
	if (!left) {
		r->stopped = true;
		return false;
	}
	if (left < HEAD) {
		*ret_err = damaged(r, "the file ends within its head");
		return false;
	}
	raw = u32_at(h + 4);
	packed = u32_at(h + 8);
	if (u32_at(h) != ALLOC_BLOCK || raw > ALLOC_BLOCK_MAX || !raw) {
		*ret_err = damaged(r, "its head is no block's");
		return false;
	}
	if (packed > left - HEAD) {
		*ret_err = damaged(r, "the file ends within it");
		return false;
	}
	got = ZSTD_decompress(r->raw, ALLOC_BLOCK_MAX, h + HEAD, packed);
	if (ZSTD_isError(got) || got != raw ||
	    (uint32_t)hash_bytes(r->raw, raw) != u32_at(h + 12)) {
		*ret_err = damaged(r, "its bytes are not those that were written");
		return false;
	}
	r->block = bytes_of(r->raw, raw, r->name);
	r->at += HEAD + packed;
	r->time = r->addr = r->thread = 0;
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

/* Reads an entry that defines something. Returns the reason when it is wrong, else NULL. */
static const char *define(struct reader *r, enum alloc_op op)
{
	struct alloc_trace *t = &r->trace;
	uint64_t n = bytes_uleb(&r->block);
	struct alloc_text text = { 0 };
	struct alloc_stack stack = { t->stack_frames.n, (uint32_t)n };

	t->defined += ALLOC_DEFINED;
	switch (op) {
	case ALLOC_NEW_THREAD:
		if (n > UINT32_MAX)
			return "a thread's number is too large";
		vec_push(&t->threads, (uint32_t)n);
		return NULL;
	case ALLOC_FRAME:
	case ALLOC_INFO: {
		const char *p = n <= ALLOC_TEXT_MAX ? bytes_take(&r->block, n) : NULL;

		if (!p)
			return "a text is too long";
		t->defined += n;
		text.text = arena_strndup(&r->text, p, n);
		text.len = (uint32_t)strlen(text.text);
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

bool alloc_next(struct alloc_trace *t, struct alloc_event *ret, struct err **ret_err)
{
	struct reader *r = reader_of(t);

	*ret_err = NULL;
	while (!r->stopped) {
		const char *wrong;
		uint8_t op;

		if (!bytes_left(&r->block)) {
			if (!next_block(r, ret_err))
				return false;
			continue;
		}
		op = bytes_u8(&r->block);
		if ((op & ALLOC_OP_MASK) >= ALLOC_NOPS ||
		    op > (ALLOC_OP_MASK | ALLOC_THREAD | ALLOC_STACK))
			wrong = "an entry is of no known kind";
		else if ((op & ALLOC_OP_MASK) > ALLOC_END)
			wrong = define(r, op & ALLOC_OP_MASK);
		else
			wrong = read_event(r, op, ret);
		if (!wrong && !bytes_ok(&r->block))
			wrong = "an entry is cut off";
		if (!wrong && (op & ALLOC_OP_MASK) == ALLOC_END) {
			r->trace.ended = ret->size == r->events;
			if (!r->trace.ended)
				wrong = "the end counts other events than were read";
			else if (bytes_left(&r->block) || r->at < r->n)
				wrong = "bytes follow the end";
			else
				r->stopped = true;
			if (!wrong)
				return false;
		}
		if (wrong) {
			*ret_err = damaged(r, wrong);
			return false;
		}
		if (t->room && t->defined > t->room) {
			*ret_err = alloc_no_room(t, t->defined);
			return false;
		}
		if ((op & ALLOC_OP_MASK) < ALLOC_END)
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

void alloc_rewind(struct alloc_trace *t)
{
	struct reader *r = reader_of(t);

	t->threads.n = t->frames.n = t->stacks.n = t->stack_frames.n = t->infos.n = 0;
	vec_push(&t->threads, 0);
	vec_add(&t->frames)->text = "";
	vec_add(&t->stacks);
	t->ended = false;
	t->cut = NULL;
	t->defined = 0;
	arena_fini(&r->text);
	arena_init(&r->text);
	r->at = HEAD;
	r->stopped = false;
	r->events = 0;
	r->block = (struct bytes){ 0 };
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
	if (u32_at(r->p + 8) != ALLOC_VERSION)
		return err_new(EINVAL, "%s: of version %u, and this descry reads version %u", name,
			       u32_at(r->p + 8), ALLOC_VERSION);
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
	vec_fini(&t->threads);
	vec_fini(&t->frames);
	vec_fini(&t->stacks);
	vec_fini(&t->stack_frames);
	vec_fini(&t->infos);
	arena_fini(&r->text);
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
