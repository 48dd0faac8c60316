/* The D parser on any bytes. The first byte chooses how the source is read, the rest is its text.
 * Checks: every node has a place within the source and a bounded height; a copy prints as its
 * original does.
 */
#define _GNU_SOURCE
#include <assert.h>

#include "base/hash.h"
#include "compile/parse/parse.h"

static bool is_type(void *arg, const char *module, const char *name)
{
	size_t n = strlen(name);

	return n > 2 && name[n - 2] == '_' && name[n - 1] == 't';
}

static const char *get(void *arg, const char *name)
{
	return !strcmp(name, "defined") ? "-17" : NULL;
}

static char *print(const struct node *n, size_t *ret_len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	ast_print(out, n, NULL);
	fclose(out);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *argv[] = { "script.d",
				"42",
				"-0x7full",
				"name",
				"a b\\n",
				"\"quoted\"",
				"99999999999999999999",
				"int",
				"mod`name",
				"" };
	bool used[ARRAY_SIZE(argv)] = { false };
	struct macro_args macros = {
		.argv = argv, .argc = ARRAY_SIZE(argv), .used = used, .get = get
	};
	struct arena arena;
	struct diags diags;
	struct hash typedefs = { 0 };
	struct parse_cx cx = { .arena = &arena,
			       .diags = &diags,
			       .macros = &macros,
			       .is_type = is_type,
			       .typedefs = &typedefs };
	uint8_t how = size ? data[0] : 0;
	loc_t first, last;

	if (!size)
		return 0;
	macros.target = how & 32 ? -1 : 4711;
	macros.defaultargs = how & 64;
	cx.pspec = how & 128;
	arena_init(&arena);
	diags_init(&diags);
	source_add(&diags, how & 1 ? SOURCE_ARG : SOURCE_FILE, "fuzz", (const char *)data + 1,
		   size - 1);
	first = diags.sources[0].base;
	last = first + diags.sources[0].len;
	for (struct node *n = parse_source(&cx, 0, (how >> 1 & 7) % 5); n; n = n->next) {
		size_t len, copy_len;
		char *text = print(n, &len), *copy = print(node_clone(&arena, n), &copy_len);

		assert(len == copy_len && !memcmp(text, copy, len));
		assert(n->loc >= first && n->end >= n->loc && n->end <= last);
		assert(n->height && n->height <= AST_MAX_HEIGHT);
		free(text);
		free(copy);
	}
	for (uint32_t i = 0; i < diags.n; i++)
		assert(diags.list[i].loc >= first && diags.list[i].loc <= last &&
		       diags.list[i].end >= diags.list[i].loc);
	if (how & 16)
		parse_pdesc_text(&cx, 0, (how >> 1 & 7) % 5);
	hash_fini(&typedefs);
	diags_fini(&diags);
	arena_fini(&arena);
	return 0;
}
