/* Recordings of perf: records that are made here, and what names their processes and files. */
#include "unit.h"

#include <errno.h>
#include <sys/stat.h>
#include <zstd.h>

#include "base/io.h"
#include "input/perf/perfspace_private.h"
#include "input/perf/perfunpack.h"
#include "input/stackin/stackin.h"

static void put_record(struct out *o, uint32_t type, uint16_t misc, const void *body, size_t n)
{
	const struct {
		uint32_t type;
		uint16_t misc, size;
	} head = { type, misc, (uint16_t)(8 + n) };

	out_mem(o, (const char *)&head, sizeof(head));
	out_mem(o, body, n);
}

/* Begins a recording of an event whose samples have an address and a process. */
static struct out perf_data(void)
{
	const uint64_t head[] = { 0x32454c4946524550 /* PERFILE2 */, 16 };
	const uint64_t attr[] = { 1 | 48ull << 32, 0, 1, 3, 0, 0 };
	struct out o = { 0 };

	out_mem(&o, (const char *)head, sizeof(head));
	put_record(&o, 64, 0, attr, sizeof(attr));
	return o;
}

static struct err *read_perf_data(struct out *o, struct stacktree *t)
{
	struct stackin in;
	struct err *e;

	stackin_init(&in, t, NULL);
	stackin_feed(&in, o->v, o->n);
	e = stackin_end(&in);
	assert_int_equal(in.format, STACKIN_PERFDATA);
	stackin_fini(&in);
	out_fini(o);
	return e;
}

/* A small file can unpack to any size. */
static void test_perf_data_bomb(void **state)
{
	enum { RECORD = 65528, RECORDS = 1300 };
	cleanup_free char *zeros = xcalloc(1, RECORD - 8), *packed = xmalloc(RECORD);
	struct out o = perf_data(), records = { 0 };
	struct stacktree t;
	struct err *e;
	size_t n;

	(void)state;
	for (int i = 0; i < RECORDS; i++)
		put_record(&records, 200, 0, zeros, RECORD - 8);
	n = ZSTD_compress(packed, RECORD, records.v, records.n, 1);
	assert_false(ZSTD_isError(n));
	out_fini(&records);
	put_record(&o, 81, 0, packed, n);
	stacktree_init(&t);
	e = read_perf_data(&o, &t);
	assert_non_null(e);
	assert_int_equal(e->code, E2BIG);
	err_free(e);
	stacktree_fini(&t);
}

/* Tiny compressed records unpack into one block, behind a record that is cut off. */
static void test_perf_data_pieces(void **state)
{
	enum { CUT = 60000, PIECES = 30000, REST = 210000, SKIPPABLE = 0x184d2a50 };
	const uint32_t head[] = { SKIPPABLE, PIECES };
	cleanup_free char *cut = xcalloc(1, CUT), *packed = xmalloc(CUT), *rest = NULL;
	cleanup_free uint8_t *pieces = xcalloc(1, sizeof(head) + PIECES);
	struct perfunpack u = { 0 };
	struct bytes b, r;
	size_t n;

	(void)state;
	cut[0] = 7;
	n = ZSTD_compress(packed, CUT, cut, CUT, 1);
	assert_false(ZSTD_isError(n));
	for (b = bytes_of(packed, n, "cut"); perfunpack_more(&u, &b);)
		assert_null(perfunpack_next(&u, &b, &r));
	assert_int_equal(bytes_left(&r), CUT);
	memcpy(pieces, head, sizeof(head));
	for (size_t i = 0; i < sizeof(head) + PIECES; i++)
		for (b = bytes_of(pieces + i, 1, "piece"); perfunpack_more(&u, &b);)
			assert_null(perfunpack_next(&u, &b, &r));
	assert_int_equal(u.blocks.n, 1);
	assert_int_equal(bytes_left(&r), CUT);
	/* the record that is cut off begins the next block */
	u.taken = CUT - 1000;
	rest = xcalloc(1, REST);
	n = ZSTD_compress(pieces, PIECES, rest, REST, 1);
	assert_false(ZSTD_isError(n));
	for (b = bytes_of(pieces, n, "rest"); perfunpack_more(&u, &b);)
		assert_null(perfunpack_next(&u, &b, &r));
	assert_int_equal(u.blocks.n, 2);
	assert_int_equal(bytes_left(&r), 1000 + REST);
	/* nothing is kept in the first block, and it is full */
	assert_int_equal(u.live, 1);
	perfunpack_fini(&u);
}

