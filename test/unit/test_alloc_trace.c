/* The file of allocations: what is written is read, and what is cut or changed is refused; the
 * table of live blocks; the report of a made-up recording. */
#include "unit.h"

#include <errno.h>

#include "base/io.h"
#include "memory/alloc/alloc_record.h"
#include "memory/alloc/replay.h"
#include "memory/alloc/alloc_report.h"
#include "memory/alloc/trace_ahead.h"
#include "random_number.h"
#include "wire/alloc.h"

enum { EVENTS = 60000 };

static char path[] = "/tmp/descry-alloc-XXXXXX";
static struct alloc_event event(uint32_t i)
{
	struct alloc_event e = { .op = random_number() % ALLOC_LOST,
				 .thread = 1 + (uint32_t)(random_number() % 3),
				 .time = i * 100ull + random_number() % 300,
				 .addr = 0x7f0000000000 + random_number() % 100000 * 8 };

	if (e.op != ALLOC_FREE && e.op != ALLOC_REALLOC_FROM) {
		e.size = random_number() >> random_number() % 44;
		e.stack = (uint32_t)(random_number() % 3);
	}
	if (e.op == ALLOC_ALIGNED)
		e.align = 1ull << random_number() % 20;
	return e;
}

static void write_file(void)
{
	struct alloc_writer *w;
	uint32_t frames[2];

	assert_null(alloc_writer_new(path, &w));
	alloc_writer_info(w, "command", "'x'");
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(alloc_writer_thread(w, 100 + i), i);
	frames[0] = alloc_writer_frame(w, "malloc", 6);
	frames[1] = alloc_writer_frame(w, "main", 4);
	assert_int_equal(alloc_writer_stack(w, frames, 2), 1);
	assert_int_equal(alloc_writer_stack(w, frames + 1, 1), 2);
	random_state = 1;
	for (uint32_t i = 0; i < EVENTS; i++) {
		struct alloc_event e = event(i);

		alloc_write(w, &e);
	}
	assert_int_equal(alloc_writer_events(w), EVENTS);
	assert_null(alloc_writer_end(w));
}

/* Texts of a file make no lines of their own. */
static void shown(void **unused)
{
	struct alloc_writer *w;
	struct alloc_trace *t;
	struct alloc_event e;
	struct err *err;

	(void)unused;
	assert_null(alloc_writer_new(path, &w));
	alloc_writer_info(w, "process", "1\t2\n3\033[31m");
	alloc_writer_frame(w, "f\tg\nh", 5);
	assert_null(alloc_writer_end(w));
	assert_null(alloc_open(path, false, &t));
	while (alloc_next(t, &e, &err))
		;
	assert_null(err);
	assert_string_equal(alloc_info(t, "process"), "1\t2?3?[31m");
	assert_string_equal(t->frames.v[t->frames.n - 1].text, "f?g?h");
	alloc_close(t);
}

static void same(void **unused)
{
	struct alloc_trace *t;
	struct alloc_event e;
	struct err *err;

	(void)unused;
	write_file();
	assert_null(alloc_open(path, false, &t));
	for (int round = 0; round < 2; round++) {
		uint32_t n = 0;

		random_state = 1;
		while (alloc_next(t, &e, &err)) {
			struct alloc_event want = event(n++);

			assert_true(e.op == want.op && e.thread == want.thread &&
				    e.stack == want.stack && e.time == want.time &&
				    e.addr == want.addr && e.size == want.size &&
				    e.align == want.align);
		}
		assert_null(err);
		assert_true(t->ended);
		assert_int_equal(n, EVENTS);
		assert_int_equal(t->threads.v[3], 103);
		assert_string_equal(t->frames.v[t->stack_frames.v[t->stacks.v[2].at]].text, "main");
		assert_string_equal(alloc_info(t, "command"), "'x'");
		assert_null(alloc_info(t, "comm"));
		alloc_rewind(t);
	}
	alloc_close(t);
}

