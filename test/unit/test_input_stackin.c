/* The readers of other tools' stacks: the frames of their lines, and recognition of the format. */
#include "unit.h"

#include "input/stackin/stackin.h"
#include "render/folded.h"

/* Reads `text` in pieces of `piece` bytes. */
static char *read_pieces(const char *text, size_t piece, const struct stackin_options *o,
			 enum stackin_format *ret_format, uint64_t *ret_skipped)
{
	struct stacktree t;
	struct stackin in;
	struct out out = { 0 };
	size_t n = strlen(text);

	stacktree_init(&t);
	stackin_init(&in, &t, o);
	for (size_t i = 0; i < n; i += piece)
		stackin_feed(&in, text + i, n - i < piece ? n - i : piece);
	err_free(stackin_end(&in));
	*ret_format = in.format;
	*ret_skipped = in.skipped;
	stackin_fini(&in);
	stacktree_finish(&t);
	folded_write(&t, FOLDED_WHOLE, &out);
	out_char(&out, '\0');
	stacktree_fini(&t);
	return out.v;
}

static void expect_skips(enum stackin_format format, const struct stackin_options *o,
			 const char *text, const char *folded, uint64_t skips)
{
	for (size_t piece = 1; piece < 100000; piece *= 7) {
		enum stackin_format is;
		uint64_t skipped;
		cleanup_free char *out = read_pieces(text, piece, o, &is, &skipped);

		assert_string_equal(out, folded);
		assert_int_equal(is, format);
		assert_int_equal(skipped, skips);
	}
}

static void expect(enum stackin_format format, const char *text, const char *folded)
{
	expect_skips(format, NULL, text, folded, 0);
}

static void test_folded(void **state)
{
	struct stackin_options tenth = { .factor = 0.1 };

	expect(STACKIN_FOLDED, "a;b 1\na;c 2\n\na;b 3", "a;b 4\na;c 2\n");
	expect(STACKIN_FOLDED, "a;b  c 1.5\n", "a;b  c 2\n");
	expect(STACKIN_FOLDED, "a;b 10 20\na;c 5 0\r\n", "a;b 10 20\na;c 5 0\n");
	expect(STACKIN_FOLDED, "a;b 1\na;c 2 3\n",
	       "a;b 1\na;c 2 3\n"); /* the name is "c 2": the first line has one count */
	expect_skips(STACKIN_FOLDED, NULL, "a;b 1\nnonsense\n5\na;c x\n", "a;b 1\n", 3);
	expect_skips(STACKIN_FOLDED, &tenth, "a;b 25\n", "a;b 3\n", 0);
	expect(STACKIN_FOLDED, "", "");
}

/* Names of a megabyte are cut off. */
static void test_long_names(void **state)
{
	enum { LONG = 1 << 20, MAX = 65536 + 64 };
	struct stackin_options module = { .module = true };
	cleanup_free char *name = xmalloc(LONG + 1), *text = NULL, *out = NULL;
	enum stackin_format is;
	uint64_t skipped;
	uint32_t longest = 0, n = 0;

	memset(name, 'x', LONG);
	name[LONG] = '\0';
	text = xasprintf(
		"prog 1/2 [000] 1.5: 10 cycles:u:\n\t 10 f+0x1 (/%s)\n\t 11 %s+0x1 (/lib/m)\n\n",
		name, name);
	out = read_pieces(text, 65536, &module, &is, &skipped);
	assert_int_equal(is, STACKIN_PERF);
	assert_int_equal(skipped, 0);
	for (const char *p = out; *p; p++) {
		n = *p == ';' ? 0 : n + 1;
		longest = n > longest ? n : longest;
	}
	assert_in_range(longest, 65536, MAX);
}

