/* The chunks of a recording's threads: they are merged by their ticks, also where a processor has
 * read these early; what is changed comes to an end. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>

#include "memory/alloc/alloc_report.h"
#include "random_number.h"
#include "wire/alloc.h"

static char path[] = "/tmp/descry-merge-XXXXXX";

static void expect_no_room(struct err *e)
{
	assert_non_null(e);
	assert_int_equal(e->code, ENOMEM);
	assert_non_null(strstr(e->text, "this machine has"));
	err_free(e);
}

struct made {
	uint8_t v[WIRE_ALLOC_SEGMENT];
	uint32_t n;
	uint64_t time, addr;
};

/* As agent/alloc_private.h does it. */
static void made_number(struct made *m, uint64_t v)
{
	uint32_t n = (64 - (uint32_t)__builtin_clzll(v | 1) + 6) / 7;

	if (n > 8) {
		m->v[m->n++] = 0;
		memcpy(m->v + m->n, &v, 8);
		m->n += 8;
		return;
	}
	v = (v << 1 | 1) << (n - 1);
	memcpy(m->v + m->n, &v, 8);
	m->n += n;
}

static void made_open(struct made *m, uint32_t tid, uint64_t time)
{
	made_number(m, WIRE_ALLOC_OTHER);
	made_number(m, WIRE_ALLOC_OPEN);
	made_number(m, tid);
	made_number(m, m->time = time);
	m->addr = 0;
}

static void made_event(struct made *m, enum wire_alloc_op op, uint64_t time, uint64_t size,
		       uint64_t addr)
{
	int64_t d = (int64_t)(addr - m->addr);
	uint64_t odd = d & 15;

	made_number(m, (time - m->time) << 3 | op);
	if (op == WIRE_ALLOC_ALIGNED)
		made_number(m, 64);
	if (op != WIRE_ALLOC_FREE && op != WIRE_ALLOC_REALLOC_FROM)
		made_number(m, size);
	d = odd ? d : d >> 4;
	made_number(m, ((uint64_t)d << 1 ^ (uint64_t)(d >> 63)) << 1 | (odd != 0));
	m->time = time;
	m->addr = addr;
}

static enum wire_alloc_op made_op(uint32_t i)
{
	return i % 6 == 5 ? WIRE_ALLOC_ALIGNED : (enum wire_alloc_op)(i % 5);
}

/* A block is freed by the next event after its allocation. */
static uint64_t made_address(uint32_t i)
{
	const bool frees = made_op(i) == WIRE_ALLOC_FREE || made_op(i) == WIRE_ALLOC_REALLOC_FROM;

	return 0x7f0000000000 - (frees ? i - 1 : i) * 24ull;
}

/* The threads' events at ticks 1000 i, of thread i % 2, in chunks of five events each that come
 * late by one pass; sizes are 1 << i % 64. */
static void write_threads(uint32_t events, const char *clock)
{
	struct made m[2] = { 0 };
	uint32_t at[2] = { 0 };
	struct alloc_writer *w;

	assert_null(alloc_writer_new(path, &w));
	alloc_writer_info(w, "clock", clock);
	for (int k = 0; k < 2; k++)
		made_open(&m[k], 77 + (uint32_t)k, 1);
	for (uint32_t i = 0; i < events; i++) {
		struct made *t = &m[i % 2];

		made_event(t, made_op(i), 1000 * (i + 1), 1ull << i % 64, made_address(i));
		if (i % 10 != 9 && i + 1 < events)
			continue;
		for (int k = 1; k >= 0; k--) {
			alloc_writer_chunk(w,
					   &(struct alloc_chunk){ (uint32_t)k + 3, at[k],
								  i >= 10 ? 1000 * (i / 10 * 10)
									  : 0,
								  m[k].v + at[k], m[k].n - at[k] },
					   0);
			at[k] = m[k].n;
		}
	}
	/* the writer has counted no event: the end is made by hand */
	alloc_write(w, &(struct alloc_event){ .op = ALLOC_LOST, .size = 5 });
	alloc_writer_flush(w);
	err_free(alloc_writer_end(w));
}