/* Every place where the file may end, or where a bit may change. */
static void damage(void **unused)
{
	char *text;
	size_t n;
	uint32_t whole = 0;

	(void)unused;
	write_file();
	assert_null(io_read_file(path, &text, &n));
	for (size_t at = 0; at < n; at += at < 200 ? 1 : 4999) {
		for (int kind = 0; kind < 2; kind++) {
			struct alloc_trace *t = NULL;
			struct alloc_event e;
			struct err *err;
			uint32_t events = 0;

			if (kind)
				text[at] ^= 4;
			err = alloc_open_memory(text, kind ? n : at, "made up", false, &t);
			if (!err) {
				while (alloc_next(t, &e, &err))
					events++;
				if (!err) { /* cut between two blocks; a bit that nobody needs */
					assert_int_equal(t->ended, kind);
					assert_true(!kind || events == EVENTS);
					whole++;
				}
				alloc_close(t);
			}
			if (err && at >= 16)
				assert_non_null(strstr(err->text, "made up: block at byte "));
			err_free(err);
			err = alloc_open_memory(text, kind ? n : at, "made up", true, &t);
			if (!err) {
				uint32_t salvaged = 0;

				while (alloc_next(t, &e, &err))
					salvaged++;
				assert_null(err);
				assert_int_equal(salvaged, events);
				alloc_close(t);
			}
			err_free(err);
			if (kind)
				text[at] ^= 4;
		}
	}
	assert_true(whole >= 1 && whole < 10);
	free(text);
}

/* Stacks by nodes, in the events of a thread (wire/alloc.h). */
static void nodes(void **unused)
{
	static const uint8_t bytes[] = {
		/* STACKS: thread 7, ticks 1000 */
		15,
		5,
		15,
		0xa2,
		0x0f,
		/* after a tick, malloc(100) = 0x1000, stack 3; the next: stack 3 + 60 */
		17,
		201,
		2,
		0x10,
		13,
		17,
		201,
		1,
		241,
		/* stack 63 - 61 */
		17,
		201,
		1,
		243,
	};
	static const uint32_t want[] = { 2, 0, 2 };
	/* Nodes that are refused: number, parent, frame. */
	static const uint32_t bad[][3] = {
		{ 2, 1, 1 }, { 5, 4, 1 }, { 6, 6, 1 },       { 7, 0, 9 },
		{ 8, 0, 0 }, { 9, 3, 1 }, { 1 << 20, 0, 1 }, { 0, 0, 1 }
	};

	(void)unused;
	for (uint32_t k = 0; k <= ARRAY_SIZE(bad); k++) {
		struct alloc_writer *w;
		struct alloc_trace *t;
		struct alloc_event e;
		struct err *err;
		uint32_t n = 0;

		assert_null(alloc_writer_new(path, &w));
		alloc_writer_info(w, "clock", "1000,18446744073709551615");
		alloc_writer_frame(w, "f", 1);
		alloc_writer_frame(w, "g", 1);
		alloc_writer_node(w, 1, 0, 2);
		alloc_writer_node(w, 2, 1, 1);
		alloc_writer_node(w, 3, 2, 0);
		if (k < ARRAY_SIZE(bad))
			alloc_writer_node(w, bad[k][0], bad[k][1], bad[k][2]);
		alloc_writer_chunk(w, &(struct alloc_chunk){ 0, 0, 0, bytes, sizeof(bytes) }, 3);
		assert_null(alloc_writer_end(w));
		assert_null(alloc_open(path, false, &t));
		while (alloc_next(t, &e, &err)) {
			assert_int_equal(e.stack, want[n++]);
			assert_int_equal(e.addr, 0x1000);
			assert_int_equal(e.size, 100);
		}
		assert_int_equal(n, k < ARRAY_SIZE(bad) ? 0 : 3);
		if (k < ARRAY_SIZE(bad)) {
			assert_non_null(strstr(err->text, "block at byte "));
		} else {
			const uint32_t *f = &t->stack_frames.v[t->stacks.v[2].at];

			assert_null(err);
			assert_int_equal(t->stacks.v[2].n, 2);
			assert_string_equal(t->frames.v[f[0]].text, "f");
			assert_string_equal(t->frames.v[f[1]].text, "g");
		}
		err_free(err);
		alloc_close(t);
	}
}

