#define _GNU_SOURCE
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/outfile.h"
#include "base/term.h"
#include "base/utf8.h"

static void expect(const char *text, size_t n, const char *want)
{
	cleanup_free char *got = term_text(text, n);

	assert_string_equal(got, want);
	assert_int_equal(term_changes(text, n), strlen(want) != n || memcmp(want, text, n) != 0);
}
#define EXPECT(text, want) expect(text, sizeof(text) - 1, want)

static void test_escapes(void **state)
{
	EXPECT("plain\ttext\n", "plain\ttext\n");
	EXPECT("a\033[2Jb\rc\177\a", "a\\033[2Jb\\015c\\177\\007");
	EXPECT("nul\0.", "nul\\000.");
	/* C1: CSI as UTF-8 and as a byte */
	EXPECT("\302\233x\233y", "\\302\\233x\\233y");
	/* right-to-left override, isolate, Arabic letter mark, line separator, byte order mark */
	EXPECT("\342\200\256\342\201\246\330\234\342\200\250\357\273\277",
	       "\\342\\200\\256\\342\\201\\246\\330\\234\\342\\200\\250\\357\\273\\277");
	/* text stays: accents, box drawing, CJK, emoji */
	EXPECT("\303\251\342\224\202\346\274\242\360\237\230\200",
	       "\303\251\342\224\202\346\274\242\360\237\230\200");
	/* overlong, surrogate, past U+10FFFF, truncated, a lone continuation byte */
	EXPECT("\300\257\355\240\200\364\220\200\200\342\202",
	       "\\300\\257\\355\\240\\200\\364\\220\\200\\200\\342\\202");
	EXPECT("\200", "\\200");
}

static void test_cut(void **state)
{
	assert_true(utf8_is_cut("\342\202", 2));
	assert_true(utf8_is_cut("\360", 1));
	assert_false(utf8_is_cut("\342\202\254", 3));
	assert_false(utf8_is_cut("\342x", 2));
	assert_false(utf8_is_cut("a", 1));
	assert_false(utf8_is_cut("\377", 1));
	assert_false(utf8_is_cut("", 0));
}

/* Reads n bytes from the other end of a terminal. */
static void expect_read(int master, const char *want)
{
	char got[256];
	size_t n = 0;

	while (n < strlen(want)) {
		ssize_t more = read(master, got + n, strlen(want) - n);

		assert_true(more > 0);
		n += (size_t)more;
	}
	assert_memory_equal(got, want, n);
}

static void test_stream(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	cleanup_free char *path = NULL;
	struct termios t;
	FILE *f, *null;

	assert_true(master >= 0 && !grantpt(master) && !unlockpt(master));
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY); /* wherever /dev/pts is mounted */
	assert_true(slave >= 0);
	path = xasprintf("/proc/self/fd/%d", slave);
	assert_false(tcgetattr(slave, &t));
	cfmakeraw(&t);
	assert_false(tcsetattr(slave, TCSANOW, &t));
	f = term_file(outfile_open(path, OUTFILE_SHARED));
	assert_non_null(f);
	assert_true(term_is(f));
	fputs("\033[1m\n", f);
	expect_read(master, "\\033[1m\n");
	term_raw(f, "\033[1m", 4);
	expect_read(master, "\033[1m");
	/* a character split between two writes stays whole; half a character is escaped when
	 * another follows, or at the end */
	fputs("\303", f);
	fflush(f);
	fputs("\251\342\202", f);
	fflush(f);
	expect_read(master, "\303\251");
	fputs("x\302", f);
	fflush(f);
	expect_read(master, "\\342\\202x");
	fclose(f);
	expect_read(master, "\\302");
	null = term_file(outfile_open("/dev/null", OUTFILE_SHARED));
	assert_non_null(null);
	assert_false(term_is(null));
	fclose(null);
	close(slave);
	close(master);
}

static void test_number(void **state)
{
	static const char *const bad[] = {
		"",    " 1",  "1 ", "+1", "0x10", "1e3",        "-",
		"--1", "1.0", "a",  "6",  "-6",   "4294967297", "18446744073709551617",
		"\n1"
	};
	int64_t v = 77;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(number_parse(bad[i], -5, 5, &v));
		assert_int_equal(v, 77);
	}
	assert_true(number_parse("5", -5, 5, &v));
	assert_int_equal(v, 5);
	assert_true(number_parse("-5", -5, 5, &v));
	assert_int_equal(v, -5);
	assert_true(number_parse("007", 0, 10, &v));
	assert_int_equal(v, 7);
	assert_true(number_parse("-9223372036854775808", INT64_MIN, INT64_MAX, &v));
	assert_int_equal(v, INT64_MIN);
	assert_false(number_parse("9223372036854775808", INT64_MIN, INT64_MAX, &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
