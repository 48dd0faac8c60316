/* The files with code that a recording names: opens each once, whatever the paths that lead to it,
 * and reads symbols and unwind tables within limits. A link costs the user who makes it nothing. */
#include <sys/auxv.h>
#include <sys/stat.h>

#include "input/perf/perfspace_private.h"

static uint64_t left_after(uint64_t left, uint64_t n)
{
	return left > n ? left - n : 0;
}

static bool is_the_one(const struct dso *d, const struct object *o)
{
	uint32_t n;
	const uint8_t *id = object_build_id(o, &n);

	return !d->build_id_len ||
	       (n >= d->build_id_len && !memcmp(id, d->build_id, d->build_id_len));
}

static struct perf_file *perf_file_new(struct perfspace *s, struct object *o)
{
	struct perf_file *f = xcalloc(1, sizeof(*f));

	f->object = o;
	vec_push(&s->files, f);
	return f;
}

/* Returns the file of an object that was just opened, and frees the object when another one of the
 * same file exists. */
static struct perf_file *perf_file_of(struct perfspace *s, struct object *o)
{
	uint64_t key[5] = { 0 }, *index;
	struct stat st;
	bool fresh;

	if (!object_stat(o, &st))
		return perf_file_new(s, o);
	key[0] = st.st_dev;
	key[1] = st.st_ino;
	key[2] = (uint64_t)st.st_size;
	key[3] = (uint64_t)st.st_mtim.tv_sec;
	key[4] = (uint64_t)st.st_mtim.tv_nsec;
	index = hash_put(&s->file_of, key, sizeof(key), &fresh);
	if (!fresh) {
		object_free(o);
		return s->files.v[*index];
	}
	*index = s->files.n;
	return perf_file_new(s, o);
}

struct perf_file *perf_file_open(struct perfspace *s, struct dso *d, const char *path)
{
	struct object *o;

	if (err_drop(object_open(path, &o)))
		return NULL;
	if (is_the_one(d, o))
		return perf_file_of(s, o);
	object_free(o);
	d->other = true;
	return NULL;
}

/* The vdso has no file. This process's vdso is the same one on the same kernel. */
struct perf_file *perf_file_vdso(struct perfspace *s, struct dso *d)
{
	const uint8_t *p = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct object *o;

	if (!p || err_drop(object_open_memory("[vdso]", p, 8192, &o)))
		return NULL;
	if (is_the_one(d, o))
		return perf_file_new(s, o);
	object_free(o);
	return NULL;
}

static void read_symbols(struct perfspace *s, struct perf_file *f)
{
	uint32_t n;

	f->symbols_tried = true;
	f->unread = object_symbols_size(f->object) > s->symbols_left;
	if (f->unread) {
		s->symbols_left_out++;
		return;
	}
	(void)object_symbols(f->object, &n);
	s->symbols_left = left_after(s->symbols_left, object_memory(f->object));
}

const struct object_symbol *perf_file_find(struct perfspace *s, struct perf_file *f, uint64_t addr)
{
	if (!f->symbols_tried)
		read_symbols(s, f);
	return f->unread ? NULL : object_find_addr(f->object, addr);
}

enum { TEXTS_MAX = 64 };

void perf_file_tables(struct perfspace *s, struct perf_file *f)
{
	struct dso_text t;
	uint64_t addr;

	if (f->tables_tried)
		return;
	f->tables_tried = true;
	if (!s->tables_left || !s->tables_work_left) {
		s->tables_left_out++;
		return;
	}
	if (err_drop(unwind_image_open(f->object, &f->tables)))
		return;
	s->tables_left = left_after(s->tables_left, f->tables->size);
	s->tables_work_left = left_after(s->tables_work_left, f->tables->work);
	for (uint32_t i = 0;
	     i < TEXTS_MAX && object_text_segment(f->object, i, &t.off, &t.n, &addr); i++) {
		t.delta = t.off - addr;
		vec_push(&f->texts, t);
	}
}

void perf_files_free(struct perfspace *s)
{
	for (uint32_t i = 0; i < s->files.n; i++) {
		struct perf_file *f = s->files.v[i];

		object_free(f->object);
		unwind_image_free(f->tables);
		vec_fini(&f->texts);
		free(f);
	}
	vec_fini(&s->files);
	hash_fini(&s->file_of);
}