static void sums(void **unused)
{
	static const struct alloc_event events[] = {
		{ ALLOC_MALLOC, 1, 1, 10, 0x1000, 100, 0 },
		{ ALLOC_MALLOC, 1, 2, 20, 0x2000, 50, 0 },
		{ ALLOC_FREE, 1, 0, 30, 0x2000, 0, 0 },         /* temporary */
		{ ALLOC_REALLOC_FROM, 2, 0, 40, 0x1000, 0, 0 }, /* elsewhere */
		{ ALLOC_MALLOC, 1, 2, 45, 0x1000, 10, 0 },      /* the address is free again */
		{ ALLOC_REALLOC, 2, 1, 50, 0x3000, 400, 0 },
		{ ALLOC_REALLOC_FROM, 2, 0, 60, 0x3000, 0, 0 },
		{ ALLOC_REALLOC, 2, 1, 70, 0, 1ull << 60, 0 }, /* fails */
		{ ALLOC_FREE, 2, 0, 80, 0x9000, 0, 0 },        /* unknown */
		{ ALLOC_MALLOC, 2, 2, 90, 0, 1ull << 60, 0 },  /* fails */
		{ ALLOC_FREE, 2, 0, 100, 0x1000, 0, 0 },
	};
	struct alloc_report *r;
	struct alloc_writer *w;
	struct alloc_trace *t;
	uint32_t frame;

	(void)unused;
	assert_null(alloc_writer_new(path, &w));
	alloc_writer_thread(w, 7);
	alloc_writer_thread(w, 8);
	frame = alloc_writer_frame(w, "f", 1);
	alloc_writer_stack(w, &frame, 1);
	alloc_writer_stack(w, &frame, 1);
	for (uint32_t i = 0; i < ARRAY_SIZE(events); i++)
		alloc_write(w, &events[i]);
	assert_null(alloc_writer_end(w));
	assert_null(alloc_open(path, false, &t));
	assert_null(alloc_report_make(t, &r));
	assert_int_equal(r->allocated, 4);
	assert_int_equal(r->allocated_bytes, 560);
	assert_int_equal(r->freed, 3);
	assert_int_equal(r->failed, 2);
	assert_int_equal(r->unknown, 1);
	assert_int_equal(r->replaced, 0);
	assert_int_equal(r->temporary, 1);
	assert_int_equal(r->elsewhere, 2);
	assert_int_equal(r->live, 1);
	assert_int_equal(r->live_bytes, 400);
	assert_int_equal(r->peak, 410);
	assert_int_equal(r->peak_time, 50);
	assert_int_equal(r->sites.v[1].live_bytes, 400);
	assert_int_equal(r->sites.v[1].peak_bytes, 400);
	assert_int_equal(r->sites.v[2].peak_bytes, 10);
	assert_int_equal(r->sites.v[2].live_bytes, 0);
	assert_int_equal(r->sites.v[2].temporary, 1);
	alloc_report_free(r);
	alloc_close(t);
}

/* A small file that means more memory than any machine has is not played. */
static void too_large(void **unused)
{
	struct alloc_event big = { .op = ALLOC_MALLOC, .thread = 1, .size = 1ull << 46 };
	struct alloc_event no_block = { .op = ALLOC_MALLOC, .thread = 1, .addr = 0x9000 };
	struct alloc_writer *w;
	struct replay_head head;
	struct alloc_trace *t;
	struct err *e;
	int fd = -1;

	(void)unused;
	for (uint32_t n = 1; n <= 2; n++) {
		assert_null(alloc_writer_new(path, &w));
		assert_int_equal(alloc_writer_thread(w, 1), 1);
		no_block.size = UINT64_MAX - 8;
		alloc_write(w, &no_block);
		for (uint32_t i = 1; i < n; i++) {
			big.addr = 0x10000 * i;
			alloc_write(w, &big);
		}
		assert_null(alloc_writer_end(w));
		assert_null(alloc_open(path, false, &t));
		e = replay_make(t, false, &head, &fd);
		if (n == 1) {
			assert_null(e);
			assert_int_equal(head.ncalls, 0);
			assert_int_equal(head.skipped, 1);
			assert_int_equal(head.peak_bytes, 0);
			close(fd);
		} else {
			assert_non_null(e);
			assert_int_equal(e->code, ENOMEM);
			err_free(e);
		}
		alloc_close(t);
	}
}