/* A block lives until the last record is dropped that waits in it. */
static void test_perf_data_blocks(void **state)
{
	enum { SIZE = 3 * PERFUNPACK_BLOCK };
	cleanup_free char *zeros = xcalloc(1, SIZE), *packed = xmalloc(SIZE);
	size_t n = ZSTD_compress(packed, SIZE, zeros, SIZE, 1);
	struct bytes b = bytes_of(packed, n, "zeros"), r;
	struct perfunpack u = { 0 };
	uint32_t kept[2];

	(void)state;
	assert_false(ZSTD_isError(n));
	assert_null(perfunpack_next(&u, &b, &r));
	u.taken += bytes_left(&r);
	kept[0] = perfunpack_keep(&u);
	kept[1] = perfunpack_keep(&u);
	assert_int_equal(kept[0], 1);
	perfunpack_drop(&u, kept[0]);
	for (int i = 0; i < 2; i++) {
		assert_true(perfunpack_more(&u, &b));
		assert_null(perfunpack_next(&u, &b, &r));
		u.taken += bytes_left(&r);
		assert_int_equal(u.live, 2); /* that one and the new one */
	}
	assert_int_equal(u.blocks.n, 3);
	perfunpack_drop(&u, kept[1]);
	assert_int_equal(u.live, 1);
	assert_null(u.blocks.v[0].bytes);
	perfunpack_fini(&u);
}

/* Makes a recording of compressed records, all of which are equal. */
static struct out perf_data_equal(uint64_t sample_type, uint32_t type, const void *body, size_t n,
				  uint32_t count)
{
	enum { ID_ALL = 1 << 18 };
	const uint64_t head[] = { 0x32454c4946524550, 16 };
	const uint64_t attr[] = { 1 | 48ull << 32, 0, 1, sample_type, 0, ID_ALL };
	struct out o = { 0 }, records = { 0 };
	cleanup_free char *packed = xmalloc(65000);
	size_t len;

	out_mem(&o, (const char *)head, sizeof(head));
	put_record(&o, 64, 0, attr, sizeof(attr));
	for (uint32_t i = 0; i < count; i++)
		put_record(&records, type, 0, body, n);
	len = ZSTD_compress(packed, 65000, records.v, records.n, 1);
	assert_false(ZSTD_isError(len));
	put_record(&o, 81, 0, packed, len);
	out_fini(&records);
	return o;
}

/* Records of 8 or 16 bytes take 24 more while they wait, and they unpack from nearly nothing. */
static void test_perf_data_waiting(void **state)
{
	enum { SAMPLE_TIME = 4, MISSED = 2, BYTES = 40 << 20 };
	const uint64_t time = 7;
	struct out o = perf_data_equal(SAMPLE_TIME, MISSED, &time, 8, BYTES / 16);
	struct stacktree t;
	struct err *e;

	(void)state;
	stacktree_init(&t);
	e = read_perf_data(&o, &t);
	assert_non_null(e);
	assert_int_equal(e->code, ENOMEM);
	err_free(e);
	/* without a time they need not wait */
	o = perf_data_equal(0, MISSED, &time, 0, BYTES / 8);
	assert_null(read_perf_data(&o, &t));
	stacktree_fini(&t);
}

