/* Profiles of other tools that are read as a whole: perf.data, pprof, speedscope. Written profiles
 * can be read again. */
#include "unit.h"

#include <zlib.h>
#include <zstd.h>

#include "input/stackin/stackin.h"
#include "render/folded.h"
#include "render/render.h"

/* Returns the result as folded text, or NULL and the error's text. */
static char *read_folded(const void *p, size_t n, size_t piece, const struct stackin_options *o,
			 enum stackin_format *ret_format, char **ret_why)
{
	struct stacktree t;
	struct stackin in;
	struct out out = { 0 };
	struct err *e;

	*ret_why = NULL;
	stacktree_init(&t);
	stackin_init(&in, &t, o);
	for (size_t i = 0; i < n; i += piece)
		stackin_feed(&in, (const char *)p + i, n - i < piece ? n - i : piece);
	e = stackin_end(&in);
	*ret_format = in.format;
	if (e) {
		*ret_why = xstrdup(e->text);
		err_free(e);
	}
	for (uint32_t i = 0; i < in.notes.n && !*ret_why; i++)
		*ret_why = xstrdup(in.notes.v[i]);
	stackin_fini(&in);
	stacktree_finish(&t);
	folded_write(&t, FOLDED_WHOLE, &out);
	out_char(&out, '\0');
	stacktree_fini(&t);
	return out.v;
}

static void expect_note(enum stackin_format format, const struct out *doc,
			const struct stackin_options *o, const char *folded, const char *note)
{
	for (size_t piece = 2; piece < 100000; piece *= 13) {
		char *why;
		enum stackin_format is;
		cleanup_free char *out = read_folded(doc->v, doc->n, piece, o, &is, &why);

		assert_string_equal(out, folded);
		assert_int_equal(is, format);
		if (note) {
			assert_non_null(why);
			assert_non_null(strstr(why, note));
		} else if (why) {
			fail_msg("%s", why);
		}
		free(why);
	}
}

static void expect(enum stackin_format format, const struct out *doc,
		   const struct stackin_options *o, const char *folded)
{
	expect_note(format, doc, o, folded, NULL);
}

static const char stacks[] = "main;a;b 3\nmain;a;libc.so.6`malloc 5\nmain;vfs_read_[k] 7\n";

static void make_tree(struct stacktree *t, const char *text)
{
	struct stackin in;

	stacktree_init(t);
	stackin_init(&in, t, NULL);
	stackin_feed(&in, text, strlen(text));
	assert_null(stackin_end(&in));
	stackin_fini(&in);
	stacktree_finish(t);
}

static void test_written(void **state)
{
	struct stackin_options marks = { .kernel = true };
	struct profile_about about = { .type = "time", .unit = "nanoseconds", .title = "\"x\"" };
	struct out doc = { 0 };
	struct stacktree t;

	make_tree(&t, stacks);
	render_pprof(&doc, &t, &about);
	assert_memory_equal(doc.v, "\x1f\x8b", 2);
	expect(STACKIN_PPROF, &doc, &marks, "main;a;b 3\nmain;a;malloc 5\nmain;vfs_read_[k] 7\n");
	doc.n = 0;
	render_pprof(&doc, &t, NULL);
	expect(STACKIN_PPROF, &doc, NULL, "main;a;b 3\nmain;a;malloc 5\nmain;vfs_read 7\n");
	doc.n = 0;
	render_speedscope(&doc, &t, &about);
	expect(STACKIN_SPEEDSCOPE, &doc, &marks,
	       "main;a;b 3\nmain;a;malloc 5\nmain;vfs_read_[k] 7\n");
	out_fini(&doc);
	stacktree_fini(&t);
}