static struct alloc_writer *begin_file(void)
{
	struct alloc_writer *w;

	assert_null(alloc_writer_new(path, &w));
	assert_int_equal(alloc_writer_thread(w, 1), 1);
	return w;
}

static void expect_no_room(struct err *e)
{
	assert_non_null(e);
	assert_int_equal(e->code, ENOMEM);
	assert_non_null(strstr(e->text, "this machine "));
	err_free(e);
}

/* A small file can define any number of texts, and have any number of live blocks. */
static void no_room(void **unused)
{
	enum { ROOM = 100000, TEXTS = 100, BLOCKS = 4000 };
	struct alloc_writer *w = begin_file();
	struct alloc_report *r = NULL;
	struct replay_head head;
	struct alloc_trace *t;
	struct alloc_event e;
	struct err *err;
	char text[4000];
	int fd = -1;

	(void)unused;
	memset(text, 'x', sizeof(text));
	for (uint32_t i = 0; i < TEXTS; i++)
		alloc_writer_frame(w, text, sizeof(text));
	assert_null(alloc_writer_end(w));
	for (int salvage = 0; salvage < 2; salvage++) {
		assert_null(alloc_open(path, salvage, &t));
		t->room = ROOM;
		assert_false(alloc_next(t, &e, &err));
		expect_no_room(err);
		assert_false(t->ended);
		alloc_close(t);
	}
	w = begin_file();
	for (uint32_t i = 0; i < BLOCKS; i++)
		alloc_write(w, &(struct alloc_event){
				       .op = ALLOC_MALLOC, .thread = 1, .addr = 16 + 16ull * i });
	assert_null(alloc_writer_end(w));
	assert_null(alloc_open(path, false, &t));
	t->room = ROOM;
	expect_no_room(alloc_report_make(t, &r));
	alloc_rewind(t);
	expect_no_room(replay_make(t, false, &head, &fd));
	alloc_close(t);
}

/* Hundreds of threads that take turns with large blocks would need hundreds of waits for each
 * call: a small file fills no disk. Fewer threads are played. */
static void waits(void **unused)
{
	enum { MANY = 300, SOME = 40, ROUNDS = 60 };

	(void)unused;
	for (uint32_t threads = SOME; threads <= MANY; threads += MANY - SOME) {
		struct alloc_event e = { .time = 1000, .size = 64 << 20, .addr = 0x10000 };
		struct alloc_writer *w;
		struct replay_head head;
		struct alloc_trace *t;
		struct err *err;
		int fd = -1;

		assert_null(alloc_writer_new(path, &w));
		for (uint32_t i = 1; i <= threads; i++)
			alloc_writer_thread(w, 1000 + i);
		for (uint32_t i = 0; i < threads * ROUNDS; i++) {
			e.thread = 1 + i % threads;
			e.op = ALLOC_MALLOC;
			alloc_write(w, &e);
			e.op = ALLOC_FREE;
			alloc_write(w, &e);
		}
		assert_null(alloc_writer_end(w));
		assert_null(alloc_open(path, false, &t));
		err = replay_make(t, true, &head, &fd);
		assert_int_equal(!!err, threads == MANY);
		assert_true(!err || strstr(err->text, "--threads 1"));
		err_free(err);
		if (fd >= 0)
			close(fd);
		alloc_close(t);
	}
}

static bool is_on_disk(int fd)
{
	char link[40], path[4096] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	assert_true(readlink(link, path, sizeof(path) - 1) > 0);
	return *path == '/' && strncmp(path, "/memfd:", 7) && strstr(path, "(deleted)");
}