static void expect_threads(const char *clock, uint64_t step_ns)
{
	enum { MADE = 1003 };
	struct alloc_trace *t;
	struct alloc_event e;
	struct err *err = NULL;
	uint32_t n = 0;

	write_threads(MADE, clock);
	assert_null(alloc_open(path, true, &t));
	for (int turn = 0; turn < 2; turn++) {
		for (n = 0; alloc_next(t, &e, &err);) {
			if (e.op == ALLOC_LOST)
				continue;
			assert_int_equal(e.time, step_ns * (n + 1));
			assert_int_equal(t->threads.v[e.thread], 77 + n % 2);
			assert_int_equal(e.addr, made_address(n));
			if (e.op != ALLOC_FREE && e.op != ALLOC_REALLOC_FROM)
				assert_int_equal(e.size, 1ull << n % 64);
			assert_int_equal(e.align, e.op == ALLOC_ALIGNED ? 64 : 0);
			n++;
		}
		assert_null(err);
		assert_int_equal(n, MADE);
		/* the end counts none of them */
		assert_non_null(strstr(t->cut, "the end counts other events"));
		alloc_rewind(t);
	}
	alloc_close(t);
}

static void threads_are_merged(void **state_)
{
	expect_threads("0,9223372036854775808", 500);     /* half a nanosecond a tick, */
	expect_threads("0,9223372036854775808,5", 16000); /* or 32 times as much */
}

/* --- ticks that were read too early --- */

enum {
	EARLY_THREADS = 5,
	EARLY_BLOCKS = 12,
	EARLY_EVENTS = 30000,
	EARLY_STEP = 100, /* ticks between events */
	EARLY_MOST = 150, /* ticks by which one is early, at most */
	EARLY_PASS = 400000,
};

struct early {
	struct made *threads;
	uint32_t at[EARLY_THREADS]; /* of the bytes: those in the file */
	uint64_t addr[EARLY_BLOCKS];
	bool alive[EARLY_BLOCKS];
};

static void early_event(struct early *x, uint32_t thread, enum wire_alloc_op op, uint64_t time,
			uint32_t block)
{
	struct made *m = &x->threads[thread];
	uint64_t ticks = time;

	/* most are in order, and frees are, because they wait for loads */
	if (op != WIRE_ALLOC_FREE && op != WIRE_ALLOC_REALLOC_FROM && random_number() % 3 == 0)
		ticks -= random_number() % EARLY_MOST;
	/* of one thread they are */
	made_event(m, op, ticks > m->time ? ticks : m->time, 32, x->addr[block]);
}

/* Writes what the threads have got, as a pass does. */
static void early_pass(struct early *x, struct alloc_writer *w, uint64_t sync)
{
	for (uint32_t i = 0; i < EARLY_THREADS; i++) {
		struct made *m = &x->threads[i];

		if (m->n > x->at[i])
			alloc_writer_chunk(w,
					   &(struct alloc_chunk){ i, x->at[i], sync,
								  m->v + x->at[i],
								  m->n - x->at[i] },
					   0);
		x->at[i] = m->n;
	}
}

/* Makes a history in which threads take the same few blocks over from each other. lossy: some
 * events are missing. Returns how many there are. */
