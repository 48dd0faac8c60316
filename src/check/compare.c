/* Compares the devices of two machines. */
#define _GNU_SOURCE
#include "check/hardware.h"

#include <errno.h>
#include <jansson.h>

static const struct check_column columns[] = {
	{ "difference", CHECK_COLUMN }, { "bus", CHECK_COLUMN },   { "name", CHECK_COLUMN },
	{ "here", CHECK_COLUMN },       { "there", CHECK_COLUMN },
};

static const char *compare_text_of(const json_t *device, const char *key)
{
	return json_string_value(json_object_get(device, key));
}

/* Returns the first device of theirs that is of our device's kind and not taken yet. Addresses
 * differ between machines, so they are not compared. */
static json_t *counterpart(json_t *theirs, bool *taken, const char *modalias)
{
	for (size_t i = 0; i < json_array_size(theirs); i++) {
		json_t *d = json_array_get(theirs, i);
		const char *m = compare_text_of(d, "modalias");

		if (!taken[i] && m && !strcmp(m, modalias)) {
			taken[i] = true;
			return d;
		}
	}
	return NULL;
}

static bool same(const char *a, const char *b)
{
	return !a || !b ? a == b : !strcmp(a, b);
}

static void compare(const struct check_table *mine, json_t *theirs, struct check_table *ret)
{
	bool *taken = xcalloc(json_array_size(theirs) + 1, sizeof(*taken));

	for (uint32_t i = 0; i < check_rows(mine); i++) {
		const char *driver = check_cell(mine, i, HW_DRIVER);
		json_t *d = counterpart(theirs, taken, check_cell(mine, i, HW_MODALIAS));
		const char *other = d ? compare_text_of(d, "driver") : NULL;

		if (d && same(driver, other))
			continue;
		check_row(ret, (const char *const[]){ d ? "other driver" : "only here",
						      check_cell(mine, i, HW_BUS),
						      check_cell(mine, i, HW_NAME),
						      driver ? driver : "no driver",
						      !d      ? NULL
						      : other ? other
							      : "no driver" });
	}
	for (size_t i = 0; i < json_array_size(theirs); i++) {
		json_t *d = json_array_get(theirs, i);
		const char *driver = compare_text_of(d, "driver");

		if (!taken[i])
			check_row(ret,
				  (const char *const[]){ "only there", compare_text_of(d, "bus"),
							 compare_text_of(d, "name"), NULL,
							 driver ? driver : "no driver" });
	}
	free(taken);
}

struct err *hardware_compare(const struct check_table *mine, const char *path,
			     struct check_table *ret)
{
	json_error_t wrong;
	json_t *all = !strcmp(path, "-") ? json_loadf(stdin, 0, &wrong)
					 : json_load_file(path, 0, &wrong);
	json_t *theirs = json_object_get(all, "hardware");
	struct err *e = NULL;

	check_table_init(ret, "differences", "Differences to the other machine", columns,
			 ARRAY_SIZE(columns));
	if (!all)
		e = err_new(EINVAL, "%s: %s", path, wrong.text);
	else if (!json_is_array(theirs))
		e = err_new(EINVAL, "%s is not the output of descry check --hardware --json", path);
	else
		compare(mine, theirs, ret);
	if (!e && !check_rows(ret))
		check_note(ret, "both machines have the same %u devices with the same drivers",
			   check_rows(mine));
	json_decref(all);
	return e;
}