/* Threads free and enlarge each other's blocks; one that has ended leaves its lane to the next. */
static void lanes(void **unused)
{
	enum { SLOTS = 64, CALLS = 20000 };
	static struct replay_result result;
	uint64_t blocks[SLOTS] = { 0 }, next = 16, live = 0, most = 0, calls = CALLS;
	struct alloc_writer *w = begin_file();
	struct replay_head head;
	struct alloc_trace *t;
	int fd = -1;

	(void)unused;
	for (uint32_t i = 2; i <= 4; i++)
		assert_int_equal(alloc_writer_thread(w, i), i);
	for (uint32_t i = 0; i < CALLS; i++) {
		uint64_t *b = &blocks[random_number() % SLOTS];
		/* threads 1 and 2, and after them 3 and 4 */
		struct alloc_event e = { .op = ALLOC_FREE,
					 .thread = 1 + (uint32_t)(random_number() & 1) +
						   (i < CALLS / 2 ? 0 : 2),
					 .time = i * 10000,
					 .addr = *b };

		if (!*b) {
			e.op = ALLOC_MALLOC;
			e.addr = *b = next;
			e.size = 48;
			live += 48;
			next += 64;
		} else if (i % 5 == 0) {
			e.op = ALLOC_REALLOC_FROM;
			alloc_write(w, &e);
			e.op = ALLOC_REALLOC;
			e.size = 48;
		} else {
			*b = 0;
			live -= 48;
		}
		most = live > most ? live : most;
		alloc_write(w, &e);
	}
	for (uint32_t i = 0; i < SLOTS; i++) { /* the replay is to leave nothing */
		if (!blocks[i])
			continue;
		alloc_write(w, &(struct alloc_event){ .op = ALLOC_FREE,
						      .thread = 3 + i % 2,
						      .time = CALLS * 10000,
						      .addr = blocks[i] });
		calls++;
	}
	assert_null(alloc_writer_end(w));
	assert_null(alloc_open(path, false, &t));
	for (int same = 0; same < 2; same++) {
		alloc_rewind(t);
		assert_null(replay_make(t, same, &head, &fd));
		assert_int_equal(head.nlanes, same ? 2 : 1);
		assert_int_equal(head.ncalls, calls);
		assert_int_equal(head.peak_bytes, most);
		assert_int_equal(head.skipped, 0);
		for (int mode = REPLAY_TIME; mode <= REPLAY_EACH; mode++) {
			assert_null(replay_play(fd, mode, mode == REPLAY_TIME ? REPLAY_TOUCH : 0,
						&result));
			assert_int_equal(result.failed, 0);
			assert_true(mode != REPLAY_SPACE || result.npoints > 0);
			if (mode == REPLAY_SPACE && !same)
				assert_int_equal(result.live_peak, most);
		}
		close(fd);
	}
	/* operations that are too many for the memory are played from disk */
	alloc_rewind(t);
	t->room = CALLS * sizeof(struct replay_op);
	assert_null(replay_make(t, false, &head, &fd));
	assert_int_equal(head.ncalls, calls);
	assert_int_equal(head.peak_bytes, most);
	assert_true(is_on_disk(fd));
	assert_null(replay_play(fd, REPLAY_SPACE, 0, &result));
	assert_int_equal(result.live_peak, most);
	assert_int_equal(result.failed, 0);
	close(fd);
	alloc_close(t);
}

/* A thread of its own reads the same, to the end, up to an early end, and to damage. */
static void ahead(void **unused)
{
	enum { MANY = 300000, EARLY = 100000, STEP = 16 };
	struct alloc_writer *w = begin_file();
	uint64_t counts[3] = { 0 };
	char *text;
	size_t size;

	(void)unused;
	for (uint64_t i = 1; i <= MANY; i++)
		alloc_write(w,
			    &(struct alloc_event){
				    .op = ALLOC_MALLOC, .thread = 1, .addr = i * STEP, .size = i });
	assert_null(alloc_writer_end(w));
	assert_null(io_read_file(path, &text, &size));
	for (int kind = 0; kind < 3; kind++) {
		const struct alloc_event *v;
		struct alloc_ahead *a;
		struct alloc_trace *t;
		struct err *err;
		uint32_t n;

		if (kind == 2)
			text[size * 3 / 4] ^= 4;
		assert_null(alloc_open_memory(text, size, "made up", false, &t));
		a = alloc_ahead_begin(t);
		while ((v = alloc_ahead_next(a, &n)) && (kind != 1 || counts[kind] < EARLY))
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(v[i].size, ++counts[kind]);
		err = alloc_ahead_end(a);
		assert_int_equal(err != NULL, kind == 2);
		assert_true(kind != 2 || strstr(err->text, "block at byte"));
		assert_true(kind || t->ended);
		err_free(err);
		alloc_close(t);
	}
	assert_int_equal(counts[0], MANY);
	assert_in_range(counts[1], EARLY, EARLY + 4096);
	assert_in_range(counts[2], MANY / 2, MANY - 1);
	free(text);
}