static uint32_t make_history(struct alloc_writer *w, bool lossy)
{
	struct early x = { .threads = xcalloc(EARLY_THREADS, sizeof(*x.threads)) };
	uint64_t time = EARLY_MOST, began = 0, sync = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < EARLY_THREADS; i++)
		made_open(&x.threads[i], 100 + i, 1);
	for (uint32_t i = 0; i < EARLY_BLOCKS; i++)
		x.addr[i] = 0x555555550000 + i * 48;
	for (uint32_t i = 0; i < EARLY_EVENTS; i++, time += EARLY_STEP) {
		uint32_t block = (uint32_t)random_number() % EARLY_BLOCKS;
		uint32_t thread = (uint32_t)random_number() % EARLY_THREADS;
		bool lose = lossy && random_number() % 100 == 0;

		x.alive[block] = !x.alive[block];
		if (!lose) {
			early_event(&x, thread,
				    x.alive[block] ? WIRE_ALLOC_MALLOC : WIRE_ALLOC_FREE, time,
				    block);
			n++;
		}
		/* a realloc that fails, or gives the same block, of a block of any thread */
		if (x.alive[block] && random_number() % 8 == 0) {
			bool fails = random_number() & 1;
			struct made *m = &x.threads[thread];

			early_event(&x, thread, WIRE_ALLOC_REALLOC_FROM, time += EARLY_STEP, block);
			time += EARLY_STEP;
			if (fails)
				made_event(m, WIRE_ALLOC_REALLOC, time > m->time ? time : m->time,
					   64, 0);
			else
				early_event(&x, thread, WIRE_ALLOC_REALLOC, time, block);
			n += 2;
		}
		if (time - began > EARLY_PASS) {
			early_pass(&x, w, sync);
			sync = began = time;
		}
	}
	early_pass(&x, w, sync);
	for (uint32_t i = 0; i < EARLY_THREADS; i++)
		assert_true(x.threads[i].n < sizeof(x.threads[i].v));
	free(x.threads);
	return n;
}

/* Changes the file. */
static void set_version(uint8_t version)
{
	int fd = open(path, O_WRONLY);

	assert_int_equal(pwrite(fd, &version, 1, 8), 1);
	close(fd);
}

static void early_ticks(void **state_)
{
	for (uint32_t turn = 0; turn < 40; turn++) {
		const bool lossy = turn % 4 == 3;
		struct alloc_event e;
		struct alloc_report *r;
		struct alloc_writer *w;
		struct alloc_trace *t;
		struct err *err;
		uint64_t last[EARLY_THREADS + 1] = { 0 };
		uint32_t want, n = 0;

		random_state = turn + 1;
		assert_null(alloc_writer_new(path, &w));
		alloc_writer_info(w, "clock", "0,9223372036854775808"); /* half a ns a tick */
		want = make_history(w, lossy);
		alloc_writer_flush(w);
		err_free(alloc_writer_end(w));
		assert_null(alloc_open(path, true, &t));
		while (alloc_next(t, &e, &err)) {
			/* of a thread, all events are in their order */
			assert_true(e.time >= last[e.thread]);
			last[e.thread] = e.time;
			n++;
		}
		assert_null(err);
		assert_int_equal(n, want);
		assert_null(alloc_report_make(t, &r));
		assert_int_equal(r->calls[ALLOC_MALLOC] + r->calls[ALLOC_FREE] +
					 r->calls[ALLOC_REALLOC] + r->calls[ALLOC_REALLOC_FROM],
				 want);
		if (lossy) {
			assert_true(r->unknown + r->replaced > 50);
		} else {
			assert_int_equal(r->unknown, 0);
			assert_int_equal(r->replaced, 0);
			assert_true(r->peak <= (uint64_t)EARLY_BLOCKS * 64);
		}
		alloc_report_free(r);
		alloc_close(t);
		if (lossy)
			continue;
		set_version(ALLOC_IN_ORDER); /* the ticks as they are */
		assert_null(alloc_open(path, true, &t));
		assert_null(alloc_report_make(t, &r));
		assert_true(r->unknown > 5 && r->replaced > 5);
		alloc_report_free(r);
		alloc_close(t);
	}
}