/* A name of any bytes: shown as text, never a broken document. */
static void test_hostile_names(void **state)
{
	static const char text[] = "a\"b\\;<script>\x01\xff\xc0;\xe4\xbd\xa0 5\n";
	struct out doc = { 0 };
	struct stacktree t;

	make_tree(&t, text);
	render_speedscope(&doc, &t, NULL);
	/* the readers drop a function's quote */
	expect(STACKIN_SPEEDSCOPE, &doc, NULL, "ab\\;<script>\\x01\\xff\\xc0;\xe4\xbd\xa0 5\n");
	doc.n = 0;
	render_pprof(&doc, &t, NULL);
	expect(STACKIN_PPROF, &doc, NULL, "ab\\;<script>\\x01\\xff\\xc0;\xe4\xbd\xa0 5\n");
	out_fini(&doc);
	stacktree_fini(&t);
}

/* --- pprof by hand: tables behind their use, two types, a location of inlined functions --- */

static void put(struct out *o, uint8_t field, const char *bytes, size_t n)
{
	out_char(o, (char)(field << 3 | 2));
	out_char(o, (char)n);
	out_mem(o, bytes, n);
}
#define PUT(o, field, bytes) put(o, field, bytes, sizeof(bytes) - 1)

static void test_pprof(void **state)
{
	struct stackin_options samples = { .event = "samples" }, none = { .event = "none" };
	static const char *const strings[] = { "",       "samples",     "count",
					       "cpu",    "nanoseconds", "main",
					       "callee", "inlined",     "/bin/prog" };
	struct out o = { 0 }, cut;
	char *why, *out;
	enum stackin_format format;

	PUT(&o, 1, "\x08\x01\x10\x02");                 /* samples, count */
	PUT(&o, 1, "\x08\x03\x10\x04");                 /* cpu, nanoseconds */
	PUT(&o, 2, "\x0a\x02\x02\x01\x12\x02\x01\x0a"); /* locations 2, 1; values 1, 10 */
	PUT(&o, 2, "\x08\x01\x10\x02\x10\x14");         /* location 1; values 2, 20: not packed */
	PUT(&o, 2, "\x08\x09\x10\x02\x10\x1e");         /* no such location */
	PUT(&o, 2, "\x08\x03\x10\x01\x10\x01");         /* an address without a name */
	PUT(&o, 4, "\x08\x01\x22\x02\x08\x01");         /* location 1: function 1 */
	PUT(&o, 4, "\x08\x02\x22\x02\x08\x03\x22\x02\x08\x02"); /* 3 inlined into 2 */
	PUT(&o, 4, "\x08\x03\x10\x01\x18\x7f");
	PUT(&o, 3, "\x08\x01\x28\x08");
	PUT(&o, 5, "\x08\x01\x10\x05");
	PUT(&o, 5, "\x08\x02\x10\x06");
	PUT(&o, 5, "\x08\x03\x10\x07");
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		put(&o, 6, strings[i], strlen(strings[i]));
	expect(STACKIN_PPROF, &o, NULL,
	       "[prog] 1\n[unknown] 30\nmain 20\nmain;callee;inlined_[i] 10\n");
	expect(STACKIN_PPROF, &o, &samples,
	       "[prog] 1\n[unknown] 2\nmain 2\nmain;callee;inlined_[i] 1\n");
	expect_note(STACKIN_PPROF, &o, &none, "", "no sample type none");
	for (cut = o; cut.n > 24; cut.n--) { /* an error or a smaller profile, nothing else */
		out = read_folded(cut.v, cut.n, cut.n, NULL, &format, &why);
		free(out);
		free(why);
	}
	out_fini(&o);
}