/* Blocks at multiples of a page take a page each, however small they are. */
static void aligned(void **unused)
{
	enum { BLOCKS = 100 };
	struct alloc_writer *w = begin_file();
	struct replay_head head;
	struct alloc_trace *t;
	int fd = -1;

	(void)unused;
	for (uint64_t i = 1; i <= BLOCKS; i++)
		alloc_write(w, &(struct alloc_event){ .op = ALLOC_ALIGNED,
						      .thread = 1,
						      .addr = i << 12,
						      .size = 1,
						      .align = 1 << 12 });
	alloc_write(w, &(struct alloc_event){ .op = ALLOC_FREE, .thread = 1, .addr = 1 << 12 });
	assert_null(alloc_writer_end(w));
	assert_null(alloc_open(path, false, &t));
	assert_null(replay_make(t, false, &head, &fd));
	assert_int_equal(head.peak_bytes, BLOCKS);
	assert_in_range(head.peak_room, BLOCKS << 12, BLOCKS << 14);
	close(fd);
	alloc_close(t);
}

/* A traced process can make any number of threads. */
static void threads(void **unused)
{
	static const struct alloc_function f = { .name = "malloc", .op = ALLOC_MALLOC };
	struct segment segment = { 0 };
	struct wire_record h = { .time = 1 };
	struct record_view view = { .segment = &segment, .head = &h };
	struct record_files files;
	struct alloc_record r;
	struct alloc_writer *w;
	struct sink *s;

	(void)unused;
	alloc_record_init(&r);
	assert_null(alloc_writer_new(path, &w));
	record_files_init(&files, path);
	record_files_begin(&files, 1, w);
	files.room = 3 * ALLOC_DEFINED;
	r.files = &files;
	vec_push(&r.clauses, (struct alloc_clause){ ALLOC_EVENT, &f });
	s = alloc_record_sink(&r);
	for (h.tid = 1; h.tid <= 5; h.tid++) {
		assert_null(s->ops->record_begin(s, &view));
		assert_null(s->ops->record_end(s, &view));
	}
	assert_int_equal(files.lost, 2);
	assert_int_equal(alloc_writer_events(w), 3);
	s->ops->free(s);
	assert_null(record_files_end(&files));
	record_files_fini(&files);
	alloc_record_fini(&r);
}

/* Looks for processes that have ended are not made for each record. */
static void looks(void **unused)
{
	enum { PROCESSES = 300, FIRST = 0x7ff00000 }; /* greater than any process number */
	const uint64_t second = 1000000000;
	struct record_files files;
	struct alloc_writer *w;

	(void)unused;
	assert_null(alloc_writer_new(path, &w));
	record_files_init(&files, path);
	record_files_begin(&files, 1, w);
	for (int i = 0; i < PROCESSES; i++)
		assert_non_null(record_file_of(&files, FIRST + i));
	assert_int_equal(files.open.n, PROCESSES);
	assert_int_equal(files.looks, 1);
	files.now = 3 * second; /* none had a record for so long */
	assert_non_null(record_file_of(&files, FIRST + PROCESSES));
	assert_int_equal(files.looks, 2);
	assert_int_equal(files.open.n, 1);
	assert_int_equal(files.done.n, PROCESSES);
	for (uint32_t i = 0; i < files.done.n; i++)
		unlink(files.done.v[i]->path);
	unlink(files.open.v[0]->path);
	assert_null(record_files_end(&files));
	record_files_fini(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same),    cmocka_unit_test(shown), cmocka_unit_test(damage),
		cmocka_unit_test(nodes),   cmocka_unit_test(sums),  cmocka_unit_test(too_large),
		cmocka_unit_test(no_room), cmocka_unit_test(waits), cmocka_unit_test(aligned),
		cmocka_unit_test(lanes),   cmocka_unit_test(ahead), cmocka_unit_test(threads),
		cmocka_unit_test(looks),
	};
	int failed;

	close(mkstemp(path));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