static void test_perf(void **state)
{
	struct stackin_options all = { .kernel = true, .jit = true }, tid = { .tid = true },
			       addrs = { .addrs = true }, module = { .module = true },
			       event = { .event = "other" };
	static const char text[] =
		"# comment\n"
		"my prog 24636/25607 [000] 4794564.109216:       10 cycles:u: \n"
		"\tffffffff8103ce3b native_safe_halt+0x1b ([kernel.kallsyms])\n"
		"\t    7f0000000010 ns::f(int, (anonymous namespace)::T)+0x4 (/usr/lib/libx.so)\n"
		"\t    7f0000000020 [unknown] (/usr/lib/liby.so)\n"
		"\t    7f0000000030 [unknown] ([unknown])\n"
		"\n"
		"java 1/2 [001] 1.5: cycles:u:\n"
		"\t    1234 Lorg/x/Y;::\"run\"->Lorg/x/Z;::call+0x1f (/tmp/perf-12.map)\n"
		"\t    1235 net/http.(*Client).Do (/x/go)\n"
		"\n"
		"other 3 1.5: 7 other:\n"
		"\t    1235 skipped (/x/go)\n"
		"\n";

	expect(STACKIN_PERF, text,
	       "java;net/http.(*Client).Do;org/x/Y:::run;org/x/Z:::call_[i] 1\n"
	       "my_prog;[unknown];[liby.so];ns::f;native_safe_halt 10\n");
	expect_skips(STACKIN_PERF, &all, text,
		     "java;net/http.(*Client).Do;org/x/Y:::run_[j];org/x/Z:::call_[i] 1\n"
		     "my_prog;[unknown];[liby.so];ns::f;native_safe_halt_[k] 10\n",
		     0);
	expect_skips(STACKIN_PERF, &tid, text,
		     "java-1/2;net/http.(*Client).Do;org/x/Y:::run;org/x/Z:::call_[i] 1\n"
		     "my_prog-24636/25607;[unknown];[liby.so];ns::f;native_safe_halt 10\n",
		     0);
	expect_skips(STACKIN_PERF, &event, text, "other;skipped 7\n", 0);
	expect_skips(STACKIN_PERF, &addrs,
		     "ab 1 2.5: 3 c:\n\t 7f0000000020 [unknown] (/l/liby.so)\n"
		     "\t 7f0000000030 [unknown] (/l/liby.so)\n\n",
		     "ab;[liby.so <7f0000000030>];[liby.so <7f0000000020>] 3\n", 0);
	expect_skips(STACKIN_PERF, &module, "ab 1 2.5: 3 c:\n\t 7f20 read+0x1 (/l/liby.so)\n\n",
		     "ab;liby.so`read 3\n", 0);
}

/* A command's name that is longer than any is cut. */
static void test_perf_long_command(void **state)
{
	enum { LONG = 300000, KEPT = 1 << 16 };
	cleanup_free char *name = xmalloc(LONG + 1), *text = NULL, *folded = NULL;

	(void)state;
	memset(name, 'a', LONG);
	name[LONG] = '\0';
	text = xasprintf("pr 1 2.5: 3 c:\n\t10 f+0x1 (/bin/b)\n\n"
			 "%s 1 2.5: 3 c:\n\t10 f+0x1 (/bin/b)\n\n",
			 name);
	folded = xasprintf("%.*s;f 3\npr;f 3\n", KEPT, name);
	expect(STACKIN_PERF, text, folded);
}

/* Lines that stackcollapse-perf.pl misreads. */
static void test_perf_mends(void **state)
{
	expect(STACKIN_PERF, "w 17305 [000]   810.220568:    1001001 cpu-clock: \n\t1 f (/x)\n\n",
	       "w;f 1001001\n");
	expect(STACKIN_PERF, "ab 17305 [000]   810.220568:    5 cpu-clock: \n\t1 f (/x)\n",
	       "ab;f 5\n");
	expect(STACKIN_PERF, "a;b 17305 [000]   810.2:    5 cpu-clock: \n\t1 f (/x)\n",
	       "a;b;f 5\n");
	expect(STACKIN_PERF, "V 8 Worker 17305 [000]   810.2:    5 cpu-clock: \n\t1 f (/x)\n",
	       "V_8_Worker;f 5\n");
	expect(STACKIN_PERF, "node 31912 cpu-clock: \n\t           1a f (/x)\n\n", "node;f 1\n");
}