/* Packs the records of `count` processes that begin. */
static struct out perf_data_forks(uint32_t count)
{
	enum { FORK = 7, PIECE = 60000 };
	struct out records = { 0 }, o = perf_data();
	cleanup_free char *packed = NULL;
	size_t room, n;

	for (uint32_t i = 2; i < count + 2; i++) {
		const uint32_t pid_ppid_tid_ptid[] = { i, 1, 1, 1 };

		put_record(&records, FORK, 0, pid_ppid_tid_ptid, sizeof(pid_ppid_tid_ptid));
	}
	room = ZSTD_compressBound(records.n);
	packed = xmalloc(room);
	n = ZSTD_compress(packed, room, records.v, records.n, 5);
	assert_false(ZSTD_isError(n));
	for (size_t at = 0; at < n; at += PIECE)
		put_record(&o, 81, 0, packed + at, n - at < PIECE ? n - at : PIECE);
	out_fini(&records);
	return o;
}

/* A process takes 600 bytes, for a record of two or three packed bytes. */
static void test_perf_data_processes(void **state)
{
	(void)state;
	for (int many = 0; many < 2; many++) {
		struct out o = perf_data_forks(many ? 400000 : 50000);
		struct stacktree t;
		struct err *e;

		stacktree_init(&t);
		e = read_perf_data(&o, &t);
		assert_int_equal(e ? e->code : 0, many ? ENOMEM : 0);
		err_free(e);
		stacktree_fini(&t);
	}
}

/* Each kernel symbol that comes or goes moves those behind it. */
static void test_perf_ksymbols(void **state)
{
	enum { SYMBOLS = 100 };

	(void)state;
	for (int few = 0; few < 2; few++) {
		const struct stacktree_frame *f;
		struct stackin in;
		struct stacktree t;
		struct perfspace *s;
		const struct stackin_options o = { .no_symbols = true };
		uint32_t known = 0;

		stacktree_init(&t);
		stackin_init(&in, &t, &o);
		s = perfspace_new(&in);
		s->ksymbol_moves_left = few ? 10 * SYMBOLS : 100 * SYMBOLS;
		for (uint32_t i = 0; i < SYMBOLS; i++)
			perfspace_ksymbol(s, 0x20000 + i * 16, 16, "behind", false);
		assert_int_equal(s->ksymbol_moves_left, few ? 10 * SYMBOLS : 100 * SYMBOLS);
		for (int i = 0; i < 20; i++)
			perfspace_ksymbol(s, 0x10000, 16, "front", i & 1);
		for (uint32_t i = 0; i < SYMBOLS; i++) {
			f = &t.frames.v[perfspace_kernel(s, 0x20000 + i * 16)];
			known += f->len == 6 && !memcmp(f->text, "behind", 6);
		}
		assert_int_equal(known, few ? 0 : SYMBOLS);
		assert_int_equal(s->ksymbols_ended, few);
		perfspace_notes(s);
		assert_int_equal(in.notes.n, few);
		perfspace_free(s);
		stackin_fini(&in);
		stacktree_fini(&t);
	}
}

/* Begins a recording in a file with n events, each of which has the ids in [at, at + size). */
static struct out perf_data_file(uint32_t n, uint64_t at, uint64_t size)
{
	const uint64_t each = 64, end = 104 + n * each,
		       head[13] = { 0x32454c4946524550, 104, each, 104, n * each, end };
	const uint64_t attr[8] = { 1 | 48ull << 32, 0, 1, 3, 0, 0, at, size };
	struct out o = { 0 };

	out_mem(&o, (const char *)head, sizeof(head));
	for (uint32_t i = 0; i < n; i++)
		out_mem(&o, (const char *)attr, sizeof(attr));
	return o;
}