/* A chunk of nothing but blocks that lie far apart. */
static void many_blocks(void **state_)
{
	enum { ROOM = 100000, BLOCKS = 5000 };
	struct made *m = xcalloc(1, sizeof(*m));
	struct alloc_writer *w;

	made_open(m, 1, 1);
	for (uint32_t i = 0; i < BLOCKS; i++)
		made_event(m, WIRE_ALLOC_MALLOC, 200 + i, 10, (i + 1) * 8192ull);
	assert_null(alloc_writer_new(path, &w));
	alloc_writer_info(w, "clock", "0,1");
	alloc_writer_chunk(w, &(struct alloc_chunk){ 3, 0, 0, m->v, m->n }, BLOCKS);
	assert_null(alloc_writer_end(w));
	for (int salvage = 0; salvage < 2; salvage++) {
		struct alloc_trace *t;
		struct alloc_event e;
		struct err *err;
		uint32_t n = 0;

		assert_null(alloc_open(path, salvage, &t));
		t->room = ROOM;
		while (alloc_next(t, &e, &err))
			n++;
		expect_no_room(err);
		assert_in_range(n, 100, BLOCKS - 1);
		alloc_close(t);
	}
	free(m);
}

/* A chunk of nothing but threads that begin: readers have more for each. */
static void many_threads(void **state_)
{
	enum { ROOM = 100000, THREADS = 2000 };
	struct alloc_writer *w;
	struct made *m = xcalloc(1, sizeof(*m));

	for (uint32_t i = 0; i < THREADS; i++)
		made_open(m, 1, 1);
	made_event(m, WIRE_ALLOC_MALLOC, 200, 10, 0x1000);
	assert_null(alloc_writer_new(path, &w));
	alloc_writer_info(w, "clock", "0,1");
	alloc_writer_chunk(w, &(struct alloc_chunk){ 3, 0, 0, m->v, m->n }, 1);
	assert_null(alloc_writer_end(w));
	for (int salvage = 0; salvage < 2; salvage++) {
		struct alloc_trace *t;
		struct alloc_event e;
		struct err *err;

		assert_null(alloc_open(path, salvage, &t));
		t->room = ROOM;
		assert_false(alloc_next(t, &e, &err));
		expect_no_room(err);
		assert_in_range(t->threads.n, 1, ROOM / ALLOC_DEFINED_THREAD + 2);
		alloc_close(t);
	}
	free(m);
}

/* Every byte of a chunk is changed in turn: the reading ends, with an error or without. */
static void damaged_chunks_end(void **state_)
{
	struct made m = { 0 };
	uint32_t wrong = 0;

	made_open(&m, 5, 100);
	made_event(&m, WIRE_ALLOC_MALLOC, 200, 10, 0x1000);
	made_event(&m, WIRE_ALLOC_ALIGNED, 1ull << 60, 10, 0x1001);
	made_event(&m, WIRE_ALLOC_FREE, 1ull << 61, 0, UINT64_MAX);
	for (uint32_t at = 0; at < m.n * 8; at++) {
		struct alloc_writer *w;
		struct alloc_trace *t;
		struct alloc_event e;
		struct err *err = NULL;

		m.v[at / 8] ^= 1 << at % 8;
		assert_null(alloc_writer_new(path, &w));
		alloc_writer_info(w, "clock", "0,1");
		alloc_writer_chunk(w, &(struct alloc_chunk){ at % 600, at, 0, m.v, m.n }, 3);
		assert_null(alloc_writer_end(w));
		m.v[at / 8] ^= 1 << at % 8;
		assert_null(alloc_open(path, false, &t));
		while (alloc_next(t, &e, &err))
			;
		wrong += err != NULL;
		err_free(err);
		alloc_close(t);
	}
	assert_true(wrong > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_merged), cmocka_unit_test(early_ticks),
		cmocka_unit_test(damaged_chunks_end), cmocka_unit_test(many_threads),
		cmocka_unit_test(many_blocks),
	};
	int failed;

	close(mkstemp(path));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