static void test_speedscope(void **state)
{
	struct stackin_options one = { .event = "t2" };
	struct out o = { 0 };

	out_str(&o,
		"\n{\"$schema\":\"x\",\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\",\"file\":"
		"\"/lib/b.c\"}]},\"profiles\":[{\"type\":\"evented\",\"name\":\"t 1\",\"unit\":"
		"\"seconds\",\"startValue\":1,\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":1},"
		"{\"type\":\"O\",\"frame\":1,\"at\":1.5},{\"type\":\"C\",\"frame\":1,\"at\":1.75},"
		"{\"type\":\"C\",\"frame\":0,\"at\":2}]},{\"type\":\"sampled\",\"name\":\"t2\",\"unit\":"
		"\"none\",\"samples\":[[0,1],[0],[7]],\"weights\":[4,2,1]}]}");
	expect(STACKIN_SPEEDSCOPE, &o, NULL,
	       "t2;[unknown] 1\nt2;a 2\nt2;a;b 4\nt_1;a 750000\nt_1;a;b 250000\n");
	expect(STACKIN_SPEEDSCOPE, &o, &one, "[unknown] 1\na 2\na;b 4\n");
	o.n -= 5;
	expect_note(STACKIN_SPEEDSCOPE, &o, NULL, "", "line 2");
	o.n = 0;
	out_str(&o, "{\"a\": [1, 2]}            ");
	expect_note(STACKIN_SPEEDSCOPE, &o, NULL, "", "without profiles");
	out_fini(&o);
}

/* Frames that never close: each event is a stack of all of them. */
static void test_open_frames(void **state)
{
	enum { EVENTS = 10000 };
	enum stackin_format is;
	struct out o = { 0 };
	char *why;

	out_str(&o, "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"type\":"
		    "\"evented\",\"startValue\":0,\"events\":[");
	for (int i = 0; i < EVENTS; i++)
		out_printf(&o, "%s{\"type\":\"O\",\"frame\":0,\"at\":%d}", i ? "," : "", i);
	out_str(&o, "]}]}");
	free(read_folded(o.v, o.n, o.n, NULL, &is, &why));
	assert_non_null(why);
	assert_non_null(strstr(why, "more frames than its size allows"));
	free(why);
	out_fini(&o);
}

/* Few bytes of JSON that would be many of memory. */
static void test_room(void **state)
{
	enum { OBJECTS = 10 << 20 };
	enum stackin_format is;
	struct out o = { 0 };
	char *why;

	(void)state;
	out_str(&o, "{\"shared\":{\"frames\":[");
	for (int i = 0; i < OBJECTS; i++)
		out_mem(&o, "{},", 3);
	out_str(&o, "{}]},\"profiles\":[]}");
	free(read_folded(o.v, o.n, o.n, NULL, &is, &why));
	assert_non_null(why);
	assert_non_null(strstr(why, "too much for one of 30 MB"));
	free(why);
	out_fini(&o);
}

/* --- perf.data --- */

static void u32(struct out *o, uint32_t v)
{
	out_mem(o, &v, 4);
}

static void u64(struct out *o, uint64_t v)
{
	out_mem(o, &v, 8);
}

enum {
	IDS = 1 << 16 | 1 << 0 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 8
}; /* identifier ip tid time callchain period */

static void attr(struct out *o, uint32_t type, uint64_t config)
{
	size_t at = o->n;

	u32(o, type);
	u32(o, 128);
	u64(o, config);
	u64(o, 999);
	u64(o, IDS);
	u64(o, 0);
	u64(o, 1 << 18); /* sample_id_all */
	out_fill(o, '\0', 128 - (o->n - at));
}

static size_t begin(struct out *o, uint32_t type, uint16_t misc)
{
	u32(o, type);
	u32(o, misc);
	return o->n - 8;
}

static void end(struct out *o, size_t at)
{
	uint16_t size = (uint16_t)(o->n - at);

	memcpy(o->v + at + 6, &size, 2);
}

/* The end of each record that is no sample. */
static void sample_id(struct out *o, uint32_t pid, uint64_t time)
{
	u32(o, pid);
	u32(o, pid);
	u64(o, time);
	u64(o, 1);
}

static void padded(struct out *o, const char *s, size_t n)
{
	out_mem(o, s, strlen(s));
	out_fill(o, '\0', n - strlen(s));
}

static void comm(struct out *o, uint32_t pid, const char *name, uint64_t time)
{
	size_t at = begin(o, 3, 0);

	u32(o, pid);
	u32(o, pid);
	padded(o, name, 16);
	sample_id(o, pid, time);
	end(o, at);
}