/* Each of many events can claim that all of the file is its ids. */
static void test_perf_data_ids(void **state)
{
	struct out o = perf_data_file(3, 104, 64);
	struct stacktree t;
	struct err *e;

	(void)state;
	stacktree_init(&t);
	assert_null(read_perf_data(&o, &t));
	o = perf_data_file(3, 104, 192);
	e = read_perf_data(&o, &t);
	assert_non_null(e);
	assert_non_null(strstr(e->text, "overlap"));
	err_free(e);
	stacktree_fini(&t);
}

/* Tables for walks follow the mappings, without a list that is made anew for each of them. */
static void test_perf_unwind_follows(void **state)
{
	struct perfspace_map m = { 0x1000, 0x1000, 0, "/nowhere", NULL, 0 };
	const struct unwind_process *p;
	const struct unwind_range *r;
	struct perfspace *s;
	struct stackin in;
	struct stacktree t;

	(void)state;
	stacktree_init(&t);
	stackin_init(&in, &t, NULL);
	s = perfspace_new(&in);
	assert_null(unwind_process_find(perfspace_unwind(s, 8), 0x1000)); /* not known */
	perfspace_map(s, 7, &m);
	p = perfspace_unwind(s, 7);
	r = unwind_process_find(p, 0x1fff);
	assert_non_null(r);
	assert_int_equal(r->end, 0x2000);
	assert_null(r->image);
	assert_null(unwind_process_find(p, 0x2000));
	m.start = 0x2000;
	perfspace_map(s, 7, &m);
	r = unwind_process_find(p, 0x2000);
	assert_non_null(r);
	assert_int_equal(r->start, 0x2000);
	m.start = 0x1800;
	perfspace_map(s, 7, &m);
	r = unwind_process_find(p, 0x1fff);
	assert_non_null(r);
	assert_int_equal(r->start, 0x1800);
	assert_int_equal(unwind_process_find(p, 0x17ff)->end, 0x1800);
	perfspace_free(s);
	stackin_fini(&in);
	stacktree_fini(&t);
}

/* Any user can put a pipe where the names of compiled code are expected. */
static void test_perf_data_pipe(void **state)
{
	const uint32_t pid = (uint32_t)getpid();
	struct {
		uint32_t pid, tid;
		uint64_t start, len, offset;
		char path[8];
	} map = { pid, pid, 0x10000, 0x1000, 0, "//anon" };
	struct {
		uint64_t ip;
		uint32_t pid, tid;
	} sample = { 0x10010, pid, pid };
	cleanup_free char *path = xasprintf("/tmp/perf-%u.map", pid);
	struct out o = perf_data();
	struct stacktree t;

	(void)state;
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	put_record(&o, 1, 2, &map, sizeof(map));
	put_record(&o, 9, 2, &sample, sizeof(sample));
	stacktree_init(&t);
	alarm(30);
	assert_null(read_perf_data(&o, &t));
	alarm(0);
	unlink(path);
	stacktree_finish(&t);
	assert_true(t.nodes.n > 1);
	stacktree_fini(&t);
}

/* Names an address in code without a file of process `pid`. */
static char *jit_name(struct perfspace *s, const struct stacktree *t, uint32_t pid)
{
	struct perfspace_map m = { 0x1000, 0x1000, 0, "//anon", NULL, 0 };
	const struct stacktree_frame *f;

	perfspace_map(s, pid, &m);
	f = &t->frames.v[perfspace_user(s, pid, 0x1010)];
	return xstrndup(f->text, f->len);
}

