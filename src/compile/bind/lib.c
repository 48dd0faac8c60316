/* Finds library files by the names that they define, and reads a file when the program uses such a
 * name. */
#define _GNU_SOURCE
#include "compile/bind/bind_private.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/path.h"
#include "base/regular.h"
#include "compile/dlib.h"

enum { LIBRARY_MAX = 16 << 20, DEPTH_MAX = 64 };

/* Scans words and punctuation of D text, to find the names that a file defines. Skips comments,
 * strings and lines of the preprocessor. */
struct scan {
	const char *p, *end;
	const char *word; /* text of a word */
	size_t len;
};

/* Returns 0 at the end, 'w' for a word, else the character. */
static int scan_next(struct scan *s)
{
	for (; s->p < s->end; s->p++) {
		char c = *s->p;

		if (c == '/' && s->end - s->p > 1 && (s->p[1] == '*' || s->p[1] == '/')) {
			const char *close = s->p[1] == '*' ? "*/" : "\n";
			const char *q =
				memmem(s->p + 2, (size_t)(s->end - s->p - 2), close, strlen(close));

			if (!q)
				return 0;
			s->p = q + strlen(close) - 1;
		} else if (c == '#') {
			while (s->p < s->end && *s->p != '\n')
				s->p++;
		} else if (c == '"') {
			for (s->p++; s->p < s->end && *s->p != '"'; s->p++)
				s->p += *s->p == '\\';
		} else if (isalpha((unsigned char)c) || c == '_') {
			s->word = s->p;
			while (s->p < s->end && (isalnum((unsigned char)*s->p) || *s->p == '_'))
				s->p++;
			s->len = (size_t)(s->p - s->word);
			return 'w';
		} else if (!isspace((unsigned char)c)) {
			s->p++;
			return c;
		}
	}
	return 0;
}

static bool word_is(const struct scan *s, const char *w)
{
	return s->len == strlen(w) && !memcmp(s->word, w, s->len);
}

/* Records that the file defines the name. The first file with a name keeps it. Several files may
 * have translators of one name. A counter in the key tells them apart: "x1 name", "x2 name". */
static void define(struct bind_state *st, char kind, const char *name, size_t len, uint32_t file)
{
	char key[160];

	for (int i = 0; i < 10; i++) {
		int n = snprintf(key, sizeof(key), "%c%d %.*s", kind, i, (int)len, name);
		bool fresh;
		uint64_t *slot = hash_put(&st->lib_names, key, (size_t)n, &fresh);

		if (fresh)
			*slot = file + 1;
		if (fresh || kind != 'x' || *slot == file + 1)
			return;
	}
}

/* definition:  "inline" ... name ("=" | "[")   "typedef" ... name ";"   "translator" name "<"
 *              ("struct" | "union") tag "{"     "enum" [tag] "{" name ... "}" */
static void scan_file(struct bind_state *st, uint32_t file)
{
	struct scan s = { .p = st->libs.v[file].text,
			  .end = st->libs.v[file].text + st->libs.v[file].len };
	struct scan last = { 0 }, tag = { 0 };
	char kind = 0; /* of the definition being scanned */
	bool tagged = false, enumerating = false, value = false;
	int depth = 0, t, enum_depth = 0;

	while ((t = scan_next(&s))) {
		if (t == 'w') {
			if (!depth && word_is(&s, "inline"))
				kind = 'i';
			else if (!depth && word_is(&s, "typedef"))
				kind = 't';
			else if (!depth && word_is(&s, "translator"))
				kind = 'x';
			if (word_is(&s, "enum")) {
				enumerating = true;
				enum_depth = depth;
			} else if (enumerating && depth == enum_depth + 1 && !value) {
				define(st, 'e', s.word, s.len, file);
				value = true;
			}
			tagged = word_is(&last, "struct") || word_is(&last, "union") ||
				 word_is(&last, "enum");
			if (tagged)
				tag = s;
			last = s;
			continue;
		}
		if (t == '{' && tagged)
			define(st, 's', tag.word, tag.len, file);
		tagged = false;
		if (t == '{')
			depth++;
		if (t == '}' && depth)
			depth--;
		if (enumerating && depth == enum_depth + 1 && (t == ',' || t == '{'))
			value = false;
		if (enumerating && (t == '}' || t == ';'))
			enumerating = false;
		if (depth)
			continue;
		if ((kind == 'i' && (t == '=' || t == '[')) || (kind == 'x' && t == '<') ||
		    (kind == 't' && t == ';')) {
			define(st, kind, last.word, last.len, file);
			kind = 0;
		}
		if (t == ';')
			kind = 0;
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct lib_file *)a)->name, ((const struct lib_file *)b)->name);
}

