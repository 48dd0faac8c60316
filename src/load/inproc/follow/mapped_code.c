/* Reads the executable mappings of a process. See mapped_code.h. */
#include "load/inproc/follow/mapped_code.h"

#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/sorted.h"
#include "program/space/mapping.h"

/* What stat(2) has told of a file. */
struct known_file {
	uint64_t dev, inode;
	bool there;
};

struct reading {
	struct mapped_codes *to;
	struct hash index; /* device, inode and path, as mapped -> index + 1 in files */
	VEC(struct known_file) files;
	VEC(char) key;
};

/* Two overlay file systems can show one inode for two files, whose paths differ. */
static struct known_file *known_file_of(struct reading *r, pid_t pid, const struct mapping *m)
{
	const uint64_t id[] = { (uint64_t)m->dev_major << 32 | m->dev_minor, m->inode };
	const size_t n = strlen(m->path);
	uint64_t *index;

	r->key.n = 0;
	vec_reserve(&r->key, sizeof(id) + n);
	memcpy(r->key.v, id, sizeof(id));
	memcpy(r->key.v + sizeof(id), m->path, n);
	index = hash_put(&r->index, r->key.v, sizeof(id) + n, NULL);
	if (!*index) {
		cleanup_free char *path = mapping_open_path(pid, m);
		struct stat st;
		struct known_file f = { 0 };

		if (path && !stat(path, &st))
			f = (struct known_file){ st.st_dev, st.st_ino, true };
		r->to->files += path != NULL;
		vec_push(&r->files, f);
		*index = r->files.n;
	}
	return &r->files.v[*index - 1];
}

static int code_order(const void *pa, const void *pb)
{
	const struct mapped_code *a = pa, *b = pb;

	return a->dev != b->dev   ? COMPARE(a->dev, b->dev)
	       : a->ino != b->ino ? COMPARE(a->ino, b->ino)
				  : COMPARE(a->lo, b->lo);
}

struct err *mapped_codes_read(struct mapped_codes *c, pid_t pid)
{
	struct reading r = { .to = c };
	struct mappings maps = { 0 };
	struct err *e = mappings_read(pid, &maps);

	*c = (struct mapped_codes){ 0 };
	for (uint32_t i = 0; i < maps.n && !e; i++) {
		const struct mapping *m = &maps.v[i];
		const struct known_file *f = m->exec ? known_file_of(&r, pid, m) : NULL;

		if (f && f->there)
			vec_push(&c->v, ((struct mapped_code){ f->dev, f->inode, m->start, m->end,
							       m->offset }));
	}
	if (c->v.n)
		qsort(c->v.v, c->v.n, sizeof(*c->v.v), code_order);
	hash_fini(&r.index);
	vec_fini(&r.files);
	vec_fini(&r.key);
	mappings_free(&maps);
	return e;
}

void mapped_codes_fini(struct mapped_codes *c)
{
	vec_fini(&c->v);
}

const struct mapped_code *mapped_codes_of(const struct mapped_codes *c, uint64_t dev,
					  uint64_t inode, uint32_t *ret_n)
{
	const struct mapped_code *v = c->v.v;
	const uint32_t from =
		partition_point(c->v.n, i, v[i].dev < dev || (v[i].dev == dev && v[i].ino < inode));
	const uint32_t to = partition_point(
		c->v.n, i, v[i].dev < dev || (v[i].dev == dev && v[i].ino <= inode));

	*ret_n = to - from;
	return v + from;
}