/* Lists of compiled code have a budget, and those of other users are not read. */
static void test_perf_lists(void **state)
{
	enum { FIRST = 4000000, LISTS = 3, LINES = 1000 }; /* greater than any process number */
	char path[LISTS][40];
	struct perfspace *s;
	struct stackin in;
	struct stacktree t;
	FILE *f;

	(void)state;
	for (int i = 0; i < LISTS; i++) {
		snprintf(path[i], sizeof(path[i]), "/tmp/perf-%d.map",
			 FIRST + (int)getpid() * 4 + i);
		unlink(path[i]);
		f = fopen(path[i], "w");
		assert_non_null(f);
		for (int k = 0; k < LINES; k++)
			fprintf(f, "%x 10 name_%d\n", 0x1000 + k * 16, k);
		fclose(f);
	}
	stacktree_init(&t);
	stackin_init(&in, &t, NULL);
	s = perfspace_new(&in);
	s->lists_left = 104 << 10; /* two lists have 96 kB */
	for (int i = 0; i < LISTS; i++) {
		cleanup_free char *name =
			jit_name(s, &t, (uint32_t)(FIRST + (int)getpid() * 4 + i));

		assert_int_equal(strcmp(name, "name_1") == 0, i < 2);
	}
	assert_in_range(s->lists_left, 1, 10000);
	perfspace_free(s);
	s = perfspace_new(&in);
	if (!getuid()) {
		cleanup_free char *name = NULL;

		assert_int_equal(chown(path[0], 65534, 65534), 0);
		name = jit_name(s, &t, (uint32_t)(FIRST + (int)getpid() * 4));
		assert_string_not_equal(name, "name_1");
	}
	assert_false(s->dsos.v[perfspace_dso_new(s, "/tmp/perf-x/../../etc/hosts")].jit);
	perfspace_free(s);
	stackin_fini(&in);
	stacktree_fini(&t);
	for (int i = 0; i < LISTS; i++)
		unlink(path[i]);
}

/* Unwind tables of the files of a recording have a budget. */
static void test_perf_tables(void **state)
{
	cleanup_free char *self = realpath("/proc/self/exe", NULL);
	struct perfspace_map m = { 0, 1ull << 40, 0, self, NULL, 0 };

	(void)state;
	for (int more = 0; more < 2; more++) {
		const struct unwind_range *r;
		struct perfspace *s;
		struct stackin in;
		struct stacktree t;

		stacktree_init(&t);
		stackin_init(&in, &t, NULL);
		s = perfspace_new(&in);
		s->tables_left = more;
		perfspace_map(s, 7, &m);
		r = unwind_process_find(perfspace_unwind(s, 7), 0x1000);
		assert_non_null(r);
		assert_int_equal(r->image != NULL, more);
		assert_int_equal(s->tables_left, 0);
		perfspace_free(s);
		stackin_fini(&in);
		stacktree_fini(&t);
	}
}

static int copy_file(const char *from, const char *to)
{
	cleanup_free char *bytes = NULL;
	FILE *f = fopen(to, "we");
	size_t n;

	assert_null(io_read_file(from, &bytes, &n));
	if (!f || fwrite(bytes, 1, n, f) != n)
		return -1;
	return fclose(f);
}

/* Finds a function of this program and the offset of its first byte in the file. */
static uint64_t some_function(const char *path, const char *name)
{
	uint64_t at = UINT64_MAX;
	struct object *o;
	uint32_t n;

	assert_null(object_open(path, &o));
	for (uint32_t i = 0; i < (object_symbols(o, &n), n); i++)
		if (!strcmp(object_symbols(o, &n)[i].name, name))
			assert_true(object_addr_to_offset(o, object_symbols(o, &n)[i].addr, &at));
	object_free(o);
	return at;
}

/* The name of a function is made once, whatever the number of its recorded addresses. Links to one
 * file are read once. The symbols of all files have a budget. */
