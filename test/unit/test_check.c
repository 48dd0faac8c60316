#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/io.h"
#include "check/hardware.h"
#include "check/journal.h"
#include "check/small.h"
#include "check/tunable.h"
#include "unit.h"

static void same_values(void **state)
{
	assert_true(tunable_same("4096\t131072\t6291456", " 4096 131072 6291456\n"));
	assert_true(tunable_same("00000000,00000003", "3"));
	assert_true(tunable_same("007", "7"));
	assert_true(tunable_same("0", "0000"));
	assert_false(tunable_same("0,2", "2"));
	assert_false(tunable_same("00000001,00000003", "3"));
	assert_false(tunable_same("1 2", "12"));
	assert_false(tunable_same("1", ""));
	assert_false(tunable_same("none", "none1"));
}

static void chosen_word(void **state)
{
	char *a = small_chosen("none [mq-deadline] kyber"), *b = small_chosen("cubic"),
	     *c = small_chosen("[broken");

	assert_string_equal(a, "mq-deadline");
	assert_string_equal(b, "cubic");
	assert_string_equal(c, "[broken");
	free(a);
	free(b);
	free(c);
}

static void names_of_ids(void **state)
{
	static const char text[] = "# comment\n"
				   "10de  Other\n\t0001  First\n"
				   "8086  Intel\n\t0001  One\n\t\t1af4 0001  Sub\n\t0002  Two\n"
				   "C 02  Network\n\t00  Ethernet\n\t80  Other network\n";
	char *two = ids_name(text, 0x8086, 2), *vendor = ids_name(text, 0x10de, 2);
	char *class = ids_class(text, 2, 0x80), *nothing = ids_name(text, 0x1234, 1);

	assert_string_equal(two, "Intel Two");
	/* The device of the next vendor is not this one's. */
	assert_string_equal(vendor, "Other");
	assert_string_equal(class, "Other network");
	assert_null(nothing);
	assert_null(ids_name(NULL, 1, 1));
	free(two);
	free(vendor);
	free(class);
}

/* Aliases of module files and of built-in modules; truncated files. */
static void drivers(void **state)
{
	char aliases[] =
		"alias pci:v00008086d0000100E* e1000\nalias pci:v* any_pci\nalias\nalias x";
	char builtin[] =
		"core.license=GPL\0core.alias=pci:v00008086d*\0any_pci.alias=pci:*\0.alias=";
	struct modules m = { .aliases = aliases,
			     .builtin = builtin,
			     .builtin_size = sizeof(builtin) - 1 };
	char *list = modules_for(&m, "pci:v00008086d0000100Esv0"),
	     *none = modules_for(&m, "usb:v1");

	assert_string_equal(list, "e1000 any_pci core");
	assert_null(none);
	free(list);
}

static void rows(void **state)
{
	static const struct check_column columns[] = { { "a", CHECK_COLUMN },
						       { "b", CHECK_BELOW } };
	struct check_table t;

	check_table_init(&t, "s", "T", columns, 2);
	check_row(&t, (const char *const[]){ "1", NULL });
	check_row(&t, (const char *const[]){ "2", "x" });
	check_note(&t, "%d notes", 1);
	assert_int_equal(check_rows(&t), 2);
	assert_null(check_cell(&t, 0, 1));
	assert_string_equal(check_cell(&t, 1, 1), "x");
	assert_string_equal(t.notes.v[0], "1 notes");
	check_table_fini(&t);
}

static void put_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

struct applied {
	const char *path;
	struct tunables all;
	struct err *e;
};

static void *apply_seven(void *arg)
{
	struct applied *a = arg;
	FILE *out = fopen("/dev/null", "w");

	a->e = journal_apply(a->path, &a->all, "knob", "7", out);
	fclose(out);
	return NULL;
}

/* Returns true when somebody waits for the lock of the file. */
static bool is_awaited(uint64_t inode)
{
	cleanup_free char *text = NULL, *end = xasprintf(":%llu 0 EOF", (unsigned long long)inode);
	char *save;
	size_t n;

	assert_null(io_read_file("/proc/locks", &text, &n));
	for (char *s = strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save))
		if (strstr(s, "-> FLOCK") && strstr(s, end))
			return true;
	return false;
}

/* A command waits for another one that undoes the last change and removes the journal. */
static void journal_removed(void **state)
{
	char dir[] = "/tmp/descry-journal-XXXXXX";
	cleanup_free char *path = NULL, *knob = NULL, *text = NULL;
	struct tunable t = { .name = "knob" };
	struct applied a = { 0 };
	struct stat st;
	pthread_t thread;
	size_t n;
	int fd;

	assert_non_null(mkdtemp(dir));
	a.path = path = xasprintf("%s/tuned", dir);
	t.path = knob = xasprintf("%s/knob", dir);
	vec_push(&a.all.v, t);
	put_text(knob, "5\n");
	put_text(path, "boot\tknob\t1\t5\n");
	fd = open(path, O_RDWR);
	assert_true(fd >= 0 && !fstat(fd, &st) && !flock(fd, LOCK_EX));
	assert_int_equal(pthread_create(&thread, NULL, apply_seven, &a), 0);
	while (!is_awaited(st.st_ino))
		usleep(10000);
	put_text(knob, "1\n");
	unlink(path);
	close(fd);
	pthread_join(thread, NULL);
	assert_null(a.e);
	assert_null(io_read_file(path, &text, &n));
	assert_non_null(strstr(text, "\tknob\t1\t7\n"));
	vec_fini(&a.all.v);
	unlink(path);
	unlink(knob);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_values),  cmocka_unit_test(chosen_word),
		cmocka_unit_test(names_of_ids), cmocka_unit_test(drivers),
		cmocka_unit_test(rows),         cmocka_unit_test(journal_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