/* The directory may be another user's: the open of a FIFO would wait for ever. */
static struct err *read_library(const char *path, char **ret_text, size_t *ret_len)
{
	const int fd = regular_open(path);

	if (fd < 0)
		return err_new(EINVAL, "%s cannot be read, or is no regular file", path);
	*ret_text = regular_read(fd, LIBRARY_MAX, ret_len);
	close(fd);
	return NULL;
}

static void add_directory(struct bind_cx *cx, const char *dir)
{
	struct bind_state *st = cx->state;
	DIR *d = opendir(dir);
	uint32_t first = st->libs.n;
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d))) {
		size_t n = strlen(e->d_name), len;
		cleanup_free char *path = xasprintf("%s/%s", dir, e->d_name);
		char *text = NULL;
		struct err *err;

		if (n < 3 || strcmp(e->d_name + n - 2, ".d"))
			continue;
		err = read_library(path, &text, &len);
		if (err) {
			diag_warn(cx->diags, 0, 0, "D_LIBRARY", "%s", err->text);
			err_free(err);
			continue;
		}
		vec_push(&st->libs, (struct lib_file){ .name = arena_strdup(cx->arena, path),
						       .text = arena_strndup(cx->arena, text, len),
						       .len = len,
						       .own = true });
		free(text);
	}
	closedir(d);
	if (st->libs.n > first)
		qsort(st->libs.v + first, st->libs.n - first, sizeof(*st->libs.v), by_name);
}

/* Adds the variables of other systems' kernels that are constant while the machine runs.
 * dlib/foreign.d has the others. */
static void add_machine(struct bind_cx *cx)
{
	long pages = sysconf(_SC_PHYS_PAGES), cpus = sysconf(_SC_NPROCESSORS_ONLN),
	     all = sysconf(_SC_NPROCESSORS_CONF);
	struct utsname u;
	const char *text;

	if (uname(&u))
		u.machine[0] = '\0';
	text = arena_printf(cx->arena,
			    "inline int __symbol__ncpus = %ld;\n"
			    "inline int __symbol___ncpu = %ld;\n"
			    "inline int __symbol__mp_ncpus = %ld;\n"
			    "inline int __symbol__ncpus_online = %ld;\n"
			    "inline uint64_t __symbol__physmem = %ld;\n"
			    "inline int __symbol___pagesize = %ld;\n"
			    "inline int __symbol__pagesize = %ld;\n"
			    "inline string __cpu_type = \"%s\";\n",
			    all, all, cpus, cpus, pages, sysconf(_SC_PAGESIZE),
			    sysconf(_SC_PAGESIZE), u.machine);

	vec_push(&cx->state->libs,
		 (struct lib_file){ .name = "<machine>", .text = text, .len = strlen(text) });
}

static void index_libs(struct bind_cx *cx)
{
	struct bind_state *st = cx->state;

	st->libs_indexed = true;
	if (opt_on(cx->options, OPT_NOLIBS))
		return;
	for (uint32_t i = 0; i < cx->libdirs.n; i++)
		add_directory(cx, cx->libdirs.v[i]);
	for (const struct embedded_file *f = dlib_files; f->name; f++)
		vec_push(&st->libs,
			 (struct lib_file){ .name = f->name, .text = f->text, .len = f->len });
	add_machine(cx);
	for (uint32_t i = 0; i < st->libs.n; i++)
		scan_file(st, i);
}