static void test_perf_symbols(void **state)
{
	enum { LINKS = 5, ADDRESSES = 16 };
	cleanup_free char *self = realpath("/proc/self/exe", NULL);
	uint64_t at = some_function(self, "test_perf_symbols");
	char path[LINKS][64];

	(void)state;
	for (int i = 0; i < LINKS; i++) {
		snprintf(path[i], sizeof(path[i]), "/tmp/descry-test-link-%d-%d", (int)getpid(), i);
		unlink(path[i]);
		assert_int_equal(i ? link(path[0], path[i]) : copy_file(self, path[0]), 0);
	}
	for (int some = 0; some < 2; some++) {
		struct perfspace *s;
		struct stackin in;
		struct stacktree t;

		stacktree_init(&t);
		stackin_init(&in, &t, NULL);
		s = perfspace_new(&in);
		if (!some)
			s->symbols_left = 100;
		for (uint32_t i = 0; i < LINKS; i++) {
			struct perfspace_map m = { 0, 1ull << 40, 0, path[i], NULL, 0 };

			perfspace_map(s, i + 1, &m);
			for (uint32_t k = 0; k < ADDRESSES; k++) {
				const struct stacktree_frame *f =
					&t.frames.v[perfspace_user(s, i + 1, at + k)];

				assert_int_equal(f->len == 17 &&
							 !memcmp(f->text, "test_perf_symbols", 17),
						 some);
			}
		}
		assert_int_equal(s->files.n, 1);
		assert_int_equal(s->symbol_names.n, some ? LINKS : 0);
		assert_int_equal(s->symbols_left_out, !some);
		assert_int_equal(s->symbols_left < PERF_SYMBOLS_MAX, 1);
		perfspace_notes(s);
		perfspace_free(s);
		stackin_fini(&in);
		stacktree_fini(&t);
	}
	for (int i = 0; i < LINKS; i++)
		unlink(path[i]);
}

/* A thread's name and a path may be of 64 kB in a record, and those of functions of the kernel:
 * each sample, or each address in it, has its name. */
static void test_perf_long_names(void **state)
{
	enum { LONG = 60000, ADDRESSES = 50 };
	struct perfspace_map m = { 0x1000, 0x1000, 0, NULL, NULL, 0 };
	char text[LONG + 1];
	struct perfspace *s;
	struct stackin in;
	struct stacktree t;
	uint32_t n, first;

	(void)state;
	stacktree_init(&t);
	stackin_init(&in, &t, NULL);
	s = perfspace_new(&in);
	memset(text, ';', LONG);
	text[LONG] = 0;
	perfspace_comm(s, 1, 1, text);
	for (uint32_t i = 2; i < ADDRESSES; i++) {
		perfspace_fork(s, i, i - 1, i, i - 1);
		(void)perfspace_thread(s, i, i, &n);
		assert_int_equal(n, PERF_COMM_MAX + 1);
	}
	memset(text, 'd', LONG);
	text[0] = '/';
	m.path = text;
	perfspace_map(s, 7, &m);
	first = perfspace_user(s, 7, 0x1000);
	assert_in_range(t.frames.v[first].len, PERF_BASE_MAX, PERF_BASE_MAX + 2);
	for (uint32_t i = 0; i < ADDRESSES; i++)
		assert_int_equal(perfspace_user(s, 7, 0x1000 + i), first);
	perfspace_ksymbol(s, 0x10000, 0x1000, text, false);
	assert_int_equal(t.frames.v[perfspace_kernel(s, 0x10000)].len, PERF_KSYMBOL_MAX);
	assert_in_range(s->text_bytes, PERF_COMM_MAX, 4 * PERF_KSYMBOL_MAX);
	perfspace_free(s);
	stackin_fini(&in);
	stacktree_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perf_data_bomb),
		cmocka_unit_test(test_perf_data_pieces),
		cmocka_unit_test(test_perf_data_blocks),
		cmocka_unit_test(test_perf_data_waiting),
		cmocka_unit_test(test_perf_data_processes),
		cmocka_unit_test(test_perf_ksymbols),
		cmocka_unit_test(test_perf_data_ids),
		cmocka_unit_test(test_perf_unwind_follows),
		cmocka_unit_test(test_perf_data_pipe),
		cmocka_unit_test(test_perf_lists),
		cmocka_unit_test(test_perf_tables),
		cmocka_unit_test(test_perf_symbols),
		cmocka_unit_test(test_perf_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
