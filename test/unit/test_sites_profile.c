/* src/memory/sites/sites_profile.c: profiles that are made up. */
#include "unit.h"

#include "memory/sites/sites_profile.h"

#define FRAME(function, url, line) \
	"\"callFrame\":{\"functionName\":\"" function "\",\"url\":\"" url \
	"\",\"lineNumber\":" line "}"

static struct err *read_text(const char *text, struct sites_profile *ret)
{
	json_t *o = json_loads(text, 0, NULL);
	struct err *e;

	assert_non_null(o);
	e = sites_profile_read(o, 1000, ret);
	json_decref(o);
	return e;
}

static char *shown(const struct sites_profile *p, bool json)
{
	struct out o;
	char *text;

	out_init(&o, NULL);
	sites_profile_show(p, 10, json, &o);
	out_char(&o, '\0');
	text = xstrdup(o.v);
	out_fini(&o);
	return text;
}

static const char profile[] = "{\"profile\":{\"head\":{" FRAME(
	"(root)", "",
	"-1") ",\"selfSize\":7,\"id\":1,\"children\":["
	      "{" FRAME(
		      "keep", "file:///a/b.js",
		      "4") ",\"selfSize\":100,\"id\":2,\"children\":["
			   "{" FRAME(
				   "push", "",
				   "-1") ",\"selfSize\":20,\"id\":3,\"children\":[]},"
					 "{" FRAME(
						 "", "/a/c\\nd;.js",
						 "0") ",\"selfSize\":3,\"id\":4,\"children\":[]}]}]},"
						      "\"samples\":[{\"size\":50,\"nodeId\":2},{\"size\":50,\"nodeId\":2},{\"size\":20,\"nodeId\":3},"
						      "{\"size\":3,\"nodeId\":4},{\"size\":7,\"nodeId\":1},{\"size\":7,\"nodeId\":99},5]}}";

static void profile_rows_and_stacks(void **state)
{
	struct sites_profile p;
	struct stacktree t;
	cleanup_free char *text = NULL, *json = NULL;

	assert_null(read_text(profile, &p));
	assert_int_equal(p.bytes, 130);
	assert_int_equal(p.samples, 5);
	text = shown(&p, false);
	assert_non_null(strstr(text, "estimated from 5 samples, one for each 1000 bytes\n"));
	assert_non_null(strstr(text, "           120        3  /a/b.js:5:keep\n"));
	assert_non_null(strstr(text, "             7        1  [javascript]\n"));
	assert_non_null(strstr(text, "             3        1  /a/c?d;.js:1:(anonymous)\n"));
	json = shown(&p, true);
	assert_non_null(strstr(
		json,
		"\"live_bytes\":120,\"file\":\"/a/b.js\",\"line\":5,\"function\":\"keep\"}\n"));
	stacktree_init(&t);
	sites_profile_stacktree(&p, &t);
	assert_int_equal(t.nodes.v[STACKTREE_ROOT].total, 130);
	assert_int_equal(t.depth, 2);
	stacktree_fini(&t);
	sites_profile_fini(&p);
}

/* A chain of functions that is deeper than any is refused. */
static void profile_deep(void **state)
{
	struct sites_profile p;
	json_t *node = json_pack("{s:i}", "id", 1), *o;

	for (int i = 0; i < 2000; i++)
		node = json_pack("{s:i,s:[o]}", "id", i, "children", node);
	o = json_pack("{s:{s:o}}", "profile", "head", node);
	assert_true(err_drop(sites_profile_read(o, 1000, &p)));
	json_decref(o);
}

/* Many leaves below a long chain are added below the chain's nodes, and not stack by stack. */
static void profile_chain(void **state)
{
	enum { DEPTH = 1000, LEAVES = 20000, NAME = 100000 };
	cleanup_free char *name = xmalloc(NAME + 1);
	json_t *leaves = json_array(), *node, *o;
	struct sites_profile p;
	struct stacktree t;

	for (int i = 0; i < LEAVES; i++) {
		char text[16];

		snprintf(text, sizeof(text), "f%d", i);
		json_array_append_new(leaves, json_pack("{s:i,s:i,s:{s:s}}", "id", i, "selfSize", 3,
							"callFrame", "functionName", text));
	}
	memset(name, 'n', NAME); /* of characters of two bytes behind the first */
	for (int i = 1; i + 1 < NAME; i += 2)
		memcpy(name + i, "\xc3\xa9", 2);
	name[NAME] = '\0';
	node = json_pack("{s:i,s:{s:s},s:o}", "id", LEAVES, "callFrame", "functionName", name,
			 "children", leaves);
	for (int i = 0; i < DEPTH - 1; i++)
		node = json_pack("{s:i,s:{s:s},s:[o]}", "id", LEAVES + 1 + i, "callFrame",
				 "functionName", "again", "children", node);
	o = json_pack("{s:{s:o}}", "profile", "head", node);
	assert_null(sites_profile_read(o, 1000, &p));
	json_decref(o);
	stacktree_init(&t);
	sites_profile_stacktree(&p, &t);
	assert_int_equal(t.nodes.n, 1 + DEPTH - 1 + LEAVES);
	assert_int_equal(t.nodes.v[STACKTREE_ROOT].total, 3 * LEAVES);
	assert_int_equal(t.depth, DEPTH);
	assert_null(t.ids.v); /* no whole stack was added */
	for (uint32_t i = 0; i < t.frames.n; i++)
		assert_true(t.frames.v[i].len <= 4096 + 2);
	/* no half of a character */
	for (uint32_t i = 0; i < t.frames.n; i++)
		if (t.frames.v[i].len > 100)
			assert_memory_equal(t.frames.v[i].text + t.frames.v[i].len - 4,
					    "\xc3\xa9..", 4);
	stacktree_fini(&t);
	sites_profile_fini(&p);
}

static void profile_wrong(void **state)
{
	static const char *const wrong[] = { "{}", "[]", "{\"profile\":5}",
					     "{\"profile\":{\"head\":[]}}",
					     "{\"profile\":{\"head\":{\"children\":[5]}}}" };
	struct sites_profile p;
	cleanup_free char *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_true(err_drop(read_text(wrong[i], &p)));
	/* nothing fits, and nothing is invented */
	assert_null(read_text(
		"{\"profile\":{\"head\":{\"selfSize\":-5,\"id\":1e300,\"callFrame\":[],\"children\":{}},\"samples\":{}}}",
		&p));
	assert_int_equal(p.bytes, 0);
	text = shown(&p, true);
	assert_null(strstr(text, "allocated-site"));
	sites_profile_fini(&p);
}

/* Every profile with one byte changed that is JSON still. */
static void profile_changed(void **state)
{
	for (size_t i = 0; i < sizeof(profile) - 1; i++)
		for (size_t k = 0; k < 8; k++) {
			cleanup_free char *text = xstrdup(profile), *rows = NULL;
			struct sites_profile p;
			json_t *o;

			text[i] = "0\"]}{:,-"[k];
			o = json_loads(text, 0, NULL);
			if (!o || err_drop(sites_profile_read(o, 1000, &p))) {
				json_decref(o);
				continue;
			}
			rows = shown(&p, false);
			json_decref(o);
			sites_profile_fini(&p);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_rows_and_stacks), cmocka_unit_test(profile_deep),
		cmocka_unit_test(profile_chain),           cmocka_unit_test(profile_wrong),
		cmocka_unit_test(profile_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