static void load_file(struct bind_cx *cx, uint32_t i)
{
	struct bind_state *st = cx->state;
	struct lib_file *f = &st->libs.v[i];
	struct bound_clause *clause = st->clause;
	const struct env *env = st->env;
	bool context = st->in_context, pspec = cx->parse->pspec;

	f->loaded = true;
	if (st->lib_depth == DEPTH_MAX) {
		diag_error(cx->diags, 0, 0, "D_LIBRARY",
			   "%s is not read: more than %d libraries depend on one another", f->name,
			   DEPTH_MAX);
		return;
	}
	f->busy = true;
	st->lib_depth++;
	st->clause = NULL;
	st->env = NULL;
	st->in_context = cx->parse->pspec = false;
	source_add(cx->diags, SOURCE_LIB, f->name, f->text, f->len);
	bind_add(cx, parse_source(cx->parse, cx->diags->nsources - 1, PDESC_NAME));
	st->clause = clause;
	st->env = env;
	st->in_context = context;
	cx->parse->pspec = pspec;
	st->lib_depth--;
	st->libs.v[i].busy = false;
	st->libs.v[i].turn = ++st->nlibs_read;
}

/* Loads every file of the -L directories. The user of -L wants to see the errors in them, even in
 * unused files. */
void lib_load_own(struct bind_cx *cx)
{
	if (!cx->libdirs.n)
		return;
	if (!cx->state->libs_indexed)
		index_libs(cx);
	for (uint32_t i = 0; i < cx->state->libs.n; i++)
		if (cx->state->libs.v[i].own && !cx->state->libs.v[i].loaded)
			load_file(cx, i);
}

bool lib_load(struct bind_cx *cx, char kind, const char *name)
{
	struct bind_state *st = cx->state;
	bool loaded = false;
	char key[160];

	if (!st->libs_indexed)
		index_libs(cx);
	if (kind == 'f') {
		for (uint32_t i = 0; i < st->libs.n; i++) {
			if (!strcmp(path_base(st->libs.v[i].name), name) && !st->libs.v[i].loaded) {
				load_file(cx, i);
				return true;
			}
		}
		return false;
	}
	if (!st->libs.n || strlen(name) > 128)
		return false;
	for (int i = 0; i < 10; i++) {
		int n = snprintf(key, sizeof(key), "%c%d %s", kind, i, name);
		uint64_t *slot = hash_get(&st->lib_names, key, (size_t)n);

		if (!slot)
			break;
		if (!st->libs.v[*slot - 1].loaded) {
			load_file(cx, (uint32_t)*slot - 1);
			loaded = true;
		}
		if (kind != 'x')
			break;
	}
	return loaded;
}

bool lib_busy(struct bind_cx *cx, const char *name)
{
	const struct bind_state *st = cx->state;

	for (uint32_t i = 0; i < st->libs.n; i++)
		if (st->libs.v[i].busy && !strcmp(path_base(st->libs.v[i].name), name))
			return true;
	return false;
}

bool lib_loaded(struct bind_cx *cx, const char *name)
{
	const struct bind_state *st = cx->state;

	for (uint32_t i = 0; i < st->libs.n; i++)
		if (st->libs.v[i].loaded && !strcmp(path_base(st->libs.v[i].name), name))
			return true;
	return false;
}

static const struct lib_file *file_with_type(const struct bind_cx *cx, const char *type_name)
{
	char key[160];
	int n = snprintf(key, sizeof(key), "t0 %.128s", type_name);
	const uint64_t *slot = hash_get(&cx->state->lib_names, key, (size_t)n);

	return slot ? &cx->state->libs.v[*slot - 1] : NULL;
}

bool lib_has_type(const struct bind_cx *cx, const char *type_name)
{
	const struct lib_file *f = file_with_type(cx, type_name);

	return f && f->loaded;
}

bool lib_stands_in(const struct bind_cx *cx, const char *type_name)
{
	const struct lib_file *f = file_with_type(cx, type_name);

	return f && f->loaded && !f->own && !strcmp(f->name, "foreign.d");
}

void libraries_print(FILE *out, const struct bind_cx *cx)
{
	const struct bind_state *st = cx->state;

	for (uint32_t turn = st->nlibs_read; turn; turn--)
		for (uint32_t i = 0; i < st->libs.n; i++)
			if (st->libs.v[i].turn == turn)
				fprintf(out, "descry DEBUG: library %s (%u/%u)\n",
					st->libs.v[i].name, turn, st->nlibs_read);
}

void lib_fini(struct bind_cx *cx)
{
	vec_fini(&cx->state->libs);
}