static void map(struct out *o, uint32_t pid, uint64_t start, uint64_t len, const char *path,
		uint64_t time)
{
	size_t at = begin(o, 10, 2);

	u32(o, pid);
	u32(o, pid);
	u64(o, start);
	u64(o, len);
	u64(o, 0);
	out_fill(o, '\0', 24);
	u32(o, 5); /* read, execute */
	u32(o, 2);
	padded(o, path, 24);
	sample_id(o, pid, time);
	end(o, at);
}

static void fork_of(struct out *o, uint32_t pid, uint32_t ppid, uint64_t time)
{
	size_t at = begin(o, 7, 0);

	u32(o, pid);
	u32(o, ppid);
	u32(o, pid);
	u32(o, ppid);
	u64(o, time);
	sample_id(o, ppid, time);
	end(o, at);
}

static void sample(struct out *o, uint64_t id, uint32_t pid, uint64_t time, uint64_t period,
		   uint64_t kernel, uint64_t user)
{
	size_t at = begin(o, 9, kernel ? 1 : 2);

	u64(o, id);
	u64(o, kernel ? kernel : user);
	u32(o, pid);
	u32(o, pid);
	u64(o, time);
	u64(o, period);
	u64(o, (kernel ? 2 : 0) + (user ? 2 : 0));
	if (kernel) {
		u64(o, (uint64_t)-128);
		u64(o, kernel);
	}
	if (user) {
		u64(o, (uint64_t)-512);
		u64(o, user);
	}
	end(o, at);
}

static void round_end(struct out *o)
{
	end(o, begin(o, 68, 0));
}

/* Records of two CPUs, one after the other in each round. */
static void put_records(struct out *o)
{
	size_t at;

	comm(o, 10, "prog", 1);
	map(o, 10, 0x1000, 0x1000, "/bin/prog", 2);
	sample(o, 1, 10, 50, 100, 0, 0x1010);
	sample(o, 1, 20, 60, 1, 0,
	       0x1010); /* of the second CPU's fork, which comes later in the file */
	round_end(o);
	fork_of(o, 20, 10, 55);
	map(o, 20, 0x1800, 0x100, "/lib/other.so", 70); /* over a part of prog's */
	sample(o, 1, 20, 65, 2, 0, 0x1810);
	sample(o, 1, 20, 80, 4, 0xffffffff81000010, 0x1810);
	sample(o, 1, 20, 90, 8, 0, 0x1910);
	sample(o, 2, 20, 90, 1000, 0, 0x1910); /* another event */
	sample(o, 1, 30, 95, 16, 0, 0x10);     /* nobody told of this one */
	round_end(o);
	at = begin(o, 2, 0); /* LOST */
	u64(o, 1);
	u64(o, 17);
	sample_id(o, 10, 100);
	end(o, at);
	round_end(o);
}

static const char perf_folded[] =
	":30;[unknown] 16\nprog;[other.so];[[kernel.kallsyms]] 4\nprog;[prog] 111\n";