static void test_dtrace(void **state)
{
	expect(STACKIN_DTRACE,
	       "\n  bash                                              \n"
	       "              vmlinux`do_exit+0x27f\n"
	       "              vmlinux`__x64_sys_exit_group+0x10\n"
	       "               12\n"
	       "  cc1 two                                           \n"
	       "              0x7f012be220f0\n"
	       "                3\n",
	       "bash;vmlinux`__x64_sys_exit_group;vmlinux`do_exit 12\ncc1 two;0x7f012be220f0 3\n");
	/* stacks first, the user's before the kernel's, and keys with the count behind them */
	expect(STACKIN_DTRACE,
	       "CPU     ID                    FUNCTION:NAME\n"
	       "  0   1013                         :tick-1s \n"
	       "\n"
	       "              libc.so.6`read+0xd\n"
	       "              bash`main(int, char**)+0x5\n"
	       "\n"
	       "              vmlinux`vfs_read+0x9\n"
	       "  bash                                                  30467                7\n",
	       "bash;30467;bash`main;libc.so.6`read;vmlinux`vfs_read 7\n");
	/* no aggregation: each event counts one */
	expect(STACKIN_DTRACE,
	       "CPU     ID                    FUNCTION:NAME\n"
	       "  0   1013                       :profile-9 \n"
	       "              vmlinux`vsnprintf+0x9\n"
	       "\n"
	       "              libc.so.6`syscall+0x19\n"
	       "\n"
	       "  1   1013                       :profile-9 \n"
	       "              vmlinux`vsnprintf+0x12\n"
	       "\n"
	       "              libc.so.6`syscall+0x19\n"
	       "\n",
	       "libc.so.6`syscall;vmlinux`vsnprintf 2\n");
	expect(STACKIN_DTRACE,
	       "\n              a`b+0x1\n\n"
	       "           value  ------------- Distribution ------------- count    \n"
	       "               0 |                                         0        \n"
	       "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@               2        \n"
	       "               2 |@@@@@@@@@@@@@                            1        \n\n",
	       "a`b 3\n");
	/* no kernel stack: an empty line behind the keys */
	expect(STACKIN_DTRACE,
	       "  sh                  5\n\n              libc.so.6`read+0x8\n              sh`main\n                1\n"
	       "  sh                  5\n\n              sh`main\n                2\n",
	       "sh;5;sh`main 2\nsh;5;sh`main;libc.so.6`read 1\n");
	/* at the margin, as printa("%k%@d\n") prints them */
	expect_skips(
		STACKIN_DTRACE, NULL,
		"microseconds\n\nlibc.so.6`read+0x8\nsh`main\n              64\n\n\nlibc.so.6`open+0x1\nsh`main\n 7\n\n",
		"sh`main;libc.so.6`open 7\nsh`main;libc.so.6`read 64\n", 1);
}

static void test_bpftrace(void **state)
{
	expect_skips(STACKIN_BPFTRACE, NULL,
		     "Attaching 2 probes...\n\n\n"
		     "@[\n    ep_poll+677\n    sys_epoll_wait+0x12\n]: 11\n"
		     "@s[bash, \n    k1+1\n    k2+2\n, \n    u1+1\n    u2+1\n, 77]: 5\n"
		     "@[\n    ep_poll+12\n    sys_epoll_wait+99\n]: 1\n"
		     "@[a, b]: 3\n",
		     "a;b 3\nbash;77;u2;u1;k2;k1 5\nsys_epoll_wait;ep_poll 12\n", 1);
}

static void test_systemtap(void **state)
{
	expect(STACKIN_SYSTEMTAP,
	       " 0xffffffff8103ce3b : native_safe_halt+0xb/0x10 [kernel]\n"
	       " 0xffffffff8101c6a3 : default_idle+0x53/0x1d0 [kernel]\n"
	       "\t2404\n"
	       " 0xffffffff8103ce3b : native_safe_halt+0xb/0x10\n"
	       "\t1\n",
	       "default_idle;native_safe_halt 2404\nnative_safe_halt 1\n");
}

/* Any bytes at all: nothing is expected but that it ends. */
static void test_noise(void **state)
{
	static const char *const words[] = { "a",
					     ";",
					     " ",
					     "\t",
					     "\n",
					     "(",
					     ")",
					     "->",
					     "+0x1",
					     "[unknown]",
					     "@[",
					     "]: ",
					     "12",
					     ":",
					     "`",
					     "\xff",
					     "\n\n",
					     "0x1 : f",
					     "  ",
					     "|",
					     "perf 1 2.5: 3 c:\n",
					     "- Distribution -",
					     "FUNCTION:NAME",
					     ",",
					     " (",
					     ".",
					     "\"",
					     "_[k]" };
	uint64_t seed = 1;

	for (int round = 0; round < 3000; round++) {
		char text[512] = "";
		enum stackin_format is;
		uint64_t skipped;
		struct stackin_options o = { .format = (enum stackin_format)(round %
									     STACKIN_NFORMATS),
					     .kernel = round & 1,
					     .jit = round & 2,
					     .addrs = round & 4,
					     .module = round & 8,
					     .tid = round & 16 };

		for (size_t n = 0; n < 480;) {
			const char *w;

			seed = seed * 6364136223846793005 + 1442695040888963407;
			w = words[(seed >> 33) % ARRAY_SIZE(words)];
			strcpy(text + n, w);
			n += strlen(w);
		}
		free(read_pieces(text, 1 + (size_t)round % 100, &o, &is, &skipped));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_perf),
		cmocka_unit_test(test_perf_mends),
		cmocka_unit_test(test_perf_long_command),
		cmocka_unit_test(test_dtrace),
		cmocka_unit_test(test_bpftrace),
		cmocka_unit_test(test_systemtap),
		cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
