/* The executable mappings of a process and the unwind images behind them. */
#include <errno.h>
#include <sys/auxv.h>

#include "base/hash.h"
#include "program/unwind/unwind.h"

struct unwind_images {
	struct hash by_file; /* struct file_key -> index in all */
	VEC(struct known_file) all;
};

struct known_file {
	struct unwind_image *image; /* NULL: no tables, why is not worth telling */
	struct object *object;      /* headers only: for biases */
};

struct file_key {
	uint32_t dev_major, dev_minor;
	uint64_t inode, path;
};

struct unwind_images *unwind_images_new(void)
{
	return xcalloc(1, sizeof(struct unwind_images));
}

void unwind_images_free(struct unwind_images *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->all.n; i++) {
		unwind_image_free(s->all.v[i].image);
		object_free(s->all.v[i].object);
	}
	vec_fini(&s->all);
	hash_fini(&s->by_file);
	free(s);
}

/* The vdso is the same in every 64-bit process: ours stands for all. */
static struct err *open_vdso(uint64_t size, struct object **ret)
{
	const void *p = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);

	if (!p)
		return err_new(ENOENT, "no vdso");
	return object_open_memory("[vdso]", p, size, ret);
}

static struct err *open_object(pid_t pid, const struct mapping *m, struct object **ret)
{
	cleanup_free char *path = NULL;

	if (!strcmp(m->path, "[vdso]"))
		return open_vdso(m->end - m->start, ret);
	path = mapping_open_path(pid, m);
	if (!path)
		return err_new(ENOENT, "%s: cannot be opened", m->path);
	return object_open(path, ret);
}

static struct known_file *find_file(struct unwind_images *s, pid_t pid, const struct mapping *m)
{
	struct file_key key = { m->dev_major, m->dev_minor, m->inode,
				hash_bytes(m->path, strlen(m->path)) };
	struct known_file *f;
	bool is_new;
	uint64_t *i = hash_put(&s->by_file, &key, sizeof(key), &is_new);

	if (!is_new)
		return &s->all.v[*i];
	*i = s->all.n;
	f = vec_add(&s->all);

	struct err *e = open_object(pid, m, &f->object);

	if (!e)
		e = unwind_image_open(f->object, &f->image);
	err_free(e);
	return f;
}

/* Where the mapping's bytes lie in the file's address space. Its offset is a whole page, the segment may begin or end
 * inside it: the text nearest the page's end counts. */
static bool find_bias(const struct object *o, const struct mapping *m, uint64_t *ret)
{
	for (uint64_t in = 4096; in; in -= 64) {
		uint64_t off = m->offset + in - 1, addr;

		if (object_offset_to_addr(o, off, &addr) && object_is_text(o, addr)) {
			*ret = m->start + in - 1 - addr;
			return true;
		}
	}
	return false;
}

struct err *unwind_process_read(struct unwind_images *s, pid_t pid, struct unwind_process **ret)
{
	struct unwind_process *p;
	struct mapping *maps;
	uint32_t n;
	struct err *e = mappings_read(pid, &maps, &n);

	if (e)
		return e;
	p = xcalloc(1, sizeof(*p));
	p->pid = pid;
	for (uint32_t i = 0; i < n; i++) {
		const struct mapping *m = &maps[i];
		struct unwind_mapping um = { m->start, m->end, m->start, NULL };

		if (!m->exec || !strcmp(m->path, "[vsyscall]"))
			continue;
		if (m->inode || !strcmp(m->path, "[vdso]")) {
			struct known_file *f = find_file(s, pid, m);

			if (f->image && find_bias(f->object, m, &um.bias))
				um.image = f->image;
		}
		vec_push(&p->mappings, um);
	}
	mappings_free(maps, n);
	*ret = p;
	return NULL;
}

void unwind_process_free(struct unwind_process *p)
{
	if (!p)
		return;
	vec_fini(&p->mappings);
	free(p);
}

const struct unwind_mapping *unwind_process_find(const struct unwind_process *p, uint64_t addr)
{
	uint32_t lo = 0, hi = p->mappings.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->mappings.v[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < p->mappings.n && addr >= p->mappings.v[lo].start)
		return &p->mappings.v[lo];
	return NULL;
}