static void test_perf_data(void **state)
{
	struct stackin_options plain = { .no_symbols = true },
			       other = { .no_symbols = true, .event = "task-clock" };
	struct out o = { 0 }, records = { 0 };
	size_t ids, attrs, data, cut;
	uint64_t v;

	put_records(&records);
	out_mem(&o, "PERFILE2", 8);
	u64(&o, 104);
	u64(&o, 128 + 16);
	ids = 104;
	attrs = ids + 16;
	data = attrs + 2 * (128 + 16);
	u64(&o, attrs);
	u64(&o, 2 * (128 + 16));
	u64(&o, data);
	u64(&o, records.n);
	out_fill(&o, '\0', 16 + 32);
	assert_int_equal(o.n, 104);
	u64(&o, 1);
	u64(&o, 2);
	for (v = 0; v < 2; v++) {
		attr(&o, 1, v);
		u64(&o, ids + 8 * v);
		u64(&o, 8);
	}
	out_mem(&o, records.v, records.n);
	expect_note(STACKIN_PERFDATA, &o, &plain, perf_folded, "lost 17 events");
	expect_note(STACKIN_PERFDATA, &o, &other, "prog;[prog] 1000\n", "lost 17");
	for (cut = o.n - 1; cut > 8; cut -= cut > 2000 ? 97 : 1) {
		enum stackin_format format;
		char *why, *out = read_folded(o.v, cut, cut, &plain, &format, &why);

		assert_non_null(why); /* never in silence */
		free(out);
		free(why);
	}
	/* the same to a pipe, and compressed there */
	for (int zstd = 0; zstd < 2; zstd++) {
		o.n = 0;
		out_mem(&o, "PERFILE2", 8);
		u64(&o, 16);
		for (v = 0; v < 2; v++) {
			size_t at = begin(&o, 64, 0);

			attr(&o, 1, v);
			u64(&o, v + 1);
			end(&o, at);
		}
		if (!zstd) {
			out_mem(&o, records.v, records.n);
		} else {
			ZSTD_CStream *z = ZSTD_createCStream();
			char block[8192];

			/* one stream cut into records, records cut in two by that */
			for (size_t done = 0; done < records.n; done += 100) {
				size_t n = records.n - done < 100 ? records.n - done : 100, at;
				ZSTD_inBuffer from = { records.v + done, n, 0 };
				ZSTD_outBuffer to = { block, sizeof(block), 0 };

				assert_false(ZSTD_isError(
					ZSTD_compressStream2(z, &to, &from, ZSTD_e_flush)));
				at = begin(&o, 81, 0);
				out_mem(&o, block, to.pos);
				end(&o, at);
			}
			ZSTD_freeCStream(z);
		}
		expect_note(STACKIN_PERFDATA, &o, &plain, perf_folded, "lost 17 events");
	}
	out_fini(&o);
	out_fini(&records);
}

static void test_gzip(void **state)
{
	struct out o = { 0 };
	z_stream z = { 0 };
	char block[4096];

	/* two members, one behind the other, as concatenated files are */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, 0), Z_OK);
		z.next_in = (Bytef *)stacks;
		z.avail_in = sizeof(stacks) - 1;
		z.next_out = (Bytef *)block;
		z.avail_out = sizeof(block);
		assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
		out_mem(&o, block, sizeof(block) - z.avail_out);
		deflateEnd(&z);
	}
	expect(STACKIN_FOLDED, &o, NULL,
	       "main;a;b 6\nmain;a;libc.so.6`malloc 10\nmain;vfs_read_[k] 14\n");
	o.n -= 3;
	{
		enum stackin_format format;
		char *why, *out = read_folded(o.v, o.n, o.n, NULL, &format, &why);

		assert_non_null(strstr(why, "cut off"));
		free(out);
		free(why);
	}
	out_fini(&o);
}

static void test_chain(void **state)
{
	struct out o = { 0 };

	out_str(&o,
		"wakeup 12 waker a\n              vmlinux`wake+0x1\n\n              libc.so.6`write+0x2\n"
		"              w`main+0x3\n"
		"offcpu 12 500 sleeper\n              vmlinux`schedule+0x1\n\n              s`wait+0x1\n"
		"offcpu 12 20 sleeper\n              vmlinux`schedule+0x1\n"
		"wakeup 13 other\noffcpu 13 7 third\n");
	expect(STACKIN_CHAIN, &o, NULL,
	       "sleeper;s`wait;vmlinux`schedule;--;vmlinux`wake_[w];libc.so.6`write_[w];w`main_[w];waker a_[w] 500\n"
	       "sleeper;vmlinux`schedule 20\nthird;--;other_[w] 7\n");
	out_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written),   cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_pprof),     cmocka_unit_test(test_speedscope),
		cmocka_unit_test(test_room),      cmocka_unit_test(test_open_frames),
		cmocka_unit_test(test_perf_data), cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
